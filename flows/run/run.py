"""One run over a store: its stages, what they read of each scope, which outputs came of which inputs."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import InitVar, dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Protocol

import pyarrow as pa

from cortex.flows.embedders import Embedding
from cortex.flows.reading.shard_worker import NO_WORKERS, RunnerChoice
from cortex.flows.reading.shards import Carrier
from cortex.flows.run.fingerprints import Fingerprints
from cortex.flows.run.source import DATED, LakeSource, ReadingSource, parts_of
from cortex.flows.run_report import Outcome, RunReport
from cortex.storage.lake.manifest import Cut, ManifestNotes, Output
from cortex.storage.published.catalogue import brief_tokens
from cortex.storage.settings.settings import Settings
from cortex.storage.store import Store, start_of_day
from cortex.storage.tables.tables import INDEX_TEXT, UNAGED
from cortex.transforms.extract.quotes import ShownLines, Span
from cortex.transforms.identity import content_id
from cortex.transforms.journal_entries import Recall, entries_in
from cortex.transforms.masking import masked
from cortex.transforms.memory.forgetting import Tombstones, tombstones_of
from cortex.transforms.memory.lifecycle import (
    Aged,
    activity_of,
    age,
    ends_of_days,
    known_weak,
    sessions_joined,
    sessions_of,
)
from cortex.transforms.memory.merged_projects import fold_joined, joined_names, renamed
from cortex.transforms.memory.refold import refold
from cortex.transforms.memory.retention import ProjectRetention, Retention, project_retention
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import (
    EVENTS,
    GLOBAL_SCOPE,
    JOURNAL,
    MEMORIES,
    MODEL_COLUMNS,
    TURNS,
    VECTORS,
    values,
)
from cortex.transforms.search import INDEXED_COLUMNS

# -- Which outputs were made from which inputs: in the store's manifest, or for a rebuild elsewhere.


class Ledger(Protocol):
    """Where a run looks up and notes what stages made; a stage makes nothing twice of the same inputs."""

    @property
    def notes(self) -> ManifestNotes:
        """The notes that `note` replaces."""

    def has_made(self, stage: str, scope: str, fingerprint: str) -> bool:
        """Return whether `stage` made this of these inputs before, or is to leave a failed scope alone."""

    def has_made_any(self, stage: str, scope: str, fingerprints: Iterable[str]) -> bool:
        """Return whether what `stage` made last of a scope, and what is there of it, is of one of these."""

    def note_output(
        self, stage: str, scope: str, fingerprint: str, notes: ManifestNotes | None = None
    ) -> None:
        """Note that it did now, on top of `notes` (default: the present ones)."""

    def note(self, notes: ManifestNotes) -> None:
        """Keep notes on what was made."""

    def note_findings(self, entries: pa.Table) -> list[str]:
        """Journal entries of what ageing found weak, or strong again; return the ids of those that count."""


class StoreLedger:
    """The notes of the store's manifest."""

    def __init__(self, store: Store, outcome: Outcome) -> None:
        self._store, self._outcome = store, outcome

    @property
    def notes(self) -> ManifestNotes:
        """The notes of the last commit."""
        return self._store.lake.notes

    def has_made(self, stage: str, scope: str, fingerprint: str) -> bool:
        """Return whether that is noted and the output is there, or the scope failed."""
        if scope in self._outcome.failed:
            return True
        is_noted = self.notes.outputs.get(Output(stage, scope)) == fingerprint
        return is_noted and self._store.has_output(stage, scope)

    def has_made_any(self, stage: str, scope: str, fingerprints: Iterable[str]) -> bool:
        """Return whether one of them is noted and the output is there."""
        noted = self.notes.outputs.get(Output(stage, scope))
        if noted is None or not self._store.is_output_there(stage, scope):
            return False
        return noted in fingerprints

    def note_output(
        self, stage: str, scope: str, fingerprint: str, notes: ManifestNotes | None = None
    ) -> None:
        """Note that it did."""
        self.note(_noted(self._store, notes or self.notes, Output(stage, scope), fingerprint))

    def note(self, notes: ManifestNotes) -> None:
        """Note what was made; a stage's notes are committed together, at its end."""
        self._store.lake.note_later(notes)

    def note_findings(self, entries: pa.Table) -> list[str]:
        """Commit them to the journal."""
        if entries.num_rows:
            self._store.journal.commit(entries)
        return values(entries, "entry_id")


