"""The command `statusline`: one line below the prompt, and its place in the client's settings."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import time
from typing import TYPE_CHECKING

from cortex.cli.answer import Answer, command, current_home, group
from cortex.cli.options import DRY_RUN
from cortex.cli.start.install import change_answer
from cortex.hooks.statusline import line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cortex.flows.context.context import Context


@group(
    "statusline",
    "Print a status line: memories, capture and context.",
    place=60,
    json=False,
    takes_context=False,
)
def statusline() -> Iterator[Answer]:
    """
    Print the status line for the client's JSON on standard input, or add it to the settings or remove it.
    """
    here: dict[str, object] = {"cwd": str(Path.cwd())}
    try:
        payload = here if sys.stdin.isatty() else json.loads(sys.stdin.buffer.read() or b"{}")
        text = line(str(current_home()), payload, time())
    except (OSError, ValueError, AttributeError):
        return  # the client calls it after each event: silence is the only right answer
    if text:
        yield Answer({}, [text])


@command("install", parent=statusline)
@DRY_RUN
def install(context: Context, dry_run: bool) -> Answer:
    """Add the status line to the client's settings, below an existing one."""
    from cortex.flows.operations.care import install

    return change_answer(install.install_status_line(dry_run=dry_run))


@command("uninstall", parent=statusline)
@DRY_RUN
def uninstall(context: Context, dry_run: bool) -> Answer:
    """Remove the status line and restore the one that was there before."""
    from cortex.flows.operations.care import install

    return change_answer(install.uninstall_status_line(dry_run=dry_run))
