"""
What a brief is chosen from: the best memories of each section, where the work stands, and what keeps some
out.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cortex.hooks.evidence.statements import asks, outcome_parts, prose_of, quotable_statements
from cortex.hooks.evidence.text import PEOPLE_KINDS, Subject, is_same_subject, subject_in
from cortex.hooks.prose.plain import has_plain_secret, on_one_line
from cortex.transforms.brief import ARCHIVE_NAME
from cortex.transforms.brief.explanation import (
    CONFIRM,
    REPOSITORY,
    STATE,
    STATEMENTS,
    STATEMENTS_HEADING,
    Choice,
    TellingOrder,
)
from cortex.transforms.brief.wording import (
    LIVING_PLAN,
    day,
    explicit_forms,
    fact_forms,
    is_persons,
    plan_forms,
    provenance,
    tells_of_the_hour,
    without_provenance,
)
from cortex.transforms.database import query
from cortex.transforms.extract.language.candidate import PERSONS_LAYERS, TAG_LAYER
from cortex.transforms.extract.language.phrases import Phrasebook
from cortex.transforms.extract.user_statements import is_injected
from cortex.transforms.memory.lifecycle import sessions_of
from cortex.transforms.memory.quality import brief_wording, reason_not_alone
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EPOCH, TELLING_ORDER, TURNS, Row, values
from cortex.transforms.vocabulary import GLOBAL_SCOPE
from cortex.transforms.words.prompt_injection import FROM_PERSON, injection_reason
from cortex.transforms.words.sentences import words_in

# -- Which memories a brief may show, and in what length (spec 5.2, 8.4).

# A memory's place in the order of a language model, from 0; what it has not seen counts down from -1.
ORDER_PLACE = "place"
CHOOSING_COLUMNS = [
    *("memory_id", "memory_type", "text", "files", "trust", "updated_at", "project_id", "source_type"),
    *("valid_until", "closed_by"),
]
# What is chosen by: columns of MEMORIES that `brief_candidates.sql` reads.
RANKED_COLUMNS = [
    *("memory_id", "project_id", "memory_type", "text", "status", "source_type", "trust", "is_pinned"),
    *("initial_confidence", "confidence", "updated_at", "last_accessed_at", "rank", "evidence"),
]
CHOSEN_COLUMNS = [
    *("section", "kind", "is_candidate", "rank", ORDER_PLACE, "is_on_purpose", "sessions_since", "tier"),
]
ARCHIVE = "archive"
# Sessions of a store that was never fed: nothing has passed a memory by.
NO_SESSIONS = sessions_of(TURNS.empty(), {})
NO_PLACES = TELLING_ORDER.empty()


@dataclass(frozen=True)
class Eligibility:
    """How many sessions have passed since a memory was used, and the length of a decision: full, short or
    archive."""

    sessions_since: int = 0
    tier: str | None = None


def places_in(
    memories: pa.Table, order: TellingOrder, sessions: pa.Table, policy: Policy, project_id: str
) -> pa.Table:
    """
    Return the TELLING_ORDER of a project's brief over MEMORIES, without rows where `order` is empty.

    What was tagged in the last sessions, and what is newer than the order, comes before it, the newest first.
    What the order names and a consolidation took up stands for what it became.
    """
    if not order.memory_ids:
        return NO_PLACES
    rows = memories.select(["memory_id", "project_id", "updated_at", "evidence", "merged_into"]).to_pylist()
    into = {row["memory_id"]: row["merged_into"] for row in rows if row["merged_into"]}
    seen = {*order.seen, *(into[name] for name in into if name in order.seen)}
    places: dict[str, int] = {}
    for at, name in enumerate(order.memory_ids):
        places.setdefault(_taken_up(name, into), at)
    project = pa.array({row["project_id"] for row in rows}, pa.string())
    of_project = sessions.filter(pc.field("project_id").isin(project))
    last = latest_sessions(of_project, int(policy.threshold("project_recent_sessions")))
    fresh = [row for row in rows if row["memory_id"] not in seen or _is_tagged(row, last)]
    for before, row in enumerate(
        sorted(fresh, key=lambda row: (row["updated_at"], row["memory_id"])), start=1
    ):
        places[row["memory_id"]] = -before
    known = [row["memory_id"] for row in rows if row["memory_id"] in places]
    given = [{"project_id": project_id, "memory_id": name, ORDER_PLACE: places[name]} for name in known]
    return TELLING_ORDER.of(given)


def _taken_up(name: str, into: Mapping[str, str]) -> str:
    """Return the memory that one became over all consolidations; itself if none took it up."""
    passed = {name}
    while (after := into.get(name)) and after not in passed:
        passed.add(after)
        name = after
    return name


def latest_sessions(sessions: pa.Table, count: int) -> frozenset[str]:
    """Return the sessions of a project that began last, of sessions as `sessions_of` gives them."""
    newest = sessions.sort_by([("started_at", "descending"), ("session_id", "ascending")])
    return frozenset(values(newest.slice(0, count), "session_id"))


def _is_tagged(row: Row, sessions: AbstractSet[str]) -> bool:
    return any(place["layer"] == TAG_LAYER and place["session_id"] in sessions for place in row["evidence"])


def brief_project(memories: pa.Table) -> str:
    """Return the project of MEMORIES of one project and the global ones; empty if all are global."""
    return next((name for name in values(memories, "project_id") if name != GLOBAL_SCOPE), "")


def believed(
    memories: pa.Table,
    sessions: pa.Table,
    policy: Policy,
    *,
    places: pa.Table = NO_PLACES,
    is_read_by_model: bool = True,
) -> pa.Table:
    """
    Return what a brief may show of MEMORIES of one project and the global ones, in the order it is taken in.

    Rows have CHOOSING_COLUMNS, the CHOSEN_COLUMNS of `brief_candidates.sql`, and their `position` in
    `memories`.
    """
    project = {"project_id": brief_project(memories), "is_read_by_model": is_read_by_model}
    chosen = query(
        "brief_candidates",
        {},
        memories=memories.select(RANKED_COLUMNS),
        sessions=sessions.select(["project_id", "session_id", "started_at"]).rename_columns(
            ["project_id", "session_id", "began_at"]
        ),
        projects=pa.Table.from_pylist([project]),
        telling_order=places,
        **{name: policy.tables[name] for name in ("memory_types", "event_types", "thresholds")},
    )
    positions = pc.index_in(chosen["memory_id"], value_set=memories["memory_id"].combine_chunks())
    rows = memories.select(CHOOSING_COLUMNS).take(positions)
    for name in CHOSEN_COLUMNS:
        rows = rows.append_column(name, chosen[name])
    return rows.append_column("position", positions)


def is_plan() -> pc.Expression:
    """Return the condition of a plan that still has a step to do."""
    return (pc.field("memory_type") == "progress") & pc.match_substring_regex(pc.field("text"), LIVING_PLAN)


def eligibility_by_id(rows: pa.Table, policy: Policy) -> dict[str, Eligibility]:
    """Return the eligibility of each believed decision and plan, by memory_id; no other row has one."""
    types = pa.array(sorted(policy.types_with("is_passed_by")), pa.string())
    passed_by = rows.filter(pc.field("memory_type").isin(types))
    columns = (values(passed_by, name) for name in ("memory_id", "sessions_since", "tier"))
    return {name: Eligibility(since, tier) for name, since, tier in zip(*columns, strict=True)}


def archived_decisions(memories: pa.Table, sessions: pa.Table, policy: Policy) -> pa.Table:
    """
    Return the MEMORIES that no longer fit into a brief, newest first: decisions untouched for long.

    Takes MEMORIES of one project and the global ones, ranked, and their sessions.
    """
    # No other type is passed by, and these are a sixth of all.
    passed_by = pa.array(sorted(policy.types_with("is_passed_by")), pa.string())
    memories = memories.filter(pc.field("memory_type").isin(passed_by))
    rows = believed(memories, sessions, policy)
    oldest_last = memories.take(rows.filter(pc.field("tier") == ARCHIVE)["position"])
    return oldest_last.sort_by([("updated_at", "descending"), ("memory_id", "ascending")])


# -- Where the work stands: how the outcome record of a session reads in a brief (spec 11.2).

OPEN_LINE, OPEN_ALONE = "\n  - open: ", "- Open: "
# A check that passes says nothing without what was worked on.
_CHECK = re.compile(r"^[`\w., /:-]+(?:`| ) ?(?:pass(?:es|ed)?|is clean|succeeds?)$")
_FILE_LABEL = re.compile(r"^`?[\w./~-]+\.\w{1,5}`?(?: \(\w+\))? [–—-] \w[^`.;]{0,60}$")
_SPOKEN = re.compile(
    r"\b(?:let me know|(?:now )?try (?:again|it|building|running)|open the (?:console|page)|remember to)\b",
    re.IGNORECASE,
)
_SPOKEN_ASIDE = re.compile(r" \([^()]*\b(?:you|I)\b[^()]*\)")
_YOUR = re.compile(r"\byour\b", re.IGNORECASE)


def outcome_forms(row: Row, policy: Policy, *, with_goal: bool = False) -> tuple[str, ...]:
    """
    Return an outcome record as a list item, from full to short; nothing if none of it stands alone.

    Full: what was reached, and below it what is open. Short: what is open, else the first that was reached.
    What was asked for is left out, unless it is wanted `with_goal`: a model's record says how it ended,
    one by rules only which files changed, which commits were made and which checks passed.
    """
    text, tail = on_one_line(row["text"]), provenance(row, policy)
    parts = outcome_parts(text) or {"outcome": text.rstrip(" .")}
    reached = _statements(parts.get("outcome", ""), policy)
    # Of a record whose valid time has an end everything that was open is settled.
    left = "" if row.get("valid_until") else parts.get("open", "")
    still_open = [_of_the_user(part.strip()) for part in left.split("; ")]
    still_open = [part for part in still_open if part.strip(" .") and not _is_spoken(part)]
    if with_goal and (goal := _goal(parts, policy)):
        reached = [f"asked: {goal}", *reached]
    elif reached and all(_CHECK.match(part) for part in reached) and (goal := _goal(parts, policy)):
        reached = [f"worked on: {goal}", *reached]
    if not reached and not still_open:
        return ()
    if not still_open:
        return tuple(dict.fromkeys((_item(reached, tail), _item(reached[:1], tail))))
    named = "; ".join(still_open)
    alone = f"{OPEN_ALONE}{named}. {tail}"
    return (f"{_item(reached, tail)}{OPEN_LINE}{named}", alone) if reached else (alone,)


def _statements(text: str, policy: Policy) -> list[str]:
    parts = [brief_wording(part.strip(), policy) for part in text.split("; ") if part.strip()]
    return [part for part in parts if not reason_not_alone(part, policy) and not _is_fragment(part)]


def _is_fragment(part: str) -> bool:
    """Return whether a part of a report is one only together with the others: "tide.py - Full version"."""
    return bool(_FILE_LABEL.match(part))


def _is_spoken(part: str) -> bool:
    """Return whether an open point is cut, or was said to the person of that day."""
    return bool(_SPOKEN.search(part)) or part.endswith(("!", "…"))


def _of_the_user(part: str) -> str:
    return _YOUR.sub("the user's", _SPOKEN_ASIDE.sub("", part))


def _goal(parts: Mapping[str, str], policy: Policy) -> str:
    """Return what a session was for, if that can be read alone."""
    goal = brief_wording(parts.get("goal", ""), policy)
    is_whole = goal and not goal.endswith("…") and not reason_not_alone(goal, policy)
    return goal[:1].lower() + goal[1:] if is_whole and goal[1:2].islower() else goal if is_whole else ""


def _item(statements: list[str], tail: str) -> str:
    text = "; ".join(statements)
    text = text[:1].upper() + text[1:] if text[:8].isalpha() else text
    return f"- {text if text.endswith(('.', '!', '。')) else f'{text}.'} {tail}"


# -- What a brief is chosen from: the best memories of each section, and what keeps some out (spec 11.2).

OWN_WORDS = frozenset(("explicit", "code_index"))
# What was said on the last day of work tells which files are in play.
LAST_WORK = timedelta(days=1)
NO_SUBJECT = Subject(frozenset(), frozenset())


@dataclass
class LineCandidate:
    """
    A memory on its way into the brief: its forms from full to short, its weight, and whether it was taken.
    """

    section: str
    forms: tuple[str, ...]
    choice: Choice
    words: frozenset[str] = frozenset()
    subject: Subject = NO_SUBJECT
    updated_at: datetime | None = None
    is_pinned: bool = False
    rank: float = 0.0
    weight: float = 0.0  # by which the rest is taken: its rank, or without a model how much it says
    is_guaranteed: bool = False
    is_persons: bool = False
    is_on_purpose: bool = False
    is_in_play: bool = False
    is_plan: bool = False
    is_record: bool = False  # of what a session came to
    is_short: bool = False
    is_tagged: bool = False  # by the assistant, as a memory
    is_recent: bool = False  # a decision of the last sessions
    sessions_since: int = 0
    tier: str | None = None
    place: int | None = None  # in the order that a language model gave; what it has not seen comes before

    @property
    def name(self) -> str:
        """What a reason calls it: its memory's id, or what it is where no memory stands behind it."""
        return self.choice.memory_id[:8] or "another statement"

    def decide(self, text: str, is_shown: bool, reason: str) -> None:
        """Note whether the candidate was taken, and why."""
        self.choice = replace(self.choice, text=text, is_shown=is_shown, reason=reason)

    def leave_out(self, reason: str) -> None:
        """Keep the candidate out of the brief, whatever the room."""
        self.forms = ()
        self.decide(self.choice.text, False, reason)

    def reason_for(self) -> str:
        """Return why the candidate is in the brief, now that it is."""
        if self.section == REPOSITORY:
            return "the repository has moved on"
        if self.section == CONFIRM:
            return "asks about the oldest claims"
        if self.section == STATEMENTS:
            return "in the user's words, and says much"
        if not self.choice.memory_id:
            return "says where the rest is"
        if self.is_pinned:
            return "pinned"
        if self.is_on_purpose:
            return f"said on purpose, rank {self.rank:.2f}"
        if self.place is not None:
            return (
                "told next, by the language model" if self.place >= 0 else "newer than what was put in order"
            )
        if self.section == STATE:
            return "the plan that is being worked on" if self.is_plan else "what the latest session came to"
        reasons = [
            "among the first of its section" if self.is_guaranteed else "",
            "about a file in play" if self.is_in_play else "",
            f"rank {self.rank:.2f}",
            "in the user's words" if self.is_persons else "",
        ]
        return ", ".join(reason for reason in reasons if reason)


