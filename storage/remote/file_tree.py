"""The tree: one state of a store, as files that machines share, the objects that hold them, a copy."""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from cortex.storage.filesystem.files import sha256_of, write_stored
from cortex.storage.lake.manifest import is_lake_file
from cortex.storage.tables.search_file import DATABASE_FILE, SEARCH_FILE, SEARCH_FILE_SIDECARS
from cortex.transforms.errors import ManifestDamaged

MANIFEST_FILE = "runs/manifest.json"

# Folders that are shared as they are. Staging, settings, policy, reports and the ledger of spending are each
# machine's own, and so are the DuckDB file, whose views name this machine's folders, and the search index:
# one file of all projects, which follows from the tables.
SHARED = ("tables", "published")
NOT_SHARED = (
    DATABASE_FILE,
    f"{DATABASE_FILE}.wal",
    *(f"tables/{SEARCH_FILE}{ending}" for ending in ("", *SEARCH_FILE_SIDECARS)),
)

DIGEST_CHARS = 32

# Ends in what tells objects of one file apart: the term of the lease that wrote them, and their content.
_OBJECT = re.compile(r"(?:lake|tables|published|runs|trees)/(?:.*/)?[^/]*?\.?(\d+)-[0-9a-f]{32}(?:\.[^/]*)?")

_PATH = re.compile(r"(?:tables|published)(?:/[^/\x00-\x1f]+)+")


@dataclass(frozen=True)
class Stored:
    """Where a file is in the bucket: object, size and SHA-256 (cut) of the file, the key that seals it."""

    name: str
    size: int
    digest: str
    key_id: str = ""


FileTree = dict[str, Stored]


def object_name(path: str, term: int, digest: str) -> str:
    """
    Return the name of the object for a file's content; no two terms write the same object.

    >>> object_name("published/kiln/brief.md", 12, "ab")
    'published/kiln/brief.12-ab.md'
    """
    folder, slash, name = path.rpartition("/")
    stem, dot, ending = name.partition(".")
    return f"{folder}{slash}{stem}.{term}-{digest}{dot}{ending}"


def term_of(name: str) -> int | None:
    """Return the term that wrote an object, None for what no Cortex wrote."""
    match = _OBJECT.fullmatch(name)
    return int(match[1]) if match else None


def serialize_tree(tree: Mapping[str, Stored]) -> bytes:
    """Return a tree as the bucket keeps it."""
    files = {path: [each.name, each.size, each.digest, each.key_id] for path, each in sorted(tree.items())}
    return json.dumps({"version": 1, "files": files}, ensure_ascii=False, indent=0).encode()


def parse_tree(content: bytes, name: str) -> FileTree:
    """Return the tree that `serialize_tree` gave. Raises ManifestDamaged for any other, also by its paths."""
    try:
        document = json.loads(content)
        tree = {path: Stored(*fields) for path, fields in document["files"].items()}
        is_sound = document["version"] == 1 and all(_is_sound(path, each) for path, each in tree.items())
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        is_sound = False
    if not is_sound:
        raise ManifestDamaged(
            f"the object {name} of the store is damaged: Cortex did not write it like this.",
            "Put it back from a copy or an older version of the bucket.",
        )
    return tree


def _is_sound(path: str, stored: Stored) -> bool:
    is_text = all(isinstance(each, str) for each in (stored.name, stored.digest, stored.key_id))
    return is_text and isinstance(stored.size, int) and is_shared(path) and term_of(stored.name) is not None


def is_shared(path: str) -> bool:
    """Return whether a path, relative to the store, is one that machines share."""
    if path == MANIFEST_FILE or (path.startswith("lake/") and is_lake_file(path.removeprefix("lake/"))):
        return True
    parts = path.split("/")
    return bool(_PATH.fullmatch(path)) and not {".", ".."} & set(parts) and path not in NOT_SHARED


def shared_paths(home: Path, lake_files: Iterable[str]) -> Iterator[str]:
    """Yield the files that make the present state, but for the manifest."""
    yield from (f"lake/{path}" for path in sorted(lake_files))
    yield from folder_paths(home)


def folder_paths(home: Path) -> Iterator[str]:
    """Yield the files below the folders that are shared as they are."""
    for folder in SHARED:
        for path in sorted((home / folder).rglob("*")):
            name = path.relative_to(home).as_posix()
            if path.is_file() and not path.is_symlink() and is_shared(name):
                yield name


def digest_of(path: Path) -> str:
    """Return the digest of a file's content."""
    return sha256_of(path)[:DIGEST_CHARS]


def digest_of_bytes(content: bytes) -> str:
    """Return the digest of some content."""
    return hashlib.sha256(content).hexdigest()[:DIGEST_CHARS]


# -- What the files of a copy of a store elsewhere were when they were last read.

INDEX_FILE = Path("runs") / "remote-index.json"


class DigestCache:
    """The digests of the copy's files, so that only what changed is read again; a hint that may be lost."""

    def __init__(self, home: Path) -> None:
        self._home = home
        try:
            known = json.loads((home / INDEX_FILE).read_bytes())
            self._known = {path: tuple(seen) for path, seen in known.items()}
        except (OSError, ValueError, AttributeError, TypeError):
            self._known = {}

    def look(self, path: str) -> tuple[str, int] | None:
        """Return a file's digest and size, None if there is none."""
        try:
            status = (self._home / path).stat()
            seen = (status.st_size, status.st_mtime_ns, status.st_ino)
            known = self._known.get(path, ())
            if tuple(known[1:]) != seen:
                known = self._known[path] = (digest_of(self._home / path), *seen)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            self._known.pop(path, None)
            return None
        return str(known[0]), status.st_size

    def keep(self) -> None:
        """Write the index for later processes."""
        path = self._home / INDEX_FILE
        there = {name: seen for name, seen in self._known.items() if os.path.lexists(self._home / name)}
        write_stored(self._home, path, json.dumps(there).encode())
