"""The store as it was on an earlier day: made from the lake in memory, and not kept (spec 8.5)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.embedders import Embedding
from cortex.flows.extract_transcripts import events_of
from cortex.flows.reading.transcript_reader import PLACE, in_first_place
from cortex.flows.run.run import FreshLedger, Run
from cortex.flows.run.source import LakeSource, of_category, parts_of
from cortex.flows.run_report import RunReport
from cortex.flows.stages.embed import embed
from cortex.flows.stages.memories import decay, link
from cortex.storage.store import Store, start_of_day
from cortex.transforms.errors import ModelUnavailable
from cortex.transforms.journal_entries import Forget, ImportFact, ImportMemory, TeamFact, from_row
from cortex.transforms.memory.lifecycle import sessions_of
from cortex.transforms.schemas import EVENTS, GLOBAL_SCOPE, JOURNAL, TURNS, VECTORS, Row, values
from cortex.transforms.search import embedded_text

# -- What was known at an earlier instant: rows of the lake that count then (spec 8.5, decision 0029).


def rows_until(rows: pa.Table, until: datetime) -> pa.Table:
    """
    Return the TURNS or EVENTS said before `until`; what nobody dated counts as old.

    When a transcript was read does not matter: a backfill tells today what was true last month.
    """
    return rows.filter(pc.field("said_at").is_null() | (pc.field("said_at") < pa.scalar(until)))


def journal_until(journal: pa.Table, until: datetime) -> pa.Table:
    """
    Return the JOURNAL entries that count at `until`: those recorded before it, and every request to forget.

    Forgetting reaches back, else looking at last week would show what was erased since. What was imported
    later counts from the day that its own tool noted it.
    """
    kept = (_as_known(row, until) for row in journal.to_pylist())
    return JOURNAL.of([row for row in kept if row is not None])


def _as_known(row: Row, until: datetime) -> Row | None:
    if row["recorded_at"] < until:
        return row
    match from_row(row):
        case Forget(pruned=None):
            return row
        case ImportFact(created_at=str(text)) | ImportMemory(created_at=text) | TeamFact(said_at=str(text)):
            created_at = datetime.fromisoformat(text)
            return {**row, "recorded_at": created_at} if created_at < until else None
    return None


# Stands for no end: on the present day everything counts, also what a clock ahead of ours has dated.
ENDLESS = datetime.max.replace(tzinfo=UTC)


@dataclass
class PastSource:
    """
    What another source would have said at `until` of the scopes `wanted` and the global one.

    `extracted` makes EVENTS of a partition's TURNS: a session that went on is read as far as it had come.
    """

    lake: LakeSource
    until: datetime
    wanted: Sequence[str]
    extracted: Callable[[str, pa.Table], pa.Table]
    more_vectors: pa.Table = field(default_factory=VECTORS.empty)
    _events: dict[str, pa.Table] = field(default_factory=dict)

    @property
    def stamp(self) -> str:
        """The instant; empty on the present day."""
        return "" if self.until == ENDLESS else self.until.isoformat()

    def scopes(self) -> list[str]:
        """Return the scopes asked for, the global one last."""
        return [scope for scope in self.lake.scopes() if scope in self.wanted or scope == GLOBAL_SCOPE]

    def turns(self, scope: str, sessions: set[str] | None = None) -> pa.Table:
        """Return the TURNS of a project, or of some of its sessions, said until then."""
        return rows_until(self.lake.turns(scope, sessions), self.until)

    def events(self, scope: str) -> pa.Table:
        """Return the EVENTS that would fold into a scope had nothing been said since."""
        if scope not in self._events:
            rows = self.lake.events(scope)
            self._events[scope] = self._as_seen_then(rows, scope) if self.stamp else rows
        return self._events[scope]

    def journal(self, scope: str) -> pa.Table:
        """Return the entries of a scope that count then."""
        return journal_until(self.lake.journal(scope), self.until)

    def dated_turns(self, part: str) -> pa.Table:
        """Return who spoke when, until then."""
        return rows_until(self.lake.dated_turns(part), self.until)

    def vectors(self, model: str) -> pa.Table:
        """Return the VECTORS of the lake and of what was a memory for the middle of a session only."""
        return pa.concat_tables([self.lake.vectors(model), self.more_vectors]).combine_chunks()

    def _as_seen_then(self, rows: pa.Table, scope: str) -> pa.Table:
        """Return EVENTS of then; a session that went on is extracted from what it had said."""
        lake, pieces = self.lake.store.lake, [EVENTS.empty()]
        for part in parts_of(self.lake.store, scope):
            went_on = self._went_on(part)
            is_over = ~pc.field("session_id").isin(pa.array(sorted(went_on), pa.string()))
            mine = rows.filter((pc.field("project_id") == part) & is_over)
            pieces.append(rows_until(mine, self.until))
            if went_on:
                columns = ["turn_id", "session_id", "said_at", *PLACE]
                known = rows_until(lake.read(TURNS, part, columns=columns), self.until)
                turns = rows_until(lake.read(TURNS, part, sessions=went_on), self.until)
                pieces.append(of_category(self.extracted(part, in_first_place(turns, known)), scope))
        return pa.concat_tables(pieces)

    def _went_on(self, part: str) -> set[str]:
        """Return the sessions of a partition that spoke before and after the instant."""
        spans, until = sessions_of(self.lake.dated_turns(part), {}), pa.scalar(self.until)
        is_open = (pc.field("started_at") < until) & (pc.field("ended_at") >= until)
        return set(values(spans.filter(is_open), "session_id"))


def as_of(run: Run, day: datetime, scopes: Sequence[str], *, searchable: bool = False) -> Run:
    """
    Return a run over `scopes` and the global one as they were at the end of a UTC `day`.

    Its tables are in memory; `searchable` ones have passages too. Nothing is written.
    """
    until = ENDLESS if day == start_of_day(run.now) else day + timedelta(days=1)
    return known_before(run, until, scopes, searchable=searchable)


def known_before(run: Run, until: datetime, scopes: Sequence[str], *, searchable: bool = False) -> Run:
    """Return a run as `as_of` does, of what had been said and noted before an instant."""
    store = Store(run.store.home)
    store.tables = store.tables_in_memory()
    is_today = until == ENDLESS

    def extracted(part: str, turns: pa.Table) -> pa.Table:
        return events_of(past, part, turns)

    source = PastSource(LakeSource(store), until, tuple(scopes), extracted)
    past = Run(
        store,
        run.settings,
        run.policy,
        run.now if is_today else until - timedelta(microseconds=1),
        RunReport("as of", "plain", run.now),
        Embedding(run.embedding.embedder, is_asked=False),
        source=source,
        ledger_type=FreshLedger,
    )
    past.outcome.audits = False
    if not is_today:
        source.more_vectors = _missing_vectors(past)
    for stage in ((embed,) if searchable else ()) + (link, decay):
        stage(past)
    return past


def _missing_vectors(run: Run) -> pa.Table:
    """Return VECTORS of the memories that the lake has none for; none if the model gives no answer."""
    texts: dict[str, str] = {}
    for scope in run.readings.scopes():
        with run.outcome.isolated(scope, "embed"):
            rows = run.readings.memories(scope).to_pylist()
            texts |= {row["content_hash"]: embedded_text(row) for row in rows}
    if run.embedding.embedder is None:
        return VECTORS.empty()
    known = set(values(run.store.lake.read(VECTORS, run.embedding.model), "content_hash"))
    missing = sorted(name for name in set(texts) - known if texts[name])
    if not missing:
        return VECTORS.empty()
    try:
        vectors = run.embedding.embedder.embed([texts[name] for name in missing])
    except ModelUnavailable:
        return VECTORS.empty()
    rows = [
        {"model": run.embedding.model, "content_hash": name, "vector": vector}
        for name, vector in zip(missing, vectors, strict=True)
    ]
    return VECTORS.of(rows)


def end_of(past: Run) -> datetime:
    """Return the instant before which everything counts in a run that `as_of` gave."""
    return past.now + timedelta(microseconds=1) if past.readings.is_past else ENDLESS