def candidates_of(
    memories: pa.Table,
    rows: pa.Table,
    eligibility: Mapping[str, Eligibility],
    disputes: Mapping[str, str],
    policy: Policy,
    *,
    is_read_by_model: bool = True,
) -> list[LineCandidate]:
    """
    Return the candidates for a brief in the order in which they are taken, section by section.

    Takes MEMORIES, those of them that are believed (`believed`), and the mark printed behind each that
    something disagrees with, by memory_id. What rules made is told newest first.
    """
    in_play = _files_in_play(rows)
    candidates: list[LineCandidate] = []
    for section in policy.brief_sections():
        best = _best(memories, rows, section)
        known = (eligibility.get(row["memory_id"], Eligibility()) for row in best)
        of_section = [
            _candidate(
                section, row, disputes.get(row["memory_id"], ""), place, in_play, policy, is_read_by_model
            )
            for row, place in zip(best, known, strict=True)
        ]
        if section == "decision":
            of_section = _newest_decisions_first(of_section, policy)
        _keep_newest_of_subject(of_section, disputes, policy)
        if section == STATE:
            latest = "brief_outcomes" if is_read_by_model else "brief_outcomes_by_rules"
            _keep_latest_outcomes(
                of_section, int(policy.threshold(latest)), is_read_by_model=is_read_by_model
            )
            _shorten_older_plans(of_section, policy)
        if section == "progress" and any(each.forms for each in candidates if each.section == STATE):
            _leave_out_work_done(of_section)
        of_section.sort(key=lambda candidate: not candidate.is_in_play)
        candidates += of_section
    return candidates


