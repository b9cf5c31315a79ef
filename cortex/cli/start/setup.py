"""The commands `setup`, `demo`, `doctor`, `completion`, `mcp`: the ways in, and whether all is in place."""

from __future__ import annotations

import math
import os
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import (
    ENGINE,
    Answer,
    Listing,
    can_ask,
    command,
    current_context,
    current_home,
    hint,
    prints_json,
    say,
    size_of,
)
from cortex.cli.run_answer import running
from cortex.storage.settings.settings import load_settings
from cortex.storage.settings.writer_index import WRITER_MODULES
from cortex.transforms.words.ages import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cortex.cli.answer import ProgressBar
    from cortex.flows.context import Context
    from cortex.flows.operations.maintain.setup import ShownBrief, Surroundings, WriterOffer
    from cortex.flows.run_report import RunReport


STOP = "cortex config set models.writer none"
HOOKS, TOOLS, READ, NIGHTLY = "hooks", "tools", "read", "nightly"
YES, NO, EACH = "y", "n", "each"


@command("setup", "Set up Cortex and read your past sessions.", place=10)
@click.option("--yes", is_flag=True, help="Do not ask: take every step, without choosing a language model.")
@click.option(
    "--writer",
    type=click.Choice(["none", *WRITER_MODULES]),
    help="What writes memories: only rules, an API, or Claude.",
)
def setup(context: Context, yes: bool, writer: str | None) -> Iterator[Answer]:
    """Find your assistant and its transcripts, install the plugin, read old sessions, schedule nightly runs.

    It first shows what it will do and asks, and ends with the brief of the project you stand in, or worked in
    last. If there is no terminal to ask at, it changes nothing without --yes. You can run it again: what is
    already set up stays.
    """
    from cortex.flows.operations.maintain import config, setup

    surroundings = setup.look_around(context)
    config.publish_settings(context)
    steps = dict(_steps(surroundings))
    yield Answer(_as_dict(surroundings, steps), list(_lines(surroundings, steps)))
    was_on = context.settings.models.is_on
    if chosen := writer or _asked_writer(context, yes):
        context = setup.with_writer(context, chosen)
    agreed, done = _agreed(steps, yes), _Done()
    if context.settings.models.is_on and (READ in agreed or not was_on):
        yield _read_first(context, done)
    for name in agreed:
        if name == HOOKS:
            yield _hooks_in_place(context, surroundings)
        elif name == TOOLS:
            yield _tools_in_place(surroundings)
        elif name == READ:
            yield _read(context, done)
        else:
            yield _schedule(context)
    after = setup.look_around(context)
    left = dict(_steps(after))
    if done.by_model:
        setup.read_on(context)
    data = {**_as_dict(after, left), "first_brief": done.first_brief}
    steps_left = [*_next_steps(after, left), *_writer_steps(context)]
    yield Answer(data, [f"Next: {step}" for step in steps_left])


@dataclass
class _Done:
    """What has come of it so far, for the answer to programs."""

    began: float = field(default_factory=time.monotonic)
    first_brief: dict[str, object] | None = None
    by_model: bool = False


def _steps(surroundings: Surroundings) -> Iterator[tuple[str, str]]:
    """Yield what setup would do, by name, in its order: the hooks first, reading last but for the timer."""
    from cortex.flows.operations.maintain import setup

    settings = surroundings.client / "settings.json"
    if surroundings.hooks == setup.BOTH:
        yield HOOKS, f"remove the hooks from {settings}: the plugin brings the same"
    elif surroundings.hooks == setup.NO_HOOKS:
        way = "install the plugin for Claude Code: hooks, skills, an agent, tools; 320 kB"
        yield HOOKS, way if surroundings.program else f"add hooks to {settings}"
    if surroundings.hooks == "settings" and _can_add_tools(surroundings):
        yield TOOLS, "let Claude Code start the memory's tools: claude mcp add --scope user cortex"
    if surroundings.scheduled_by is None and surroundings.scheduler:
        yield NIGHTLY, f"start a run each night at 03:30 with {surroundings.scheduler}"
    if surroundings.sessions:
        waiting = f"{counted(surroundings.sessions, 'transcript')}, {size_of(surroundings.bytes)}"
        first = f"first brief after about {surroundings.first_brief_seconds} s"
        yield READ, f"read {waiting}: {first}, all of it in about {surroundings.minutes} min"


