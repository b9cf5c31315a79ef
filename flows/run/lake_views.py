"""What a run reads of each scope: turns, events, journal, memories, vectors, and what follows from them."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import pyarrow as pa

from cortex.flows.context.outcome import Outcome
from cortex.flows.embedders.embedding import Embedding
from cortex.flows.run.fingerprints import Fingerprints
from cortex.flows.run.ledger import Ledger
from cortex.flows.run.source import DATED, ReadingSource, parts_of
from cortex.storage.store import Store
from cortex.storage.tables.tables import INDEX_TEXT, UNAGED
from cortex.transforms.extract.echoes import ShownLines, Span
from cortex.transforms.identity import content_id
from cortex.transforms.journal_entries import Recall, entries_in
from cortex.transforms.masking import masked
from cortex.transforms.memory.fading import known_weak
from cortex.transforms.memory.forgetting import Tombstones, tombstones_of
from cortex.transforms.memory.lifecycle import (
    Aged,
    activity_of,
    age,
    ends_of_days,
    sessions_joined,
    sessions_of,
)
from cortex.transforms.memory.merged_projects import fold_joined, joined_names, renamed
from cortex.transforms.memory.retention import Retention
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import GLOBAL_SCOPE, MEMORIES, MODEL_COLUMNS, TURNS, VECTORS

# A store that rested longer is folded again.
NIGHTS_LOOKED_BACK = 400


class Readings:
    """
    What `source` says, and what follows from it by transforms alone; kept while their inputs stay the same.

    A damaged file of the lake costs only the scope that it belongs to.
    """

    def __init__(
        self,
        store: Store,
        policy: Policy,
        source: ReadingSource,
        fingerprints: Fingerprints,
        embedding: Embedding,
        outcome: Outcome,
        ledger: Ledger,
        day: datetime,
    ) -> None:
        self._store, self._policy, self._source = store, policy, source
        self._fingerprints, self._embedding, self._outcome = fingerprints, embedding, outcome
        self._ledger, self._day = ledger, day
        self._folded: dict[str, tuple[str, pa.Table]] = {}
        self._vectors: tuple[str, pa.Table] | None = None
        self._sessions: tuple[str, pa.Table] | None = None

    @property
    def is_past(self) -> bool:
        """Whether another day than the present one is read; the repository says nothing of it."""
        return bool(self._source.stamp)

    def scopes(self) -> list[str]:
        """Return every scope with something in it, the global one last."""
        return self._source.scopes()

    def parts(self, scope: str) -> list[str]:
        """Return the partitions of the lake that hold what was said in a scope: of the global one all."""
        return parts_of(self._store, scope)

    def turns(self, scope: str) -> pa.Table:
        """Return the TURNS of a project, each once, also those of what was merged into it."""
        return self._source.turns(scope)

    def events(self, scope: str) -> pa.Table:
        """Return the EVENTS that fold into a scope: the project's own, or the global ones of all projects."""
        return self._source.events(scope)

    def journal(self, scope: str) -> pa.Table:
        """Return the JOURNAL entries of a scope and of what was merged into it, as they were noted."""
        return self._source.journal(scope)

    def merged_journal(self, scope: str) -> pa.Table:
        """Return the entries of `journal` as if all had been about one project: its id, its memories' ids."""
        journal = self.journal(scope)
        if scope == GLOBAL_SCOPE or len(self.parts(scope)) == 1:
            return journal
        return renamed(journal, joined_names(self.events(scope), journal, self._policy, scope), scope)

    def tombstones(self, retention: Retention) -> Tombstones:
        """Return what no transcript may bring back: what was forgotten, and what is older than is kept."""
        return tombstones_of(self._store.journal.read(), retention)

    def sessions(self) -> pa.Table:
        """Return every session of the store: (project_id, session_id, started_at, ended_at)."""
        files = self._store.lake.fingerprint(TURNS)
        if self._sessions is None or self._sessions[0] != files:
            merged = self._store.projects.merged()
            spans = [sessions_of(rows, merged) for rows in self._dated_turns()]
            self._sessions = (files, sessions_joined(spans))
        return self._sessions[1]

    def activity(self, scope: str) -> pa.Table:
        """Return when a scope was worked on, as `lifecycle.activity_of` gives it; the global one anywhere."""
        turns = self._dated_turns(None if scope == GLOBAL_SCOPE else self.parts(scope))
        return activity_of(pa.concat_tables(map(ends_of_days, turns)), self.journal(scope), scope)

    def _dated_turns(self, parts: list[str] | None = None) -> Iterator[pa.Table]:
        """Yield who spoke when: (project_id, session_id, said_at) of one partition (of all) at a time."""
        yield TURNS.empty().select(DATED)
        for part in self._store.lake.manifest.partitions(TURNS.name) if parts is None else parts:
            with self._outcome.without_damage(part):
                yield self._source.dated_turns(part)

    def weak(self, scope: str) -> pa.Table:
        """Return which memories of a scope are known to be weak, as `fading.known_weak` gives it."""
        return known_weak(self.merged_journal(scope))

    def memories(self, scope: str) -> pa.Table:
        """
        Return the undecayed MEMORIES of a scope, folded once per state of its inputs.

        Where its table was made of the same inputs on an earlier day they are read there: folding a million
        memories takes minutes.
        """
        inputs = self._fingerprints.inputs(scope)
        known = self._folded.get(scope)
        if known is not None and known[0] == inputs:
            return known[1]
        unaged = self._unaged(scope, [*MEMORIES.arrow.names, *UNAGED.values()])
        if unaged is not None:
            return _as_folded(unaged)
        folded = fold_joined(self.events(scope), self.journal(scope), self._policy, scope)
        self._folded[scope] = (inputs, masked(folded, MEMORIES))
        return self._folded[scope][1]

    def is_unchanged(self, scope: str) -> bool:
        """Return whether a scope's table of memories is of the same inputs, as of this day or one before."""
        of_day = self._fingerprints.aged_by_day(scope)
        days = (self._day - timedelta(days=back) for back in range(NIGHTS_LOOKED_BACK))
        return self._ledger.has_made_any("decay", scope, (of_day(each, ()) for each in days))

    def index_texts(self, scope: str) -> pa.Table | None:
        """Return (memory_id, index_text) of a scope's table, by id; None if they may be others now."""
        return self._unaged(scope, ["memory_id", INDEX_TEXT])

    def _unaged(self, scope: str, columns: list[str]) -> pa.Table | None:
        """Return columns of a scope's table of memories if it is of the same inputs, else None."""
        if not self.is_unchanged(scope):
            return None
        rows = self._store.tables.open(scope, "memories").read(columns)
        return rows if rows.schema.names == columns else None

    def aged(self, scope: str, day: datetime) -> Aged:
        """Return a scope's memories as they are on `day`, by the edges of its tables."""
        edges = self._store.tables.open(scope, "edges").read()
        activity, weak = self.activity(scope), self.weak(scope)
        return age(self.memories(scope), edges, self._policy, day, activity=activity, weak=weak)

    def vectors(self) -> pa.Table:
        """Return the VECTORS of the run's model, read once per state of the lake."""
        model = self._embedding.model
        if not model:
            return VECTORS.empty()
        files = content_id(model, self._store.lake.fingerprint(VECTORS, model))
        if self._vectors is None or self._vectors[0] != files:
            self._vectors = (files, self._source.vectors(model))
        return self._vectors[1]

    def shown_lines(self, project_id: str) -> ShownLines:
        """Return what Cortex showed a project: in its briefs, and in what was recalled anywhere."""
        spans: dict[str, list[Span]] = {}
        for part in self.parts(self._store.projects.canonical(project_id)):
            for mark, shown in self._store.shown_lines.spans(part).items():
                spans.setdefault(mark, []).extend(shown)
        for row, recall in entries_in(self._store.journal.read(), Recall):
            for mark in recall.marks or ():
                spans.setdefault(mark, []).append((row["recorded_at"], row["recorded_at"]))
        return ShownLines(spans, timedelta(days=self._policy.threshold("told_echo_days")))


def _as_folded(rows: pa.Table) -> pa.Table:
    """Return MEMORIES as the fold made them, from a table that also holds their aged values."""
    for name, unaged in UNAGED.items():
        position, field = rows.schema.get_field_index(name), MEMORIES.arrow.field(name)
        rows = rows.set_column(position, field, rows[unaged].cast(field.type))
    for name in MODEL_COLUMNS:
        position, field = rows.schema.get_field_index(name), MEMORIES.arrow.field(name)
        rows = rows.set_column(position, field, pa.nulls(rows.num_rows, field.type))
    return rows.select(MEMORIES.arrow.names).cast(MEMORIES.arrow)