class FreshLedger:
    """The notes of outputs rebuilt from nothing; they count once these outputs are in place."""

    def __init__(self, store: Store, outcome: Outcome) -> None:
        self._store, self._outcome = store, outcome
        self.notes = ManifestNotes()

    def has_made(self, stage: str, scope: str, fingerprint: str) -> bool:
        """Return whether to leave a scope alone: only if its audit failed."""
        return scope in self._outcome.failed

    def has_made_any(self, stage: str, scope: str, fingerprints: Iterable[str]) -> bool:
        """Return that it has not: what is made here follows from the lake alone."""
        return False

    def note_output(
        self, stage: str, scope: str, fingerprint: str, notes: ManifestNotes | None = None
    ) -> None:
        """Keep a note of it."""
        self.note(_noted(self._store, notes or self.notes, Output(stage, scope), fingerprint))

    def note(self, notes: ManifestNotes) -> None:
        """Keep the notes."""
        self.notes = notes

    def note_findings(self, entries: pa.Table) -> list[str]:
        """Note nothing: the lake is read here, and a run that follows finds the same."""
        return []


def _noted(store: Store, notes: ManifestNotes, output: Output, fingerprint: str) -> ManifestNotes:
    """Return `notes` once `output` was made, or nothing of it."""
    return notes.with_output(output, fingerprint, is_empty=not store.is_output_there(*output))


