"""What every stage of one run is given: the store, the policy, the model, the clock's reading, the report."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.report import RunReport
from cortex.providers import Embedder
from cortex.settings import Settings
from cortex.storage.journal import GLOBAL_SCOPE
from cortex.storage.store import Store, start_of_day
from cortex.transforms.fold import fold
from cortex.transforms.identity import content_id
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EVENTS, TURNS, VECTORS

# Raise it when the code of a stage changes what it makes of the same inputs.
STAGES_VERSION = "1"

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

    def inputs(self, scope: str) -> str:
        """Return the fingerprint of what a scope's tables are made from."""
        lake = self.store.lake
        partition = None if scope == GLOBAL_SCOPE else scope
        return content_id(
            STAGES_VERSION,
            self.policy.fingerprint,
            lake.fingerprint(TURNS, partition),
            lake.fingerprint(EVENTS, partition),
            *self.store.journal.entry_ids(scope),
        )

    def has_made(self, stage: str, scope: str, fingerprint: str) -> bool:
        """Return whether `stage` made this scope's output from inputs with this fingerprint before."""
        return self.store.lake.manifest.stages.get(f"{stage}:{scope}") == fingerprint

    def made(self, stage: str, scope: str, fingerprint: str) -> None:
        """Note that it did now; without all vectors it is to be made again."""
        if self.lacks_vectors:
            return
        self.store.lake.note({f"{stage}:{scope}": fingerprint})
