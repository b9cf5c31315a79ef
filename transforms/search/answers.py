"""Whether anything that was found answers a question at all, so that nonsense finds nothing (spec 10.2)."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cortex.transforms.policy import Policy
from cortex.transforms.search.index_text import index_words, setting
from cortex.transforms.words.facts import stem

_WHOLE = ("answer_cosine", "answer_share")


@dataclass(frozen=True)
class Nearness:
    """
    How near a result is to its question.

    `share` is the part of the weight of the question's words that it has, `names` the part of its names and
    rare words (1 where it has none), `cosine` its similarity by meaning, None where that is not known.
    """

    share: float
    cosine: float | None
    names: float = 1.0


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
        held = {stem(word) for word in index_words(indexed)}
        total = sum(self.weights.values())
        return sum(weight for word, weight in self.weights.items() if word in held) / total if total else 0.0

    def names_in(self, indexed: str) -> float:
        """Return the part of the question's names and rare words that a row has: 0 to 1, 1 of none."""
        names = {word for word, weight in self.weights.items() if weight >= self.rare}
        held = {stem(word) for word in index_words(indexed)}
        return len(names & held) / len(names) if names else 1.0


def is_answered(results: Iterable[Nearness], policy: Policy, model: str) -> bool:
    """
    Return whether any of `results` is near enough to its question to be shown.

    Of each, share and cosine add up, each by how much of it alone would do: `answer_cosine` and
    `answer_share` of the model's row in calibration.csv; what no result has of the question's names is taken
    away, `missing_names` of ranking.csv where all are missing. Without a cosine the share must reach
    `answer_share_alone`. A model that has no row hides nothing, nor does a number of 0.
    """
    rows = list(results)
    missing = 1 - max((row.names for row in rows), default=1.0)
    cost = setting(policy, "missing_names") * missing
    return any(_certainty(row, cost, policy, model) >= 1 for row in rows)


def _certainty(row: Nearness, cost: float, policy: Policy, model: str) -> float:
    if row.cosine is None or not model:
        return _part(row.share, setting(policy, "answer_share_alone"))
    calibration = policy.rows["calibration"].get((model,), {})
    whole_cosine, whole_share = (float(calibration.get(name) or 0.0) for name in _WHOLE)
    return _part(row.cosine, whole_cosine) + _part(row.share, whole_share) - cost


def _part(value: float, whole: float) -> float:
    return max(value, 0.0) / whole if whole else math.inf


def _gate(policy: Policy, name: str) -> float:
    return float(policy.rows["prompt_gate"][(name,)]["value"] or 0.0)
