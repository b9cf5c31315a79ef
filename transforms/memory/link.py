"""Edges between memories: who is near whom, and by rules without a model, how they relate (spec 7)."""

import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cortex.transforms.database import query
from cortex.transforms.identity import content_id
from cortex.transforms.memory.neighbours import Pairs, sharing_pairs, similar_pairs, with_vector
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import BY_A_PERSON, EDGES
from cortex.transforms.words.facts import Fact, Vocabulary
from cortex.transforms.words.overlap import nested, share_of_fewer
from cortex.transforms.words.reversal import Reversals

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
    beside: frozenset[str]
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
        vocabulary.fact(_turned_down(row["rejected"])).word_set,
        reversals.left_in(row["text"], vocabulary),
        vocabulary.negated_in(_CONTRAST.sub("", row["text"])),
        vocabulary.fact(_CONTRAST.sub("", row["text"])).word_set,
        vocabulary.fact(" ".join(_CONTRAST.findall(row["text"]))).word_set,
        frozenset(row["files"]),
        frozenset(evidence["turn_id"] for evidence in row["evidence"]),
    )


def _turned_down(rejected: str | None) -> str:
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
    turned = vocabulary.opposites_in(a.fact, b.fact)
    if turned and _is_about_the_same(a.fact, b.fact, policy, without=turned):
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
    return bool(a.beside and b.beside) and a.beside <= b.chosen and b.beside <= a.chosen


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
