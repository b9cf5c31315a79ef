"""The budget of a session: candidates are scored, and the best that say something new become memories."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from cortex.transforms.extract.candidate import Candidate
from cortex.transforms.extract.settled import Rival
from cortex.transforms.policy import Policy
from cortex.transforms.words.overlap import share_of_fewer
from cortex.transforms.words.scripts import long_words

# Shown memories lie between `shown_min_confidence` and SUREST; only tags are certain. What is left out stays
# below by this much at least, so that rounding to three decimals shows nothing of it.
SUREST = 0.95
HIDDEN_BY = 0.01
NO_STATEMENT = "no_statement"  # the signal of what cannot be read alone


@dataclass(frozen=True)
class Budget:
    """How much of a session may be shown, and what a choice costs; from thresholds.csv."""

    memories: int
    chars: int
    least_score: float
    same_turn_penalty: float
    same_words_share: float
    least_shown: float

    @classmethod
    def of(cls, policy: Policy) -> "Budget":
        """Return the budget that the policy sets."""
        return cls(
            int(policy.threshold("session_memories_max")),
            int(policy.threshold("session_chars_max")),
            policy.threshold("extract_least_score"),
            policy.threshold("extract_same_turn_penalty"),
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


def score(signals: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return the log-odds that a candidate is worth keeping."""
    return weights["bias"] + sum(weights.get(name, 0.0) * value for name, value in signals.items())


def confidences(
    candidates: Sequence[Candidate], budget: Budget, weights: Mapping[str, float], taken: Taken = Taken()
) -> list[float]:
    """
    Return the confidence of each candidate of one session, 0 to 1, in the order given.

    Candidates that make no memory and those that are sure of themselves keep their own. Of the others the
    best are taken one by one until the budget is spent: at least `least_shown`; the rest stays below. Steps
    of a plan go with their plan. What was `taken` before spends the budget in the order of its points too.
    """
    chosen = _chosen(
        candidates, [score(candidate.signals, weights) for candidate in candidates], budget, taken
    )
    values = [
        _confidence(candidate, score(candidate.signals, weights), budget.least_shown, index in chosen)
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


def _confidence(candidate: Candidate, points: float, least_shown: float, is_chosen: bool) -> float:
    if is_never_shown(candidate) and candidate.memory_type is not None:
        return round(least_shown - HIDDEN_BY, 3)
    if candidate.confidence is not None:
        return candidate.confidence
    chance = 1.0 / (1.0 + math.exp(-points))
    if is_chosen:
        return round(min(SUREST, least_shown + (1 - least_shown) * chance), 3)
    return round(max(0.0, min(least_shown - HIDDEN_BY, chance)), 3)


def _chosen(
    candidates: Sequence[Candidate], points: Sequence[float], budget: Budget, before: Taken
) -> set[int]:
    """Return the positions of the candidates that the budget takes: greedy, with a price on repetition."""
    certain = [candidate for candidate in candidates if _is_certain(candidate, budget.least_shown)]
    # A plan is titled with the request it answers, which says more than the title: both may be shown.
    known_words = [long_words(candidate.text) for candidate in certain if candidate.subject is None]
    known_words += [long_words(rival.text) for rival in before.rivals if rival.subject is None]
    chars = sum(len(candidate.text) for candidate in certain)
    spent = len(certain) + before.gaps
    taken: set[int] = set()
    per_turn: Counter[str] = Counter()
    # Best first, with the number of memories its turn had given by then; a stale entry is priced again.
    # Those of before have positions below zero: at the same points they come first.
    heap = [
        (-points[i], i, 0)
        for i, candidate in enumerate(candidates)
        if _competes(candidate) and points[i] >= budget.least_score
    ]
    heap += [(-rival.points, at - len(before.rivals), 0) for at, rival in enumerate(before.rivals)]
    heapify(heap)
    while heap and spent < budget.memories:
        _, best, price = heappop(heap)
        if best < 0:
            chars += len(before.rivals[best].text)
            spent += 1
            continue
        turn_id = candidates[best].turn["turn_id"]
        if price != per_turn[turn_id]:
            heappush(
                heap, (budget.same_turn_penalty * per_turn[turn_id] - points[best], best, per_turn[turn_id])
            )
            continue
        words = long_words(candidates[best].text)
        fits = chars + len(candidates[best].text) <= budget.chars
        if fits and all(share_of_fewer(words, other) <= budget.same_words_share for other in known_words):
            taken.add(best)
            known_words.append(words)
            chars += len(candidates[best].text)
            per_turn[turn_id] += 1
            spent += 1
    return taken


def is_never_shown(candidate: Candidate) -> bool:
    """Return whether a later turn closes a candidate, or nobody can read it alone: it is stored only."""
    return candidate.overturned_at is not None or candidate.signals.get(NO_STATEMENT, 0.0) >= 1.0


def _competes(candidate: Candidate) -> bool:
    is_free = candidate.confidence is None and not is_never_shown(candidate)
    return is_free and candidate.memory_type is not None and candidate.step_status is None


def _is_certain(candidate: Candidate, least_shown: float) -> bool:
    is_memory = candidate.memory_type is not None and candidate.step_status is None
    is_valid = is_memory and not is_never_shown(candidate)
    return is_valid and candidate.confidence is not None and candidate.confidence >= least_shown
