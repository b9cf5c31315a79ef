"""What a release needs, built from the commit and checked: python release.py [FOLDER].

The folder is `dist` unless one is named. Nothing is uploaded, tagged or pushed: the last lines say how.
"""

import hashlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[1]
PUBLISH = """
Not published yet. To publish:
  1. In CHANGELOG.md name the section [Unreleased] "[{version}] - {day}", commit, run this again
  2. git tag v{version} && git push origin v{version}
  3. Upload *.whl and *.tar.gz to the index, and attach constraints.txt, notes.md and SHA256SUMS to the tag
Then these install it, without a clone:
  uv tool install 'cortex-lake[locked]'     # or pipx
  claude plugin marketplace add OWNER/REPOSITORY"""


def main() -> None:
    """Build, check and list the files of a release."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist").resolve()
    if changed := git("status", "--porcelain", "--untracked-files=no"):
        sys.exit(f"A release is built from the commit, and these files differ from it:\n{changed}")
    folder.mkdir(parents=True, exist_ok=True)
    if list(folder.iterdir()):
        sys.exit(f"{folder} is not empty. Empty it, or name another folder.")
    with tempfile.TemporaryDirectory(prefix="cortex-release-") as scratch:
        tree = Path(scratch)
        git("archive", "--output", str(tree / "commit.tar"), "HEAD")
        with tarfile.open(tree / "commit.tar") as archive:
            archive.extractall(tree / "tree", filter="data")
        write_release(tree / "tree", folder)
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    print(PUBLISH.format(version=the_version(ROOT), day=day), flush=True)


def write_release(tree: Path, folder: Path) -> None:
    """Write wheel, sdist, constraints, notes and sums of this tree into the empty folder."""
    version = the_version(tree)
    add_locked_extra(tree)
    add_address(tree, origin())
    path = tree / "README.md"
    path.write_text(standing_alone(path.read_text("utf-8")), "utf-8")
    # The wheel comes from the sdist, so that one that lacks a file fails here.
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(tree)]
    built = subprocess.run(build, check=False, capture_output=True, text=True)
    if built.returncode:
        sys.exit(f"The build failed:\n{built.stdout[-2000:]}{built.stderr[-2000:]}")
    (folder / "constraints.txt").write_bytes((tree / "constraints.txt").read_bytes())
    (folder / "notes.md").write_text(notes(tree, version), "utf-8")
    check_wheel(tree, folder / f"cortex_lake-{version}-py3-none-any.whl")
    files = sorted(folder.iterdir())
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (folder / "SHA256SUMS").write_text("".join(sums), "utf-8")
    for path in files:
        print(f"{path}  {path.stat().st_size / 1e3:,.0f} kB")


def the_version(tree: Path) -> str:
    """Return the version, on which the package, the plugin and the code have to agree."""
    versions = {
        "pyproject.toml": project(tree)["version"],
        "hooks/.claude-plugin/plugin.json": json.loads(
            (tree / "hooks/.claude-plugin/plugin.json").read_bytes()
        )["version"],
        "transforms/__init__.py": (tree / "transforms/__init__.py").read_text("utf-8").split('"')[-2],
    }
    if len(set(versions.values())) != 1:
        sys.exit(f"The files name different versions: {versions}")
    return str(versions["pyproject.toml"])


def add_locked_extra(tree: Path) -> None:
    """
    Add the extra `locked` to this tree's pyproject.toml: what Cortex needs, at the tested versions.

    Who installs from an index has no constraints.txt. The repository's own file has bounds alone, so that
    these can be tried without the lock (decision 81).
    """
    wanted = needed(tree)
    lines = (tree / "constraints.txt").read_text("utf-8").splitlines()
    pins = [line for line in lines if re.split(r"[=\s]", line)[0] in wanted]
    path, table = tree / "pyproject.toml", "[project.optional-dependencies]\n"
    text = path.read_text("utf-8").replace(table, f"{table}locked = {json.dumps(pins)}\n")
    path.write_text(text, "utf-8")


def origin() -> str:
    """Return the address at which the repository is shown, by its remote `origin`; "" if none is known."""
    asked = ["git", "-C", str(ROOT), "remote", "get-url", "origin"]
    remote = subprocess.run(asked, check=False, capture_output=True, text=True).stdout.strip()
    match = re.fullmatch(r"(?:https://|ssh://)?(?:[^@/]+@)?([\w.-]+\.\w+)[:/](.+?)(?:\.git)?/?", remote)
    return f"https://{match[1]}/{match[2]}" if match else ""


def add_address(tree: Path, address: str) -> None:
    """Add where the repository is to this tree's pyproject.toml, if that is known."""
    path, table = tree / "pyproject.toml", "[project.scripts]\n"
    urls = f"[project.urls]\nRepository = {json.dumps(address)}\n\n" if address else ""
    path.write_text(path.read_text("utf-8").replace(table, urls + table), "utf-8")


