"""Whether anything that was found answers a question at all, so that nonsense finds nothing (spec 10.2)."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cortex.transforms.policy import Policy
from cortex.transforms.search.index_text import index_words, setting
from cortex.transforms.words.facts import stem

_WHOLE = ("answer_cosine", "answer_share")


@dataclass(frozen=True)
class Asked:
    """The words of a question by their stems, each with its weight: how rare the word is in its language."""

    weights: Mapping[str, float]

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
        return cls({word: math.log(rank / common + 1) for word, rank in ranks.items()})

    def share_in(self, indexed: str) -> float:
        """Return the part of the words' weight that a row has, by its text as the index holds it: 0 to 1."""
        held = {stem(word) for word in index_words(indexed)}
        total = sum(self.weights.values())
        return sum(weight for word, weight in self.weights.items() if word in held) / total if total else 0.0


def is_answered(results: Iterable[tuple[float, float | None]], policy: Policy, model: str) -> bool:
    """
    Return whether any of `results` is near enough to its question to be shown.

    Takes (share of the question's words, cosine with it or None) of each. The two add up, each by how much of
    it alone would do: `answer_cosine` and `answer_share` of the model's row in calibration.csv. Without a
    cosine the share must reach `answer_share_alone` of ranking.csv. A model that has no row hides nothing,
    nor does a number of 0.
    """
    return any(_certainty(share, cosine, policy, model) >= 1 for share, cosine in results)


def _certainty(share: float, cosine: float | None, policy: Policy, model: str) -> float:
    if cosine is None or not model:
        return _part(share, setting(policy, "answer_share_alone"))
    calibration = policy.rows["calibration"].get((model,), {})
    whole_cosine, whole_share = (float(calibration.get(name) or 0.0) for name in _WHOLE)
    return _part(cosine, whole_cosine) + _part(share, whole_share)


def _part(value: float, whole: float) -> float:
    return max(value, 0.0) / whole if whole else math.inf


def _gate(policy: Policy, name: str) -> float:
    return float(policy.rows["prompt_gate"][(name,)]["value"] or 0.0)
