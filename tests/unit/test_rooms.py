"""The house stays one that is read: a folder holds few modules, and a file name says which one is meant."""

from collections import defaultdict
from pathlib import Path

from tests.examples import cases

ROOT = Path(__file__).parents[2]
PACKAGES = ("cortex/cli", "cortex/mcp", "cortex/explorer", "flows", "storage", "transforms", "hooks")
MAX_MODULES = 20


def modules(package: str) -> list[Path]:
    """Return the modules of a package and of those below it, without `__init__`."""
    paths = [path for path in sorted((ROOT / package).rglob("*.py")) if path.name != "__init__.py"]
    assert paths, f"there is no module in {package}"
    return paths


@cases("package", PACKAGES)
def test_a_folder_holds_at_most_twenty_modules(package: str) -> None:
    by_folder: dict[str, int] = defaultdict(int)
    for path in modules(package):
        by_folder[path.parent.relative_to(ROOT).as_posix()] += 1
    assert {folder: count for folder, count in by_folder.items() if count > MAX_MODULES} == {}


@cases("package", PACKAGES)
def test_a_file_name_occurs_once_in_a_package(package: str) -> None:
    by_name: dict[str, list[str]] = defaultdict(list)
    for path in modules(package):
        by_name[path.name].append(path.parent.relative_to(ROOT).as_posix())
    assert {name: folders for name, folders in by_name.items() if len(folders) > 1} == {}
