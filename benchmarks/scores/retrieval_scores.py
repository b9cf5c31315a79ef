"""Scores recall on your own data set, compared with plain rankings of the same tables."""

import math
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cortex.flows.context import Context
from cortex.flows.embedders import Embedder
from cortex.flows.recalling.recall_search import search_store
from cortex.flows.run.run import Progress, no_progress
from cortex.hooks.evidence.ranking import standardised
from cortex.scores.labels import lines_of, rows_of
from cortex.scores.retrieval_set import Query, RetrievalCorpus, RowPlace, corpus_query, corpus_row, scope_of
from cortex.storage.store import temporary_tables
from cortex.storage.tables.tables import GrowingTables, Searchable, Vector
from cortex.transforms.errors import UsageError
from cortex.transforms.schemas import PASSAGES

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


# Name of each, and whether it needs an embedding model.
BASELINES = {"bm25": False, "vectors": True, "hybrid": True}
# Rows taken from each list of each scope.
_CANDIDATES = 300
_COLUMNS = ("session_id", "line")


class PlainRankings:
    """
    What passages say to a question without anything that Cortex adds.

    `bm25` takes every word of the question, stemmed as the index is; `vectors` orders by cosine; `hybrid`
    adds the two, each standardised over the rows named (mean 0, deviation 1). Scores of several scopes are
    compared as they are.
    """

    def __init__(self, tables: Searchable, embedder: Embedder | None) -> None:
        self._tables, self._embedder = tables, embedder

    def ranked(self, name: str, question: str, scopes: Sequence[str], depth: int) -> list[RowPlace]:
        """Return the first `depth` places by the ranking of that name, best first, each once."""
        words = self._words(question, scopes) if name != "vectors" else {}
        near = self._near(question, scopes) if name != "bm25" else {}
        scores = _summed(words, near) if name == "hybrid" else words or near
        return sorted(scores, key=lambda place: (-scores[place], place))[:depth]

    def _words(self, question: str, scopes: Sequence[str]) -> dict[RowPlace, float]:
        scores: dict[RowPlace, float] = {}
        for scope in scopes:
            rows = self._tables.open_index([scope], PASSAGES.name)
            _keep_best(scores, scope, rows.search_words(question, _CANDIDATES, _COLUMNS), "score")
        return scores

    def _near(self, question: str, scopes: Sequence[str]) -> dict[RowPlace, float]:
        scores: dict[RowPlace, float] = {}
        if self._embedder is None or not question.strip():
            return scores
        vector: Vector = self._embedder.embed([question], as_query=True)[0]
        for scope in scopes:
            rows = self._tables.open_index([scope], PASSAGES.name)
            _keep_best(scores, scope, rows.search_vector(vector, _CANDIDATES, _COLUMNS), "similarity")
        return scores


def _keep_best(scores: dict[RowPlace, float], scope: str, hits: pa.Table, name: str) -> None:
    columns = (hits[column].to_pylist() for column in (*_COLUMNS, name))
    for session, line, score in zip(*columns, strict=True):
        place = (scope, session, line)
        scores[place] = max(score, scores.get(place, -np.inf))


def _summed(words: dict[RowPlace, float], near: dict[RowPlace, float]) -> dict[RowPlace, float]:
    places = sorted(words.keys() | near.keys())
    by_words = standardised([words.get(place, 0.0) for place in places])
    by_meaning = standardised([near.get(place) for place in places])
    sums = (a + b for a, b in zip(by_words, by_meaning, strict=True))
    return dict(zip(places, sums, strict=True))


CORTEX = "cortex"


@dataclass(frozen=True)
class RetrievalScores:
    """
    What was measured: `figures` by name of the ranking, Cortex first.

    `model` is the embedding model, None if words alone were searched; `bytes` is what the tables take on
    disk; `ingest_seconds` is from the first row read to the last index written.
    """

    figures: dict[str, dict[str, Any]]
    model: str | None
    rows: int
    passages: int
    projects: int
    ingest_seconds: float
    bytes: int

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "model": self.model,
            "corpus": {
                "rows": self.rows,
                "passages": self.passages,
                "projects": self.projects,
                "ingest_seconds": round(self.ingest_seconds, 3),
                "rows_per_second": round(self.rows / max(self.ingest_seconds, 1e-9), 1),
                "bytes": self.bytes,
            },
            "rankings": self.figures,
        }


