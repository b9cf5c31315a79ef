"""Which lines each project was shown in its briefs and when, as fingerprints: `runs/told.json`."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from cortex.storage.filesystem.files import write_stored

if TYPE_CHECKING:
    from cortex.transforms.extract.quotes import Span

# Project id → fingerprint → spans, each [from, until]; the last one may have no end yet.
ShownLinesByProject = dict[str, dict[str, list[list[str | None]]]]

# Below the home.
SHOWN_LINES_PATH = "runs/told.json"


class ShownLinesRegister:
    """The file `runs/told.json`: hashes of lines, no text; without it briefs are known by their shape."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._path = home / SHOWN_LINES_PATH
        self._known: tuple[tuple[int, int, int], ShownLinesByProject] | None = None

    def spans(self, project_id: str) -> dict[str, list["Span"]]:
        """Return fingerprint → when the line was shown to a project."""
        spans_by_line = self._read_once().get(project_id, {})
        return {mark: [_span(*span) for span in spans] for mark, spans in spans_by_line.items()}

    def show(self, project_id: str, fingerprints: Iterable[str], at: datetime) -> None:
        """
        Note that a project is shown these lines from `at` on, and no others any more. Only under the lease.

        Nothing is written where that is known. Raises StoreNotWritable.
        """
        self.show_all({project_id: fingerprints}, at)

    def show_all(self, shown: Mapping[str, Iterable[str]], at: datetime) -> None:
        """Note, as `show` does, what each project is shown: the file is read and written once for all."""
        if not shown:
            return
        register, is_changed = self._read(), False
        for project_id, fingerprints in shown.items():
            spans_by_line, wanted = register.setdefault(project_id, {}), set(fingerprints)
            is_open = {mark for mark, spans in spans_by_line.items() if spans[-1][1] is None}
            for mark in sorted(is_open - wanted):
                spans_by_line[mark][-1][1] = at.isoformat()
            for mark in sorted(wanted - is_open):
                spans_by_line.setdefault(mark, []).append([at.isoformat(), None])
            is_changed = is_changed or is_open != wanted
        if is_changed:
            self._write(register)

    def forget(self, project_id: str) -> None:
        """Drop what a project was shown. Only under the lease. Raises StoreNotWritable."""
        register = self._read()
        if register.pop(project_id, None) is not None:
            self._write(register)

    def add(self, other: "ShownLinesRegister") -> None:
        """
        Add what another store's register says was shown; what it knows the end of has ended.

        A restored store reads the sessions since its backup again: what the briefs in between said, that
        only the replaced store knows, must not be learned from them.
        """
        register = self._read()
        for project_id, spans_by_line in other._read().items():
            mine = register.setdefault(project_id, {})
            for mark, spans in spans_by_line.items():
                until = {first: end for first, end in [*mine.get(mark, []), *spans]}
                mine[mark] = [[first, until[first]] for first in sorted(until, key=str)]
        self._write(register)

    def _read_once(self) -> ShownLinesByProject:
        """Return the register, which callers must not change; it is read again when the file changes: a run
        asks by project."""
        try:
            status = self._path.stat()
        except OSError:
            return {}
        state = status.st_ino, status.st_mtime_ns, status.st_size
        if self._known is None or self._known[0] != state:
            self._known = state, self._read()
        return self._known[1]

    def _read(self) -> ShownLinesByProject:
        try:
            register: ShownLinesByProject = json.loads(self._path.read_bytes())
            for marks in register.values():
                for spans in marks.values():
                    _check(spans)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        # Damaged from outside: as without it, and written again with the next brief.
        except (AttributeError, TypeError, ValueError, RecursionError, IsADirectoryError):
            return {}
        return register

    def _write(self, register: ShownLinesByProject) -> None:
        write_stored(self._home, self._path, json.dumps(register, sort_keys=True).encode())


def _check(spans: list[list[str | None]]) -> None:
    """Raise ValueError or TypeError for anything other than spans."""
    if not spans:
        raise ValueError("no span")
    for span in spans:
        _span(*span)


def _span(first: str | None, until: str | None) -> "Span":
    return datetime.fromisoformat(first or ""), datetime.fromisoformat(until) if until else None
