"""Private sessions, by a switch or a word in the first prompt: hooks, runs and backfills leave them alone."""

from __future__ import annotations

import os
import re
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING or __package__:
    from cortex.hooks import ticket
    from cortex.hooks.evidence.lazy import lazy
    from cortex.hooks.prose import plain
else:
    import ticket
    from evidence.lazy import lazy
    from prose import plain

# In the environment of the client; "0" and nothing leave it off.
OFF_SWITCH = "CORTEX_OFF"
# In the first prompt, as a word of its own; its capitals do not matter. Part of a name it is not.
_WORD = lazy(r"(?<![\w#/&.-])#private(?![\w-]|[.(]\w)", re.IGNORECASE)
# Below staging: an empty file for each private session, named by it. The transcript itself tells nothing of
# the switch, and a sweep or a backfill would find it.
PRIVATE_FOLDER = "private"


def is_switched_off() -> bool:
    """Return whether the environment says that nothing of this session is to be kept."""
    return os.environ.get(OFF_SWITCH, "0") not in ("", "0")


def is_word_in(prompt: str) -> bool:
    """
    Return whether a prompt asks for a private session.

    Entities, wide letters and unseen signs hide the word from nobody: where in doubt, it is private.

    >>> is_word_in("＃Ｐrivate: what is this lump?"), is_word_in("make it a #private_field")
    (True, False)
    """
    return bool(_WORD.search(plain.as_it_reads(prompt)))


def is_private(staging: str, transcript: str) -> bool:
    """Return whether the session of a transcript, a subagent's too, was made private."""
    session, _ = ticket.owner_in_path(transcript)
    return bool(session) and os.path.exists(os.path.join(staging, PRIVATE_FOLDER, session))


def make_private(staging: str, transcript: str) -> None:
    """Leave this session alone from now on. Raises OSError."""
    session, _ = ticket.owner_in_path(transcript)
    if session:
        folder = os.path.join(staging, PRIVATE_FOLDER)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.close(os.open(os.path.join(folder, session), os.O_WRONLY | os.O_CREAT, 0o600))


# -- Excluded folders: what was said in them is left alone too.


def is_below(folder: str, above: tuple[str, ...]) -> bool:
    """Return whether `folder` is one of the folders `above` or lies in one, also by way of a link."""
    names = (folder, _resolved(folder)) if above else ()
    tops = {top.rstrip("/") for path in above for top in (path, _resolved(path))}
    if any(name == top or name.startswith(top + "/") for name in names for top in tops):
        return True
    # Where capitals do not matter, one folder goes by several names; so does one that is mounted twice.
    places = {place for place in map(_identity, above) if place}
    return bool(places) and any(_identity(place) in places for name in names[1:] for place in _up(name))


def is_named_after(folder: str, above: tuple[str, ...]) -> bool:
    """
    Return whether `folder`, where the client keeps transcripts, has the name of one `above` or in one.

    The client writes a hyphen for each other character, so `/home/ada/secret-2` is taken for `secret/2` too.
    """
    tops = {name.rstrip("/") for path in above for name in (path, _resolved(path))}
    starts = {"".join(c if c.isascii() and c.isalnum() else "-" for c in top) + "-" for top in tops}
    return any(f"{part}-".startswith(start) for part in folder.split("/") for start in starts)


def _up(folder: str) -> list[str]:
    parts = folder.split("/")
    return ["/".join(parts[: end + 1]) for end in range(1, len(parts))]


@lru_cache(maxsize=1024)
def _identity(folder: str) -> tuple[int, int] | None:
    try:
        status = os.stat(folder)
    except (OSError, ValueError):  # gone, or no path at all
        return None
    # Some mounts number no file; there all folders would be one.
    return (status.st_dev, status.st_ino) if status.st_ino else None


@lru_cache(maxsize=1024)  # asked for each record of a transcript
def _resolved(folder: str) -> str:
    try:
        return os.path.realpath(folder)
    except (OSError, ValueError):  # no path at all
        return folder
