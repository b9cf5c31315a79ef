"""The fold: events and journal become memories; the same fact seen again reinforces one memory (spec 5.5)."""

import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields
from datetime import datetime
from typing import assert_never

import pyarrow as pa
import pyarrow.compute as pc

from cortex.hooks.evidence.text import normalised
from cortex.hooks.prose.memory_types import FACT_TYPES
from cortex.transforms.extract.language.candidate import is_prose_alone
from cortex.transforms.extract.plans import carried_on, plan_text
from cortex.transforms.extract.structural import CHECKS_SUBJECT, checks_text
from cortex.transforms.identity import content_id
from cortex.transforms.journal_entries import (
    ActiveDays,
    Archive,
    Checkpoint,
    Confirm,
    Dismiss,
    Edit,
    Fade,
    Forget,
    Import,
    ImportFact,
    ImportMemory,
    Merge,
    Pin,
    ProjectFolder,
    ProjectMerge,
    ProjectName,
    Prune,
    Recall,
    Recover,
    Remember,
    Restore,
    Supersede,
    TeamFact,
    UnknownEntry,
    Unmerge,
    Unpin,
    Withdraw,
    from_row,
    in_order,
)
from cortex.transforms.memory.team import with_team_evidence, withdrawn
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EPOCH, GLOBAL_SCOPE, MEMORIES, MEMORY_TYPES, TRUSTS, Row, checked
from cortex.transforms.search import embedded_text
from cortex.transforms.words.slots import SlotParser, Slots

# -- A memory as an import puts it back, alone or together with what was said here of the same fact.

INSTANTS = frozenset(field.name for field in MEMORIES.arrow if pa.types.is_timestamp(field.type))
_CARRIED = tuple(field.name for field in fields(ImportMemory) if field.name in MEMORIES.arrow.names)


def import_of(memory: Row) -> ImportMemory:
    """Return the journal entry that puts an undecayed memory back as it is."""
    carried = {**{name: memory[name] for name in _CARRIED}, "pinned": memory["is_pinned"]}
    plain = json.dumps(carried, ensure_ascii=False, default=lambda instant: instant.isoformat())
    return ImportMemory(**json.loads(plain))


def put_back(row: Row, entry: ImportMemory) -> Row:
    """Return the undecayed memory that an own export carried, with every date as it was."""
    memory = {
        "memory_id": row["memory_id"],
        "project_id": row["project_id"],
        "is_pinned": entry.pinned,
        **{name: getattr(entry, name) for name in _CARRIED},
    }
    for name in INSTANTS & memory.keys():
        memory[name] = _instant(memory[name])
    memory["evidence"] = [{**place, "said_at": _instant(place["said_at"])} for place in entry.evidence]
    return memory


def joined_with(known: Row, imported: Row) -> Row:
    """
    Return one memory of what was said here (`known`) and what was imported, both undecayed.

    The better trusted one words it, and only sources of that trust date it, pin it and make it sure; the
    evidence is that of both.
    """
    best = max(imported, known, key=lambda m: TRUSTS.index(m["trust"]))
    believed = [m for m in (imported, known) if m["trust"] == best["trust"]]
    evidence = {place["turn_id"]: place for place in [*known["evidence"], *imported["evidence"]]}.values()
    return {
        **known,
        **imported,
        **{name: best.get(name) for name in ("text", "reason", "rejected", "trust", "source_type")},
        "files": sorted({path for m in believed for path in m["files"]}),
        "is_pinned": any(m["is_pinned"] for m in believed),
        "initial_confidence": max(m["initial_confidence"] for m in believed),
        "salience": max(m["salience"] for m in believed),
        "created_at": min(m["created_at"] or EPOCH for m in believed),
        "updated_at": max(m["updated_at"] or EPOCH for m in believed),
        "evidence": sorted(evidence, key=lambda e: (e["said_at"] or EPOCH, e["turn_id"]), reverse=True),
    }


