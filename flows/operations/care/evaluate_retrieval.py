"""Measures recall on a data set of your own, compared with plain rankings of the same tables."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from cortex.flows.context.context import Context
from cortex.flows.embedders import Embedder
from cortex.flows.recalling.plain_rankings import BASELINES, PlainRankings
from cortex.flows.recalling.recall_search import search_store
from cortex.flows.recalling.retrieval_corpus import RetrievalCorpus, RowPlace
from cortex.flows.run.run import Progress, no_progress
from cortex.storage.store import tables_apart
from cortex.storage.tables.tables import GrowingTables
from cortex.transforms.errors import NotFound, UsageError
from cortex.transforms.search.corpus import Query, corpus_query, corpus_row, scope_of
from cortex.transforms.search.retrieval_scores import DEPTH, Figures, Ranking

CORTEX = "cortex"

T = TypeVar("T")


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
    with tables_apart() as tables:
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
    total = sum(1 for _ in _lines(corpus))
    for row in _rows(corpus, corpus_row):
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
            limit=DEPTH, by_stretch=False,
        )  # fmt: skip
        places = [
            (result.project_id, evidence.session_id, line)
            for result in results
            for evidence in result.evidence
            for line in evidence.lines
        ]
        return list(dict.fromkeys(places))


def _queries_of(path: Path) -> list[Query]:
    asked = list(_rows(path, corpus_query))
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


def _rows(path: Path, row_of: Callable[[object, str], T]) -> Iterator[T]:
    for number, line in _lines(path):
        where = f"{path} line {number}"
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{where} is not JSON: {error}.", "Each line must be a JSON object.") from error
        yield row_of(value, where)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each line that is not empty with its number, from 1."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {path}.", "Name a file of one JSON object a line.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}.", "Name a file of UTF-8 text.") from error
