"""Puts Cortex in place here: hooks and status line, the schedule, the language model, the first brief."""

import difflib
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from cortex.flows.context import Context
from cortex.flows.engines.runs import Backfill, look_for, read_only_run
from cortex.flows.operations.maintain.config import OpenContext, SettingChange, set_setting
from cortex.flows.operations.maintain.intake import FIRST_SESSIONS, transcript_folders
from cortex.hooks import background
from cortex.storage.machine.background_run import note_engine
from cortex.storage.machine.client_program import (
    add_tools,
    find_client,
    has_tools,
    install_plugin,
    remove_plugin,
    remove_tools,
)
from cortex.storage.machine.schedule import SCHEDULERS, Nightly, Scheduler, time_of_day
from cortex.storage.published.reports import (
    EMBEDDED_BYTES_PER_SECOND,
    READ_BYTES_PER_SECOND,
    expected_seconds,
    last_report,
)
from cortex.storage.settings.settings import Settings, load_settings
from cortex.storage.staging.client_files import (
    PLUGIN,
    SettingsFile,
    client_folder,
    is_plugin_enabled,
    launcher,
    plugin_hooks,
)
from cortex.transforms.documents.client_settings import (
    EMPTY,
    Json,
    comes_back,
    dumped,
    has_hooks,
    has_ours,
    has_status_line,
    hook_groups,
    is_same,
    parsed,
    text_without,
    with_hooks,
    with_status_line,
    without_hooks,
    without_status_line,
)
from cortex.transforms.errors import (
    ClientSettingsUnusable,
    ModelClosed,
    ModelUnavailable,
    NotFound,
    NothingUsable,
    ScheduleUnavailable,
    UsageError,
)
from cortex.transforms.redaction.redact import redact

# -- Which language model can write here, what that takes, and the choice of one.

# How many short messages a plan gives in five hours, by its makers' own figures ("at least 225" with 5x, 900
# with 20x, 45 with Pro; limits in tokens are not published). A session read by a small model weighs like one.
PLAN_MESSAGES = {"pro": 45, "max_5x": 225, "max_20x": 900}
# Of two providers that can be used, the one without a bill.
BY_PREFERENCE = ("claude", "api")


@dataclass(frozen=True)
class WriterOffer:
    """
    A language model that can write here as things are: its provider, and what reading the sessions takes.

    `plan` is that of the client's login, where it says so. Of `sessions` in all, `first` are read at once in
    about `first_seconds`, and up to `a_day` each day in the background and at night, for `usd` in all at
    list price.
    """

    name: str
    plan: str
    sessions: int
    first: int
    first_seconds: int
    a_day: int
    usd: float
    daily_usd: float

    @property
    def plan_share(self) -> float | None:
        """About what share of one five-hour window the sessions of a day take; None if it is not known."""
        messages = PLAN_MESSAGES.get(self.plan)
        return min(self.sessions, self.a_day) / messages if messages else None


def offered_writer(context: Context, transcripts: Sequence[Path]) -> WriterOffer | None:
    """
    Return the language model that could write, with what it would take to read `transcripts`; None for none.

    Whether Claude Code is logged in is asked of it; nothing is sent.
    """
    usable = ((name, _plan_of(context.settings, name)) for name in BY_PREFERENCE)
    name, plan = next(((name, plan) for name, plan in usable if plan is not None), ("", ""))
    if not name:
        return None
    # Imported here, as below: `doctor` and `nightly` need none of a language model's modules.
    from cortex.flows.operations.maintain.cost import plan_transcripts, read_plan

    write = plan_transcripts(context, transcripts)[0] if transcripts else read_plan(context).stages[0]
    usd_each = write.usd / write.sessions if write.sessions else 0.0
    budget = context.settings.budget
    a_day = min(
        budget.daily_requests, int(budget.daily_usd / usd_each) if usd_each else budget.daily_requests
    )
    first = min(FIRST_SESSIONS, write.sessions)
    seconds = round(first * context.policy.threshold("writer_request_seconds"))
    return WriterOffer(name, plan or "", write.sessions, first, seconds, a_day, write.usd, budget.daily_usd)


def usable_writers(settings: Settings) -> list[str]:
    """Return the providers whose key or command is here; whether they answer is not looked at."""
    return [name for name in BY_PREFERENCE if not _missing(settings, name)]