def _can_add_tools(surroundings: Surroundings) -> bool:
    """Return whether the client is there and does not start the tools yet; the plugin brings its own."""
    return bool(surroundings.program and surroundings.engine) and not surroundings.has_tools


def _asked_writer(context: Context, yes: bool) -> str | None:
    """Return the writer that the person agrees to; None with nobody to ask, none, or one already."""
    from cortex.flows.operations.maintain import setup
    from cortex.flows.operations.maintain import setup as writer_choice

    if yes or not can_ask() or context.settings.models.is_on:
        return None
    offer = writer_choice.offered_writer(context, setup.transcripts_to_read(context))
    if offer is None:
        say("Writer: rules. For a model: `claude auth login` or ANTHROPIC_API_KEY, then `cortex setup`.")
        return None
    say(_offered(offer))
    say(f"Redacted sessions go to the model's service. Stop at any time: {STOP}")
    return offer.name if click.confirm("Let it write?", default=True) else None


def _offered(offer: WriterOffer) -> str:
    """Return in three lines what a language model would read, when, and what that takes."""
    login = f"your Claude Code login{f' ({offer.plan})' if offer.plan else ''}"
    who = login if offer.name == "claude" else "your API key"
    more = max(0, min(offer.sessions, offer.a_day) - offer.first)
    when = (
        f"{offer.first} now (about {max(1, round(offer.first_seconds / 60))} min)"
        if offer.first
        else "none yet"
    )
    when += f", {more} in the background" if more else ""
    if offer.name == "api":
        cost = f"about ${offer.usd:.2f} in all, at most ${offer.daily_usd:.2f} a day"
    elif (share := offer.plan_share) is not None:
        cost = f"the first day about {math.ceil(100 * share)} % of one five-hour window of your plan"
    else:
        cost = "each weighs on your plan like a short message"
    return (
        f"Let a language model write your memories, with {who}?\n"
        f"  reads  {counted(offer.sessions, 'session')}: {when}; then at most {offer.a_day} a night\n"
        f"  costs  {cost}"
    )


def _agreed(steps: dict[str, str], yes: bool) -> list[str]:
    """Return the names of the steps to take."""
    if yes:
        return list(steps)
    if not steps or not can_ask():
        return []
    answer = click.prompt("Go ahead?", default=YES, type=click.Choice([YES, NO, EACH]))
    if answer == EACH:
        return [name for name, words in steps.items() if click.confirm(f"{words}?", default=True)]
    return list(steps) if answer == YES else []


def _hooks_in_place(context: Context, surroundings: Surroundings) -> Answer:
    from cortex.flows.operations.maintain import setup

    if surroundings.program and not prints_json():
        say("Hooks: asking Claude Code to install the plugin …")
    in_place = setup.put_hooks_in_place(context)
    return Answer({}, [f"Hooks: {in_place.place}."], warnings=[in_place.note] if in_place.note else [])


def _tools_in_place(surroundings: Surroundings) -> Answer:
    from cortex.flows.operations.maintain import setup

    failure = setup.put_tools_in_place(surroundings)
    lines = [] if failure else ["Tools: there with the next session."]
    return Answer({}, lines, warnings=[failure] if failure else [])


def _schedule(context: Context) -> Answer:
    from cortex.flows.operations.maintain import setup as schedule
    from cortex.transforms.errors import ScheduleUnavailable

    try:
        name, _ = schedule.install_schedule(context)
    except ScheduleUnavailable as error:  # the memory works without it
        return Answer({}, warnings=[str(error)])
    return Answer({}, [f"Nightly run: {name}, 03:30; a missed night is caught up."])


