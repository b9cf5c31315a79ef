"""
How each session went, what was decided again, and what sessions did with what they were shown: by which
memory must prove its worth.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cortex.hooks.identity import CITED_ID_CHARS, content_id
from cortex.hooks.prose.own_prose import EDIT_TOOLS, READ_TOOLS
from cortex.hooks.shown import COUNTED_AS, shown_in
from cortex.transforms.database import query
from cortex.transforms.extract.language.phrases import Phrasebook
from cortex.transforms.extract.plans import plan_continuity
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import METRICS, USES, UTC_US, Row, arrow_of, column, values
from cortex.transforms.words.facts import (
    CODE_NAME,
    NUMBER,
    WORD,
    Fact,
    Vocabulary,
    beginning_of,
    has_swapped_word,
    stem,
)
from cortex.transforms.words.sentences import share_of_fewer
from cortex.transforms.words.slots import WORDING

# -- Decisions made again, and rejected ones proposed again, in a later session of the same project.

REPEATS = arrow_of(
    [
        column("event_id", pa.string(), "a decision that an earlier session had settled already"),
        column("is_re_proposal", pa.bool_(), "whether that session had turned it down"),
    ]
)
DECISION_COLUMNS = [
    *("event_id", "project_id", "session_id", "event_type", "memory_type", "text", "rejected", "confidence"),
    "said_at",
]
_MIN_WORDS = 2  # a name alone is a subject and no decision
# What was said to a person's words, and what they did not choose.
ANSWER = " → "  # stores of before hold a person's words with the answer they got behind it
ASIDE = re.compile(r" \((?:asked|said when refusing)[^()]*\)|; not: .*$|\((?:[^()]|\([^()]*\))*\)")
# What lost, behind these words: "FastAPI over Flask for the API".
LOST = re.compile(
    r"\b(?:instead of|rather than|as opposed to|over|not|no|without|never|rejected?|against)"
    r"\s+([^.;:,()]{2,60}?)"
    r"(?=[.;:,()]|\s(?:for|to|as|because|since|and|so|which|that|when|in|on|by)\s|$)",
    re.IGNORECASE,
)
# Of a rejection its subject: what stands before the reason.
_LEAD = re.compile(
    r"^\W*(?:we )?(?:rejected|ruled out|decided against|no|not|never|skip(?:ped)?|dropped?)\b:?\s*",
    re.IGNORECASE,
)
HEAD_END = re.compile(
    r"[:;.(,]|\s[–—-]\s|\b(?:because|since|as|due to|was|were|is|are|would|does|did|has)\b", re.IGNORECASE
)


@dataclass(frozen=True)
class Decision:
    """One decision as it is compared: what was chosen, what lost, and the names it turns on."""

    event_id: str
    session_id: str
    said_at: Any
    is_rejection: bool
    chosen: Fact
    lost: frozenset[str]
    texts: tuple[str, str]  # of what was chosen, and of what lost
    technologies: frozenset[str]

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(_names(self.texts[0], self.technologies))

    @cached_property
    def lost_names(self) -> frozenset[str]:
        return frozenset(_names(self.texts[1], self.technologies))


def repeats_of(events: pa.Table, policy: Policy, of: AbstractSet[str] | None = None) -> pa.Table:
    """
    Return (event_id, is_re_proposal), one row for each decision that an earlier session had settled already.

    Takes EVENTS. A decision repeats one of an earlier session of its project that chose nearly the same: most
    of the words of the shorter one, the same names and numbers, none in the place of another. It is a
    re-proposal where it chooses what an earlier session turned down. Only of the sessions `of`, if given.
    """
    vocabulary, least = Vocabulary.of(policy), policy.threshold("metrics_same_words")
    technologies = frozenset(map(str, policy.tables["technologies"]["term"].to_pylist()))
    by_project: dict[str, list[Row]] = defaultdict(list)
    floor = policy.threshold("shown_min_confidence")
    is_shown = (pc.field("memory_type") == "decision") & (pc.field("confidence") >= floor)
    rows = events.select(DECISION_COLUMNS).filter(is_shown & pc.field("said_at").is_valid()).to_pylist()
    for row in sorted(rows, key=lambda row: (str(row["said_at"]), row["event_id"])):
        by_project[row["project_id"]].append(row)
    most = int(policy.threshold("link_max_memories_per_term"))
    repeats = [
        repeat
        for of_project in by_project.values()
        for repeat in _repeats(
            _decisions(of_project, vocabulary, technologies, of), vocabulary, least, most, of
        )
    ]
    return pa.Table.from_pylist(repeats, schema=REPEATS)


def _decisions(
    rows: list[Row], vocabulary: Vocabulary, technologies: frozenset[str], of: AbstractSet[str] | None
) -> list[Decision]:
    """Return the decisions of one project; with `of`, only those that may have a word of theirs."""
    decided = {
        row["event_id"]: _decision(row, vocabulary, technologies)
        for row in rows
        if of is None or row["session_id"] in of
    }
    # Of ten thousand memories 1,700 are decisions: to stem all of them took .7 s after each session.
    words = {word for decision in decided.values() for word in decision.chosen.word_set}
    beginnings = sorted(set(map(beginning_of, words)))
    begins_so = re.compile(rf"(?<![^\W_])(?={'|'.join(map(re.escape, beginnings))})")
    for row in rows if of is not None and words else ():
        folded = f"{row['text']} {row['rejected'] or ''}".replace("’", "'").casefold()
        # Looking for each as a part comes first: the pattern is tried at each letter.
        if row["event_id"] in decided or not any(beginning in folded for beginning in beginnings):
            continue
        if any(_may_read(folded, match.start(), words) for match in begins_so.finditer(folded)):
            decided[row["event_id"]] = _decision(row, vocabulary, technologies)
    return [decided[row["event_id"]] for row in rows if row["event_id"] in decided]


def _may_read(text: str, start: int, words: AbstractSet[str]) -> bool:
    """Return whether the word at `start` has one of the stems `words`, wherever a clause was cut from it."""
    match = WORD.match(text, start)
    whole = match[0] if match else ""
    ends = (at for at in range(1, len(whole) + 1) if not whole[at : at + 1].isalnum())
    return any(stem(whole[:end].rstrip("./:'-")) in words for end in ends)


def _repeats(
    decisions: list[Decision],
    vocabulary: Vocabulary,
    least: float,
    most_per_word: int,
    of: AbstractSet[str] | None,
) -> Iterator[Row]:
    """Yield the repeats of one project's decisions, which are in the order they were made in."""
    chosen_with: dict[str, list[Decision]] = defaultdict(list)
    lost_with: dict[str, list[Decision]] = defaultdict(list)
    for decision in decisions:
        is_asked = of is None or decision.session_id in of
        for is_re_proposal, index in ((False, chosen_with), (True, lost_with)) if is_asked else ():
            # A word that occurs in every other decision does not distinguish them.
            near = {
                earlier.event_id: earlier
                for word in decision.chosen.word_set
                if len(index[word]) <= most_per_word
                for earlier in index[word]
                if earlier.session_id != decision.session_id
            }
            repeats = _proposes if is_re_proposal else _says_again
            if any(repeats(earlier, decision, vocabulary, least) for earlier in near.values()):
                yield {"event_id": decision.event_id, "is_re_proposal": is_re_proposal}
        for word in decision.chosen.word_set:
            chosen_with[word].append(decision)
        for word in decision.lost:
            lost_with[word].append(decision)


