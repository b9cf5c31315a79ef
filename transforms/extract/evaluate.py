"""Scores of what is kept against hand labels: items found, traps hit, superseded items, duplicates."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cortex.transforms.extract.living_plans import plan_text
from cortex.transforms.schemas import Row

# The game's rules, as the labels' README and the specification state them (spec 14).
MEMORIES_MAX = 20
CHARS_MAX = 6_000
LINES_AROUND = 2
# A label paraphrases; more than half of its words in the memory, on its lines, is the same statement.
TRAP_SHARE = 0.5
# Two memories of a session that share this much of the shorter one's words say the same.
DUPLICATE_SHARE = 0.8

_WORD = re.compile(r"[A-Za-z가-힣][\w가-힣.-]{3,}")

HandLabel = Mapping[str, Any]


@dataclass(frozen=True)
class ShownMemory:
    """One memory as a session shows it: what it says, how sure it is, and the lines it rests on."""

    text: str
    confidence: float
    lines: frozenset[int]
    sums_up: bool = False  # an outcome record repeats what stands in other memories


@dataclass(frozen=True)
class Evaluation:
    """All figures of one evaluation; shares are 0 to 1."""

    recall: float
    recall_importance_3: float
    recall_by_type: dict[str, float]
    recall_unbudgeted: float
    traps_hit: float
    superseded_shown: int
    duplicates: int
    memories_per_session: float
    items: int
    traps: int
    sessions: int

    def as_dict(self) -> dict[str, object]:
        """Return the figures by name, shares rounded to three digits."""
        return {
            name: round(value, 3) if isinstance(value, float) else value
            for name, value in {
                **vars(self),
                "recall_by_type": {k: round(v, 3) for k, v in self.recall_by_type.items()},
            }.items()
        }


def evaluate(kept: pa.Table, labels: Iterable[HandLabel], least_shown: float) -> Evaluation:
    """
    Return the scores of `kept`, EVENTS or MEMORIES, against label rows of the form in the labels' README.

    An item counts as found when a memory of confidence `least_shown` or more (the policy's
    `shown_min_confidence`) rests on one of its evidence lines, two lines more or less, and its text holds all
    key terms. Only the best 20 memories and 6,000 characters of a session count. A trap is hit when such a
    memory rests on one of its lines and holds most of its words. A label's `session` is the end of the path
    in the column `file`.
    """
    rows = [label for label in labels if label["kind"] in ("item", "trap")]
    sessions = sorted({str(label["session"]) for label in rows})
    by_session = _by_session(kept, sessions, least_shown)
    budgeted = {session: surest_of(by_session[session]) for session in sessions}
    items = [label for label in rows if label["kind"] == "item" and label.get("status") != "superseded"]
    old = [label for label in rows if label["kind"] == "item" and label.get("status") == "superseded"]
    traps = [label for label in rows if label["kind"] == "trap"]
    all_items = [*items, *old]
    hit_ids = {id(item) for item in all_items if finds(item, budgeted[item["session"]])}
    return Evaluation(
        recall=_share(all_items, hit_ids),
        recall_importance_3=_share([item for item in all_items if item.get("importance") == 3], hit_ids),
        recall_by_type={
            kind: _share([item for item in all_items if item["type"] == kind], hit_ids)
            for kind in sorted({str(item["type"]) for item in all_items})
        },
        recall_unbudgeted=_share(
            all_items, {id(item) for item in all_items if finds(item, by_session[item["session"]])}
        ),
        traps_hit=_share(traps, {id(trap) for trap in traps if hits(trap, budgeted[trap["session"]])}),
        superseded_shown=sum(id(item) in hit_ids for item in old),
        duplicates=sum(_duplicates(shown) for shown in budgeted.values()),
        memories_per_session=sum(map(len, budgeted.values())) / max(1, len(sessions)),
        items=len(all_items),
        traps=len(traps),
        sessions=len(sessions),
    )


def surest_of(shown: Sequence[ShownMemory]) -> list[ShownMemory]:
    """Return the surest memories of a session, at most 20 and together at most 6,000 characters."""
    taken: list[ShownMemory] = []
    chars = 0
    for memory in sorted(
        shown, key=lambda memory: (-memory.confidence, min(memory.lines, default=0), memory.text)
    ):
        if len(taken) < MEMORIES_MAX and chars + len(memory.text) <= CHARS_MAX:
            taken.append(memory)
            chars += len(memory.text)
    return taken


def label_words(text: str) -> Counter[str]:
    """Return the words of four letters and more, lower case."""
    return Counter({word.lower().rstrip(".-"): 1 for word in _WORD.findall(text)})


def _by_session(kept: pa.Table, sessions: Sequence[str], least_shown: float) -> dict[str, list[ShownMemory]]:
    by_session: dict[str, list[ShownMemory]] = {session: [] for session in sessions}
    for row in _as_memories(kept.to_pylist(), least_shown):
        for file, lines in _places(row):
            for session in sessions:
                if file == session or file.endswith("/" + session):
                    by_session[session].append(
                        ShownMemory(row["text"], row["confidence"], lines, row["memory_type"] == "outcome")
                    )
    return by_session


def _as_memories(rows: Sequence[Row], least_shown: float) -> list[Row]:
    """Return what would be shown; the events of one plan count as the one memory they fold into."""
    shown = [
        row
        for row in rows
        if row["memory_type"] is not None
        and row["confidence"] >= least_shown
        and row.get("status", "active") == "active"
    ]
    plans: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in shown:
        if row.get("subject") and row["memory_type"] == "progress":
            plans[row["file"], row["subject"]].append(row)
    memories = [row for row in shown if not (row.get("subject") and row["memory_type"] == "progress")]
    for events in plans.values():
        lines = sorted({line for event in events for line in event["lines"]})
        memories.append({**events[0], "text": plan_text(events), "lines": lines})
    return memories


def _places(row: Row) -> list[tuple[str, frozenset[int]]]:
    """Return file and lines of an event, or of each file a memory has evidence in."""
    if "evidence" not in row:
        return [(str(row["file"]), frozenset(row["lines"]))]
    lines: dict[str, set[int]] = defaultdict(set)
    for evidence in row["evidence"]:
        lines[str(evidence["file"])].update(evidence["lines"])
    return [(file, frozenset(line_numbers)) for file, line_numbers in sorted(lines.items())]


def finds(item: HandLabel, shown: Sequence[ShownMemory]) -> bool:
    """Return whether one of the memories rests near the item's evidence and holds all its key terms."""
    near = {line + step for line in item["evidence_lines"] for step in range(-LINES_AROUND, LINES_AROUND + 1)}
    terms = [str(term).lower() for term in item["key_terms"]]
    return any(near & memory.lines and all(term in memory.text.lower() for term in terms) for memory in shown)


def hits(trap: HandLabel, shown: Sequence[ShownMemory]) -> bool:
    """Return whether one of the memories rests on the trap's lines and holds most of its words."""
    words = label_words(str(trap["text"]))
    lines = frozenset(trap["lines"])
    return any(
        lines & memory.lines and words and _overlap(words, label_words(memory.text)) > TRAP_SHARE * len(words)
        for memory in shown
    )


def _duplicates(shown: Sequence[ShownMemory]) -> int:
    """Return how many memories say what a surer one of the session says already; those that sum up aside."""
    words = [label_words(memory.text) for memory in shown if not memory.sums_up]
    return sum(
        any(
            _overlap(words[i], words[j]) >= DUPLICATE_SHARE * max(1, min(len(words[i]), len(words[j])))
            for j in range(i)
        )
        for i in range(len(words))
    )


def _overlap(words: Counter[str], others: Counter[str]) -> int:
    return sum((words & others).values())


def _share(labels: Sequence[HandLabel], hit_ids: set[int]) -> float:
    return sum(id(label) in hit_ids for label in labels) / max(1, len(labels))
