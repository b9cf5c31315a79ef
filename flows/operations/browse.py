"""Memories as a person looks through them: by a question or without one, with facets and pages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.context import Context
from cortex.flows.operations.recall import search_only
from cortex.storage.catalogue import GLOBAL_LABEL
from cortex.transforms.errors import UsageError
from cortex.transforms.schemas import GLOBAL_SCOPE, MEMORIES, MEMORY_TYPES, STATUSES, TRUSTS, UTC_US, Row

# A column, whole or in chunks; pyarrow's stubs know neither lists nor records.
Columns: TypeAlias = Any

# What a question may bring in: facets count over all of it.
MOST_MATCHES = 100
# Values that one facet lists, the most frequent ones.
FACET_VALUES = 12
# Said in a session and kept as it was said: it is found by a question, and is no memory.
TURN = "turn"

_COLUMNS = [
    *("memory_id", "project_id", "memory_type", "status", "trust", "text", "confidence", "is_pinned"),
    *("created_at", "updated_at", "session_count", "files", "evidence"),
]
_ROWS = pa.schema(
    [*(MEMORIES.arrow.field(name).with_nullable(True) for name in _COLUMNS), pa.field("kind", pa.string())]
)


@dataclass(frozen=True)
class Filters:
    """
    Which memories are meant; "" means any.

    `since` and `until` are days, `2026-09-14`, both included, of when a memory was said last. `file` is part
    of a path, `branch` a whole name. Raises UsageError for what is not such a day or value.
    """

    question: str = ""
    project: str = ""
    type: str = ""
    status: str = ""
    trust: str = ""
    since: str = ""
    until: str = ""
    file: str = ""
    branch: str = ""

    def __post_init__(self) -> None:
        for name, allowed in (("type", (*MEMORY_TYPES, TURN)), ("status", STATUSES), ("trust", TRUSTS)):
            value = getattr(self, name)
            if value and value not in allowed:
                raise UsageError(f"'{value}' is not a {name}.", f"Use one of {', '.join(allowed)}.")
        for name in ("since", "until"):
            _day(getattr(self, name))

    @property
    def chosen(self) -> dict[str, str]:
        """Return the filters that are set, by name."""
        return {each.name: getattr(self, each.name) for each in fields(self) if getattr(self, each.name)}


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
    rows = _matching(context, filters, memories) if filters.question else _all(memories)
    masks = _masks(rows, filters)
    facets = [facet for facet in _facets(rows, masks, filters, labels) if facet.values]
    kept = rows.filter(_both(masks.values(), rows.num_rows))
    if not filters.question:
        kept = kept.sort_by([("updated_at", "descending"), ("memory_id", "ascending")])
    return Browsed(kept.slice(offset, limit).to_pylist(), kept.num_rows, facets, labels, filters)


def weakest(context: Context, project_id: str, *, limit: int) -> list[Row]:
    """Return the active memories of a project that are the least sure and fade, the least sure first."""
    rows = context.open_catalogue().read_table("memories", _COLUMNS)
    is_meant = (pc.field("project_id") == project_id) & (pc.field("status") == "active")
    fading = rows.filter(is_meant & ~pc.field("is_pinned"))
    ordered = fading.sort_by([("confidence", "ascending"), ("memory_id", "ascending")])
    return ordered.slice(0, limit).to_pylist()


def _all(memories: pa.Table) -> pa.Table:
    return memories.append_column("kind", pa.array(["memory"] * memories.num_rows, pa.string()))


def _matching(context: Context, filters: Filters, memories: pa.Table) -> pa.Table:
    """Return what answers the question, best first: rows of memories, and of turns with what they have."""
    scope = filters.project if filters.project and filters.project != GLOBAL_SCOPE else None
    matches = search_only(
        context, filters.question, project=scope, all_projects=scope is None, limit=MOST_MATCHES
    )
    ids = pa.array([match.id for match in matches], pa.string())
    known = {r["memory_id"]: r for r in memories.filter(pc.is_in(memories["memory_id"], ids)).to_pylist()}
    rows: list[Row] = []
    for match in matches:
        if match.kind == "memory":
            if match.id in known:  # else a run is just replacing what is published
                rows.append({**known[match.id], "kind": "memory"})
            continue
        places = [
            {"turn_id": "", "session_id": e.session_id, "file": e.file, "lines": list(e.lines), "layer": ""}
            for e in match.evidence
        ]
        rows.append(
            {
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
        )
    return pa.Table.from_pylist(rows, schema=_ROWS)


def _masks(rows: pa.Table, filters: Filters) -> dict[str, Columns]:
    """Return filter → which rows pass it, for the filters that are set."""
    masks: dict[str, Columns] = {}
    for name, column in _PLAIN.items():
        if value := getattr(filters, name):
            masks[name] = pc.equal(rows[column], pa.scalar(value))
    # What no longer counts is shown where it is asked for; a question leaves out by itself what is hidden.
    if not filters.status and not filters.question:
        masks["status"] = pc.equal(rows["status"], pa.scalar("active"))
    if filters.since:
        masks["since"] = pc.greater_equal(rows["updated_at"], pa.scalar(_day(filters.since), UTC_US))
    if filters.until:
        end = _day(filters.until) + timedelta(days=1)
        masks["until"] = pc.less(rows["updated_at"], pa.scalar(end, UTC_US))
    if filters.file:
        masks["file"] = _any_of(rows, rows["files"], pc.match_substring, filters.file, ignore_case=True)
    if filters.branch:
        masks["branch"] = _any_of(rows, _branches(rows), pc.equal, filters.branch)
    return {name: pc.fill_null(mask, False) for name, mask in masks.items()}


_PLAIN = {"project": "project_id", "type": "memory_type", "status": "status", "trust": "trust"}


def _branches(rows: pa.Table) -> Columns:
    """Return the branches of each row's evidence as a list column."""
    evidence: Columns = rows["evidence"].combine_chunks()
    flat = evidence.flatten().field("git_branch") if len(evidence.flatten()) else pa.array([], pa.string())
    counts: Columns = pc.list_value_length(evidence)
    lengths: Columns = pc.fill_null(counts, 0)
    offsets = pa.array([0, *pc.cumulative_sum(lengths).to_pylist()], pa.int32())
    return pa.ListArray.from_arrays(offsets, flat)