def _says_again(earlier: Decision, later: Decision, vocabulary: Vocabulary, least: float) -> bool:
    a, b = earlier.chosen, later.chosen
    shared = a.word_set & b.word_set
    return (
        earlier.is_rejection == later.is_rejection
        and len(shared) >= _MIN_WORDS
        and share_of_fewer(a.word_set, b.word_set) >= least
        and (earlier.names <= later.names or later.names <= earlier.names)
        and not (a.numbers ^ b.numbers and a.numbers and b.numbers)
        and not vocabulary.has_opposites(a, b)
        and not has_swapped_word(a, b)
    )


def _proposes(earlier: Decision, later: Decision, vocabulary: Vocabulary, least: float) -> bool:
    lost = earlier.lost
    return (
        not later.is_rejection
        and lost <= later.chosen.word_set
        and (len(lost) >= _MIN_WORDS or bool(lost & earlier.lost_names))
    )


def _decision(row: Row, vocabulary: Vocabulary, technologies: frozenset[str]) -> Decision:
    text = ASIDE.sub(" ", str(row["text"]).partition(ANSWER)[0])
    is_rejection = row["event_type"] == "APPROACH_REJECTED"
    if is_rejection:
        head = HEAD_END.split(_LEAD.sub("", text), maxsplit=1)[0]
        chosen, lost = head, row["rejected"] or head
    else:
        chosen = LOST.sub(" ", text)
        lost = row["rejected"] or " ".join(LOST.findall(text)[:1])
    lost = HEAD_END.split(str(lost), maxsplit=1)[0]
    return Decision(
        row["event_id"],
        row["session_id"],
        row["said_at"],
        is_rejection,
        _without_wording(vocabulary.fact(chosen)),
        _without_wording(vocabulary.fact(lost)).word_set,
        (chosen, lost),
        technologies,
    )


