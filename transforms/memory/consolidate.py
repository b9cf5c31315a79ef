"""Which memories say the same, and the one text that keeps what each of them says (spec 9, no model)."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cortex.transforms.errors import NotFound
from cortex.transforms.identity import content_id
from cortex.transforms.journal_entries import Checkpoint, Merge, Unmerge, dismissals_in_force, entries_in
from cortex.transforms.memory.link import FormerLinks, Pairs, own_rules, similar_pairs, with_vector
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import JOURNAL, TRUSTS, Row, values
from cortex.transforms.words.facts import Fact, Vocabulary, is_exchange, may_be_same, word_similarity
from cortex.transforms.words.sentences import MEMORY, nested, sentences, share_of_fewer
from cortex.transforms.words.slots import SlotParser, SlotStems, are_opposed


@dataclass(frozen=True)
class _Group:
    """Memories taken for one fact, and the text that stands for them."""

    members: tuple[str, ...]
    text: str
    fact: Fact
    sides: tuple[SlotStems, ...]  # of each member
    trust: int  # the lowest of the members', as a position in TRUSTS


class _Groups(dict[str, _Group]):
    """The group that each memory is in: at first its own, made where a rule asks, as few are near another."""

    def __init__(self, rows: Mapping[str, Row], vocabulary: Vocabulary, parser: SlotParser) -> None:
        super().__init__()
        self._rows, self._vocabulary, self._parser = rows, vocabulary, parser

    def __missing__(self, name: str) -> _Group:
        row = self._rows[name]
        sides = (self._parser.stems_of(row["text"], row["rejected"] or ""),)
        fact = self._vocabulary.fact(row["text"])
        self[name] = _Group((name,), row["text"], fact, sides, TRUSTS.index(row["trust"]))
        return self[name]


@dataclass(frozen=True)
class SameStatements:
    """What says the same, by a language model: pairs by id, and the one text of groups that have one."""

    pairs: Pairs
    texts: Mapping[frozenset[str], str]


NO_SAME_STATEMENTS = SameStatements({}, {})


@dataclass(frozen=True)
class _Judged:
    """Pairs that say the same, by a language model; `is_reviewed` where a person looks at each merge."""

    pairs: frozenset[tuple[str, str]]
    is_reviewed: bool


def wanted(memories: pa.Table, extractions_since: int, policy: Policy) -> bool:
    """
    Return whether a run should consolidate without being asked (spec 9.1).

    Takes MEMORIES and the number of sessions extracted since the last consolidation.
    """
    active_count = memories.filter(pc.field("status") == "active").num_rows
    return bool(
        extractions_since >= policy.threshold("consolidate_every_extractions")
        or active_count > policy.threshold("consolidate_above_active")
    )


def propose(
    memories: pa.Table,
    vectors: pa.Table,
    policy: Policy,
    model: str,
    now: datetime,
    actor: str = "consolidate",
    undone: pa.Table | None = None,
    same: SameStatements = NO_SAME_STATEMENTS,
    is_reviewed: bool = False,
    linked: FormerLinks | None = None,
) -> pa.Table:
    """
    Return JOURNAL rows of kind merge, one per group of memories that say the same, ordered by entry_id.

    Takes MEMORIES and VECTORS. A group is active, of one type and scope, and nothing in it was remembered,
    edited or pinned by a person. Every two members are above the similarity for merging (by vectors where
    both have one, else by words), and none adds another number, name, negation or swapped word to what it
    joins, says its words in another order, or settles on what another turns down. The merged text is the
    longest member's plus the sentences of the others that say more.

    Pairs of `same` say the same in other words, by a language model: where the words of one hold each number
    and name of the other and are no less trusted, they stand for both as they are; if neither does, only a
    person may put them together (`is_reviewed`), under the words of both. A whole group with one text, of the
    words of its members alone, goes under that text.

    What the rows propose, once folded, is not proposed again; nor is a group that holds one taken back or
    dismissed by the JOURNAL rows `undone`: a person knew better.

    Where these memories were `linked` by this policy and model, only those with many edges are compared: the
    others have an edge to each that is near enough. The rows are the same.
    """
    # A merge takes the longest member's words and the lowest trust: what a person worded stays theirs.
    # What a team reviewed goes when its file goes, which a merge would hide.
    is_on_purpose = pc.field("is_pinned") | pc.field("source_type").isin(["explicit", "team"])
    is_mergeable = (pc.field("status") == "active") & ~is_on_purpose & (pc.field("memory_type") != "code")
    mergeable = memories.filter(is_mergeable).sort_by("memory_id")
    vocabulary, parser = Vocabulary.of(policy), SlotParser.of(policy)
    rows = {row["memory_id"]: row for row in mergeable.select(_READ).to_pylist()}
    groups = _Groups(rows, vocabulary, parser)
    pairs = _candidates(mergeable, vectors, policy, model, groups, linked)
    judged = {pair: 1.0 for pair in same.pairs if _is_one_of_type(pair, rows)}
    groups |= _worded(groups, same.texts, rows, vocabulary)
    merged = _merged(groups, pairs | judged, _Judged(frozenset(judged), is_reviewed), vocabulary, policy)
    taken_back = _taken_back(undone) if undone is not None else []
    entries = [
        _entry(group, rows[group.members[0]], now, actor)
        for group in merged
        if not any(known <= set(group.members) for known in taken_back)
    ]
    return JOURNAL.of(sorted(entries, key=lambda entry: str(entry["entry_id"])))


def to_undo(journal: pa.Table, checkpoint: str | None) -> list[dict[str, Any]]:
    """
    Return the merges to take back, latest first: those of the last consolidation, or all since a checkpoint.

    Takes JOURNAL. Raises NotFound when no checkpoint has that name.
    """
    newest_first = journal.sort_by([("recorded_at", "descending"), ("entry_id", "descending")])
    rows = newest_first.to_pylist()
    undone = {row["memory_id"] for row in rows if row["kind"] == "unmerge"}
    merges = [row for row in rows if row["kind"] == "merge" and row["memory_id"] not in undone]
    if checkpoint is None:
        return [row for row in merges if row["recorded_at"] == merges[0]["recorded_at"]]
    named = {
        entry.name: row["recorded_at"] for row, entry in reversed([*entries_in(newest_first, Checkpoint)])
    }
    if checkpoint not in named:
        raise NotFound(
            f"there is no checkpoint '{checkpoint}'.",
            f"Known: {', '.join(sorted(named)) or 'none'}. Without --to, the last consolidation is undone.",
        )
    return [row for row in merges if row["recorded_at"] > named[checkpoint]]


def _taken_back(journal: pa.Table) -> list[set[str]]:
    undone = {row["memory_id"] for row, _ in entries_in(journal, Unmerge)}
    dismissed = [set(entry.memory_ids) for entry in dismissals_in_force(journal) if entry.item == "merge"]
    merges = [entry for row, entry in entries_in(journal, Merge) if row["memory_id"] in undone]
    return dismissed + [set(entry.members) for entry in merges]


def _worded(
    groups: Mapping[str, _Group],
    texts: Mapping[frozenset[str], str],
    rows: Mapping[str, Row],
    vocabulary: Vocabulary,
) -> dict[str, _Group]:
    """Return, by member, the groups that a language model found one text for, unless they say opposites."""
    worded: dict[str, _Group] = {}
    for members, text in sorted(texts.items(), key=lambda item: sorted(item[0])):
        ids = tuple(sorted(members))
        if not members <= rows.keys() or len({rows[name]["memory_type"] for name in ids}) > 1:
            continue
        parts = [groups[name] for name in ids]
        if any(
            _is_turned(a.fact, b.fact, vocabulary) or _are_opposed(a, b) for a, b in combinations(parts, 2)
        ):
            continue
        sides = tuple(each for part in parts for each in part.sides)
        joined = _Group(ids, text, vocabulary.fact(text), sides, min(part.trust for part in parts))
        worded |= dict.fromkeys(ids, joined)
    return worded


def _is_turned(a: Fact, b: Fact, vocabulary: Vocabulary) -> bool:
    """Return whether one says the opposite of the other, or the same words the other way round."""
    if a.negation_count != b.negation_count or vocabulary.has_opposites(a, b) or is_exchange(a, b):
        return True
    common = a.names & b.names or a.word_set & b.word_set if a.negation_count else a.word_set & b.word_set
    orders = [[word for word in dict.fromkeys(fact.words) if word in common] for fact in (a, b)]
    return (a.word_set == b.word_set or a.negation_count > 0) and orders[0] != orders[1]


def _are_opposed(a: _Group, b: _Group) -> bool:
    """Return whether a member of one settles on what a member of the other turns down."""
    return any(are_opposed(x, y) for x in a.sides for y in b.sides)


_READ = ["memory_id", "project_id", "memory_type", "text", "rejected", "trust"]


def _is_one_of_type(pair: tuple[str, str], rows: Mapping[str, Row]) -> bool:
    return set(pair) <= rows.keys() and len({rows[name]["memory_type"] for name in pair}) == 1


def _candidates(
    memories: pa.Table,
    vectors: pa.Table,
    policy: Policy,
    model: str,
    groups: _Groups,
    linked: FormerLinks | None,
) -> Pairs:
    """Return the similarities above the merge threshold within each type and scope."""
    floor, most = policy.threshold("merge_above_similarity"), int(policy.threshold("merge_neighbours"))
    pairs: Pairs = {}
    crowded = None
    if linked is not None and policy.threshold("link_above_similarity") < floor:
        pairs, crowded = _linked_pairs(memories, floor, policy, linked)
    for memory_type in pc.unique(memories["memory_type"]).to_pylist():
        of_type = memories.filter(pc.field("memory_type") == memory_type)
        near = similar_pairs(of_type, vectors, policy, model, floor=floor, neighbours=most, of=crowded)
        known = with_vector(of_type, vectors, model)
        pairs |= near
        pairs |= _by_words(of_type, known, floor, groups)
    return {pair: similarity for pair, similarity in pairs.items() if similarity > floor}


def _linked_pairs(memories: pa.Table, floor: float, policy: Policy, linked: FormerLinks) -> tuple[Pairs, Any]:
    """
    Return the similarity of near pairs of MEMORIES that edges tell, and who may be near more than those.

    Each memory has an edge to its nearest `link_neighbours`: where fewer are near, these are all. What has no
    vector was linked by other terms, and an edge that was changed afterwards tells no similarity.
    """
    most = int(min(policy.threshold("link_neighbours"), policy.threshold("merge_neighbours")))
    edges = linked.edges.filter(~pc.field("edge_type").isin(["supersedes", "source_of"]))
    is_own = pc.is_in(edges["rule"], own_rules(policy))
    others, own = edges.filter(pc.invert(is_own)), edges.filter(is_own)
    near = own.filter(pc.field("strength") >= floor)
    counts = Counter(name for end in _ENDS for name in values(near, end))
    full = pa.array([name for name, count in counts.items() if count >= most], pa.string())
    unknown = linked.memories.filter(~pc.field("has_vector"))["memory_id"].combine_chunks()
    of_others = (others[end].combine_chunks() for end in _ENDS)
    crowded = pa.concat_arrays([full, unknown, *of_others])
    types = dict(zip(values(memories, "memory_id"), values(memories, "memory_type"), strict=True))
    ends = zip(*(values(near, end) for end in _ENDS), strict=True)
    pairs = {
        (min(pair), max(pair)): strength
        for pair, strength in zip(ends, values(near, "strength"), strict=True)
        if types.keys() >= set(pair) and types[pair[0]] == types[pair[1]]
    }
    lacking = set(unknown.to_pylist())
    return {pair: strength for pair, strength in pairs.items() if lacking.isdisjoint(pair)}, crowded


_ENDS = ("source_id", "target_id")


def _by_words(memories: pa.Table, known: set[str], floor: float, groups: _Groups) -> Pairs:
    """Return the word similarity of pairs of which one has no vector, found by their rarest words."""
    pairs: Pairs = {}
    for scope in pc.unique(memories["project_id"]).to_pylist():
        ids = [
            str(name) for name in memories.filter(pc.field("project_id") == scope)["memory_id"].to_pylist()
        ]
        if known.issuperset(ids):
            continue
        for a, b in _sharing_a_rare_word(ids, groups, floor):
            if a in known and b in known:
                continue
            similarity = word_similarity(groups[a].fact, groups[b].fact)
            if similarity > floor:
                pairs[a, b] = similarity
    return pairs


def _sharing_a_rare_word(ids: list[str], groups: dict[str, _Group], floor: float) -> set[tuple[str, str]]:
    """
    Return all pairs whose word similarity can pass `floor`, and some more (prefix filtering).

    Two sets with a similarity above t share at least one of the first (1 - t) x n + 1 words of each, when
    words are ordered from rare to common.
    """
    frequency: dict[str, int] = {}
    for name in ids:
        for word in groups[name].fact.word_set:
            frequency[word] = frequency.get(word, 0) + 1
    holders: dict[str, list[str]] = {}
    pairs: set[tuple[str, str]] = set()
    for name in ids:
        words = sorted(groups[name].fact.word_set, key=lambda word: (frequency[word], word))
        for word in words[: int((1 - floor) * len(words)) + 1]:
            others = holders.setdefault(word, [])
            pairs.update((other, name) for other in others)
            others.append(name)
    return pairs


def _merged(
    group_of: _Groups,
    pairs: Pairs,
    judged: _Judged,
    vocabulary: Vocabulary,
    policy: Policy,
) -> list[_Group]:
    """Return the groups of two and more, joined nearest first until no two groups say the same."""
    ordered = sorted(pairs, key=lambda pair: (-pairs[pair], pair))
    is_changing = True
    while is_changing:
        is_changing = False
        for a, b in ordered:
            first, second = group_of[a], group_of[b]
            if first.members == second.members or not _is_complete(first, second, pairs):
                continue
            joined = _joined_or_none(first, second, judged, vocabulary, policy)
            if joined is not None:
                group_of.update(dict.fromkeys(joined.members, joined))
                is_changing = True
    return list({group.members: group for group in group_of.values() if len(group.members) > 1}.values())


def _joined_or_none(
    a: _Group, b: _Group, judged: _Judged, vocabulary: Vocabulary, policy: Policy
) -> _Group | None:
    """Return what two groups are together, by the rules or by a language model; None: they are two facts."""
    if _says_the_same(a, b, vocabulary, policy):
        return _joined(a, b, vocabulary)
    is_judged = all((min(x, y), max(x, y)) in judged.pairs for x in a.members for y in b.members)
    if is_judged and not _is_turned(a.fact, b.fact, vocabulary) and not _are_opposed(a, b):
        return _absorbed(a, b) or (_joined(a, b, vocabulary) if judged.is_reviewed else None)
    return None


def _absorbed(a: _Group, b: _Group) -> _Group | None:
    """Return both under the words of the one that leaves out nothing of the other; None if each does."""
    for kept, other in sorted(((a, b), (b, a)), key=lambda pair: (-len(pair[0].text), pair[0].members)):
        lacks = other.fact.numbers - kept.fact.numbers or other.fact.names - kept.fact.names
        if not lacks and kept.trust >= other.trust:
            members, trust = tuple(sorted(a.members + b.members)), min(a.trust, b.trust)
            return _Group(members, kept.text, kept.fact, a.sides + b.sides, trust)
    return None


def _is_complete(a: _Group, b: _Group, pairs: Pairs) -> bool:
    """Return whether each member of one is near each of the other, so that chains do not swallow a scope."""
    return all((min(x, y), max(x, y)) in pairs for x in a.members for y in b.members)


def _says_the_same(a: _Group, b: _Group, vocabulary: Vocabulary, policy: Policy) -> bool:
    return (
        len(a.fact.word_set & b.fact.word_set) >= policy.threshold("merge_min_words")
        and share_of_fewer(a.fact.word_set, b.fact.word_set) >= policy.threshold("merge_word_overlap")
        and nested(a.fact.numbers, b.fact.numbers)
        and nested(a.fact.names, b.fact.names)
        and all(nested(x.rejected, y.rejected) for x in a.sides for y in b.sides)
        and may_be_same(a.fact, b.fact, vocabulary)
        and not _are_opposed(a, b)
    )


def _joined(a: _Group, b: _Group, vocabulary: Vocabulary) -> _Group:
    shorter, longer = sorted((a, b), key=lambda group: (len(group.text), group.members))
    text = merged_text(longer.text, [shorter.text], vocabulary)
    members = tuple(sorted(a.members + b.members))
    return _Group(members, text, vocabulary.fact(text), a.sides + b.sides, min(a.trust, b.trust))


def merged_text(longest: str, others: Iterable[str], vocabulary: Vocabulary) -> str:
    """
    Return `longest` followed by each sentence of `others` that holds a word, number or name it does not.

    Nothing is reworded, so nothing can be invented.
    """
    text = longest.strip()
    for other in others:
        for sentence in sentences(other, MEMORY):
            known, new = vocabulary.fact(text), vocabulary.fact(sentence)
            if not (
                new.word_set <= known.word_set and new.numbers <= known.numbers and new.names <= known.names
            ):
                text = f"{text}{'' if text.endswith(('.', '!', '?', '。')) else '.'} {sentence.strip()}"
    return text


def _entry(group: _Group, row: dict[str, str], now: datetime, actor: str) -> dict[str, object]:
    scope, memory_type = row["project_id"], row["memory_type"]
    merged_id = content_id("memory", scope, memory_type, "merge", *group.members)
    merge = Merge(list(group.members), group.text, memory_type)
    return merge.to_row(scope, recorded_at=now, memory_id=merged_id, actor=actor)