# -- What a run reads of each scope: turns, events, journal, memories, vectors, and what follows from them.

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
        # What was asked of a scope's table, where that was made of other inputs.
        self._changed: set[tuple[str, str, str | None]] = set()
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

    def turns(self, scope: str, sessions: set[str] | None = None) -> pa.Table:
        """Return the TURNS of a project or some sessions, each once, also of what was merged into it."""
        return self._source.turns(scope, sessions)

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
        """Return which memories of a scope are known to be weak, as `known_weak` gives it."""
        return known_weak(self.merged_journal(scope))

    def memories(self, scope: str) -> pa.Table:
        """
        Return the undecayed MEMORIES of a scope, folded once per state of its inputs.

        Where its table was made of the same inputs on an earlier day they are read there: folding a million
        memories takes minutes. Where only more has been said since, only what that touches is folded.
        """
        inputs = self._fingerprints.inputs(scope)
        known = self._folded.get(scope)
        if known is not None and known[0] == inputs:
            return known[1]
        unaged = self._unaged(scope, [*MEMORIES.arrow.names, *UNAGED.values()])
        if unaged is not None:
            return _as_folded(unaged)
        folded = self._refolded(scope)
        if folded is None:
            whole = fold_joined(self.events(scope), self.journal(scope), self._policy, scope)
            folded = masked(whole, MEMORIES)
        self._folded[scope] = (inputs, folded)
        return folded

    def fold_note(self, scope: str, generation: int) -> Cut | None:
        """
        Return what is noted of a scope's table of memories that was made of the lake as of a generation.

        None where it is not known which rows would be folded again: of several projects, or of the past.
        """
        parts, lake = self.parts(scope), self._store.lake
        content = self._store.tables.content_of(scope, "memories")
        output = self._ledger.notes.outputs.get(Output("decay", scope))
        if self.is_past or content is None or output is None or (scope != GLOBAL_SCOPE and parts != [scope]):
            return None
        files = lake.fingerprint(JOURNAL, scope, until=generation)
        return Cut(output, self._fingerprints.folded(), generation, files, content=content)

    def _kept_fold(self, scope: str) -> Cut | None:
        """Return what is noted of the fold that a scope's table is of; None if the table is of another."""
        cut = self._ledger.notes.cuts.get(Output("decay", scope))
        return cut if cut is not None and self.fold_note(scope, cut.generation) == cut else None

    def _refolded(self, scope: str) -> pa.Table | None:
        """Return the undecayed MEMORIES of a scope, folded as far as they have changed; None if unknown."""
        cut, lake = self._kept_fold(scope), self._store.lake
        if cut is None:
            return None
        columns = [*MEMORIES.arrow.names, *UNAGED.values()]
        rows, journal, parts = self._rows(scope, columns), self.journal(scope), self.parts(scope)
        if rows is None:
            return None

        since = cut.generation
        sessions = {name for part in parts for name in lake.sessions_since(EVENTS, part, since)}
        earlier = set(values(lake.read(JOURNAL, scope, ["entry_id"]), "entry_id"))
        earlier -= set(values(lake.read(JOURNAL, scope, ["entry_id"], since=since), "entry_id"))
        is_new = pa.array([name not in earlier for name in values(journal, "entry_id")], pa.bool_())
        parted = refold(
            _as_folded(rows), sessions, journal.filter(is_new), self.events(scope), journal, self._policy
        )
        if parted is None:
            return None
        return pa.concat_tables([parted[0], masked(parted[1], MEMORIES)]).sort_by("memory_id")

    def is_unchanged(self, scope: str) -> bool:
        """Return whether a scope's table of memories is of the same inputs, as of this day or one before."""
        of_day = self._fingerprints.aged_by_day(scope)
        asked = scope, of_day(self._day, ()), self._ledger.notes.outputs.get(Output("decay", scope))
        # So many nights take 10 ms, and a run with news asks three times.
        if asked in self._changed:
            return False
        days = (self._day - timedelta(days=back) for back in range(NIGHTS_LOOKED_BACK))
        is_made = self._ledger.has_made_any("decay", scope, (of_day(each, ()) for each in days))
        self._changed |= set() if is_made else {asked}
        return is_made

    def index_texts(self, scope: str) -> pa.Table | None:
        """Return what a scope's table was searched by, and the columns it was made of; None if unknown."""
        if not self.is_unchanged(scope) and self._kept_fold(scope) is None:
            return None
        of_memories = [name for name in INDEXED_COLUMNS if name in MEMORIES.arrow.names]
        return self._rows(scope, ["memory_id", *of_memories, INDEX_TEXT])

    def _unaged(self, scope: str, columns: list[str]) -> pa.Table | None:
        """Return columns of a scope's table of memories if it is of the same inputs, else None."""
        return self._rows(scope, columns) if self.is_unchanged(scope) else None

    def _rows(self, scope: str, columns: list[str]) -> pa.Table | None:
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


# -- One run over a store: the parts that its stages read from and write to.

# (stage, done, total): called as a stage goes on, for a progress bar.
Progress = Callable[[str, int, int], None]


def no_progress(stage: str, done: int, total: int) -> None:
    """Show nothing."""


