"""What erasing removes outside the lake and the tables: kept transcripts of what could not be read."""

from collections.abc import Callable, Collection
from pathlib import Path

from cortex.hooks import ticket
from cortex.storage.files import writing_to


def drop_set_aside(staging: Path, session_ids: Collection[str], holds: Callable[[str], bool]) -> int:
    """
    Remove set-aside tickets of the given sessions, or whose kept transcript `holds` what is forgotten.

    The kept transcript and the reason go with them. Transcripts that still wait are left: the run that
    reads them lets no forgotten turn in, and then drops them. Returns how many tickets went.
    """
    removed = 0
    with writing_to(staging.parent):
        for path in sorted((staging / ticket.SET_ASIDE).glob("*.json")):
            kept = Path(ticket.link_path(str(staging), ticket.key_in_name(path.name)))
            if _session_of(path) in session_ids or (kept.is_file() and holds(_text_of(kept))):
                kept.unlink(missing_ok=True)
                path.with_suffix(".reason").unlink(missing_ok=True)
                path.unlink(missing_ok=True)
                removed += 1
    return removed


def _session_of(path: Path) -> object:
    try:
        return ticket.parse(path.read_bytes()).get("session_id")
    except (OSError, ValueError):
        return None


def _text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")
