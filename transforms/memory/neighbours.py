"""Which memories are near each other: calibrated similarity of vectors, shared terms if there is none."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cortex.transforms.database import query
from cortex.transforms.policy import Policy
from cortex.transforms.words.facts import Vocabulary

Pairs = dict[tuple[str, str], float]
# Above the error of a float32 product of unit vectors (about 1e-6), so that no pair is lost before it is
# computed again in float64.
SLACK = 2e-5
# Pairs computed again at once: 16384 x 384 float64 twice is 100 MB.
EXACT_PAIRS = 16_384
# Similarities keep four decimals: what is computed in another order still agrees.
DECIMALS = 4


@dataclass(frozen=True)
class Near:
    """Pairs of rows, left < right, with the cosine of their vectors."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    cosine: NDArray[np.float64]


def similar_pairs(
    memories: pa.Table, vectors: pa.Table, policy: Policy, model: str, *, floor: float, neighbours: int
) -> Pairs:
    """
    Return the calibrated similarity of near memories by their ids (smaller first): `floor` and above, to 1.

    Compares the rows of MEMORIES within each project_id by those VECTORS that belong to `model`. A pair
    counts if one is among the `neighbours` nearest of the other. The order of rows and other scopes have no
    influence. Without vectors there is no pair. Raises UnknownValue if the model is not in calibration.csv.
    """
    if not vectors.num_rows:
        return {}
    zero_at, full_at = policy.calibration(model)
    pairs: Pairs = {}
    for ids, matrix in _scopes(memories, vectors, model):
        near = near_rows(
            matrix,
            floor=zero_at + (floor - 10.0**-DECIMALS) * (full_at - zero_at),
            neighbours=neighbours,
            cells=int(policy.threshold("link_block_cells")),
        )
        raw = np.clip((near.cosine - zero_at) / (full_at - zero_at), 0.0, 1.0)
        for left, right, similarity in zip(
            near.left, near.right, np.round(raw, DECIMALS).tolist(), strict=True
        ):
            if similarity >= floor:
                pairs[ids[left], ids[right]] = similarity
    return pairs


def with_vector(memories: pa.Table, vectors: pa.Table, model: str) -> set[str]:
    """Return the ids of those rows of MEMORIES whose text VECTORS hold by `model`."""
    hashes = vectors.filter(pc.field("model") == model)["content_hash"].combine_chunks()
    return {
        str(name) for name in memories.filter(pc.field("content_hash").isin(hashes))["memory_id"].to_pylist()
    }


def sharing_pairs(memories: pa.Table, known: set[str], policy: Policy) -> Pairs:
    """
    Return the similarity of memories that share files and code names, by their ids (smaller first).

    Takes MEMORIES and the ids of those with a vector, `known`: pairs of these are left out. Similarity is the
    terms shared by all terms of both, 0 to 1, at least the policy's least for an edge.
    """
    vocabulary = Vocabulary.of(policy)
    ids: list[str] = []
    scopes: list[str] = []
    terms: list[str] = []
    for row in memories.select(["memory_id", "project_id", "text", "files"]).to_pylist():
        own = vocabulary.fact(row["text"]).names | {path.casefold() for path in row["files"]}
        terms += sorted(own)
        ids += [row["memory_id"]] * len(own)
        scopes += [row["project_id"]] * len(own)
    table = pa.table(
        {
            "memory_id": pa.array(ids, pa.string()),
            "project_id": pa.array(scopes, pa.string()),
            "term": pa.array(terms, pa.string()),
            "has_vector": pa.array([name in known for name in ids], pa.bool_()),
        }
    )
    params = ("link_max_memories_per_term", "link_above_similarity", "link_neighbours")
    alike = query("shared_terms", {name: policy.threshold(name) for name in params}, terms=table)
    return {(row["source_id"], row["target_id"]): row["similarity"] for row in alike.to_pylist()}