def _writer_steps(context: Context) -> list[str]:
    """Return the one command that lets a language model write, where one could and none does."""
    from cortex.flows.operations.maintain import setup as writer_choice

    usable = [] if context.settings.models.is_on else writer_choice.usable_writers(context.settings)
    return [f"let a language model write: cortex setup --writer {usable[0]}"] if usable else []


def _read_first(context: Context, done: _Done) -> Answer:
    """Let the model read the newest sessions of the project one stands in; its brief is shown at once."""
    from cortex.flows.operations.maintain import intake

    with running(context, "plain") as (_, bar):
        shows = _ShowsBrief(context, bar, done)
        report = intake.read_first(context, progress=shows)
    done.by_model = True
    if done.first_brief is None:
        shows.show()
    notes = [note for note in report.notes if "anguage model" in note]
    return Answer({}, warnings=notes)


def _read(context: Context, done: _Done) -> Answer:
    """Read the transcripts; the first brief is shown while search by meaning still fills up."""
    from cortex.flows.operations.maintain import intake, setup

    with running(context, "plain") as (_, bar):
        shows = _ShowsBrief(context, bar, done)
        result = intake.backfill(setup.asking_nothing(context), (), engine="plain", progress=shows)
    if result.problem:
        raise result.problem
    if done.first_brief is None:
        shows.show()
    return Answer(result.report.as_dict(), list(_outcome(result.report)))


class _ShowsBrief:
    """A progress callback that prints the brief of this folder, or of the last work, once it is published."""

    def __init__(self, context: Context, bar: ProgressBar, done: _Done) -> None:
        self._context, self._bar, self._done = context, bar, done

    def __call__(self, stage: str, done: int, total: int) -> None:
        self._bar(stage, done, total)
        if stage == "brief" and self._done.first_brief is None:
            self._bar.stop()
            self.show()

    def show(self) -> None:
        """Print the brief, if there is one."""
        from cortex.flows.operations.maintain import setup

        brief = setup.brief_to_show(self._context)
        if brief is None:
            return
        seconds = round(time.monotonic() - self._done.began, 1)
        self._done.first_brief = {
            "project": brief.project,
            "sessions": brief.sessions,
            "seconds": seconds,
            "written_by": brief.written_by,
        }
        if not prints_json():
            _print_brief(brief, seconds)


def _print_brief(brief: ShownBrief, seconds: float) -> None:
    project = f"{brief.project} ({counted(brief.sessions, 'session')})"
    written = f"written by {brief.written_by}"
    say(f"\nAfter {seconds:.0f} s: the brief that the next session in {project} gets, {written}\n")
    say("\n".join(f"  │ {line}" for line in brief.text.rstrip().splitlines()))
    say("\nNow building the index for search by meaning; after Ctrl-C the next run continues.\n")


def _outcome(report: RunReport) -> Iterator[str]:
    counts = f"{report.rows.get('memories', 0):,} memories from {counted(report.transcripts, 'transcript')}"
    yield f"Read: {counts} ({size_of(report.transcript_bytes)}) in {report.seconds:.0f} s."
    if report.quarantined:
        count = f"{report.quarantined_count:,} lines or files"
        yield f"{count} could not be used: cortex status --json names them."
    yield from (f"Note: {note}" for note in report.notes)