@dataclass
class Run:
    """
    One run over the store; `now` is the only clock its stages see.

    `readings` is what the lake says, `ledger` what was made from which inputs (by `fingerprints`), `outcome`
    which scopes keep their last good version. Another `source` and `ledger_type` make a run that looks at
    another day, or writes to other tables than the live ones.
    """

    store: Store
    settings: Settings
    policy: Policy
    now: datetime
    report: RunReport
    embedding: Embedding = field(default_factory=Embedding)
    progress: Progress = no_progress
    accepts_loss: bool = False  # a person lets the run hide much of what was shown
    runner: RunnerChoice = NO_WORKERS
    carrier: Carrier | None = None  # who reads, extracts and embeds shards of what is new, if anybody
    tables_as_left: bool = False  # by the last run: none of them need be opened to see that it is whole
    # What came of decisions, by project, with what it was counted of: a brief and the snapshots say it.
    outcomes: dict[str, tuple[str, pa.Table]] = field(default_factory=dict)
    model_requests: int = 0  # what a language model was sent in this run
    # The folder whose project a language model reads alone in this run, where that has sessions to be read.
    first_folder: str = ""
    source: InitVar[ReadingSource | None] = None
    ledger_type: InitVar[type[StoreLedger] | type[FreshLedger]] = StoreLedger
    outcome: Outcome = field(init=False)
    fingerprints: Fingerprints = field(init=False)
    readings: Readings = field(init=False)
    ledger: Ledger = field(init=False)

    def __post_init__(
        self,
        source: ReadingSource | None,
        ledger_type: type[StoreLedger] | type[FreshLedger],
    ) -> None:
        """Put the parts together."""
        source = source or LakeSource(self.store)
        # The projects are read once they are needed: an import commits those it brings under this very run.
        self.outcome = Outcome(self.report, lambda scope: self.store.projects.canonical(scope))
        self.fingerprints = Fingerprints(self.store, self.policy, source, self.embedding)
        self.ledger = ledger_type(self.store, self.outcome)
        self.readings = Readings(
            self.store,
            self.policy,
            source,
            self.fingerprints,
            self.embedding,
            self.outcome,
            self.ledger,
            self.day,
        )

    @property
    def day(self) -> datetime:
        """The start of the UTC day: what ageing counts from."""
        return start_of_day(self.now)

    @cached_property
    def retention(self) -> Retention:
        """What each project keeps as of this day."""
        settings, projects = self.settings, self.store.projects
        everywhere = project_retention(self.day, settings.retention_days, settings.retention_types)
        named = {name for chosen in settings.by_project.values() for name in chosen}
        if not named & {"retention.days", "retention.types"}:
            return Retention(everywhere)
        by_project: dict[str, ProjectRetention] = {}
        for project in projects.all():
            own = settings.of_project(project.project_id, project.paths)
            rule = project_retention(self.day, own.retention_days, own.retention_types)
            if rule != everywhere:
                by_project |= {part: rule for part in projects.parts_of(project.project_id)}
        return Retention(everywhere, by_project)

    def brief_tokens(self, project_id: str) -> int:
        """Return the budget of a project's brief: what a person set, else by whether a model read it."""
        chosen = brief_tokens(self.settings, self.store.projects.known_project(project_id))
        kind = "brief_tokens_by_model" if self.is_read_by_model(project_id) else "brief_tokens_by_rules"
        return chosen or int(self.policy.threshold(kind))

    def is_read_by_model(self, project_id: str) -> bool:
        """Return whether answers of a language model about the project's sessions count."""
        if not self.settings.models.uses_replies:
            return False
        held = set(self.store.lake.manifest.partitions("replies"))
        return not held.isdisjoint(self.store.projects.parts_of(project_id))


@dataclass(frozen=True)
class Stage:
    """
    One step of a flow, safe to repeat: run twice it does what it does once.

    `reads` and `writes` name tables of the lake and of the scopes; a test compares them with what the stage
    opens. What is published and what waits in staging is not in them.
    """

    name: str
    reads: frozenset[str]
    writes: frozenset[str]
    work: Callable[[Run], None]

    def __call__(self, run: Run) -> None:
        """Do the work; what it notes of its outputs, scope by scope, is committed at once."""
        with run.store.lake.gathering_notes():
            self.work(run)


def stage(*, reads: str = "", writes: str = "") -> Callable[[Callable[[Run], None]], Stage]:
    """Return a decorator that makes a function a stage of its name; tables are named with spaces between."""
    return lambda work: Stage(work.__name__, frozenset(reads.split()), frozenset(writes.split()), work)
