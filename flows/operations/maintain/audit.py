"""The audit log of what programs did through tools: who, what, with which outcome, how long, at what cost."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from cortex.flows.context import Context
from cortex.hooks.shown import SHOWN_TRANSPORT
from cortex.storage.filesystem.files import write_atomically, writing_to
from cortex.transforms.errors import NotFound, UsageError
from cortex.transforms.identity import content_id
from cortex.transforms.schemas import CALLS, GLOBAL_SCOPE, Row

# Arguments that say how a tool is called, not what about.
SHOWN_ARGUMENTS = frozenset(("detail", "limit", "as_of", "type", "all", "everywhere", "plan"))
FORMATS = (".csv", ".jsonl", ".parquet")


@dataclass(frozen=True)
class CalledTool:
    """
    A call as it is noted.

    `server` names the process that served it and `number` the call in it: together they are its identity.
    `outcome` is `ok`, `asked` (a person has to answer first) or the code of an error; `usd` is what the
    answers of a language model cost that were asked for by this call.
    """

    server: str
    number: int
    caller: str
    transport: str
    tool: str
    arguments: Mapping[str, Any]
    called_at: datetime
    outcome: str
    seconds: float
    usd: float = 0.0


def note_call(context: Context, call: CalledTool) -> None:
    """Note a call in the audit log. Raises StoreNotWritable, KeyUnavailable."""
    store = context.open_store()
    project_id = store.projects.known(str(context.folder)) or GLOBAL_SCOPE
    store.calls.write(
        {
            "call_id": content_id("call", call.server, str(call.number)),
            "called_at": call.called_at,
            "project_id": project_id,
            "caller": _stored(call.caller[:200]),
            "transport": call.transport,
            "tool": _stored(call.tool[:80]),
            "arguments": json.dumps(redacted(call.arguments), ensure_ascii=False, sort_keys=True),
            "outcome": call.outcome,
            "seconds": round(call.seconds, 3),
            "usd": call.usd,
        }
    )


def redacted(arguments: Mapping[str, Any]) -> dict[str, object]:
    """
    Return arguments without words: of a text its length, of a list how many; what says how stays.

    >>> redacted({"question": "which port?", "limit": 5})
    {'question': '11 characters', 'limit': 5}
    """
    return {_stored(name[:40]): _redacted(name, value) for name, value in list(arguments.items())[:20]}


def _redacted(name: str, value: Any) -> object:
    if isinstance(value, bool | int | float | None):
        return value
    if isinstance(value, str):
        return _stored(value[:40]) if name in SHOWN_ARGUMENTS else f"{len(value)} characters"
    return f"{len(value)} items" if isinstance(value, list | dict) else type(value).__name__


def _stored(text: str) -> str:
    """Return what a client sent as text that can be written: half a character of UTF-16 cannot."""
    return text.encode("utf-8", "replace").decode()


def read_calls(
    context: Context,
    *,
    tool: str | None = None,
    failed: bool = False,
    days: int | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> list[Row]:
    """
    Return CALLS, the newest first: of a tool, those that failed, of the last days, in a period.

    What a session was shown is not among them: nobody called a tool.
    """
    rows = context.open_store().calls.read().filter(pc.field("transport") != SHOWN_TRANSPORT)
    if tool is not None:
        rows = rows.filter(pc.field("tool") == tool)
    if failed:
        rows = rows.filter(~pc.field("outcome").isin(["ok", "asked"]))
    if days is not None:
        rows = rows.filter(pc.field("called_at") >= context.now - timedelta(days=days))
    if since is not None:
        rows = rows.filter(pc.field("called_at") >= since)
    if until is not None:
        rows = rows.filter(pc.field("called_at") < until)
    return list(reversed(rows.to_pylist()))


def export_calls(rows: Sequence[Row], file: Path) -> int:
    """
    Write calls to a file, .csv, .jsonl or .parquet; return how many.

    Raises UsageError for another ending, NotFound without its folder, StoreNotWritable.
    """
    if file.suffix not in FORMATS:
        raise UsageError(f"'{file.name}' has none of the endings {', '.join(FORMATS)}.", "Give it one.")
    if not file.parent.is_dir():
        raise NotFound(f"there is no folder {file.parent}.", "Create it, or name another file.")
    content = _parquet(rows) if file.suffix == ".parquet" else _text(rows, file.suffix).encode()
    with writing_to(file.parent):
        write_atomically(file, content)
    return len(rows)


def _parquet(rows: Sequence[Row]) -> bytes:
    import pyarrow.parquet as pq  # here: looking at the log does not need it

    content = io.BytesIO()
    pq.write_table(CALLS.of(list(rows)), content, compression="zstd")
    return content.getvalue()


def _text(rows: Sequence[Row], suffix: str) -> str:
    plain = [{**row, "called_at": row["called_at"].isoformat()} for row in rows]
    text = io.StringIO()
    if suffix == ".csv":
        writer = csv.DictWriter(text, CALLS.arrow.names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(plain)
    else:
        text.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in plain)
    return text.getvalue()