def _without_wording(fact: Fact) -> Fact:
    words = tuple(word for word in fact.words if word not in WORDING)
    return replace(fact, words=words, sequence=words, word_set=frozenset(words))


def _names(text: str, technologies: frozenset[str]) -> Iterator[str]:
    """Yield the stems of what a decision turns on: technologies, names of code and others, numbers."""
    for number, match in enumerate(WORD.finditer(text)):
        word = match[0].rstrip("./:'’-")
        is_inside = number > 0 and text[: match.start()].rstrip()[-1:] not in (".", "?", "!", ":")
        is_name = CODE_NAME.search(word) or NUMBER.fullmatch(word) or (is_inside and word[:1].isupper())
        if word.casefold() in technologies or is_name:
            yield stem(word.casefold())


# -- How each session went, from the first day on: the figures by which memory must prove its worth.

TURN_COLUMNS = ["project_id", "session_id", "agent_id", "kind", "said_at", "text", "tool_name"]
EVENT_COLUMNS = [
    *DECISION_COLUMNS,
    *("subject", "step_status", "file", "lines", "layer"),
]
PLAN_COLUMNS = ("plan_gaps", "plan_repeats")
# The counts and times that are shown by session, in their order.
COLUMNS = tuple(name for name in METRICS.arrow.names[3:] if name not in PLAN_COLUMNS)
PLANS = pa.schema([METRICS.arrow.field(name) for name in ("project_id", "session_id", *PLAN_COLUMNS)])


def plans_of(events: pa.Table, policy: Policy) -> pa.Table:
    """Return (project_id, session_id, plan_gaps, plan_repeats), one row a session that carries on a plan."""
    is_plan = (pc.field("memory_type") == "progress") & (pc.field("subject") != "")
    is_shown = pc.field("confidence") >= policy.threshold("shown_min_confidence")
    by_project: dict[str, list[Row]] = defaultdict(list)
    for row in events.filter(is_plan & is_shown).to_pylist():
        by_project[row["project_id"]].append(row)
    rows = [
        (project_id, session_id, *counts)
        for project_id, of_project in by_project.items()
        for session_id, counts in plan_continuity(of_project).items()
    ]
    return pa.Table.from_pylist([dict(zip(PLANS.names, row, strict=True)) for row in rows], schema=PLANS)


