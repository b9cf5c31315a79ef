"""Recall: what memories and transcripts say to a question, best first, with evidence and what stands near."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from cortex.flows.embedders import Embedder
from cortex.hooks.evidence.index import MEMORIES
from cortex.hooks.evidence.question import SearchQuestion
from cortex.hooks.evidence.search import ROWS_A_KEPT_ROW, NearbyRow, Place, SearchResult, find
from cortex.hooks.evidence.statements import PROPOSED
from cortex.storage.settings.reference import search_ranks
from cortex.storage.tables.tables import Dataset, Searchable, Vector
from cortex.transforms.errors import ModelUnavailable
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EPOCH
from cortex.transforms.search import NO_LIMITS, SearchLimits, model_answers, search_settings
from cortex.transforms.words.ages import speaker_of, speaker_of_turn

# -- What a memory replaced or is at odds with, by the edges between memories (spec 10.3, 12).


@dataclass(frozen=True)
class Replaced:
    """A memory that another one took the place of: its id and its words."""

    memory_id: str
    text: str


def replaced_by(edges: Dataset, memories: Dataset, ids: Collection[str]) -> dict[str, tuple[Replaced, ...]]:
    """Return, by id, what each memory took the place of, ordered by id; nothing for those that took none."""
    where = {"edge_type": ["supersedes"], "source_id": ids}
    pairs = edges.read(["source_id", "target_id"], where).to_pylist()
    if not pairs:
        return {}
    where = {"status": ["superseded"], "memory_id": {pair["target_id"] for pair in pairs}}
    rows = memories.read(["memory_id", "text"], where).to_pylist()
    texts = {row["memory_id"]: row["text"] for row in rows}
    replaced: dict[str, tuple[Replaced, ...]] = {}
    for pair in sorted(pairs, key=lambda pair: pair["target_id"]):
        if pair["target_id"] in texts:
            known = replaced.get(pair["source_id"], ())
            target = pair["target_id"]
            replaced[pair["source_id"]] = (*known, Replaced(target, texts[target]))
    return replaced


# Edges of which the newer end took the older one's place, or says more of the same.
_SUBJECT_EDGES = ("contradicts", "refines", "supersedes")


def pairs_of_subject(edges: Dataset, ids: Collection[str]) -> set[frozenset[str]]:
    """Return the pairs among `ids` that edges name as one subject: at odds, refined or replaced."""
    where = {"edge_type": _SUBJECT_EDGES, "source_id": ids}
    pairs = edges.read(["source_id", "target_id"], where).to_pylist()
    return {frozenset((pair["source_id"], pair["target_id"])) for pair in pairs}


# -- The code that a description leads to by its `source_of` edge: its file and how it begins (spec 10.2).

# Five to ten lines: enough to tell whether to open the file.
EXCERPT_CHARS = 240


@dataclass(frozen=True)
class Code:
    """Stored code: the id of its memory, its file, and how it begins."""

    memory_id: str
    file: str
    excerpt: str


def code_behind(edges: Dataset, memories: Dataset, described: Collection[str]) -> dict[str, Code]:
    """Return by id of a description the code it speaks of; none for code that was taken back."""
    where = {"edge_type": ["source_of"], "source_id": described}
    pairs = edges.read(["source_id", "target_id"], where).to_pylist()
    target_of = {edge["source_id"]: edge["target_id"] for edge in pairs}
    if not target_of:
        return {}
    where = {"status": ["active", "archived"], "memory_id": [*target_of.values()]}
    code = {
        row["memory_id"]: Code(row["memory_id"], ", ".join(row["files"]), beginning(row["text"]))
        for row in memories.read(["memory_id", "text", "files"], where).to_pylist()
    }
    return {source: code[target] for source, target in target_of.items() if target in code}


def beginning(code: str) -> str:
    """Return the whole lines that fit into EXCERPT_CHARS; of a first line that does not, what fits."""
    if len(code) <= EXCERPT_CHARS:
        return code
    end = code.rfind("\n", 0, EXCERPT_CHARS + 1)
    return code[: end if end > 0 else EXCERPT_CHARS].rstrip()


# -- What recall returns: results with their evidence, and what was said near them.


@dataclass(frozen=True)
class Evidence:
    """Where something was said: lines of a transcript, counted from 1, best first."""

    session_id: str
    file: str
    lines: tuple[int, ...]
    said_at: datetime | None


@dataclass(frozen=True)
class Nearby:
    """
    A memory or a turn near a result in its session that bears on the question too.

    `is_earlier` says that it is a memory of the result's subject that was said before it.
    """

    id: str
    kind: str
    memory_type: str | None
    text: str
    statement: str
    evidence: tuple[Evidence, ...]
    is_earlier: bool = False


@dataclass(frozen=True)
class RecallResult:
    """
    One result: a memory, or a turn in the words of the session.

    `score` orders the results of one question and means nothing across questions. `confidence` is 0 to 1,
    None for a turn. `statement` is what of the text bears on the question: a memory's is its text. `passage`
    is the best passage in the session's own words that was folded into a memory, `quote` what of it bears on
    the question; `why` and `rejected` are the reason and what was turned down if the statement does not
    say them, "" if they are not known. `nearby` is what else near it in the session bears on the
    question, best first, `code` what a description of code leads to by its `source_of` edge, `replaces` what
    a person said that a memory took the place of; `speaker` is `trust` with a colleague's name.
    """

    id: str
    kind: str
    memory_type: str | None
    text: str
    project_id: str
    score: float
    confidence: float | None
    created_at: datetime | None
    evidence: tuple[Evidence, ...]
    trust: str
    status: str
    passage: str | None
    code: Code | None = None
    replaces: tuple[Replaced, ...] = ()
    statement: str = ""
    quote: str = ""
    why: str = ""
    # The slots of a memory, whether its statement says them or not: chosen, rejected, reason.
    slots: Mapping[str, str | None] = field(default_factory=dict)
    rejected: str = ""
    nearby: tuple[Nearby, ...] = ()
    speaker: str = ""

    @property
    def all_evidence(self) -> tuple[Evidence, ...]:
        """Return where it was said, and where what is nearby was."""
        return (*self.evidence, *(item for each in self.nearby for item in each.evidence))

    @property
    def memory_ids(self) -> tuple[str, ...]:
        """Return the ids of the memories it shows."""
        shown = ((self.kind, self.id), *((each.kind, each.id) for each in self.nearby))
        return tuple(name for kind, name in shown if kind == "memory")

    @property
    def texts(self) -> tuple[str, ...]:
        """Return all texts it shows."""
        passage = (self.passage,) if self.passage else ()
        nearby, replaced = (each.text for each in self.nearby), (old.text for old in self.replaces)
        return (self.text, *passage, *nearby, *replaced)


def recall_result_of(match: SearchResult) -> RecallResult:
    """Return what a search found, as everything else sees it."""
    row, is_memory = match.row, match.is_memory
    return RecallResult(
        id=match.id,
        kind=_kind(is_memory),
        memory_type=row["memory_type"] if is_memory else None,
        text=row["text"],
        project_id=row["project_id"],
        score=match.score,
        confidence=row["confidence"] if is_memory else None,
        created_at=instant_of(row["created_at"] if is_memory else row["said_at"]),
        evidence=_evidence(match.evidence),
        trust=row["trust"],
        speaker=speaker_of(row) if is_memory else speaker_of_turn(row),
        status=row["status"] if is_memory else "active",
        passage=match.passage,
        statement=match.statement,
        quote=match.quote,
        why=match.why,
        slots={name: row.get(name) for name in ("chosen", "rejected", "reason")} if is_memory else {},
        rejected=match.rejected,
        nearby=tuple(_nearby(each) for each in match.nearby),
    )


def instant_of(microseconds: int | None) -> datetime | None:
    """Return an instant (UTC) as the search index holds it."""
    return None if microseconds is None else EPOCH + timedelta(microseconds=microseconds)


def _nearby(each: NearbyRow) -> Nearby:
    return Nearby(
        id=each.id,
        kind=_kind(each.is_memory),
        memory_type=each.row["memory_type"] if each.is_memory else None,
        text=each.row["text"],
        statement=each.statement,
        evidence=_evidence(each.evidence),
        is_earlier=each.is_earlier,
    )


def _kind(is_memory: bool) -> str:
    return "memory" if is_memory else "turn"


def _evidence(places: Iterable[Place]) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(each.session_id, each.file, each.lines, instant_of(each.said_at)) for each in places
    )


# -- Recall: what the memories and transcripts of some scopes say to a question, best first.

_EDGES = "edges"


def search_store(
    tables: Searchable,
    question: str,
    *,
    scopes: Sequence[str],
    policy: Policy,
    embedder: Embedder | None,
    limit: int,
    with_nearby: bool = True,
    limits: SearchLimits = NO_LIMITS,
) -> list[RecallResult]:
    """
    Return at most `limit` results for `question` out of the memories and passages of `scopes`, best first.

    Works by words alone when `embedder` is None or cannot answer now. Nothing is returned if no result is
    near enough to the question (`certainty_of`). Superseded, pruned and merged memories
    are left out, archived ones found. A memory of external trust is found only with evidence of its source.
    With `with_nearby`, what bears on the question close together in a session is one result. Only what meets
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
            with_nearby=with_nearby,
            admits=None if limits.is_empty else limits.admits,
            similar=similar,
            whole=model_answers(policy, model),
            # Whoever asks on purpose sees at a glance that a result is beside the point.
            least_certainty=1.0 if model else asking.settings.numbers["unsure_certainty"],
        )
    return _with_code(tables, [recall_result_of(each) for each in results])


def question_of(text: str, policy: Policy) -> SearchQuestion:
    """Return a question as a search looks at it."""
    ranks = search_ranks()
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