def printed_order(candidates: Iterable[LineCandidate]) -> list[LineCandidate]:
    """
    Return the candidates of each section in the order in which they are read.

    Pinned and said on purpose first; outcomes and decisions by day, newest first, those told in short last;
    the others as they were taken.
    """
    return sorted(candidates, key=_place_in_section)


def _place_in_section(candidate: LineCandidate) -> tuple[Any, ...]:
    is_dated = candidate.section in (STATE, STATEMENTS, "decision") and candidate.updated_at is not None
    age = -candidate.updated_at.timestamp() if is_dated and candidate.updated_at else 0.0
    is_sign = not candidate.choice.memory_id
    lead = (is_sign, not candidate.is_pinned, not candidate.is_on_purpose)
    if candidate.place is not None:
        return (*lead, True, candidate.is_short, float(candidate.place))
    return (*lead, candidate.is_plan, candidate.is_short, age)


def about_repository(line: str) -> list[LineCandidate]:
    """Return one candidate that says how far the repository has moved on, or none."""
    text = on_one_line(line)
    return [LineCandidate(REPOSITORY, (text,), Choice(REPOSITORY, "", text, False, ""))] if text else []


def sign_to_archive(eligibility: Mapping[str, Eligibility], policy: Policy) -> list[LineCandidate]:
    """Return one candidate that says how many decisions are in the archive only, or none."""
    count = sum(place.tier == ARCHIVE for place in eligibility.values())
    line = f"- {count} older: {ARCHIVE_NAME}, `cortex brief --archive`"
    heading = policy.brief_section("decision")
    return [LineCandidate("decision", (line,), Choice(heading, "", line, False, ""))] if count else []


