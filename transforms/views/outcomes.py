"""What came of decisions: reverted, complained about, contradicted, or held while work went on."""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cortex.transforms.database import query
from cortex.transforms.memory.reality import Doubt, paths_in
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EVENTS, OUTCOMES, STRINGS, UTC_US, Row, arrow_of, column
from cortex.transforms.views.metrics import ANSWER, ASIDE, LOST
from cortex.transforms.words.ages import FAILED, outcome_words
from cortex.transforms.words.facts import CODE_NAME, WORD, Vocabulary, stem
from cortex.transforms.words.sentences import share_of_fewer
from cortex.transforms.words.slots import WORDING

_TEXT_CHARS = 160
# One word in common, or a name alone ("API"), is chance.
_MIN_WORDS = 2
# The share of the shorter one's words by which decisions of different sessions count as one.
_SAME_WORDS_SHARE = 0.6
_COLUMNS = ["event_id", "session_id", "event_type", "said_at", "text", "files", "git_commit", "layer"]
_DECISION_COLUMNS = [
    *("memory_id", "memory_type", "project_id", "session_id", "status", "text", "files", "evidence"),
    *("created_at", "updated_at", "superseded_by", "closed_by"),
]
_KINDS_READ = ("FILE_MODIFIED", "COMMAND_RUN")
# What a session's record says of the last words of a person, if they are a complaint left open.
_FAULT = re.compile(r'reported last by the user, not confirmed mended: "([^"]+)')
_RULE_LAYERS = "layer1:"

DECISIONS = arrow_of(
    [
        column("memory_id", pa.string(), "a decision"),
        column("session_id", pa.string(), "session that said it", null=True),
        column("said_at", UTC_US, "when it said so"),
        column("decided_at", UTC_US, "when it was said last, anywhere"),
        column("is_active", pa.bool_(), "whether it counts"),
        column("files", STRINGS, "files that it names"),
    ]
)
ABOUT = arrow_of(
    [
        column("memory_id", pa.string(), "a decision"),
        column("event_id", pa.string(), "commit of a session that said it, or a fault, about the same"),
    ]
)
REVERTS = arrow_of(
    [
        column("commit_id", pa.string(), "a commit that reverts another"),
        column("reverted_id", pa.string(), "the commit that it reverts"),
        column("said_at", UTC_US, "when it was committed"),
    ]
)
RIVALS = arrow_of(
    [
        column("memory_id", pa.string(), "a decision"),
        column("other_id", pa.string(), "newer memory that took its place, or is at odds with it"),
        column("said_at", UTC_US, "when that was said first"),
        column("text", pa.string(), "what it says"),
    ]
)


class _Subject(NamedTuple):
    """What a decision or a line is about: stems of its words, those of names, its files by base name."""

    words: frozenset[str]
    names: frozenset[str]
    files: frozenset[str]


def outcomes_of(
    memories: pa.Table, edges: pa.Table, events: pa.Table, reverts: Iterable[Row], policy: Policy
) -> pa.Table:
    """
    Return OUTCOMES, ordered by memory and time: what came of the decisions among MEMORIES of one project.

    Takes its EDGES, its EVENTS and `reverts` of its repository, rows of REVERTS. A decision was reverted
    where a commit that its own session made afterwards, about the same, was; it was complained about where
    the last words of a person in another session say that what it names does not work. It held where another
    session of a later day changed its files or committed, and nothing stands against it.
    """
    is_decision = (pc.field("memory_type") == "decision") & (pc.field("status") != "pruned")
    read_of = memories.select(_DECISION_COLUMNS).filter(is_decision)
    decisions = {row["memory_id"]: row for row in read_of.to_pylist()}
    if not decisions:
        return OUTCOMES.empty()
    project_id = next(iter(decisions.values()))["project_id"]
    kinds = pc.field("event_type").isin(["SESSION_OUTCOME", *_KINDS_READ])
    may_be_read = events.select(_COLUMNS).filter(kinds | pc.field("git_commit").is_valid())
    read = [row for row in map(_as_read, may_be_read.to_pylist()) if row is not None]
    outcomes = query(
        "outcomes",
        {"text_chars": _TEXT_CHARS},
        decisions=pa.Table.from_pylist(list(_places(decisions.values())), schema=DECISIONS),
        events=pa.Table.from_pylist(read, schema=pa.schema([EVENTS.arrow.field(n) for n in _COLUMNS[:-1]])),
        about=pa.Table.from_pylist(list(_about(decisions.values(), read, policy)), schema=ABOUT),
        reverts=pa.Table.from_pylist(list(reverts), schema=REVERTS),
        rivals=pa.Table.from_pylist(list(_rivals(decisions, memories, edges)), schema=RIVALS),
    )
    outcomes = outcomes.append_column("project_id", pa.array([project_id] * outcomes.num_rows, pa.string()))
    return outcomes.select(OUTCOMES.arrow.names).cast(OUTCOMES.arrow)


def _as_read(event: Row) -> Row | None:
    """Return an event that outcomes follow from, of a session's record its fault; else None."""
    if event["said_at"] is None:
        return None
    if event["event_type"] == "SESSION_OUTCOME":
        fault = _FAULT.search(event["text"]) if event["layer"].startswith(_RULE_LAYERS) else None
        return {**event, "text": fault[1]} if fault else None
    is_read = event["event_type"] in _KINDS_READ or event["git_commit"] is not None
    return event if is_read else None


