"""The commands `install` and `uninstall`: Cortex's hooks in the client's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cortex.cli.answer import Answer, command
from cortex.cli.options import DRY_RUN

if TYPE_CHECKING:
    from cortex.flows.context.context import Context
    from cortex.flows.operations.care.install import SettingsChange


@command("install", "Add the hooks to the client's settings.", place=30)
@DRY_RUN
def install(context: Context, dry_run: bool) -> Answer:
    """Add the plugin's hooks to the client's user settings, for use without the plugin.

    Other keys, their order and the indentation stay as they are. To undo: `cortex uninstall`.
    """
    from cortex.flows.operations.care import install

    change = install.install(context, dry_run=dry_run)
    hints = [] if dry_run else ["New sessions use them. Remove them again: cortex uninstall"]
    return change_answer(change, *hints)


@command("uninstall", "Remove hooks and status line from the client's settings.", place=40)
@DRY_RUN
def uninstall(context: Context, dry_run: bool) -> Answer:
    """Remove the hooks and the status line from the client's user settings. The memory is kept."""
    from cortex.flows.operations.care import install

    hints = [] if dry_run else [f"The memory itself stays in {context.home}."]
    return change_answer(install.uninstall(dry_run=dry_run), *hints)


def change_answer(change: SettingsChange, *hints: str) -> Answer:
    """Return the answer to a change of the client's settings: the file, or what would change in it."""
    data = {
        "file": change.file,
        "changed": change.is_different and not change.is_dry_run,
        "diff": change.diff,
    }
    unknown = "The hooks do not know yet where the `cortex` command is: the first `cortex run` tells them."
    warnings = [] if change.knows_engine else [unknown]
    if not change.is_dry_run:
        outcome = "changed" if change.is_different else "nothing to change"
        return Answer(data, [f"{change.file}: {outcome}."], hints, warnings)
    hint = "Nothing has been changed yet." if change.is_different else f"{change.file}: nothing to change."
    return Answer(data, change.diff.splitlines(), [hint, *hints], warnings)