def _plan_of(settings: Settings, name: str) -> str | None:
    """Return the plan of a provider that can be used, "" where it has or names none; None if it cannot."""
    if _missing(settings, name):
        return None
    if name == "api":
        return ""
    from cortex.flows.writers.claude_login import claude_writer

    try:
        state = claude_writer(settings.models.claude_token, settings.home, settings.models.base_url).state()
    except ModelUnavailable:
        return None
    return state.plan if state.is_logged_in or settings.models.claude_token else None


def choose_writer(home: Path, name: str, open_context: OpenContext) -> SettingChange:
    """Write the choice to config.toml. Raises UsageError for a name that there is not."""
    return set_setting(home, "models.writer", (name,), None, open_context)


def _missing(settings: Settings, name: str) -> str:
    from cortex.flows.writers import provider_of

    try:
        provider_of(name).build(settings)
    except ModelClosed as error:
        return error.next_step
    return ""


# -- Puts Cortex in place here: hooks and status line in the client's settings, the schedule, the first
# brief.

# Lines around a change: enough to find the place.
DIFF_CONTEXT_LINES = 1


@dataclass(frozen=True)
class SettingsChange:
    """
    A change of the client's settings: `file`, whether it differs, and how, as a unified diff without secrets.

    With `is_dry_run` nothing was written. `knows_engine` is false if the hooks cannot be given the path of
    the `cortex` command.
    """

    file: str
    is_different: bool
    diff: str
    is_dry_run: bool
    knows_engine: bool = True


@dataclass(frozen=True)
class Installed:
    """What the client's user settings have of Cortex."""

    hooks: bool
    status_line: bool
    plugin: bool


@dataclass(frozen=True)
class _Opened:
    """The client's settings file, its text (None if there is no file) and the settings in it."""

    file: SettingsFile
    text: str | None
    settings: Json


def install(context: Context, *, dry_run: bool) -> SettingsChange:
    """Add the plugin's hooks to the user's settings. Raises UsageError if the plugin is enabled."""
    opened = _open()
    settings = opened.settings
    if is_plugin_enabled(settings):
        raise UsageError(
            "the plugin is enabled and brings the same hooks: every event would count twice.",
            f"Nothing needs to be done, or run `claude plugin disable {PLUGIN}` first.",
        )
    groups = hook_groups(plugin_hooks(), str(launcher()))
    if opened.text is None or not has_hooks(settings, groups):
        settings = with_hooks(without_hooks(settings), groups)
    change = _add(opened, settings, dry_run)
    return change if dry_run else replace(change, knows_engine=note_engine(context.home) is not None)


def uninstall(*, dry_run: bool) -> SettingsChange:
    """Remove hooks and status line from the user's settings; everything else stays."""
    opened = _open()
    return _remove(opened, without_status_line(without_hooks(opened.settings)), dry_run)


@dataclass(frozen=True)
class Removed:
    """What an uninstall took back: the settings' change, all else in words, and what could not be removed."""

    settings: SettingsChange
    done: tuple[str, ...]
    failed: tuple[str, ...]


def uninstall_all(context: Context, *, dry_run: bool) -> Removed:
    """
    Take back all that `setup` put in place: plugin, tools, nightly run, hooks, status line.

    The memory and the program stay. What the client does not remove is named with the command that does.
    """
    program, there = find_client(), installed()
    done, failed = [], []
    steps = (
        (there.plugin, "plugin", f"claude plugin uninstall {PLUGIN}@{PLUGIN}", remove_plugin),
        (has_tools(), "tools", "claude mcp remove --scope user cortex", remove_tools),
    )
    for is_there, name, words, remove in steps:
        if not is_there:
            continue
        failure = None
        if not dry_run:
            failure = remove(program) if program else "the `claude` command was not found"
        if failure:
            failed.append(f"The {name} could not be removed: {failure}. Remove it: {words}")
        else:
            done.append(name)
    scheduled = [each.name for each in SCHEDULERS if each.is_installed()]
    if scheduled:
        if not dry_run:
            uninstall_schedule()
        done.append(f"nightly run ({' and '.join(scheduled)})")
    # Read after the client wrote to the same file.
    return Removed(uninstall(dry_run=dry_run), tuple(done), tuple(failed))