def _places(decisions: Iterable[Row]) -> Iterator[Row]:
    for row in decisions:
        shared = {
            "memory_id": row["memory_id"],
            "decided_at": row["updated_at"],
            "is_active": row["status"] == "active",
            "files": sorted({*row["files"], *paths_in(row["text"])}),
        }
        places = [
            (place["session_id"], place["said_at"])
            for place in row["evidence"]
            if place["said_at"] is not None
        ]
        for session_id, said_at in places or [(row["session_id"], row["updated_at"])]:
            yield {**shared, "session_id": session_id or None, "said_at": said_at}


def _rivals(decisions: dict[str, Row], memories: pa.Table, edges: pa.Table) -> Iterator[Row]:
    """Yield the newer memories that decisions were replaced by or are at odds with."""
    pairs = {(n, row[by]) for n, row in decisions.items() for by in ("superseded_by", "closed_by") if row[by]}
    for edge in edges.select(["source_id", "target_id", "edge_type"]).to_pylist():
        if edge["edge_type"] == "contradicts":
            pairs |= {(edge["source_id"], edge["target_id"]), (edge["target_id"], edge["source_id"])}
    others = pa.array(sorted({other for _, other in pairs}), pa.string())
    known = memories.filter(pc.field("memory_id").isin(others)).select(["memory_id", "created_at", "text"])
    rows = {row["memory_id"]: row for row in known.to_pylist()}
    for name, other in sorted(pairs):
        if name in decisions and other in rows and decisions[name]["created_at"] < rows[other]["created_at"]:
            newer = rows[other]
            yield {
                "memory_id": name,
                "other_id": other,
                "said_at": newer["created_at"],
                "text": newer["text"],
            }


def _about(decisions: Iterable[Row], events: Iterable[Row], policy: Policy) -> Iterator[Row]:
    """Yield the commits of its own sessions and the faults of others that are about a decision."""
    vocabulary = Vocabulary.of(policy)
    technologies = frozenset(map(str, policy.tables["technologies"]["term"].to_pylist()))
    commits: dict[str, list[Row]] = {}
    faults: list[tuple[Row, _Subject]] = []
    changed: dict[str, list[Row]] = {}
    for event in sorted(events, key=lambda row: (row["said_at"], row["event_id"])):
        if event["git_commit"] is not None:
            commits.setdefault(event["session_id"], []).append(event)
        elif event["event_type"] == "SESSION_OUTCOME":
            faults.append((event, _subject(event["text"], (), vocabulary, technologies)))
        elif event["event_type"] == "FILE_MODIFIED":
            changed.setdefault(event["session_id"], []).append(event)
    for row in decisions if commits or faults else ():
        chosen = LOST.sub(" ", ASIDE.sub(" ", row["text"].partition(ANSWER)[0]))
        own: _Subject | None = None  # of most decisions nothing is compared
        times = {place["session_id"]: place["said_at"] for place in row["evidence"] if place["said_at"]}
        for session_id, said_at in times.items():
            before: datetime | None = None
            for event in commits.get(session_id, ()):
                files = [
                    path
                    for edit in changed.get(session_id, ())
                    if edit["said_at"] <= event["said_at"] and (before is None or edit["said_at"] > before)
                    for path in edit["files"]
                ]
                before = event["said_at"]
                other = _subject(event["text"], files, vocabulary, technologies)
                own = own or _subject(chosen, row["files"], vocabulary, technologies)
                if event["said_at"] >= said_at and _is_about(own, other):
                    yield {"memory_id": row["memory_id"], "event_id": event["event_id"]}
        for event, other in faults:
            if event["said_at"] <= row["created_at"] or event["session_id"] in times:
                continue
            own = own or _subject(chosen, row["files"], vocabulary, technologies)
            shared = own.words & other.words
            is_named = len(shared) >= _MIN_WORDS and bool(shared & own.names)
            if is_named or own.files & other.files:
                yield {"memory_id": row["memory_id"], "event_id": event["event_id"]}


def _is_about(own: _Subject, other: _Subject) -> bool:
    """Return whether a commit changes a file that a decision names, or says most of what it says."""
    shared = own.words & other.words
    is_alike = bool(shared & own.names) or share_of_fewer(own.words, other.words) >= _SAME_WORDS_SHARE
    return bool(own.files & other.files) or (len(shared) >= _MIN_WORDS and is_alike)


def _subject(
    text: str, files: Iterable[str], vocabulary: Vocabulary, technologies: frozenset[str]
) -> _Subject:
    tokens = [word.rstrip("./:'’-") for word in WORD.findall(text)]
    names = {
        stem(word.casefold()) for word in tokens if CODE_NAME.search(word) or word.casefold() in technologies
    }
    paths = (*files, *paths_in(text))
    words = (vocabulary.fact(text).word_set | names) - WORDING
    return _Subject(
        words, frozenset(names), frozenset(re.split(r"[/\\]", path)[-1].casefold() for path in paths)
    )


# -- When an outcome is held against a decision.


def failures(outcomes: Iterable[Row]) -> list[Doubt]:
    """Return the doubts that follow from OUTCOMES: the last failure of each decision that nothing settled."""
    failed = [row for row in outcomes if row["kind"] in FAILED and not row["is_settled"]]
    last = {
        row["memory_id"]: row for row in sorted(failed, key=lambda row: (row["happened_at"], row["what"]))
    }
    return [Doubt(name, f"[{outcome_words(row)}]", _reason(row)) for name, row in sorted(last.items())]


def _reason(failed: Row) -> str:
    day = f"{failed['happened_at']:%Y-%m-%d}"
    if failed["kind"] == "reverted":
        return f"taken back on {day}: {failed['text']}"
    return f'the user said on {day}: "{failed["text"]}"'