def _lines(surroundings: Surroundings, steps: dict[str, str]) -> Iterator[str]:
    client, program = surroundings.client, surroundings.program
    waiting = f"{surroundings.sessions} to read, {size_of(surroundings.bytes)}; "
    scheduled = surroundings.scheduled_by or "not scheduled"
    if not (surroundings.scheduled_by or surroundings.scheduler):
        scheduled = (
            "not possible here: neither systemd, launchd nor cron works. Sessions are read when they end; "
            "to fade and merge, let anything start `cortex nightly --if-due 03:30` once an hour"
        )
    folder = f"{client}{'' if client.is_dir() else ' (missing)'}"
    yield f"Claude Code  {program or 'no `claude` command'}; {folder}"
    yield f"Transcripts  {waiting if surroundings.sessions else ''}{surroundings.read_before} read before"
    yield f"Hooks        {surroundings.hooks}"
    yield f"Tools        {_tools(surroundings)}"
    yield f"Nightly run  {scheduled}"
    yield f"Writer       {'rules' if surroundings.writer == 'none' else surroundings.writer}"
    yield f"Store        {surroundings.home}"
    yield f"Engine       {surroundings.engine or 'unknown: call `cortex` by its own name'}"
    if steps:
        yield "\nSetup will"
        yield from (f"  {number}. {words}" for number, words in enumerate(steps.values(), start=1))
        yield ""


def _tools(surroundings: Surroundings) -> str:
    """Say who starts the memory's tools, and how to have it otherwise."""
    if surroundings.has_tools:
        return "started by the client; off: claude mcp remove cortex"
    if "plugin" not in surroundings.hooks:
        return "off"
    if not surroundings.tools_in_plugin:
        return "off; on: cortex config set mcp.in_plugin true"
    return "started by the plugin with each session; off: cortex config set mcp.in_plugin false"


def _next_steps(surroundings: Surroundings, left: dict[str, str]) -> list[str]:
    if left:
        return [f"{words}: cortex setup" for words in left.values()]
    if not surroundings.read_before:
        return ["start `claude` in a project; the first brief comes after your first session."]
    return [
        "start `claude` in a project: its session begins with the brief. cortex doctor checks everything."
    ]


def _as_dict(surroundings: Surroundings, steps: dict[str, str]) -> dict[str, object]:
    return {
        "home": str(surroundings.home),
        "client": str(surroundings.client),
        "program": str(surroundings.program) if surroundings.program else None,
        "engine": str(surroundings.engine) if surroundings.engine else None,
        "sessions": surroundings.sessions,
        "bytes": surroundings.bytes,
        "read_before": surroundings.read_before,
        "hooks": surroundings.hooks,
        "status_line": surroundings.status_line,
        "tools": _tools(surroundings),
        "nightly": surroundings.scheduled_by,
        "writer": surroundings.writer,
        "minutes": surroundings.minutes,
        "steps": steps,
        "next": _next_steps(surroundings, steps),
    }


# The day after the last sample session: plans fade within weeks, and the demo shows a living one.
DEMO_DAY = datetime(2026, 10, 27, 9, tzinfo=UTC)
DEMO_PROJECT = "tidepool"
DEMO_QUESTION = "why SQLite and not Postgres?"


@command("demo", "Try Cortex on sample sessions; no real data is touched.", place=20, json=False)
@ENGINE
def demo(context: Context, engine: str | None) -> None:
    """Run a backfill on sample sessions and show its report, a brief and a recall. Touches no real data."""
    main = click.get_current_context().find_root().command
    with (
        tempfile.TemporaryDirectory(prefix="cortex-demo-") as scratch,
        as_file(files("cortex.data") / "samples") as samples,
    ):
        there = replace(context, settings=load_settings(Path(scratch)), clock=lambda: DEMO_DAY)
        say(f"Six sample sessions of an invented project, as of {DEMO_DAY:%-d %B %Y}, in a scratch store.\n")
        say("$ cortex backfill samples/")
        main.main(["backfill", str(samples), *(["--engine", engine] if engine else [])], obj=there)
        say(f"\n$ cortex brief --project {DEMO_PROJECT}\n")
        main.main(["brief", "--project", DEMO_PROJECT], obj=there)
        say(f'\n$ cortex recall --project {DEMO_PROJECT} "{DEMO_QUESTION}"\n')
        main.main(["recall", "--project", DEMO_PROJECT, "--limit", "3", DEMO_QUESTION], obj=there)
    say("\nThe scratch store is deleted. To read your own sessions: cortex setup")


