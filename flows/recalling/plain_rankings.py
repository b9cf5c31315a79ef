"""Rankings that recall is compared with: the two lists of a search as they are, and their plain sum."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cortex.flows.embedders import Embedder
from cortex.flows.recalling.retrieval_corpus import RowPlace
from cortex.hooks.evidence.ranking import standardised
from cortex.storage.tables.tables import Searchable, Vector
from cortex.transforms.schemas import PASSAGES

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
