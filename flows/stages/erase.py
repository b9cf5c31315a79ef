"""
Erasing for good what is to be forgotten or past its days (spec 12), and files compacted so that none of it
stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.publishing.passages import hashes_in_tables, kept_cut
from cortex.flows.run.run import Run, stage
from cortex.hooks.shown import shown_arguments, shown_in
from cortex.storage.lake.lake import Change, Lake, each_key_once
from cortex.storage.staging.staging import drop_quarantined
from cortex.transforms.extract.language.settled import settled_rows
from cortex.transforms.identity import content_id
from cortex.transforms.journal_entries import Forget, Worded, from_row
from cortex.transforms.memory.fold import by_memory, memory_id
from cortex.transforms.memory.forgetting import (
    TELLING_KINDS,
    Phrases,
    Tombstones,
    done_entries,
    erased_events,
    erased_journal,
    erased_turns,
    kept_of_sessions,
    pending,
    requested_memories,
    resting_elsewhere,
    statements_of,
    texts_of,
    tombstones_of,
    without_words_left,
)
from cortex.transforms.memory.merged_projects import fold_joined, in_project, joined_names, own_names
from cortex.transforms.memory.retention import Retention
from cortex.transforms.schemas import (
    CALLS,
    EVENTS,
    GLOBAL_SCOPE,
    JOURNAL,
    LINKS_PURPOSE,
    PROJECT_PURPOSE,
    REPLIES,
    SETTLED,
    TURNS,
    VECTORS,
    Row,
    values,
)
from cortex.transforms.search import passages_of

if TYPE_CHECKING:
    import polars as pl


# -- What erasing leaves of the log of calls: none of a project that was reset, of before what is kept, none
# that says that something forgotten was shown.


def erase_calls(
    lake: Lake, change: Change, tombstones: Tombstones, gone: Collection[str], retention: Retention
) -> None:
    """
    Drop the calls that were noted in a project up to its reset, and all of before what is kept.

    Of what sessions were shown, forgotten sessions and the memories that are `gone`, by id, go as well. What
    a program called has no words of them and stays.
    """
    for project_id in lake.manifest.partitions(CALLS.name):
        rows = lake.read(CALLS, project_id)
        kept = rows
        if project_id in tombstones.projects:
            kept = kept.filter(pc.field("called_at") > tombstones.projects[project_id])
        since = retention.of(project_id).since
        if since is not None:
            kept = kept.filter(pc.field("called_at") >= since)
        kept = CALLS.of(list(_shown_after(kept, tombstones.session_ids, gone)))
        if not kept.equals(rows):
            change.replace(CALLS, project_id, kept)


def _shown_after(calls: pa.Table, sessions: Collection[str], gone: Collection[str]) -> Iterator[Row]:
    """Yield CALLS without the sessions and memories that are gone from what was shown."""
    for call in calls.to_pylist():
        session, ids, tokens = shown_in(call) or ("", [], None)
        left = [name for name in ids if name not in gone]
        if session in sessions or (ids and not left):
            continue
        yield {**call, "arguments": shown_arguments(session, left, tokens)} if left != ids else call


# -- What of a language model's replies an erasure leaves: nothing that says what is to be forgotten.


def about_turns(replies: pa.Table, turns: pa.Table, changed: Collection[str], texts: Phrases) -> pa.Table:
    """
    Return REPLIES without those about sessions that lose words, and those that say what is to be forgotten.

    `turns` are the project's TURNS that are left, `changed` the ids of those that lost words, `texts` what is
    to be forgotten.
    """
    left, sessions = set(values(turns, "turn_id")) - set(changed), set(values(turns, "session_id"))
    is_kept = [
        not row["session_id"]
        or (
            row["session_id"] in sessions
            and left.issuperset(row["turn_ids"])
            and not any(map(texts.is_in, _words_of_reply(row["text"])))
        )
        for row in replies.to_pylist()
    ]
    return replies.filter(pa.array(is_kept, pa.bool_()))


def erase_other_replies(lake: Lake, replies: dict[str, pa.Table], gone: Collection[str]) -> dict[str, str]:
    """
    Take out of `replies` the answers to questions over memories, and what others say of what is `gone`.

    Any answer may say what is to be forgotten; verdicts on pairs are in no words but ours, and what is kept
    of an answer about a project in those of the memories that it names. `replies` holds by project the
    REPLIES that are about to take the place of the lake's, `gone` the ids of memories; projects that lose
    replies are added. Returns what is to be noted of their verdicts, by project.
    """
    noted: dict[str, str] = {}
    for project_id in lake.manifest.partitions(REPLIES.name):
        known = replies[project_id] if project_id in replies else lake.read(REPLIES, project_id)
        is_judged = pc.field("purpose").isin([LINKS_PURPOSE, PROJECT_PURPOSE])
        left = known.filter((pc.field("session_id") != "") | is_judged)
        named = {name for row in left.filter(is_judged).to_pylist() for name in row["known"]}
        if not named.isdisjoint(gone):
            left = _without_verdicts(left, gone)
            noted[project_id] = content_id(lake.notes.judged.get(project_id, ""), "erased", *sorted(gone))
        if not left.equals(known):
            replies[project_id] = left
    return noted


def _without_verdicts(replies: pa.Table, gone: Collection[str]) -> pa.Table:
    # Imported here: if no language model has answered none of this is loaded.
    from cortex.transforms.writer.pairs import without_pairs
    from cortex.transforms.writer.project import without_memories

    without = {LINKS_PURPOSE: without_pairs, PROJECT_PURPOSE: without_memories}
    rows = [
        without[row["purpose"]](row, gone) if row["purpose"] in without else row
        for row in replies.to_pylist()
    ]
    return REPLIES.of([row for row in rows if row is not None])


def _words_of_reply(text: str) -> list[str]:
    """Return a reply as it is and without the escapes of JSON."""
    return [text, text.replace('\\"', '"').replace("\\n", " ")]


# -- What goes by its age and type: the forget requests that follow from the rules of retention.

RETENTION_ACTOR = "retention"


def expired_requests(run: Run, journal: pa.Table) -> pa.Table:
    """
    Return the requests (JOURNAL) to forget memories whose type is past its days in their project.

    What a person pinned, edited or told Cortex stays, and so does what colleagues hold; a merged memory goes
    as a whole, by the day on which any part of it was last said.
    """
    held = {row["memory_id"] for row in journal.to_pylist() if row["kind"] in ("edit", "remember", "forget")}
    rows: list[Row] = []
    for scope in run.readings.scopes():
        by_type = run.retention.of("" if scope == GLOBAL_SCOPE else scope).by_type
        if not by_type:
            continue
        held_here = held | {
            row["memory_id"]
            for row in run.readings.merged_journal(scope).to_pylist()
            if row["kind"] in ("edit", "remember")
        }
        for memory in run.readings.memories(scope).to_pylist():
            since = by_type.get(memory["memory_type"])
            if since is not None and memory["memory_id"] not in held_here and _is_expired(memory, since):
                rows += _requests(run, scope, memory)
    return JOURNAL.of(rows)


def _is_expired(memory: Row, since: datetime) -> bool:
    is_kept = memory["is_pinned"] or memory["source_type"] in ("explicit", "team")
    return not is_kept and memory["merged_into"] is None and memory["updated_at"] < since


def _requests(run: Run, scope: str, memory: Row) -> Iterator[Row]:
    """Yield the request under each name that the memory has, as for one that a person forgets."""
    entry = Forget(turn_ids=sorted({place["turn_id"] for place in memory["evidence"]}))
    events, journal = run.readings.events(scope), run.readings.journal(scope)
    names = own_names(events, journal, run.policy, scope, memory["memory_id"])
    for project_id, name in (*names, (scope, memory["memory_id"])):
        yield entry.to_row(project_id, recorded_at=run.now, memory_id=name, actor=RETENTION_ACTOR)


# -- Erasing for good: what was asked to be forgotten, and what is past its days (spec 12).


@stage(
    reads="turns events settled replies journal calls vectors memories passages",
    writes="turns events settled replies journal calls vectors",
)
def erase(run: Run) -> None:
    """
    Take what is to be forgotten out of the lake and out of staging, in one commit.

    Killed before the commit, the requests still wait in the journal; after it, `wipe` is still noted as due.
    """
    with run.report.stage("erase") as row:
        run.store.journal.take_in()
        rules = run.retention.fingerprint
        is_due = bool(rules) and run.store.lake.notes.retained != rules
        if is_due:
            expired = expired_requests(run, run.store.journal.read())
            if expired.num_rows:
                run.store.journal.commit(expired)
        journal = run.store.journal.read()
        requests = pending(journal)
        if not requests and not is_due:
            return
        erasure = _Erasure(run, journal, requests)
        row.rows_out = erasure.commit()
        row.note = f"{len(requests)} to forget"


@dataclass
class _Evidence:
    """Where the memories to erase were said and in which words."""

    turn_ids: set[str] = field(default_factory=set)
    places: set[tuple[str, int]] = field(default_factory=set)
    event_ids: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    own_texts: set[str] = field(default_factory=set)  # of what is past its days: looked for nowhere else
    statements: dict[str, set[str]] = field(default_factory=dict)  # by session; of what was asked for alone


class _Erasure:
    """One erasure: what it needs to know of the store as it is, and the commit."""

    def __init__(self, run: Run, journal: pa.Table, requests: list[Row]) -> None:
        self._run = run
        self._journal = journal
        self._requests = requests
        self._tombstones = tombstones_of(JOURNAL.of(requests))
        self._deleted = self._under_all_names(requested_memories(requests, journal))
        self._kept = self._kept_turns() if run.retention.is_on else frozenset[str]()
        self._hashes_gone: set[str] = set()
        self._hashes_left: set[str] = set()
        self._evidence = self._evidence_of_deleted()
        self._texts, self._own_texts = Phrases.of(self._evidence.texts), Phrases.of(self._evidence.own_texts)
        self._turn_ids: dict[str, set[str]] = {row["entry_id"]: set() for row in requests}
        self._turns_gone: set[str] = set()
        self._turns: dict[str, pa.Table] = {}
        self._events: dict[str, pa.Table] = {}
        self._settled: dict[str, pa.Table] = {}
        self._replies: dict[str, pa.Table] = {}
        self._gone: frozenset[str] = frozenset()

    def commit(self) -> int:
        """Erase; return how many turns were removed or rewritten."""
        # Imported here: with nothing to forget it is not loaded.
        from cortex.storage.model_calls import drop_arrivals

        run, lake = self._run, self._run.store.lake
        run.store.calls.take_in()  # what waits belongs to what is erased too
        drop_quarantined(
            run.store.staging.root, self._tombstones.session_ids, self._texts.is_in, self._is_reset
        )
        if self._requests or not run.settings.models.is_on:  # else this very run takes them in
            drop_arrivals(run.store.home)
        for project_id in self._tombstones.projects:
            run.store.shown_lines.forget(project_id)
        count = sum(self._erase_project(project_id) for project_id in lake.manifest.partitions("turns"))
        changed = {*self._events, *(row["project_id"] for row in self._requests)}
        scopes = self._scopes_of({*changed, GLOBAL_SCOPE})
        journal = self._journal_after(scopes)
        unjudged = erase_other_replies(lake, self._replies, self._gone)
        with lake.change() as change:
            for project_id, turns in self._turns.items():
                change.replace(TURNS, project_id, turns)
                sessions = tuple(sorted(set(values(turns, "session_id"))))
                change.replace(EVENTS, project_id, self._events[project_id], sessions)
                change.replace(SETTLED, project_id, self._settled[project_id])
            for project_id, replies in self._replies.items():
                change.replace(REPLIES, project_id, replies)
            for scope in sorted(set(values(self._journal, "project_id"))):
                mine = journal.filter(pc.equal(journal["project_id"], scope))
                if not mine.equals(_of_scope(self._journal, scope)):
                    change.replace(JOURNAL, scope, mine)
            self._drop_vectors(change, scopes)
            erase_calls(lake, change, self._tombstones, self._gone, run.retention)
            judged = {**change.notes.judged, **unjudged}
            notes = replace(change.notes, retained=run.retention.fingerprint or None, judged=judged)
            change.notes = notes.due_to_wipe(scopes)
        return count

    def _is_reset(self, cwd: str) -> bool:
        projects = self._tombstones.projects
        return bool(projects) and self._run.store.projects.known(cwd) in projects

    def _under_all_names(self, deleted: dict[str, Row]) -> dict[str, Row]:
        """Return the ids to erase with the other ids that its memories go by, where projects were merged."""
        ids = dict(deleted)
        for scope in self._run.readings.scopes():
            names = joined_names(
                self._run.readings.events(scope), self._run.readings.journal(scope), self._run.policy, scope
            )
            for old, new in names.items():
                for name, other in ((old, new), (new, old)):
                    if name in deleted:
                        ids.setdefault(other, deleted[name])
        return ids

    def _erase_project(self, project_id: str) -> int:
        run = self._run
        turns = run.store.lake.read(TURNS, project_id)
        evidence = self._named_in(turns)
        self._note_gone_sessions(turns)
        # A fork or a resume carries the turns of a forgotten session under its own.
        named = evidence | {name for ids in self._turn_ids.values() for name in ids}
        gone = self._tombstones.covers(turns)
        self._turns_gone |= set(values(turns.filter(pa.array(gone.to_list(), pa.bool_())), "turn_id"))
        gone |= Tombstones(retention=run.retention).covers(turns) & ~_is_in(turns, self._kept)
        shared = evidence & self._resting_elsewhere(project_id) if evidence else set[str]()
        kept, changed = erased_turns(
            turns, gone, frozenset(named), frozenset(shared), self._texts, self._own_texts
        )
        events = each_key_once(EVENTS, run.store.lake.read(EVENTS, project_id))
        left = self._events_left(events, kept, changed & named, shared)
        replies = run.store.lake.read(REPLIES, project_id)
        left_replies = about_turns(replies, kept, changed, self._texts)
        if left_replies.num_rows < replies.num_rows:
            self._replies[project_id] = left_replies
        if not changed and left.equals(events):
            return 0
        self._turns[project_id], self._events[project_id] = kept, left
        self._settled[project_id] = self._settled_after(project_id, turns, changed, events)
        before, after = (set(values(passages_of(t, run.policy), "content_hash")) for t in (turns, kept))
        self._hashes_gone |= before - after
        self._hashes_left |= after
        return len(changed)

    def _named_in(self, turns: pa.Table) -> set[str]:
        """Return the turns that memories to erase rest on: those named, and all on the same lines."""
        rows = zip(values(turns, "turn_id"), values(turns, "file"), values(turns, "line"), strict=True)
        evidence = self._evidence
        ids = {
            name for name, file, line in rows if name in evidence.turn_ids or (file, line) in evidence.places
        }
        evidence.turn_ids |= ids
        for row in self._requests:
            if row["memory_id"]:
                self._turn_ids[row["entry_id"]] |= ids
        return ids

    def _note_gone_sessions(self, turns: pa.Table) -> None:
        for row in self._requests:
            request = from_row(row)
            sessions = set(request.session_ids or ()) if isinstance(request, Forget) else set[str]()
            if sessions:
                mine = turns.filter(pc.is_in(turns["session_id"], pa.array(sorted(sessions), pa.string())))
                self._turn_ids[row["entry_id"]] |= set(values(mine, "turn_id"))

    def _events_left(self, events: pa.Table, turns: pa.Table, hit: set[str], shared: set[str]) -> pa.Table:
        """
        Return a project's EVENTS without those that rest on forgotten words; the others stay as rows.

        Of turns that were `hit` only what makes a memory stays, and of those that no memory rests on nothing.
        """
        floor = self._run.policy.threshold("shown_min_confidence")
        makes_none = pc.field("memory_type").is_null() | (pc.field("confidence") < floor)
        is_lone = pc.field("turn_id").isin(pa.array(sorted(hit - shared), pa.string()))
        is_hit = pc.field("turn_id").isin(pa.array(sorted(hit), pa.string()))
        wordless = events.filter(is_lone | (is_hit & makes_none))
        deleted = self._evidence.event_ids | set(values(wordless, "event_id")) | self._records_of(events)
        return erased_events(events, set(values(turns, "turn_id")), deleted, self._texts)

    def _records_of(self, events: pa.Table) -> set[str]:
        """Return the records of sessions that tell again, in other words, what a memory to erase says."""
        outcomes, statements = events.filter(pc.field("memory_type") == "outcome"), self._evidence.statements
        return {
            event["event_id"]
            for event in outcomes.to_pylist()
            if any(words in event["text"] for words in statements.get(event["session_id"], ()))
        }

    def _settled_after(
        self, project_id: str, before: pa.Table, changed: set[str], events: pa.Table
    ) -> pa.Table:
        """Return the project's SETTLED rows: all turns left of sessions that lost words, now or earlier."""
        known = self._run.store.lake.read(SETTLED, project_id)
        after = self._turns[project_id]
        gone = events.filter(
            pc.invert(pc.is_in(events["event_id"], self._events[project_id]["event_id"].combine_chunks()))
        )
        touched = before.filter(pc.is_in(before["turn_id"], pa.array(sorted(changed), pa.string())))
        sessions = {*values(touched, "session_id"), *values(gone, "session_id")}
        least_shown = self._run.policy.threshold("shown_min_confidence")
        return settled_rows(known, after, sessions, gone, project_id, least_shown)

    def _evidence_of_deleted(self) -> _Evidence:
        evidence = _Evidence()
        for row in self._requests:
            if row["memory_id"]:
                request = from_row(row)
                evidence.turn_ids |= set(request.turn_ids or ()) if isinstance(request, Forget) else set()
        for row in self._journal.to_pylist():
            if row["kind"] in TELLING_KINDS and row["memory_id"] in self._deleted:
                entry = from_row(row)
                assert isinstance(entry, Worded)
                self._texts_in(evidence, row["memory_id"]).add(entry.text)
        unforgotten = self._before_requests()
        for scope in self._scopes_of(row["project_id"] for row in self._deleted.values()):
            events = self._run.readings.events(scope)
            by_turn: dict[str, list[Row]] = {}
            for event in events.to_pylist():
                by_turn.setdefault(event["turn_id"], []).append(event)
            whole = events if scope == GLOBAL_SCOPE else in_project(events, scope)
            for name, rows in by_memory(whole, self._run.policy).items():
                if name in self._deleted:
                    evidence.event_ids |= {row["event_id"] for row in rows}
            for memory in self._folded(events, unforgotten, scope).to_pylist():
                if memory["memory_id"] in self._deleted:
                    self._add_evidence(evidence, memory, by_turn)
        return evidence

    def _before_requests(self) -> pa.Table:
        """Return the journal without the requests, and without the tombstones of what they are about."""
        gone = {row["entry_id"] for row in self._requests}
        pruned = self._journal.filter(pc.field("kind") == "prune")
        ids = zip(values(pruned, "entry_id"), values(pruned, "memory_id"), strict=True)
        gone |= {entry_id for entry_id, name in ids if name in self._deleted}
        return self._journal.filter(~pc.field("entry_id").isin(pa.array(sorted(gone), pa.string())))

    def _add_evidence(self, evidence: _Evidence, memory: Row, by_turn: dict[str, list[Row]]) -> None:
        self._hashes_gone.add(memory["content_hash"])
        texts = self._texts_in(evidence, memory["memory_id"])
        texts |= texts_of(memory)
        turn_ids = {place["turn_id"] for place in memory["evidence"]}
        if texts is evidence.texts:
            for place in memory["evidence"]:
                evidence.statements.setdefault(place["session_id"], set()).update(statements_of(memory))
        evidence.turn_ids |= turn_ids
        evidence.places |= {(place["file"], line) for place in memory["evidence"] for line in place["lines"]}
        events_there = [event for name in sorted(turn_ids) for event in by_turn.get(name, [])]
        for event in (event for event in events_there if event["memory_type"] == memory["memory_type"]):
            name = memory_id(memory["project_id"], memory["memory_type"], event["text"])
            if event["event_id"] in evidence.event_ids or name == memory["memory_id"]:
                texts |= texts_of(event)

    def _texts_in(self, evidence: _Evidence, name: str) -> set[str]:
        """Return where the texts of a memory go: age takes it there alone, a request wherever it is."""
        is_expired = self._deleted[name]["actor"] == RETENTION_ACTOR
        return evidence.own_texts if is_expired else evidence.texts

    def _resting_elsewhere(self, project_id: str) -> set[str]:
        """Return the turns that memories which stay rest on."""
        return {
            place["turn_id"]
            for scope in self._scopes_of((project_id, GLOBAL_SCOPE))
            for memory in self._run.readings.memories(scope).select(["memory_id", "evidence"]).to_pylist()
            if memory["memory_id"] not in self._deleted
            for place in memory["evidence"]
        }

    def _kept_turns(self) -> frozenset[str]:
        """Return the turns behind what a person pinned or put into words of their own: no age takes them."""
        entries = {e["memory_id"]: e for e in self._journal.to_pylist() if e["kind"] in ("edit", "remember")}
        edited = self._under_all_names(entries)
        return frozenset(
            place["turn_id"]
            for scope in self._run.readings.scopes()
            for memory in self._run.readings.memories(scope)
            .select(["memory_id", "is_pinned", "evidence"])
            .to_pylist()
            if memory["is_pinned"] or memory["memory_id"] in edited
            for place in memory["evidence"]
        )

    def _journal_after(self, scopes: list[str]) -> pa.Table:
        """Return the journal without forgotten text; entries about memories that vanish on the way go too."""
        deleted = kept_of_sessions(self._journal, self._requests) | self._deleted
        journal = erased_journal(self._journal, deleted, self._tombstones.projects, self._texts)
        journal, ends = resting_elsewhere(journal, self._journal, self._turns_gone, self._texts_at)
        ends |= without_words_left(journal)
        last = self._requests[-1:]  # none where age alone erases
        wordless = self._under_all_names({name: row for row in last for name in ends - deleted.keys()})
        journal, deleted = erased_journal(journal, wordless, {}, Phrases()), deleted | wordless
        for scope in scopes:
            before = {m["memory_id"]: m["content_hash"] for m in self._known(scope)}
            while True:
                after = self._folded(self._events_of(scope), journal, scope)
                vanished = set(before) - set(values(after, "memory_id")) - set(deleted)
                if not vanished:
                    break
                deleted |= self._under_all_names(dict.fromkeys(vanished, _END))
                journal = erased_journal(journal, deleted, {}, Phrases())
            self._hashes_gone |= set(before.values())
            self._hashes_left |= set(values(after, "content_hash"))
        self._gone = frozenset(deleted)
        done = done_entries(self._requests, self._deleted | wordless, self._turn_ids)
        return pa.concat_tables([journal, JOURNAL.of(done)])

    def _texts_at(self, turn_ids: set[str]) -> set[str]:
        is_there = pc.field("turn_id").isin(pa.array(sorted(turn_ids), pa.string()))
        lake = self._run.store.lake
        parts = lake.manifest.partitions(EVENTS.name)
        tables = [self._events[p] if p in self._events else lake.read(EVENTS, p) for p in parts]
        return {text for rows in tables for text in values(rows.filter(is_there), "text")}

    def _scopes_of(self, project_ids: Iterable[str]) -> list[str]:
        return sorted({self._run.store.projects.canonical(name) for name in project_ids})

    def _folded(self, events: pa.Table, journal: pa.Table, scope: str) -> pa.Table:
        """Return the MEMORIES of a scope, also of what was merged into it, by the entries of `journal`."""
        parts = [scope] if scope == GLOBAL_SCOPE else self._run.readings.parts(scope)
        mine = journal.filter(pc.is_in(journal["project_id"], pa.array(parts, pa.string())))
        return fold_joined(events, mine, self._run.policy, scope)

    def _known(self, scope: str) -> list[Row]:
        return self._run.readings.memories(scope).select(["memory_id", "content_hash"]).to_pylist()

    def _events_of(self, scope: str) -> pa.Table:
        """Return the EVENTS that fold into a scope once the erasure is committed."""
        lake = self._run.store.lake
        parts = self._run.readings.parts(scope)
        pieces = [self._events[p] if p in self._events else lake.read(EVENTS, p) for p in parts]
        rows = pa.concat_tables([EVENTS.empty(), *pieces])
        category = "global" if scope == GLOBAL_SCOPE else "project"
        return rows.filter(pc.equal(rows["category"], pa.scalar(category)))

    def _drop_vectors(self, change: Change, scopes: Collection[str]) -> None:
        """Drop the vectors of texts that are gone and that nothing else says in the same words."""
        lake, tables = self._run.store.lake, self._run.store.tables
        left = self._hashes_left | hashes_in_tables(tables, set(tables.scopes()) - set(scopes))
        for part in {p for s in scopes if s != GLOBAL_SCOPE for p in self._run.readings.parts(s)}:
            if part not in self._turns:
                left |= set(values(passages_of(lake.read(TURNS, part), self._run.policy), "content_hash"))
        gone = pa.array(sorted(self._hashes_gone - left), pa.string())
        for model in lake.manifest.partitions("vectors"):
            rows = lake.read(VECTORS, model)
            kept = rows.filter(pc.invert(pc.is_in(rows["content_hash"], gone)))
            if kept.num_rows < rows.num_rows:
                change.replace(VECTORS, model, kept)