def _instant(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


# -- The tools, languages and services that a text names, by technologies.csv.


def tag_by_term(policy: Policy) -> dict[str, str]:
    """Return the tag of each term: `pytest` and `ruff` are of `python`."""
    rows = policy.tables["technologies"].to_pylist() if "technologies" in policy.tables else []
    return {str(row["term"]): str(row["tag"]) for row in rows}


def technology_tags(text: str, tags: Mapping[str, str]) -> set[str]:
    """
    Return the tags of the terms that stand in `text` as words of their own, whatever their case.

    >>> sorted(technology_tags("Run PyTest, not `jest`.", {"pytest": "python", "jest": "javascript"}))
    ['javascript', 'python']
    """
    words = {word.strip(".,:;!?()`\"'").lower() for word in text.split()}
    return {tags[word] for word in words if word in tags}


# What may choose; the steps of a plan and what a session came to are many statements.
WITH_SLOTS = frozenset(FACT_TYPES) - {"progress"}
DEFAULT_PRIORITY = 5  # the middle of 1 to 10


# What a person's use has added to a memory; saying it again takes nothing of it away.
USE_COLUMNS = ("access_count", "last_accessed_at")

# Where a fact was told on purpose.
PLACE_COLUMNS = ("folder", "git_branch", "git_commit", "session_id")

# By these a person stands for a memory, whoever said it.
VOUCHING = (Pin, Edit, Confirm, Restore)

APPLIED_COLUMNS = ["recorded_at", "kind", "project_id", "memory_id", "payload"]


def memory_id(scope: str, memory_type: str, fact: str) -> str:
    """
    Return the id of a memory: of the fact's words in their order, whatever the case and punctuation.

    >>> memory_id("p", "decision", "Use SQLite.") == memory_id("p", "decision", "use `sqlite`")
    True
    """
    return content_id("memory", scope, memory_type, normalised(fact))


def file_memory_id(scope: str, memory_type: str, file: str) -> str:
    """Return the id of what is kept of a source file: a file indexed again takes its own place."""
    return content_id("memory", scope, memory_type, "file", file)


def fold(
    events: pa.Table, journal: pa.Table, policy: Policy, *, vouching: pa.Table | None = None
) -> pa.Table:
    """
    Return the MEMORIES of one scope that `events` and `journal` make, one row a fact, ordered by memory_id.

    Takes EVENTS and JOURNAL rows of one scope in any order. Events below the threshold
    `shown_min_confidence` make no memory, nor what nobody but the assistant says, unless a person vouches
    for it in `vouching` (JOURNAL; as a rule `journal`). Confidence here is the undecayed one:
    `lifecycle.age` sets what depends on the clock (confidence, status by age, centrality, rank).
    """
    vouched = _vouched_for(journal if vouching is None else vouching)
    latest = policy.types_with("is_latest_only")
    memories: dict[str, Row] = {}
    untold: set[str] = set()
    for identity, its_events in by_memory(events, policy).items():
        if identity in vouched or not all(_is_prose_alone(event) for event in its_events):
            memories[identity] = _memory_of(identity, its_events, latest)
        else:
            untold.add(identity)
    for row in in_order(journal).select(APPLIED_COLUMNS).to_pylist():
        _apply(row, memories, untold)
    tags, parser = tag_by_term(policy), SlotParser.of(policy)
    rows = [_finished(memory, tags, parser) for _, memory in sorted(memories.items())]
    return MEMORIES.of(rows)


def by_memory(events: pa.Table, policy: Policy) -> dict[str, list[Row]]:
    """Return, by memory_id, the EVENTS rows that make each memory; those below the threshold make none."""
    floor = policy.threshold("shown_min_confidence")
    facts: dict[str, list[Row]] = {}
    shown = events.filter(pc.is_valid(events["memory_type"]))
    sure = [event for event in shown.to_pylist() if event["confidence"] >= floor]
    plan_of = carried_on(event for event in sure if _is_plan(event))
    latest = policy.types_with("is_latest_only")
    for event in sure:
        facts.setdefault(_identity_of(event, plan_of, latest), []).append(event)
    return facts


def _is_prose_alone(event: Row) -> bool:
    # Extractors up to version 6 made memories of prose; today's events of it name no memory type.
    return is_prose_alone(event["layer"], event["memory_type"])


def _vouched_for(journal: pa.Table) -> set[str]:
    """
    Return the memories that a person stands for: pinned, edited, confirmed, restored, put in another's place.

    With a merged one all that it was made of: its words are theirs.
    """
    kinds = pa.array([entry.kind for entry in (*VOUCHING, Supersede, Merge)])
    merged: dict[str, Sequence[str]] = {}
    vouched: set[str] = set()
    for row in journal.filter(pc.is_in(journal["kind"], kinds)).to_pylist():
        match entry := from_row(row):
            case Supersede():
                vouched.add(entry.by)
            case Merge():
                merged[row["memory_id"]] = entry.members
            case _:
                vouched.add(row["memory_id"])
    waiting = list(vouched)
    while waiting:
        parts = set(merged.get(waiting.pop(), ())) - vouched
        vouched |= parts
        waiting += parts
    return vouched


def _identity_of(event: Row, plan_of: dict[str, str], latest: AbstractSet[str]) -> str:
    scope = _scope_of(event)
    if _is_plan(event):
        return content_id("memory", scope, "progress", "subject", plan_of[event["subject"]])
    if _is_latest_only(event, latest):
        return content_id("memory", scope, event["memory_type"], "subject", event["subject"])
    return memory_id(scope, event["memory_type"], event["text"])


def _is_plan(event: Row) -> bool:
    return event["memory_type"] == "progress" and bool(event["subject"])


def _is_latest_only(event: Row, latest: AbstractSet[str]) -> bool:
    """Return whether a later word on the event's subject takes the place of an earlier one."""
    return event["memory_type"] in latest and bool(event["subject"])


def _scope_of(event: Row) -> str:
    return GLOBAL_SCOPE if event["category"] == GLOBAL_SCOPE else str(event["project_id"])


def _memory_of(identity: str, events: list[Row], latest: AbstractSet[str]) -> Row:
    """Return the undecayed memory of one fact from its events, newest evidence first."""
    newest_first = sorted(events, key=_recency, reverse=True)
    first, last = newest_first[-1], newest_first[0]
    sources = [last] if _is_latest_only(last, latest) else newest_first
    trusted = max(sources, key=lambda e: (TRUSTS.index(e["trust"]), e["confidence"]))
    # A plan is put together from all of its events; another fact is in the words of its best source.
    trust = min((e["trust"] for e in sources), key=TRUSTS.index) if _is_plan(last) else trusted["trust"]
    floor = min(TRUSTS.index(trust), TRUSTS.index("assistant"))
    believed = [e for e in newest_first if TRUSTS.index(e["trust"]) >= floor]
    # Another's repeating it makes a word of a person no newer: it would overtake what they said since.
    dated = next(e for e in newest_first if TRUSTS.index(e["trust"]) >= TRUSTS.index(trust))
    return {
        "memory_id": identity,
        "project_id": _scope_of(last),
        "category": last["category"],
        "memory_type": last["memory_type"],
        "text": _text_of(newest_first, trusted),
        "reason": next((e["reason"] for e in believed if e["reason"]), None),
        "rejected": next((e["rejected"] for e in believed if e["rejected"]), None),
        "is_rejection": trusted["event_type"] == "APPROACH_REJECTED",
        "files": sorted({path for e in believed for path in e["files"]}),
        "tags": [],
        "status": "active",
        "source_type": "conversation",
        "trust": trust,
        "is_pinned": False,
        "initial_confidence": max(e["confidence"] for e in events),
        "salience": max(e["salience"] for e in events),
        "created_at": first["said_at"],
        "updated_at": dated["said_at"],
        "evidence": _evidence_of(newest_first),
    }


def _text_of(newest_first: list[Row], trusted: Row) -> str:
    """Return the words of a fact; plans, and the commands that worked, are put together from all events."""
    if _is_plan(trusted):
        return plan_text(newest_first)
    if trusted["subject"] == CHECKS_SUBJECT:
        return checks_text(event["text"] for event in newest_first)
    return str(trusted["text"])


def _recency(event: Row) -> tuple[datetime, str, int, str]:
    return (
        event["said_at"] or EPOCH,
        event["file"],
        event["lines"][0] if event["lines"] else 0,
        event["event_id"],
    )


def _evidence_of(newest_first: list[Row]) -> list[Row]:
    seen: dict[str, Row] = {}
    for event in newest_first:
        seen.setdefault(
            event["turn_id"],
            {
                name: event[name]
                for name in ("turn_id", "session_id", "file", "lines", "layer", "said_at", "git_branch")
            },
        )
    return list(seen.values())


def _apply(row: Row, memories: dict[str, Row], untold: AbstractSet[str]) -> None:
    """
    Change `memories` by one JOURNAL row; an entry about an unknown memory changes nothing.

    Where what was merged is partly `untold`, its members stand by themselves: the merged text holds all.
    """
    at, name = row["recorded_at"], row["memory_id"]
    memory = memories.get(name)
    match entry := from_row(row):
        case Recall():
            for recalled in entry.memory_ids:
                _recall(memories.get(recalled), at)
        case Remember():
            memories[name] = _remembered(row, entry, memory or {})
        case ImportFact() | ImportMemory():
            memories[name] = _imported(row, entry, memory)
        case TeamFact():
            memories[name] = with_team_evidence(row, entry, memory)
        case Withdraw():
            if memory is not None:
                withdrawn(memory, entry, at)
        case Merge():
            if untold.isdisjoint(entry.members):
                _merge(row, entry, memories)
        case Unmerge():
            _unmerge(row, memories)
        case Prune():
            _prune(row, entry, memories)
        case Forget(pruned=Mapping() as pruned):
            _prune(row, Prune(**pruned), memories)
        case Forget():
            memories.pop(name, None)
        case Edit() | Pin() | Unpin() | Confirm() | Supersede() | Archive() | Restore():
            if memory is not None:
                _change(memory, entry, at)
        case Dismiss() | Fade() | Recover() | ActiveDays() | Checkpoint() | UnknownEntry():
            pass
        case ProjectFolder() | ProjectName() | ProjectMerge():
            pass
        case _:
            assert_never(entry)


def _change(
    memory: Row, entry: Edit | Pin | Unpin | Confirm | Supersede | Archive | Restore, at: datetime
) -> None:
    match entry:
        case Edit():
            # What the words before said of themselves goes with them.
            own = [n for n in ("reason", "rejected") if memory.get(n) and memory[n] in memory["text"]]
            memory.update({name: None for name in own if memory[name] not in entry.text})
            memory.update(text=entry.text, updated_at=at, trust="user", initial_confidence=1.0)
            if memory["source_type"] != "code_index":  # by which prose and code find each other
                memory["source_type"] = "explicit"
        case Pin() | Unpin():
            memory["is_pinned"] = isinstance(entry, Pin)
        case Confirm():
            memory["updated_at"] = max(memory["updated_at"] or at, at)
            if memory["status"] == "archived" and not memory.get("merged_into"):
                memory.update(status="active", archived_at=None)
        case Supersede():
            memory.update(status="superseded", superseded_by=entry.by, archived_at=at)
        case Archive():
            memory.update(status="archived", archived_at=at)
        case Restore():
            memory.update(
                status="active", archived_at=None, merged_into=None, superseded_by=None, last_accessed_at=at
            )
        case _:
            assert_never(entry)
    memory["recorded_at"] = at


def _remembered(row: Row, entry: Remember, known: Row) -> Row:
    memory = {**_memory_from(row, entry), "evidence": known.get("evidence", [])}
    if known.get("source_type") == "explicit":  # said again: nothing of its use is taken away
        memory |= {name: known[name] for name in USE_COLUMNS if name in known}
        memory["is_pinned"] = memory["is_pinned"] or known["is_pinned"]
        memory["priority"] = max(memory["priority"], known.get("priority", 0))
        memory["created_at"] = _first_stated(entry, known.get("created_at") or row["recorded_at"])
    return memory


def _imported(row: Row, entry: Import, known: Row | None) -> Row:
    """Return an imported memory; what was said here of the same fact counts as well."""
    memory = put_back(row, entry) if isinstance(entry, ImportMemory) else _memory_from(row, entry)
    is_here = known is not None and known["status"] != "pruned"
    return joined_with(known, memory) if known and is_here else memory


def _memory_from(row: Row, entry: Remember | ImportFact) -> Row:
    checked("memory type", entry.memory_type, MEMORY_TYPES)
    is_explicit, at = isinstance(entry, Remember), row["recorded_at"]
    return {
        "memory_id": row["memory_id"],
        "project_id": row["project_id"],
        "category": entry.category,
        "memory_type": entry.memory_type,
        "text": entry.text,
        "files": entry.files or [],
        "tags": entry.tags or [],
        "status": "active",
        # What was indexed from code says so itself, and whose words it holds.
        "source_type": entry.source_type or ("explicit" if is_explicit else "import"),
        "trust": entry.trust or ("user" if is_explicit else "external"),
        "is_pinned": entry.pinned or False,
        "priority": DEFAULT_PRIORITY if entry.priority is None else entry.priority,
        "initial_confidence": 1.0,
        "salience": 1.0,
        "created_at": _first_stated(entry, at),
        "updated_at": at,
        "recorded_at": at,
        "evidence": [],
        **{name: getattr(entry, name, None) for name in PLACE_COLUMNS},
    }


def _first_stated(entry: Remember | ImportFact, otherwise: datetime) -> datetime:
    return datetime.fromisoformat(entry.created_at) if entry.created_at else otherwise


def _merge(row: Row, entry: Merge, memories: dict[str, Row]) -> None:
    """Add the merged memory; archive its members. Lowest trust of the sources, all their evidence."""
    members = [memories[name] for name in entry.members if name in memories]
    if not members:
        return
    evidence = sorted(
        {e["turn_id"]: e for m in members for e in m["evidence"]}.values(),
        key=lambda e: (e["said_at"] or EPOCH, e["turn_id"]),
        reverse=True,
    )
    newest = max(members, key=lambda m: (m["updated_at"] or EPOCH, m["memory_id"]))
    memories[row["memory_id"]] = {
        **newest,
        "memory_id": row["memory_id"],
        "text": entry.text,
        "reason": next((m["reason"] for m in members if m.get("reason")), None),
        "rejected": next((m["rejected"] for m in members if m.get("rejected")), None),
        "files": sorted({path for m in members for path in m["files"]}),
        "tags": sorted({tag for m in members for tag in m["tags"]}),
        "source_type": "consolidation",
        "trust": min((m["trust"] for m in members), key=TRUSTS.index),
        "initial_confidence": max(m["initial_confidence"] for m in members),
        "salience": max(m["salience"] for m in members),
        "created_at": min((m["created_at"] for m in members if m["created_at"]), default=None),
        "recorded_at": row["recorded_at"],
        "evidence": evidence,
    }
    for member in members:
        member.update(
            status="archived",
            merged_into=row["memory_id"],
            archived_at=row["recorded_at"],
            recorded_at=row["recorded_at"],
        )


def _unmerge(row: Row, memories: dict[str, Row]) -> None:
    """Take a merge back: its members are as they were, what it made is gone."""
    if memories.pop(row["memory_id"], None) is None:
        return
    for member in memories.values():
        if member.get("merged_into") == row["memory_id"]:
            member.update(status="active", merged_into=None, archived_at=None, recorded_at=row["recorded_at"])


def _prune(row: Row, entry: Prune, memories: dict[str, Row]) -> None:
    """Leave of a pruned memory that it was there; said later than what was pruned, it lives on."""
    known = memories.get(row["memory_id"])
    if known is not None and (known["updated_at"] or EPOCH) > datetime.fromisoformat(entry.updated_at):
        return
    memories[row["memory_id"]] = {
        "memory_id": row["memory_id"],
        "project_id": row["project_id"],
        "category": GLOBAL_SCOPE if row["project_id"] == GLOBAL_SCOPE else "project",
        "memory_type": entry.memory_type,
        "text": "",
        "files": [],
        "tags": [],
        "status": "pruned",
        "source_type": entry.source_type,
        "trust": entry.trust,
        "is_pinned": False,
        "initial_confidence": 0.0,
        "salience": 0.0,
        "created_at": datetime.fromisoformat(entry.created_at),
        "updated_at": datetime.fromisoformat(entry.updated_at),
        "recorded_at": row["recorded_at"],
        "archived_at": row["recorded_at"],
        "evidence": [],
    }


def _recall(memory: Row | None, at: datetime) -> None:
    if memory is not None:
        memory["access_count"] = memory.get("access_count", 0) + 1
        memory["last_accessed_at"] = at


def _finished(memory: Row, tags: Mapping[str, str], parser: SlotParser) -> Row:
    """
    Fill in what every row has; what its text names is added to the tags that it was told with.

    Whoever said a fact, its words say what it chooses, turns down and why, unless its source said so itself.
    """
    named = technology_tags(memory["text"], tags)
    slots = parser.slots_of(memory["text"]) if memory["memory_type"] in WITH_SLOTS else Slots()
    if memory.get("is_rejection") and not (slots.chosen or slots.rejected):
        slots = parser.slots_of(f"Rejected {memory['text']}")  # "[MEMORY: rejected] Celery: too heavy"
    created = memory["created_at"] or EPOCH
    return {
        "priority": DEFAULT_PRIORITY,
        "access_count": 0,
        "confidence": memory["initial_confidence"],
        "centrality": 0.0,
        "rank": 0.0,
        "session_count": len({e["session_id"] for e in memory["evidence"]} - {""}),
        **memory,
        "chosen": slots.chosen or None,
        "git_branch": memory.get("git_branch") or next((e["git_branch"] for e in memory["evidence"]), None),
        "rejected": memory.get("rejected") or slots.rejected or None,
        "reason": memory.get("reason") or slots.reason or None,
        "tags": [*memory["tags"], *sorted(named - set(memory["tags"]))],
        "created_at": created,
        "updated_at": memory["updated_at"] or created,
        "content_hash": content_id(embedded_text(memory)),
    }
