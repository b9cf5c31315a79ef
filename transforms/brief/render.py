"""
The brief: which memories a new session is told of within its budget, their layout, and what goes to the
archive.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cortex.hooks.echo import fingerprints_of
from cortex.hooks.evidence.text import is_same_subject
from cortex.hooks.identity import content_id
from cortex.hooks.prose.plain import CLOSING, MORE, PREAMBLE, PREAMBLE_BY_MODEL, on_one_line
from cortex.hooks.tokens import tokens_in
from cortex.transforms.brief.candidates import (
    NO_SESSIONS,
    LineCandidate,
    about_repository,
    archived_decisions,
    believed,
    brief_project,
    candidates_of,
    eligibility_by_id,
    places_in,
    printed_order,
    sign_to_archive,
    statement_candidates,
)
from cortex.transforms.brief.explanation import (
    CONFIRM,
    NO_ORDER,
    REPOSITORY,
    STATE,
    STATEMENTS,
    Choice,
    TellingOrder,
)
from cortex.transforms.brief.wording import day, fraction, full_provenance, without_provenance
from cortex.transforms.database import query
from cortex.transforms.memory.link import contrary_rules
from cortex.transforms.policy import Policy
from cortex.transforms.redaction.redact import kinds_of_secret, redact
from cortex.transforms.schemas import PASSAGES, PROPOSED_BY_MODEL, Row, values
from cortex.transforms.words.sentences import first_sentences, share_of_all, share_of_fewer

# -- Spends a brief's budget on lines, the most important first (spec 11.2).


def framed(project_name: str, lines: Iterable[str], *, is_by_model: bool = False) -> str:
    """Return the brief with these lines between its title and its closing words, which say who wrote it."""
    title = f"# Notes from earlier sessions: {on_one_line(redact(project_name)[0])}"
    return "\n".join([title, PREAMBLE_BY_MODEL if is_by_model else PREAMBLE, *lines, "", MORE, CLOSING, ""])


def heading_lines(section: str) -> list[str]:
    """Return the lines that open a section."""
    return ["", f"## {section}"] if section else []


def by_turns(
    candidates: list[LineCandidate], policy: Policy, *, is_read_by_model: bool = True
) -> list[LineCandidate]:
    """
    Return the candidates in the order in which they are taken.

    What was said on purpose, where the work stands, the guaranteed ones of each section by turns, then the
    rest by rank, or by how much they say. If a language model put them in order, that order in the place of
    turns and rank; what has no place in it is left out.
    """
    meant = [candidate for candidate in candidates if candidate.is_on_purpose]
    on_purpose = sorted(meant, key=lambda candidate: (candidate.is_pinned, candidate.rank), reverse=True)
    state = [each for each in candidates if each.section == STATE and not each.is_on_purpose]
    placed = [(each.place, each) for each in candidates if each.place is not None]
    if any(place >= 0 for place, _ in placed):
        for candidate in candidates:
            is_free = candidate.is_on_purpose or candidate.section == STATE or candidate.place is not None
            if not is_free and candidate.forms:
                candidate.leave_out("not among what the language model would tell next")
        ordered = sorted(placed, key=lambda item: (item[0], item[1].choice.memory_id))
        follow = [
            each for _, each in ordered if not each.is_on_purpose and not (each.is_plan or each.is_record)
        ]
        state = [each for each in state if each.is_plan or each.is_record]
        return [*on_purpose, *state, *follow]
    queues: dict[str, list[LineCandidate]] = {}
    for candidate in candidates:
        # What is left out whatever the budget takes nobody's turn.
        if not candidate.is_on_purpose and candidate.section != STATE and candidate.forms:
            queues.setdefault(candidate.section, []).append(candidate)
    by_whom = "brief_section_lines" if is_read_by_model else "brief_section_lines_by_rules"
    guaranteed_lines = int(policy.threshold(by_whom))
    types = policy.types_with("is_guaranteed")
    guaranteed = [queue for section, queue in queues.items() if section in types]
    first = [queue[turn] for turn in range(guaranteed_lines) for queue in guaranteed if turn < len(queue)]
    for candidate in first:
        candidate.is_guaranteed = True
    rest = [each for queue in queues.values() for each in queue if not each.is_guaranteed]
    return [*on_purpose, *state, *first, *sorted(rest, key=lambda candidate: candidate.weight, reverse=True)]


NO_ROOM = "no room left"


class BriefBudget:
    """What is left of a brief's budget, and the lines taken so far."""

    def __init__(
        self, project_name: str, budget_tokens: int, policy: Policy, *, kept_tokens: int = 0
    ) -> None:
        """Start with the whole budget; `kept_tokens` of the budget are kept free until `open_kept`."""
        frame = framed(project_name, [])
        self.policy = policy
        self.kept_tokens = kept_tokens
        self.free_tokens = budget_tokens - tokens_in(frame) - kept_tokens
        self.free_chars = int(policy.threshold("brief_max_chars")) - len(frame)
        self.free_decision_tokens = int(budget_tokens * policy.threshold("brief_decision_share"))
        self.lines: list[LineCandidate] = []
        self._has_newer_left_out = False  # a decision of the last sessions: no older one is told in full

    def take(self, candidate: LineCandidate) -> None:
        """Show the candidate in its fullest form that fits, or leave it out and say why."""
        same_words_from = self.policy.threshold("brief_same_words")
        for other in self.lines if candidate.forms else ():
            if self._is_same(candidate, other, same_words_from):
                candidate.decide(candidate.choice.text, False, f"says the same as {other.name}")
                return
            if self._is_one_subject(candidate, other):
                candidate.decide(candidate.choice.text, False, f"same subject as {other.name}, told above")
                return
        is_passed_over = (
            candidate.section == "decision" and candidate.place is None and self._has_newer_left_out
        )
        for form in candidate.forms[-1:] if is_passed_over and not candidate.is_recent else candidate.forms:
            problem = self._problem(candidate, form)
            if not problem:
                self._add(candidate, form)
                return
            candidate.decide(form, False, problem)
        self._has_newer_left_out |= candidate.is_recent and bool(candidate.forms)

    def open_kept(self) -> None:
        """Add what was kept free of the budget to what is left of it."""
        self.free_tokens += self.kept_tokens
        self.kept_tokens = 0

    def _is_one_subject(self, candidate: LineCandidate, other: LineCandidate) -> bool:
        """Return whether a line of another section tells of one thing; the one on purpose is always told."""
        if candidate.place is not None and other.place is not None:
            return False  # both were seen, and both are told
        if STATEMENTS in (candidate.section, other.section) and not _is_newer(other, candidate):
            return False
        is_free = candidate.section not in (other.section, STATE) and not candidate.is_on_purpose
        return is_free and is_same_subject(
            candidate.subject,
            other.subject,
            share=self.policy.threshold("brief_same_subject"),
            least_words=int(self.policy.threshold("brief_subject_words")),
        )

    @staticmethod
    def _is_same(candidate: LineCandidate, other: LineCandidate, least: float) -> bool:
        """Return whether two lines say the same, or where the work stands holds all of the other."""
        is_in_state = other.section == STATE and len(candidate.words) <= len(other.words)
        share = share_of_fewer if is_in_state and candidate.section != STATE else share_of_all
        if STATEMENTS in (candidate.section, other.section):
            share = share_of_fewer
        return share(candidate.words, other.words) >= least

    def _problem(self, candidate: LineCandidate, form: str) -> str:
        """Return what keeps `form` out of the brief, or nothing."""
        added = self._added(candidate, form)
        tokens = tokens_in(added)
        lines = self._lines(candidate) + _line_count(form)
        is_ordered = candidate.place is not None and candidate.place >= 0
        is_counted = candidate.section not in (REPOSITORY, STATEMENTS, CONFIRM) and not is_ordered
        if is_counted and lines > self.policy.brief_lines(candidate.section):
            return f"{candidate.choice.section} has all its lines"
        if candidate.section == "decision" and not is_ordered and tokens > self.free_decision_tokens:
            return "decisions have their share of the budget"
        return NO_ROOM if tokens > self.free_tokens or len(added) > self.free_chars else ""

    def _add(self, candidate: LineCandidate, form: str) -> None:
        added = self._added(candidate, form)
        self.free_tokens -= tokens_in(added)
        self.free_chars -= len(added)
        if candidate.section == "decision":
            self.free_decision_tokens -= tokens_in(added)
        self.lines.append(candidate)
        candidate.decide(form, True, candidate.reason_for())

    def _added(self, candidate: LineCandidate, form: str) -> str:
        """Return all that showing `form` adds: its lines, and the heading where it opens its section."""
        heading = [] if self._lines(candidate) else heading_lines(candidate.choice.section)
        return "\n".join([*heading, form, ""])

    def _lines(self, candidate: LineCandidate) -> int:
        return sum(
            _line_count(other.choice.text) for other in self.lines if other.section == candidate.section
        )


