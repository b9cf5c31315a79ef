"""Whether anything that was found answers a question at all, so that nonsense finds nothing (spec 10.2)."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cortex.transforms.policy import Policy
from cortex.transforms.search.index_text import index_words, setting
from cortex.transforms.words.facts import stem

# Of an English question hardly more than half of the words are rare ones, of any other nearly all.
_UNKNOWN_SHARE = 0.75
_WHOLE = ("answer_cosine", "answer_share")


@dataclass(frozen=True)
class Nearness:
    """
    How near a result is to its question.

    `words` are those of the question that it has, `share` is their part of the weight of all, `cosine` its
    similarity by meaning, None where that is not known.
    """

    share: float
    cosine: float | None
    words: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Asked:
    """The words of a question by their stems, each with its weight: how rare the word is in its language."""

    weights: Mapping[str, float]
    # What a word weighs that is not among the common ones: a name, mostly.
    rare: float = math.inf

    @classmethod
    def of(cls, words: Sequence[str], word_ranks: Mapping[str, int], policy: Policy) -> "Asked":
        """
        Return `words`, as `query_words` gives them, cut as the index is.

        `word_ranks` gives the words of a language by frequency their place, from 1; any but the first
        `common_words` weigh the most. The numbers are those of recall at a prompt (prompt_gate.csv).
        """
        names = ("rarest_rank", "common_rank", "common_words")
        rarest, common, last = (_gate(policy, name) for name in names)
        known = {word: word_ranks.get(word, rarest) for word in index_words(" ".join(words))}
        ranks = {stem(word): rank if rank <= last else rarest for word, rank in known.items()}
        weights = {word: math.log(rank / common + 1) for word, rank in ranks.items()}
        return cls(weights, math.log(rarest / common + 1))

    def share_in(self, indexed: str) -> float:
        """Return the part of the words' weight that a row has, by its text as the index holds it: 0 to 1."""
        return self.nearness(indexed, None).share

    def nearness(self, indexed: str, cosine: float | None) -> Nearness:
        """Return how near a row is, by its text as the index holds it and its cosine with the question."""
        held = {stem(word) for word in index_words(indexed)}
        total = sum(self.weights.values())
        words = frozenset(self.weights.keys() & held)
        weight = sum(weight for word, weight in self.weights.items() if word in words)
        return Nearness(weight / total if total else 0.0, cosine, words)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names and rare words of the question."""
        return frozenset(word for word, weight in self.weights.items() if weight >= self.rare)

    def missing_names(self, words: frozenset[str]) -> float:
        """Return the part of the question's names and rare words that are not in `words`: 0 to 1."""
        return len(self.names - words) / len(self.names) if self.names else 0.0

    @cached_property
    def is_unknown(self) -> bool:
        """Whether nearly all words are names or rare ones: it is in another language, or names things."""
        return len(self.names) >= _UNKNOWN_SHARE * len(self.weights)

    def names_in(self, row: Nearness) -> int:
        """Return how many names and rare words of the question a row has; a single sign is no name."""
        return sum(len(word) > 1 for word in self.names & row.words)


def is_answered(asked: Asked, results: Iterable[Nearness], policy: Policy, model: str) -> bool:
    """
    Return whether any of `results` is near enough to the question `asked` to be shown.

    Of each, share and cosine add up, each by how much of it alone would do: `answer_cosine` and
    `answer_share` of the model's row in calibration.csv; what no result has of the question's names is taken
    away, `missing_names` of ranking.csv where all are missing. A model that has no row hides nothing, nor
    does a number of 0. Without a model, or where no result has a vector yet, the share alone decides. Of a
    question whose words are nearly all unknown, mostly since it is in another language than the facts, one
    result with `answer_names` of them is enough.
    """
    results = list(results)
    if asked.is_unknown and any(asked.names_in(row) >= setting(policy, "answer_names") for row in results):
        return True
    if not model:
        return _is_answered_by_words(asked, results, policy)
    calibration = policy.rows["calibration"].get((model,), {})
    whole_cosine, whole_share = (float(calibration.get(name) or 0.0) for name in _WHOLE)
    most, certainty, missing = setting(policy, "missing_names"), 0.0, 1.0
    looked_at: list[Nearness] = []
    has_vectors = False
    for row in results:
        missing = min(missing, asked.missing_names(row.words))
        by_meaning = _part(row.cosine, whole_cosine) if row.cosine is not None else 0.0
        certainty = max(certainty, by_meaning + _part(row.share, whole_share))
        # Neither gets worse: the rows behind need no look.
        if certainty - most * missing >= 1:
            return True
        has_vectors = has_vectors or row.cosine is not None
        looked_at.append(row)
    return not has_vectors and _is_answered_by_words(asked, looked_at, policy)


def _is_answered_by_words(asked: Asked, results: Iterable[Nearness], policy: Policy) -> bool:
    """
    Return whether the words of `results` answer: of one of them the share by `answer_share_alone`.

    A single word of the question, all that the results have between them, must have `answer_share_word` of
    its weight. What none of them has of the question's names is taken away as above.
    """
    several, single = setting(policy, "answer_share_alone"), setting(policy, "answer_share_word")
    most, share, words = setting(policy, "missing_names"), 0.0, frozenset[str]()
    for row in results:
        share, words = max(share, row.share), words | row.words
        is_enough = len(words) > 1 or _part(share, single) >= 1
        if is_enough and _part(share, several) - most * asked.missing_names(words) >= 1:
            return True
    return False


def _part(value: float, whole: float) -> float:
    return max(value, 0.0) / whole if whole else math.inf


def _gate(policy: Policy, name: str) -> float:
    return float(policy.rows["prompt_gate"][(name,)]["value"] or 0.0)