def session_metrics(
    turns: pa.Table, events: pa.Table, policy: Policy, of: AbstractSet[str] | None = None
) -> pa.Table:
    """
    Return METRICS, one row a session, ordered by project and session.

    Takes TURNS and EVENTS, each row once. A duplicate decision says what one of an earlier session of the
    project said; a re-proposal settles on what an earlier session rejected; a file read again in one session
    counts each further time; a correction is a refused call with words or a prompt that complains. Minutes to
    the first edit are counted from the session's first turn and are null if nothing was edited. A plan's gaps
    are steps that a session which carries it on leaves out, its repeats those that it does again. Only of the
    sessions `of`, if given.
    """
    if of is not None:
        turns = turns.filter(pc.field("session_id").isin(pa.array(sorted(of), pa.string())))
    events_read = events.select(EVENT_COLUMNS)
    rows = query(
        "metrics",
        {
            "edit_tools": sorted(EDIT_TOOLS),
            "read_tools": sorted(READ_TOOLS),
            "complaint": Phrasebook.of(policy).complaint.pattern.pattern,
            "shown_min_confidence": policy.threshold("shown_min_confidence"),
        },
        turns=turns.select(TURN_COLUMNS),
        events=events_read,
        repeats=repeats_of(events_read, policy, of),
        plans=plans_of(events_read, policy),
    )
    return rows.cast(METRICS.arrow)


def metrics_since(
    before: pa.Table, changed: AbstractSet[str], turns: pa.Table, events: pa.Table, policy: Policy
) -> pa.Table:
    """
    Return what `session_metrics` gives of all TURNS and EVENTS of a project, given METRICS of `before`.

    Counted again are the `changed` sessions, and those in which something happened since the first of these
    began: a decision is compared with earlier ones alone, and a plan with what came before it.
    """
    is_changed = pc.field("session_id").isin(pa.array(sorted(changed), pa.string()))
    begun = pc.min(turns.filter(is_changed)["said_at"])
    later = events.filter(pc.field("said_at") >= begun) if begun.is_valid else events.slice(0, 0)
    again = {*changed, *values(later, "session_id")}
    there = set(values(turns.filter(pc.field("agent_id").is_null()), "session_id"))
    kept = before.filter(pc.field("session_id").isin(pa.array(sorted(there - again), pa.string())))
    rows = pa.concat_tables([kept, session_metrics(turns, events, policy, again)])
    return rows.sort_by([("project_id", "ascending"), ("session_id", "ascending")])


SHOWINGS = arrow_of(
    [
        column("session_id", pa.string(), "session that was shown a memory"),
        column("memory_id", pa.string(), "the memory"),
        column("shown_at", UTC_US, "when it was first shown"),
        column("briefs", pa.int64(), "times that a brief told it", unit="count"),
        column("prompts", pa.int64(), "messages that it was quoted beside", unit="count"),
        column("recalls", pa.int64(), "answers of recall that it was in", unit="count"),
    ]
)
NAMES = arrow_of(
    [
        column("memory_id", pa.string(), "a memory"),
        column("name", pa.string(), "a name in it, lower case: of code, a file or a command"),
    ]
)
TURN_COLUMNS_OF_USE = ["session_id", "agent_id", "kind", "said_at", "text", "tool_input"]
TURN_COLUMNS_OF_INPUTS = ["session_id", "turn_id", "said_at", "reader_version"]
# Shorter names occur by chance ("md", "v1"); of many names the first are those of the statement itself.
_MIN_NAME_LENGTH, _MAX_NAMES = 4, 12
_HAS_LETTERS = re.compile(r"[^\W\d_]{2}")


def showings_in(calls: pa.Table) -> pa.Table:
    """Return SHOWINGS, one row a session and memory: what hooks and recall noted in CALLS of one project."""
    rows: dict[tuple[str, str], Row] = {}
    for call, (session, ids, _) in shown_calls(calls):
        column_name = COUNTED_AS[call["tool"]]
        for name in dict.fromkeys(ids):
            empty = {"shown_at": call["called_at"], "briefs": 0, "prompts": 0, "recalls": 0}
            row = rows.setdefault((session, name), {"session_id": session, "memory_id": name, **empty})
            row[column_name] += 1
    return pa.Table.from_pylist([rows[key] for key in sorted(rows)], schema=SHOWINGS)


