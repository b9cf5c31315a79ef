"""One holder's work on a store elsewhere: what is new goes there, what no state names is removed."""

import contextlib
import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from cortex.storage.filesystem.place import RemoteNote, closed_session, keep_note, opened_session, remote_note
from cortex.storage.lake.encryption import Vault
from cortex.storage.lake.manifest import read_manifest
from cortex.storage.remote.bucket import Bucket, BucketLog, bucket_at, in_parallel
from cortex.storage.remote.commit_log import RENEW_SECONDS, RemoteLease, milestone_after
from cortex.storage.remote.file_tree import (
    MANIFEST_FILE,
    DigestCache,
    FileTree,
    Stored,
    digest_of_bytes,
    object_name,
    serialize_tree,
    shared_paths,
    term_of,
)
from cortex.storage.remote.store_copy import ObjectMissing, check_origin, origin_of, take_in
from cortex.transforms.errors import CortexError, FileDamaged, LeaseLost, ManifestDamaged, StoreUnreachable

FOLDERS = ("lake/", "tables/", "published/", "runs/", "trees/")


class RemoteSession:
    """The store elsewhere while this process holds its lease."""

    def __init__(self, home: Path, bucket: Bucket, lease: RemoteLease, tree: FileTree) -> None:
        self._home = home
        self._bucket = bucket
        self._lease = lease
        self._tree = tree
        self._vault = Vault(home)
        self._index = DigestCache(home)
        self._has_replaced = lease.was_left_open

    def push(self, lake_files: Iterable[str], key_id: str | None, manifest: bytes) -> None:
        """
        Make the copy's present files, with this manifest, the state that counts; nothing if it is that.

        Objects first, then the tree that names them, then the entry of the log. Raises LeaseLost and
        StoreUnreachable; what was written by then is named by nothing, and a later holder removes it.
        """
        tree: FileTree = {}
        new: list[str] = []
        for path in shared_paths(self._home, lake_files):
            if seen := self._index.look(path):
                tree[path] = self._stored(path, *seen, key_id)
                if tree[path] != self._tree.get(path):
                    new.append(path)
        in_parallel(lambda path: self._put(path, tree[path]), new)
        tree[MANIFEST_FILE] = self._stored(MANIFEST_FILE, digest_of_bytes(manifest), len(manifest), None)
        if tree == self._tree:
            return
        self._bucket.put(tree[MANIFEST_FILE].name, manifest)
        named = serialize_tree(tree)
        name = object_name("trees/tree.json", self._lease.term, digest_of_bytes(named))
        self._bucket.put(name, named)
        self._lease.commit(name)
        self._has_replaced |= any(each not in tree.values() for each in self._tree.values())
        self._tree = tree

    def _stored(self, path: str, digest: str, size: int, key_id: str | None) -> Stored:
        # The lake is sealed file by file already.
        key = key_id if key_id and not path.startswith("lake/") else ""
        known = self._tree.get(path)
        if known and (known.digest, known.size, known.key_id) == (digest, size, key):
            return known
        return Stored(object_name(path, self._lease.term, digest), size, digest, key)

    def _put(self, path: str, stored: Stored) -> None:
        if stored.key_id:
            plain = (self._home / path).read_bytes()
            self._bucket.put(stored.name, self._vault.encrypted_bytes(plain, path, stored.key_id))
        else:
            self._bucket.put(stored.name, self._home / path)

    def finish(self) -> None:
        """Commit what changed since the last commit, give the lease back, remove what nothing needs."""
        content = (
            (self._home / MANIFEST_FILE).read_bytes() if (self._home / MANIFEST_FILE).is_file() else None
        )
        if content is not None:
            manifest = read_manifest(self._home / MANIFEST_FILE)
            self.push(manifest.files, manifest.notes.encrypted_with, content)
        term = self._lease.term
        self._lease.release()
        if self._has_replaced:
            self._sweep(term)
        if milestone_after(term - 1) <= self._lease.number:
            BucketLog(self._bucket).trim(self._lease.number)

    def _sweep(self, term: int) -> None:
        """
        Remove the objects that the last state does not name.

        Only those of this term or older ones: a later holder's are its own, and whatever it took over from
        this state is named here. Whatever it writes again has a name of its own.
        """
        named = {each.name for each in self._tree.values()} | {self._lease.tree}
        for folder in FOLDERS:
            names = list(self._bucket.names(folder))
            self._bucket.remove(
                name for name in names if name not in named and (term_of(name) or term + 1) <= term
            )

    def keep_place(self, note: RemoteNote) -> None:
        """Note in the copy how far it is in step."""
        self._index.keep()
        keep_note(self._home, replace(note, number=self._lease.number, tree=self._lease.tree))


@contextlib.contextmanager
def written_elsewhere(home: Path) -> Iterator[None]:
    """
    Hold the lease of the store that `home` is a copy of, brought in step first; nothing for another folder.

    Only under the folder's own lock. Raises StoreBusy, LeaseLost, StoreUnreachable.
    """
    note = remote_note(home)
    if note is None:
        yield
        return
    bucket = bucket_at(note.uri)
    log, is_new = BucketLog(bucket), not note.origin
    note = check_origin(note, log)
    lease = RemoteLease(log, note.copy, note.number)
    lease.take()
    with _renewing(lease):
        session, note = _begun(home, bucket, lease, note, is_new=is_new)
        opened_session(home, session)
        try:
            yield
        except Exception as error:
            _finish(session, note, error)
            raise
        else:
            _finish(session, note, None)
        finally:
            closed_session(home)


def _begun(
    home: Path, bucket: Bucket, lease: RemoteLease, note: RemoteNote, *, is_new: bool
) -> tuple[RemoteSession, RemoteNote]:
    """Bring the copy in step, and return what commits from here on."""
    note = replace(note, origin=note.origin or origin_of(BucketLog(bucket)), number=lease.number)
    try:
        tree = take_in(home, bucket, note, lease.tree, is_new=is_new)
    except ObjectMissing as error:  # under the lease no other machine writes, so no later state explains it
        raise FileDamaged(
            f"the object {error} of the store is gone.", "Put it back from a copy or a version of the bucket."
        ) from error
    keep_note(home, replace(note, tree=lease.tree))
    return RemoteSession(home, bucket, lease, tree), note


def _finish(session: RemoteSession, note: RemoteNote, error: Exception | None) -> None:
    """End the session; after an error that one is raised, whatever happens here."""
    try:
        if not isinstance(error, LeaseLost | StoreUnreachable):
            session.finish()
            session.keep_place(note)
    except CortexError:
        if error is None:
            raise


@contextlib.contextmanager
def _renewing(lease: RemoteLease) -> Iterator[None]:
    """Show while the block runs that the holder lives."""
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(RENEW_SECONDS / 2):
            with contextlib.suppress(StoreUnreachable, ManifestDamaged):
                try:
                    lease.renew()
                except LeaseLost:
                    return

    thread = threading.Thread(target=renew, name="cortex-lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
