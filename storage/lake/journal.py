"""
The journal, and the audit log: what cannot be derived again, as single files until a run takes them in.

A call is noted as one durable file in `staging/calls/`, without the lease, and a run takes the files into the
lake. What was said in a call is not in its row; of what a session was shown it holds ids, and an erasure
takes those of what is forgotten.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from cortex.storage.lake.encryption import is_sealed
from cortex.storage.lake.lake import Lake
from cortex.storage.lake.manifest import ManifestNotes
from cortex.storage.lake.noted_projects import Noted, publish_noted, read_noted, remove_noted
from cortex.transforms.errors import FileDamaged
from cortex.transforms.journal_entries import (
    Forget,
    ProjectName,
    entries_in,
    entry_in,
    in_order,
    project_entries,
)
from cortex.transforms.schemas import CALLS, FINDING_KINDS, JOURNAL, Row, values


class Journal:
    """Waiting entries in `staging/journal/`, a file for what was written at once, and committed ones in the
    lake."""

    def __init__(self, home: Path, lake: Lake, *, counts_waiting: bool = True) -> None:
        """Open a store's journal; without `counts_waiting` as if no entry waited for a run."""
        self._counts_waiting = counts_waiting
        self._home = home
        self._waiting = home / "staging" / "journal"
        self._lake = lake
        self._committed: dict[str | None, tuple[str, pa.Table]] = {}

    def write(self, *rows: dict[str, object]) -> None:
        """
        Add entries without the lease, all or none: one durable file, a line each, named as the first.

        Raises StoreNotWritable and KeyUnavailable.
        """
        lines = []
        for row in rows:
            at = row["recorded_at"]
            assert isinstance(at, datetime)
            lines.append(json.dumps({**row, "recorded_at": at.isoformat()}, ensure_ascii=False).encode())
        self._lake.write_waiting(self._waiting / f"{rows[0]['entry_id']}.json", b"\n".join(lines))

    def waiting(self) -> list[dict[str, object]]:
        """Return the entries that no run has taken in yet, by name. Raises KeyUnavailable for sealed ones."""
        return [row for _, rows in self._files() for row in rows]

    def _files(self) -> Iterator[tuple[Path, list[Row]]]:
        """Yield each waiting file, by name, with its entries; with none if it is damaged from outside."""
        for path in sorted(self._waiting.glob("*.json")):
            try:
                rows = [entry_in(line) for line in self._lake.read_waiting(path).rstrip().split(b"\n")]
                if path.stem != rows[0]["entry_id"]:
                    raise ValueError("named as another entry")
            except FileNotFoundError:  # a run took it in meanwhile
                continue
            except (FileDamaged, ValueError, TypeError, RecursionError, IsADirectoryError):
                yield path, []
            else:
                yield path, rows

    def read(self, project_id: str | None = None) -> pa.Table:
        """Return all entries (of one scope), waiting ones too, each once, in the order they were recorded."""
        waiting = self.waiting() if self._counts_waiting else []
        waiting = [row for row in waiting if project_id in (None, row["project_id"])]
        committed = self._read_committed(project_id)
        return _once(pa.concat_tables([committed, JOURNAL.of(waiting)])) if waiting else committed

    def _read_committed(self, project_id: str | None) -> pa.Table:
        # Kept while the files are the same: a run asks about 45 times, which took .3 of its 1.3 s.
        files = self._lake.fingerprint(JOURNAL, project_id)
        if self._committed.get(project_id, ("", None))[0] != files:
            self._committed[project_id] = files, _once(self._lake.read(JOURNAL, project_id))
        return self._committed[project_id][1]

    def about_projects(self) -> list[Noted]:
        """Return what the entries about projects say, in their order; without the others where it can."""
        if not (self._counts_waiting and any(map(_may_be_about_projects, self._waiting.glob("*.json")))):
            noted = read_noted(self._home, self._lake.fingerprint(JOURNAL))
            if noted is not None:
                return noted
        return _about_projects(self.read())

    def publish_projects(self) -> None:
        """Publish the entries about projects, so that the next command need not read the journal for them."""
        if self._lake.key_id:
            remove_noted(self._home)
        else:
            committed = _about_projects(self._read_committed(None))
            publish_noted(self._home, self._lake.fingerprint(JOURNAL), committed)

    def take_in(self) -> int:
        """
        Commit the waiting entries to the lake and remove their files; return how many. Under the lease.

        From then on only what is committed counts here: an entry that comes in while a run goes on must not
        be in one of the run's tables or fingerprints and missing from another. It waits for the next run.
        """
        self._counts_waiting = False
        waiting = self.waiting()
        if not waiting:
            return 0
        known = set(values(self._lake.read(JOURNAL, columns=["entry_id"]), "entry_id"))
        fresh = [row for row in waiting if row["entry_id"] not in known]
        if fresh:
            self.commit(JOURNAL.of(fresh))
        for row in waiting:
            (self._waiting / f"{row['entry_id']}.json").unlink(missing_ok=True)
        return len(fresh)

    def quarantine_damaged(self) -> list[Path]:
        """Move waiting files that are not entries to `staging/set_aside/`; return them. Under the lease."""
        # Listed once: an entry that somebody writes meanwhile was not read, and is not damaged for that.
        damaged = [path for path, rows in self._files() if not rows]
        aside = self._home / "staging" / "set_aside"
        for path in damaged:
            aside.mkdir(parents=True, exist_ok=True)
            path.replace(aside / path.name)
        return damaged

    def commit(self, rows: pa.Table, notes: ManifestNotes | None = None) -> None:
        """Append entries that a stage made, scope by scope, and replace the lake's notes, in one commit."""
        with self._lake.change() as change:
            change.notes = notes or change.notes
            for scope in sorted(set(values(rows, "project_id"))):
                mine = rows.filter(pa.array([name == scope for name in values(rows, "project_id")]))
                change.append(JOURNAL, scope, mine.cast(JOURNAL.arrow))

    def scopes(self) -> list[str]:
        """Return the scopes that have an entry about a memory, sorted."""
        rows = self.read()
        return sorted({p for p, kind in _pairs(rows, "project_id", "kind") if kind != "project"})

    def entry_ids(self, scope: str) -> list[str]:
        """Return the ids of a scope's entries that make or change memories, sorted."""
        pairs = _pairs(self.read(scope), "entry_id", "kind")
        return sorted(name for name, kind in pairs if kind not in ("project", *FINDING_KINDS))

    def finding_ids(self, scope: str) -> list[str]:
        """Return the ids of a scope's entries by which runs noted what is weak, sorted."""
        pairs = _pairs(self.read(scope), "entry_id", "kind")
        return sorted(name for name, kind in pairs if kind in FINDING_KINDS)

    def forgotten_turns(self) -> list[str]:
        """Return the turns that forgotten memories of any scope rested on, sorted."""
        return sorted({name for _, entry in entries_in(self.read(), Forget) for name in entry.turn_ids or ()})

    def forgotten_sessions(self) -> list[str]:
        """Return the sessions that were forgotten as a whole, sorted."""
        entries = entries_in(self.read(), Forget)
        return sorted({name for _, entry in entries for name in entry.session_ids or ()})


