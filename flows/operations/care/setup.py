"""Looks at what Cortex would work with here, and puts hooks, schedule and first brief in place."""

import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from cortex.flows.context.context import Context
from cortex.flows.engines.runs import Backfill, look_for, looking
from cortex.flows.operations.care.install import install, installed, uninstall_hooks
from cortex.flows.operations.care.intake import EXPECTED_BYTES_PER_SECOND, transcript_folders
from cortex.flows.operations.care.writer_choice import choose_writer
from cortex.hooks import background
from cortex.storage.machine.background_run import note_engine
from cortex.storage.machine.client_program import (
    add_tools,
    find_client,
    has_tools,
    install_plugin,
)
from cortex.storage.machine.schedule import SCHEDULERS
from cortex.storage.settings.settings import load_settings
from cortex.storage.staging.client_files import client_folder
from cortex.transforms.errors import ClientSettingsUnusable, NotFound, NothingUsable

NOTHING = Backfill((), 0, 0)

NO_HOOKS, BOTH = "none", "plugin and settings"
# Until the briefs are published: reading, then embedding the memories. Only for estimates.
FIRST_BRIEF_BYTES_PER_SECOND = 2_500_000
LEAST_SECONDS = 5


@dataclass(frozen=True)
class Surroundings:
    """
    What there is for Cortex to work with.

    `client` is the client's folder, `program` its command; `sessions` are transcripts to read, of `bytes`
    bytes; `hooks` is `plugin`, `settings`, `plugin and settings`, `none`, or why it is unknown;
    `scheduled_by` starts the nightly run, `scheduler` could; `writer` is the setting models.writer;
    `has_tools` says whether the client starts the memory's tools without the plugin, `tools_in_plugin`
    whether the plugin may (the setting mcp.in_plugin).
    """

    home: Path
    client: Path
    program: Path | None
    engine: Path | None
    sessions: int
    bytes: int
    read_before: int
    hooks: str
    status_line: bool
    scheduled_by: str | None
    scheduler: str | None
    writer: str
    has_tools: bool = False
    tools_in_plugin: bool = True

    @property
    def minutes(self) -> int:
        """Return how long reading the transcripts takes, rounded up."""
        return -(-self.bytes // (EXPECTED_BYTES_PER_SECOND * 60))

    @property
    def first_brief_seconds(self) -> int:
        """Return how long it takes until the briefs are published."""
        return LEAST_SECONDS + self.bytes // FIRST_BRIEF_BYTES_PER_SECOND


@dataclass(frozen=True)
class HooksInPlace:
    """Where the hooks are now (`plugin`, `settings` or `none`), and what a person should know of it."""

    place: str
    note: str = ""


@dataclass(frozen=True)
class ShownBrief:
    """The published brief of a project, in how many sessions it was worked on, and who wrote it."""

    project: str
    sessions: int
    text: str
    written_by: str


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
        program=find_client(),
        engine=note_engine(context.home),
        sessions=len(waiting.transcripts),
        bytes=waiting.waiting_bytes,
        read_before=waiting.read_before,
        hooks=hooks,
        status_line=has_status_line,
        scheduled_by=next((each.name for each in SCHEDULERS if each.is_installed()), None),
        scheduler=next((each.name for each in SCHEDULERS if each.is_available()), None),
        writer=context.settings.models.writer,
        has_tools=has_tools(),
        tools_in_plugin=context.settings.mcp.in_plugin,
    )


def put_hooks_in_place(context: Context) -> HooksInPlace:
    """
    Have the hooks in one place: the plugin where the client can install it, else the user's settings.

    Where both have them, those in the settings go. Raises ClientSettingsUnusable.
    """
    place, _ = _hooks()
    if place == BOTH:
        uninstall_hooks()
        return HooksInPlace("plugin", "The plugin brings the same hooks: those in the settings are removed.")
    if place != NO_HOOKS:
        return HooksInPlace(place)
    program = find_client()
    failure = install_plugin(program) if program else "the `claude` command was not found"
    if failure is None and installed().plugin:
        return HooksInPlace("plugin")
    install(context, dry_run=False)
    reason = failure or "the client did not enable it"
    return HooksInPlace("settings", f"The hooks are in the settings, without the plugin: {reason}.")


def put_tools_in_place(surroundings: Surroundings) -> str:
    """Let the client start the memory's tools; return why it does not, "" if it will."""
    if surroundings.program is None or surroundings.engine is None:
        return "the `claude` command or the engine was not found"
    return add_tools(surroundings.program, surroundings.engine) or ""


def with_writer(context: Context, writer: str) -> Context:
    """Return the context with another writer chosen, which config.toml keeps. Raises UsageError."""
    if writer == context.settings.models.writer:
        return context
    choose_writer(context.home, writer, lambda: context)
    return replace(context, settings=load_settings(context.home))


def asking_nothing(context: Context) -> Context:
    """Return the context of a run that only reads: what a language model is asked waits for the next run."""
    budget = replace(context.settings.budget, run_requests=0)
    return replace(context, settings=replace(context.settings, budget=budget))


def read_on(context: Context) -> bool:
    """Start the run in the background that has the language model read the rest; return whether."""
    return background.start(str(context.home), time.time(), is_due=True)


def transcripts_to_read(context: Context) -> tuple[Path, ...]:
    """Return the transcripts that have something new, none where there are none."""
    try:
        return look_for(context.settings, transcript_folders()).transcripts
    except (NotFound, NothingUsable):
        return ()


def brief_to_show(context: Context) -> ShownBrief | None:
    """
    Return the published brief of the project one stands in, else of that with most sessions read.

    None where nothing is published.
    """
    store = context.open_store()
    cursors = store.lake.manifest.cursors.values()
    sessions = {(store.projects.canonical(cursor.project_id), cursor.session_id) for cursor in cursors}
    counts = Counter(project_id for project_id, _ in sessions)
    here = store.projects.known(str(context.folder))
    for project_id, count in sorted(counts.items(), key=lambda pair: (pair[0] != here, -pair[1], pair[0])):
        if text := store.published.brief(project_id):
            is_read = looking(context, with_model=False).is_read_by_model(project_id)
            written_by = context.settings.models.writer_model if is_read else "rules"
            return ShownBrief(store.projects.name_of(project_id), count, text, written_by)
    return None


def _hooks() -> tuple[str, bool]:
    try:
        there = installed()
    except ClientSettingsUnusable as error:
        return error.problem, False
    sources = [
        source for source, is_there in (("plugin", there.plugin), ("settings", there.hooks)) if is_there
    ]
    return " and ".join(sources) or NO_HOOKS, there.status_line
