"""The store as it was on an earlier day: made anew from the lake beside it, and nothing kept (spec 8.5)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.embed import embed
from cortex.flows.extract import PLACE, events_of, in_first_place
from cortex.flows.rebuild import Afresh
from cortex.flows.report import RunReport
from cortex.flows.run import Run
from cortex.flows.stages import decay, link
from cortex.storage.store import Store, start_of_day
from cortex.transforms.audit import Breach
from cortex.transforms.errors import ModelUnavailable
from cortex.transforms.identity import content_id
from cortex.transforms.memory.as_of import journal_until, said_until
from cortex.transforms.memory.lifecycle import sessions_of
from cortex.transforms.memory.reality import Doubt
from cortex.transforms.schemas import EVENTS, GLOBAL_SCOPE, TURNS, VECTORS, values
from cortex.transforms.search.index_text import embedded_text

# Stands for no end: on the present day everything counts, also what a clock ahead of ours has dated.
ENDLESS = datetime.max.replace(tzinfo=UTC)


@dataclass
class AsOf(Afresh):
    """A run that sees what was said until `until` and writes to tables of its own."""

    until: datetime = ENDLESS
    wanted: Sequence[str] = ()
    _events: dict[str, pa.Table] = field(default_factory=dict)
    _more_vectors: pa.Table | None = None

    @property
    def is_past(self) -> bool:
        """Whether another day than the present one is looked at."""
        return self.until != ENDLESS

    def scopes(self) -> list[str]:
        """Return the scopes asked for, the global one last."""
        return [scope for scope in super().scopes() if scope in self.wanted or scope == GLOBAL_SCOPE]

    def turns(self, scope: str) -> pa.Table:
        """Return the TURNS of a project said until then."""
        return said_until(super().turns(scope), self.until)

    def events(self, scope: str) -> pa.Table:
        """Return the EVENTS that would fold into a scope had nothing been said since."""
        if scope not in self._events:
            rows = super().events(scope)
            self._events[scope] = self._as_seen_then(rows, scope) if self.is_past else rows
        return self._events[scope]

    def journal(self, scope: str) -> pa.Table:
        """Return the entries of a scope that count then."""
        return journal_until(super().journal(scope), self.until)

    def dated_turns(self, part: str | None = None) -> pa.Table:
        """Return who said something when, until then."""
        return said_until(super().dated_turns(part), self.until)

    def vectors(self, model: str = "") -> pa.Table:
        """Return the VECTORS of the lake and of what was a memory for the middle of a session only."""
        known = super().vectors(model)
        if self._more_vectors is None:
            self._more_vectors = self._embedded(known) if self.is_past and self.embedder else VECTORS.empty()
        return pa.concat_tables([known, self._more_vectors]).combine_chunks()

    def _embedded(self, known: pa.Table) -> pa.Table:
        """Return VECTORS of the memories that `known` has none for; none if the model gives no answer."""
        rows = [row for scope in self.scopes() for row in self.memories(scope).to_pylist()]
        texts = {row["content_hash"]: embedded_text(row) for row in rows}
        missing = sorted(name for name in set(texts) - set(values(known, "content_hash")) if texts[name])
        if self.embedder is None or not missing:
            return VECTORS.empty()
        try:
            made = self.embedder.embed([texts[name] for name in missing])
        except ModelUnavailable:
            return VECTORS.empty()
        told = zip(missing, made, strict=True)
        return VECTORS.of([{"model": self.model, "content_hash": n, "vector": v} for n, v in told])

    def inputs(self, scope: str, also: Sequence[str] = ()) -> str:
        """Return the fingerprint of what a scope's tables are made from."""
        return content_id(super().inputs(scope, also), self.until.isoformat())

    def doubts(self, project_id: str, memories: pa.Table) -> list[Doubt]:
        """Return what the repository has against MEMORIES; it speaks of the present alone."""
        return [] if self.is_past else super().doubts(project_id, memories)

    def repository_line(self, project_id: str) -> str:
        """Return what git has seen since the last session; it speaks of the present alone."""
        return "" if self.is_past else super().repository_line(project_id)

    def passes(self, scope: str, rows: int, audit: Callable[[], list[Breach]]) -> bool:
        """Return true: nothing made here is published, and the lake's rows were audited when they came."""
        return True

    def _as_seen_then(self, rows: pa.Table, scope: str) -> pa.Table:
        """Return EVENTS of then; a session that went on is extracted from what it had said."""
        category = "global" if scope == GLOBAL_SCOPE else "project"
        pieces = [EVENTS.empty()]
        for part in self.parts(scope):
            mine = rows.filter(pc.field("project_id") == part)
            columns = ["turn_id", "session_id", "said_at", *PLACE]
            known = said_until(self.store.lake.read(TURNS, part, columns=columns), self.until)
            went_on = self._went_on(part)
            pieces.append(
                said_until(
                    mine.filter(~pc.field("session_id").isin(pa.array(sorted(went_on), pa.string()))),
                    self.until,
                )
            )
            if went_on:
                turns = said_until(self.store.lake.read(TURNS, part, sessions=went_on), self.until)
                made = events_of(self, part, in_first_place(turns, known))
                pieces.append(made.filter(pc.field("category") == category))
        return pa.concat_tables(pieces)

    def _went_on(self, part: str) -> set[str]:
        """Return the sessions of a partition that spoke before and after the instant."""
        spans = sessions_of(super().dated_turns(part), {})
        until = pa.scalar(self.until)
        return set(
            values(
                spans.filter((pc.field("started_at") < until) & (pc.field("ended_at") >= until)), "session_id"
            )
        )


def as_of(run: Run, day: datetime, scopes: Sequence[str], *, searchable: bool = False) -> AsOf:
    """
    Return a run over `scopes` and the global one as they were at the end of a UTC `day`.

    Its tables are in memory; `searchable` ones have passages too. Nothing is written.
    """
    store = Store(run.store.home)
    store.tables = store.tables_in_memory()
    is_today = day == start_of_day(run.now)
    until = ENDLESS if is_today else day + timedelta(days=1)
    made = AsOf(
        store,
        run.settings,
        run.policy,
        run.now if is_today else until - timedelta(microseconds=1),
        RunReport("as of", "plain", run.now),
        run.embedder,
        until=until,
        wanted=tuple(scopes),
    )
    made.lacks_vectors = True
    for stage in ((embed,) if searchable else ()) + (link, decay):
        stage(made)
    return made
