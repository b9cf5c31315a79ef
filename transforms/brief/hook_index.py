"""What a prompt may bring up: the notes of a hook index, none of which can leave its frame."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

import pyarrow as pa

from cortex.hooks.plain import PREAMBLE, on_one_line
from cortex.transforms.brief.eligible import believed
from cortex.transforms.brief.render import NO_MARKS
from cortex.transforms.brief.wording import (
    LIVING_PLAN,
    fact_forms,
    is_persons,
    plan_forms,
    tells_of_the_hour,
)
from cortex.transforms.database import query
from cortex.transforms.extract.echoes import fingerprints_of
from cortex.transforms.identity import content_id
from cortex.transforms.policy import Policy
from cortex.transforms.redaction.redact import kinds_of_secret
from cortex.transforms.schemas import Row, values
from cortex.transforms.words.tokens import tokens_in

# Stands before the notes; what is told with them is an echo when it is quoted, and so is this.
FRAME = f"# What earlier sessions noted on this subject\n{PREAMBLE}"
NO_LINES: Mapping[str, str] = {}
_COLUMNS = [
    *("memory_id", "memory_type", "text", "reason", "rejected", "files", "tags", "trust", "category"),
    *("updated_at", "evidence"),
]


@dataclass(frozen=True)
class Note:
    """
    One memory in the hook index.

    `line` is shown, `text` is what it is found by, `tokens` what it costs at most. `marks` are the
    fingerprints that an echo is known by, `brief_line` is how the brief tells the same, if it does.
    """

    memory_id: str
    memory_type: str
    line: str
    text: str
    updated_on: date
    tokens: int
    marks: tuple[str, ...]
    brief_line: str | None


def notes_of(
    memories: pa.Table,
    policy: Policy,
    *,
    marks: Mapping[str, str] = NO_MARKS,
    brief_lines: Mapping[str, str] = NO_LINES,
) -> list[Note]:
    """
    Return the notes that a prompt may bring up, by id, whatever the order of the rows.

    Takes MEMORIES of one project and the global ones. As for the brief, only what is active, sure enough and
    said by a believed source; no code, no requests, nothing that was true for its hour only. `marks` are
    printed behind what the repository disagrees with, `brief_lines` is what the brief shows, by memory_id.
    """
    rows = memories.take(believed(memories, policy)["position"]).select(_COLUMNS).to_pylist()
    chars = int(_number(policy, "fact_chars"))
    notes = [
        _note(row, policy, chars, marks, brief_lines)
        for row in rows
        if policy.brief_lines(row["memory_type"]) and _lasts(row, policy)
    ]
    shown = [note for note in notes if not kinds_of_secret(f"{note.line}\n{note.text}")]
    return sorted(shown, key=lambda note: note.memory_id)


def notes_wording(memories: pa.Table, policy: Policy, marks: Mapping[str, str] = NO_MARKS) -> str:
    """
    Return a fingerprint of all that the words of `notes_of` follow from, without making them.

    Rank and confidence are not in it: they decide only which memories may be told at all.
    """
    rows = memories.take(believed(memories, policy)["position"]).select(_COLUMNS)
    states = query("note_states", {}, memories=rows)
    pairs = zip(values(states, "memory_id"), values(states, "state"), strict=True)
    return content_id(policy.fingerprint, *(f"{name}:{state}:{marks.get(name, '')}" for name, state in pairs))


def settings_of(policy: Policy) -> dict[str, float | str]:
    """Return the numbers of the gate and the frame, as the hook reads them in the index."""
    numbers = {str(name): _number(policy, str(name)) for (name,) in policy.rows["prompt_gate"]}
    frame_marks = " ".join(sorted(fingerprints_of(FRAME)))
    return {**numbers, "frame": FRAME, "frame_marks": frame_marks, "frame_tokens": tokens_in(FRAME)}


def stop_words_of(policy: Policy) -> list[str]:
    """
    Return the words that no prompt is looked up by, sorted: question words and what any project is made of.

    Without the second, 4 % of web questions about a language bring up a note that only names it; with, 3 %.
    """
    names = ("query_words", "prompt_words")
    return sorted({str(word) for name in names for word in values(policy.tables[name], "word")})


def _number(policy: Policy, name: str) -> float:
    return float(policy.rows["prompt_gate"][(name,)]["value"] or 0.0)


def _lasts(row: Row, policy: Policy) -> bool:
    """Return whether a memory outlasts its session: not a request, not a result of the hour."""
    if row["memory_type"] not in policy.types_with("is_passing") or _is_plan(row):
        return True
    return not is_persons(row) and not tells_of_the_hour(row["text"], policy.tables["telling_words"])


def _is_plan(row: Row) -> bool:
    return row["memory_type"] == "progress" and re.search(LIVING_PLAN, row["text"]) is not None


def _note(
    row: Row, policy: Policy, chars: int, marks: Mapping[str, str], brief_lines: Mapping[str, str]
) -> Note:
    line = plan_forms(row, policy)[0] if _is_plan(row) else fact_forms(row, policy, fact_chars=chars)[0]
    line = f"- {row['memory_type'].replace('_', ' ')}: {line.removeprefix('- ')}"
    mark = marks.get(row["memory_id"])
    if mark:
        line = f"{line} {on_one_line(mark)}"
    texts = (row["text"], row["reason"] or "", row["rejected"] or "")
    return Note(
        memory_id=row["memory_id"],
        memory_type=row["memory_type"],
        line=line,
        text=" ".join((*texts, *row["files"], *row["tags"])),
        updated_on=row["updated_at"].date(),
        tokens=tokens_in(line) + 1,
        marks=tuple(sorted(fingerprints_of(line))),
        brief_line=brief_lines.get(row["memory_id"]),
    )
