"""The brief in files of the user's projects, and what takes it out again: `runs/surfaces.json`."""

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from cortex.storage.filesystem.files import replacing, write_stored, writing_to
from cortex.transforms.documents.marker_block import (
    IGNORE_FILE,
    MARKDOWN,
    Marks,
    Undo,
    Unplaceable,
    pattern_of,
    put,
    take,
)
from cortex.transforms.errors import FileDamaged

# Below the home.
SURFACES_PATH = "runs/surfaces.json"

# Beside the file while it is written. Always the same name: what a kill leaves, the next write replaces.
PART_ENDING = ".cortex-part"


@dataclass(frozen=True)
class Shown:
    """A file that shows a brief: its project's folder, git's list that leaves it out, and by which line."""

    root: str
    exclude: str | None
    pattern: str


@dataclass(frozen=True)
class Block:
    """A block of ours in a file: what takes it out, whether the file was made for it, and which folders."""

    undo: Undo
    is_made: bool
    folders: tuple[str, ...]


class Surfaces:
    """The files that show a brief. Only under the lease."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._path = home / SURFACES_PATH
        self._shown: dict[str, Shown] = {}
        self._blocks: dict[str, Block] = {}
        if self._path.is_file():
            self._load(self._path.read_bytes())

    def files(self) -> dict[Path, Path]:
        """Return file → the folder of its project."""
        return {Path(file): Path(shown.root) for file, shown in self._shown.items()}

    def show(self, root: Path, name: str, text: str) -> Path:
        """
        Put `text` into the file `name` of the project at `root` and return its path; all else there stays.

        What takes it out is written down first. A file that has to be made is kept out of git. Raises
        Unplaceable, OSError and StoreNotWritable; the file is then as it was.
        """
        path = root / name
        if not path.resolve().is_relative_to(root.resolve()):
            raise Unplaceable("a link leads out of the project")
        put(_content(path), text, MARKDOWN)  # what cannot be done is known before anything is written
        known = self._shown.get(str(path))
        exclude = known.exclude if known else _exclude_of(root) if not path.exists() else None
        self._shown[str(path)] = Shown(str(root), exclude, pattern_of(name))
        self._put(path, text, MARKDOWN)
        self._leave_out_of_git(exclude)
        return path

    def withdraw(self, path: Path) -> None:
        """Take our block out of the file, and the file where it was made for it. Raises as `show`."""
        self._take(path, MARKDOWN)
        shown = self._shown.pop(str(path))
        self._leave_out_of_git(shown.exclude)
        self._save()

    def _leave_out_of_git(self, exclude: str | None) -> None:
        if exclude is None:
            return
        patterns = sorted({shown.pattern for shown in self._shown.values() if shown.exclude == exclude})
        if patterns:
            self._put(Path(exclude), "\n".join(patterns), IGNORE_FILE)
        elif exclude in self._blocks:
            self._take(Path(exclude), IGNORE_FILE)

    def _put(self, path: Path, text: str, marks: Marks) -> None:
        content, known = _content(path), self._blocks.get(str(path))
        changed, undo = put(content, text, marks, known.undo if known else None)
        missing = tuple(str(folder) for folder in reversed(path.parents) if not folder.exists())
        block = Block(undo, not path.exists(), missing)
        self._blocks[str(path)] = replace(known, undo=undo) if known else block
        self._save()
        if changed != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            _replace(path, changed)

    def _take(self, path: Path, marks: Marks) -> None:
        block = self._blocks[str(path)]
        if path.is_file():
            content = path.read_bytes()
            left = take(content, marks, block.undo)
            if block.is_made and not left:
                path.unlink()
            elif left != content:
                _replace(path, left)
        for folder in reversed(block.folders):
            with suppress(OSError):  # gone already, or the user keeps something there
                Path(folder).rmdir()
        del self._blocks[str(path)]

    def _load(self, raw: bytes) -> None:
        """Read the note. Raises FileDamaged: without it nobody knows what to take out of the user's files."""
        try:
            note = json.loads(raw)
            self._shown = {file: Shown(**fields) for file, fields in note["shown"].items()}
            self._blocks = {
                file: Block(_undo(**fields["undo"]), fields["is_made"], tuple(fields["folders"]))
                for file, fields in note["blocks"].items()
            }
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise FileDamaged(
                f"{self._path}, which says what is ours in files of your projects, cannot be read.",
                "Restore it, or take the parts between the CORTEX marks out of these files yourself and "
                "remove it; the next run writes it again.",
            ) from error

    def _save(self) -> None:
        shown = {file: asdict(shown_at) for file, shown_at in self._shown.items()}
        blocks = {file: _as_dict(block) for file, block in self._blocks.items()}
        content = json.dumps({"shown": shown, "blocks": blocks}, indent=1, sort_keys=True).encode()
        with writing_to(self._home):
            if self._path.is_file() and self._path.read_bytes() == content:
                return
            write_stored(self._home, self._path, content)


def roots_of(folders: Iterable[str]) -> list[Path]:
    """
    Return the folders that stand for a project's `folders`: the working tree around each, else itself.

    Those that are gone are left out, and so are `/` and the user's home, which are not projects.
    """
    roots: dict[Path, None] = {}
    for folder in map(Path, folders):
        with suppress(PermissionError):  # a folder that was shut since stops no run
            tree = next((here for here in (folder, *folder.parents) if (here / ".git").exists()), folder)
            if folder.is_dir() and tree not in (Path.home(), Path(tree.anchor)):
                roots[tree] = None
    return sorted(roots)


def _exclude_of(root: Path) -> str | None:
    """Return git's own list of what to leave out, which all worktrees share; None outside of git."""
    mark = root / ".git"
    if mark.is_dir():
        return str(mark / "info" / "exclude")
    if not mark.is_file():
        return None
    try:
        folder = (root / mark.read_text(encoding="utf-8").partition("gitdir: ")[2].strip()).resolve()
        common = folder / "commondir"
        folder = (
            (folder / common.read_text(encoding="utf-8").strip()).resolve() if common.is_file() else folder
        )
    except (OSError, UnicodeDecodeError):
        return None
    return str(folder / "info" / "exclude") if (folder / "HEAD").is_file() else None


def _content(path: Path) -> bytes:
    if path.exists() and not path.is_file():  # reading a pipe would never end
        raise Unplaceable("it is not a regular file")
    return path.read_bytes() if path.exists() else b""


def _replace(path: Path, content: bytes) -> None:
    """Replace the file, or what a link at `path` names, in one step; its mode stays."""
    path = path.resolve()
    with replacing(path, path.with_name(f".{path.name}{PART_ENDING}")) as part:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644)
        with os.fdopen(descriptor, "wb") as file:
            if path.exists():
                os.fchmod(file.fileno(), path.stat().st_mode & 0o7777)
            file.write(content)


def _as_dict(block: Block) -> dict[str, object]:
    # Latin-1 gives each byte a character, so that any bytes go through JSON and back.
    inner = None if block.undo.inner is None else block.undo.inner.decode("latin-1")
    undo = {"inner": inner, "glue": block.undo.glue.decode("latin-1")}
    return {"undo": undo, "is_made": block.is_made, "folders": list(block.folders)}


def _undo(inner: str | None, glue: str) -> Undo:
    return Undo(None if inner is None else inner.encode("latin-1"), glue.encode("latin-1"))