@command("doctor", "Check that everything needed is in place.", place=80, takes_context=False)
def doctor() -> Answer:
    """Show which parts of Cortex work here, check everything it needs, and say what to do next."""
    from cortex.flows.operations.maintain import doctor

    examination = doctor.examine(current_home(), current_context)
    tier, checks = examination.tier, examination.checks
    rows = [[check.mark, check.check, check.finding] for check in checks]
    table = Listing("Checks", ["", "check", "finding"], rows)
    return Answer(
        {"tier": asdict(tier), "checks": [asdict(check) for check in checks]},
        [f"Tier: {tier.name}. {tier.why}", f"Next: {tier.next}\n", table],
        exit_code=0 if examination.is_sound else 1,
    )


SHELLS = ("bash", "zsh", "fish")


@command(
    "completion",
    "Print the completion script for bash, zsh or fish.",
    place=90,
    json=False,
    takes_context=False,
)
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> Answer:
    """Print the completion script for a SHELL: bash, zsh or fish.

    \b
    bash  cortex completion bash > ~/.local/share/bash-completion/completions/cortex
    zsh   cortex completion zsh > "${fpath[1]}/_cortex"
    fish  cortex completion fish > ~/.config/fish/completions/cortex.fish

    It takes effect in the next shell.
    """
    from click.shell_completion import get_completion_class

    root = click.get_current_context().find_root().command
    kind = get_completion_class(shell)
    assert kind is not None  # click knows all of SHELLS
    script = kind(root, {}, "cortex", "_CORTEX_COMPLETE")
    return Answer({}, [script.source_template % script.source_vars()])


# Set by Claude Code for what it starts.
PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"

# What the protocol's package imports for clients, other styles of servers and those over HTTP: a third of the
# processor time until a server over standard input answers.
NOT_OVER_STDIO = (
    "mcp.client", "mcp.server.mcpserver", "mcp.server.auth", "mcp.server.streamable_http",
    "mcp.server.streamable_http_manager", "httpx2", "sse_starlette", "starlette", "uvicorn",
)  # fmt: skip


@command("mcp", "Serve the memory to programs that speak MCP.", place=50, json=False)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Project folder. Default: the folder in which the client starts this.",
)
@click.option("--http", "over_http", is_flag=True, help="Serve a team over HTTP, with OAuth 2, until Ctrl-C.")
@click.option("--host", default="127.0.0.1", show_default=True, help="With --http: address to listen on.")
@click.option(
    "--port",
    default=8377,
    show_default=True,
    type=click.IntRange(0, 65_535),
    help="With --http: port to listen on.",
)
def mcp(context: Context, folder: Path | None, over_http: bool, host: str, port: int) -> None:
    """Serve the memory of this folder's project over the Model Context Protocol (standard input and output).

    An assistant's client starts and stops it. The client sees the project of the folder it starts this in,
    and global memories; the setting mcp.projects adds more. With --http it serves callers with a token from
    the identity provider mcp.issuer; the setting mcp.http_projects says what they see.
    """
    if over_http:
        _serve_team(context, host, port)
        return
    from cortex.mcp.protocol.idle_release import quick_imports
    from cortex.stubbed_imports import stubbing

    with quick_imports(), stubbing(*NOT_OVER_STDIO):
        from cortex.mcp.protocol.client import Client
        from cortex.mcp.server import serve_stdio

    named = os.environ.get(PROJECT_VARIABLE)
    place = folder or (Path(named) if named and Path(named).is_dir() else context.folder)
    serve_stdio(Client(replace(context, folder=place.absolute())))


def _serve_team(context: Context, host: str, port: int) -> None:
    from cortex.mcp.http_server import open_team_server, serve_http

    context.open_store()  # an error is better said here than to callers
    listening = open_team_server(context, host, port)

    def is_up() -> None:
        hint(f"The memory's tools: {listening.address}, for tokens of {context.settings.mcp.issuer}.")
        hint("Ctrl-C ends it.")

    with suppress(KeyboardInterrupt):
        serve_http(listening, is_up)