# Stands for a request after all others: what vanished has no entry of its own.
_END: Row = {"recorded_at": datetime.max.replace(tzinfo=UTC)}


def _of_scope(journal: pa.Table, scope: str) -> pa.Table:
    return journal.filter(pc.equal(journal["project_id"], pa.scalar(scope)))


def _is_in(turns: pa.Table, names: frozenset[str] | set[str]) -> pl.Series:
    import polars as pl

    return pl.Series(values(turns, "turn_id"), dtype=pl.String).is_in(list(names))


# -- The stage compact: partitions of many small files become one file each.

LAKE = "turns events settled replies journal calls vectors"


@stage(reads=LAKE, writes=LAKE)
def compact(run: Run) -> None:
    """
    Rewrite each crowded partition as one file, so that a thousand runs leave no thousand files.

    Done after each stage that adds many files and before what is made from them, since that is known by the
    names of the files. The calls of tools that were noted since the last run come into the lake first.
    """
    run.store.calls.take_in()
    crowded = run.store.lake.crowded()
    if not crowded:
        return
    with run.report.stage("compact") as row:
        for table, part in crowded:
            with run.outcome.without_damage(part):
                if table is TURNS:
                    run.store.lake.compact(table, part, kept_cut(run, part))
                else:
                    run.store.lake.compact(table, part)
                row.rows_out += 1
        row.note = "rows out: partitions"
