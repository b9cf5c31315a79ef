"""One run over a store: the parts that its stages read from and write to."""

from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from datetime import datetime
from functools import cached_property

from cortex.flows.context.outcome import Outcome
from cortex.flows.context.run_report import RunReport
from cortex.flows.embedders.embedding import Embedding
from cortex.flows.reading.runner_choice import NO_WORKERS, RunnerChoice
from cortex.flows.reading.sharding import Carrier
from cortex.flows.run.fingerprints import Fingerprints
from cortex.flows.run.lake_views import Readings
from cortex.flows.run.ledger import FreshLedger, Ledger, StoreLedger
from cortex.flows.run.published_briefs import brief_tokens
from cortex.flows.run.source import LakeSource, ReadingSource
from cortex.storage.settings.settings import Settings
from cortex.storage.store import Store, start_of_day
from cortex.transforms.memory.retention import ProjectRetention, Retention, project_retention
from cortex.transforms.policy import Policy

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
    another day, or writes beside the live tables.
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
        self.ledger = ledger_type(self.store, self.outcome, self.embedding)
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
