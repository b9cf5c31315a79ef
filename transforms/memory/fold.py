"""The fold: events and journal become memories; the same fact seen again reinforces one memory (spec 5.5)."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa

from cortex.transforms.extract.living_plans import carried_on, plan_text
from cortex.transforms.extract.technologies import tag_by_term, tags_in
from cortex.transforms.identity import content_id
from cortex.transforms.memory.imported import is_whole, joined_with, put_back
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EPOCH, MEMORIES, MEMORY_TYPES, TRUSTS, checked
from cortex.transforms.search.index_text import embedded_text
from cortex.transforms.words.normalised import normalised

Row = dict[str, Any]

DEFAULT_PRIORITY = 5  # the middle of 1 to 10


# What a person's use has added to a memory; saying it again takes nothing of it away.
USE_COLUMNS = ("access_count", "last_accessed_at")


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


def fold(events: pa.Table, journal: pa.Table, policy: Policy) -> pa.Table:
    """
    Return the MEMORIES of one scope that `events` and `journal` make, one row a fact, ordered by memory_id.

    Takes EVENTS and JOURNAL rows of one scope in any order. Events below the threshold
    `shown_min_confidence` make no memory. Confidence here is the undecayed one: `lifecycle.age` sets what
    depends on the clock (confidence, status by age, centrality, rank).
    """
    memories = dict(_from_events(events, policy))
    entries = sorted(journal.to_pylist(), key=lambda e: (e["recorded_at"], e["entry_id"]))
    for entry in entries:
        _apply(entry, memories)
    tags = tag_by_term(policy)
    rows = [_finished(memory, tags) for _, memory in sorted(memories.items())]
    return MEMORIES.of(rows)


def by_memory(events: pa.Table, policy: Policy) -> dict[str, list[Row]]:
    """Return, by memory_id, the EVENTS rows that make each memory; those below the threshold make none."""
    floor = policy.threshold("shown_min_confidence")
    facts: dict[str, list[Row]] = {}
    shown = events.filter(pa.compute.is_valid(events["memory_type"]))
    sure = [event for event in shown.to_pylist() if event["confidence"] >= floor]
    plan_of = carried_on(event for event in sure if _is_plan(event))
    for event in sure:
        facts.setdefault(_identity_of(event, plan_of), []).append(event)
    return facts


def _from_events(events: pa.Table, policy: Policy) -> Iterable[tuple[str, Row]]:
    for identity, said in by_memory(events, policy).items():
        yield identity, _memory_of(identity, said)


def _identity_of(event: Row, plan_of: dict[str, str]) -> str:
    scope = _scope_of(event)
    if _is_plan(event):
        return content_id("memory", scope, "progress", "subject", plan_of[event["subject"]])
    if _is_standing(event):
        return content_id("memory", scope, "pattern", "subject", event["subject"])
    return memory_id(scope, event["memory_type"], event["text"])


def _is_plan(event: Row) -> bool:
    return event["memory_type"] == "progress" and bool(event["subject"])


def _is_standing(event: Row) -> bool:
    """Return whether a later word on the event's subject takes the place of an earlier one."""
    return event["memory_type"] == "pattern" and bool(event["subject"])


def _scope_of(event: Row) -> str:
    return "global" if event["category"] == "global" else str(event["project_id"])


def _memory_of(identity: str, events: list[Row]) -> Row:
    """Return the undecayed memory of one fact from its events, newest evidence first."""
    newest_first = sorted(events, key=_recency, reverse=True)
    first, last = newest_first[-1], newest_first[0]
    sources = [last] if _is_standing(last) else newest_first
    trusted = max(sources, key=lambda e: (TRUSTS.index(e["trust"]), e["confidence"]))
    # A plan is put together from all of its events; another fact is in the words of its best source.
    trust = min((e["trust"] for e in sources), key=TRUSTS.index) if _is_plan(last) else trusted["trust"]
    floor = min(TRUSTS.index(trust), TRUSTS.index("assistant"))
    believed = [e for e in newest_first if TRUSTS.index(e["trust"]) >= floor]
    return {
        "memory_id": identity,
        "project_id": _scope_of(last),
        "category": last["category"],
        "memory_type": last["memory_type"],
        "text": plan_text(events) if _is_plan(last) else trusted["text"],
        "reason": next((e["reason"] for e in believed if e["reason"]), None),
        "rejected": next((e["rejected"] for e in believed if e["rejected"]), None),
        "files": sorted({path for e in believed for path in e["files"]}),
        "tags": [],
        "status": "active",
        "source_type": "conversation",
        "trust": trust,
        "is_pinned": False,
        "initial_confidence": max(e["confidence"] for e in events),
        "salience": max(e["salience"] for e in events),
        "created_at": first["said_at"],
        "updated_at": last["said_at"],
        "evidence": _evidence_of(newest_first),
    }


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


