"""The guard: a run that would hide or remove much of what was shown publishes nothing and says so (law 8)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.publishing.briefs import show_briefs
from cortex.flows.publishing.database import publish_database
from cortex.flows.publishing.passages import passages_in
from cortex.flows.run.model_replies import lines_replaced_by_model
from cortex.flows.run.run import Run, stage
from cortex.flows.stages.embed import searchable
from cortex.hooks.tokens import tokens_in
from cortex.storage.lake.manifest import REPLACED_BY, Manifest, RefusedLoss
from cortex.transforms.brief.explanation import STATEMENTS_HEADING
from cortex.transforms.errors import LossRefused
from cortex.transforms.journal_entries import Forget, entries_in, from_row, is_prune
from cortex.transforms.memory.forgetting import Phrases, Tombstones, tombstones_of
from cortex.transforms.memory.loss import (
    SHOWN,
    SHOWN_COLUMNS,
    Loss,
    lost_ids,
    replaced,
    rests_on_prose,
    shown_lines_of,
    too_many_lines,
    too_many_memories,
)
from cortex.transforms.schemas import GLOBAL_SCOPE, MEMORIES, TURNS, Row, values

# -- Taking what was forgotten out of what people see while a loss waits and nothing else is published.


def withdraw_forgotten(run: Run) -> None:
    """
    Remove erased memories and passages from the live tables and what is published; nothing is added.

    Does nothing if no erasure is due.
    """
    due = run.store.lake.notes.to_wipe
    if due:
        _withdraw(run, due)
        _wipe(run, due)


def _withdraw(run: Run, due: Iterable[str]) -> None:
    """
    Take what was erased out of the tables of the scopes `due`.

    Their briefs go whole, those of all projects where a global memory goes: the next run that publishes makes
    them again.
    """
    with run.report.stage("withdraw") as row:
        counts = {scope: _withdraw_rows(run, scope) for scope in due}
        row.rows_out = sum(counts.values())
        is_everywhere = counts.get(GLOBAL_SCOPE, 0) > 0
        projects = run.store.published.projects() if is_everywhere else due
        _forget_outputs(run, {*due, *projects})
        for project_id in projects:
            run.store.shown_lines.show(project_id, (), run.now)
            run.store.published.drop(project_id)
        show_briefs(run)
        publish_database(run, run.readings.scopes(), "")


def _withdraw_rows(run: Run, scope: str) -> int:
    """Remove a scope's erased rows from its tables; return how many memories went."""
    tables = run.store.tables
    memories = tables.open(scope, "memories").read()
    deleted = pa.array(sorted(_deleted_in(run, scope, memories)), pa.string())
    kept = memories.filter(pc.invert(pc.is_in(memories["memory_id"], deleted)))
    tables.replace(scope, "memories", searchable(kept, run.readings.vectors()))
    edges = tables.open(scope, "edges").read()
    ends = pc.or_(pc.is_in(edges["source_id"], deleted), pc.is_in(edges["target_id"], deleted))
    tables.replace(scope, "edges", edges.filter(pc.invert(ends)))
    passages = tables.open(scope, "passages").read()
    indexed = passages_in(run, scope, run.store.journal.forgotten_turns())
    same = set(zip(values(indexed, "passage_id"), values(indexed, "content_hash"), strict=True))
    pairs = zip(values(passages, "passage_id"), values(passages, "content_hash"), strict=True)
    still = passages.filter(pa.array([pair in same for pair in pairs], pa.bool_()))
    tables.replace(scope, "passages", searchable(still, run.readings.vectors()))
    return memories.num_rows - kept.num_rows


def _deleted_in(run: Run, scope: str, memories: pa.Table) -> set[str]:
    """
    Return the memories that are to be out of sight: forgotten by name, resting on erased turns, or with the
    words of one that is.
    """
    named, tombstones = _forgotten_by_name(run, scope), run.readings.tombstones(run.retention)
    resets = [at for name, at in tombstones.projects.items() if name in {scope, *run.readings.parts(scope)}]
    left = {n for p in run.readings.parts(scope) for n in values(run.store.lake.read(TURNS, p), "turn_id")}
    rows, since = memories.to_pylist(), run.retention.of(scope).since

    def is_gone(row: Row) -> bool:
        if row["memory_id"] in named:
            return True
        if not row["evidence"]:
            return any(row["created_at"] <= at for at in resets)
        return any(
            place["turn_id"] not in left
            and (
                place["session_id"] in tombstones.session_ids
                or place["turn_id"] in tombstones.turn_ids
                or any(place["said_at"] is None or place["said_at"] <= at for at in resets)
                or (since is not None and (place["said_at"] or run.now) < since)
            )
            for place in row["evidence"]
        )

    gone = {row["memory_id"] for row in rows if is_gone(row)}
    texts_query = Phrases.of(row["text"] for row in rows if row["memory_id"] in named)
    holds = texts_query.patterns_in([row["text"] for row in rows])
    return gone | {row["memory_id"] for row, held in zip(rows, holds, strict=True) if held}


