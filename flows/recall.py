"""Recall: what the memories and transcripts of some scopes say to a question, best first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa

from cortex.flows.described_code import Code, code_behind
from cortex.flows.embedders import Embedder
from cortex.flows.replaced import Replaced, replaced_by
from cortex.flows.similarity import exact, is_of_same_model
from cortex.storage.reference import word_ranks
from cortex.storage.tables import Dataset, Tables, Vector
from cortex.transforms.errors import ModelUnavailable
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EPOCH
from cortex.transforms.search.answers import Asked, is_answered
from cortex.transforms.search.fusion import Places, Scores, SearchHit, comparable, folded, fuse, lend
from cortex.transforms.search.index_text import PEOPLE_KINDS, index_text, query_terms, query_words, setting

MEMORIES, PASSAGES, EDGES = "memories", "passages", "edges"
ID_COLUMNS = {MEMORIES: "memory_id", PASSAGES: "passage_id"}
# What is read of each row named: what ranks, hides, folds and shows it. All columns take half as long again.
_COLUMNS = {
    MEMORIES: (
        "memory_id", "project_id", "memory_type", "text", "confidence", "created_at", "updated_at", "rank",
        "trust", "source_type", "status", "merged_into", "evidence", "files", "tags", "vector",
    ),
    PASSAGES: (
        "passage_id", "project_id", "session_id", "kind", "text", "said_at", "file", "line", "seq", "trust",
        "vector",
    ),
}  # fmt: skip
# What the lexical index is made of.
INDEXED = {MEMORIES: ("memory_type", "text", "files", "tags"), PASSAGES: ("kind", "text", "said_at")}
# A memory taken back by a person, or pruned, is not an answer; one merged into another is shown as that one.
HIDDEN_STATUSES = ("superseded", "pruned")
# Rows looked at for folding, by result asked for: in the labelled sessions a result takes up 1.4 rows.
ROWS_A_RESULT = 6


@dataclass(frozen=True)
class Evidence:
    """Where something was said: lines of a transcript, counted from 1, best first."""

    session_id: str
    file: str
    lines: tuple[int, ...]
    said_at: datetime | None


@dataclass(frozen=True)
class RecallResult:
    """
    One result: a memory, or a turn in the words of the session.

    `score` orders the results of one question and means nothing across questions. `confidence` is 0 to 1,
    None for a turn. `passage` is the best passage in the session's own words that was folded into a memory,
    `code` what a description of code leads to by its `source_of` edge, `replaces` what a person said that a
    memory took the place of.
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


def search_store(
    tables: Tables,
    question: str,
    *,
    scopes: Sequence[str],
    policy: Policy,
    embedder: Embedder | None,
    limit: int,
    now: datetime,
) -> list[RecallResult]:
    """
    Return at most `limit` results for `question` out of the memories and passages of `scopes`, best first.

    Works by words alone when `embedder` is None or cannot answer now. Nothing is returned where no result is
    near enough to the question (`cortex.transforms.search.answers`). Superseded, pruned and merged memories
    are left out, archived ones found. A memory of external trust is found only with evidence of its source.
    """
    vector = _vector_of(question, embedder)
    terms = query_terms(question, policy)
    hits = _Hits(vector)
    wanted = int(setting(policy, "candidates"))
    for scope in scopes:
        for name in (MEMORIES, PASSAGES):
            dataset = tables.open(scope, name)
            by_words = _comparable(dataset, terms, wanted, _COLUMNS[name])
            hits.add(name, by_words)
            if vector is not None and is_of_same_model(by_words, vector):
                hits.add(name, dataset.search_vector(vector, wanted, _COLUMNS[name]))
    scores = hits.scores(policy, now)
    # Ties go by id, so that the order of scopes or of rows on disk changes nothing.
    order = sorted(range(len(hits.ids)), key=lambda row: (-scores[row], hits.ids[row]))
    looked_at = [hits.candidate(row) for row in order[: limit * ROWS_A_RESULT]]
    groups = folded(looked_at, policy, limit)
    asked = Asked.of(query_words(question, policy), word_ranks(), policy)
    model = embedder.model if embedder is not None and vector is not None else ""
    if not is_answered((hits.nearness(row, asked) for group in groups for row in group), policy, model):
        return []
    results = [hits.result(group, scores) for group in groups]
    return _with_code(tables, results)