# Decisions, the newest first


def _newest_decisions_first(candidates: list[LineCandidate], policy: Policy) -> list[LineCandidate]:
    """
    Return decisions in the order in which they are taken; what rank gives to their lines goes to the newest.

    Pinned ones and those said on purpose stay first, then what was tagged in the last sessions, which no
    guess of the rules beats, then the rest by age; those that many sessions passed by last.
    """
    few = policy.threshold("brief_recent_sessions")
    for candidate in candidates:
        candidate.is_recent = candidate.sessions_since < few
    free = [each for each in candidates if each.place is None and not each.is_on_purpose]
    by_age = sorted(free, key=lambda each: each.updated_at or EPOCH, reverse=True)
    by_age.sort(key=lambda each: (each.tier != "full", not (each.is_recent and each.is_tagged)))
    weights = sorted((each.weight for each in free), reverse=True)
    for candidate, weight in zip(by_age, weights, strict=True):
        candidate.weight = weight
    known = {id(each) for each in by_age}
    return [*(each for each in candidates if id(each) not in known), *by_age]


# Best of each section


def _best(memories: pa.Table, rows: pa.Table, section: str) -> list[Row]:
    """Return the MEMORIES of a section that a brief chooses from, as they are taken, by raised rank."""
    best = rows.filter((pc.field("section") == section) & pc.field("is_candidate"))
    chosen = best.select(["rank", "is_on_purpose", ORDER_PLACE]).to_pylist()
    return [row | own for row, own in zip(memories.take(best["position"]).to_pylist(), chosen, strict=True)]


