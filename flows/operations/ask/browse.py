"""Memories as a person looks through them: by a question, with facets and pages, or over time."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.context import Context
from cortex.flows.operations.ask.recall import search_only
from cortex.flows.recalling.recall_search import RecallResult
from cortex.storage.published.catalogue import GLOBAL_LABEL
from cortex.transforms.errors import UsageError
from cortex.transforms.schemas import GLOBAL_SCOPE, MEMORIES, MEMORY_TYPES, STATUSES, TRUSTS, UTC_US
from cortex.transforms.vocabulary import Row

# -- Which values the memories of a search have, and how many of them: what a person narrows a search by.

# A column, whole or in chunks; pyarrow's stubs know neither lists nor records.
Columns: TypeAlias = Any

# Values that one facet lists: the most frequent ones, of months the newest.
FACET_VALUES = 12

# Facet → the column it counts; those of the others are put together from a column.
PLAIN = {"project": "project_id", "type": "memory_type", "status": "status", "trust": "trust"}


@dataclass(frozen=True)
class FacetValue:
    """One value of a facet: how it is written in a filter, how people read it, how many have it."""

    value: str
    label: str
    count: int
    is_chosen: bool


@dataclass(frozen=True)
class Facet:
    """The most frequent values of one property, counted under all other filters."""

    name: str
    values: Sequence[FacetValue]


def facets_of(
    rows: pa.Table, masks: Mapping[str, Columns], chosen: Mapping[str, str], labels: Mapping[str, str]
) -> Iterable[Facet]:
    """
    Yield the facets of MEMORIES that have values: project, type, status, trust, month, file and branch.

    `masks` says by filter which rows pass it, `chosen` the value of each filter that is set, `labels` how
    projects are called. A facet's own filter does not count in it, so that its other values can be chosen.
    """
    for name in (*PLAIN, "month", "file", "branch"):
        passing = both([mask for other, mask in masks.items() if other != name], rows.num_rows)
        counts = _COUNTED[name](rows, passing) if name in _COUNTED else _plain_counts(rows, name, passing)
        values = _values(counts, chosen.get(name, ""), labels if name == "project" else {}, name == "month")
        if values:
            yield Facet(name, values)


def both(masks: Collection[Columns], count: int) -> Columns:
    """Return which of `count` rows pass all masks."""
    return reduce(pc.and_, masks) if masks else pa.array(np.ones(count, np.bool_))


def places_of(mask: Columns) -> Columns:
    """Return the numbers of the rows that a mask lets pass."""
    return pa.array(np.flatnonzero(np.asarray(mask)), pa.int64())


def top_positions(rows: pa.Table, places: Columns, count: int, **order: str) -> Columns:
    """Return the first `count` of some rows in an order: column → ascending or descending."""
    select: Any = pc.select_k_unstable
    keys = pa.table({name: rows[name].take(places) for name in order})
    return places.take(select(keys, min(count, keys.num_rows), list(order.items())))


def branches_of(rows: pa.Table) -> tuple[Columns, Columns]:
    """Return the branches in all evidence of some rows, and the number of the row that each belongs to."""
    evidence = _joined(rows["evidence"])
    places = evidence.flatten()
    branches = places.field("git_branch") if len(places) else pa.array([], pa.string())
    return branches, pc.list_parent_indices(evidence)


def items_of(rows: pa.Table, column: str) -> tuple[Columns, Columns]:
    """Return the items in a column of lists, and the number of the row that each belongs to."""
    lists = _joined(rows[column])
    return lists.flatten(), pc.list_parent_indices(lists)


def rows_with(items: tuple[Columns, Columns], is_meant: Columns, count: int) -> Columns:
    """Return which of `count` rows have one of the items that are meant."""
    mask = np.zeros(count, np.bool_)
    parents: Columns = items[1].filter(pc.fill_null(is_meant, False))
    mask[parents.to_numpy()] = True
    return pa.array(mask)


def _joined(column: Columns) -> Columns:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _plain_counts(rows: pa.Table, name: str, passing: Columns) -> list[Row]:
    return _counts(rows[PLAIN[name]].filter(passing))


def _month_counts(rows: pa.Table, passing: Columns) -> list[Row]:
    instants: Columns = pc.drop_null(rows["updated_at"].filter(passing))
    counts = _counts(pc.floor_temporal(instants, unit="month"))
    return [{**row, "values": f"{row['values']:%Y-%m}"} for row in counts]


def _file_counts(rows: pa.Table, passing: Columns) -> list[Row]:
    return _item_counts(items_of(rows, "files"), passing)


def _branch_counts(rows: pa.Table, passing: Columns) -> list[Row]:
    return _item_counts(branches_of(rows), passing)


def _item_counts(items: tuple[Columns, Columns], passing: Columns) -> list[Row]:
    """Count rows and not items: a memory said on one branch three times is one memory of it."""
    values, parents = items
    pairs = pa.table({"values": values, "row": parents}).filter(_joined(passing).take(parents))
    counted = pairs.group_by("values").aggregate([("row", "count_distinct")])
    return [{"values": r["values"], "counts": r["row_count_distinct"]} for r in counted.to_pylist()]


_COUNTED = {"month": _month_counts, "file": _file_counts, "branch": _branch_counts}


def _counts(column: Columns) -> list[Row]:
    counted: Columns = pc.value_counts(column)
    return list(counted.to_pylist())


def _values(
    counts: Sequence[Row], chosen: str, labels: Mapping[str, str], newest_first: bool
) -> list[FacetValue]:
    pairs = sorted((row["values"], row["counts"]) for row in counts if row["values"])
    pairs.sort(key=lambda pair: pair[0] if newest_first else pair[1], reverse=True)
    shown = pairs[:FACET_VALUES]
    shown += [pair for pair in pairs[FACET_VALUES:] if pair[0] == chosen]
    return [FacetValue(value, labels.get(value, value), n, value == chosen) for value, n in shown]


# What a question may bring in: facets count over all of it.
MAX_MATCHES = 100
# Said in a session and kept as it was said: it is found by a question, and is no memory.
TURN = "turn"

_COLUMNS = [
    *("memory_id", "project_id", "memory_type", "status", "trust", "text", "confidence", "is_pinned"),
    *("created_at", "updated_at", "session_count", "files", "evidence"),
]
_ROWS = pa.schema(
    [
        *(MEMORIES.arrow.field(name).with_nullable(True) for name in _COLUMNS),
        pa.field("kind", pa.string()),
        # Of what stands near an answer in its session: the id of that answer.
        pa.field("nearby_of", pa.string()),
    ]
)


@dataclass(frozen=True)
class Filters:
    """
    Which memories are meant; "" means any.

    `since` and `until` are days, `2026-09-14`, both included, of when a memory was said last, and `month` is
    the month of that, `2026-09`. `file` is part of a path, `branch` a whole name. Raises UsageError for what
    is not such a day or value.
    """

    question: str = ""
    project: str = ""
    type: str = ""
    status: str = ""
    trust: str = ""
    since: str = ""
    until: str = ""
    month: str = ""
    file: str = ""
    branch: str = ""

    def __post_init__(self) -> None:
        for name, allowed in (("type", (*MEMORY_TYPES, TURN)), ("status", STATUSES), ("trust", TRUSTS)):
            value = getattr(self, name)
            if value and value not in allowed:
                raise UsageError(f"'{value}' is not a {name}.", f"Use one of {', '.join(allowed)}.")
        for name in ("since", "until"):
            _day(getattr(self, name))
        _month(self.month)

    @property
    def chosen(self) -> dict[str, str]:
        """Return the filters that are set, by name."""
        return {each.name: getattr(self, each.name) for each in fields(self) if getattr(self, each.name)}


@dataclass(frozen=True)
class Browsed:
    """One page of rows; `total` counts those of all pages, `labels` are names of projects by id."""

    rows: Sequence[Row]
    total: int
    facets: Sequence[Facet]
    labels: Mapping[str, str]
    filters: Filters = field(default_factory=Filters)


def browse(context: Context, filters: Filters, *, offset: int = 0, limit: int = 25) -> Browsed:
    """
    Return a page of the memories that pass the filters: with a question the best first, else the newest.

    Nothing is noted as recalled. A question brings in at most MAX_MATCHES answers. Raises NotFound for an
    empty store.
    """
    catalogue = context.open_catalogue()
    projects = catalogue.projects()
    labels = {GLOBAL_SCOPE: GLOBAL_LABEL, **{row["project_id"]: row["label"] for row in projects}}
    memories = catalogue.read_table("memories", _COLUMNS)
    answers = _answers(context, filters) if filters.question else []
    rows = _matching(answers, memories) if filters.question else memories
    masks = _masks(rows, filters)
    facets = list(facets_of(rows, masks, filters.chosen, labels))
    is_kept = both(list(masks.values()), rows.num_rows)
    places = places_of(is_kept)
    total = int(pc.sum(is_kept).as_py() or 0)
    if filters.question:
        places = _folded(rows, places)
        total = len(places)
    else:
        places = top_positions(rows, places, offset + limit, updated_at="descending", memory_id="ascending")
    shown = rows.take(places[offset : offset + limit]).to_pylist()
    more = {match.id: _more_of(match) for match in answers}
    listed = [{"kind": "memory", **row, **more.get(row["memory_id"], {})} for row in shown]
    return Browsed(listed, total, facets, labels, filters)


def weakest(context: Context, project_id: str, *, limit: int) -> list[Row]:
    """Return the active memories of a project that are the least sure and fade, the least sure first."""
    rows = context.open_catalogue().read_table("memories", _COLUMNS)
    masks: list[Columns] = [
        pc.equal(rows["project_id"], pa.scalar(project_id)),
        pc.equal(rows["status"], pa.scalar("active")),
        pc.invert(rows["is_pinned"]),
    ]
    fading = places_of(both(masks, rows.num_rows))
    least = top_positions(rows, fading, limit, confidence="ascending", memory_id="ascending")
    return [{"kind": "memory", **row} for row in rows.take(least).to_pylist()]


def _answers(context: Context, filters: Filters) -> list[RecallResult]:
    scope = filters.project if filters.project and filters.project != GLOBAL_SCOPE else None
    return search_only(
        context, filters.question, project=scope, all_projects=scope is None, limit=MAX_MATCHES
    )


def _more_of(match: RecallResult) -> Row:
    """Return what recall says of an answer beyond the answer itself."""
    return {
        "statement": match.statement,
        "why": match.why,
        "rejected": match.rejected,
        "replaces": [{"id": old.memory_id, "text": old.text} for old in match.replaces],
        "nearby": [
            {"id": near.id, "kind": near.kind, "statement": near.statement, "is_earlier": near.is_earlier}
            for near in match.nearby
        ],
    }


def _folded(rows: pa.Table, places: Columns) -> Columns:
    """Return the places of rows without those that stand below an answer which is shown itself."""
    kept = rows.take(places)
    shown = set(kept["memory_id"].to_pylist())
    return pa.array(
        [
            place
            for place, near in zip(places.to_pylist(), kept["nearby_of"].to_pylist(), strict=True)
            if near is None or near not in shown
        ],
        pa.int64(),
    )


def _matching(matches: Sequence[RecallResult], memories: pa.Table) -> pa.Table:
    """
    Return answers, best first: rows of memories, and of turns with what they have.

    A memory near an answer follows it as a row of its own: a filter may keep it and not the answer.
    """
    ids = pa.array([name for match in matches for name in match.memory_ids], pa.string())
    known = {r["memory_id"]: r for r in memories.filter(pc.is_in(memories["memory_id"], ids)).to_pylist()}
    rows: list[Row] = []
    for match in matches:
        rows += _rows_of(match, known)
    return pa.Table.from_pylist(rows, schema=_ROWS)


def _rows_of(match: RecallResult, known: Mapping[str, Row]) -> Iterator[Row]:
    if match.kind != "memory":
        yield _turn_row(match)
    elif match.id in known:  # else a run is just replacing what is published
        yield {**known[match.id], "kind": "memory"}
    for near in match.nearby:
        if near.kind == "memory" and near.id in known:
            yield {**known[near.id], "kind": "memory", "nearby_of": match.id}


def _turn_row(match: RecallResult) -> Row:
    places = [
        {"turn_id": "", "session_id": e.session_id, "file": e.file, "lines": list(e.lines), "layer": ""}
        for e in match.evidence
    ]
    return {
        "memory_id": match.id,
        "project_id": match.project_id,
        "memory_type": TURN,
        "status": "active",
        "trust": match.trust,
        "text": match.text,
        "is_pinned": False,
        "created_at": match.created_at,
        "updated_at": match.created_at,
        "files": [],
        "evidence": places,
        "kind": TURN,
    }


def _masks(rows: pa.Table, filters: Filters) -> dict[str, Columns]:
    """Return filter → which rows pass it, for the filters that are set."""
    masks: dict[str, Columns] = {}
    for name, column in PLAIN.items():
        if value := getattr(filters, name):
            masks[name] = pc.equal(rows[column], pa.scalar(value))
    # What no longer counts is shown where it is asked for; a question leaves out by itself what is hidden.
    if not filters.status and not filters.question:
        masks["status"] = pc.equal(rows["status"], pa.scalar("active"))
    if filters.since:
        masks["since"] = _is_from(rows, _day(filters.since))
    if filters.until:
        masks["until"] = _is_before(rows, _day(filters.until) + timedelta(days=1))
    if filters.month:
        first, after = _month(filters.month)
        masks["month"] = pc.and_(_is_from(rows, first), _is_before(rows, after))
    if filters.file:
        files = items_of(rows, "files")
        is_part: Columns = pc.match_substring(files[0], filters.file, ignore_case=True)
        masks["file"] = rows_with(files, is_part, rows.num_rows)
    if filters.branch:
        branches = branches_of(rows)
        is_named: Columns = pc.equal(branches[0], pa.scalar(filters.branch, pa.string()))
        masks["branch"] = rows_with(branches, is_named, rows.num_rows)
    return {name: pc.fill_null(mask, False) for name, mask in masks.items()}


def _is_from(rows: pa.Table, at: datetime) -> Columns:
    return pc.greater_equal(rows["updated_at"], pa.scalar(at, UTC_US))


def _is_before(rows: pa.Table, at: datetime) -> Columns:
    return pc.less(rows["updated_at"], pa.scalar(at, UTC_US))


def _day(text: str) -> datetime:
    try:
        return datetime.strptime(text or "1970-01-01", "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError as error:
        raise UsageError(f"Not a date: '{text}'.", "Use YYYY-MM-DD: 2026-09-14") from error


def _month(text: str) -> tuple[datetime, datetime]:
    """Return the first instant of a month, and of the one after it."""
    try:
        first = datetime.strptime(text or "1970-01", "%Y-%m").replace(tzinfo=UTC)
        return first, (first + timedelta(days=31)).replace(day=1)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"Not a month: '{text}'.", "Use YYYY-MM: 2026-09") from error


# -- Sessions and decisions over time: a strip of months or days, and the sessions of the chosen period.

_PERIOD = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")
# Length of an instant as text: year, month, day.
_LENGTHS = {0: 7, 4: 7, 7: 10, 10: 10}


@dataclass(frozen=True)
class TimelinePeriod:
    """One month (`2026-09`) or day (`2026-09-14`) of a strip: sessions that ended, decisions made."""

    period: str
    sessions: int
    decisions: int


@dataclass(frozen=True)
class Timeline:
    """
    A strip of periods in time order, and a page of the sessions in it, the newest first.

    `total` counts the sessions of all pages, `labels` are names of projects by id.
    """

    strip: Sequence[TimelinePeriod]
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
    counts = [
        _counts_by_period(sessions["ended_at"], period),
        _counts_by_period(decisions["created_at"], period),
    ]
    names = sorted({*counts[0], *counts[1]})
    strip = [TimelinePeriod(name, counts[0].get(name, 0), counts[1].get(name, 0)) for name in _filled(names)]
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


def _counts_by_period(instants: Any, period: str) -> dict[str, int]:
    texts = _texts(instants, _LENGTHS[len(period)]).to_pylist()
    return {name: texts.count(name) for name in set(texts) if name}


def _texts(instants: Any, length: int) -> Any:
    """Return instants as text up to the day, or to the month for 7 characters."""
    form = "%Y-%m-%d" if length == 10 else "%Y-%m"
    return pc.strftime(instants, format=form)


def _filled(names: Sequence[str]) -> list[str]:
    """Return the periods with the months or days between them, so that gaps show in the strip."""
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
