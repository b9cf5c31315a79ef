"""What of a brief's budget is left, and who gets a seat in it (spec 11.2)."""

from collections.abc import Iterable

from cortex.hooks.evidence.text import is_same_subject
from cortex.hooks.prose.plain import (
    CLOSING,
    MORE,
    PREAMBLE,
    PREAMBLE_BY_MODEL,
    on_one_line,
)
from cortex.hooks.tokens import tokens_in
from cortex.transforms.brief.brief_sections import (
    CONFIRM,
    GUARANTEED,
    REPOSITORY,
    STATE,
)
from cortex.transforms.brief.candidates import LineCandidate
from cortex.transforms.policy import Policy
from cortex.transforms.redaction.redact import redact
from cortex.transforms.words.overlap import share_of_all, share_of_fewer


def framed(project_name: str, lines: Iterable[str], *, is_by_model: bool = False) -> str:
    """Return the brief with these lines between its title and its closing words, which say who wrote it."""
    title = f"# Notes from earlier sessions: {on_one_line(redact(project_name)[0])}"
    return "\n".join([title, PREAMBLE_BY_MODEL if is_by_model else PREAMBLE, *lines, "", MORE, CLOSING, ""])


def heading_lines(section: str) -> list[str]:
    """Return the lines that open a section."""
    return ["", f"## {section}"] if section else []


def by_turns(candidates: list[LineCandidate], guaranteed_lines: int) -> list[LineCandidate]:
    """
    Return the candidates in the order of seating.

    What was said on purpose, where the work stands, the guaranteed ones of each section by turns, then the
    rest by rank, or the newest first.
    """
    meant = [candidate for candidate in candidates if candidate.is_on_purpose]
    on_purpose = sorted(meant, key=lambda candidate: (candidate.is_pinned, candidate.rank), reverse=True)
    state = [each for each in candidates if each.section == STATE and not each.is_on_purpose]
    queues: dict[str, list[LineCandidate]] = {}
    for candidate in candidates:
        # What is left out whatever the room takes nobody's turn.
        if not candidate.is_on_purpose and candidate.section != STATE and candidate.forms:
            queues.setdefault(candidate.section, []).append(candidate)
    guaranteed = [queue for section, queue in queues.items() if section in GUARANTEED]
    first = [queue[turn] for turn in range(guaranteed_lines) for queue in guaranteed if turn < len(queue)]
    for candidate in first:
        candidate.is_guaranteed = True
    rest = [each for queue in queues.values() for each in queue if not each.is_guaranteed]
    return [*on_purpose, *state, *first, *sorted(rest, key=lambda candidate: candidate.weight, reverse=True)]


class Room:
    """What is left of the budget, and who has a seat."""

    def __init__(
        self, project_name: str, budget_tokens: int, policy: Policy, *, kept_tokens: int = 0
    ) -> None:
        """Open the room; `kept_tokens` of the budget are kept free until `open_kept`."""
        frame = framed(project_name, [])
        budget = min(budget_tokens, int(policy.threshold("brief_max_tokens")))
        self.policy = policy
        self.kept_tokens = kept_tokens
        self.free_tokens = budget - tokens_in(frame) - kept_tokens
        self.free_chars = int(policy.threshold("brief_max_chars")) - len(frame)
        self.free_decision_tokens = int(budget * policy.threshold("brief_decision_share"))
        self.seated: list[LineCandidate] = []

    def seat(self, candidate: LineCandidate) -> None:
        """Show the candidate in its fullest form that fits, or leave it out and say why."""
        same_words_from = self.policy.threshold("brief_same_words")
        for other in self.seated if candidate.forms else ():
            if self._is_same(candidate, other, same_words_from):
                candidate.decide(
                    candidate.choice.text, False, f"says the same as {other.choice.memory_id[:8]}"
                )
                return
            if self._is_one_subject(candidate, other):
                candidate.decide(
                    candidate.choice.text, False, f"same subject as {other.choice.memory_id[:8]}, told above"
                )
                return
        for form in candidate.forms:
            problem = self._problem(candidate, form)
            if not problem:
                self._take(candidate, form)
                return
            candidate.decide(form, False, problem)

    def open_kept(self) -> None:
        """Add what was kept free of the budget to what is left of it."""
        self.free_tokens += self.kept_tokens
        self.kept_tokens = 0

    def _is_one_subject(self, candidate: LineCandidate, other: LineCandidate) -> bool:
        """Return whether a line of another section tells of one thing; the one on purpose is always told."""
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
        return share(candidate.words, other.words) >= least

    def _problem(self, candidate: LineCandidate, form: str) -> str:
        """Return what keeps `form` out of the brief, or nothing."""
        added = self._added(candidate, form)
        tokens = tokens_in(added)
        lines = self._lines(candidate) + _line_count(form)
        if candidate.section not in (REPOSITORY, CONFIRM) and lines > self.policy.brief_lines(
            candidate.section
        ):
            return f"{candidate.choice.section} has all its lines"
        if candidate.section == "decision" and tokens > self.free_decision_tokens:
            return "decisions have their share of the budget"
        return "no room left" if tokens > self.free_tokens or len(added) > self.free_chars else ""

    def _take(self, candidate: LineCandidate, form: str) -> None:
        added = self._added(candidate, form)
        self.free_tokens -= tokens_in(added)
        self.free_chars -= len(added)
        if candidate.section == "decision":
            self.free_decision_tokens -= tokens_in(added)
        self.seated.append(candidate)
        candidate.decide(form, True, candidate.reason_for())

    def _added(self, candidate: LineCandidate, form: str) -> str:
        """Return all that showing `form` adds: its lines, and the heading where it opens its section."""
        heading = [] if self._lines(candidate) else heading_lines(candidate.choice.section)
        return "\n".join([*heading, form, ""])

    def _lines(self, candidate: LineCandidate) -> int:
        return sum(
            _line_count(other.choice.text) for other in self.seated if other.section == candidate.section
        )


def _line_count(form: str) -> int:
    return form.count("\n") + 1
