"""Which stores elsewhere this process holds the lease of: a commit goes there first, then into the folder."""

from pathlib import Path
from typing import TYPE_CHECKING

from cortex.transforms.errors import StoreBusy

if TYPE_CHECKING:
    from cortex.storage.manifest import Manifest
    from cortex.storage.remote.session import RemoteSession

# In a folder that is a copy of a store elsewhere.
NOTE_FILE = "remote.json"


_open: dict[Path, "RemoteSession"] = {}


def opened_session(home: Path, session: "RemoteSession") -> None:
    """Let the commits to the store in `home` go through `session`."""
    _open[home.resolve()] = session


def closed_session(home: Path) -> None:
    """Let no commit to the store in `home` through any more."""
    _open.pop(home.resolve(), None)


def is_copy(home: Path) -> bool:
    """Return whether the folder `home` is a copy of a store elsewhere."""
    return (home / NOTE_FILE).is_file()


def place_elsewhere(home: Path) -> str:
    """Return the URI of the store that `home` is a copy of, once it answers. Raises StoreUnreachable."""
    from cortex.storage.remote.bucket import BucketLog, bucket_at
    from cortex.storage.remote.copy import check_origin
    from cortex.storage.remote.note import remote_note

    note = remote_note(home)
    assert note is not None
    check_origin(note, BucketLog(bucket_at(note.uri)))
    return note.uri


def commit_elsewhere(home: Path, manifest: "Manifest", content: bytes) -> None:
    """
    Commit a manifest to where the store of `home` is; nothing for a store that is the folder itself.

    Raises LeaseLost and StoreUnreachable: the folder's own manifest then stays as it was.
    """
    if not is_copy(home):
        return
    session = _open.get(home.resolve())
    if session is None:
        raise StoreBusy(f"{home} is a copy of a store elsewhere, whose lease is not held.", "Run it again.")
    session.push(manifest, content)
