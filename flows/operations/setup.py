"""Looks at what Cortex would work with here: store, client, transcripts to read, hooks."""

from dataclasses import dataclass
from pathlib import Path

from cortex.flows.context import Context
from cortex.flows.operations.install import installed
from cortex.flows.operations.intake import EXPECTED_BYTES_PER_SECOND, transcript_folders
from cortex.flows.runs import Backfill, look_for
from cortex.storage.background_run import note_engine
from cortex.storage.client_files import client_folder
from cortex.transforms.errors import ClientSettingsUnusable, NotFound, NothingUsable

NOTHING = Backfill((), 0, 0)


@dataclass(frozen=True)
class Surroundings:
    """
    What there is for Cortex to work with.

    `sessions` are transcripts to read, of `bytes` bytes; `hooks` is `plugin`, `settings`, `plugin and
    settings`, `none`, or why it is unknown.
    """

    home: Path
    client: Path
    engine: Path | None
    sessions: int
    bytes: int
    read_before: int
    hooks: str
    status_line: bool

    @property
    def minutes(self) -> int:
        """Return how long reading the transcripts takes, rounded up."""
        return -(-self.bytes // (EXPECTED_BYTES_PER_SECOND * 60))


def look_around(context: Context) -> Surroundings:
    """Return what is there, and tell the hooks where the `cortex` command is."""
    try:
        waiting = look_for(context.settings, transcript_folders())
    except (NotFound, NothingUsable):
        waiting = NOTHING
    hooks, has_status_line = _hooks()
    return Surroundings(
        home=context.home,
        client=client_folder(),
        engine=note_engine(context.home),
        sessions=len(waiting.transcripts),
        bytes=waiting.waiting_bytes,
        read_before=waiting.read_before,
        hooks=hooks,
        status_line=has_status_line,
    )


def _hooks() -> tuple[str, bool]:
    try:
        there = installed()
    except ClientSettingsUnusable as error:
        return error.problem, False
    sources = [
        source for source, is_there in (("plugin", there.plugin), ("settings", there.hooks)) if is_there
    ]
    return " and ".join(sources) or "none", there.status_line
