"""Edges between memories: who is near whom, by vectors or terms, and by rules how they relate (spec 7)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cortex.transforms.database import query
from cortex.transforms.identity import content_id
from cortex.transforms.memory.fold import WITH_SLOTS
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import BY_A_PERSON, EDGES, values
from cortex.transforms.words.facts import NEUTRAL, Fact, Measures, Vocabulary, beginning_of, has_swapped_word
from cortex.transforms.words.sentences import nested, share_of_fewer
from cortex.transforms.words.slots import ENDED, WORDING, SlotParser, SlotStems

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
    memories: pa.Table,
    vectors: pa.Table,
    policy: Policy,
    model: str,
    *,
    floor: float,
    neighbours: int,
    of: Any | None = None,
) -> Pairs:
    """
    Return the calibrated similarity of near memories by their ids (smaller first): `floor` and above, to 1.

    Compares the rows of MEMORIES within each project_id by those VECTORS that belong to `model`. A pair
    counts if one is among the `neighbours` nearest of the other; with `of` only the nearest of these ids are
    looked for. The order of rows and other scopes have no influence. Without vectors there is no pair. Raises
    UnknownValue if the model is not in calibration.csv.
    """
    if not vectors.num_rows or (of is not None and not len(of)):
        return {}
    scale = _Scale.of(policy, model, floor, neighbours)
    pairs: Pairs = {}
    for ids, matrix in _scopes(memories, vectors, model):
        rows = None if of is None else np.flatnonzero(pc.is_in(ids, of).to_numpy(zero_copy_only=False))
        pairs |= scale.pairs(ids, scale.near(matrix, rows))
    return pairs


@dataclass(frozen=True)
class _Scale:
    """How near two memories have to be for a pair, by the calibration of a model."""

    zero_at: float
    full_at: float
    floor: float
    neighbours: int
    cells: int

    @staticmethod
    def of(policy: Policy, model: str, floor: float, neighbours: int) -> "_Scale":
        return _Scale(
            *policy.calibration(model), floor, neighbours, int(policy.threshold("link_block_cells"))
        )

    @property
    def least_cosine(self) -> float:
        return self.zero_at + (self.floor - 10.0**-DECIMALS) * (self.full_at - self.zero_at)

    def near(self, matrix: NDArray[np.float32], rows: NDArray[np.int64] | None = None) -> Near:
        return near_rows(
            matrix, floor=self.least_cosine, neighbours=self.neighbours, cells=self.cells, rows=rows
        )

    def similarity(self, cosine: NDArray[np.float64]) -> NDArray[np.float64]:
        raw = np.clip((cosine - self.zero_at) / (self.full_at - self.zero_at), 0.0, 1.0)
        return np.round(raw, DECIMALS)

    def pairs(self, ids: Any, near: Near) -> Pairs:
        similarity = self.similarity(near.cosine)
        enough = similarity >= self.floor
        lefts, rights = (ids.take(side[enough]).to_pylist() for side in (near.left, near.right))
        return dict(zip(zip(lefts, rights, strict=True), similarity[enough].tolist(), strict=True))


def with_vector(memories: pa.Table, vectors: pa.Table, model: str) -> set[str]:
    """Return the ids of those rows of MEMORIES whose text VECTORS hold by `model`."""
    hashes = _of_model(vectors.select(["model", "content_hash"]), model)["content_hash"].combine_chunks()
    is_known = pc.is_in(memories["content_hash"], hashes)
    return {str(name) for name in memories["memory_id"].filter(is_known).to_pylist()}


def _of_model(vectors: pa.Table, model: str) -> pa.Table:
    # As a rule all are: a filter would copy 1.5 kB a vector.
    is_of = pc.equal(vectors["model"], pa.scalar(model))
    return vectors if pc.all(is_of).as_py() else vectors.filter(is_of)


def sharing_pairs(memories: pa.Table, known: set[str], policy: Policy) -> Pairs:
    """
    Return the similarity of memories that share files and code names, by their ids (smaller first).

    Takes MEMORIES and the ids of those with a vector, `known`: pairs of these are left out. Similarity is the
    terms shared by all terms of both, 0 to 1, at least the policy's least for an edge.
    """
    if known.issuperset(memories["memory_id"].to_pylist()):
        return {}
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


def near_rows(
    matrix: NDArray[np.float32],
    *,
    floor: float,
    neighbours: int,
    cells: int,
    rows: NDArray[np.int64] | None = None,
) -> Near:
    """
    Return the pairs of rows of which one is among the nearest of the other, cosines from `floor` up.

    `matrix` has unit-length rows; `cells` bounds the block of cosines held at once. With `rows` only the
    nearest of these rows are looked for, among all. Rows equally near are taken in their order. Blocks are
    computed in float32 to choose candidates, these again in float64, each by itself, so that the result does
    not depend on how rows fall into blocks.
    """
    count = len(matrix)
    rows = np.arange(count) if rows is None else rows
    chosen = [_nearest_of_block(matrix, block, floor, neighbours) for block in _blocks(rows, count, cells)]
    left = np.concatenate([np.empty(0, np.int64), *(block.left for block in chosen)])
    right = np.concatenate([np.empty(0, np.int64), *(block.right for block in chosen)])
    cosine = np.concatenate([np.empty(0), *(block.cosine for block in chosen)])
    keys, first = np.unique(np.minimum(left, right) * count + np.maximum(left, right), return_index=True)
    return Near(keys // max(count, 1), keys % max(count, 1), cosine[first])


def _blocks(rows: NDArray[np.int64], count: int, cells: int) -> Iterator[NDArray[np.int64]]:
    """Yield `rows` in blocks of which the products with `count` rows are at most `cells`."""
    rows_per_block = max(1, cells // max(count, 1))
    for start in range(0, len(rows), rows_per_block):
        yield rows[start : start + rows_per_block]


def _nearest_of_block(
    matrix: NDArray[np.float32], rows: NDArray[np.int64], floor: float, neighbours: int
) -> Near:
    cosines = matrix[rows] @ matrix.T
    cosines[np.arange(len(rows)), rows] = -2.0  # no row is its own neighbour
    row, column = np.nonzero(cosines >= floor - SLACK)
    value = cosines[row, column]
    kept = _best_of_rows(row, column, value, neighbours, slack=SLACK)
    left, right = rows[row[kept]], column[kept]
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


def _scopes(memories: pa.Table, vectors: pa.Table, model: str) -> Iterator[tuple[Any, NDArray[np.float32]]]:
    """Yield the ids and the matrix of each scope, by memory_id; those without a vector left out."""
    of_model = _of_model(vectors, model)
    position = pc.index_in(memories["content_hash"], value_set=of_model["content_hash"].combine_chunks())
    placed = memories.select(["memory_id", "project_id"]).append_column("position", position)
    placed = placed.filter(~pc.field("position").is_null()).sort_by("memory_id")
    for scope in sorted({str(name) for name in placed["project_id"].unique().to_pylist()}):
        rows = placed.filter(pc.field("project_id") == scope)
        lists = of_model["vector"].take(rows["position"]).combine_chunks()
        ids = rows["memory_id"].combine_chunks()
        yield ids, pc.list_flatten(lists).to_numpy().reshape(len(ids), -1)


# -- Edges between memories: who is near whom, and by rules without a model, how they relate (spec 7).

# What a choice names as its alternative: "pnpm, not npm".
_CONTRAST = re.compile(r",\s{0,3}(?:and\s{1,3})?not\b[^,.;:!?]{0,200}", re.IGNORECASE)
# What only names what follows states nothing.
_HEADING = re.compile(r"[:：]\s*$")
# Where the main clause of a statement ends.
_CLAUSE_END = re.compile(r"[:;.!?](?:\s|$)|\s[–—-]\s")


@dataclass(frozen=True)
class _Side:
    """
    One end of a possible edge, with what the rules look at.

    Of what is in force all slots are compared; the rest is looked at where an end is in a pair.
    """

    row: Mapping[str, Any]
    rules: "_Rules"
    sides: SlotStems
    is_in_force: bool

    @property
    def memory_id(self) -> str:
        return str(self.row["memory_id"])

    @property
    def is_persons(self) -> bool:
        return bool(self.row["trust"] == "user")

    @property
    def memory_type(self) -> str:
        return str(self.row["memory_type"])

    @cached_property
    def fact(self) -> Fact:
        return self.rules.vocabulary.fact(self.row["text"])

    @cached_property
    def main(self) -> Fact:
        """The main clause, without how often and how long it holds."""
        clause = _CLAUSE_END.split(self.row["text"], maxsplit=1)[0]
        return self.rules.vocabulary.fact(clause).without(NEUTRAL)

    @cached_property
    def chosen_fact(self) -> Fact:
        return self.rules.vocabulary.fact(self.rules.parser.slots_of(self.row["text"]).chosen)

    @cached_property
    def negated(self) -> frozenset[str]:
        # "Use pnpm, not npm" says nothing against pnpm, and nothing more against npm than its slot does.
        return self.rules.vocabulary.negated_in(_CONTRAST.sub("", self.row["text"])) - self.sides.rejected

    @cached_property
    def measures(self) -> frozenset[tuple[str, str]]:
        return frozenset(self.rules.measures.in_text(self.row["text"], self.rules.vocabulary))

    @cached_property
    def files(self) -> frozenset[str]:
        return frozenset(self.row["files"])

    @cached_property
    def turns(self) -> frozenset[str]:
        return frozenset(evidence["turn_id"] for evidence in self.row["evidence"])


@dataclass(frozen=True)
class _Rules:
    """What the rules compare by."""

    policy: Policy
    vocabulary: Vocabulary
    parser: SlotParser
    measures: Measures
    in_force: AbstractSet[str]

    @staticmethod
    def of(policy: Policy) -> "_Rules":
        words = Vocabulary.of(policy), SlotParser.of(policy), policy.derived(Measures.of)
        return _Rules(policy, *words, policy.types_with("is_in_force"))


# What is compared of two memories, by which a memory is known to be the same as when it was linked.
_SIDE_COLUMNS = ["memory_id", "memory_type", "source_type", "trust", "text", "rejected", "files", "evidence"]
LINKED_COLUMNS = [*_SIDE_COLUMNS, "status", "content_hash"]


@dataclass(frozen=True)
class FormerLinks:
    """
    What an earlier run has linked: the memories as they were then, and the EDGES of their scope.

    `memories` has LINKED_COLUMNS and `has_vector`; the edges may have been changed since by what a person or
    a language model said, as their rule then tells.
    """

    memories: pa.Table
    edges: pa.Table


def edges_state(edges: pa.Table) -> str:
    """Return a value of EDGES, by which it is known that a table still holds the same."""
    strengths = map(repr, values(edges, "strength"))
    return content_id(*values(edges, "edge_id"), *strengths, *values(edges, "rule"))


def own_rules(policy: Policy) -> Any:
    """Return the rules by which edges of near memories are made here; others changed them afterwards."""
    return pa.array(sorted({"similarity", *_RELATIONS, *contrary_rules(policy)}), pa.string())


def edges_between(
    memories: pa.Table,
    vectors: pa.Table,
    policy: Policy,
    model: str,
    linked: FormerLinks | None = None,
    *,
    is_parsed: bool = False,
) -> pa.Table:
    """
    Return the EDGES among the active ones of `memories`, ordered by edge_id.

    Takes MEMORIES and VECTORS. Pairs of one scope that both have a vector by `model` are compared by
    calibrated similarity, other pairs by the files and code names they share, so that an empty VECTORS
    works too. Each memory reaches its nearest `link_neighbours`; a pair has one edge, symmetric ones from
    the smaller id. The rule that named the relation stands in `rule`; none makes `supersedes`. A scope's
    edges depend on that scope alone, and not on the order of rows: linking a scope again equals linking
    them all. Indexed prose leads to its code by `source_of`, what a person put in another's place to that one
    by `supersedes`.

    With what was `linked` before, of this scope by this policy and model, only memories that are new or have
    changed are compared, and those that were or are near them: the edges are the same. Of memories as the
    fold gives them (`is_parsed`) those that word no choice are known by `chosen` and `rejected`.
    """
    active = memories.filter(_IS_LINKED)
    floor, neighbours = policy.threshold("link_above_similarity"), int(policy.threshold("link_neighbours"))
    known, kept = with_vector(active, vectors, model), EDGES.empty()
    if linked is not None and len(known) == active.num_rows and known:
        scale = _Scale.of(policy, model, floor, neighbours)
        similar, kept = _similar_since(active, vectors, model, scale, linked, own_rules(policy))
    else:
        similar = similar_pairs(active, vectors, policy, model, floor=floor, neighbours=neighbours)
    sharing = sharing_pairs(active, known, policy)
    pairs = {**sharing, **similar}
    edges = pa.concat_tables(
        [
            kept,
            _edges(active, pairs, sharing, policy, kept, is_parsed),
            _edges_to_code(memories),
            _edges_to_replaced(memories),
        ]
    )
    return edges.sort_by("edge_id")


_IS_LINKED = (pc.field("status") == "active") & (pc.field("memory_type") != "code")
# How two near memories that are not at odds are related, by the rule that says so.
_RELATIONS = ("same_file_more_words", "same_file", "same_turn")


def _similar_since(
    active: pa.Table, vectors: pa.Table, model: str, scale: _Scale, linked: FormerLinks, own: Any
) -> tuple[Pairs, pa.Table]:
    """
    Return the pairs with an end whose neighbours may be others than when it was linked, and the other edges.

    Touched are memories that changed, those near them, and those with an edge to what changed or is gone: a
    neighbour may have been pushed out of their list, or let in. So is what has an edge that was changed
    afterwards. Of these, and of what a touched one was a neighbour of, the nearest are looked for again.
    """
    pairs: Pairs = {}
    kept: list[pa.Table] = []
    edges = linked.edges.filter(~pc.field("edge_type").isin(["supersedes", "source_of"]))
    fresh_ids = _changed_since(active, linked.memories.filter(_IS_LINKED))
    for ids, matrix in _scopes(active, vectors, model):
        fresh = pc.is_in(ids, fresh_ids).to_numpy(zero_copy_only=False)
        ends = [
            np.nan_to_num(pc.index_in(edges[name], value_set=ids).to_numpy(), nan=-1).astype(np.int64)
            for name in ("source_id", "target_id")
        ]
        left, right = np.minimum(*ends), np.maximum(*ends)
        of_scope = right >= 0
        is_odd = ~pc.is_in(edges["rule"], own).to_numpy() | (left < 0) | fresh[left] | fresh[right]
        # Two that are at odds by what they settle on have the least strength, however far apart they are.
        is_at_odds = pc.is_in(edges["edge_type"], pa.array(["contradicts"])).to_numpy()
        is_least = is_at_odds & (edges["strength"].to_numpy() == scale.floor)
        doubtful = np.flatnonzero(is_least & ~is_odd)
        is_near = scale.similarity(_exact(matrix, left[doubtful], right[doubtful])) >= scale.floor
        is_odd[doubtful[is_near]] = True
        touched = fresh | _near_any(matrix, np.flatnonzero(fresh), scale)
        for end in (left, right):
            touched[end[is_odd & of_scope & (end >= 0)]] = True
        near = scale.near(matrix, np.flatnonzero(touched))
        pairs |= scale.pairs(ids, near)
        half = of_scope & (left >= 0) & (touched[left] != touched[right])
        again = half & ~np.isin(left * len(ids) + right, near.left * len(ids) + near.right)
        others = np.unique(np.where(touched[left[again]], right[again], left[again]))
        back = scale.near(matrix, others)
        is_touched = touched[back.left] | touched[back.right]
        pairs |= scale.pairs(
            ids, Near(back.left[is_touched], back.right[is_touched], back.cosine[is_touched])
        )
        is_kept = (left >= 0) & ~touched[left] & ~touched[right] & ~is_least
        kept.append(edges.filter(pa.array(is_kept)))
    return pairs, pa.concat_tables([EDGES.empty(), *kept])


def _near_any(matrix: NDArray[np.float32], rows: NDArray[np.int64], scale: _Scale) -> NDArray[np.bool_]:
    """Return of each row of a matrix whether it is near one of `rows`."""
    is_near = np.zeros(len(matrix), np.bool_)
    for block in _blocks(rows, len(matrix), scale.cells):
        is_near |= ((matrix[block] @ matrix.T) >= scale.least_cosine - SLACK).any(axis=0)
    return is_near


def _changed_since(memories: pa.Table, before: pa.Table) -> Any:
    """Return the ids of MEMORIES that were not the same `before`, or had no vector then."""
    position, is_same = same_before(memories, before, LINKED_COLUMNS[1:])
    had_vector: Any = pc.coalesce(before["has_vector"].take(position), pa.scalar(False))
    is_same = pc.and_(is_same, had_vector)
    return memories["memory_id"].filter(pc.invert(is_same)).combine_chunks()


def same_before(memories: pa.Table, before: pa.Table, columns: Sequence[str]) -> tuple[Any, Any]:
    """Return of each memory its place in `before` by its id, and whether `columns` were the same there."""
    position: Any = pc.index_in(memories["memory_id"], value_set=before["memory_id"].combine_chunks())
    known = before.take(position)
    is_same: Any = pc.is_valid(position)
    for name in columns:
        old, new = (_comparable(rows[name]) for rows in (known, memories))
        both: Any = pc.and_(pc.is_null(old), pc.is_null(new))
        is_same = pc.and_(is_same, pc.coalesce(pc.equal(old, new), both))
    return position, is_same


def _comparable(column: Any) -> Any:
    """Return a column as strings; of evidence the turns."""
    column = column.combine_chunks()
    if not pa.types.is_list(column.type):
        return column
    if pa.types.is_struct(column.type.value_type):
        flat = column.flatten().field("turn_id")
        offsets = pa.array(np.r_[0, np.cumsum(pc.fill_null(pc.list_value_length(column), 0))], pa.int32())
        column = pa.ListArray.from_arrays(offsets, flat)
    return pc.binary_join(column.cast(pa.list_(pa.string())), "\0")


# What one ends the other explains, whatever its type; by the others two facts in force are at odds.
PRACTICE_ENDED = "practice_ended"


def contrary_rules(policy: Policy, *, is_sure: bool = False) -> tuple[str, ...]:
    """
    Return the rules by which two are at odds, the surest first (contrary_rules.csv).

    With `is_sure` those of which enough is right to act on: the others are asked about in the review alone.
    """
    least = policy.threshold("contradiction_min_precision") if is_sure else 0.0
    return tuple(r["rule"] for r in policy.tables["contrary_rules"].to_pylist() if r["precision"] >= least)


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


def at_odds_with(text: str, memories: pa.Table, policy: Policy) -> dict[str, str]:
    """
    Return which active decisions of MEMORIES a new statement contradicts: the rule that says so, by id.

    The statement counts as a decision, whatever type it is to have, as does what a person said on purpose.
    """
    is_disputed = pc.field("memory_type").isin(
        pa.array(sorted(policy.types_with("is_disputed")), pa.string())
    ) | (pc.field("source_type") == "explicit")
    active = memories.filter((pc.field("status") == "active") & is_disputed)
    rules = _Rules.of(policy)
    given = {"memory_id": "", "memory_type": "decision", "text": text, "rejected": None}
    new = _side({**given, "source_type": "explicit", "trust": "user", "files": [], "evidence": []}, rules)
    rule_by_id = {
        row["memory_id"]: _contrary(_side(row, rules), new, rules)
        for row in active.select(_SIDE_COLUMNS).to_pylist()
    }
    return {name: rule for name, rule in sorted(rule_by_id.items()) if rule}


def _edges(
    memories: pa.Table, pairs: Pairs, sharing: Pairs, policy: Policy, kept: pa.Table, is_parsed: bool
) -> pa.Table:
    rules = _Rules.of(policy)
    sides = _sides_to_compare(memories, {name for pair in pairs for name in pair}, rules, is_parsed)
    scopes = {name: str(side.row["project_id"]) for name, side in sides.items()}
    least = policy.threshold("link_above_similarity")
    known = {
        tuple(sorted(ends)) for ends in zip(values(kept, "source_id"), values(kept, "target_id"), strict=True)
    }
    edges = []
    for a, b in sorted(pairs.keys() | (_pairs_by_slot(sides, scopes, policy) - known)):
        source, target, edge_type, rule = _relation(sides[a], sides[b], rules)
        if (a, b) not in pairs and edge_type != "contradicts":
            continue  # that two choose of one kind relates them by itself to nothing
        edges.append(
            {
                "edge_id": content_id(source, target, edge_type),
                "project_id": scopes[a],
                "source_id": source,
                "target_id": target,
                "edge_type": edge_type,
                "strength": pairs.get((a, b), least),
                "rule": rule or ("shared_terms" if (a, b) in sharing else "similarity"),
            }
        )
    return EDGES.of(sorted(edges, key=lambda edge: str(edge["edge_id"])))


def _sides_to_compare(
    memories: pa.Table, named: AbstractSet[str], rules: _Rules, is_parsed: bool
) -> dict[str, _Side]:
    """Return by their ids the `named` memories, and all that slots may set at odds with another."""
    policy = rules.policy
    force, claims = (
        pc.field("memory_type").isin(pa.array(sorted(policy.types_with(flag)), pa.string()))
        for flag in ("is_in_force", "is_claim")
    )
    is_named = pc.field("memory_id").isin(pa.array(sorted(named), pa.string()))
    is_compared = is_named | force | (pc.field("source_type") == "explicit")
    is_sure = pc.scalar(True)
    if is_parsed:
        is_plain = pc.field("memory_type").isin(sorted(WITH_SLOTS)) & pc.field("rejected").is_null()
        is_sure = is_named | ~(is_plain & pc.field("chosen").is_null())
    sides = _sides(memories.filter(is_compared & is_sure), rules, is_parsed)
    if any(side.sides.relation == ENDED for side in sides.values()):  # seldom, and then of any claim
        sides |= _sides(memories.filter(claims & ~is_compared & is_sure), rules, is_parsed)
        is_compared = is_compared | claims
    # Most facts word no choice, and only what another turns down, or a technology, sets them at odds with it.
    plain = memories.filter(is_compared & ~is_sure)
    lost = {beginning_of(word) for side in sides.values() for word in side.sides.rejected}
    may_share = rules.parser.may_share(plain["text"], lost)
    return sides | _sides(plain.filter(pa.array(may_share, pa.bool_())), rules, is_parsed)


def _sides(memories: pa.Table, rules: _Rules, is_parsed: bool) -> dict[str, _Side]:
    columns = [*_SIDE_COLUMNS, "project_id", *(["chosen"] if is_parsed else [])]
    return {row["memory_id"]: _side(row, rules) for row in memories.select(columns).to_pylist()}


def _pairs_by_slot(
    sides: Mapping[str, _Side], scopes: Mapping[str, str], policy: Policy
) -> set[tuple[str, str]]:
    """
    Return the pairs, smaller id first, of which one may settle on what the other turns down or has otherwise.

    However far apart their words are: "Chose Redis over Memcached", "The cache uses Memcached".
    """
    holders: dict[tuple[str, ...], list[str]] = {}
    # By scope, so that what one project turns down has no say in another.
    lost = {(scopes[name], word) for name, side in sides.items() for word in side.sides.rejected}
    for name, side in sorted(sides.items()):
        scope, own = scopes[name], side.sides
        own_words = own.about | own.chosen | own.rejected | own.values.keys()
        words = {word for word in own_words if (scope, word) in lost}
        terms: set[tuple[str, ...]] = set()
        if side.is_in_force:
            kinds = {kind for of_value in own.values.values() for kind in of_value}
            terms |= {("thing", word) for word in own.chosen | words}
            terms |= {("kind", kind, word) for kind in kinds for word in own.about or ("",)}
        if not side.is_in_force or own.relation == ENDED:
            terms |= {("practice", word) for word in words}
        for term in terms:
            holders.setdefault((scope, *term), []).append(name)
    most = int(policy.threshold("link_max_memories_per_term"))
    return {pair for names in holders.values() if len(names) <= most for pair in combinations(names, 2)}


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


def _side(row: dict[str, Any], rules: _Rules) -> _Side:
    is_standing = row["memory_type"] in rules.in_force or row["source_type"] == "explicit"
    # The fold has looked for a choice in each fact.
    is_choice = bool(row.get("chosen", True) or row["rejected"]) or row["memory_type"] not in WITH_SLOTS
    sides = rules.parser.stems_of(row["text"], row["rejected"] or "", is_choice=is_choice)
    return _Side(row, rules, sides, is_standing and not _HEADING.search(row["text"]))


def _relation(a: _Side, b: _Side, rules: _Rules) -> tuple[str, str, str, str]:
    """Return (source_id, target_id, edge type, rule) of a pair, `a` the smaller id; no rule: relates_to."""
    policy = rules.policy
    contrary = _contrary(a, b, rules)
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


def _contrary(a: _Side, b: _Side, rules: _Rules) -> str:
    """Return the rule by which two standing facts cannot both hold, or an empty string."""
    if _ends_practice(a, b) or _ends_practice(b, a):
        return PRACTICE_ENDED
    if not (a.is_in_force and b.is_in_force):
        return ""
    # Whatever they leave, two that settle on the same are at odds by their measures alone.
    if not a.sides.chosen & b.sides.chosen and (rule := _contrary_choice(a, b, rules)):
        return rule
    if _turns_around(a, b) or _turns_around(b, a):
        return "negation"
    opposites = rules.vocabulary.opposites_in(a.main, b.main)
    differing = opposites | rules.measures.units.keys() if a.measures and b.measures else opposites
    first, second = a.main.without(differing), b.main.without(differing)
    is_same = bool(first.word_set) and first.word_set == second.word_set
    if opposites:
        is_same |= len(first.word_set & second.word_set) > 1 and nested(first.word_set, second.word_set)
    if not (is_same or _is_about_the_same(first, second, rules.policy)) or has_swapped_word(first, second):
        return ""
    if opposites:
        return "opposite" if rules.vocabulary.opposites_in(a.main, b.main, is_exclusive=True) else ""
    if a.main.negation_count % 2 != b.main.negation_count % 2 and (_denies(a, b) or _denies(b, a)):
        return "negation"
    # Another name with a digit, s1 for s2, is another thing and not another number.
    is_one_thing = nested(a.fact.names - a.fact.numbers, b.fact.names - b.fact.numbers)
    return "number" if is_one_thing and _measure_otherwise(a, b) else ""


def _contrary_choice(a: _Side, b: _Side, rules: _Rules) -> str:
    """Return the rule by which the slots of two facts are at odds, or an empty string."""
    if _chooses_rejected(a, b, rules) and _chooses_rejected(b, a, rules):
        return "each_chooses_what_the_other_rejects"
    if _chooses_rejected(a, b, rules) or _chooses_rejected(b, a, rules):
        return "rejected_there_chosen_here"
    return "other_value" if _has_other_value(a, b, rules) else ""


def _ends_practice(a: _Side, b: _Side) -> bool:
    """Return whether a person gives up in `a` what another explains in `b`: then nobody needs to know how."""
    ended = a.sides.rejected if a.sides.relation == ENDED else frozenset[str]()
    is_explained = len(ended) > 1 and ended <= b.fact.word_set and not ended & (b.sides.rejected | b.negated)
    return is_explained and a.is_persons and not b.is_persons


def _chooses_rejected(a: _Side, b: _Side, rules: _Rules) -> bool:
    """Return whether `b` settles on what `a` turned down, about one subject."""
    lost = a.sides.rejected
    if not lost or lost & (b.sides.rejected | b.negated):
        return False
    if not b.sides.chosen and _names_both(a, b, rules):
        return False
    settled = b.sides.chosen or (frozenset() if b.fact.negation_count else b.fact.word_set)
    if not lost <= settled:
        return False
    # A single word that names no technology may well be another thing of that name.
    is_word = len(lost) == 1 and not lost & rules.parser.stems and not b.sides.chosen
    about = b.sides.about - lost
    if a.sides.about & about and (not is_word or about <= a.sides.about):
        return True
    # A name, a phrase, or each other's choice is said of one thing where none of them names another.
    if a.sides.about and about:
        return False
    is_known = bool(lost & rules.parser.stems) or bool(b.sides.rejected & a.sides.chosen)
    return len(lost) > 1 or (is_known and lost <= b.sides.chosen)


def _names_both(a: _Side, b: _Side, rules: _Rules) -> bool:
    """Return whether `b` also names what `a` settles on: "bcrypt is out, argon2id is in" says the same."""
    lost = a.sides.rejected | WORDING
    others = {name for name in a.fact.names if not rules.vocabulary.fact(name).word_set <= lost}
    is_chosen = bool(a.sides.chosen) and a.sides.chosen <= b.fact.word_set
    return is_chosen or (bool(others) and 2 * len(others & b.fact.names) >= len(others))


def _has_other_value(a: _Side, b: _Side, rules: _Rules) -> bool:
    """Return whether both settle one slot and otherwise: Kotlin there and Scala here, tabs and spaces."""
    if not (a.sides.chosen and b.sides.chosen):
        return False
    is_one_subject = a.sides.about == b.sides.about
    if rules.vocabulary.opposites_in(a.chosen_fact, b.chosen_fact, is_exclusive=True):
        return is_one_subject
    if _has_other_value_of_relation(a.sides, b.sides):
        return True
    # Of two that one names together neither is in the place of the other.
    if len(a.sides.values) != 1 or len(b.sides.values) != 1:
        return False
    [kinds], [others] = a.sides.values.values(), b.sides.values.values()
    if a.sides.values.keys() & b.sides.values.keys() or not kinds & others:
        return False
    is_free = not a.sides.about or not b.sides.about
    if is_one_subject or is_free:
        return bool(kinds & others & rules.parser.single) or (is_one_subject and bool(a.sides.about))
    return False


def _has_other_value_of_relation(a: SlotStems, b: SlotStems) -> bool:
    """Return whether one relation of one subject has two values: "hashed with bcrypt", "with Argon2"."""
    is_one_relation = bool(a.relation) and a.relation == b.relation and bool(a.about) and a.about == b.about
    # "Stored in Parquet", "stored in the lake": a format that is known and a place go together.
    return is_one_relation and bool(a.values) == bool(b.values)


def _denies(a: _Side, b: _Side) -> bool:
    """Return whether `a` says not to what `b` says: "X, not Y" says nothing against X."""
    return bool((a.negated - b.negated) & b.fact.word_set)


def _turns_around(a: _Side, b: _Side) -> bool:
    """Return whether `b` denies what `a` is for: "ruff, not flake8" and "not ruff; flake8"."""
    lost, first, second = a.sides.rejected, a.fact.word_set, b.fact.word_set
    is_same = bool(lost) and nested(first, second) and len(first & second) > 1
    return is_same and bool(b.negated - lost) and not lost & (b.negated | b.sides.rejected)


def _measure_otherwise(a: _Side, b: _Side) -> bool:
    """Return whether both measure in one unit, and one has a number of it that the other has not."""
    units = {unit for unit, _ in a.measures} & {unit for unit, _ in b.measures}
    first, second = ({each for each in side.measures if each[0] in units} for side in (a, b))
    return not (first <= second or second <= first)


def _is_about_the_same(a: Fact, b: Fact, policy: Policy) -> bool:
    """Return whether two facts share most of their words."""
    enough = policy.threshold("relation_min_words")
    least = policy.threshold("relation_word_overlap")
    return len(a.word_set & b.word_set) >= enough and share_of_fewer(a.word_set, b.word_set) >= least
