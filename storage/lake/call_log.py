"""
The audit log: one row a call of a tool, in the lake's table `calls`.

A call is noted as one durable file in `staging/calls/`, without the lease, and a run takes the files into the
lake. What was said in a call is not in its row, so that nothing has to be erased from it.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from cortex.storage.ground.files import write_atomically, writing_to
from cortex.storage.lake.encryption import is_sealed
from cortex.storage.lake.lake import Lake
from cortex.transforms.errors import FileDamaged
from cortex.transforms.schemas import CALLS, Row, values

CALLS_FOLDER = "staging/calls"


class CallLog:
    """Noted calls, those that wait for a run and those in the lake."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._folder = lake.home / CALLS_FOLDER

    def write(self, row: Mapping[str, Any]) -> None:
        """Note a call, a row of CALLS, durable. Raises StoreNotWritable and KeyUnavailable."""
        content = json.dumps({**row, "called_at": row["called_at"].isoformat()}, ensure_ascii=False).encode()
        name = f"{row['call_id']}.json"
        if self._lake.key_id:
            content = self._lake.vault.encrypted_bytes(content, _place(name), self._lake.key_id)
        with writing_to(self._lake.home):
            self._folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self._folder / name, content)

    def read(self) -> pa.Table:
        """Return all CALLS, the oldest first, each once."""
        rows = {row["call_id"]: row for row in self._lake.read(CALLS).to_pylist()}
        rows.update((row["call_id"], row) for _, row in self._waiting() if row)
        return CALLS.of(sorted(rows.values(), key=lambda row: (row["called_at"], row["call_id"])))

    def take_in(self) -> int:
        """Commit the waiting calls to the lake and remove their files; return how many. Under the lease."""
        waiting = list(self._waiting())
        rows = [row for _, row in waiting if row]
        known = set(values(self._lake.read(CALLS, columns=["call_id"]), "call_id")) if rows else set()
        fresh = [row for row in rows if row["call_id"] not in known]
        if fresh:
            with self._lake.change() as change:
                for scope in sorted({row["project_id"] for row in fresh}):
                    mine = [row for row in fresh if row["project_id"] == scope]
                    change.append(CALLS, scope, CALLS.of(mine))
        for path, _ in waiting:
            path.unlink(missing_ok=True)
        return len(fresh)

    def _waiting(self) -> Iterator[tuple[Path, Row | None]]:
        """Yield the waiting files with their rows, None if one is damaged from outside."""
        for path in sorted(self._folder.glob("*.json")):
            try:
                content = path.read_bytes()
                if is_sealed(content):
                    content = self._lake.vault.decrypted_bytes(content, _place(path.name))
                row = json.loads(content)
                row["called_at"] = datetime.fromisoformat(row["called_at"])
                CALLS.of([row])
                if path.stem != row["call_id"] or set(row) != set(CALLS.arrow.names):
                    raise ValueError("named as another call")
            except FileNotFoundError:  # a run took it in meanwhile
                continue
            except (FileDamaged, ValueError, TypeError, KeyError, AttributeError, pa.ArrowException):
                yield path, None
            else:
                yield path, row


def _place(name: str) -> str:
    return f"{CALLS_FOLDER}/{name}"
