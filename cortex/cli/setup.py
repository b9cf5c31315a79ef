"""The command `setup`: shows what is there, offers to read transcripts and to install the hooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cortex.cli import install
from cortex.cli.answer import Answer, can_ask, command, prints_json
from cortex.cli.run import report_answer, running
from cortex.cli.terminal import size_of
from cortex.flows import operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cortex.flows.context import Context
    from cortex.flows.operations.setup import Surroundings


@command("setup")
@click.option("--yes", is_flag=True, help="Do not ask: read the transcripts, install the hooks.")
def setup(context: Context, yes: bool) -> Iterator[Answer]:
    """Show what is there, tell the hooks where `cortex` is, offer to read transcripts and to install hooks.

    Asks only at a terminal. Elsewhere, without --yes, it says what it would ask.
    """
    surroundings = operations.setup.look_around(context)
    operations.config.publish_settings(context)
    yield Answer(_as_dict(surroundings), list(_lines(surroundings)))
    if yes or not prints_json():
        # Reading comes last: it takes minutes, and may end with an error.
        question = f"Put the hooks into {surroundings.client}/settings.json (not needed with the plugin)?"
        if surroundings.hooks == "none" and _agreed(question, yes):
            yield install.change_answer(operations.install.install(context, dry_run=False))
        question = f"Read these transcripts now (about {surroundings.minutes} min)?"
        if surroundings.sessions and _agreed(question, yes):
            with running(context, "plain") as (_, progress):
                result = operations.intake.backfill(context, (), progress=progress)
            yield report_answer(result.report)
            if result.problem:
                raise result.problem
    after = operations.setup.look_around(context)
    yield Answer(_as_dict(after), [f"Next: {step}" for step in _next_steps(after)])


def _agreed(question: str, yes: bool) -> bool:
    return yes or (can_ask() and click.confirm(question, default=True))


def _lines(surroundings: Surroundings) -> Iterator[str]:
    sessions, client = surroundings.sessions, surroundings.client
    waiting = f"{sessions} to read, {size_of(surroundings.bytes)}, about {surroundings.minutes} min"
    yield f"Store        {surroundings.home}"
    yield f"Client       {client}{'' if client.is_dir() else ' (missing)'}"
    yield f"Transcripts  {waiting if sessions else 'none to read'}; {surroundings.read_before} read before"
    yield f"Engine       {surroundings.engine or 'unknown: call `cortex` by its own name'}"
    yield f"Hooks        {surroundings.hooks}"
    yield f"Status line  {'ours' if surroundings.status_line else 'not ours'}"


def _next_steps(surroundings: Surroundings) -> list[str]:
    steps = []
    if surroundings.sessions:
        steps.append("cortex backfill reads the transcripts.")
    if surroundings.hooks == "none":
        steps.append("cortex install adds the hooks to the settings; or install the plugin.")
    if surroundings.hooks == "plugin and settings":
        steps.append("cortex uninstall: the plugin brings the same hooks, so each event counts twice.")
    if not surroundings.status_line:
        steps.append("cortex statusline install shows memories and context below the prompt.")
    return steps or ["start a session of the assistant; it begins with the brief."]


def _as_dict(surroundings: Surroundings) -> dict[str, object]:
    return {
        "home": str(surroundings.home),
        "client": str(surroundings.client),
        "engine": str(surroundings.engine) if surroundings.engine else None,
        "sessions": surroundings.sessions,
        "bytes": surroundings.bytes,
        "read_before": surroundings.read_before,
        "hooks": surroundings.hooks,
        "status_line": surroundings.status_line,
        "minutes": surroundings.minutes,
        "next": _next_steps(surroundings),
    }
