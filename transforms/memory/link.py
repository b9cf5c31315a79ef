"""Edges between memories: who is near whom, by vectors or terms, and by rules how they relate (spec 7)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cortex.transforms.database import query
from cortex.transforms.identity import content_id
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import BY_A_PERSON, EDGES
from cortex.transforms.words.facts import Fact, Reversals, Vocabulary
from cortex.transforms.words.sentences import nested, share_of_fewer

# -- Which memories are near each other: calibrated similarity of vectors, shared terms if there is none.

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


# -- Edges between memories: who is near whom, and by rules without a model, how they relate (spec 7).

# What a choice names as its alternative: "pnpm, not npm".
_CONTRAST = re.compile(r",\s{0,3}(?:and\s{1,3})?not\b[^,.;:!?]{0,200}", re.IGNORECASE)
_ONLY = re.compile(r"\s*(?:only|just|nur)\b", re.IGNORECASE)


@dataclass(frozen=True)
class _Side:
    """One end of a possible edge, with what the rules look at."""

    memory_id: str
    memory_type: str
    fact: Fact
    rejected: frozenset[str]
    left: tuple[frozenset[str], ...]
    negated: frozenset[str]
    chosen: frozenset[str]  # words outside of the named alternative: of "pnpm, not npm" pnpm
    rejected_alternatives: frozenset[str]
    files: frozenset[str]
    turns: frozenset[str]


def edges_between(memories: pa.Table, vectors: pa.Table, policy: Policy, model: str) -> pa.Table:
    """
    Return the EDGES among the active ones of `memories`, ordered by edge_id.

    Takes MEMORIES and VECTORS. Pairs of one scope that both have a vector by `model` are compared by
    calibrated similarity, other pairs by the files and code names they share, so that an empty VECTORS
    works too. Each memory reaches its nearest `link_neighbours`; a pair has one edge, symmetric ones from
    the smaller id. The rule that named the relation stands in `rule`; none makes `supersedes`. A scope's
    edges depend on that scope alone, and not on the order of rows: linking a scope again equals linking
    them all. Indexed prose leads to its code by `source_of`, what a person put in another's place to that one
    by `supersedes`.
    """
    active = memories.filter((pc.field("status") == "active") & (pc.field("memory_type") != "code"))
    similar = similar_pairs(
        active,
        vectors,
        policy,
        model,
        floor=policy.threshold("link_above_similarity"),
        neighbours=int(policy.threshold("link_neighbours")),
    )
    sharing = sharing_pairs(active, with_vector(active, vectors, model), policy)
    pairs = {**sharing, **similar}
    edges = pa.concat_tables(
        [_edges(active, pairs, sharing, policy), _edges_to_code(memories), _edges_to_replaced(memories)]
    )
    return edges.sort_by("edge_id")


def neighbourhood(edges: pa.Table, memory_ids: list[str], *, depth: int) -> pa.Table:
    """
    Return the memories within `depth` steps of `memory_ids`: (memory_id, distance), ordered by memory_id.

    Takes EDGES and walks them in either direction; the given ones have distance 0.
    """
    return query(
        "neighbourhood",
        {"memory_ids": memory_ids, "depth": depth},
        edges=edges.select(["source_id", "target_id"]),
    )


def at_odds_with(text: str, memories: pa.Table, policy: Policy, *, rejected: str = "") -> dict[str, str]:
    """
    Return which active decisions of MEMORIES a new statement contradicts: the rule that says so, by id.

    The statement counts as a decision, whatever type it is to have; `rejected` is what it turns down.
    """
    is_disputed = pc.field("memory_type").isin(
        pa.array(sorted(policy.types_with("is_disputed")), pa.string())
    )
    columns = ["memory_id", "memory_type", "text", "rejected", "files", "evidence"]
    rows = memories.filter((pc.field("status") == "active") & is_disputed).select(columns).to_pylist()
    vocabulary, reversals = Vocabulary.of(policy), Reversals.of(policy)
    given = {"memory_id": "", "memory_type": "decision", "text": text, "rejected": rejected or None}
    new = _side({**given, "files": [], "evidence": []}, vocabulary, reversals)
    rules = {
        row["memory_id"]: _contrary(_side(row, vocabulary, reversals), new, vocabulary, policy)
        for row in rows
    }
    return {name: rule for name, rule in sorted(rules.items()) if rule}


def _edges(memories: pa.Table, pairs: Pairs, sharing: Pairs, policy: Policy) -> pa.Table:
    vocabulary = Vocabulary.of(policy)
    wanted = pa.array(sorted({name for pair in pairs for name in pair}), pa.string())
    columns = ["memory_id", "project_id", "memory_type", "text", "rejected", "files", "evidence"]
    linked = memories.filter(pc.field("memory_id").isin(wanted)).select(columns)
    rows = {row["memory_id"]: row for row in linked.to_pylist()}
    reversals = Reversals.of(policy)
    sides = {name: _side(row, vocabulary, reversals) for name, row in rows.items()}
    edges = []
    for (a, b), similarity in pairs.items():
        source, target, edge_type, rule = _relation(sides[a], sides[b], vocabulary, policy)
        edges.append(
            {
                "edge_id": content_id(source, target, edge_type),
                "project_id": rows[a]["project_id"],
                "source_id": source,
                "target_id": target,
                "edge_type": edge_type,
                "strength": similarity,
                "rule": rule or ("shared_terms" if (a, b) in sharing else "similarity"),
            }
        )
    return EDGES.of(sorted(edges, key=lambda edge: str(edge["edge_id"])))


def _edges_to_code(memories: pa.Table) -> pa.Table:
    """Return an edge from each description of a file to the code it describes (spec 12)."""
    indexed = memories.filter((pc.field("status") == "active") & (pc.field("source_type") == "code_index"))
    columns = ["memory_id", "project_id", "memory_type", "files"]
    of_file: dict[tuple[str, ...], dict[str, str]] = {}
    for row in indexed.select(columns).to_pylist():
        of_file.setdefault((row["project_id"], *row["files"]), {})[row["memory_type"]] = row["memory_id"]
    edges: list[dict[str, object]] = []
    for (project_id, *_), known in of_file.items():
        if known.keys() >= {"code", "code_description"}:
            source, target = known["code_description"], known["code"]
            ends = {"source_id": source, "target_id": target, "project_id": project_id}
            common = {"edge_type": "source_of", "strength": 1.0, "rule": "indexed"}
            edges.append({"edge_id": content_id(source, target, "source_of"), **ends, **common})
    return EDGES.of(edges)


def _edges_to_replaced(memories: pa.Table) -> pa.Table:
    """Return an edge from each memory to the one that a person said it replaces."""
    columns = ["memory_id", "project_id", "superseded_by"]
    replaced = memories.filter(pc.field("status") == "superseded").select(columns).to_pylist()
    known = set(memories["memory_id"].to_pylist()) if replaced else set()
    return EDGES.of(
        [
            {
                "edge_id": content_id(row["superseded_by"], row["memory_id"], "supersedes"),
                "project_id": row["project_id"],
                "source_id": row["superseded_by"],
                "target_id": row["memory_id"],
                "edge_type": "supersedes",
                "strength": 1.0,
                "rule": BY_A_PERSON,
            }
            for row in replaced
            if row["superseded_by"] in known
        ]
    )


def _side(row: dict[str, Any], vocabulary: Vocabulary, reversals: Reversals) -> _Side:
    return _Side(
        row["memory_id"],
        row["memory_type"],
        vocabulary.fact(row["text"]),
        vocabulary.fact(_rejected_text(row["rejected"])).word_set,
        reversals.left_in(row["text"], vocabulary),
        vocabulary.negated_in(_CONTRAST.sub("", row["text"])),
        vocabulary.fact(_CONTRAST.sub("", row["text"])).word_set,
        vocabulary.fact(" ".join(_CONTRAST.findall(row["text"]))).word_set,
        frozenset(row["files"]),
        frozenset(evidence["turn_id"] for evidence in row["evidence"]),
    )


def _rejected_text(rejected: str | None) -> str:
    # Who turns down "only X" settles on X and on more.
    return "" if rejected is None or _ONLY.match(rejected) else rejected


def _relation(a: _Side, b: _Side, vocabulary: Vocabulary, policy: Policy) -> tuple[str, str, str, str]:
    """Return (source_id, target_id, edge type, rule) of a pair, `a` the smaller id; no rule: relates_to."""
    contrary = _contrary(a, b, vocabulary, policy)
    if contrary:
        return a.memory_id, b.memory_id, "contradicts", contrary
    shorter, longer = sorted((a, b), key=lambda side: (len(side.fact.words), side.memory_id))
    is_same_file = bool(a.files & b.files)
    is_longer = len(shorter.fact.words) < len(longer.fact.words)
    if is_same_file and is_longer and _is_about_the_same(a.fact, b.fact, policy):
        return longer.memory_id, shorter.memory_id, "refines", "same_file_more_words"
    for source, target in ((a, b), (b, a)):
        if source.memory_type not in policy.types_with("is_instance"):
            continue
        if is_same_file and target.memory_type in policy.types_with("is_design"):
            return source.memory_id, target.memory_id, "exemplifies", "same_file"
        if a.turns & b.turns and target.memory_type in policy.types_with("is_in_force"):
            return source.memory_id, target.memory_id, "derived_from", "same_turn"
    return a.memory_id, b.memory_id, "relates_to", ""


def _contrary(a: _Side, b: _Side, vocabulary: Vocabulary, policy: Policy) -> str:
    """Return the rule by which two standing facts cannot both hold, or an empty string."""
    if not {a.memory_type, b.memory_type} <= policy.types_with("is_in_force"):
        return ""
    if _rejects(a, b) or _rejects(b, a):
        return "rejected_there_chosen_here"
    if _leaves(a, b) or _leaves(b, a):
        return "left_there_chosen_here"
    if _swaps(a, b):
        return "each_names_the_other_beside"
    opposites = vocabulary.opposites_in(a.fact, b.fact)
    if opposites and _is_about_the_same(a.fact, b.fact, policy, without=opposites):
        return "opposite"
    if not _is_about_the_same(a.fact, b.fact, policy):
        return ""
    if a.fact.negation_count % 2 != b.fact.negation_count % 2 and (_denies(a, b) or _denies(b, a)):
        return "negation"
    # Another name with a digit, s1 for s2, is another thing and not another number.
    is_one_thing = nested(a.fact.names, b.fact.names)
    return "number" if is_one_thing and not nested(a.fact.numbers, b.fact.numbers) else ""


def _rejects(a: _Side, b: _Side) -> bool:
    """Return whether `b` settles on what `a` turned down, about a subject they share."""
    settled = b.fact.word_set - b.rejected
    return (
        bool(a.rejected)
        and not b.fact.negation_count
        and a.rejected <= settled
        and bool((a.fact.word_set - a.rejected) & (settled - a.rejected))
    )


def _swaps(a: _Side, b: _Side) -> bool:
    """Return whether each chooses what the other rejects: "pnpm, not npm" and "npm, not pnpm"."""
    return (
        bool(a.rejected_alternatives and b.rejected_alternatives)
        and a.rejected_alternatives <= b.chosen
        and b.rejected_alternatives <= a.chosen
    )


def _denies(a: _Side, b: _Side) -> bool:
    """Return whether `a` says not to what `b` says: "X, not Y" says nothing against X."""
    return bool((a.negated - b.negated) & b.fact.word_set)


def _leaves(a: _Side, b: _Side) -> bool:
    """Return whether `a` leaves what `b` settles on; a single word does so only on a shared subject."""
    gone = frozenset[str]().union(b.rejected, *b.left)
    settled = b.fact.word_set - gone
    return not b.fact.negation_count and any(
        left <= settled and (len(left) > 1 or bool((a.fact.word_set - left) & (settled - left)))
        for left in a.left
    )


def _is_about_the_same(a: Fact, b: Fact, policy: Policy, without: frozenset[str] = frozenset()) -> bool:
    """Return whether two facts share most of their words; `without` those that are meant to differ."""
    words, others = a.word_set - without, b.word_set - without
    enough = policy.threshold("relation_min_words")
    least = policy.threshold("relation_word_overlap")
    return len(words & others) >= enough and share_of_fewer(words, others) >= least
