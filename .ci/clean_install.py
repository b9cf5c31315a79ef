"""The README's own commands where nothing else is installed: python3 clean_install.py [COMMAND…].

Each has a fresh clone, an empty home and a PATH of Python, git, make and POSIX tools. Only the way to the
package index is this machine's. Beside it lies a newer release of every locked package, and each is broken.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHON = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
# Not the line with `git+URL`: it takes the newest releases, which are the broken ones here.
COMMANDS = ("make demo", "make install", "uv tool install --constraints", "pipx install")
POSIX = """
    basename cat chmod cp cut date dirname env expand grep head id ln ls mkdir mktemp mv ps pwd readlink rm
    rmdir sed sh sleep sort tail test touch tr uname uniq wc
"""
WAY_TO_THE_INDEX = re.compile(
    r"(PIP|UV)_|SSL_CERT_(FILE|DIR)$|REQUESTS_CA_BUNDLE$|(https?|no|all)_proxy$", re.IGNORECASE
)


def main() -> None:
    """Run each of the README's commands, or those that begin as named, and say what each took."""
    commands = readme_commands()
    with tempfile.TemporaryDirectory(prefix="cortex-clean-") as folder:
        machine = Machine(Path(folder))
        for beginning in sys.argv[1:] or COMMANDS:
            lines = [line for line in commands if line.startswith(beginning)]
            if len(lines) != 1:
                sys.exit(f"the README has {len(lines)} commands `{beginning} …`, not one")
            machine.run(lines[0])


