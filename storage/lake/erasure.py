"""What erasing removes outside the lake and the tables: kept transcripts of what could not be read."""

from collections.abc import Callable, Collection
from pathlib import Path

from cortex.hooks import ticket
from cortex.storage.ground.files import writing_to


def drop_quarantined(
    staging: Path,
    session_ids: Collection[str],
    holds: Callable[[str], bool],
    is_forgotten: Callable[[str], bool],
) -> int:
    """
    Remove set-aside tickets of the given sessions, of a folder that `is_forgotten`, or whose kept transcript
    `holds` what is forgotten.

    The kept transcript and the reason go with them. Transcripts that still wait are left: the run that
    reads them lets no forgotten turn in, and then drops them. Returns how many tickets went.
    """
    removed = 0
    with writing_to(staging.parent):
        for path in sorted((staging / ticket.QUARANTINED).glob("*.json")):
            kept = Path(ticket.link_path(str(staging), ticket.key_in_name(path.name)))
            session_id, cwd = _origin_of(path)
            is_meant = session_id in session_ids or (isinstance(cwd, str) and is_forgotten(cwd))
            if is_meant or (kept.is_file() and holds(_text_of(kept))):
                kept.unlink(missing_ok=True)
                path.with_suffix(".reason").unlink(missing_ok=True)
                path.unlink(missing_ok=True)
                removed += 1
    return removed


def _origin_of(path: Path) -> tuple[object, object]:
    """Return the session and the working directory that a ticket tells."""
    try:
        fields = ticket.parse(path.read_bytes())
    except (OSError, ValueError):
        return None, None
    return fields.get("session_id"), fields.get("cwd")


def _text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")