def standing_alone(readme: str) -> str:
    """
    Return the README as an index shows it: links to files of the repository lead nowhere from there.

    >>> standing_alone("![Brief](docs/brief.svg)\\n\\nSee [install](docs/install.md), [Claude](https://claude.com).")
    'See install, [Claude](https://claude.com).'
    """
    pictureless = re.sub(r"!\[[^\]]*\]\((?!https?:)[^)]*\)\n*", "", readme)
    return re.sub(r"\[([^\]]*)\]\((?!https?:|#)[^)]*\)", r"\1", pictureless)


def needed(tree: Path) -> set[str]:
    """Return the names of all packages that the lock has for Cortex without extras."""
    lock = tomllib.loads((tree / "uv.lock").read_text("utf-8"))["package"]
    waiting, names = [("cortex-lake", "")], set[tuple[str, str]]()
    while waiting:
        asked = waiting.pop()
        if asked in names:
            continue
        names.add(asked)
        for package in (package for package in lock if package["name"] == asked[0]):
            extra = package.get("optional-dependencies", {}).get(asked[1], [])
            for other in [*package.get("dependencies", []), *extra]:
                waiting += [(other["name"], key) for key in ["", *other.get("extra", [])]]
    return {name for name, _ in names} - {"cortex-lake"}


def notes(tree: Path, version: str) -> str:
    """Return what CHANGELOG.md says of this version, or of what is unreleased."""
    text = (tree / "CHANGELOG.md").read_text("utf-8")
    sections = dict(re.findall(r"^## \[(.+?)\].*?\n(.*?)(?=^## \[|\Z)", text, re.MULTILINE | re.DOTALL))
    section = sections.get(version) or sections.get("Unreleased", "")
    if not section.strip():
        sys.exit(f"CHANGELOG.md says nothing of {version}.")
    return f"# Cortex {version}\n\n{section.strip()}\n"


def check_wheel(tree: Path, wheel: Path) -> None:
    """End the release if the wheel lacks a file of a listed package, or holds one from elsewhere."""
    listed = tomllib.loads((tree / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["package-dir"]
    homes = {tree / folder: package.replace(".", "/") for package, folder in listed.items()}
    names = {
        f"{package}/{path.relative_to(home).as_posix()}"
        for home, package in homes.items()
        for path in home.rglob("*")  # which enters no links, such as those in cortex/
        if path.is_file()
    }
    with ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    if lacking := sorted(names - held):
        sys.exit(f"The wheel lacks {lacking[:10]}. List the package in pyproject.toml.")
    if foreign := sorted(held - names):
        sys.exit(f"The wheel holds files of no package: {foreign[:10]}.")


def project(tree: Path) -> dict[str, object]:
    """Return the table `project` of pyproject.toml."""
    return dict(tomllib.loads((tree / "pyproject.toml").read_text("utf-8"))["project"])


def git(*words: str) -> str:
    """Return what git prints in this repository."""
    asked = ["git", "-C", str(ROOT), *words]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
