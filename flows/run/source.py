"""Where the readings of a run come from: the lake and the journal as they are, scope by scope."""

from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from cortex.storage.lake.lake import each_key_once
from cortex.storage.lake.manifest import LakeFile
from cortex.storage.store import Store
from cortex.transforms.memory.merged_projects import in_project
from cortex.transforms.schemas import EVENTS, GLOBAL_SCOPE, TURNS, VECTORS

DATED = ["project_id", "session_id", "said_at"]


class ReadingSource(Protocol):
    """What the lake says, of the present or of an earlier day; `stamp` tells such days apart."""

    @property
    def stamp(self) -> str:
        """What fingerprints of this source's readings contain; empty for the present."""

    def scopes(self) -> list[str]:
        """Return every scope with something in it, the global one last."""

    def turns(self, scope: str, sessions: set[str] | None = None) -> pa.Table:
        """Return the TURNS of a project or some sessions, each once, also of what was merged into it."""

    def events(self, scope: str) -> pa.Table:
        """Return the EVENTS that fold into a scope: the project's own, or the global ones of all projects."""

    def journal(self, scope: str) -> pa.Table:
        """Return the JOURNAL entries of a scope and of what was merged into it, as they were noted."""

    def dated_turns(self, part: str) -> pa.Table:
        """Return who spoke when in a partition: (project_id, session_id, said_at)."""

    def vectors(self, model: str) -> pa.Table:
        """Return the VECTORS of a model."""


class LakeSource:
    """The lake and the journal of a store as they are now."""

    stamp = ""

    def __init__(self, store: Store) -> None:
        self.store = store
        # The vectors that were read last, and the files that they stand in.
        self._vectors: tuple[list[LakeFile], pa.Table] = ([], VECTORS.empty())

    def scopes(self) -> list[str]:
        """Return every scope with something in it, the global one last."""
        names = {*self.store.lake.manifest.partitions("turns"), *self.store.journal.scopes()}
        projects = {self.store.projects.canonical(name) for name in names - {GLOBAL_SCOPE}}
        return [*sorted(projects), GLOBAL_SCOPE]

    def turns(self, scope: str, sessions: set[str] | None = None) -> pa.Table:
        """Return the TURNS of a project or some sessions, each once, also of what was merged into it."""
        rows = [self.store.lake.read(TURNS, part, sessions=sessions) for part in parts_of(self.store, scope)]
        return in_project(each_key_once(TURNS, pa.concat_tables(rows)), scope)

    def events(self, scope: str) -> pa.Table:
        """Return the EVENTS that fold into a scope: the project's own, or the global ones of all projects."""
        # Part by part: of all projects' events only the global ones are ever in memory together.
        parts = (self.store.lake.read(EVENTS, part) for part in parts_of(self.store, scope))
        return pa.concat_tables([EVENTS.empty(), *(of_category(rows, scope) for rows in parts)])

    def journal(self, scope: str) -> pa.Table:
        """Return the JOURNAL entries of a scope and of what was merged into it, as they were noted."""
        parts = journal_parts_of(self.store, scope)
        return pa.concat_tables([self.store.journal.read(part) for part in parts])

    def dated_turns(self, part: str) -> pa.Table:
        """Return who spoke when in a partition: (project_id, session_id, said_at)."""
        return self.store.lake.read(TURNS, part, columns=DATED)

    def vectors(self, model: str) -> pa.Table:
        """Return the VECTORS of a model."""
        files, (known, rows) = self.store.lake.manifest.live(VECTORS.name, model), self._vectors
        is_more = bool(known) and files[: len(known)] == known
        # A run that computes vectors asks again for all of them: only the new files are read.
        more = self.store.lake.read(VECTORS, model, since=known[-1].generation if is_more else -1)
        rows = pa.concat_tables([rows, more]) if is_more else more
        self._vectors = files, rows.combine_chunks()
        return self._vectors[1]


def parts_of(store: Store, scope: str) -> list[str]:
    """Return the partitions of the lake that hold what was said in a scope: of the global one all."""
    if scope == GLOBAL_SCOPE:
        return store.lake.manifest.partitions("turns")
    return store.projects.parts_of(scope)


def journal_parts_of(store: Store, scope: str) -> list[str]:
    """Return the partitions of the journal with entries about a scope's memories."""
    return [scope] if scope == GLOBAL_SCOPE else parts_of(store, scope)


def of_category(events: pa.Table, scope: str) -> pa.Table:
    """Return those of EVENTS that fold into a scope of this kind."""
    category = "global" if scope == GLOBAL_SCOPE else "project"
    return events.filter(pc.equal(events["category"], pa.scalar(category)))