def _once(rows: pa.Table) -> pa.Table:
    """Return each entry once, the first of an id, in the order they were recorded."""
    # As `each_key_once`, but without Polars: it takes .3 s to import, and every command reads the journal.
    first: dict[str, int] = {}
    for at, name in enumerate(values(rows, "entry_id")):
        first.setdefault(name, at)
    kept = pa.array([first[name] for name in sorted(first)], pa.int64())
    return in_order(rows.take(kept).cast(JOURNAL.arrow))


def _may_be_about_projects(path: Path) -> bool:
    """Return whether a waiting file may hold such an entry: checking each entry takes .5 ms."""
    try:
        content = path.read_bytes()
    except OSError:  # a run took it in meanwhile; a run sets aside what is not a file
        return True
    return is_sealed(content) or f'"{ProjectName.kind}"'.encode() in content


def _about_projects(entries: pa.Table) -> list[Noted]:
    return [(row["project_id"], row["payload"]) for row, _ in project_entries(entries)]


def _pairs(rows: pa.Table, first: str, second: str) -> list[tuple[str, str]]:
    return list(zip(values(rows, first), values(rows, second), strict=True))


# -- The audit log: one row a call of a tool, in the lake's table `calls`.

CALLS_FOLDER = "staging/calls"


class CallLog:
    """Noted calls, those that wait for a run and those in the lake."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._folder = lake.home / CALLS_FOLDER

    def write(self, row: Mapping[str, Any]) -> None:
        """Note a call, a row of CALLS, durable. Raises StoreNotWritable and KeyUnavailable."""
        content = json.dumps({**row, "called_at": row["called_at"].isoformat()}, ensure_ascii=False).encode()
        self._lake.write_waiting(self._folder / f"{row['call_id']}.json", content)

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
                row = json.loads(self._lake.read_waiting(path))
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
