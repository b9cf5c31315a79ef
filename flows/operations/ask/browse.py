"""Memories as a person looks through them: by a question or without one, with facets and pages."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.context.context import Context
from cortex.flows.operations.ask.recall import search_only
from cortex.flows.recalling.facets import (
    PLAIN,
    Columns,
    Facet,
    both,
    branches_of,
    facets_of,
    first_places,
    items_of,
    places_of,
    rows_with,
)
from cortex.flows.recalling.recall_results import RecallResult
from cortex.storage.published.catalogue import GLOBAL_LABEL
from cortex.transforms.errors import UsageError
from cortex.transforms.schemas import GLOBAL_SCOPE, MEMORIES, MEMORY_TYPES, STATUSES, TRUSTS, UTC_US, Row

# What a question may bring in: facets count over all of it.
MOST_MATCHES = 100
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

    Nothing is noted as recalled. A question brings in at most MOST_MATCHES answers. Raises NotFound for an
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
        places = first_places(rows, places, offset + limit, updated_at="descending", memory_id="ascending")
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
    least = first_places(rows, fading, limit, confidence="ascending", memory_id="ascending")
    return [{"kind": "memory", **row} for row in rows.take(least).to_pylist()]


def _answers(context: Context, filters: Filters) -> list[RecallResult]:
    scope = filters.project if filters.project and filters.project != GLOBAL_SCOPE else None
    return search_only(
        context, filters.question, project=scope, all_projects=scope is None, limit=MOST_MATCHES
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
