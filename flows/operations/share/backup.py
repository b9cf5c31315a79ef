"""Writes the store to one file, and puts such a file in the place of the store."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cortex.flows.context.context import Context
from cortex.flows.engines.engines import run_plain
from cortex.flows.engines.runs import opened
from cortex.flows.stages.order import FORGET
from cortex.storage.copies.backup import Backup, write_backup
from cortex.storage.copies.copy_register import note_copy
from cortex.storage.copies.restore import restore_backup
from cortex.storage.copies.swapping import disabled_settings
from cortex.storage.ground.place import is_copy
from cortex.storage.settings.settings import load_settings
from cortex.transforms.errors import UsageError


@dataclass(frozen=True)
class Restored:
    """
    A backup that was put in the place of the store.

    `previous` is where the store lies that was there; `quarantined` are settings and policy of the backup,
    which are not put in force.
    """

    backup: Backup
    previous: Path | None
    quarantined: Sequence[Path]


def backup(context: Context, file: Path) -> Backup:
    """Write all of the store that cannot be made from the rest to one file, consistent under the lease."""
    with opened("backup", context) as run:
        run.store.journal.take_in()
        written = write_backup(run.store, file, run.now)
    note_copy(context.home, "backup", str(file.expanduser().absolute()), context.now)
    return written


def restore(context: Context, file: Path, *, into: Path | None = None) -> Restored:
    """
    Check a backup and put it in the place of the store, or of the folder `into`; what was there stays beside.

    What was forgotten here since the backup is forgotten in it too. Raises UsageError for the copy of a store
    elsewhere.
    """
    home = into.expanduser().absolute() if into else context.home
    if is_copy(home):
        raise UsageError(
            f"{home} is a copy of a store elsewhere, which other machines may have gone on with.",
            "Restore into a folder of its own: --into FOLDER. How that becomes a store elsewhere: "
            "docs/store-elsewhere.md",
        )
    written, previous = restore_backup(file, home, context.now, context.settings.encryption_key_file)
    with opened("restore", replace(context, settings=load_settings(home))) as run:
        run_plain(FORGET, run)
    return Restored(written, previous, disabled_settings(home))
