"""Re-derivation: what today's extractor and policy make of the lake's turns, shown before it is taken."""

import time
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.extract_transcripts import events_of
from cortex.flows.reading.transcript_reader import in_first_place
from cortex.flows.run.run import Run
from cortex.flows.run.source import of_category
from cortex.flows.stages.guard import Asking, check_promotion, guard, loss_of
from cortex.flows.stages.order import PROJECTION
from cortex.storage.lake.manifest import ManifestNotes, outdated
from cortex.transforms.audit import events_violations
from cortex.transforms.extract.language.candidate import extractor_fingerprint
from cortex.transforms.journal_entries import (
    Archive,
    Confirm,
    Dismiss,
    Edit,
    Entry,
    Pin,
    Restore,
    Supersede,
    Unpin,
    from_row,
    in_order,
)
from cortex.transforms.masking import masked
from cortex.transforms.memory.fold import import_of
from cortex.transforms.memory.forgetting import CARRIER
from cortex.transforms.memory.loss import shown
from cortex.transforms.memory.merged_projects import fold_joined, with_names
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EVENTS, GLOBAL_SCOPE, JOURNAL, MEMORIES, TURNS, Row, values
from cortex.transforms.search import embedded_text
from cortex.transforms.words.sentences import long_words, share_of_all, share_of_fewer

# -- Reattaches a person's edits to the memory that another extractor makes of the same words.

# Entries by which a person changes a memory or says something of it; the others bring it in, or are a run's.
CHANGES = (Edit, Pin, Unpin, Confirm, Supersede, Archive, Restore, Dismiss)


class Folds(NamedTuple):
    """MEMORIES of one scope: live; live without what persons changed; as the other extractor makes them."""

    live: pa.Table
    unchanged: pa.Table
    rederived: pa.Table


@dataclass(frozen=True)
class ReattachedEdits:
    """
    What happens to a person's entries about memories that another extractor no longer makes.

    `rows` are JOURNAL rows to add. `successors` gives the new memory_id by the old one. `kept` are memories
    that stay as they were, since nothing follows them. `lapsed` are the JOURNAL rows without any effect now.
    """

    rows: pa.Table
    successors: dict[str, str]
    carried: int
    kept: tuple[str, ...]
    lapsed: tuple[Row, ...]


def reattach_edits(folds: Folds, journal: pa.Table, policy: Policy) -> ReattachedEdits:
    """
    Return how the entries of a scope's `journal` go on; with nothing gone, or done before, there is nothing.

    An entry counts for the successor from the instant at which the person made it. A memory without one
    stays, as an import of what it was, where a person pinned or edited it or put it in another's place.
    """
    live = {row["memory_id"]: row for row in folds.live.to_pylist()}
    rederived = {row["memory_id"]: row for row in folds.rederived.to_pylist()}
    unchanged = {row["memory_id"]: row for row in folds.unchanged.to_pylist()}
    gone = {name: row for name, row in live.items() if name not in rederived and row["status"] != "pruned"}
    names = _successors(gone, [row for name, row in rederived.items() if name not in live], unchanged, policy)
    entries = [(row, from_row(row)) for row in in_order(journal).to_pylist()]
    entries = [(row, entry) for row, entry in entries if isinstance(entry, CHANGES)]
    entries = [(row, entry) for row, entry in entries if _about(row, entry) & gone.keys()]
    in_force = [(row, entry) for row, entry in entries if _stands(row, entry, live)]
    lost = gone.keys() - names.keys()
    held = sorted(_held(in_force, lost, live) & unchanged.keys())
    lapsed = [row for row, entry in in_force if _about(row, entry) & lost.difference(held)]
    without = {row["entry_id"] for row in lapsed}
    renamed = [_reattached(row, entry, names) for row, entry in in_force if row["entry_id"] not in without]
    carried = [row for row in renamed if row is not None]
    known = set(values(journal, "entry_id"))
    rows = [
        row for row in [*carried, *(_kept(unchanged[name]) for name in held)] if row["entry_id"] not in known
    ]
    return ReattachedEdits(JOURNAL.of(rows), names, len(carried), tuple(held), tuple(lapsed))


def without_changes(journal: pa.Table) -> pa.Table:
    """Return JOURNAL rows without those by which persons changed memories."""
    kinds = pa.array([entry.kind for entry in CHANGES])
    return journal.filter(pc.invert(pc.is_in(journal["kind"], kinds)))


