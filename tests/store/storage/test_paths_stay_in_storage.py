"""Only storage knows where the store keeps what, and only three of its modules know LanceDB."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples import cases

ROOT = Path(__file__).parents[3]
FOLDERS = {
    "brief.md", "claimed", "config.toml", "engine", "events", "hook-index.sqlite", "hooks.log", "journal",
    "lake", "lease.lock", "manifest.json", "memory.duckdb", "new", "policy", "prefect", "published", "python",
    "rebuilding", "reports", "runs", "seen", "set_aside", "shown", "spending.sqlite", "staging", "tables",
    "tmp", "transcripts", "turns", "vectors",
}  # fmt: skip
# What changes or lists files, whatever it is called on.
CALLS = {
    "copy2", "copytree", "glob", "hardlink_to", "iterdir", "makedirs", "mkdir", "mkdtemp", "move",
    "removedirs", "rename", "rglob", "rmdir", "rmtree", "scandir", "symlink_to", "touch", "unlink", "walk",
    "write_bytes", "write_text",
}  # fmt: skip
# Calls of the same names that touch no file of the store.
OTHERS = {
    ("flows/engines/runs.py", "open"): "the null device",
    ("flows/operations/edit/remember.py", "glob"): "a person's code files by a pattern",
    ("flows/operations/edit/remember.py", "rglob"): "a person's code files in a folder",
    ("flows/operations/edit/remember.py", "open"): "a person's code file, to be read",
}
# Still to be moved.
LOOKS = {
    "cortex/cli/start/setup.py", "flows/operations/maintain/doctor.py",
    "flows/operations/maintain/status.py",
}  # fmt: skip


def modules(room: str) -> list[Path]:
    """Return the modules of a room, without those behind the links in `cortex/`."""
    paths = sorted((ROOT / room).rglob("*.py"))
    return [path for path in paths if path.resolve() == path]


def trespasses(source: str) -> Iterator[tuple[int, str]]:
    """Yield each line that names a place of the store or changes files, with the name in question."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.BinOp(op=ast.Div(), right=ast.Constant(value=str(name))):
                if name.split("/")[0] in FOLDERS:
                    yield node.lineno, name
            case ast.Call(func=ast.Attribute(attr="joinpath"), args=args):
                names = {arg.value for arg in args if isinstance(arg, ast.Constant)}
                yield from ((node.lineno, name) for name in names & FOLDERS)
            case ast.Call(func=ast.Attribute(attr=name), keywords=keywords) if name in CALLS:
                if name != "rename" or not keywords:  # the command of that name has some
                    yield node.lineno, name
            case (
                ast.Call(func=ast.Name(id="open"))
                | ast.Call(func=ast.Attribute(attr="open", value=ast.Name(id="os")))
            ):
                yield node.lineno, "open"


@pytest.mark.parametrize("room", ["flows", "cortex"])
def test_no_other_room_names_a_place_of_the_store_or_changes_files(room: str):
    assert [
        f"{name}:{line} {what}"
        for path in modules(room)
        for line, what in trespasses(path.read_text(encoding="utf-8"))
        if (name := path.relative_to(ROOT).as_posix()) not in LOOKS and (name, what) not in OTHERS
    ] == []


@cases(
    "line",
    [
        'home / "runs" / "reports"', 'home / "runs/manifest.json"', "shutil.rmtree(folder)",
        "path.rename(target)", "path.unlink()", 'open(path, "w")', 'home.joinpath("tables")',
        "folder.iterdir()", "path.write_bytes(b'')",
    ],
)  # fmt: skip
def test_the_test_would_see(line: str):
    assert list(trespasses(line))


def names(path: Path) -> Iterator[str]:
    """Yield what a module imports, and its strings but for those of several lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module)):
                yield module
            case ast.Constant(value=str(text)) if "\n" not in text.strip():
                yield text
