"""A project's decisions in a file that its repository tracks: written on request."""

from dataclasses import dataclass
from pathlib import Path

from cortex.flows.context.context import Context
from cortex.flows.operations.lookup.targets import project_of
from cortex.hooks.prose.plain import on_one_line
from cortex.storage.ground.files import write_where_named, writing_to
from cortex.storage.ground.git import person_at
from cortex.transforms.documents.decisions_file import (
    decision_id,
    decision_line,
    with_decisions,
)
from cortex.transforms.documents.team_memory import Unusable, author_name, check_shareable
from cortex.transforms.errors import NotFound, UsageError
from cortex.transforms.memory.authors import authors_of
from cortex.transforms.schemas import Row

LARGEST_DECISIONS_BYTES = 4_000_000
_BELIEVED = ("user", "colleague")


@dataclass(frozen=True)
class WrittenDecisions:
    """A file of decisions: how many are in its list now, and those left out with the reason, by memory_id."""

    text: str
    decisions: int
    left_out: dict[str, str]


def write_decisions(
    context: Context, file: Path | None = None, *, project: str | None = None
) -> WrittenDecisions:
    """
    Add a project's active decisions to a file's list, take out those that no longer hold, return its text.

    Decisions are those that a person settled or a team reviewed. What others wrote into the file stays.
    Without a `file` nothing is written. Raises UsageError for what is no file of text.
    """
    store = context.open_store()
    scope = project_of(context, store, project)
    rows = store.tables.open(scope, "memories").read().to_pylist()
    decisions = [row for row in rows if row["memory_type"] == "decision" and row["trust"] in _BELIEVED]
    me = author_name(person_at(str(file.parent if file else context.folder))[0])
    lines: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for row in decisions:
        if row["status"] != "active":
            continue
        line = _line_of(row, me)
        try:
            check_shareable(line, context.policy)
        except Unusable as error:
            left_out[row["memory_id"]] = str(error)
        else:
            lines[decision_id(row["text"])] = line
    gone = {decision_id(row["text"]) for row in decisions if row["status"] == "superseded"} - lines.keys()
    text = with_decisions(_text_of(file) if file and file.exists() else "", lines, gone)
    if file is not None:
        with writing_to(file.parent):
            write_where_named(file, text.encode())
    return WrittenDecisions(text, len(lines), left_out)


def _line_of(row: Row, me: str) -> str:
    authors = authors_of(row) or ([me] if me else ["user"])
    words = (on_one_line(row[name] or "") for name in ("text", "reason", "rejected"))
    statement, reason, rejected = words
    day = f"{row['created_at']:%Y-%m-%d}"
    return decision_line(statement, day, ", ".join(authors), reason, rejected)


def _text_of(file: Path) -> str:
    try:
        if file.stat().st_size > LARGEST_DECISIONS_BYTES:
            raise UsageError(f"{file} is too large for a list of decisions.", "Name another file.")
        return file.read_bytes().decode("utf-8")
    except OSError as error:
        raise NotFound(f"{file} cannot be read: {error.strerror}.", "Check the path.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not text.", "Name another file.") from error