def _successors(
    gone: dict[str, Row], new: Iterable[Row], unchanged: dict[str, Row], policy: Policy
) -> dict[str, str]:
    """
    Return old memory_id → new: of one turn at least, in mostly the same words; each new one follows one.

    The nearest pair comes first: by the share of all words, of one type before another, then by id.
    """
    least_share = policy.threshold("carried_words_share")
    least_words = policy.threshold("carried_min_words")
    by_turn: dict[str, list[Row]] = {}
    for row in new:
        if row["status"] == "active":
            for place in row["evidence"]:
                by_turn.setdefault(place["turn_id"], []).append(row)
    pairs = []
    for name, row in gone.items():
        texts = [long_words(text) for text in {row["text"], unchanged.get(name, row)["text"]}]
        followers = {
            other["memory_id"]: other for p in row["evidence"] for other in by_turn.get(p["turn_id"], ())
        }
        for other_name, other in followers.items():
            theirs = long_words(other["text"])
            near = [
                w
                for w in texts
                if len(w & theirs) >= least_words and share_of_fewer(w, theirs) >= least_share
            ]
            if near:
                share = max(share_of_all(words, theirs) for words in near)
                pairs.append((-share, row["memory_type"] != other["memory_type"], name, other_name))
    return _each_once((old, follower) for *_, old, follower in sorted(pairs))


