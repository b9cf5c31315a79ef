"""Recall: what the memories and transcripts of some scopes say to a question, best first."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from cortex.flows.embedders import Embedder
from cortex.flows.recalling.described_code import Code, code_behind
from cortex.flows.recalling.recall_results import Nearby, RecallResult, recall_result_of
from cortex.flows.recalling.replaced import Replaced, pairs_of_subject, replaced_by
from cortex.hooks.evidence.index import MEMORIES
from cortex.hooks.evidence.question import SearchQuestion
from cortex.hooks.evidence.search import ROWS_A_KEPT_ROW, find
from cortex.hooks.evidence.statements import PROPOSED
from cortex.storage.settings.reference import word_ranks
from cortex.storage.tables.tables import Searchable, Vector
from cortex.transforms.errors import ModelUnavailable
from cortex.transforms.policy import Policy
from cortex.transforms.search.limits import NO_LIMITS, SearchLimits
from cortex.transforms.search.settings import model_answers, search_settings

_EDGES = "edges"


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

    Works by words alone when `embedder` is None or cannot answer now. Nothing is returned if no result is
    near enough to the question (`is_answered`). Superseded, pruned and merged memories
    are left out, archived ones found. A memory of external trust is found only with evidence of its source.
    With `by_stretch`, what bears on the question in one stretch of a session is one result. Only what meets
    `limits` is returned; of each list more rows are read for that.
    """
    asking = question_of(question, policy)
    vector = _vector_of(question, embedder)
    similar = None if vector is None else _Similarity(tables, scopes, vector, asking, limits)
    model = embedder.model if embedder is not None and vector is not None else ""
    with tables.reading_index(scopes) as connection:
        results = find(
            connection,
            scopes,
            asking,
            limit=limit,
            by_stretch=by_stretch,
            admits=None if limits.is_empty else limits.admits,
            similar=similar,
            whole=model_answers(policy, model),
        )
    return _with_code(tables, [recall_result_of(each) for each in results])


def question_of(text: str, policy: Policy) -> SearchQuestion:
    """Return a question as a search looks at it."""
    ranks = word_ranks()
    return SearchQuestion(
        text, search_settings(policy), lambda words: {word: ranks[word] for word in words if word in ranks}
    )


class _Similarity:
    """What a model knows of rows: how near they are to the vector of a question."""

    def __init__(
        self,
        tables: Searchable,
        scopes: Sequence[str],
        vector: Vector,
        question: SearchQuestion,
        limits: SearchLimits,
    ) -> None:
        self._tables, self._scopes, self._vector = tables, scopes, vector
        wanted = int(question.settings.numbers["candidates"])
        self._wanted = wanted * (1 if limits.is_empty else ROWS_A_KEPT_ROW)

    def __call__(self, name: str, keys: Collection[str]) -> dict[str, float]:
        """Return the cosines of the rows with these keys and of the nearest ones of a table."""
        rows = self._tables.open_index(self._scopes, name)
        return rows.similarities(self._vector, list(keys), self._wanted)


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

    A memory near a result is called earlier only if an edge says that they are of one subject, or where
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
