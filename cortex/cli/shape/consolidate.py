"""The commands `consolidate` and `checkpoint`: merge what says the same, or undo that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.transforms.errors import UsageError

if TYPE_CHECKING:
    from cortex.flows.context.context import Context
    from cortex.flows.operations.change.merges import MemoryMerge


@command("consolidate", "Merge memories that say the same, or undo a merge.", place=80)
@click.option("--dry-run", is_flag=True, help="Show what would be merged, without merging.")
@click.option("--undo", is_flag=True, help="Undo the last consolidation.")
@click.option("--to", "name", metavar="NAME", help="With --undo: undo everything since this checkpoint.")
def consolidate(context: Context, dry_run: bool, undo: bool, name: str | None) -> Answer:
    """Merge memories that say the same; the originals are archived."""
    from cortex.flows.operations.change import merges as merges_operation

    if (dry_run and undo) or (name is not None and not undo):
        raise UsageError("--dry-run and --undo cannot be combined; --to needs --undo.", "Give one of them.")
    if undo:
        undone = merges_operation.undo_merges(context, name)
        return Answer(
            {"undone": [_as_dict(merge) for merge in undone.merges]},
            [f"{len(undone.merges)} merges undone; their members are as they were."],
            warnings=undone.applied.warnings,
        )
    if dry_run:
        return _proposed(merges_operation.propose_merges(context))
    consolidation = merges_operation.merge_duplicates(context)
    merges = consolidation.merges
    lines = [f"{m.project_id}: {len(m.members)} became one: {m.text}  [{m.memory_id[:12]}]" for m in merges]
    lines.append(f"{len(merges)} merges." + (" To undo them: cortex consolidate --undo" if merges else ""))
    return Answer(
        {"merged": [_as_dict(merge) for merge in merges]}, lines, warnings=consolidation.applied.warnings
    )


def _proposed(proposals: list[MemoryMerge]) -> Answer:
    lines: list[str] = []
    for merge in proposals:
        lines.append(f"{merge.project_id}: {len(merge.members)} become one: {merge.text}")
        lines += [f"    - {text}" for text in merge.texts]
    lines.append(f"{len(proposals)} merges proposed; nothing was changed.")
    return Answer(
        {"proposals": [{**_as_dict(merge), "texts": list(merge.texts)} for merge in proposals]}, lines
    )


def _as_dict(merge: MemoryMerge) -> dict[str, object]:
    return {
        "id": merge.memory_id,
        "project_id": merge.project_id,
        "members": list(merge.members),
        "text": merge.text,
    }


@command("checkpoint", "Save a point that you can undo merges back to.", place=90)
@click.argument("name")
def checkpoint(context: Context, name: str) -> Answer:
    """Save a point with this NAME, to which `consolidate --undo --to NAME` returns."""
    from cortex.flows.operations.change import merges

    moment = merges.checkpoint(context, name)
    return Answer(
        {"checkpoint": moment.name, "at": moment.at.isoformat()},
        [f"Checkpoint '{name}'. To return to it: cortex consolidate --undo --to '{name}'"],
    )