def _is_newer(candidate: LineCandidate, other: LineCandidate) -> bool:
    return bool(candidate.updated_at and other.updated_at and candidate.updated_at > other.updated_at)


def _line_count(form: str) -> int:
    return form.count("\n") + 1


# -- When a brief asks whether its oldest claims still hold, and the line that asks (spec 8.4).

CONFIRM_HEADING = "Still true?"
QUOTED_CHARS = 70  # two quotes of a line's length and the three commands are within `brief_confirm_tokens`


def asked_until(
    sessions: pa.Table, project_id: str, confirmed_at: datetime | None, policy: Policy
) -> datetime | None:
    """
    Return until when a claim must have been last said to be asked about, or None to ask nothing.

    A brief asks when the project's sessions since `confirmed_at`, when a person last confirmed a claim of it,
    are a multiple of `brief_confirm_sessions` (0: never): of so many briefs one asks, and about no claim
    that was said in the meantime. `sessions` has (project_id, session_id, started_at, ended_at).
    """
    every = int(policy.threshold("brief_confirm_sessions"))
    if every < 1:
        return None
    is_counted = pc.field("project_id") == project_id
    if confirmed_at is not None:
        is_counted &= pc.field("started_at") > pa.scalar(confirmed_at)
    counted = sessions.filter(is_counted).sort_by([("started_at", "descending")])
    is_due = counted.num_rows > 0 and counted.num_rows % every == 0
    return counted["ended_at"][every - 1].as_py() if is_due else None


