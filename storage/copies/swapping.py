"""A restored store takes the place of the old one in two renames; a kill between them is repaired here."""

import errno
import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from cortex.storage.filesystem.files import PART_SUFFIX, write_stored, writing_to
from cortex.storage.remote.store_lease import lease

# In the restored store until its first run is done: which store it replaced, and which backup it came from.
NOTE = Path("runs") / "restored.json"

CONFIG, POLICY = "config.toml", "policy"
# Ends the names of a backup's own settings and policy.
FROM_BACKUP = ".from-backup"


@dataclass(frozen=True)
class Swap:
    """
    `previous` is the name of the folder that the old store has now, `backup` the sha256 of the backup.

    `generation` is that of the restored manifest, -1 if it was not noted: a store that has gone on since
    has another.
    """

    previous: str
    backup: str
    generation: int = -1


def staging_copy(home: Path) -> Path:
    """Return where a backup is unpacked and checked before it takes the place of the store."""
    return home.with_name(f".{home.name}.restoring{PART_SUFFIX}")


def note_swap(store: Path, swap: Swap) -> None:
    """Note in a store about to be put in place what it replaces."""
    write_stored(store, store / NOTE, json.dumps(asdict(swap)).encode())


def swap_of(store: Path) -> Swap | None:
    """Return what a store replaced, if no run has followed since."""
    try:
        return Swap(**json.loads((store / NOTE).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def forget_swap(home: Path) -> None:
    """Drop the note: the restored store has had its first run. Only under the lease."""
    (home / NOTE).unlink(missing_ok=True)


def disable_settings(fresh: Path, home: Path) -> None:
    """
    Take settings and policy that came with a backup out of force; those of the store at `home` stay in force.

    They decide where files of the user's are written, where text is sent and what is deleted, and the backup
    may be anyone's. They are put next to the store, for the user to read, unless they are the same.
    """
    for name in (CONFIG, POLICY):
        if (fresh / name).exists():
            (fresh / name).rename(fresh / (name + FROM_BACKUP))
        if (home / name).is_symlink():
            shutil.copy2(home / name, fresh / name, follow_symlinks=False)
    if (home / CONFIG).is_file() and not (home / CONFIG).is_symlink():
        shutil.copy2(home / CONFIG, fresh / CONFIG)
    if (home / POLICY).is_dir() and not (home / POLICY).is_symlink():
        (fresh / POLICY).mkdir(mode=0o700)
        for table in (home / POLICY).glob("*.csv"):
            if table.is_file():
                shutil.copy2(table, fresh / POLICY, follow_symlinks=False)
    for name in (CONFIG, POLICY):
        aside = fresh / (name + FROM_BACKUP)
        if _texts(aside) == _texts(fresh / name):
            shutil.rmtree(aside) if aside.is_dir() else aside.unlink(missing_ok=True)


def disabled_settings(home: Path) -> list[Path]:
    """Return the settings and the policy of a backup that are in the store but not in force."""
    return [path for name in (CONFIG, POLICY) if (path := home / (name + FROM_BACKUP)).exists()]


def _texts(path: Path) -> dict[str, bytes]:
    """Return the content by name of a file, or of the tables of a policy."""
    if path.is_dir():
        return {table.name: table.read_bytes() for table in path.glob("*.csv") if table.is_file()}
    return {"": path.read_bytes()} if path.is_file() else {}


def finish_swap(home: Path) -> None:
    """
    Put a checked store in place where a kill left none; does nothing if no swap was begun.

    Tickets that hooks dropped in the meantime come along. Raises StoreBusy while another process does it, and
    StoreNotWritable.
    """
    home = Path(os.path.realpath(home))  # a link stays, what it names is replaced
    fresh = staging_copy(home)
    swap = swap_of(fresh)
    if swap is None or not home.with_name(swap.previous).is_dir():
        return
    with writing_to(home.parent), lease(fresh):
        if swap_of(fresh) is None:  # another process was faster; the lease has made the folder again
            shutil.rmtree(fresh, ignore_errors=True)
            return
        put_in_place(fresh, home)


def put_in_place(fresh: Path, home: Path) -> None:
    """
    Rename `fresh` to `home`, which hooks may make again at any moment: the tickets they dropped come along.

    Raises OSError if `home` cannot be replaced for another reason; `fresh` is then as it was.
    """
    while True:
        try:
            fresh.replace(home)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        if (home / "staging").is_dir():
            shutil.copytree(home / "staging", fresh / "staging", dirs_exist_ok=True)
        shutil.rmtree(home)
