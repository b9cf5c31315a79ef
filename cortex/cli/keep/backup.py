"""The commands `backup` and `restore`: the store in one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.cli.terminal import size_of

if TYPE_CHECKING:
    from cortex.flows.context.context import Context
    from cortex.flows.operations.share.backup import Restored
    from cortex.storage.copies.backup import Backup


@command("backup", "Write the store to one file.", place=10)
@click.argument("file", type=click.Path(path_type=Path))
def backup(context: Context, file: Path) -> Answer:
    """Write the whole store to one FILE (tar, zstd), with the hash of each part inside."""
    from cortex.flows.operations.share import backup

    written = backup.backup(context, file)
    return _answer("Written", file, backup.Restored(written, None, ()))


@command("restore", "Replace the store with a backup.", place=20)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--into", type=click.Path(path_type=Path), help="Restore into this folder instead of replacing the store."
)
def restore(context: Context, file: Path, into: Path | None) -> Answer:
    """Check the backup FILE and replace the store with it; the old store is kept next to it."""
    from cortex.flows.operations.share import backup

    return _answer("Restored", file, backup.restore(context, file, into=into))


def _answer(verb: str, file: Path, result: Restored) -> Answer:
    backup: Backup = result.backup
    data = {
        "file": str(file),
        "files": len(backup.files),
        "rows": backup.rows,
        "bytes": backup.bytes,
        "previous_store": str(result.previous) if result.previous else None,
        "set_aside": [str(path) for path in result.quarantined],
    }
    rows = ", ".join(f"{name} {count:,}" for name, count in sorted(backup.rows.items()))
    hints = []
    if result.previous is not None:
        hints.append(f"The previous store is now at {result.previous}. Remove it when everything works.")
    if result.quarantined:
        hints.append(
            "The backup's settings and policy are not applied: the store keeps its own, or the defaults. "
            f"Those of the backup are in {' and '.join(map(str, result.quarantined))}; "
            "read them before you use them."
        )
    size = size_of(backup.bytes)
    return Answer(data, [f"{verb}: {file}, {len(backup.files)} files, {size}; {rows}."], hints)
