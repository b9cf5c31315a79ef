"""Which values the memories of a search have, and how many of them: what a person narrows a search by."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cortex.transforms.vocabulary import Row

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


def first_places(rows: pa.Table, places: Columns, count: int, **order: str) -> Columns:
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