def _each_once(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the pairs of which no side is in an earlier one."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for old, new in pairs:
        if old not in names and new not in taken:
            names[old] = new
            taken.add(new)
    return names


def _about(row: Row, entry: Entry) -> set[str]:
    """Return the memories that an entry names."""
    match entry:
        case Dismiss():
            return {row["memory_id"], *entry.memory_ids} - {None}
        case Supersede():
            return {row["memory_id"], entry.by}
    return {row["memory_id"]}


def _stands(row: Row, entry: Entry, live: dict[str, Row]) -> bool:
    """Return whether an entry about a memory counts; one memory in another's place may have been put back."""
    if not isinstance(entry, Supersede):
        return True
    return live.get(row["memory_id"], {}).get("superseded_by") == entry.by


def _held(in_force: Sequence[tuple[Row, Entry]], lost: AbstractSet[str], live: dict[str, Row]) -> set[str]:
    """Return which of the `lost` memories a person pinned, edited, or put in the place of one that stays."""
    held = {name for name in lost if live[name]["is_pinned"]}
    held |= {row["memory_id"] for row, entry in in_force if isinstance(entry, Edit)} & lost
    placed = ((row["memory_id"], entry.by) for row, entry in in_force if isinstance(entry, Supersede))
    return held | ({by for name, by in placed if name not in lost or name in held} & lost)


def _kept(memory: Row) -> Row:
    """Return the entry that brings a memory in as it was when first said: what was done to it comes later."""
    at, name = memory["created_at"], memory["memory_id"]
    return import_of(memory).to_row(memory["project_id"], recorded_at=at, memory_id=name, actor=CARRIER)


def _reattached(row: Row, entry: Entry, names: dict[str, str]) -> Row | None:
    """Return the entry about the successors of what it names; None if none has one."""
    name, carried = names.get(row["memory_id"], row["memory_id"]), with_names(entry, names)
    if (name, carried) == (row["memory_id"], entry):
        return None
    # A memory that stays has the old entry as well: the one that counts comes after it.
    later = timedelta(microseconds=isinstance(entry, Supersede) and name == row["memory_id"])
    return carried.to_row(
        row["project_id"], recorded_at=row["recorded_at"] + later, memory_id=name, actor=CARRIER
    )


# What makes a memory another one to its reader; the rest follows from it or from the day.
COMPARED = ("text", "reason", "rejected", "trust", "initial_confidence", "category", "files")
# Texts that the local model embeds in a second on two cores.
EMBEDDED_PER_SECOND = 140


@dataclass(frozen=True)
class Changed:
    """One memory that stays itself and says something else: which columns, its text before and after."""

    memory_id: str
    memory_type: str
    columns: tuple[str, ...]
    before: str
    after: str


@dataclass
class Proposal:
    """What re-derivation would make of one scope: memories that appear, vanish and change, and its cost."""

    scope: str
    appears: list[dict[str, str]] = field(default_factory=list)
    vanishes: list[dict[str, str]] = field(default_factory=list)
    changes: list[Changed] = field(default_factory=list)
    unchanged: int = 0
    carried_entries: int = 0  # journal entries (pin, edit, ...) that go on with a memory that appears
    kept_memories: int = 0  # that stay only because a person pinned or edited them
    lapsed_entries: list[dict[str, str]] = field(default_factory=list)  # about memories that vanish
    texts_to_embed: int = 0


@dataclass
class Rederivation:
    """The events of each project as today's extractor makes them, and what they would change by scope."""

    events: dict[str, pa.Table]
    proposals: list[Proposal]
    seconds: float
    prompts: Mapping[str, str] = field(default_factory=dict)  # by project, as `propose_rederivation` takes it

    @property
    def seconds_to_embed(self) -> float:
        """Return how long embedding would take with the local model."""
        return sum(p.texts_to_embed for p in self.proposals) / EMBEDDED_PER_SECOND


def propose_rederivation(
    run: Run, projects: Sequence[str] | None = None, prompts: Mapping[str, str] | None = None
) -> Rederivation:
    """
    Make events and memories of `projects` (default: all) from the lake's turns, without touching the live
    ones.

    They are compared with what the tables show, so that a change of policy is seen as well as one of the
    extractor. Nothing is written; what is wrong with the new events is found when they are promoted.
    `prompts` is, by project, the version of a language model's instruction whose facts count of several
    (default: the one in force).
    """
    begun, prompts = time.perf_counter(), prompts or {}
    every = run.store.lake.manifest.partitions("turns")
    wanted = every if projects is None else [part for name in projects for part in run.readings.parts(name)]
    events = {name: _events(run, name, prompts.get(name)) for name in wanted if name in every}
    known = set(values(run.readings.vectors(), "content_hash"))
    scopes = sorted({run.store.projects.canonical(name) for name in events})
    proposals = [_proposal(run, scope, events, known) for scope in [*scopes, GLOBAL_SCOPE]]
    prompts = {name: prompts[name] for name in events if name in prompts}
    return Rederivation(events, proposals, time.perf_counter() - begun, prompts)


def promote(run: Run, rederivation: Rederivation, everywhere: str | None = None) -> None:
    """
    Put the re-derived events in place of the live ones, in one commit, and make the tables from them.

    What a person did to a memory that vanishes is reattached to its successor in the same commit. Killed
    before it nothing has changed; after it, the next run makes the tables. A project whose audit fails keeps
    its events. The versions of the instruction are in force from then on, `everywhere` in projects to come
    too. Raises LossRefused, before the commit, if much of what is shown would be
    gone and the run does not accept it.
    """
    sound = {name: rows for name, rows in sorted(rederivation.events.items()) if _is_sound(run, name, rows)}
    folds = [_folded(run, proposal.scope, sound) for proposal in rederivation.proposals]
    asking = Asking(run)
    check_promotion(run, [loss_of(run, fold.scope, fold.memories, asking) for fold in folds])
    today = extractor_fingerprint(run.policy)
    with run.report.stage("rederive") as row, run.store.lake.change() as change:
        for fold in folds:
            change.append(JOURNAL, fold.scope, fold.carried.rows)
        change.notes = _with_prompts(run, change.notes, rederivation, everywhere)
        for project_id, events in sound.items():
            sessions = set(
                values(run.store.lake.read(TURNS, project_id, columns=["session_id"]), "session_id")
            )
            change.replace(EVENTS, project_id, events, tuple(sorted(sessions)))
            notes = change.notes
            declined = {name: f for name, f in notes.declined.items() if name != project_id}
            change.notes = replace(
                notes, extractors={**notes.extractors, project_id: today}, declined=declined
            )
            row.rows_out += events.num_rows
    for each_stage in (guard, *PROJECTION):
        each_stage(run)


def _with_prompts(
    run: Run, notes: ManifestNotes, rederivation: Rederivation, everywhere: str | None
) -> ManifestNotes:
    """Return the notes with the versions in force that a re-derivation was made with."""
    if not (rederivation.prompts or everywhere):
        return notes
    # Imported here: with no language model chosen none of this is loaded.
    from cortex.flows.run.model_replies import prompt_in_force, with_chosen, with_everywhere

    if everywhere:
        return with_everywhere(notes, everywhere)
    for project_id, prompt in rederivation.prompts.items():
        if prompt_in_force(run, project_id) != prompt:
            notes = with_chosen(notes, [project_id], prompt)
    return notes


def decline(run: Run, projects: Sequence[str] | None = None) -> list[str]:
    """Keep the events as they are, unmentioned until the next change; return the projects meant."""
    manifest = run.store.lake.manifest
    parts = {part for name in projects or () for part in run.readings.parts(name)}
    meant = [name for name in outdated(manifest, run.policy) if projects is None or name in parts]
    declined = dict.fromkeys(meant, extractor_fingerprint(run.policy))
    run.store.lake.note(replace(manifest.notes, declined={**manifest.notes.declined, **declined}))
    return meant


def _events(run: Run, project_id: str, prompt: str | None) -> pa.Table:
    turns = run.store.lake.read(TURNS, project_id)
    return events_of(run, project_id, in_first_place(turns, turns), prompt=prompt)


def _is_sound(run: Run, project_id: str, events: pa.Table) -> bool:
    turns = run.store.lake.read(TURNS, project_id)
    return run.outcome.passes(project_id, events.num_rows, partial(events_violations, events, turns))


def _proposal(run: Run, scope: str, events: dict[str, pa.Table], known: set[str]) -> Proposal:
    live = _rows(run.store.tables.open(scope, "memories").read())
    fold = _folded(run, scope, events)
    rederived = _rows(fold.memories)
    proposal = Proposal(scope, carried_entries=fold.carried.carried, kept_memories=len(fold.carried.kept))
    proposal.lapsed_entries = [
        {name: row[name] or "" for name in ("entry_id", "kind", "memory_id")} for row in fold.carried.lapsed
    ]
    for name in sorted({*live, *rederived}):
        before, after = live.get(name), rederived.get(name)
        if before is None or after is None:
            row = after or before or {}
            row = {"memory_id": name, "memory_type": row["memory_type"], "text": row["text"]}
            (proposal.appears if before is None else proposal.vanishes).append(row)
            continue
        columns = tuple(column for column in COMPARED if before[column] != after[column])
        if columns:
            changed = Changed(name, after["memory_type"], columns, before["text"], after["text"])
            proposal.changes.append(changed)
        else:
            proposal.unchanged += 1
    texts = {row["content_hash"] for row in rederived.values() if embedded_text(row)}
    proposal.texts_to_embed = len(texts - known) if run.embedding.model else 0
    return proposal


def _rows(memories: pa.Table) -> dict[str, dict[str, Any]]:
    """Return the rows of MEMORIES that are shown, by memory_id."""
    return {row["memory_id"]: row for row in shown(memories).to_pylist()}


@dataclass(frozen=True)
class _Fold:
    """The MEMORIES that a scope would have, unaged, and the edits reattached to them."""

    scope: str
    memories: pa.Table
    carried: ReattachedEdits


def _folded(run: Run, scope: str, events: dict[str, pa.Table]) -> _Fold:
    journal, rederived = run.readings.journal(scope), _rederived_events(run, scope, events)
    folds = Folds(
        run.readings.memories(scope),
        masked(
            fold_joined(
                run.readings.events(scope), without_changes(journal), run.policy, scope, vouching=journal
            ),
            MEMORIES,
        ),
        _fold(run, scope, rederived, journal),
    )
    carried = reattach_edits(folds, run.readings.merged_journal(scope), run.policy)
    if not carried.rows.num_rows:
        return _Fold(scope, folds.rederived, carried)
    whole = in_order(pa.concat_tables([journal, carried.rows]))
    return _Fold(scope, _fold(run, scope, rederived, whole), carried)


def _fold(run: Run, scope: str, events: pa.Table, journal: pa.Table) -> pa.Table:
    return fold_joined(events, journal, run.policy, scope)


def _rederived_events(run: Run, scope: str, events: dict[str, pa.Table]) -> pa.Table:
    """Return the events that fold into a scope, the re-derived ones in place of the live ones."""
    rows = [
        events[name] if name in events else run.store.lake.read(EVENTS, name)
        for name in run.readings.parts(scope)
    ]
    return of_category(pa.concat_tables([EVENTS.empty(), *rows]), scope)
