"""Recall: what the memories and transcripts of some scopes say to a question, best first."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from cortex.flows.described_code import Code, code_behind
from cortex.flows.embedders import Embedder
from cortex.flows.recall_hits import MEMORIES, PASSAGES, ROW_COLUMNS, Hits
from cortex.flows.recall_results import Nearby, RecallResult, shown_once
from cortex.flows.replaced import Replaced, pairs_of_subject, replaced_by
from cortex.flows.similarity import is_of_same_model
from cortex.storage.reference import word_ranks
from cortex.storage.tables import Searchable, SearchableRows, Vector
from cortex.transforms.errors import ModelUnavailable
from cortex.transforms.policy import Policy
from cortex.transforms.search.answers import is_answered
from cortex.transforms.search.fusion import comparable, folded
from cortex.transforms.search.index_text import query_terms, setting
from cortex.transforms.search.limits import NO_LIMITS, SearchLimits
from cortex.transforms.search.questions import RecallQuestion
from cortex.transforms.words.history_marks import PROPOSED

_EDGES = "edges"
# Rows looked at for folding, by result asked for: in the labelled sessions a result takes up 1.4 rows.
ROWS_A_RESULT = 6
# Rows looked at for one that may meet a limit: of a project of 6,000 passages all.
ROWS_A_KEPT_ROW = 20


def search_store(
    tables: Searchable,
    question: str,
    *,
    scopes: Sequence[str],
    policy: Policy,
    embedder: Embedder | None,
    limit: int,
    by_stretch: bool = True,
    limits: SearchLimits = NO_LIMITS,
) -> list[RecallResult]:
    """
    Return at most `limit` results for `question` out of the memories and passages of `scopes`, best first.

    Works by words alone when `embedder` is None or cannot answer now. Nothing is returned where no result is
    near enough to the question (`cortex.transforms.search.answers`). Superseded, pruned and merged memories
    are left out, archived ones found. A memory of external trust is found only with evidence of its source.
    With `by_stretch`, what bears on the question in one stretch of a session is one result. Only what meets
    `limits` is returned; of each list more rows are read for that.
    """
    vector = _vector_of(question, embedder)
    terms = query_terms(question, policy)
    hits = Hits(vector)
    wanted = int(setting(policy, "candidates")) * (1 if limits.is_empty else ROWS_A_KEPT_ROW)
    kept = {MEMORIES: limits.memories, PASSAGES: limits.passages}
    for name in (MEMORIES, PASSAGES):
        rows = tables.open_index(scopes, name)
        by_words = _comparable(rows, terms, wanted, ROW_COLUMNS[name])
        hits.add(name, kept[name](by_words))
        if vector is not None and is_of_same_model(by_words, vector):
            hits.add(name, kept[name](rows.search_vector(vector, wanted, ROW_COLUMNS[name])))
    scores = hits.scores(policy)
    # Ties go by id, so that the order of scopes or of rows on disk changes nothing.
    order = sorted(range(len(hits.ids)), key=lambda row: (-scores[row], hits.ids[row]))
    looked_at = [hits.candidate(row, scores[row]) for row in order[: limit * ROWS_A_RESULT]]
    groups = folded(looked_at, policy, limit, by_stretch=by_stretch)
    asking = RecallQuestion.of(question, word_ranks(), policy)
    model = embedder.model if embedder is not None and vector is not None else ""
    nearness = (hits.nearness(row, asking.asked) for group in groups for row in group.all)
    if not is_answered(asking.asked, nearness, policy, model):
        return []
    results = [hits.result(group, scores, asking) for group in groups]
    return _with_code(tables, shown_once(results) if by_stretch else results)


def _with_code(tables: Searchable, results: list[RecallResult]) -> list[RecallResult]:
    """Follow the edges `source_of`; code behind a better description is no result of its own (spec 10.2)."""
    described = [result for result in results if result.memory_type == "code_description"]
    code_of: dict[str, Code] = {}
    for scope in sorted({result.project_id for result in described}):
        ids = [result.id for result in described if result.project_id == scope]
        code_of |= code_behind(tables.open_index([scope], _EDGES), tables.open_index([scope], MEMORIES), ids)
    rank_of = {
        code.memory_id: rank for rank, result in enumerate(results) if (code := code_of.get(result.id))
    }
    kept = [result for rank, result in enumerate(results) if rank_of.get(result.id, rank) >= rank]
    return [replace(result, code=code_of.get(result.id)) for result in kept]


def with_replaced(tables: Searchable, results: list[RecallResult]) -> list[RecallResult]:
    """
    Return results with what each took the place of, by the edges `supersedes` (spec 10.3).

    A memory near a result is called earlier only where an edge says that they are of one subject, or where
    it was only put forward: two facts may share most of their words. Apart from `recall`, since it reads the
    edges of every project found: the prompt has no time for that.
    """
    replaced: dict[str, tuple[Replaced, ...]] = {}
    pairs: set[frozenset[str]] = set()
    for scope in sorted({result.project_id for result in results if result.kind == "memory"}):
        edges = tables.open_index([scope], _EDGES)
        own = [result for result in results if result.kind == "memory" and result.project_id == scope]
        replaced |= replaced_by(edges, tables.open_index([scope], MEMORIES), [result.id for result in own])
        older = {name for result in own for name in _called_earlier(result)}
        pairs |= pairs_of_subject(edges, older | {result.id for result in own}) if older else set()
    return [
        replace(result, replaces=replaced.get(result.id, ()), nearby=_marked(result, pairs))
        for result in results
    ]


def _called_earlier(result: RecallResult) -> list[str]:
    return [each.id for each in result.nearby if each.is_earlier]


def _marked(result: RecallResult, pairs: set[frozenset[str]]) -> tuple[Nearby, ...]:
    return tuple(
        replace(each, is_earlier=each.text.startswith(PROPOSED) or frozenset((result.id, each.id)) in pairs)
        if each.is_earlier
        else each
        for each in result.nearby
    )


def _vector_of(question: str, embedder: Embedder | None) -> Vector | None:
    if embedder is None or not question.strip():
        return None
    try:
        vector: Vector = embedder.embed([question], as_query=True)[0]
    except ModelUnavailable:
        return None
    return vector


def _comparable(rows: SearchableRows, terms: str, limit: int, columns: Sequence[str]) -> pa.Table:
    hits = rows.search_words(terms, limit, columns)
    at = hits.schema.get_field_index("score")
    scores = comparable(hits["score"].to_numpy().astype(np.float64), rows.count())
    return hits.set_column(at, "score", pa.array(scores.tolist(), pa.float64()))
