"""What every stage of one run is given: the store, the policy, the model, the clock's reading, the report."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from cortex.errors import AuditFailed
from cortex.flows.report import RunReport
from cortex.providers import Embedder
from cortex.settings import Settings
from cortex.storage.journal import GLOBAL_SCOPE
from cortex.storage.lake import each_key_once
from cortex.storage.repository import commits_since, doubts_of
from cortex.storage.store import Store, start_of_day
from cortex.transforms.audit import Breach
from cortex.transforms.forgetting import Tombstones, tombstones_of
from cortex.transforms.identity import content_id
from cortex.transforms.joined import fold_as_one, in_project, names_in_one, renamed
from cortex.transforms.lifecycle import sessions_of
from cortex.transforms.policy import Policy
from cortex.transforms.reality import Doubt
from cortex.transforms.review import doubts_left
from cortex.transforms.schemas import EVENTS, TURNS, VECTORS, values
from cortex.transforms.told import Span, Told

# Raise it when the code of a stage changes what it makes of the same inputs.
STAGES_VERSION = "2"

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
    lacks_vectors: bool = False  # the model gave no answer: what is missing is filled by the next run
    failed: set[str] = field(default_factory=set)  # scopes that keep their last good version in this run
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
            columns = ["project_id", "session_id", "said_at"]
            rows = self.store.lake.read(TURNS, columns=columns)
            self._sessions = (made, sessions_of(rows, self.store.projects.merged()))
        return self._sessions[1]

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

    def told(self, project_id: str) -> Told:
        """Return what Cortex told a project: in its briefs, and in what was recalled anywhere."""
        spans: dict[str, list[Span]] = {}
        for part in self.parts(self.store.projects.canonical(project_id)):
            for mark, found in self.store.telling.spans(part).items():
                spans.setdefault(mark, []).extend(found)
        for row in self.store.journal.read().to_pylist():
            if row["kind"] == "recall":
                for mark in json.loads(row["payload"]).get("told", []):
                    spans.setdefault(mark, []).append((row["recorded_at"], row["recorded_at"]))
        return Told(spans, timedelta(days=self.policy.threshold("told_echo_days")))

    def memories(self, scope: str) -> pa.Table:
        """Return the undecayed MEMORIES of a scope, folded once per state of its inputs."""
        inputs = self.inputs(scope)
        known = self._folded.get(scope)
        if known is None or known[0] != inputs:
            memories = fold_as_one(self.events(scope), self.journal(scope), self.policy, scope)
            known = (inputs, memories)
            self._folded[scope] = known
        return known[1]

    def vectors(self) -> pa.Table:
        """Return the VECTORS of the run's model, read once per state of the lake; none without a model."""
        if self.embedder is None:
            return VECTORS.empty()
        made = self.store.lake.fingerprint(VECTORS, self.model)
        if self._vectors is None or self._vectors[0] != made:
            self._vectors = (made, self.store.lake.read(VECTORS, self.model).combine_chunks())
        return self._vectors[1]

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

    def makers(self, scope: str) -> str:
        """Return a fingerprint of the policy and of what extracted the events that fold into a scope."""
        made = self.store.lake.manifest.stages
        names = sorted(name for name in made if name.startswith("extract:"))
        mine = names if scope == GLOBAL_SCOPE else [f"extract:{part}" for part in self.parts(scope)]
        return content_id(self.policy.fingerprint, *(f"{name}={made.get(name)}" for name in mine))

    def has_made(self, stage: str, scope: str, fingerprint: str) -> bool:
        """Return whether `stage` made this of these inputs before, or is to leave a failed scope alone."""
        return scope in self.failed or self.store.lake.manifest.stages.get(f"{stage}:{scope}") == fingerprint

    def made(self, stage: str, scope: str, fingerprint: str) -> None:
        """Note that it did now; without all vectors it is to be made again."""
        if self.lacks_vectors:
            return
        self.store.lake.note({f"{stage}:{scope}": fingerprint})

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
            self.failed |= {scope, self.store.projects.canonical(scope)}
            self.report.breaches += breaches
        return not breaches

    def check_passed(self) -> None:
        """Raise AuditFailed, naming the first breaches by id and reason, if an audit of this run failed."""
        found = sorted(self.report.breaches)
        if not found:
            return
        named = "; ".join(f"{b.table} {b.row_id[:32]}: {b.reason}" for b in found[:BREACHES_NAMED])
        more = f"; and {len(found) - BREACHES_NAMED} more" if len(found) > BREACHES_NAMED else ""
        raise AuditFailed(
            f"the audit kept the last good version of {', '.join(sorted(self.failed))}: {named}{more}.",
            "The report in runs/reports names all of them. Forget or mend the rows and run again; "
            "`cortex rebuild` takes over what is right though much was lost.",
        )