def _apply(entry: Row, memories: dict[str, Row]) -> None:
    """Change `memories` by one journal entry; an entry about an unknown memory changes nothing."""
    told = json.loads(entry["payload"])
    match entry["kind"]:
        case "remember":
            _remember(entry, told, memories)
        case "import":
            _import(entry, told, memories)
        case "merge":
            _merge(entry, told, memories)
        case "recall":
            for name in told["memory_ids"]:
                _recall(memories.get(name), entry["recorded_at"])
        case "unmerge":
            _unmerge(entry, memories)
        case "prune":
            _entomb(entry, told, memories)
        case "forget" if "pruned" in told:  # as Cortex 1.0 journaled it
            _entomb(entry, told["pruned"], memories)
        case "project" | "checkpoint":
            pass
        case kind if entry["memory_id"] in memories:
            _change(kind, entry, told, memories)


def _change(kind: str, entry: Row, told: Row, memories: dict[str, Row]) -> None:
    memory = memories[entry["memory_id"]]
    at = entry["recorded_at"]
    match kind:
        case "forget":
            del memories[entry["memory_id"]]
            return
        case "edit":
            memory.update(text=told["text"], updated_at=at, trust="user", initial_confidence=1.0)
            if memory["source_type"] != "code_index":  # by which prose and code find each other
                memory["source_type"] = "explicit"
        case "pin" | "unpin":
            memory["is_pinned"] = kind == "pin"
        case "supersede":
            memory.update(status="superseded", superseded_by=told["by"], archived_at=at)
        case "archive":
            memory.update(status="archived", archived_at=at)
        case "restore":
            memory.update(
                status="active", archived_at=None, merged_into=None, superseded_by=None, last_accessed_at=at
            )
    memory["recorded_at"] = at


def _remember(entry: Row, told: Row, memories: dict[str, Row]) -> None:
    known = memories.get(entry["memory_id"], {})
    memory = {**_told_memory(entry, told), "evidence": known.get("evidence", [])}
    if known.get("source_type") == "explicit":  # said again: nothing of its use is taken away
        memory |= {name: known[name] for name in USE_COLUMNS if name in known}
        memory["is_pinned"] = memory["is_pinned"] or known["is_pinned"]
        memory["priority"] = max(memory["priority"], known.get("priority", 0))
        memory["created_at"] = _first_said(told, entry["recorded_at"], known)
    memories[entry["memory_id"]] = memory


def _import(entry: Row, told: Row, memories: dict[str, Row]) -> None:
    """Put an imported memory in its place; what was said here of the same fact counts as well."""
    memory = put_back(entry, told) if is_whole(told) else _told_memory(entry, told)
    known = memories.get(entry["memory_id"])
    is_here = known is not None and known["status"] != "pruned"
    memories[entry["memory_id"]] = joined_with(known, memory) if known and is_here else memory


def _told_memory(entry: Row, told: Row) -> Row:
    checked("memory type", told["memory_type"], MEMORY_TYPES)
    at = entry["recorded_at"]
    return {
        "memory_id": entry["memory_id"],
        "project_id": entry["project_id"],
        "category": told["category"],
        "memory_type": told["memory_type"],
        "text": told["text"],
        "files": told.get("files", []),
        "tags": told.get("tags", []),
        "status": "active",
        # What was indexed from code says so itself, and whose words it holds.
        "source_type": told.get("source_type", "explicit" if entry["kind"] == "remember" else "import"),
        "trust": told.get("trust", "user" if entry["kind"] == "remember" else "external"),
        "is_pinned": told.get("pinned", False),
        "priority": told.get("priority", DEFAULT_PRIORITY),
        "initial_confidence": 1.0,
        "salience": 1.0,
        "created_at": _first_said(told, at, {}),
        "updated_at": at,
        "recorded_at": at,
        "evidence": [],
    }


