"""The wheel holds what the repository holds, the links resolve, and nothing of one machine is in it."""

import re
import shutil
import subprocess
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from tests.examples import cases

ROOT = Path(__file__).parents[2]
PACKAGED = ("cortex/", "flows/", "transforms/", "storage/", "hooks/", "data/", "benchmarks/scores/")
LINKED = ("flows", "transforms", "storage", "hooks", "data", "benchmarks/scores")
LOCKS = ("uv.lock", "requirements.txt")
# Answers about sessions of other people's machines, kept word for word.
RECORDED = "tests/fixtures/recorded-replies/"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

# A clone stays quick, and a larger file is data that belongs elsewhere. The lock names every wheel there is.
MAXIMUM_FILE_BYTES = 1_000_000

# The invented people of the samples and tests are dev, ada and someone; every other home is somebody's.
MACHINE_PATH = re.compile(
    r"/(?:work|root)/|/(?:home|Users)/(?!(?:dev|ada|someone)\b)[A-Za-z][\w.-]*|[A-Z]:\\Users\\\w+"
)
REGISTRY_HOST = re.compile(r"https?://(?:[\w.-]*pypi[\w.-]*|files\.pythonhosted\.org)|index-url|find-links")


def repository_files() -> list[str]:
    """Return the tracked files and new ones that git would take, skip outside a checkout."""
    asked = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a git checkout: no list of the files that belong to the project")
    listed = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    return sorted({name for name in listed.split("\0") if name and (ROOT / name).exists()})


def text_files(*left_out: str) -> dict[str, str]:
    """Return name → text of the repository's text files, links and this file left out."""
    chosen = [n for n in repository_files() if n not in (*left_out, "tests/process/test_packaging.py")]
    texts = {}
    for name in chosen:
        path = ROOT / name
        if path.is_symlink() or not path.is_file():
            continue
        raw = path.read_bytes()
        if b"\0" not in raw[:8192]:
            texts[name] = raw.decode("utf-8", "replace")
    return texts


def test_every_package_is_listed():
    found = {
        f"cortex.{Path(name).parent.as_posix().removeprefix('benchmarks/').replace('/', '.')}".replace(
            "cortex.cortex", "cortex"
        )
        for name in repository_files()
        if name.endswith("/__init__.py") and name.startswith(PACKAGED)
    }
    setuptools = PROJECT["tool"]["setuptools"]
    assert set(setuptools["packages"]) == found
    assert set(setuptools["package-dir"]) == found


@cases("name", LINKED)
def test_each_link_in_cortex_leads_to_its_folder_relatively(name: str):
    link = ROOT / "cortex" / Path(name).name
    assert link.is_symlink()
    assert link.readlink() == Path("..", name)
    assert link.resolve() == ROOT / name


def test_the_package_finds_its_samples_and_policy():
    data = files("cortex.data")
    assert data.joinpath("reference/thresholds.csv").is_file()
    assert data.joinpath("samples/projects").is_dir()


def test_no_file_names_a_place_on_one_machine():
    texts = {name: text for name, text in text_files(*LOCKS).items() if not name.startswith(RECORDED)}
    found = {name: MACHINE_PATH.findall(text) for name, text in texts.items() if MACHINE_PATH.search(text)}
    assert found == {}


def test_only_the_locks_name_a_package_index():
    assert [name for name, text in text_files(*LOCKS).items() if REGISTRY_HOST.search(text)] == []


def test_the_lock_names_the_public_index_alone():
    hosts = set(re.findall(r"https?://([^/\"]+)", (ROOT / "uv.lock").read_text(encoding="utf-8")))
    assert hosts == {"pypi.org", "files.pythonhosted.org"}


def test_no_file_is_large():
    sizes = {name: (ROOT / name).stat().st_size for name in repository_files() if name != "uv.lock"}
    assert {name: size for name, size in sizes.items() if size > MAXIMUM_FILE_BYTES} == {}


def test_pip_gets_the_versions_of_the_lock():
    locked = {package["name"]: package for package in _lock()["package"] if package["name"] != "cortex-lake"}
    exported = dict(re.findall(r"^([a-z0-9-]+)==([^\s;]+)", _requirements(), re.MULTILINE))
    assert exported
    assert {n: v for n, v in exported.items() if n not in locked or locked[n]["version"] != v} == {}


def test_pip_gets_only_files_whose_hash_the_lock_has():
    known = {
        file["hash"]
        for p in _lock()["package"]
        for file in (*p.get("wheels", []), p.get("sdist", {}))
        if file
    }
    assert set(re.findall(r"--hash=(sha256:[0-9a-f]+)", _requirements())) - known == set()


def test_the_lock_has_every_dependency_of_the_project():
    (own,) = (package for package in _lock()["package"] if package["name"] == "cortex-lake")
    required = {
        r["name"]: r.get("specifier", "") for r in own["metadata"]["requires-dist"] if "extra" not in str(r)
    }
    declared = dict(map(_split, PROJECT["project"]["dependencies"]))
    assert required == declared
    exported = set(re.findall(r"^([a-z0-9-]+)==", _requirements(), re.MULTILINE))
    development = {_split(d)[0] for d in PROJECT["dependency-groups"]["dev"]}
    assert (set(declared) | development) - exported == set()


def test_constraints_are_the_versions_of_the_lock_for_every_extra():
    locked: dict[str, set[str]] = {}
    for package in _lock()["package"]:
        locked.setdefault(package["name"], set()).add(package.get("version", ""))
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = [re.fullmatch(r"([a-z0-9-]+)==([^\s;]+)( ; .*)?", line).groups() for line in lines]
    assert [(n, v) for n, v, _ in pinned if v not in locked.get(n, ())] == []
    extras = PROJECT["project"]["optional-dependencies"].values()
    wanted = {_split(d)[0] for group in (PROJECT["project"]["dependencies"], *extras) for d in group}
    assert wanted - {name for name, _, _ in pinned} == set()


def test_the_build_backend_is_the_locked_one():
    (backend,) = (package for package in _lock()["package"] if package["name"] == "setuptools")
    assert PROJECT["build-system"]["requires"] == [f"setuptools=={backend['version']}"]


def _lock() -> dict:
    return tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))


def _requirements() -> str:
    return (ROOT / "requirements.txt").read_text(encoding="utf-8")


def _split(requirement: str) -> tuple[str, str]:
    name, bounds = re.fullmatch(r"([A-Za-z0-9-]+)(.*)", requirement).groups()
    return name, bounds