def _forgotten_by_name(run: Run, scope: str) -> set[str]:
    journal = pa.concat_tables([run.store.journal.read(), run.readings.merged_journal(scope)])
    return {
        row["memory_id"]
        for row, entry in entries_in(journal, Forget)
        if row["memory_id"] and not is_prune(entry)
    }


def _forget_outputs(run: Run, scopes: set[str]) -> None:
    with run.store.lake.change() as change:
        change.notes = change.notes.without_outputs(REPLACED_BY, scopes)


@stage(reads="turns events journal calls vectors memories edges passages", writes="memories edges passages")
def wipe(run: Run) -> None:
    """
    Remove the bytes that an erasure left in older versions of the tables and in unnamed files.

    Where a stage failed the last good version still stands: what was erased is taken out of it first.
    """
    due = run.store.lake.notes.to_wipe
    failed = [scope for scope in due if scope in run.outcome.failed]
    if failed:
        _withdraw(run, failed)
    if due:
        _wipe(run, due)


def _wipe(run: Run, due: Iterable[str]) -> None:
    errors: dict[str, Exception] = {}
    with run.report.stage("wipe") as row:
        for scope in due:
            try:
                run.store.tables.purge(scope)
                run.store.note_emptied(scope)
            except Exception as error:  # noqa: BLE001 (LanceDB's share no base class): the others are wiped
                errors[scope] = error
        row.rows_out = run.store.lake.sweep()
        run.store.lake.note(replace(run.store.lake.notes, to_wipe=tuple(errors)))
        for first in errors.values():
            raise first


# Entries by which a person takes a memory away, or what took its place; with `withdraw` a team did.
TAKING_KINDS = ("forget", "supersede", "unmerge", "withdraw")
SCOPES_NAMED = 5


@stage(reads="turns events journal vectors memories edges passages", writes="memories edges passages")
def guard(run: Run) -> None:
    """
    Compare what the lake gives now with what is shown, before any table is replaced.

    Raises LossRefused if more than a small share of a scope, or of the store, would be gone that nobody
    took away: the tables and briefs stay as they are. With `accepts_loss` it passes.
    """
    with run.report.stage("guard") as row:
        asking = Asking(run)
        losses = _losses(run, asking)
        row.rows_in = sum(loss.shown for loss in losses)
        row.rows_out = sum(loss.lost for loss in losses)
        try:
            check_loss(run, losses)
        except LossRefused:
            # What was asked to be forgotten is out of sight all the same: that is not a loss to decide on.
            withdraw_forgotten(run)
            raise
        if asking.untold:
            row.note = f"{sum(asking.untold.values())} rested on the assistant's prose alone: events again"
            run.store.lake.note(replace(run.store.lake.notes, untold=asking.untold))


def _losses(run: Run, asking: "Asking") -> list[Loss]:
    """Return what each scope would lose; none, without a look at the tables, if nothing is to be made."""
    known, losses = run.readings.scopes(), list[Loss]()
    due = {
        scope
        for scope in _scopes(run)
        if scope not in known
        or not run.ledger.has_made("decay", scope, run.fingerprints.aged(scope, run.day))
    }
    for scope in _scopes(run) if due else ():
        with run.outcome.isolated(scope, "guard"):
            memories = (
                None
                if scope not in due or run.readings.is_unchanged(scope)
                else run.readings.memories(scope)
                if scope in known
                else MEMORIES.empty()
            )
            losses.append(loss_of(run, scope, memories, asking))
    return losses


def check_loss(run: Run, losses: Iterable[Loss]) -> None:
    """Raise LossRefused where these losses of memories are too much and not accepted; note or forget it."""
    _judge(run, too_many_memories(losses, run.policy), "memories")


def check_promotion(run: Run, losses: Iterable[Loss]) -> None:
    """Raise LossRefused where promoting would hide too much and it is not accepted; no later run asks."""
    refused = too_many_memories(losses, run.policy)
    if not refused or run.accepts_loss:
        return
    lost, known = sum(loss.lost for loss in refused), sum(loss.shown for loss in refused)
    raise LossRefused(
        f"today's extractor and policy would hide {lost} of {known} memories that are shown "
        f"({_named(run, refused)}). Nothing was changed.",
        "Promote all the same: cortex rederive --promote --accept-loss. "
        "Keep what is there: cortex rederive --drop",
    )


