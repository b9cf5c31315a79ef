"""The command `demo`: a backfill, a brief and a recall on sample sessions, in a scratch store."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import command
from cortex.cli.options import ENGINE
from cortex.cli.terminal import say
from cortex.storage.settings.settings import load_settings

if TYPE_CHECKING:
    from cortex.flows.context.context import Context

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
    say("\nThe scratch store is deleted. To read your own sessions: cortex backfill")