def uninstall_hooks() -> SettingsChange:
    """Remove the hooks from the user's settings; the status line stays."""
    opened = _open()
    return _remove(opened, without_hooks(opened.settings), dry_run=False)


def install_status_line(*, dry_run: bool) -> SettingsChange:
    """Add the status line to the user's settings; an existing one is shown above it."""
    opened = _open()
    settings = with_status_line(without_status_line(opened.settings), str(launcher()))
    return _add(opened, settings, dry_run)


def uninstall_status_line(*, dry_run: bool) -> SettingsChange:
    """Remove the status line; the one it was added to is restored."""
    opened = _open()
    return _remove(opened, without_status_line(opened.settings), dry_run)


def installed() -> Installed:
    """Return what the user's settings have of Cortex. Raises ClientSettingsUnusable."""
    settings = _open().settings
    return Installed(has_hooks(settings), has_status_line(settings), is_plugin_enabled(settings))


def _open() -> _Opened:
    file = SettingsFile(client_folder())
    text = file.read()
    return _Opened(file, text, parsed(EMPTY if text is None else text))


def _add(opened: _Opened, settings: Json, dry_run: bool) -> SettingsChange:
    """Write settings that have something of ours; what was there before the first of it is kept."""
    before, file = opened.text, opened.file
    text = EMPTY if before is None else before
    after = text if is_same(settings, opened.settings) else dumped(settings, like=text)
    if not dry_run and after != before:
        if not has_ours(opened.settings):
            file.keep_backup(None if before is None or comes_back(before, after) else before)
        file.write(after, was=before)
    return _change(opened, after, dry_run)


def _remove(opened: _Opened, settings: Json, dry_run: bool) -> SettingsChange:
    """Write settings from which something of ours was taken; a file that Cortex made goes with the last."""
    before, file = opened.text, opened.file
    after = before
    if before is not None and not is_same(settings, opened.settings):
        backup = file.backup()
        after = text_without(settings, before, backup) if settings or backup is not None else None
    if not dry_run:
        if after != before:
            file.write(after, was=before)
        if not has_ours(settings):
            file.keep_backup(None)
    return _change(opened, after, dry_run)


def _change(opened: _Opened, after: str | None, dry_run: bool) -> SettingsChange:
    name = str(opened.file.path)
    return SettingsChange(name, opened.text != after, _diff(name, opened.text, after), dry_run)


def _diff(name: str, before: str | None, after: str | None) -> str:
    lines = difflib.unified_diff(
        (before or "").splitlines(keepends=True),
        (after or "").splitlines(keepends=True),
        "/dev/null" if before is None else name,
        "/dev/null" if after is None else name,
        n=DIFF_CONTEXT_LINES,
    )
    text = "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
    # A file on one line is shown whole, with the keys that its `env` may hold.
    return redact(text)[0]


# -- Lets the nightly run start by itself, with what this machine has: systemd, launchd or cron.

DEFAULT_TIME = "03:30"


@dataclass(frozen=True)
class Schedule:
    """
    How the nightly run starts.

    `installed` names the schedulers that start it (one, or none), `available` those that could;
    `last_nightly` is when the last one began, `next_start` what the scheduler says of the next.
    """

    installed: tuple[str, ...]
    available: tuple[str, ...]
    last_nightly: datetime | None
    next_start: str | None


def schedule_status(context: Context) -> Schedule:
    """Return how the nightly run starts here, and when it last did."""
    installed = [each for each in SCHEDULERS if each.is_installed()]
    return Schedule(
        installed=tuple(each.name for each in installed),
        available=tuple(each.name for each in SCHEDULERS if each.is_available()),
        last_nightly=last_nightly(context),
        next_start=installed[0].next_start() if installed else None,
    )


def install_schedule(
    context: Context, *, at: str = DEFAULT_TIME, only: str | None = None, dry_run: bool = False
) -> tuple[str, dict[str, str]]:
    """
    Let the first scheduler that works here, or `only` that one, start the nightly run each night at `at`.

    Returns its name and what it wrote, by place; with `dry_run` nothing is written. One installed before
    gives way. Raises UsageError for a time that is none, ScheduleUnavailable if nothing works.
    """
    scheduler = _scheduler(only, looks_only=dry_run)
    nightly = _nightly(context, at)
    files = scheduler.files(nightly)
    if not dry_run:
        for other in SCHEDULERS:
            if other is not scheduler and other.is_installed():
                other.uninstall()
        scheduler.install(nightly)
    return scheduler.name, files


