"""What every stage of one run is given: the store, the policy, the model, the clock's reading, the report."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.embedders import Embedder, local_or_none
from cortex.flows.report import RunReport
from cortex.storage.lake import each_key_once
from cortex.storage.model_failure import ModelFailure, clear_failure, note_failure
from cortex.storage.notes import Makers, Notes, Output
from cortex.storage.repository import commits_since, doubts_of
from cortex.storage.settings import Settings
from cortex.storage.store import Store, start_of_day
from cortex.transforms.audit import Breach
from cortex.transforms.errors import AuditFailed, FileDamaged, LossRefused, ModelUnavailable
from cortex.transforms.extract.echoes import ShownLines, Span
from cortex.transforms.faults import contained
from cortex.transforms.identity import content_id
from cortex.transforms.journal_entries import Recall, entries_in
from cortex.transforms.masking import masked
from cortex.transforms.memory.fading import findings, known_weak
from cortex.transforms.memory.forgetting import Tombstones, tombstones_of
from cortex.transforms.memory.joined import fold_as_one, in_project, names_in_one, renamed
from cortex.transforms.memory.lifecycle import Aged, activity_of, age, sessions_of
from cortex.transforms.memory.reality import Doubt
from cortex.transforms.memory.review import doubts_left
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EVENTS, GLOBAL_SCOPE, MEMORIES, TURNS, VECTORS, values

# Raise it when the code of a stage changes what it makes of the same inputs.
STAGES_VERSION = "7"

# An error message of more is not read; the run report has them all.
BREACHES_NAMED = 5

# (stage, done, total): called as a stage goes on, for a progress bar.
Progress = Callable[[str, int, int], None]


def no_progress(stage: str, done: int, total: int) -> None:
    """Show nothing."""


@dataclass
class Run:
    """One run over the store; `now` is the only clock its stages see."""

    store: Store
    settings: Settings
    policy: Policy
    now: datetime
    report: RunReport
    embedder: Embedder | None = None
    progress: Progress = no_progress
    accepts_loss: bool = False  # a person lets the run hide much of what was shown
    lacks_vectors: bool = False  # the model gave no answer: what is missing is filled by the next run
    failure: ModelFailure | None = None  # of the hosted model that the local one stands in for
    is_doubted: bool = False  # the hosted model failed before and is asked again
    failed: set[str] = field(default_factory=set)  # scopes that keep their last good version in this run
    damages: list[FileDamaged] = field(default_factory=list)  # what stopped scopes, but not the run
    refused: LossRefused | None = None  # why briefs keep their last good version in this run
    _folded: dict[str, tuple[str, pa.Table]] = field(default_factory=dict)
    _vectors: tuple[str, pa.Table] | None = None
    _sessions: tuple[str, pa.Table] | None = None

    @property
    def day(self) -> datetime:
        """The start of the UTC day: what ageing counts from."""
        return start_of_day(self.now)

    @property
    def model(self) -> str:
        """The embedding model's name, empty when there is none."""
        return self.embedder.model if self.embedder else ""

    def brief_tokens(self, project_id: str) -> int:
        """Return the budget of a project's brief."""
        if not self.settings.by_project:
            return self.settings.brief_tokens
        return self.settings.of_project(project_id, self.store.projects.paths_of(project_id)).brief_tokens

    @property
    def keeps_since(self) -> datetime | None:
        """The start of the first day that is kept; None where the settings keep everything."""
        days = self.settings.retention_days
        return self.day - timedelta(days=days) if days else None

    def tombstones(self) -> Tombstones:
        """Return what no transcript may bring back."""
        return tombstones_of(self.store.journal.read(), self.keeps_since)

    def scopes(self) -> list[str]:
        """Return every scope with something in it, the global one last."""
        lake = self.store.lake
        named = set(lake.manifest.partitions("turns")) | set(self.store.journal.scopes())
        whole = {self.store.projects.canonical(name) for name in named - {GLOBAL_SCOPE}}
        return [*sorted(whole), GLOBAL_SCOPE]

    def parts(self, scope: str) -> list[str]:
        """Return the partitions of the lake that hold what was said in a scope: of the global one all."""
        if scope == GLOBAL_SCOPE:
            return self.store.lake.manifest.partitions("turns")
        return self.store.projects.parts_of(scope)

    def turns(self, scope: str) -> pa.Table:
        """Return the TURNS of a project, each once, also those of what was merged into it."""
        rows = [self.store.lake.read(TURNS, part) for part in self.parts(scope)]
        return in_project(each_key_once(TURNS, pa.concat_tables(rows)), scope)

    def events(self, scope: str) -> pa.Table:
        """Return the EVENTS that fold into a scope: the project's own, or the global ones of all projects."""
        rows = pa.concat_tables(
            [EVENTS.empty(), *(self.store.lake.read(EVENTS, part) for part in self.parts(scope))]
        )
        category = "global" if scope == GLOBAL_SCOPE else "project"
        return rows.filter(pc.equal(rows["category"], pa.scalar(category)))

    def journal(self, scope: str) -> pa.Table:
        """Return the JOURNAL entries of a scope and of what was merged into it, as they were noted."""
        parts = [scope] if scope == GLOBAL_SCOPE else self.parts(scope)
        return pa.concat_tables([self.store.journal.read(part) for part in parts])

    def journal_in_one(self, scope: str) -> pa.Table:
        """Return the entries of `journal` as if all had been about one project: its id, its memories' ids."""
        journal = self.journal(scope)
        if len(self.parts(scope)) == 1 or scope == GLOBAL_SCOPE:
            return journal
        return renamed(journal, names_in_one(self.events(scope), journal, self.policy, scope), scope)

    def sessions(self) -> pa.Table:
        """Return every session of the store: (project_id, session_id, started_at, ended_at)."""
        made = self.store.lake.fingerprint(TURNS)
        if self._sessions is None or self._sessions[0] != made:
            self._sessions = (made, sessions_of(self.dated_turns(), self.store.projects.merged()))
        return self._sessions[1]

    def dated_turns(self, part: str | None = None) -> pa.Table:
        """Return who said something when, (project_id, session_id, said_at), in a partition or anywhere."""
        columns = ["project_id", "session_id", "said_at"]
        rows = [TURNS.empty().select(columns)]
        for name in [part] if part is not None else self.store.lake.manifest.partitions(TURNS.name):
            with self.without_damage(name):
                rows.append(self.store.lake.read(TURNS, name, columns=columns))
        return pa.concat_tables(rows)

    def activity(self, scope: str) -> pa.Table:
        """Return when a scope was worked on, as `lifecycle.activity_of` gives it; the global one anywhere."""
        parts = [None] if scope == GLOBAL_SCOPE else self.parts(scope)
        turns = pa.concat_tables([self.dated_turns(part) for part in parts])
        return activity_of(turns, self.journal(scope), scope)

    def weak(self, scope: str) -> pa.Table:
        """Return which memories of a scope are known to be weak, as `fading.known_weak` gives it."""
        return known_weak(self.journal_in_one(scope))

    def aged(self, scope: str) -> Aged:
        """Return a scope's memories as they are today, by the edges of its tables."""
        edges = self.store.tables.open(scope, "edges").read()
        return age(
            self.memories(scope),
            edges,
            self.policy,
            self.day,
            activity=self.activity(scope),
            weak=self.weak(scope),
        )

    def note_findings(self, scope: str, aged: Aged) -> None:
        """Journal which memories of a scope were found weak, or strong again."""
        rows = findings(aged, self.weak(scope), scope, self.now)
        if rows.num_rows:
            self.store.journal.commit(rows)

    def doubts(self, project_id: str, memories: pa.Table) -> list[Doubt]:
        """Return what the project's repository on this machine has against MEMORIES (spec 11.3)."""
        doubts = doubts_of(self.store.projects.paths_of(project_id), memories, self.policy)
        return doubts_left(doubts, self.journal_in_one(project_id)) if doubts else []

    def repository_line(self, project_id: str) -> str:
        """Return one line on what git has seen since the project's last session; empty for little."""
        mine = self.sessions().filter(pc.field("project_id") == project_id)
        if not mine.num_rows:
            return ""
        last = max(values(mine, "ended_at"))
        count, head = commits_since(self.store.projects.paths_of(project_id), last)
        if count < self.policy.threshold("reality_commits_told"):
            return ""
        return f"{count} commits since the last session noted here ({last:%d %b %y}); HEAD was {head}."

    def told(self, project_id: str) -> ShownLines:
        """Return what Cortex told a project: in its briefs, and in what was recalled anywhere."""
        spans: dict[str, list[Span]] = {}
        for part in self.parts(self.store.projects.canonical(project_id)):
            for mark, found in self.store.telling.spans(part).items():
                spans.setdefault(mark, []).extend(found)
        for row, recall in entries_in(self.store.journal.read(), Recall):
            for mark in recall.marks or ():
                spans.setdefault(mark, []).append((row["recorded_at"], row["recorded_at"]))
        return ShownLines(spans, timedelta(days=self.policy.threshold("told_echo_days")))

    def memories(self, scope: str) -> pa.Table:
        """Return the undecayed MEMORIES of a scope, folded once per state of its inputs."""
        inputs = self.inputs(scope)
        known = self._folded.get(scope)
        if known is None or known[0] != inputs:
            folded = fold_as_one(self.events(scope), self.journal(scope), self.policy, scope)
            known = (inputs, masked(folded, MEMORIES))
            self._folded[scope] = known
        return known[1]

    def vectors(self, model: str = "") -> pa.Table:
        """Return the VECTORS of a model (default: the run's), read once per state of the lake."""
        model = model or self.model
        if not model:
            return VECTORS.empty()
        made = content_id(model, self.store.lake.fingerprint(VECTORS, model))
        if self._vectors is None or self._vectors[0] != made:
            self._vectors = (made, self.store.lake.read(VECTORS, model).combine_chunks())
        return self._vectors[1]

    def fall_back(self, error: ModelUnavailable) -> None:
        """Go on with the local model where the hosted one failed, and note that; else without vectors."""
        spare = self.spare()
        if spare is None:
            self.lacks_vectors = True
            return
        self.failure = ModelFailure(self.model, self.now, error.problem)
        note_failure(self.store.home, self.failure)
        self.embedder = spare

    def spare(self) -> Embedder | None:
        """Return the local model where the hosted one is in use; None where there is no other."""
        is_hosted = bool(self.settings.voyage_api_key) and self.embedder is not None
        spare = local_or_none() if is_hosted else None
        return spare if spare is not None and spare.model != self.model else None

    def trust_model(self) -> None:
        """Note that the model in use answers; of the one that it stands in for that says nothing."""
        if self.is_doubted and self.failure is None:
            clear_failure(self.store.home)
            self.is_doubted = False

    def inputs(self, scope: str, also: Sequence[str] = ()) -> str:
        """Return the fingerprint of what a scope's tables are made from, once the entries `also` are in."""
        lake = self.store.lake
        parts = [scope] if scope == GLOBAL_SCOPE else self.parts(scope)
        read = [None] if scope == GLOBAL_SCOPE else parts
        entries = {name for part in parts for name in self.store.journal.entry_ids(part)}
        return content_id(
            STAGES_VERSION,
            self.policy.fingerprint,
            *(lake.fingerprint(table, part) for part in read for table in (TURNS, EVENTS)),
            *parts[1:],
            *sorted({*entries, *also}),
        )

    def aged_inputs(self, scope: str, day: datetime) -> str:
        """Return the fingerprint of what a scope's aged memories are made from on a day, and its brief."""
        return self.aged_inputs_by_day(scope)(day)

    def aged_inputs_by_day(self, scope: str) -> Callable[[datetime], str]:
        """Return `aged_inputs` of a scope for any day; the lake is looked at once."""
        parts = [scope] if scope == GLOBAL_SCOPE else self.parts(scope)
        noted = sorted({name for part in parts for name in self.store.journal.finding_ids(part)})
        inputs = self.inputs(scope)
        return lambda day: content_id(inputs, self.model, day.isoformat(), *noted)

    def makers(self, scope: str) -> Makers:
        """Return what a scope's tables follow from besides the lake."""
        noted = self.store.lake.notes.extractors
        parts = noted if scope == GLOBAL_SCOPE else self.parts(scope)
        extractors = sorted({noted[part] for part in parts if part in noted})
        return Makers(self.policy.fingerprint, content_id(*extractors))

    def has_made(self, stage: str, scope: str, fingerprint: str) -> bool:
        """Return whether `stage` made this of these inputs before, or is to leave a failed scope alone."""
        if scope in self.failed:
            return True
        is_noted = self.store.lake.notes.made.get(Output(stage, scope)) == fingerprint
        return is_noted and self.store.has_output(stage, scope)

    def made(self, stage: str, scope: str, fingerprint: str, notes: Notes | None = None) -> None:
        """Note that it did now, on top of `notes`; without all vectors it is to be made again."""
        is_empty = not self.store.is_output_there(stage, scope)
        notes = notes or self.notes
        self.note(notes.with_made(Output(stage, scope), fingerprint, is_empty=is_empty))

    @property
    def notes(self) -> Notes:
        """The notes that `note` replaces."""
        return self.store.lake.notes

    def note(self, notes: Notes) -> None:
        """Keep notes on what was made; without all vectors none, so that it is made again."""
        if not self.lacks_vectors:
            self.store.lake.note(notes)

    def join_small_files(self) -> None:
        """Rewrite each crowded partition as one file, so that a thousand runs leave no thousand files."""
        for table, part in self.store.lake.crowded():
            with self.without_damage(part):
                self.store.lake.compact(table, part)

    @contextmanager
    def without_damage(self, scope: str) -> Iterator[None]:
        """Let a damaged file of the lake cost `scope` its next version, and no other scope anything."""
        try:
            yield
        except FileDamaged as error:
            self._fail(scope)
            self.damages.append(error)

    @contextmanager
    def apart(self, scope: str, stage: str) -> Iterator[None]:
        """Let what nobody foresaw, or a damaged file, cost `scope` alone its next version."""
        faults: list[str] = []
        with self.without_damage(scope), contained(faults.append):
            yield
        for fault in faults:
            self._fail(scope)
            self.report.breaches.append(Breach(stage, scope, fault))

    def _fail(self, scope: str) -> None:
        self.failed |= {scope, self.store.projects.canonical(scope)}

    def passes(self, scope: str, rows: int, audit: Callable[[], list[Breach]]) -> bool:
        """
        Return whether `audit` of `rows` rows finds nothing, so that they may become visible.

        Else the scope keeps its last good version: the stages that follow leave it alone, the other scopes
        go on, and the run ends with AuditFailed. The report names every breach.
        """
        with self.report.stage("audit") as row:
            breaches = audit()
            row.rows_in += rows
            row.rows_out += len(breaches)
            row.note = "rows out: breaches; its seconds are part of the other stages'"
        if breaches:
            self._fail(scope)
            self.report.breaches += breaches
        return not breaches

    def check_passed(self) -> None:
        """
        Raise AuditFailed, naming the first breaches by id and reason, if an audit of this run failed.

        Raises FileDamaged where a damaged file kept scopes from their next version, LossRefused where briefs
        were held back.
        """
        found = sorted(self.report.breaches)
        if self.damages and not found:
            raise self.damages[0]
        if not found and self.refused:
            raise self.refused
        if not found:
            return
        named = "; ".join(f"{b.table} {b.row_id[:32]}: {b.reason}" for b in found[:BREACHES_NAMED])
        more = f"; and {len(found) - BREACHES_NAMED} more" if len(found) > BREACHES_NAMED else ""
        raise AuditFailed(
            f"the audit kept the last good version of {', '.join(sorted(self.failed))}: {named}{more}.",
            "The report in runs/reports names all of them. Forget or mend the rows and run again; "
            "`cortex rebuild` takes over what is right though much was lost.",
        )