def loss_of(run: Run, scope: str, memories: pa.Table | None, asking: "Asking") -> Loss:
    """Return what a scope would lose if MEMORIES `made` took the place of its table; None: all stay."""
    table = run.store.tables.open(scope, "memories")
    count = table.count(SHOWN)
    names = lost_ids(table.read(SHOWN_COLUMNS), memories) if memories is not None and count else []
    if memories is None or not names:
        return Loss(scope, 0, count)
    whole = table.read()
    rows = whole.filter(pc.is_in(whole["memory_id"], pa.array(names, pa.string()))).to_pylist()
    asked_for = _asked_for(asking, scope, rows)
    unasked = [row for row in rows if row["memory_id"] not in asked_for and not rests_on_prose(row)]
    if untold := sum(rests_on_prose(row) for row in rows):
        asking.untold[scope] = untold
    return Loss(scope, len(unasked) - len(replaced(unasked, whole, memories)), count)


def guard_briefs(run: Run, briefs: Mapping[str, str], wiped: Iterable[str]) -> set[str]:
    """
    Return which of the briefs about to be published, by project, would lose too much: these are held back.

    The run goes on with the others and ends with LossRefused, unless the loss is accepted.

    What a new line displaces is no loss, nor is one that goes with an erasure (`wiped` names these scopes)
    or with a smaller budget, nor are as many lines as facts of the rules were replaced by a language
    model's, or were prose of the assistant alone. Statements of the user only fill what room is left: where
    they are rewound, or a model reads the project, nothing is lost. A brief that would tell nothing any more
    is held back all the same.
    """
    losses, replaced_by_model, untold = (
        [],
        run.store.lake.notes.replaced_by_model,
        run.store.lake.notes.untold,
    )
    for project_id, brief in briefs.items():
        published = run.store.published.brief(project_id)
        after = shown_lines_of(brief)
        before = shown_lines_of(published.partition(f"## {STATEMENTS_HEADING}\n")[0] if after else published)
        is_asked_for = project_id in wiped or tokens_in(published) > run.brief_tokens(project_id)
        expected = lines_replaced_by_model(replaced_by_model, project_id) if after else 0
        expected += lines_replaced_by_model(untold, project_id)
        lost = 0 if is_asked_for else max(0, before - after - expected)
        losses.append(Loss(project_id, lost, before))
    held = too_many_lines(losses, run.policy)
    try:
        _judge(run, held, "lines of briefs")
    except LossRefused as error:
        run.outcome.refused = error
        return {loss.scope for loss in held}
    return set()


def pending_loss(manifest: Manifest) -> dict[str, Any] | None:
    """Return the loss that waits for a decision (what, lost, shown, scopes, why), None without one."""
    loss = manifest.notes.refused_loss
    return loss.as_dict() if loss else None


def clear_guard_notes(run: Run) -> None:
    """Forget what was noted for the guard, once the tables of every scope are what the lake says."""
    if not run.outcome.failed:
        run.store.lake.note(replace(run.store.lake.notes, grown={}))


def _judge(run: Run, losses: list[Loss], what: str) -> None:
    notes = run.store.lake.notes
    if not losses or run.accepts_loss:
        if notes.refused_loss and (run.accepts_loss or notes.refused_loss.what == what):
            run.store.lake.note(replace(notes, refused_loss=None))
        return
    lost, known = sum(loss.lost for loss in losses), sum(loss.shown for loss in losses)
    why = _why(run)
    refused = RefusedLoss(what, lost, known, why, tuple(losses))
    run.store.lake.note(replace(notes, refused_loss=refused))
    raise LossRefused(
        f"this run would hide {lost} of {known} {what} that are shown ({_named(run, losses)}) and nobody "
        f"took away; {why}. {_outcome(run, what)}",
        "See what would go: cortex rederive. Undo the change, or let it pass: cortex run --accept-loss",
    )


def _named(run: Run, losses: list[Loss]) -> str:
    """Return the scopes that lose most, each with what it would lose."""
    worst = sorted(losses, key=lambda loss: -loss.lost)[:SCOPES_NAMED]
    named = [f"{_name_of(run, loss.scope)} {loss.lost} of {loss.shown}" for loss in worst]
    more = f", and {len(losses) - SCOPES_NAMED} more" if len(losses) > SCOPES_NAMED else ""
    return f"{', '.join(named)}{more}"


def _outcome(run: Run, what: str) -> str:
    """Return what the refused run has published all the same."""
    if what != "memories":
        return "The tables are new; the briefs named keep their last version, the others are published."
    if run.store.lake.notes.to_wipe:
        return "What was forgotten is gone, with the briefs it may stand in; nothing else was published."
    return "Nothing was published: what was shown still is."


