"""A release has all that it needs, and installs from an index without a clone."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.process.test_packaging import PACKAGED, ROOT, repository_files


def packaged_name(name: str) -> str:
    """Return where a file of a package lies in the wheel."""
    return name if name.startswith("cortex/") else f"cortex/{name.removeprefix('benchmarks/')}"


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that `make release` fills from this tree, committed elsewhere."""
    clone = tmp_path_factory.mktemp("clone")
    for name in repository_files():
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, clone / name, follow_symlinks=False)
    author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")
    for words in (("init", "--quiet"), ("add", "."), (*author, "commit", "--quiet", "-m", "All")):
        subprocess.run(["git", "-C", str(clone), *words], check=True)
    remote = ("remote", "add", "origin", "git@example.org:ada/cortex.git")
    subprocess.run(["git", "-C", str(clone), *remote], check=True)
    subprocess.run([sys.executable, ".ci/release.py"], cwd=clone, check=True, capture_output=True)
    return clone / "dist"


def test_the_wheel_holds_every_file_of_the_packages_and_nothing_else(release: Path):
    (wheel,) = release.glob("*.whl")
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    wanted = {
        packaged_name(name)
        for name in repository_files()
        if name.startswith(PACKAGED) and not (ROOT / name).is_symlink()
    }
    assert held == wanted


def test_a_release_has_its_sums_and_what_changed(release: Path):
    sums = dict(reversed(line.split()) for line in (release / "SHA256SUMS").read_text().splitlines())
    assert set(sums) == {path.name for path in release.iterdir()} - {"SHA256SUMS"}
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=release, check=True)
    assert "### Fixed" in (release / "notes.md").read_text("utf-8")
    assert (release / "constraints.txt").read_bytes() == (ROOT / "constraints.txt").read_bytes()


def test_what_an_index_shows_has_no_link_that_leads_nowhere(release: Path):
    (wheel,) = release.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(name).decode()
    targets = re.findall(r"\]\(([^)]+)\)", metadata)
    assert targets and all(target.startswith(("https://", "#")) for target in targets)
    assert "Project-URL: Repository, https://example.org/ada/cortex" in metadata


def test_the_extra_locked_pins_all_that_cortex_needs(release: Path):
    (wheel,) = release.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        required = re.findall(
            r"^Requires-Dist: ([\w.-]+)(.*)$", archive.read(metadata).decode(), re.MULTILINE
        )
    pinned = {name.lower(): rest for name, rest in required if 'extra == "locked"' in rest}
    bound = {name.lower() for name, rest in required if "extra ==" not in rest}
    assert bound - set(pinned) == set()
    assert {"pydantic-core", "sniffio"} & set(pinned), "what dependencies need is pinned too"
    assert {"anthropic", "ray", "altair"} & set(pinned) == set(), "no other extra comes along"
    constraints = dict(re.findall(r"^([a-z0-9-]+)==([^\s;]+)", (ROOT / "constraints.txt").read_text(), re.M))
    assert [n for n, rest in pinned.items() if n not in constraints or not rest.startswith("==")] == []


def test_a_release_installs_from_an_index_without_a_clone(release: Path, tmp_path: Path):
    pages = tmp_path / "index" / "cortex-lake"
    pages.mkdir(parents=True)
    (wheel,) = release.glob("*.whl")
    shutil.copy(wheel, pages)
    pages.joinpath("index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')
    handler = partial(_Quiet, directory=str(pages.parent))
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    python = environment / "bin" / "python"
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        install = ["install", "--quiet", "--no-deps", "--no-cache-dir", "--disable-pip-version-check"]
        index = f"http://127.0.0.1:{server.server_port}/"
        from_index = [*install, "-i", index, "cortex-lake[locked]"]
        subprocess.run([str(python), "-I", "-m", "pip", "--isolated", *from_index], check=True)
        server.shutdown()
    # Dependencies come from the tests' environment: a path alone, which leads to no checkout.
    (home,) = environment.glob("lib/python3*/site-packages")
    (home / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    clean = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "CORTEX_HOME": str(tmp_path / "store")}
    cortex = partial(
        subprocess.run, check=True, capture_output=True, text=True, env=clean, cwd=tmp_path, timeout=60
    )
    place = cortex([str(python), "-c", "import cortex.hooks; print(cortex.hooks.__path__[0])"]).stdout.strip()
    assert Path(place).is_relative_to(environment)
    assert Path(place, ".claude-plugin", "marketplace.json").is_file(), "`cortex setup` names this folder"
    command = str(environment / "bin" / "cortex")
    text = "The harbour office reads the dashboard at six"
    assert json.loads(cortex([command, "remember", text, "--global", "--json"]).stdout)["searchable"]


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: a test's output is its failures."""