def _with_code(tables: Tables, results: list[RecallResult]) -> list[RecallResult]:
    """Follow the edges `source_of`; code behind a better description is no result of its own (spec 10.2)."""
    described = [result for result in results if result.memory_type == "code_description"]
    code_of: dict[str, Code] = {}
    for scope in sorted({result.project_id for result in described}):
        ids = [result.id for result in described if result.project_id == scope]
        code_of |= code_behind(tables.open(scope, EDGES), tables.open(scope, MEMORIES), ids)
    rank_of = {
        code.memory_id: rank for rank, result in enumerate(results) if (code := code_of.get(result.id))
    }
    kept = [result for rank, result in enumerate(results) if rank_of.get(result.id, rank) >= rank]
    return [replace(result, code=code_of.get(result.id)) for result in kept]


def with_replaced(tables: Tables, results: list[RecallResult]) -> list[RecallResult]:
    """
    Return results with what each took the place of, by the edges `supersedes` (spec 10.3).

    Apart from `recall`, since it reads the edges of every project found: the prompt has no time for that.
    """
    replaced: dict[str, tuple[Replaced, ...]] = {}
    for scope in sorted({result.project_id for result in results if result.kind == "memory"}):
        ids = [result.id for result in results if result.kind == "memory" and result.project_id == scope]
        replaced |= replaced_by(tables.open(scope, EDGES), tables.open(scope, MEMORIES), ids)
    return [replace(result, replaces=replaced.get(result.id, ())) for result in results]


def _vector_of(question: str, embedder: Embedder | None) -> Vector | None:
    if embedder is None or not question.strip():
        return None
    try:
        vector: Vector = embedder.embed([question], as_query=True)[0]
    except ModelUnavailable:
        return None
    return vector


def _comparable(dataset: Dataset, terms: str, limit: int, columns: Sequence[str]) -> pa.Table:
    hits = dataset.search_words(terms, limit, columns)
    at = hits.schema.get_field_index("score")
    scores = comparable(hits["score"].to_numpy().astype(np.float64), dataset.count())
    return hits.set_column(at, "score", pa.array(scores))


class _Hits:
    """The rows that any list named, each once, with what ranks them."""

    def __init__(self, vector: Vector | None) -> None:
        self._vector = vector
        self._row_of: dict[str, int] = {}
        self._source: list[tuple[str, pa.Table, int]] = []
        self._lexical: list[float] = []
        self._similarity: list[float] = []
        self._file_codes: dict[str | None, int] = {None: -1}
        self._places: list[tuple[int, int, int, bool]] = []
        self.ids: list[str] = []

    def add(self, name: str, hits: pa.Table) -> None:
        """Take in the rows of one list: that of the words if it has a column `score`."""
        hits = _shown(hits) if name == MEMORIES else hits
        # Also for the vectors' own list: an index over many rows answers with rounded distances.
        similarity = exact(hits, self._vector)
        lexical = hits["score"].to_numpy() if "score" in hits.schema.names else None
        places = _places_in(name, hits)
        for at, key in enumerate(map(str, hits[ID_COLUMNS[name]].to_pylist())):
            row = self._row_of.setdefault(key, len(self.ids))
            if row == len(self.ids):
                self.ids.append(key)
                self._source.append((name, hits, at))
                self._lexical.append(np.nan)
                self._similarity.append(np.nan)
                file, seq, line, is_person = places[at]
                code = self._file_codes.setdefault(file, len(self._file_codes))
                self._places.append((code, seq, line, is_person))
            if lexical is not None:
                self._lexical[row] = float(lexical[at])
            self._similarity[row] = float(similarity[at])

    def scores(self, policy: Policy, now: datetime) -> Scores:
        """Return the score of each row."""
        if not self.ids:
            return np.zeros(0)
        fused = fuse(np.array(self._lexical), np.array(self._similarity), policy)
        file, seq, line, is_person = np.array(self._places, dtype=np.int64).T
        lent = lend(fused, Places(file, seq, line, is_person.astype(bool)), policy)
        return lent + self._recency(policy, now) + self._rank(policy)

    def _recency(self, policy: Policy, now: datetime) -> Scores:
        weight = setting(policy, "recency_weight")
        half_life = timedelta(days=setting(policy, "recency_half_life_days"))
        if not weight:
            return np.zeros(len(self.ids))
        ages = [max(now - (self._when(row) or EPOCH), timedelta(0)) for row in range(len(self.ids))]
        return np.array([weight * 0.5 ** (age / half_life) for age in ages])

    def _rank(self, policy: Policy) -> Scores:
        weight = setting(policy, "rank_weight")
        ranks = [
            float(hits["rank"][at].as_py()) if name == MEMORIES else 0.0 for name, hits, at in self._source
        ]
        return weight * np.array(ranks)

    def _when(self, row: int) -> datetime | None:
        name, hits, at = self._source[row]
        instant: datetime | None = hits["updated_at" if name == MEMORIES else "said_at"][at].as_py()
        return instant

    def nearness(self, row: int, asked: Asked) -> tuple[float, float | None]:
        """Return what share of a question's words a row has, and its cosine with it where that is known."""
        name, hits, at = self._source[row]
        columns = [column for column in INDEXED[name] if column in hits.schema.names]
        share = asked.share_in(index_text({column: hits[column][at].as_py() for column in columns}))
        cosine = self._similarity[row]
        return share, None if np.isnan(cosine) else cosine

    def candidate(self, row: int) -> SearchHit:
        """Return what folding needs of a row."""
        name, hits, at = self._source[row]
        lines = frozenset((item.file, line) for item in _evidence(name, hits, at) for line in item.lines)
        return SearchHit(row, name == MEMORIES, hits["text"][at].as_py(), lines)

    def result(self, group: Sequence[int], scores: Scores) -> RecallResult:
        """Return the result that a group of rows makes; its score is that of its best row."""
        name, hits, at = self._source[group[0]]
        row = hits.slice(at, 1).drop_columns(_heavy(hits)).to_pylist()[0]
        is_memory = name == MEMORIES
        passages = [self._source[other] for other in group[1:] if self._source[other][0] == PASSAGES]
        return RecallResult(
            id=row[ID_COLUMNS[name]],
            kind="memory" if is_memory else "turn",
            memory_type=row["memory_type"] if is_memory else None,
            text=row["text"],
            project_id=row["project_id"],
            score=float(max(scores[other] for other in group)),
            confidence=row["confidence"] if is_memory else None,
            created_at=row["created_at"] if is_memory else row["said_at"],
            evidence=_merged(item for other in group for item in _evidence(*self._source[other])),
            trust=row["trust"],
            status=row["status"] if is_memory else "active",
            passage=passages[0][1]["text"][passages[0][2]].as_py() if is_memory and passages else None,
        )