def _files_in_play(rows: pa.Table) -> frozenset[str]:
    """Return the names, without folders, of the files that the last day's memories name."""
    if not rows.num_rows:
        return frozenset()
    newest = pc.max(rows["updated_at"]).as_py()
    recent = rows.filter(pc.field("updated_at") >= pa.scalar(newest - LAST_WORK, rows["updated_at"].type))
    named = pc.list_flatten(recent["files"]).to_pylist()
    return frozenset(str(name).rpartition("/")[2] for name in named)


# One candidate


def _candidate(
    section: str,
    row: Row,
    dispute: str,
    eligibility: Eligibility,
    in_play: frozenset[str],
    policy: Policy,
    is_read_by_model: bool,
) -> LineCandidate:
    """Return a memory with its forms; a decision that many sessions passed by fades (spec 8.4)."""
    is_of_plan = _is_living(section, row)
    forms = _forms(section, row, policy, is_read_by_model)
    text = forms[0] if forms else f"- {on_one_line(row['text'])}"
    full_lines = policy.threshold("project_told_in_full")
    is_short = eligibility.tier == "short" if row[ORDER_PLACE] is None else row[ORDER_PLACE] >= full_lines
    candidate = LineCandidate(
        section,
        tuple(form + dispute for form in (forms[-1:] if is_short else forms)),
        Choice(policy.brief_section(section), row["memory_id"], text, False, "", row["rank"]),
        frozenset(words_in(row["text"])),
        subject_in(row["text"], values(policy.tables["query_words"], "word")),
        row["updated_at"],
        row["is_pinned"],
        row["rank"],
        row["rank"],
        is_persons=is_persons(row),
        is_on_purpose=row["is_on_purpose"],
        is_in_play=section == "gotcha" and any(name.rpartition("/")[2] in in_play for name in row["files"]),
        is_plan=is_of_plan,
        is_record=row["memory_type"] == STATE,
        is_short=is_short,
        is_tagged=any(place["layer"] == TAG_LAYER for place in row["evidence"]),
        sessions_since=eligibility.sessions_since,
        tier=eligibility.tier,
        place=row[ORDER_PLACE],
    )
    if not is_read_by_model:
        candidate.weight = _worth(row["text"], candidate.subject, 0.5, policy)
    reason = _reason_against(candidate, row, eligibility, policy)
    if reason:
        candidate.leave_out(reason)
    return candidate