def question_about(
    candidates: Iterable[LineCandidate], until: datetime, policy: Policy, *, disputed: Container[str]
) -> list[LineCandidate]:
    """
    Return one candidate that asks whether the oldest claims in the brief still hold, or none.

    Asked about is what was last said until then: no state of the work, which the next session renews,
    nothing pinned, and nothing of `disputed`, which `cortex review` asks about.
    """
    guaranteed = policy.types_with("is_guaranteed")
    claims = [
        each
        for each in candidates
        if each.choice.is_shown
        and (each.section in guaranteed or each.is_on_purpose)
        and not each.is_pinned
        and each.choice.memory_id not in disputed
        and each.updated_at is not None
        and each.updated_at <= until
    ]
    oldest = sorted(claims, key=lambda each: (each.updated_at, each.choice.memory_id))
    oldest = oldest[: int(policy.threshold("brief_confirm_claims"))]
    forms = tuple(_question(oldest[:count]) for count in range(len(oldest), 0, -1))
    return [LineCandidate(CONFIRM, forms, Choice(CONFIRM_HEADING, "", forms[0], False, ""))] if forms else []


def _question(claims: Iterable[LineCandidate]) -> str:
    quoted = "; ".join(f'`{each.choice.memory_id[:6]}` "{_words(each)}"' for each in claims)
    return f"- Said long ago: {quoted}. If the user says so: `cortex confirm ID`, or `cortex forget ID`."


def _words(claim: LineCandidate) -> str:
    words = first_sentences(without_provenance(claim.choice.text), count=1, chars=QUOTED_CHARS)
    return words.rstrip(".").replace('"', "'")


# -- The brief: which memories a new session is told of, why those, and their layout (spec 8.4, 11.2).

NO_MARKS: Mapping[str, str] = {}
NO_PASSAGES = PASSAGES.empty()