def shown_calls(calls: pa.Table) -> Iterator[tuple[Row, tuple[str, list[str], int | None]]]:
    """Yield the rows of CALLS that say what a session was shown, oldest first, and what that is."""
    for call in calls.sort_by("called_at").to_pylist():
        showing = shown_in(call)
        if showing and call["tool"] in COUNTED_AS:
            yield call, showing


def memory_names(memories: Iterable[Row], vocabulary: Vocabulary) -> pa.Table:
    """Return NAMES of memories, which have memory_id, text and files."""
    rows = []
    for memory in memories:
        files = [name.casefold().rstrip("/").rpartition("/")[2] for name in memory["files"]]
        spoken = sorted(vocabulary.fact(memory["text"]).names)
        names = [name.strip("`'\".,:;()") for name in dict.fromkeys((*spoken, *files))]
        kept = [name for name in names if len(name) >= _MIN_NAME_LENGTH and _HAS_LETTERS.search(name)]
        rows += [{"memory_id": memory["memory_id"], "name": name} for name in kept[:_MAX_NAMES]]
    return pa.Table.from_pylist(rows, schema=NAMES)


def use_inputs(
    showings: pa.Table, names: pa.Table, turns: pa.Table, policy: Policy, version: str
) -> dict[str, str]:
    """
    Return for each session of SHOWINGS the fingerprint of all that its USES are counted from.

    That is what it was shown, the NAMES of that, its turns (TURN_COLUMNS_OF_INPUTS; what an erasure rewrites
    in place is not seen), the policy's complaints and the `version` of the code.
    """
    names_of: dict[str, list[str]] = defaultdict(list)
    for row in names.to_pylist():
        names_of[row["memory_id"]].append(row["name"])
    shown: dict[str, list[str]] = defaultdict(list)
    for row in showings.to_pylist():
        shown[row["session_id"]].append(repr([*row.values(), *sorted(names_of[row["memory_id"]])]))
    turns_of: dict[str, set[str]] = defaultdict(set)
    for session, *turn in zip(*(values(turns, name) for name in TURN_COLUMNS_OF_INPUTS), strict=True):
        turns_of[session].add(repr(turn))
    rules = (version, Phrasebook.of(policy).complaint.pattern.pattern, str(CITED_ID_CHARS))
    return {name: content_id(*rules, *sorted(rows), *sorted(turns_of[name])) for name, rows in shown.items()}


def session_uses(
    showings: pa.Table,
    names: pa.Table,
    turns: pa.Table,
    policy: Policy,
    scope: str,
    inputs: Mapping[str, str],
) -> pa.Table:
    """
    Return USES of the sessions of one project, ordered by session and memory.

    Takes SHOWINGS, NAMES, TURNS, and the `use_inputs` of the sessions. A memory was used where a call of a
    tool after it was shown has one of its names, and the person had not said that name by then: what they
    typed themselves needs no memory.
    """
    rows = query(
        "uses",
        {"complaint": Phrasebook.of(policy).complaint.pattern.pattern, "cited_chars": CITED_ID_CHARS},
        showings=showings,
        names=names,
        turns=turns.select(TURN_COLUMNS_OF_USE),
    )
    rows = rows.append_column("project_id", pa.array([scope] * rows.num_rows, pa.string()))
    of_rows = [inputs[name] for name in values(rows, "session_id")]
    rows = rows.append_column("inputs", pa.array(of_rows, pa.string()))
    return rows.select(USES.arrow.names).cast(USES.arrow)


def still_counted(known: pa.Table, inputs: Mapping[str, str]) -> pa.Table:
    """Return the rows of `known` USES whose sessions have the same `inputs` now."""
    counted_from = zip(values(known, "session_id"), values(known, "inputs"), strict=True)
    is_kept = [inputs.get(session) == former for session, former in counted_from]
    return known.filter(pa.array(is_kept, pa.bool_()))