def _forms(section: str, row: Row, policy: Policy, is_read_by_model: bool) -> tuple[str, ...]:
    # A pinned fact is in the words of its session; remembered and edited ones are in a person's own.
    if row["is_on_purpose"] and row["trust"] == "user" and row["source_type"] in OWN_WORDS:
        return plan_forms(row, policy) if _is_living(section, row) else explicit_forms(row, policy)
    if _is_living(section, row):
        return plan_forms(row, policy)
    if row["memory_type"] == STATE:
        return outcome_forms(row, policy, with_goal=not is_read_by_model)
    # A rule cut to one of its sentences is another rule.
    is_typed = not is_read_by_model and is_persons(row)
    return explicit_forms(row, policy) if is_typed else fact_forms(row, policy)


def _is_living(section: str, row: Row) -> bool:
    is_of_work = section == STATE and row["memory_type"] == "progress"
    return is_of_work and re.match(LIVING_PLAN, row["text"]) is not None


# As `brief_wording.csv` puts "I want": what somebody wants once is no rule for the next session.
_REQUEST = re.compile(r"- The user wants\b")


def _reason_against(candidate: LineCandidate, row: Row, eligibility: Eligibility, policy: Policy) -> str:
    """Return why a memory is left out whatever the room, or nothing; on purpose, only age speaks against."""
    since = eligibility.sessions_since
    if candidate.place is not None:
        return "" if candidate.forms else "nothing of it stands alone"
    if eligibility.tier == ARCHIVE:
        return f"untouched for {since} sessions: {ARCHIVE_NAME}"
    if candidate.is_on_purpose:
        return ""
    if not candidate.forms:
        return "nothing of it stands alone"
    if candidate.section == STATE:
        return ""
    is_passing = row["memory_type"] in policy.types_with("is_passing")
    if is_passing and candidate.is_persons:
        return "a request or question: its outcome counts"
    if row["memory_type"] == "pattern" and all(_REQUEST.match(form) for form in candidate.forms):
        return "a request and no rule: its outcome counts"
    if is_passing and tells_of_the_hour(row["text"], policy.tables["telling_words"]):
        return "true for the hour it was said in"
    return _without_dependent_forms(candidate, policy)


