"""The rows that the lists of a search name, each once, and what ranks and shows them."""

from collections.abc import Iterator
from datetime import datetime

import numpy as np
import pyarrow as pa

from cortex.flows.recall_results import Evidence, Nearby, RecallResult, merged
from cortex.flows.similarity import exact
from cortex.storage.tables import Vector
from cortex.transforms.memory.authors import speaker_of
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EPOCH, Row
from cortex.transforms.search.answers import Asked, Nearness
from cortex.transforms.search.fusion import (
    Line,
    Places,
    Scores,
    SearchGroup,
    SearchHit,
    Validity,
    fuse,
    lend,
    lend_to_sources,
)
from cortex.transforms.search.index_text import PEOPLE_KINDS, index_text, setting
from cortex.transforms.search.questions import RecallQuestion
from cortex.transforms.search.statements import (
    asks_anything,
    ends_asking,
    is_known,
    is_lead_in,
    is_proposal,
    news_in,
    reason_in,
    statement_in,
)
from cortex.transforms.words.history_marks import CHANGED_SINCE, PROPOSED

MEMORIES, PASSAGES = "memories", "passages"
ID_COLUMNS = {MEMORIES: "memory_id", PASSAGES: "passage_id"}
# What is read of each row named: what ranks, hides, folds and shows it. All columns take half as long again.
ROW_COLUMNS = {
    MEMORIES: (
        "memory_id", "project_id", "memory_type", "text", "reason", "rejected", "confidence", "created_at",
        "updated_at",
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


class Hits:
    """The rows that any list named, each once, with what ranks them."""

    def __init__(self, vector: Vector | None) -> None:
        self._vector = vector
        self._row_of: dict[str, int] = {}
        self._source: list[tuple[str, pa.Table, int]] = []
        self._lexical: list[float] = []
        self._similarity: list[float] = []
        self._file_codes: dict[str | None, int] = {None: -1}
        self._places: list[tuple[int, int, int, bool]] = []
        # Whether a row is a memory, and the lines it rests on.
        self._lines: list[tuple[bool, frozenset[Line]]] = []
        self.ids: list[str] = []

    def add(self, name: str, hits: pa.Table) -> None:
        """Take in the rows of one list: that of the words if it has a column `score`."""
        hits = _shown(hits) if name == MEMORIES else hits
        # Also for the vectors' own list: an index over many rows answers with rounded distances.
        similarity = exact(hits, self._vector)
        lexical = hits["score"].to_numpy() if "score" in hits.schema.names else None
        places, lines = _places_in(name, hits), _lines_of(name, hits)
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
                self._lines.append((name == MEMORIES, lines[at]))
            if lexical is not None:
                self._lexical[row] = float(lexical[at])
            self._similarity[row] = float(similarity[at])

    def scores(self, policy: Policy) -> Scores:
        """Return the score of each row."""
        if not self.ids:
            return np.zeros(0)
        fused = fuse(np.array(self._lexical), np.array(self._similarity), policy)
        file, seq, line, is_person = np.array(self._places, dtype=np.int64).T
        lent = lend(fused, Places(file, seq, line, is_person.astype(bool)), policy)
        return lend_to_sources(fused, lent, self._lines, policy) + self._place_in_session(policy)

    def _place_in_session(self, policy: Policy) -> Scores:
        """Return what a row gains by standing late in its session, less what it loses by saying nothing."""
        last: dict[str, int] = {}
        for _, lines in self._lines:
            for file, line in lines:
                last[file] = max(last.get(file, 1), line)
        late = [max((line / last[file] for file, line in lines), default=0.0) for _, lines in self._lines]
        lead_in = np.array(
            [is_lead_in(self._words_of_assistant(row)) for row in range(len(self.ids))], dtype=np.float64
        )
        return setting(policy, "later_weight") * np.array(late) - setting(policy, "lead_in_weight") * lead_in

    def _words_of_assistant(self, row: int) -> str:
        """Return what the assistant said in a turn; "" for what a person said and for memories."""
        name, hits, at = self._source[row]
        is_said = name == PASSAGES and hits["kind"][at].as_py() not in PEOPLE_KINDS
        return str(hits["text"][at].as_py()) if is_said else ""

    def _when(self, row: int) -> datetime | None:
        name, hits, at = self._source[row]
        instant: datetime | None = hits["updated_at" if name == MEMORIES else "said_at"][at].as_py()
        return instant

    def nearness(self, row: int, asked: Asked) -> Nearness:
        """Return how near a row is to a question."""
        name, hits, at = self._source[row]
        columns = [column for column in INDEXED[name] if column in hits.schema.names]
        indexed = index_text({column: hits[column][at].as_py() for column in columns})
        cosine = self._similarity[row]
        return asked.nearness(indexed, None if np.isnan(cosine) else cosine)

    def candidate(self, row: int, score: float) -> SearchHit:
        """Return what folding needs of a row."""
        name, hits, at = self._source[row]
        return SearchHit(
            row=row,
            is_memory=name == MEMORIES,
            text=hits["text"][at].as_py(),
            lines=self._lines[row][1],
            score=score,
            updated_at=self._when(row) or EPOCH,
            validity=_validity(hits, at) if name == MEMORIES else Validity.STATED,
            is_record=name == MEMORIES and hits["memory_type"][at].as_py() == "outcome",
            is_asking=self._is_asking(row),
            is_persons=self._places[row][3],
        )

    def _is_asking(self, row: int) -> bool:
        name, hits, at = self._source[row]
        if name == MEMORIES:
            return False
        text = str(hits["text"][at].as_py())
        return asks_anything(text) if self._places[row][3] else ends_asking(text)

    def result(self, group: SearchGroup, scores: Scores, question: RecallQuestion) -> RecallResult:
        """Return the result that a group of rows makes; its score is that of its best row."""
        asked = question.asked
        name, hits, at = self._source[group.rows[0]]
        row = hits.slice(at, 1).drop_columns(_heavy(hits)).to_pylist()[0]
        is_memory = name == MEMORIES
        passages = [self._source[other] for other in group.rows[1:] if self._source[other][0] == PASSAGES]
        quoted = passages[0][1]["text"][passages[0][2]].as_py() if is_memory and passages else None
        statement = self._statement(group.rows[0], question)
        # Of the passage what the memory does not say: its words are mostly those of the question too.
        quote = statement_in(news_in(quoted, [statement]), asked) if quoted else ""
        nearby = tuple(self._nearby(other, group, question) for other in group.nearby)
        rejected = (row.get("rejected") or "") if is_memory else ""
        return RecallResult(
            id=row[ID_COLUMNS[name]],
            kind="memory" if is_memory else "turn",
            memory_type=row["memory_type"] if is_memory else None,
            text=row["text"],
            project_id=row["project_id"],
            score=float(max(scores[other] for other in (*group.rows, *group.nearby))),
            confidence=row["confidence"] if is_memory else None,
            created_at=row["created_at"] if is_memory else row["said_at"],
            evidence=merged(item for other in group.rows for item in _evidence(*self._source[other])),
            trust=row["trust"],
            speaker=speaker_of({**row, "evidence": hits["evidence"][at].as_py()})
            if is_memory
            else row["trust"],
            status=row["status"] if is_memory else "active",
            passage=quoted,
            statement=statement,
            quote=quote,
            why=self._why(row, group, " ".join([statement, quote]), question),
            rejected="" if is_known(rejected, statement) else rejected,
            nearby=nearby,
        )

    def _why(self, lead: Row, group: SearchGroup, shown: str, question: RecallQuestion) -> str:
        """Return the reason of what leads a group: its own, else one that its turns give to the question."""
        own = lead.get("reason") or ""
        if own and not is_known(own, shown):
            return str(own)
        if not question.asks_why:
            return ""
        rows = (self._source[other] for other in group.all)
        texts = (str(hits["text"][at].as_py()) for _, hits, at in rows)
        return reason_in(texts, shown, question.asked, question.patterns.gives_reason)

    def _statement(self, row: int, question: RecallQuestion) -> str:
        """Return what of a row bears on a question; of a turn that only puts something forward it says so."""
        name, hits, at = self._source[row]
        text = str(hits["text"][at].as_py())
        if name == MEMORIES:
            return text
        statement = statement_in(text, question.asked)
        is_proposed = is_proposal(self._words_of_assistant(row) and statement, question.patterns.suggests)
        return f"{PROPOSED}{statement}" if is_proposed else statement

    def _nearby(self, row: int, group: SearchGroup, question: RecallQuestion) -> Nearby:
        name, hits, at = self._source[row]
        text = hits["text"][at].as_py()
        return Nearby(
            id=self.ids[row],
            kind="memory" if name == MEMORIES else "turn",
            memory_type=hits["memory_type"][at].as_py() if name == MEMORIES else None,
            text=text,
            statement=self._statement(row, question),
            evidence=merged(_evidence(name, hits, at)),
            is_earlier=row in group.earlier,
        )


def _shown(memories: pa.Table) -> pa.Table:
    """Return the memories that may be told: valid ones; external ones with their source, or as imported."""
    rows = memories.select(["status", "merged_into", "trust", "evidence", "source_type"]).to_pylist()
    is_shown = [
        row["status"] not in HIDDEN_STATUSES
        and row["merged_into"] is None
        and (row["trust"] != "external" or bool(row["evidence"]) or row["source_type"] == "import")
        for row in rows
    ]
    # Filtering imports all of Arrow's functions, which takes a tenth of a second.
    return memories if all(is_shown) else memories.filter(pa.array(is_shown, pa.bool_()))


def _validity(memories: pa.Table, at: int) -> Validity:
    text = str(memories["text"][at].as_py())
    if text.endswith(CHANGED_SINCE):
        return Validity.OVERTAKEN
    if text.startswith(PROPOSED):
        return Validity.PROPOSED
    return Validity.DECIDED if memories["memory_type"][at].as_py() == "decision" else Validity.STATED


def _places_in(name: str, hits: pa.Table) -> list[tuple[str | None, int, int, bool]]:
    """Return (file, seq, line, is a person's) of each row; a memory stands in no transcript."""
    if name == MEMORIES:
        return [(None, 0, 0, False)] * hits.num_rows
    columns = (hits[column].to_pylist() for column in ("file", "seq", "line", "kind"))
    return [(file, seq, line, kind in PEOPLE_KINDS) for file, seq, line, kind in zip(*columns, strict=True)]


def _lines_of(name: str, hits: pa.Table) -> list[frozenset[Line]]:
    """Return the lines that each row rests on, read column by column: row by row takes ten times as long."""
    if name == PASSAGES:
        pairs = zip(hits["file"].to_pylist(), hits["line"].to_pylist(), strict=True)
        return [frozenset({(str(file), int(line or 0))}) for file, line in pairs]
    return [
        frozenset((item["file"], line) for item in places or () for line in item["lines"])
        for places in hits["evidence"].to_pylist()
    ]


def _heavy(hits: pa.Table) -> list[str]:
    return [name for name in ("vector", "evidence") if name in hits.schema.names]


def _evidence(name: str, hits: pa.Table, at: int) -> Iterator[Evidence]:
    if name == PASSAGES:
        row = {key: hits[key][at].as_py() for key in ("session_id", "file", "line", "said_at")}
        yield Evidence(row["session_id"], row["file"], (row["line"],), row["said_at"])
        return
    for item in hits["evidence"][at].as_py() or ():
        yield Evidence(item["session_id"], item["file"], tuple(item["lines"]), item["said_at"])