def _shown(memories: pa.Table) -> pa.Table:
    """Return the memories that may be told: valid ones; external ones with their source, or as imported."""
    rows = memories.select(["status", "merged_into", "trust", "evidence", "source_type"]).to_pylist()
    return memories.filter(
        pa.array(
            [
                row["status"] not in HIDDEN_STATUSES
                and row["merged_into"] is None
                and (row["trust"] != "external" or bool(row["evidence"]) or row["source_type"] == "import")
                for row in rows
            ],
            pa.bool_(),
        )
    )


def _places_in(name: str, hits: pa.Table) -> list[tuple[str | None, int, int, bool]]:
    """Return (file, seq, line, is a person's) of each row; a memory stands in no transcript."""
    if name == MEMORIES:
        return [(None, 0, 0, False)] * hits.num_rows
    columns = (hits[column].to_pylist() for column in ("file", "seq", "line", "kind"))
    return [(file, seq, line, kind in PEOPLE_KINDS) for file, seq, line, kind in zip(*columns, strict=True)]


def _heavy(hits: pa.Table) -> list[str]:
    return [name for name in ("vector", "evidence") if name in hits.schema.names]


def _evidence(name: str, hits: pa.Table, at: int) -> Iterator[Evidence]:
    if name == PASSAGES:
        row = {key: hits[key][at].as_py() for key in ("session_id", "file", "line", "said_at")}
        yield Evidence(row["session_id"], row["file"], (row["line"],), row["said_at"])
        return
    for item in hits["evidence"][at].as_py() or ():
        yield Evidence(item["session_id"], item["file"], tuple(item["lines"]), item["said_at"])


def _merged(items: Iterator[Evidence]) -> tuple[Evidence, ...]:
    """Return the evidence of a group in its order, one entry per transcript, each line once."""
    by_file: dict[str, Evidence] = {}
    for item in items:
        before = by_file.get(item.file)
        if before is None:
            by_file[item.file] = item
            continue
        new = tuple(line for line in item.lines if line not in before.lines)
        by_file[item.file] = Evidence(before.session_id, item.file, before.lines + new, before.said_at)
    return tuple(by_file.values())
