"""The folders in which Claude Code keeps notes for itself, one next to each project's transcripts."""

import os
from collections.abc import Iterator
from pathlib import Path

from cortex.hooks import ticket
from cortex.transforms.errors import NotFound

_FOLDER = "memory"
# The program's own index is cut at 25 KB; a folder of a year has some dozens of notes.
MAX_NOTE_BYTES = 64 * 1024
_MAX_NOTES = 1_000


def notes_below(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """
    Yield (name of the transcripts' folder, text by file name) for the notes at `path`.

    `path` is a folder of notes, the folder of a project's transcripts, or the one with all of these. What is
    no regular file of this user, or longer than MAX_NOTE_BYTES, is passed over. Raises NotFound if there
    are none.
    """
    folders = [path] if path.name == _FOLDER else [path / _FOLDER]
    if not folders[0].is_dir():
        folders = sorted(folder for folder in path.glob(f"*/{_FOLDER}") if folder.is_dir())
    texts = [(folder.absolute().parent.name, _texts_in(folder)) for folder in folders]
    if not any(files for _, files in texts):
        raise NotFound(f"there are no notes in {path}.", "They are in ~/.claude/projects/*/memory/*.md")
    yield from ((name, files) for name, files in texts if files)


def _texts_in(folder: Path) -> dict[str, str]:
    texts = {}
    for file in sorted(folder.glob("*.md"))[:_MAX_NOTES]:
        try:
            with os.fdopen(ticket.open_regular(os.fspath(file)), "rb") as opened:
                raw = opened.read(MAX_NOTE_BYTES + 1)
        except OSError:
            continue
        if len(raw) <= MAX_NOTE_BYTES:
            texts[file.name] = raw.decode("utf-8", "replace")
    return texts
