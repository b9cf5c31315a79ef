"""What the commands that are not declared beside what they do need of a store."""

from collections.abc import Sequence

from cortex.cli.present import present
from cortex.cli.terminal import hint
from cortex.flows.operations import apply
from cortex.flows.stages.stage import Stage
from cortex.storage.store import Store


def open_store() -> Store:
    """Return the store of the command that is running, as `Context.open_store` gives it."""
    return present().open_store()


def apply_now(stages: Sequence[Stage]) -> bool:
    """Run `stages` now; return whether what was journaled acts."""
    applied = apply.apply_now(present(), stages)
    for line in applied.warnings:
        hint(line)
    return applied.is_in_effect