def _name_of(run: Run, scope: str) -> str:
    return scope if scope == GLOBAL_SCOPE else run.store.projects.label_of(scope)


def _why(run: Run) -> str:
    """Return what has changed since the tables were made, as far as it is known."""
    noted = run.store.lake.notes.makers
    pairs = [
        (noted[scope], run.fingerprints.makers(scope)) for scope in run.readings.scopes() if scope in noted
    ]
    reasons = ["a policy table has changed"] if any(then.policy != now.policy for then, now in pairs) else []
    if any(then.extractors != now.extractors for then, now in pairs):
        reasons.append("another extractor has read the sessions")
    return " and ".join(reasons) or "policy and extractor are the same as before"


def _scopes(run: Run) -> list[str]:
    merged = run.store.projects.merged()
    known = run.readings.scopes()
    return [*known, *(name for name in run.store.tables.scopes() if name not in {*known, *merged})]


def _asked_for(asking: "Asking", scope: str, rows: list[Row]) -> set[str]:
    """Return which of a scope's memories a person took away, or a session that went on, or that moved."""
    taken, asked = asking.taken(scope), asking.of(scope, rows)
    return {
        row["memory_id"]
        for row in rows
        if row["memory_id"] in taken
        or any(asked.covers(place) for place in row["evidence"])
        or (not row["evidence"] and asked.reset_at is not None)
    }


class Asking:
    """What persons asked for anywhere in the store; the journal is read once for all scopes of a guard."""

    def __init__(self, run: Run) -> None:
        self._run = run
        # By scope, how many shown memories go because nobody but the assistant said them (spec 5.4a).
        self.untold: dict[str, int] = {}

    @cached_property
    def _journal(self) -> pa.Table:
        return self._run.store.journal.read()

    @cached_property
    def _tombstones(self) -> Tombstones:
        return tombstones_of(self._journal, self._run.retention)

    @cached_property
    def _turn_ids(self) -> dict[str, set[str]]:
        return {}

    def _turns_of(self, part: str) -> set[str]:
        if part not in self._turn_ids:
            turns = self._run.store.lake.read(TURNS, part, columns=["turn_id"])
            self._turn_ids[part] = set(values(turns, "turn_id"))
        return self._turn_ids[part]

    def taken(self, scope: str) -> set[str]:
        """Return the memories that a person's entries took away, by every name that they go by."""
        run = self._run
        is_joined = scope != GLOBAL_SCOPE and len(run.readings.parts(scope)) > 1
        tables = [self._journal, *([run.readings.merged_journal(scope)] if is_joined else [])]
        rows = pa.concat_tables(tables)
        entries = rows.filter(pc.is_in(rows["kind"], pa.array(TAKING_KINDS)))
        return {
            row["memory_id"]
            for row in entries.to_pylist()
            if row["memory_id"] and not is_prune(from_row(row))
        }

    def of(self, scope: str, rows: list[Row]) -> "_Asked":
        """Return what a scope's memories `rows` no longer rest on by a person's doing."""
        parts, noted = self._run.readings.parts(scope), self._run.store.lake.notes.grown
        resets = [at for name, at in self._tombstones.projects.items() if name in {scope, *parts}]
        grown = {name for part in parts for name in noted.get(part, ())}
        # The other projects are looked through only for turns that are not here any more.
        missing = {place["turn_id"] for row in rows for place in row["evidence"]}
        for part in parts:
            missing -= self._turns_of(part)
        others = [p for p in self._run.store.lake.manifest.partitions("turns") if p not in parts]
        moved = {name for part in (others if missing else ()) for name in missing & self._turns_of(part)}
        before = self._tombstones.retention.of(scope).since
        return _Asked(self._tombstones, max(resets, default=None), frozenset(grown), frozenset(moved), before)


@dataclass(frozen=True)
class _Asked:
    """What a scope no longer rests on by a person's doing: forgotten, past its days, rewound, or moved."""

    tombstones: Tombstones
    reset_at: datetime | None
    grown: frozenset[str]
    moved: frozenset[str]
    before: datetime | None

    def covers(self, place: Row) -> bool:
        """Return whether this evidence of a memory is none any more because somebody wanted it so."""
        at, until, before = place["said_at"], self.reset_at, self.before
        return (
            place["session_id"] in self.grown
            or place["session_id"] in self.tombstones.session_ids
            or place["turn_id"] in self.tombstones.turn_ids
            or place["turn_id"] in self.moved
            or (until is not None and (at is None or at <= until))
            or (before is not None and (at is None or at < before))
        )
