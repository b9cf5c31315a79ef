"""Looks for a text in every byte of a folder, and in what the files of known formats decode to."""

import json
from pathlib import Path
from typing import Any

import lance
import pyarrow.parquet as pq


def traces(home: Path, *texts: str) -> list[str]:
    """Return the files below `home` that hold any of `texts`, in raw bytes or decoded; case does not matter."""
    sought = [text.casefold() for text in texts]
    found = []
    for path in sorted(p for p in home.rglob("*") if p.is_file()):
        raw = path.read_bytes()
        told = [raw.decode("utf-8", "replace"), raw.decode("utf-16-le", "replace"), *_decoded(path)]
        if any(text in one.casefold() for one in told for text in sought):
            found.append(str(path.relative_to(home)))
    for dataset in sorted(home.rglob("*.lance")):
        if any(text in rows.casefold() for rows in _versions(dataset) for text in sought):
            found.append(str(dataset.relative_to(home)))
    return found


def _decoded(path: Path) -> list[str]:
    if path.suffix == ".parquet":
        return [json.dumps(pq.read_table(path, partitioning=None).to_pylist(), default=_plain, ensure_ascii=False)]
    if path.suffix == ".lance" and "_indices" in path.parts:
        return [_index_words(path)]
    return []


def _index_words(path: Path) -> str:
    from lance.file import LanceFileReader

    rows = LanceFileReader(str(path)).read_all().to_table()
    return json.dumps(rows.to_pylist(), default=_plain, ensure_ascii=False)


def _versions(dataset: Path) -> list[str]:
    told = []
    for version in lance.dataset(str(dataset)).versions():
        rows = lance.dataset(str(dataset), version=version["version"]).to_table()
        told.append(json.dumps(rows.to_pylist(), default=_plain, ensure_ascii=False))
    return told


def _plain(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