def _without_dependent_forms(candidate: LineCandidate, policy: Policy) -> str:
    """Keep the forms that stand alone; return why there is none, or nothing."""
    reasons = [
        reason_not_alone(without_provenance(form), policy, is_persons=candidate.is_persons)
        for form in candidate.forms
    ]
    candidate.forms = tuple(form for form, reason in zip(candidate.forms, reasons, strict=True) if not reason)
    return "" if candidate.forms else reasons[0]


# What the user said: without a language model it takes what other lines leave of the budget


# A person or a later word took back what a memory was said in, or a person edited it. Age archives on a day
# of its own; what a person does is recorded then.
_IS_TAKEN_BACK = (
    (pc.field("source_type") == "explicit")
    | pc.field("valid_until").is_valid()
    | pc.field("status").isin(["superseded", "pruned"])
    | (
        (pc.field("status") == "archived")
        & (pc.field("archived_at") == pc.field("recorded_at"))
        & pc.field("merged_into").is_null()
    )
)


def statement_candidates(passages: pa.Table, memories: pa.Table, policy: Policy) -> list[LineCandidate]:
    """
    Return the statements that a person typed in PASSAGES of a project, of one subject the newest.

    A turn of MEMORIES that a later word overtook is left out, and so are questions: their answers count.
    Nothing is quoted of a prompt with an injection, of a long one, which is mostly pasted, or of what was
    chosen, which the assistant worded.
    """
    overtaken = {
        place["turn_id"]
        for evidence in values(memories.filter(_IS_TAKEN_BACK), "evidence")
        for place in evidence
        if place["layer"].endswith(PERSONS_LAYERS)
    }
    last = passages.group_by("file").aggregate([("line", "max")])
    last_lines = dict(zip(values(last, "file"), values(last, "line_max"), strict=True))
    typed = pc.field("kind").isin(PEOPLE_KINDS) & (pc.field("kind") != "choice")
    spoken = passages.filter((pc.field("trust") == "user") & typed)
    rows = spoken.sort_by([("file", "ascending"), ("seq", "ascending")]).to_pylist()
    phrases = Phrasebook.of(policy)
    left_out = overtaken | {row["turn_id"] for row in rows if is_injected(row["text"], phrases)}
    chars: Counter[str] = Counter()
    for row in rows:
        chars[row["turn_id"]] += len(row["text"])
    most = policy.threshold("brief_said_chars")
    candidates: list[LineCandidate] = []
    for row in rows:
        if row["turn_id"] in left_out or chars[row["turn_id"]] > most or not row["said_at"]:
            continue
        for text in map(
            on_one_line, quotable_statements(prose_of(row["text"], is_persons=True), is_persons=True)
        ):
            if text and not asks(text) and not has_plain_secret(text):
                candidates.append(
                    _statement_candidate(text, row, row["line"] / last_lines[row["file"]], policy)
                )
    _keep_newest_of_subject(candidates, {}, policy)
    return candidates


def _statement_candidate(text: str, row: Row, place: float, policy: Policy) -> LineCandidate:
    line = f"- {text} ({day(row['said_at'])})"
    subject = subject_in(text, values(policy.tables["query_words"], "word"))
    is_full = len(subject.words) >= policy.threshold("brief_said_words")
    return LineCandidate(
        STATEMENTS,
        (line,) if is_full and not injection_reason(text, policy, FROM_PERSON) else (),
        Choice(STATEMENTS_HEADING, "", line, False, ""),
        frozenset(words_in(text)),
        subject,
        row["said_at"],
        weight=_worth(text, subject, place, policy),
        is_persons=True,
    )