def uninstall_schedule() -> list[str]:
    """Take the nightly run out of every scheduler that starts it; return their names."""
    installed = [each for each in SCHEDULERS if each.is_installed()]
    for each in installed:
        each.uninstall()
    return [each.name for each in installed]


def last_nightly(context: Context) -> datetime | None:
    """Return when the last nightly run of the store began; None without one."""
    report = last_report(context.open_store().runs, "nightly")
    started_at = report["started_at"] if report else None
    return datetime.fromisoformat(started_at) if isinstance(started_at, str) else None


def is_due(context: Context, at: str) -> bool:
    """Return whether no nightly run began since it was last `at`, by the local clock. Raises UsageError."""
    hour, minute = time_of_day(at)
    now = context.now.astimezone()
    moment = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    last = last_nightly(context)
    return last is None or last < (moment if moment <= now else moment - timedelta(days=1))


def _scheduler(only: str | None, *, looks_only: bool) -> Scheduler:
    usable: Sequence[Scheduler] = [each for each in SCHEDULERS if only in (None, each.name)]
    for each in usable:
        if each.is_available() or (looks_only and only):
            return each
    tried = ", ".join(each.name for each in usable)
    raise ScheduleUnavailable(
        f"none of these works here: {tried}.",
        "Let anything else that runs commands start `cortex nightly --if-due 03:30` once an hour.",
    )


def _nightly(context: Context, at: str) -> Nightly:
    hour, minute = time_of_day(at)
    engine = note_engine(context.home)
    if engine is None:
        raise ScheduleUnavailable(
            "it is unknown where the `cortex` command is.", "Call `cortex schedule install` by its own name."
        )
    environment = {} if context.home == Path.home() / ".cortex" else {"CORTEX_HOME": str(context.home)}
    return Nightly((str(engine), "nightly", "--if-due", f"{hour:02}:{minute:02}"), hour, minute, environment)


# -- Looks at what Cortex would work with here, and puts hooks, schedule and first brief in place.

NOTHING = Backfill((), 0, 0)

NO_HOOKS, BOTH = "none", "plugin and settings"
# Until the briefs are published: reading, then embedding the memories. Only for estimates.
FIRST_BRIEF_BYTES_PER_SECOND = 1_500_000
MIN_SECONDS = 5


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
        return -(-self.seconds // 60)

    @property
    def seconds(self) -> int:
        """Return how long reading the transcripts and embedding what they say takes."""
        reading = expected_seconds(self.bytes, READ_BYTES_PER_SECOND)
        return math.ceil(reading + expected_seconds(self.bytes, EMBEDDED_BYTES_PER_SECOND))

    @property
    def first_brief_seconds(self) -> int:
        """Return how long it takes until the briefs are published."""
        return MIN_SECONDS + int(expected_seconds(self.bytes, FIRST_BRIEF_BYTES_PER_SECOND))


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
    """Return the transcripts that have something new, none if there are none."""
    try:
        return look_for(context.settings, transcript_folders()).transcripts
    except (NotFound, NothingUsable):
        return ()


def brief_to_show(context: Context) -> ShownBrief | None:
    """
    Return the published brief of the project one stands in, else of the one worked in last.

    None if nothing is published.
    """
    store, run = context.open_store(), read_only_run(context, with_model=False)
    ends: dict[str, list[datetime]] = {}
    for session in run.readings.sessions().to_pylist():
        ends.setdefault(session["project_id"], []).append(session["ended_at"])
    here = store.projects.known(str(context.folder))
    worked_at = {project_id: max(at).timestamp() for project_id, at in ends.items()}
    for project_id in sorted(ends, key=lambda each: (each != here, -worked_at[each], each)):
        if text := store.published.brief(project_id):
            is_read = run.is_read_by_model(project_id)
            written_by = context.settings.models.writer_model if is_read else "rules"
            name = store.projects.label_of(project_id)
            return ShownBrief(name, len(ends[project_id]), text, written_by)
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