def score_retrieval(
    context: Context,
    corpus: Path,
    queries: Path,
    *,
    with_model: bool = True,
    progress: Progress = no_progress,
) -> RetrievalScores:
    """
    Put a corpus into tables of its own, ask the queries, compare with their evidence. Touches no store.

    A query without a project is asked over all of them. Raises NotFound for a missing file, UsageError for a
    row that cannot be used, named by file and line.
    """
    asked = _queries_of(queries)
    embedder = context.embedder() if with_model else None
    with temporary_tables() as tables:
        begun = time.perf_counter()
        wanted = frozenset(name for each in asked for name in each.evidence)
        held = RetrievalCorpus(tables, context.policy, embedder, wanted)
        _fill(held, corpus, progress)
        seconds = time.perf_counter() - begun
        _check_evidence(queries, asked, held)
        size = tables.size()
        figures = _Measured(tables, held, context, embedder).figures(asked, progress)
    model = embedder.model if embedder else None
    return RetrievalScores(figures, model, held.rows, held.passages, len(held.scopes), seconds, size)


def _fill(held: RetrievalCorpus, corpus: Path, progress: Progress) -> None:
    total = sum(1 for _ in lines_of(corpus))
    for row in rows_of(corpus, corpus_row):
        held.add(row)
        progress("embed", held.rows, total)
    held.finish()
    if not held.rows:
        raise UsageError(f"{corpus} holds no rows.", "Give one JSON object a line.")


class _Measured:
    """The ways to search the same tables, asked the same queries."""

    def __init__(
        self, tables: GrowingTables, held: RetrievalCorpus, context: Context, embedder: Embedder | None
    ) -> None:
        self._tables, self._held, self._embedder = tables, held, embedder
        self._policy = context.policy
        self._plain = PlainRankings(tables, embedder)
        plain = [name for name, needs_model in BASELINES.items() if embedder is not None or not needs_model]
        self._names = [CORTEX, *plain]

    def figures(self, asked: Sequence[Query], progress: Progress) -> dict[str, dict[str, Any]]:
        """Return the figures of each ranking by its name."""
        figures = {name: Figures() for name in self._names}
        for number, each in enumerate(asked, start=1):
            for name in self._names:
                begun = time.perf_counter()
                ids = self._ids(name, each)
                figures[name].add(Ranking(ids, each.evidence, each.category), time.perf_counter() - begun)
            progress("ask", number, len(asked))
        return {name: each.as_dict() for name, each in figures.items()}

    def _ids(self, name: str, each: Query) -> list[str]:
        scopes = tuple(self._held.scopes) if each.project is None else (scope_of(each.project),)
        recalled = self._recalled if name == CORTEX else None
        places = (
            recalled(each.text, scopes) if recalled else self._plain.ranked(name, each.text, scopes, DEPTH)
        )
        # Rows that no query asks for have no id here; their place stands for it.
        return [self._held.id_at.get(place, "\n".join(map(str, place))) for place in places]

    def _recalled(self, question: str, scopes: Sequence[str]) -> list[RowPlace]:
        results = search_store(
            self._tables, question, scopes=scopes, policy=self._policy, embedder=self._embedder,
            limit=DEPTH, with_nearby=False,
        )  # fmt: skip
        places = [
            (result.project_id, evidence.session_id, line)
            for result in results
            for evidence in result.evidence
            for line in evidence.lines
        ]
        return list(dict.fromkeys(places))


def _queries_of(path: Path) -> list[Query]:
    asked = list(rows_of(path, corpus_query))
    seen: set[str] = set()
    for each in asked:
        if each.id in seen:
            raise UsageError(f"{path} has the id '{each.id}' twice.", "Give each query an id of its own.")
        seen.add(each.id)
    if not asked:
        raise UsageError(f"{path} holds no queries.", "Give one JSON object a line.")
    return asked


def _check_evidence(path: Path, asked: Sequence[Query], held: RetrievalCorpus) -> None:
    for each in asked:
        missing = sorted(each.evidence - held.ids)
        if missing:
            raise UsageError(
                f"{path}: the evidence '{missing[0]}' of query '{each.id}' is no row of text in the corpus.",
                "Leave out evidence that the corpus lacks.",
            )
        if each.project is not None and scope_of(each.project) not in held.scopes:
            raise UsageError(
                f"{path}: the project '{each.project}' of query '{each.id}' has no row in the corpus.",
                "Name a project of the corpus, or none to ask over all.",
            )