def near_rows(matrix: NDArray[np.float32], *, floor: float, neighbours: int, cells: int) -> Near:
    """
    Return the pairs of rows of which one is among the nearest of the other, cosines from `floor` up.

    `matrix` has unit-length rows; `cells` bounds the block of cosines held at once. Rows equally near are
    taken in their order. Blocks are computed in float32 to choose candidates, these again in float64, each by
    itself, so that the result does not depend on how rows fall into blocks.
    """
    count = len(matrix)
    rows_per_block = max(1, cells // max(count, 1))
    chosen = [
        _nearest_of_block(matrix, start, min(start + rows_per_block, count), floor, neighbours)
        for start in range(0, count, rows_per_block)
    ]
    left = np.concatenate([np.empty(0, np.int64), *(block.left for block in chosen)])
    right = np.concatenate([np.empty(0, np.int64), *(block.right for block in chosen)])
    cosine = np.concatenate([np.empty(0), *(block.cosine for block in chosen)])
    keys, first = np.unique(np.minimum(left, right) * count + np.maximum(left, right), return_index=True)
    return Near(keys // max(count, 1), keys % max(count, 1), cosine[first])


def _nearest_of_block(
    matrix: NDArray[np.float32], start: int, stop: int, floor: float, neighbours: int
) -> Near:
    cosines = matrix[start:stop] @ matrix.T
    cosines[np.arange(stop - start), np.arange(start, stop)] = -2.0  # no row is its own neighbour
    row, column = np.nonzero(cosines >= floor - SLACK)
    value = cosines[row, column]
    kept = _best_of_rows(row, column, value, neighbours, slack=SLACK)
    left, right = row[kept] + start, column[kept]
    cosine = _exact(matrix, left, right)
    best = _best_of_rows(left, right, np.round(cosine, DECIMALS), neighbours, slack=0.0)
    best = best[cosine[best] >= floor]
    return Near(left[best], right[best], cosine[best])


def _best_of_rows(
    row: NDArray[np.int64], column: NDArray[np.int64], value: NDArray[np.floating], best: int, *, slack: float
) -> NDArray[np.int64]:
    """Return positions of each row's `best` largest values, and with `slack` of those as near as the last."""
    order = np.lexsort((column, -value, row))
    starts = np.flatnonzero(np.r_[True, np.diff(row[order]) > 0]) if len(order) else np.empty(0, np.int64)
    sizes = np.diff(np.r_[starts, len(order)])
    place = np.arange(len(order)) - np.repeat(starts, sizes)
    if not slack:
        return order[place < best]
    last = value[order][starts + np.minimum(sizes, best) - 1]
    return order[value[order] >= np.repeat(last, sizes) - slack]


def _exact(
    matrix: NDArray[np.float32], left: NDArray[np.int64], right: NDArray[np.int64]
) -> NDArray[np.float64]:
    parts = [np.empty(0)]
    for start in range(0, len(left), EXACT_PAIRS):
        a = matrix[left[start : start + EXACT_PAIRS]].astype(np.float64)
        b = matrix[right[start : start + EXACT_PAIRS]].astype(np.float64)
        parts.append((a * b).sum(axis=1))
    return np.concatenate(parts)


def _scopes(
    memories: pa.Table, vectors: pa.Table, model: str
) -> Iterator[tuple[list[str], NDArray[np.float32]]]:
    """Yield the ids and the matrix of each scope, by memory_id; those without a vector left out."""
    of_model = vectors.filter(pc.field("model") == model)
    position = pc.index_in(memories["content_hash"], value_set=of_model["content_hash"].combine_chunks())
    placed = memories.select(["memory_id", "project_id"]).append_column("position", position)
    placed = placed.filter(~pc.field("position").is_null()).sort_by("memory_id")
    for scope in sorted({str(name) for name in placed["project_id"].unique().to_pylist()}):
        rows = placed.filter(pc.field("project_id") == scope)
        lists = of_model["vector"].take(rows["position"]).combine_chunks()
        ids = [str(name) for name in rows["memory_id"].to_pylist()]
        yield ids, pc.list_flatten(lists).to_numpy().reshape(len(ids), -1)
