"""Where a candidate stands among the others of its session: the signals that no passage shows by itself."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from heapq import nlargest

from cortex.transforms.extract.candidate import PERSONS_LAYERS, Candidate, line_of
from cortex.transforms.words.scripts import latin_length, long_words

# Candidates that share fewer words than this many sessions' worth are compared; a word of half of a session's
# candidates tells no two of them apart and would compare each with each.
COMMON_SHARE, COMMON_LEAST = 0.25, 20
MANY = 64  # candidates; from there on a session counts as long
MANY_OF_TURN = 16
MANY_WORDS = 48
WORD_CHARS = 7  # with the space after it
LAST_PLACES = 8
NEAREST = 8
# In a session of three candidates each is central: the shorter the session, the nearer to the mean of all
# candidates it is counted (half way at this many).
FEW, MEAN_CENTRALITY = 12, 0.35
STEM_CHARS = 6  # "commit", "committed" and "commits" are one word here


def with_surroundings(candidates: Sequence[Candidate]) -> list[dict[str, float]]:
    """
    Return the signals of each candidate of one session, with those of its place in it, in the order given.

    Adds its layer, type and kind of turn as names; how far into the session it was said, how many came with
    and after it (all 0 to 1); and how much of its wording others share: all, earlier and later ones, and
    those of the person (weighted cosine of words, 0 to 1).
    """
    if not candidates:
        return []
    order = sorted(range(len(candidates)), key=lambda at: _moment(candidates[at]))
    rank = {at: place for place, at in enumerate(order)}
    last_line = max(line_of(candidate.turn) for candidate in candidates)
    of_turn = Counter(str(candidate.turn["turn_id"]) for candidate in candidates)
    last_turn = str(candidates[order[-1]].turn["turn_id"])
    shared = _Shared(candidates, rank)
    signals = []
    for at, candidate in enumerate(candidates):
        turn_id = str(candidate.turn["turn_id"])
        signals.append(
            {
                **candidate.signals,
                f"layer_{_layer(candidate)}": 1.0,
                f"type_{candidate.memory_type}": 1.0,
                f"turn_{candidate.turn['kind']}": 1.0,
                "place": line_of(candidate.turn) / max(1, last_line),
                "is_of_last_turn": float(turn_id == last_turn),
                "is_among_last": max(0.0, 1 - (len(order) - 1 - rank[at]) / LAST_PLACES),
                "many_of_turn": _log_share(of_turn[turn_id], MANY_OF_TURN),
                "many_of_session": _log_share(len(candidates), MANY),
                "says_much": _log_share(int(latin_length(candidate.text) / WORD_CHARS), MANY_WORDS),
                "rests_on_many": float(len(set(candidate.lines)) > 1),
                **shared.of(at),
            }
        )
    return signals


def _moment(candidate: Candidate) -> tuple[str, int, int, str]:
    turn = candidate.turn
    return str(turn["file"]), line_of(turn), candidate.position, candidate.text


def _layer(candidate: Candidate) -> str:
    name = candidate.layer
    if name.startswith("layer2:"):  # the language is no evidence of worth
        return "layer2_user" if name.endswith(PERSONS_LAYERS) else "layer2"
    return name.replace(":", "_").lower()


def _log_share(count: int, most: int) -> float:
    return min(1.0, math.log1p(count) / math.log1p(most))


class _Shared:
    """How alike the candidates of a session are: cosines over words, each weighted by how rare it is here."""

    def __init__(self, candidates: Sequence[Candidate], rank: Mapping[int, int]) -> None:
        words = [{word[:STEM_CHARS] for word in long_words(candidate.text)} for candidate in candidates]
        counts = Counter(word for each in words for word in each)
        weight = {word: math.log((1 + len(words)) / count) + 0.1 for word, count in counts.items()}
        norms = [math.sqrt(sum(weight[word] ** 2 for word in each)) or 1.0 for each in words]
        common = max(COMMON_LEAST, COMMON_SHARE * len(words))
        places: dict[str, list[int]] = defaultdict(list)
        for at, each in enumerate(words):
            for word in sorted(each):
                if counts[word] <= common:
                    places[word].append(at)
        self._centre: dict[str, float] = defaultdict(float)
        for at, each in enumerate(words):
            for word in each:
                self._centre[word] += weight[word] / norms[at]
        self._square = sum(value**2 for value in self._centre.values())
        self.words, self._weight, self._norms, self._places, self._rank = words, weight, norms, places, rank
        self._is_person = [candidate.layer.endswith(PERSONS_LAYERS) for candidate in candidates]

    def of(self, at: int) -> dict[str, float]:
        """Return how alike a candidate is to the session's mean and to the nearest of others, 0 to 1."""
        products: dict[int, float] = defaultdict(float)
        central = 0.0
        for word in sorted(self.words[at]):
            central += self._weight[word] * self._centre.get(word, 0.0)
            for other in self._places.get(word, ()):
                products[other] += self._weight[word] ** 2
        products.pop(at, None)
        alikes: list[float] = []
        nearest = {"is_like_earlier": 0.0, "is_like_later": 0.0, "is_like_person": 0.0}
        for other, product in products.items():
            alike = product / (self._norms[at] * self._norms[other])
            alikes.append(alike)
            side = "is_like_earlier" if self._rank[other] < self._rank[at] else "is_like_later"
            nearest[side] = max(nearest[side], alike)
            if self._is_person[other]:
                nearest["is_like_person"] = max(nearest["is_like_person"], alike)
        nearest["is_like_many"] = sum(nlargest(NEAREST, alikes)) / NEAREST
        # Of the mean of the others: a session of one candidate has no middle.
        alike = central / self._norms[at]
        rest = math.sqrt(max(0.0, self._square - 2 * alike + 1))
        weight = len(self.words) / (len(self.words) + FEW)
        central = max(0.0, alike - 1) / rest if rest > 1e-6 else 0.0
        return {"is_central": weight * central + (1 - weight) * MEAN_CENTRALITY, **nearest}
