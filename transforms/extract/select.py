"""The budget of a session: candidates are scored, and the best that say something new become memories."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cortex.transforms.extract.candidate import PERSONS_LAYERS, Candidate
from cortex.transforms.extract.settled import Rival
from cortex.transforms.extract.surroundings import with_surroundings
from cortex.transforms.policy import Policy
from cortex.transforms.words.overlap import share_of_fewer
from cortex.transforms.words.scripts import long_words

# Nothing that is scored is certain, and what is left out stays below what is shown by this much at least, so
# that rounding to three decimals shows nothing of it.
SUREST = 0.95
HIDDEN_BY = 0.01
NO_STATEMENT = "no_statement"  # the signal of what cannot be read alone


@dataclass(frozen=True)
class Budget:
    """How much of a session may be shown, and from which chance on; from thresholds.csv."""

    memories: int
    chars: int
    least_chance: float
    same_words_share: float
    least_shown: float

    @classmethod
    def of(cls, policy: Policy) -> "Budget":
        """Return the budget that the policy sets."""
        return cls(
            int(policy.threshold("session_memories_max")),
            int(policy.threshold("session_chars_max")),
            policy.threshold("extract_least_chance"),
            policy.threshold("extract_same_words_share"),
            policy.threshold("shown_min_confidence"),
        )


@dataclass(frozen=True)
class Taken:
    """What of a session's budget is spent before: by memories that stay, and by forgotten ones (`gaps`)."""

    rivals: tuple[Rival, ...] = ()
    gaps: int = 0


def weights_of(policy: Policy) -> dict[str, float]:
    """Return the weight of each signal, in log-odds, `bias` included."""
    return {str(row["signal"]): float(row["weight"]) for row in policy.tables["signal_weights"].to_pylist()}


def chance(signals: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """
    Return the probability, 0 to 1, that a careful colleague would have kept a candidate.

    A logistic regression over the dense labels (benchmarks/fit_signal_weights.py); a signal without a weight
    counts for nothing.
    """
    points = sum(weights.get(name, 0.0) * value for name, value in sorted(signals.items()))
    return 1.0 / (1.0 + math.exp(-(weights["bias"] + points)))


def is_memory(candidate: Candidate) -> bool:
    """Return whether a candidate would make a memory by itself; steps of a plan go with their plan."""
    return candidate.memory_type is not None and candidate.step_status is None


def confidences(
    candidates: Sequence[Candidate], budget: Budget, weights: Mapping[str, float], taken: Taken = Taken()
) -> list[float]:
    """
    Return the confidence of each candidate of one session, 0 to 1, in the order given.

    Candidates that make no memory and those that are sure of themselves keep their own. Of the others those
    with a chance of `least_chance` or more are taken, best first, until the budget is spent: their confidence
    is their chance. The rest, and what a later turn overturned, stays below `least_shown`. Steps of a plan go
    with their plan. What was `taken` before spends the budget in the order of its chances too.
    """
    chances = _chances(candidates, weights)
    chosen = _chosen(candidates, chances, budget, taken)
    values = [
        _confidence(candidate, chances[index], budget.least_shown, index in chosen)
        for index, candidate in enumerate(candidates)
    ]
    plans: dict[str, float] = defaultdict(float)
    plans.update((rival.subject, rival.confidence) for rival in taken.rivals if rival.subject)
    for candidate, value in zip(candidates, values, strict=True):
        if candidate.subject and candidate.step_status is None:
            plans[candidate.subject] = max(plans[candidate.subject], value)
    return [
        plans[candidate.subject] if candidate.step_status is not None and candidate.subject else value
        for candidate, value in zip(candidates, values, strict=True)
    ]


def _chances(candidates: Sequence[Candidate], weights: Mapping[str, float]) -> list[float]:
    memories = [candidate for candidate in candidates if is_memory(candidate)]
    given = iter(with_surroundings(memories))
    return [chance(next(given), weights) if is_memory(candidate) else 0.0 for candidate in candidates]


def _confidence(candidate: Candidate, chance: float, least_shown: float, is_chosen: bool) -> float:
    if is_never_shown(candidate) and candidate.memory_type is not None:
        return round(min(least_shown - HIDDEN_BY, chance), 3)
    if candidate.confidence is not None:
        return candidate.confidence
    if is_chosen:
        return round(min(SUREST, chance), 3)
    return round(min(least_shown - HIDDEN_BY, chance), 3)


def _chosen(
    candidates: Sequence[Candidate], chances: Sequence[float], budget: Budget, before: Taken
) -> set[int]:
    """Return the positions of the candidates that the budget takes: the likeliest that say something new."""
    certain = [candidate for candidate in candidates if _is_certain(candidate, budget.least_shown)]
    # A plan is titled with what it is for, and a record of a session sums it up: facts beside them say more.
    known_words = [
        (_is_persons(candidate), long_words(candidate.text))
        for candidate in certain
        if candidate.subject is None
    ]
    known_words += [(False, long_words(rival.text)) for rival in before.rivals if rival.subject is None]
    chars = sum(len(candidate.text) for candidate in certain)
    spent = len(certain) + before.gaps
    # At the same chance those of before, at positions below zero, come first.
    queue = [(-rival.confidence, at - len(before.rivals)) for at, rival in enumerate(before.rivals)]
    queue += [
        (-chances[at], at)
        for at, candidate in enumerate(candidates)
        if _competes(candidate) and chances[at] >= max(budget.least_chance, budget.least_shown)
    ]
    taken: set[int] = set()
    for _, at in sorted(queue):
        if spent >= budget.memories:
            break
        text = before.rivals[at].text if at < 0 else candidates[at].text
        if at >= 0:
            # The answer repeats the order, which is the person's own and is not given up for it.
            words, is_persons = long_words(text), _is_persons(candidates[at])
            is_new = all(
                share_of_fewer(words, other) <= budget.same_words_share
                for persons, other in known_words
                if persons or not is_persons
            )
            if not is_new or chars + len(text) > budget.chars:
                continue
            taken.add(at)
            known_words.append((is_persons, words))
        chars += len(text)
        spent += 1
    return taken


def is_never_shown(candidate: Candidate) -> bool:
    """
    Return whether a candidate is stored only: a later turn closes it, or nobody can read it alone.

    Of progress in prose the outcome record says what lasts: of 46 such facts read one by one 6 could be kept,
    and in their place the facts shown hold .04 more of what is worth keeping.
    """
    if candidate.memory_type == "progress" and candidate.layer.startswith("layer2"):
        return True
    return candidate.overturned_at is not None or candidate.signals.get(NO_STATEMENT, 0.0) >= 1.0


def _is_persons(candidate: Candidate) -> bool:
    return candidate.layer.endswith(PERSONS_LAYERS)


def _competes(candidate: Candidate) -> bool:
    is_free = candidate.confidence is None and not is_never_shown(candidate)
    return is_free and is_memory(candidate)


def _is_certain(candidate: Candidate, least_shown: float) -> bool:
    is_sure = candidate.confidence is not None and candidate.confidence >= least_shown
    return is_memory(candidate) and is_sure and not is_never_shown(candidate)