def readme_commands() -> list[str]:
    """Return the different lines of the README's shell blocks, without their comments."""
    readme = (ROOT / "README.md").read_text("utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    return sorted({line.split(" #")[0].strip() for block in blocks for line in block.splitlines()})


class Machine:
    """A PATH on which nothing was installed, and for each command a home and a clone that nobody used."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "bin"
        self.path.mkdir()
        (self.path / "python3").symlink_to(PYTHON)
        for tool in ("git", "make", *POSIX.split()):
            (self.path / tool).symlink_to(shutil.which(tool) or sys.exit(f"there is no {tool} here"))
        releases = folder / "releases"
        releases.mkdir()
        for name, versions in locked_versions().items():
            for version in versions:
                write_broken_release(releases, name, f"{version}.post1")
        # Without bytecode of every module, as `make` installs: compiling takes longer than all else.
        self.index = way_to_the_index() | {"PIP_NO_COMPILE": "0"}
        for variable, separator in (("PIP_FIND_LINKS", " "), ("UV_FIND_LINKS", ",")):
            given = self.index.get(variable)
            self.index[variable] = f"{given}{separator}{releases}" if given else str(releases)
        self._would_take_a_broken_release()

    def run(self, line: str) -> None:
        """Run the line in a fresh clone and home; what it installs has to be the lock's, and to work."""
        print(f"\n$ {line}    # Python {sys.version.split()[0]}", flush=True)
        home, clone = self.folder / "home", self.folder / "clone"
        checked("git", "clone", "--quiet", ROOT, clone)
        # As a set-up that was interrupted leaves it: the same command mends it.
        for half_made in (clone / ".venv", home / ".local" / "share" / "cortex-lake"):
            (half_made / "bin").mkdir(parents=True)
            (half_made / "bin" / "python").touch()
        clean = {"HOME": str(home), "PATH": str(self.path), "LANG": "C.UTF-8", **self.index}
        installer = line.split()[0]
        with_installer = {"PATH": f"{self.path}:{self._only(installer)}"} if installer != "make" else {}
        started = time.monotonic()
        checked("sh", "-c", line, cwd=clone, env=clean | with_installer)
        print(f"ok: {line}: {time.monotonic() - started:.0f} s", flush=True)
        if line.startswith("make demo"):
            self._holds_the_lock(clone / ".venv/bin/python")
            # The whole suite runs elsewhere. Here it has to start.
            others = ("unit/transforms/*", "store/*", "process/*")
            few = {
                "PYTEST_ADDOPTS": " ".join(["-k test_docs", *(f"--ignore-glob=*/tests/{o}" for o in others)])
            }
            checked("make", "test", cwd=clone, env=clean | few)
        else:
            command = home / ".local/bin/cortex"
            python = Path(command.read_text("utf-8").split()[0].removeprefix("#!"))
            self._holds_the_lock(python)
            store = {"CORTEX": str(command), "CORTEX_HOME": str(home / "store")}
            # The whole way is tried on the wheel that CI builds, of the same packages.
            checked(python, ROOT / ".ci" / "installed.py", "--short", cwd=home, env=clean | store)
        shutil.rmtree(home)
        shutil.rmtree(clone)

    def _only(self, installer: str) -> Path:
        """Return a folder for the PATH with this installer: where pipx sees uv, it uses that."""
        environment = self.folder / installer
        checked(PYTHON, "-m", "venv", environment)
        checked(environment / "bin" / "python", "-m", "pip", "install", "--quiet", installer)
        return environment / "bin"

    def _would_take_a_broken_release(self) -> None:
        taken = self.folder / "taken"
        asked = (PYTHON, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", taken, "sqlalchemy<2.1")
        checked(*asked, env=os.environ | self.index)
        (wheel,) = taken.iterdir()
        if ".post1-" not in wheel.name:
            sys.exit(f"not so: the broken releases are offered; pip took {wheel.name}")
        print(f"ok: pip alone would take {wheel.name}, which is broken", flush=True)

    def _holds_the_lock(self, python: Path) -> None:
        lines = "from importlib.metadata import distributions as d; [print(p.name, p.version) for p in d()]"
        listed = subprocess.run([python, "-c", lines], capture_output=True, text=True, check=True).stdout
        versions = {normal(name): version for name, version in map(str.split, listed.splitlines())}
        # The environment's own pip and what came with it.
        lock = {name: known for name, known in locked_versions().items() if name != "setuptools"}
        other = {
            name: version for name, version in versions.items() if version not in lock.get(name, {version})
        }
        if other or len(versions) < 100:
            sys.exit(f"not so: the {len(versions)} packages are the lock's, see {other}")
        size = sum(path.lstat().st_size for path in python.parents[1].rglob("*"))
        print(f"ok: {len(versions)} packages in their locked versions, {size / 1e6:.0f} MB", flush=True)


def checked(*command: str | Path, **options: object) -> None:
    """Run the command; that it fails ends everything."""
    if subprocess.run(command, check=False, **options).returncode:  # type: ignore[call-overload]
        sys.exit(f"failed: {' '.join(map(str, command))}")


def way_to_the_index() -> dict[str, str]:
    """Return the environment and pip's settings, as environment, by which this machine reaches its index."""
    listed = subprocess.run(
        [PYTHON, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    )
    settings = dict(line.split("=", 1) for line in listed.stdout.splitlines())
    pip = {
        "PIP_" + key.split(".", 1)[1].upper().replace("-", "_"): str(ast.literal_eval(value))
        for key, value in settings.items()
    }
    return pip | {name: value for name, value in os.environ.items() if WAY_TO_THE_INDEX.match(name)}


def locked_versions() -> dict[str, set[str]]:
    """Return name → the versions that the exported lists have of it: numpy's depend on the Python."""
    versions: dict[str, set[str]] = {}
    for file in ("requirements.txt", "constraints.txt"):
        exported = (ROOT / file).read_text("utf-8") if (ROOT / file).exists() else ""
        for name, version in re.findall(r"^([a-z0-9-]+)==([^\s;]+)", exported, re.MULTILINE):
            versions.setdefault(name, set()).add(version)
    return versions


def write_broken_release(folder: Path, name: str, version: str) -> None:
    """Write a wheel that installs, and whose import fails."""
    package = name.replace("-", "_")
    about = f"{package}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{package}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{package}/__init__.py", "raise ImportError('this release is broken')\n")
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")


def normal(name: str) -> str:
    """Return the name as the lists write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    main()