def _worth(text: str, subject: Subject, place: float, policy: Policy) -> float:
    """
    Return how much the next session probably needs a statement, from its words and place in its session.

    Who names many things says why, and what is denied is seen nowhere else; the end of a session, from 0 to
    1, settles what its beginning asked for.
    """
    words = {word.strip(".,;:!?()\"'*`") for word in text.casefold().replace("’", "'").split()}
    is_denied = not words.isdisjoint(policy.derived(_denials))
    worth = math.log1p(len(subject.words)) + policy.threshold("brief_denial") * is_denied
    return float(worth + policy.threshold("brief_told_late") * place)


def _denials(policy: Policy) -> frozenset[str]:
    contrasts = policy.tables["contrast_words"].to_pylist()
    return frozenset(row["word"] for row in contrasts if not row["opposite"])


# Among those of a section


def _keep_newest_of_subject(
    candidates: list[LineCandidate], disputes: Mapping[str, str], policy: Policy
) -> None:
    """Leave out what a newer candidate on the same subject stands for; what is at odds keeps its mark."""
    share = policy.threshold("brief_same_subject")
    least = int(policy.threshold("brief_subject_words"))
    free = [each for each in candidates if each.forms and each.choice.memory_id not in disputes]
    kept: list[LineCandidate] = []
    for candidate in sorted(free, key=_newest_first):
        same = [
            o
            for o in kept
            if (candidate.place is None or o.place is None)  # else both were seen, and both are told
            and is_same_subject(candidate.subject, o.subject, share=share, least_words=least)
        ]
        if same and not candidate.is_on_purpose:
            candidate.leave_out(f"same subject as {same[0].name}, which is newer")
        else:
            kept.append(candidate)


def _leave_out_work_done(candidates: Iterable[LineCandidate]) -> None:
    """Leave out steps of the day: where the work stands is told, and the repository holds what was done."""
    for candidate in candidates:
        if candidate.forms and not candidate.is_on_purpose:
            candidate.leave_out("work done: where the work stands is told above")


def _shorten_older_plans(candidates: Iterable[LineCandidate], policy: Policy) -> None:
    """Tell in one line what is unfinished of plans that others followed, or that sessions went by without."""
    free = [each for each in candidates if each.forms and each.is_plan and each.place is None]
    idle, older_plans = policy.threshold("brief_plan_idle_sessions"), policy.threshold("brief_older_plans")
    is_followed, short_plans = False, 0
    for candidate in sorted((each for each in free if not each.is_on_purpose), key=_newest_first):
        if not is_followed and candidate.sessions_since < idle:
            is_followed = True
        elif short_plans < older_plans:
            candidate.forms = candidate.forms[-1:]
            short_plans += 1
        else:
            candidate.leave_out("older than the unfinished plans that are told")


def _newest_first(candidate: LineCandidate) -> tuple[Any, ...]:
    said_at = candidate.updated_at.timestamp() if candidate.updated_at else 0.0
    return (not candidate.is_on_purpose, -said_at, -candidate.rank, candidate.choice.memory_id)


def _keep_latest_outcomes(candidates: list[LineCandidate], latest: int, *, is_read_by_model: bool) -> None:
    """
    Leave out the outcomes that others have followed: what was open then is done, or open still.

    Of those by rules the newest alone says what is open: whether a session settled it later, rules cannot
    see.
    """
    outcomes = [each for each in candidates if each.forms and each.is_record and not each.is_on_purpose]
    for newer, candidate in enumerate(sorted(outcomes, key=_newest_first)):
        if newer >= latest:
            candidate.leave_out(f"{newer} sessions with an outcome followed it")
        elif newer and not is_read_by_model:
            reached = (form.partition(OPEN_LINE)[0] for form in candidate.forms)
            candidate.forms = tuple(form for form in reached if not form.startswith(OPEN_ALONE))
            if not candidate.forms:
                candidate.leave_out("what was open before the last session")