def _first_said(told: Row, at: datetime, known: Row) -> datetime:
    said: datetime = known.get("created_at") or at
    return datetime.fromisoformat(told["created_at"]) if "created_at" in told else said


def _merge(entry: Row, told: Row, memories: dict[str, Row]) -> None:
    """Add the merged memory; archive its members. Lowest trust of the sources, all their evidence."""
    members = [memories[name] for name in told["members"] if name in memories]
    if not members:
        return
    evidence = sorted(
        {e["turn_id"]: e for m in members for e in m["evidence"]}.values(),
        key=lambda e: (e["said_at"] or EPOCH, e["turn_id"]),
        reverse=True,
    )
    newest = max(members, key=lambda m: (m["updated_at"] or EPOCH, m["memory_id"]))
    memories[entry["memory_id"]] = {
        **newest,
        "memory_id": entry["memory_id"],
        "text": told["text"],
        "reason": next((m["reason"] for m in members if m.get("reason")), None),
        "rejected": next((m["rejected"] for m in members if m.get("rejected")), None),
        "files": sorted({path for m in members for path in m["files"]}),
        "tags": sorted({tag for m in members for tag in m["tags"]}),
        "source_type": "consolidation",
        "trust": min((m["trust"] for m in members), key=TRUSTS.index),
        "initial_confidence": max(m["initial_confidence"] for m in members),
        "salience": max(m["salience"] for m in members),
        "created_at": min((m["created_at"] for m in members if m["created_at"]), default=None),
        "recorded_at": entry["recorded_at"],
        "evidence": evidence,
    }
    for member in members:
        member.update(
            status="archived",
            merged_into=entry["memory_id"],
            archived_at=entry["recorded_at"],
            recorded_at=entry["recorded_at"],
        )


def _unmerge(entry: Row, memories: dict[str, Row]) -> None:
    """Take a merge back: its members are as they were, what it made is gone."""
    if memories.pop(entry["memory_id"], None) is None:
        return
    for member in memories.values():
        if member.get("merged_into") == entry["memory_id"]:
            member.update(
                status="active", merged_into=None, archived_at=None, recorded_at=entry["recorded_at"]
            )


def _entomb(entry: Row, told: Row, memories: dict[str, Row]) -> None:
    """Leave of a pruned memory that it was there; said later than what was pruned, it lives on."""
    known = memories.get(entry["memory_id"])
    if known is not None and (known["updated_at"] or EPOCH) > datetime.fromisoformat(told["updated_at"]):
        return
    memories[entry["memory_id"]] = {
        "memory_id": entry["memory_id"],
        "project_id": entry["project_id"],
        "category": "global" if entry["project_id"] == "global" else "project",
        "memory_type": told["memory_type"],
        "text": "",
        "files": [],
        "tags": [],
        "status": "pruned",
        "source_type": told["source_type"],
        "trust": told["trust"],
        "is_pinned": False,
        "initial_confidence": 0.0,
        "salience": 0.0,
        "created_at": datetime.fromisoformat(told["created_at"]),
        "updated_at": datetime.fromisoformat(told["updated_at"]),
        "recorded_at": entry["recorded_at"],
        "archived_at": entry["recorded_at"],
        "evidence": [],
    }


def _recall(memory: Row | None, at: datetime) -> None:
    if memory is not None:
        memory["access_count"] = memory.get("access_count", 0) + 1
        memory["last_accessed_at"] = at


def _finished(memory: Row, tags: Mapping[str, str]) -> Row:
    """Fill in what every row has; what its text names is added to the tags that it was told with."""
    named = tags_in(memory["text"], tags)
    created = memory["created_at"] or EPOCH
    return {
        "priority": DEFAULT_PRIORITY,
        "access_count": 0,
        "confidence": memory["initial_confidence"],
        "centrality": 0.0,
        "rank": 0.0,
        "session_count": len({e["session_id"] for e in memory["evidence"]}),
        **memory,
        "tags": [*memory["tags"], *sorted(named - set(memory["tags"]))],
        "created_at": created,
        "updated_at": memory["updated_at"] or created,
        "content_hash": content_id(embedded_text(memory)),
    }
