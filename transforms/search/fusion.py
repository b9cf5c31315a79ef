"""How the lists of a search become one: fused scores, neighbours that lend score, duplicates folded."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cortex.transforms.policy import Policy
from cortex.transforms.search.index_text import setting
from cortex.transforms.words.overlap import share_of_all, words_in

Scores = NDArray[np.float64]
Line = tuple[str, int]


def fuse(lexical: Scores, similarity: Scores, policy: Policy) -> Scores:
    """
    Return one score per candidate, higher is better, from BM25 scores and cosine similarities.

    `lexical` is NaN where a row was not among the best by words and `similarity` where it has no vector.
    Both are standardised over the candidates (mean 0, deviation 1) and added with the weights of
    ranking.csv; reciprocal ranks are added with `rrf_weight`. A row missing from the words' list counts
    as a score of 0 there, which BM25 gives to rows without any of the words; a row without a vector counts as
    average, so that rows not embedded yet are neither hidden nor favoured.
    """
    by_words = standardised(np.nan_to_num(lexical, nan=0.0))
    by_meaning = standardised(similarity)
    fused = setting(policy, "lexical_weight") * by_words + setting(policy, "vector_weight") * by_meaning
    rrf_weight = setting(policy, "rrf_weight")
    if rrf_weight:
        k = setting(policy, "rrf_k")
        by_rank = reciprocal_ranks(lexical, k) + reciprocal_ranks(similarity, k)
        # Standardised too: the order is the same, and the neighbours' share stays in proportion.
        fused = fused + rrf_weight * standardised(by_rank)
    return fused


def standardised(values: Scores) -> Scores:
    """Return `values` with mean 0 and deviation 1; a missing value (NaN) and equal values become 0."""
    known = ~np.isnan(values)
    if not known.any():
        return np.zeros(len(values))
    deviation = float(values[known].std())
    if deviation < 1e-9:
        return np.zeros(len(values))
    return np.where(known, (values - float(values[known].mean())) / deviation, 0.0)


def reciprocal_ranks(values: Scores, k: float) -> Scores:
    """Return 1 / (k + rank), the highest value at rank 1, equal values sharing the better rank; 0 for NaN."""
    known = ~np.isnan(values)
    ordered = np.sort(-values[known])
    ranks = np.searchsorted(ordered, -values, side="left") + 1
    return np.where(known, 1.0 / (k + ranks), 0.0)


def comparable(bm25: Scores, rows_in_table: int) -> Scores:
    """
    Return BM25 scores divided by the most that one rare word can weigh in a table of that many rows.

    Each table weighs words by its own counts, so that a hit in a table of 20 memories scores far lower than
    the same hit among 2,000 passages. Over ten projects at once the division raises recall@10 from .74 to
    .82, which is what one common table reaches.
    """
    return bm25 / math.log(1 + max(rows_in_table, 1))


@dataclass(frozen=True)
class Places:
    """Where each candidate stands: number of its transcript (-1: no passage), seq, line, and who spoke."""

    file: NDArray[np.int64]
    seq: NDArray[np.int64]
    line: NDArray[np.int64]
    is_person: NDArray[np.bool_]


def lend(scores: Scores, places: Places, policy: Policy) -> Scores:
    """
    Return `scores` with a share of the passages before and after added to each passage.

    A turn of a conversation is often an answer whose question stands in the turn before it. A passage gets
    `neighbour_share` of each neighbour that scores above average, if a person spoke one of the two and
    at most `neighbour_lines` lie between: what the assistant says between two tool calls is no dialogue,
    and lending there cost 5 points of recall@5 in working sessions.
    """
    order = np.lexsort((places.seq, places.file))
    file, is_person = places.file[order], places.is_person[order]
    follows = (file[:-1] >= 0) & (file[1:] == file[:-1]) & (np.diff(places.seq[order]) == 1)
    near = np.diff(places.line[order]) <= setting(policy, "neighbour_lines")
    talking = follows & near & (is_person[1:] | is_person[:-1])
    given = setting(policy, "neighbour_share") * np.maximum(scores[order], 0.0)
    lent = np.zeros(len(scores))
    lent[1:] += np.where(talking, given[:-1], 0.0)
    lent[:-1] += np.where(talking, given[1:], 0.0)
    result = scores.copy()
    result[order] += lent
    return result


@dataclass(frozen=True)
class SearchHit:
    """What folding needs to know of a row: its position, its kind, its text, the lines it rests on."""

    row: int
    is_memory: bool
    text: str
    lines: frozenset[Line]


def folded(candidates: Sequence[SearchHit], policy: Policy, limit: int) -> list[list[int]]:
    """
    Return at most `limit` groups of rows, each to be shown as one result; a group's first row speaks for it.

    Takes candidates best first. Passages of one line, a memory and the passages it rests on, and texts that
    share `duplicate_overlap` of their words become one group at the place of its best row. A memory speaks
    for its group, because it stands by itself. Two memories are folded only if their texts agree: one line
    can hold two facts.
    """
    overlap = setting(policy, "duplicate_overlap")
    groups: list[_Group] = []
    for candidate in candidates:
        words = frozenset(words_in(candidate.text))
        home = next((group for group in groups if group.takes(candidate, words, overlap)), None)
        if home is not None:
            home.add(candidate, words)
        elif len(groups) < limit:
            groups.append(_Group(candidate, words))
    return [group.rows for group in groups]


class _Group:
    def __init__(self, candidate: SearchHit, words: frozenset[str]) -> None:
        self.rows = [candidate.row]
        self.has_memory = candidate.is_memory
        self.lines = set(candidate.lines)
        self.words = [words]

    def takes(self, candidate: SearchHit, words: frozenset[str], overlap: float) -> bool:
        if any(share_of_all(words, own) >= overlap for own in self.words):
            return True
        return not (self.has_memory and candidate.is_memory) and not self.lines.isdisjoint(candidate.lines)

    def add(self, candidate: SearchHit, words: frozenset[str]) -> None:
        if candidate.is_memory and not self.has_memory:
            self.rows.insert(0, candidate.row)
            self.has_memory = True
        else:
            self.rows.append(candidate.row)
        self.lines |= candidate.lines
        self.words.append(words)