def lay_out(choices: Iterable[Choice], *, project_name: str, is_by_model: bool = False) -> str:
    """
    Return the brief that shows the chosen lines in their order, or nothing if none is shown.

    `is_by_model` says that a language model wrote what it shows of sessions, not the rules.
    """
    lines: list[str] = []
    section = ""
    for choice in choices:
        if choice.is_shown:
            lines += [*(heading_lines(choice.section) if choice.section != section else []), choice.text]
            section = choice.section
    return framed(project_name, lines, is_by_model=is_by_model) if section != REPOSITORY else ""


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
    confirms_until: datetime | None = None,
    is_read_by_model: bool = True,
    order: TellingOrder = NO_ORDER,
    passages: pa.Table = NO_PASSAGES,
) -> list[Choice]:
    """
    Return every candidate for the brief in the order of printing, each shown or left out with its reason.

    Candidates are active, believed, sure enough, and among the best-ranked of their type; of one subject the
    newest. What a person said on purpose (remembered, edited, pinned) is taken first, then where the work
    stands; then each section gets its guaranteed lines, by turns; then rank alone decides until the budget
    is spent. Decisions stay within their share of it. Where `confirms_until` is given, a last line asks
    whether the oldest claims that were last said until then still hold. If no language model has read
    the project's sessions, decisions come newest first, of the rest what says most, in the place of rank,
    statements of `passages` that a person typed are candidates too, and the last sessions are told
    with what was asked. If one that read all of the project put it in `order`, that decides in the place
    of turns and rank, and what has no place in it is left out, but for what a person said on purpose, what
    was tagged of late, and what is newer than the order.
    """
    places = places_in(memories, order, sessions, policy, brief_project(memories))
    rows = believed(memories, sessions, policy, places=places, is_read_by_model=is_read_by_model)
    eligibility = eligibility_by_id(rows, policy)
    disputes, ended = _disputes(edges, rows, policy), _ended(rows, memories)
    for memory_id, mark in marks.items():
        disputes[memory_id] = f" {on_one_line(mark)}{disputes.get(memory_id, '')}"
    candidates = candidates_of(
        memories, rows, eligibility, disputes, policy, is_read_by_model=is_read_by_model
    )
    for candidate in candidates:
        if candidate.choice.memory_id in ended:
            candidate.leave_out(ended[candidate.choice.memory_id])
    if not is_read_by_model:
        candidates += statement_candidates(passages, memories, policy)
    signs = [*about_repository(repository), *sign_to_archive(eligibility, policy)]
    kept_tokens = int(policy.threshold("brief_confirm_tokens")) if confirms_until else 0
    budget = BriefBudget(project_name, budget_tokens, policy, kept_tokens=kept_tokens)
    ordered = [*signs, *by_turns(candidates, policy, is_read_by_model=is_read_by_model)]
    for candidate in ordered:
        budget.take(candidate)
    if confirms_until:
        budget.open_kept()
        for question in question_about(candidates, confirms_until, policy, disputed=disputes):
            budget.take(question)
            signs.append(question)
        # What the question leaves of its room goes to lines that had none.
        for candidate in ordered:
            if candidate.choice.reason == NO_ROOM:
                budget.take(candidate)
    sections = (REPOSITORY, *policy.brief_sections(), STATEMENTS, CONFIRM)
    printed = sorted(printed_order([*candidates, *signs]), key=lambda each: sections.index(each.section))
    return [candidate.choice for candidate in printed]


def _disputes(edges: pa.Table, rows: pa.Table, policy: Policy) -> dict[str, str]:
    """
    Return, by memory id, the mark of a memory that another believed one contradicts, and neither ended.

    By a rule that is sure both are marked; by a language model what holds though it says that it is no longer
    true: what was said on purpose, or is trusted more than the newer, until a person resolves it.
    """
    contradictions = edges.filter(pc.field("edge_type") == "contradicts").to_pylist()
    ends = {edge[end] for edge in contradictions for end in ("source_id", "target_id")}
    is_end = pc.field("memory_id").isin(pa.array(sorted(ends), pa.string()))
    known = {row["memory_id"]: row for row in rows.filter(is_end).to_pylist()}
    # An overview is not refuted by the change that came after it.
    disputed, sure = policy.types_with("is_disputed"), contrary_rules(policy, is_sure=True)
    against: dict[str, list[str]] = {}
    for edge in contradictions:
        newer, older = known.get(edge["source_id"]), known.get(edge["target_id"])
        if not newer or not older or older["valid_until"] is not None:
            continue
        if edge["rule"] == PROPOSED_BY_MODEL:
            against.setdefault(older["memory_id"], []).append(_came_of(newer))
            continue
        is_asked = all(
            row["memory_type"] in disputed or row["source_type"] == "explicit" for row in (newer, older)
        )
        if edge["rule"] in sure and newer["valid_until"] is None and is_asked:
            against.setdefault(older["memory_id"], []).append(_came_of(newer))
            against.setdefault(newer["memory_id"], []).append(_came_of(older))
    return {name: f' [contradicted by "{min(others)}"]' for name, others in against.items()}


def _came_of(row: Row) -> str:
    """Return the first words of a memory; of a session's record the result, without its goal."""
    text = on_one_line(row["text"])
    text = text.partition("Outcome: ")[2] or text if row["memory_type"] == "outcome" else text
    return first_sentences(text, count=1, chars=60)


