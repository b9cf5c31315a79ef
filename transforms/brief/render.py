"""The brief: which memories a new session is told of, why those, and their layout (spec 8.4, 11.2)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from cortex.hooks.plain import CLOSING, PREAMBLE, on_one_line
from cortex.transforms.brief.decisions_archive import ARCHIVE_NAME
from cortex.transforms.brief.eligible import (
    ARCHIVE,
    NO_SESSIONS,
    Standing,
    believed,
    is_on_purpose,
    is_plan,
    standings,
    with_choices_first,
)
from cortex.transforms.brief.wording import (
    explicit_forms,
    fact_forms,
    is_persons,
    plan_forms,
    tells_of_the_hour,
)
from cortex.transforms.policy import Policy
from cortex.transforms.redaction.redact import redact
from cortex.transforms.schemas import Row
from cortex.transforms.words.overlap import share_of_all, words_in
from cortex.transforms.words.sentences import first_sentences
from cortex.transforms.words.tokens import tokens_in

# Order of the sections (spec 11.2); their headings are data (memory_types.csv). Progress has two of them.
PLANS = "plans"
REPOSITORY = ""  # what git says of the whole, before the first section
Order = list[tuple[str, Literal["ascending", "descending"]]]
SECTIONS = (PLANS, "decision", "gotcha", "pattern", "architecture", "progress", "context", "code_description")
_PLACES = {section: place for place, section in enumerate((REPOSITORY, *SECTIONS))}
NO_MARKS: Mapping[str, str] = {}
OWN_WORDS = frozenset(("explicit", "code_index"))


@dataclass(frozen=True)
class Choice:
    """One candidate for the brief: where it would stand, its printed line or lines, shown or not, and why."""

    section: str
    memory_id: str
    text: str
    is_shown: bool
    reason: str
    rank: float = 0.0


def lay_out(choices: Iterable[Choice], *, project_name: str) -> str:
    """Return the brief that shows the chosen lines in their order, or nothing if none is shown."""
    lines: list[str] = []
    section = ""
    for choice in choices:
        if choice.is_shown:
            lines += [*(_heading(choice.section) if choice.section != section else []), choice.text]
            section = choice.section
    return _framed(project_name, lines) if section != REPOSITORY else ""


def choose(
    memories: pa.Table,
    edges: pa.Table,
    policy: Policy,
    *,
    project_name: str,
    budget_tokens: int,
    marks: Mapping[str, str] = NO_MARKS,
    sessions: pa.Table = NO_SESSIONS,
    repository: str = "",
) -> list[Choice]:
    """
    Return every candidate for the brief in the order of printing, each shown or left out with its reason.

    Candidates are active, believed, sure enough, and among the best-ranked of their type. What a person said
    on purpose (remembered, edited, pinned) is seated first; then each section gets its guaranteed lines, by
    turns; then rank alone decides until the budget is spent. Decisions stay within their share of it.
    """
    memories = with_choices_first(memories, policy)
    memories = memories.append_column("is_on_purpose", is_on_purpose(memories))
    rows = believed(memories, policy)
    standing = standings(rows, sessions, policy)
    disputes = _disputes(edges, rows)
    for memory_id, mark in marks.items():
        disputes[memory_id] = f" {on_one_line(mark)}{disputes.get(memory_id, '')}"
    candidates = [
        _candidate(
            section,
            row,
            disputes.get(row["memory_id"], ""),
            standing.get(row["memory_id"], Standing()),
            policy,
        )
        for section in SECTIONS
        for row in memories.take(_best(rows, section, standing, policy)).to_pylist()
    ]
    signs = [*_about_repository(repository), *_sign_to_archive(standing, policy)]
    room = _Room(project_name, budget_tokens, policy)
    for candidate in [*signs, *_by_turns(candidates, int(policy.threshold("brief_section_lines")))]:
        room.seat(candidate)
    printed = sorted([*candidates, *signs], key=lambda candidate: _PLACES[candidate.section])
    return [candidate.choice for candidate in printed]


# Candidates


@dataclass
class _Candidate:
    """A memory on its way into the brief: its forms from full to short, what it weighs, what became of it."""

    section: str
    forms: tuple[str, ...]
    choice: Choice
    words: frozenset[str] = frozenset()
    is_pinned: bool = False
    rank: float = 0.0
    is_guaranteed: bool = False
    is_persons: bool = False
    is_on_purpose: bool = False

    def decide(self, text: str, is_shown: bool, reason: str) -> None:
        self.choice = replace(self.choice, text=text, is_shown=is_shown, reason=reason)


def _best(
    rows: pa.Table, section: str, standing: Mapping[str, Standing], policy: Policy
) -> "pa.ChunkedArray[Any]":
    """
    Return the positions of a section's best rows, in an order that does not depend on theirs.

    Those in the decisions archive last, then pinned first and what was said on purpose, then by rank
    (progress: newest first). Twice as many as the section may show, since repetitions fall away later.
    """
    memory_type = _memory_type(section)
    rows_of_type = rows.filter(pc.field("memory_type") == memory_type)
    archived = [name for name, known in standing.items() if known.tier == ARCHIVE]
    is_archived = pc.is_in(rows_of_type["memory_id"], pa.array(archived, pa.string()))
    rows_of_type = rows_of_type.append_column("is_archived", is_archived)
    order: Order = [
        ("is_archived", "ascending"),
        ("is_pinned", "descending"),
        ("is_on_purpose", "descending"),
        ("rank", "descending"),
        ("updated_at", "descending"),
    ]
    if memory_type == "progress":
        rows_of_type = rows_of_type.filter(is_plan() if section == PLANS else ~is_plan())
        order.remove(("rank", "descending"))
    best = rows_of_type.sort_by([*order, ("memory_id", "ascending")])
    return best.slice(0, 2 * policy.brief_lines(memory_type))["position"]


def _memory_type(section: str) -> str:
    return "progress" if section == PLANS else section


def _section_heading(section: str, policy: Policy) -> str:
    headings = policy.brief_section(_memory_type(section)).split(" / ")
    return headings[0] if section == PLANS else headings[-1]


def _candidate(section: str, row: Row, dispute: str, standing: Standing, policy: Policy) -> _Candidate:
    """Return a memory with its forms; a decision that many sessions passed by fades (spec 8.4)."""
    choice = Choice(_section_heading(section, policy), row["memory_id"], "", False, "", row["rank"])
    forms = _forms(section, row, policy)
    choice = replace(choice, text=forms[0])
    if standing.tier == "short":
        forms = forms[-1:]
    reason = _reason_against(section, row, standing, policy)
    if reason:
        forms, choice = (), replace(choice, reason=reason)
    return _Candidate(
        section,
        tuple(form + dispute for form in forms),
        choice,
        frozenset(words_in(row["text"])),
        row["is_pinned"],
        row["rank"],
        is_persons=is_persons(row),
        is_on_purpose=row["is_on_purpose"],
    )


def _forms(section: str, row: Row, policy: Policy) -> tuple[str, ...]:
    if section == PLANS:
        return plan_forms(row, policy)
    # A pinned fact is in the words of its session; remembered and edited ones are in a person's own.
    is_own_wording = row["is_on_purpose"] and row["trust"] == "user" and row["source_type"] in OWN_WORDS
    return explicit_forms(row, policy) if is_own_wording else fact_forms(row, policy)


def _reason_against(section: str, row: Row, standing: Standing, policy: Policy) -> str:
    """Return why a memory is left out whatever the room, or nothing; on purpose, only age speaks against."""
    since = standing.sessions_since
    if standing.tier == ARCHIVE:
        return f"untouched for {since} sessions: {ARCHIVE_NAME}"
    if row["is_on_purpose"]:
        return ""
    if section == PLANS and since >= policy.threshold("brief_plan_idle_sessions"):
        return f"{since} sessions went by without it"
    is_passing = section in policy.types_with("is_passing")
    if is_passing and is_persons(row):
        return "a request or question: its outcome counts"
    if is_passing and tells_of_the_hour(row["text"], policy.tables["telling_words"]):
        return "true for the hour it was said in"
    return ""


def _disputes(edges: pa.Table, rows: pa.Table) -> dict[str, str]:
    """Return, by memory id, the mark of a memory that another believed one contradicts."""
    contradictions = edges.filter(pc.field("edge_type") == "contradicts").to_pylist()
    pairs = {(edge["source_id"], edge["target_id"]) for edge in contradictions}
    pairs |= {(target_id, source_id) for source_id, target_id in pairs}
    ends = pa.array(sorted({source_id for source_id, _ in pairs}), pa.string())
    # Only decisions can be at odds: an overview is not refuted by the change that came after it.
    is_end = pc.field("memory_id").isin(ends) & (pc.field("memory_type") == "decision")
    named = rows.filter(is_end).to_pylist()
    texts = {row["memory_id"]: on_one_line(row["text"]) for row in named}
    contradicting: dict[str, list[str]] = {}
    for name, other in pairs:
        if name != other and name in texts and other in texts:
            contradicting.setdefault(name, []).append(first_sentences(texts[other], count=1, chars=60))
    return {name: f' [contradicted by "{min(others)}"]' for name, others in contradicting.items()}


def _about_repository(line: str) -> list[_Candidate]:
    text = on_one_line(line)
    return [_Candidate(REPOSITORY, (text,), Choice(REPOSITORY, "", text, False, ""))] if text else []


def _sign_to_archive(standing: Mapping[str, Standing], policy: Policy) -> list[_Candidate]:
    """Return one candidate that says how many decisions are in the archive only, or none."""
    count = sum(place.tier == ARCHIVE for place in standing.values())
    line = f"- {count} older: {ARCHIVE_NAME}, `cortex brief --archive`"
    heading = _section_heading("decision", policy)
    return [_Candidate("decision", (line,), Choice(heading, "", line, False, ""))] if count else []


# Layout


def _framed(project_name: str, lines: Iterable[str]) -> str:
    title = f"# Notes from earlier sessions: {on_one_line(redact(project_name)[0])}"
    return "\n".join([title, PREAMBLE, *lines, "", CLOSING, ""])


def _heading(section: str) -> list[str]:
    return ["", f"## {section}"] if section else []


# Filling


def _by_turns(candidates: list[_Candidate], guaranteed_lines: int) -> list[_Candidate]:
    """Return the candidates in the order of seating: on purpose, the guaranteed by turns, rest by rank."""
    meant = (candidate for candidate in candidates if candidate.is_on_purpose)
    on_purpose = sorted(meant, key=_standing_order, reverse=True)
    queues: dict[str, list[_Candidate]] = {}
    for candidate in candidates:
        if candidate.is_on_purpose:
            continue
        queues.setdefault(candidate.section, []).append(candidate)
    first = [
        queue[turn] for turn in range(guaranteed_lines) for queue in queues.values() if turn < len(queue)
    ]
    for candidate in first:
        candidate.is_guaranteed = True
    rest = [candidate for queue in queues.values() for candidate in queue[guaranteed_lines:]]
    return [*on_purpose, *first, *sorted(rest, key=lambda candidate: candidate.rank, reverse=True)]


def _standing_order(candidate: _Candidate) -> tuple[bool, float]:
    return candidate.is_pinned, candidate.rank


class _Room:
    """What is left of the budget, and who has a seat."""

    def __init__(self, project_name: str, budget_tokens: int, policy: Policy) -> None:
        frame = _framed(project_name, [])
        budget = min(budget_tokens, int(policy.threshold("brief_max_tokens")))
        self.policy = policy
        self.free_tokens = budget - tokens_in(frame)
        self.free_chars = int(policy.threshold("brief_max_chars")) - len(frame)
        self.free_decision_tokens = int(budget * policy.threshold("brief_decision_share"))
        self.seated: list[_Candidate] = []

    def seat(self, candidate: _Candidate) -> None:
        """Show the candidate in its fullest form that fits, or leave it out and say why."""
        same_words_from = self.policy.threshold("brief_same_words")
        for other in self.seated:
            if share_of_all(candidate.words, other.words) >= same_words_from:
                candidate.decide(
                    candidate.choice.text, False, f"says the same as {other.choice.memory_id[:8]}"
                )
                return
        for form in candidate.forms:
            problem = self._problem(candidate, form)
            if not problem:
                self._take(candidate, form)
                return
            candidate.decide(form, False, problem)

    def _problem(self, candidate: _Candidate, form: str) -> str:
        """Return what keeps `form` out of the brief, or nothing."""
        added = self._added(candidate, form)
        tokens = tokens_in(added)
        lines = self._lines(candidate) + _line_count(form)
        if candidate.section != REPOSITORY and lines > self._line_cap(candidate):
            return f"{candidate.choice.section} has all its lines"
        if candidate.section == "decision" and tokens > self.free_decision_tokens:
            return "decisions have their share of the budget"
        return "no room left" if tokens > self.free_tokens or len(added) > self.free_chars else ""

    def _take(self, candidate: _Candidate, form: str) -> None:
        added = self._added(candidate, form)
        self.free_tokens -= tokens_in(added)
        self.free_chars -= len(added)
        if candidate.section == "decision":
            self.free_decision_tokens -= tokens_in(added)
        self.seated.append(candidate)
        candidate.decide(form, True, "pinned" if candidate.is_pinned else _why(candidate))

    def _added(self, candidate: _Candidate, form: str) -> str:
        """Return all that showing `form` adds: its lines, and the heading where it opens its section."""
        heading = [] if self._lines(candidate) else _heading(candidate.choice.section)
        return "\n".join([*heading, form, ""])

    def _lines(self, candidate: _Candidate) -> int:
        return sum(
            _line_count(other.choice.text) for other in self.seated if other.section == candidate.section
        )

    def _line_cap(self, candidate: _Candidate) -> int:
        return self.policy.brief_lines(_memory_type(candidate.section))


def _why(candidate: _Candidate) -> str:
    """Return why a line that is not pinned is in the brief."""
    if candidate.section == REPOSITORY:
        return "the repository has moved on"
    if not candidate.choice.memory_id:
        return "says where the rest is"
    if candidate.is_on_purpose:
        return f"said on purpose, rank {candidate.rank:.2f}"
    place = "among the first of its section, " if candidate.is_guaranteed else ""
    who = ", in the user's words" if candidate.is_persons else ""
    return f"{place}rank {candidate.rank:.2f}{who}"


def _line_count(form: str) -> int:
    return form.count("\n") + 1
