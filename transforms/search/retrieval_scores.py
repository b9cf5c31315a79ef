"""How well rankings find the evidence of queries: recall, reciprocal rank, nDCG, with intervals."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CUTS = (1, 5, 10, 20)
# Nothing behind the last cut counts, also not for the reciprocal rank.
DEPTH = CUTS[-1]
GAIN_CUT = 10
# The two-sided 95 % quantile of the normal distribution.
_Z = 1.959964


@dataclass(frozen=True)
class Share:
    """A mean of `count` values of 0 to 1, with its 95 % interval."""

    value: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Share":
        """
        Return the mean of values of 0 to 1 and Wilson's interval, which is on the safe side for fractions.

        >>> Share.of([1.0] * 8 + [0.0] * 2).as_dict()
        {'value': 0.8, 'low': 0.4902, 'high': 0.9433}
        """
        count = len(values)
        if not count:
            return cls(0.0, 0.0, 1.0, 0)
        mean, z2 = sum(values) / count, _Z * _Z
        middle = (mean + z2 / (2 * count)) / (1 + z2 / count)
        half = _Z / (1 + z2 / count) * math.sqrt(mean * (1 - mean) / count + z2 / (4 * count * count))
        return cls(mean, max(0.0, middle - half), min(1.0, middle + half), count)

    def as_dict(self) -> dict[str, float]:
        """Return it as JSON has it, rounded to four places."""
        return {"value": round(self.value, 4), "low": round(self.low, 4), "high": round(self.high, 4)}


@dataclass(frozen=True)
class Ranking:
    """What one ranking gave a query: ids, best first, each once; its evidence; its category."""

    ids: Sequence[str]
    evidence: Collection[str]
    category: str


def measures(ranking: Ranking) -> dict[str, float]:
    """
    Return each measure of one ranking, 0 to 1.

    `recall_any@k`: any row of the evidence is among the first k; `recall_share@k`: which part of it is;
    `recall_all@k`: all of it is. `mrr`: 1 / rank of the first row of it, 0 behind DEPTH. `ndcg@10`: gains of
    1 for a row of it, discounted by the logarithm of the rank, by what the best order would give.

    >>> values = measures(Ranking(["a", "b", "c"], {"b", "x"}, ""))
    >>> [values[f"recall_{name}"] for name in ("any@1", "any@5", "share@5", "all@5")]
    [0.0, 1.0, 0.5, 0.0]
    >>> values["mrr"], round(values["ndcg@10"], 3)
    (0.5, 0.387)
    """
    ranks = [rank for rank, name in enumerate(ranking.ids[:DEPTH], start=1) if name in ranking.evidence]
    wanted = len(ranking.evidence)
    values: dict[str, float] = {}
    for cut in CUTS:
        held = sum(rank <= cut for rank in ranks)
        values[f"recall_any@{cut}"] = float(held > 0)
        values[f"recall_share@{cut}"] = held / wanted
        values[f"recall_all@{cut}"] = float(held == wanted)
    values["mrr"] = 1 / ranks[0] if ranks else 0.0
    best = sum(_gain(rank) for rank in range(1, min(wanted, GAIN_CUT) + 1))
    values[f"ndcg@{GAIN_CUT}"] = sum(_gain(rank) for rank in ranks if rank <= GAIN_CUT) / best
    return values


def _gain(rank: int) -> float:
    return 1 / math.log2(rank + 1)


class Figures:
    """The measures of one way to search, collected query by query."""

    def __init__(self) -> None:
        self._values: dict[str, dict[str, list[float]]] = {}
        self._answered: list[float] = []
        self._falsely: list[float] = []
        self._seconds: list[float] = []

    def add(self, ranking: Ranking, seconds: float) -> None:
        """Take in what was returned to one query; without evidence, whether anything was."""
        self._seconds.append(seconds)
        if not ranking.evidence:
            self._falsely.append(float(bool(ranking.ids)))
            return
        self._answered.append(float(bool(ranking.ids)))
        for name, value in measures(ranking).items():
            for category in (None, ranking.category):
                self._values.setdefault(category or "", {}).setdefault(name, []).append(value)

    def as_dict(self) -> dict[str, Any]:
        """
        Return the figures: `overall` and `by_category`, each measure with its interval, and times in ms.

        `answered` is the share of queries with evidence that got any result, `answered_falsely` that of
        queries without.
        """
        by_category = {name: _shares(values) for name, values in sorted(self._values.items()) if name}
        return {
            "queries": len(self._seconds),
            "overall": _shares(self._values.get("", {})),
            "by_category": by_category,
            "answered": Share.of(self._answered).as_dict(),
            "answered_falsely": Share.of(self._falsely).as_dict() if self._falsely else None,
            "p50_ms": round(1e3 * quantile(self._seconds, 0.5), 3),
            "p95_ms": round(1e3 * quantile(self._seconds, 0.95), 3),
        }


def _shares(values: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    shares: dict[str, Any] = {name: Share.of(each).as_dict() for name, each in values.items()}
    return {"queries": len(next(iter(values.values()), ())), **shares}


def quantile(values: Iterable[float], share: float) -> float:
    """
    Return the smallest value that at least `share` of the values do not exceed; 0 of none.

    >>> quantile([3.0, 1.0, 2.0, 4.0], 0.5)
    2.0
    """
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0
