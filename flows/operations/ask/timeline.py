"""Sessions and decisions over time: a strip of months or days, and the sessions of the stretch looked at."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.context.context import Context
from cortex.storage.published.catalogue import GLOBAL_LABEL
from cortex.transforms.errors import UsageError
from cortex.transforms.schemas import GLOBAL_SCOPE, Row

_PERIOD = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")
# Length of an instant as text: year, month, day.
_LENGTHS = {0: 7, 4: 7, 7: 10, 10: 10}


@dataclass(frozen=True)
class TimelineStretch:
    """One month (`2026-09`) or day (`2026-09-14`) of a strip: sessions that ended, decisions made."""

    period: str
    sessions: int
    decisions: int


@dataclass(frozen=True)
class Timeline:
    """
    A strip of stretches in time order, and a page of the sessions in it, the newest first.

    `total` counts the sessions of all pages, `labels` are names of projects by id.
    """

    strip: Sequence[TimelineStretch]
    sessions: Sequence[Row]
    total: int
    labels: Mapping[str, str]


def read_timeline(
    context: Context, *, project: str = "", period: str = "", offset: int = 0, limit: int = 25
) -> Timeline:
    """
    Return what happened in a year (`2026`), a month or a day, "" for all time, of one project or of all.

    A strip of all time or of a year is in months, that of a month in days. Raises UsageError for another
    period, NotFound for an empty store.
    """
    if period and not _is_period(period):
        raise UsageError(f"Not a year, month or day: '{period}'.", "Use 2026, 2026-09 or 2026-09-14.")
    catalogue = context.open_catalogue()
    projects = catalogue.projects()
    labels = {GLOBAL_SCOPE: GLOBAL_LABEL, **{row["project_id"]: row["label"] for row in projects}}
    sessions = _within(catalogue.read_table("sessions"), "ended_at", project, period)
    columns = ["project_id", "memory_type", "created_at", "status"]
    memories = _within(catalogue.read_table("memories", columns), "created_at", project, period)
    decisions = memories.filter((pc.field("memory_type") == "decision") & (pc.field("status") == "active"))
    counts = [_by_stretch(sessions["ended_at"], period), _by_stretch(decisions["created_at"], period)]
    names = sorted({*counts[0], *counts[1]})
    strip = [TimelineStretch(name, counts[0].get(name, 0), counts[1].get(name, 0)) for name in _filled(names)]
    newest = sessions.sort_by([("ended_at", "descending"), ("session_id", "ascending")])
    return Timeline(strip, newest.slice(offset, limit).to_pylist(), sessions.num_rows, labels)


def _is_period(text: str) -> bool:
    if not _PERIOD.fullmatch(text):
        return False
    try:
        datetime.strptime(f"{text}-01-01"[:10], "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return False
    return True


def _within(rows: pa.Table, instant: str, project: str, period: str) -> pa.Table:
    rows = rows.filter(pc.is_valid(rows[instant]))
    if project:
        rows = rows.filter(pc.equal(rows["project_id"], pa.scalar(project)))
    if not period:
        return rows
    is_within: Any = pc.starts_with(_texts(rows[instant], 10), period)
    return rows.filter(is_within)


def _by_stretch(instants: Any, period: str) -> dict[str, int]:
    texts = _texts(instants, _LENGTHS[len(period)]).to_pylist()
    return {name: texts.count(name) for name in set(texts) if name}


def _texts(instants: Any, length: int) -> Any:
    """Return instants as text up to the day, or to the month for 7 characters."""
    form = "%Y-%m-%d" if length == 10 else "%Y-%m"
    return pc.strftime(instants, format=form)


def _filled(names: Sequence[str]) -> list[str]:
    """Return stretches with the months or days between them, so that a strip shows pauses as such."""
    if not names:
        return []
    filled = [names[0]]
    while filled[-1] < names[-1]:
        filled.append(_next(filled[-1]))
    return filled


def _next(name: str) -> str:
    year, month, *day = (int(part) for part in name.split("-"))
    if day and (following := _day_after(year, month, day[0])):
        return following
    return f"{year + month // 12:04}-{month % 12 + 1:02}" + ("-01" if day else "")


def _day_after(year: int, month: int, day: int) -> str:
    try:
        return f"{datetime(year, month, day + 1, tzinfo=UTC):%Y-%m-%d}"
    except ValueError:  # the month is over
        return ""
