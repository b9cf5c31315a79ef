"""Search: the canaries in every file below some folders, raw and in what the files' formats hold inside."""

import gzip
import io
import sqlite3
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.canary_kinds import CANARY
from cortex.storage.tables.lance_tables import lancedb


def canaries_in(content: bytes) -> set[int]:
    """Return the numbers of the canaries in some bytes, whatever the case, as UTF-8 or UTF-16."""
    texts = [content.decode("utf-8", "replace")]
    if b"\0" in content:
        texts += [content.decode("utf-16-le", "replace"), content[1:].decode("utf-16-le", "replace")]
    return {int(number, 16) for text in texts for number in CANARY.findall(text.casefold())}


def canaries_below(places: Iterable[Path]) -> tuple[dict[int, list[str]], int]:
    """Return the canaries found below `places`, each with the files that hold it, and the number of files."""
    hits: dict[int, list[str]] = {}
    files = 0
    for place in places:
        paths = sorted(place.rglob("*")) if place.is_dir() else [place]
        for path in paths:
            if path.is_file():
                files += 1
            for number in _in_path(path):
                hits.setdefault(number, []).append(str(path.relative_to(place.parent)))
    return hits, files


def _in_path(path: Path) -> set[int]:
    numbers = canaries_in(str(path.name).encode("utf-8", "replace"))
    if path.is_dir():
        return numbers | (_in_dataset(path) if path.suffix == ".lance" else set())
    if not path.is_file():
        return numbers
    content = path.read_bytes()
    return numbers | canaries_in(content) | {n for part in _inside(path, content) for n in canaries_in(part)}


def _inside(path: Path, content: bytes) -> Iterator[bytes]:
    """Yield what a packed format holds, unpacked as often as it is packed."""
    if content.startswith(b"PAR1"):
        with suppress(OSError, pa.ArrowException):  # damaged on purpose: the copy that a run fails over
            yield _spelt(pq.read_table(io.BytesIO(content)))
    elif content.startswith(b"SQLite format 3"):
        yield from _rows_of_sqlite(path)
    elif content.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            for name in packed.namelist():
                yield name.encode()
                yield from _whole(packed.read(name))
    elif content.startswith(b"\x1f\x8b"):
        yield from _whole(gzip.decompress(content))
    elif content.startswith(b"\x28\xb5\x2f\xfd"):
        with pa.CompressedInputStream(pa.BufferReader(content), "zstd") as plain:
            yield from _whole(plain.read())


def _whole(content: bytes) -> Iterator[bytes]:
    """Yield unpacked bytes, and what they hold in turn."""
    yield content
    if content[257:262] == b"ustar":
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            for member in tar:
                body = tar.extractfile(member)
                inner = body.read() if body else b""
                yield from _inside(Path(member.name), inner)


def _rows_of_sqlite(path: Path) -> Iterator[bytes]:
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
        names = [row[0] for row in database.execute("select name from sqlite_master where type = 'table'")]
        for name in names:
            with suppress(sqlite3.Error):  # a contentless text index gives no rows, its words come below
                for row in database.execute(f'select * from "{name}"'):
                    yield b" ".join(v if isinstance(v, bytes) else str(v).encode() for v in row)
            with suppress(sqlite3.Error):
                database.execute(f"create virtual table temp.words using fts5vocab(main, '{name}', 'row')")
                yield b" ".join(str(row[0]).encode() for row in database.execute("select * from temp.words"))
            with suppress(sqlite3.Error):
                database.execute("drop table temp.words")


def _in_dataset(path: Path) -> set[int]:
    """Return the canaries in every version of a LanceDB dataset that is left."""
    handle = lancedb().connect(str(path.parent)).open_table(path.stem)
    numbers: set[int] = set()
    for version in handle.list_versions():
        handle.checkout(version["version"])
        numbers |= canaries_in(_spelt(handle.to_arrow()))
    return numbers


def _spelt(rows: pa.Table) -> bytes:
    return repr(rows.drop_columns([n for n in rows.schema.names if n == "vector"]).to_pylist()).encode()
