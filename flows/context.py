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
from cortex.storage.store import Store, start_of_day
from cortex.transforms.audit import Breach
from cortex.transforms.fold import fold
from cortex.transforms.forgetting import Tombstones, tombstones_of
from cortex.transforms.identity import content_id
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EVENTS, TURNS, VECTORS
from cortex.transforms.told import Told

# Raise it when the code of a stage changes what it makes of the same inputs.
STAGES_VERSION = "1"

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

    @property
    def day(self) -> datetime:
        """The start of the UTC day: what ageing counts from."""
        return start_of_day(self.now)

    @property
    def model(self) -> str:
        """The embedding model's name, empty when there is none."""
        return self.embedder.model if self.embedder else ""

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
        return [*sorted(named - {GLOBAL_SCOPE}), GLOBAL_SCOPE]

    def events(self, scope: str) -> pa.Table:
        """Return the EVENTS that fold into a scope: the project's own, or the global ones of all projects."""
        partition = None if scope == GLOBAL_SCOPE else scope
        rows = self.store.lake.read(EVENTS, partition)
        category = "global" if scope == GLOBAL_SCOPE else "project"
        return rows.filter(pc.equal(rows["category"], pa.scalar(category)))

    def told(self, project_id: str) -> Told:
        """Return what Cortex told a project: in its briefs, and in what was recalled anywhere."""
        spans = {mark: list(found) for mark, found in self.store.telling.spans(project_id).items()}
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
            known = (inputs, fold(self.events(scope), self.store.journal.read(scope), self.policy))
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
        partition = None if scope == GLOBAL_SCOPE else scope
        return content_id(
            STAGES_VERSION,
            self.policy.fingerprint,
            lake.fingerprint(TURNS, partition),
            lake.fingerprint(EVENTS, partition),
            *sorted({*self.store.journal.entry_ids(scope), *also}),
        )

    def makers(self, scope: str) -> str:
        """Return a fingerprint of the policy and of what extracted the events that fold into a scope."""
        made = self.store.lake.manifest.stages
        names = sorted(name for name in made if name.startswith("extract:"))
        mine = names if scope == GLOBAL_SCOPE else [f"extract:{scope}"]
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
            self.failed.add(scope)
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