def _any_of(rows: pa.Table, lists: Columns, test: Any, value: str, **options: bool) -> Columns:
    """Return which rows have an item in their list that passes a test."""
    column: Columns = lists.combine_chunks() if hasattr(lists, "combine_chunks") else lists
    items: Columns = column.flatten()
    parents: Columns = pc.list_parent_indices(column)
    passed: Columns = pc.fill_null(test(items, value, **options), False)
    hits = pc.unique(parents.filter(passed))
    return pc.is_in(pa.array(range(rows.num_rows), pa.int64()), hits.cast(pa.int64()))


def _both(masks: Iterable[Columns], count: int) -> Columns:
    return reduce(pc.and_, masks, pa.array([True] * count, pa.bool_()))


def _facets(
    rows: pa.Table, masks: Mapping[str, Columns], filters: Filters, labels: Mapping[str, str]
) -> Iterable[Facet]:
    for name, column in _PLAIN.items():
        others = rows.filter(_both([m for n, m in masks.items() if n != name], rows.num_rows))
        chosen = getattr(filters, name)
        yield Facet(name, _counted(others[column], chosen, labels if name == "project" else {}))
    kept = rows.filter(_both([m for n, m in masks.items() if n != "branch"], rows.num_rows))
    yield Facet("branch", _counted(_branches(kept).flatten(), filters.branch, {}))


def _counted(column: Columns, chosen: str, labels: Mapping[str, str]) -> list[FacetValue]:
    counts = [(row["values"], row["counts"]) for row in _counts(column) if row["values"]]
    counts.sort(key=lambda pair: (-pair[1], pair[0]))
    listed = [pair for pair in counts if pair[0] == chosen]
    listed = [*counts[:FACET_VALUES], *(pair for pair in listed if pair not in counts[:FACET_VALUES])]
    return [FacetValue(value, labels.get(value, value), n, value == chosen) for value, n in listed]


def _counts(column: Columns) -> list[Row]:
    counted: Columns = pc.value_counts(column)
    return list(counted.to_pylist())


def _day(text: str) -> datetime:
    try:
        return datetime.strptime(text or "1970-01-01", "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError as error:
        raise UsageError(f"Not a date: '{text}'.", "Use YYYY-MM-DD: 2026-09-14") from error