def _ended(rows: pa.Table, memories: pa.Table) -> dict[str, str]:
    """Return, by memory id, why the believed rows whose valid time has an end are left out."""
    ended = rows.filter(~pc.field("valid_until").is_null() & (pc.field("memory_type") != "outcome"))
    columns = ["memory_id", "memory_type", "text"]
    is_closer = pc.field("memory_id").isin(ended["closed_by"].combine_chunks())
    closers = {row["memory_id"]: row for row in memories.filter(is_closer).select(columns).to_pylist()}
    reasons = {}
    for row in ended.select(["memory_id", "valid_until", "closed_by"]).to_pylist():
        closer = closers.get(row["closed_by"])
        by = (
            f'"{_came_of(closer)}" ({row["closed_by"][:8]}): cortex review asks'
            if closer
            else row["closed_by"]
        )
        reasons[row["memory_id"]] = f"no longer true since {day(row['valid_until'])}, by {by}"
    return reasons


# -- decisions-archive.md: the decisions that no brief has room for any more, each in full (spec 8.4).


# What `note_states` reads: with sureness and sessions all that a line of the archive follows from.
STATED_COLUMNS = (
    *("memory_id", "memory_type", "text", "reason", "rejected", "files", "tags", "trust", "category"),
    *("updated_at", "evidence"),
)


class ArchiveLine(NamedTuple):
    """A line of the archive, what it follows from as one value (`key`), and the marks of its sentences."""

    key: str
    text: str
    marks: frozenset[str]


NO_LINES: Mapping[str, ArchiveLine] = {}


def archive_lines(
    memories: pa.Table,
    policy: Policy,
    *,
    sessions: pa.Table = NO_SESSIONS,
    known: Mapping[str, ArchiveLine] = NO_LINES,
) -> list[ArchiveLine]:
    """
    Return the lines of the archive, newest first; those that are `known` by their key are not worded again.

    Takes MEMORIES of one project and the global ones, ranked, in any order, and the sessions that passed
    them by. The same memories give the same lines.
    """
    rows = archived_decisions(memories, sessions, policy)
    keys = _keys_of(rows)
    is_new = pa.array([key not in known for key in keys], pa.bool_())
    worded = {key: _archive_line(key, row, policy) for key, row in _new_rows(keys, rows, is_new)}
    lines = [known.get(key) or worded[key] for key in keys]
    return [line for line in lines if line.text]


def _keys_of(rows: pa.Table) -> list[str]:
    states = query("note_states", {}, memories=rows.select(STATED_COLUMNS))
    state_of = dict(zip(values(states, "memory_id"), values(states, "state"), strict=True))
    columns = (values(rows, name) for name in ("memory_id", "confidence", "session_count"))
    return [
        content_id(name, state_of[name], fraction(confidence), str(sessions))
        for name, confidence, sessions in zip(*columns, strict=True)
    ]


def _new_rows(keys: list[str], rows: pa.Table, is_new: "pa.BooleanArray") -> Iterator[tuple[str, Row]]:
    names = [key for key, new in zip(keys, is_new.to_pylist(), strict=True) if new]
    return zip(names, rows.filter(is_new).to_pylist(), strict=True)


def _archive_line(key: str, row: Row, policy: Policy) -> ArchiveLine:
    """Return a decision as a line; without text where it would show a secret."""
    text = _item(row, policy)
    return ArchiveLine(key, "" if kinds_of_secret(text) else text, fingerprints_of(text))


def render_archive(lines: Iterable[ArchiveLine], *, project_name: str) -> str:
    """Return the archive of these lines as Markdown; empty if there is nothing in it."""
    items = [line.text for line in lines]
    if not items:
        return ""
    title = f"# Older decisions: {on_one_line(redact(project_name)[0])}"
    about = (
        "Decisions that many sessions went by without touching. They still hold as far as anybody said. In"
        " brackets: who, day, session, how sure (0 to 1). Recalled, one is back in the brief."
    )
    return "\n".join([title, "", about, "", *items, ""])


def _item(row: Row, policy: Policy) -> str:
    parts = [on_one_line(row["text"])]
    for label, more in (("Why", row["reason"]), ("Rejected", row["rejected"])):
        line = on_one_line(more or "")
        if line and line.rstrip(".…").casefold() not in parts[0].casefold():
            parts.append(f"{label}: {line}")
    return f"- {' '.join(parts)} {full_provenance(row, policy)}"
