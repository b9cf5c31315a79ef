"""Layer 1: what a session came to: its goal, what was done and proved, what is open (spec 5.5)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cortex.hooks.evidence.statements import OUTCOME_PART, OUTCOME_PARTS
from cortex.transforms.extract.candidate import Candidate, Turn, line_of, text_of
from cortex.transforms.extract.closing import closing_report
from cortex.transforms.extract.dialogue import without_pasted_lines
from cortex.transforms.extract.open_points import unanswered, unfinished_request, unreported_edits
from cortex.transforms.extract.phrases import Phrasebook
from cortex.transforms.extract.plans import plan_title, request
from cortex.transforms.extract.recaps import Recap, recap_parts, summed_up
from cortex.transforms.extract.stretches import Stretch, stretches
from cortex.transforms.extract.structural import LINES_KEPT, calls_that_ran
from cortex.transforms.extract.working_state import changes_state, typed_commands, working_state
from cortex.transforms.identity import content_id
from cortex.transforms.words.overlap import share_of_fewer, words_in
from cortex.transforms.words.sentences import shortened

# Of 65 records of the labelled sessions 77 % tell a fact that is worth keeping.
OUTCOME_CONFIDENCE = 0.75
GOAL_CHARS = 90
OUTCOME_CHARS = 210
OPEN_CHARS = 140
SAME_STATEMENT_SHARE = 0.7
UNSAID = ("program", "tool_result")
_CLAUSE_END = re.compile(r"[,;:.] |,? (?:so that|so|and|but|because|since|which|where|when|or) | [-–—] |\(")
_NAME = re.compile(r"#\d+|\b[0-9a-f]{7,40}\b")  # of a pull request or a commit
_AT_ONCE = re.compile(r"^(?:(?:also|just|maybe|then|now|please|first)\s+)+", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.?!] |[。？！]")
_SHORTEST_GOAL_CHARS, _FEWEST_GOAL_WORDS = 14, 3
GOAL_STRETCHES = 4


@dataclass(frozen=True)
class _Findings:
    goal: str
    outcome: str
    still_open: str
    turns: tuple[Turn, ...]


def outcome_candidates(turns: Sequence[Turn], phrases: Phrasebook) -> Iterator[Candidate]:
    """
    Yield the outcome record of one thread, or nothing where nothing can be said well.

    `turns` are those of a main thread in their order, with the client's recaps. The record is as of the last
    of them, so that of two records of a session the later one counts; its lines are those that it rests on.
    """
    findings = _findings(turns, phrases)
    if findings is None or not (findings.outcome or (findings.goal and findings.still_open)):
        return
    named = (findings.goal, findings.outcome, findings.still_open)
    text = " ".join(f"{part}: {words}." for part, words in zip(OUTCOME_PARTS, named, strict=True) if words)
    last = max((turn for turn in turns if turn["kind"] not in UNSAID), key=line_of)
    lines = dict.fromkeys(line_of(turn) for turn in reversed(findings.turns))
    yield Candidate(
        last, tuple(lines)[:LINES_KEPT], text, "SESSION_OUTCOME", "outcome", "layer1:outcome", {},
        "assistant", subject=subject_of_session(last), confidence=OUTCOME_CONFIDENCE,
    )  # fmt: skip


def subject_of_session(turn: Turn) -> str:
    """Return the key by which the record of a session is known again when the session has grown."""
    return content_id("outcome", str(turn["project_id"]), str(turn["session_id"]))


def _findings(turns: Sequence[Turn], phrases: Phrasebook) -> _Findings | None:
    parts = stretches(turns)
    if not any(part.asked is not None for part in parts):
        return None
    calls = [*calls_that_ran(turns), *typed_commands(turns)]
    state = working_state(sorted(calls, key=lambda call: line_of(call.turn)))
    recap_turn, recap = _last_recap(turns, phrases)
    if recap_turn is None and not state.has_worked:
        return None
    report = closing_report(parts, phrases, has_commits=bool(state.commits))
    summed = " ".join(recap.done)
    known = [done for done in state.done if not any(name in summed for name in _NAME.findall(done))]
    # What was done since a report that commits followed is not in it.
    is_outdated = recap_turn is not None or (bool(state.commits) and _is_under_way(parts))
    statements = [*recap.done, *known, *(() if is_outdated else report.statements)]
    statements += state.earlier if recap_turn is None else []
    offer, question = unanswered(parts, phrases)
    unfinished = unfinished_request(parts, phrases)
    edits = unreported_edits(parts)
    still_open = [
        *([f"asked last, not seen done: {_decapitalised(unfinished)}"] if unfinished else []),
        *([edits] if edits else []),
        *([recap.next_step] if recap_turn is not None and recap.next_step else []),
        *state.open,
        *(report.left_open[:2] if recap_turn is None else ()),
        *([f"offered, unanswered: {_decapitalised(offer)}"] if offer and recap_turn is None else []),
        *([f"asked, unanswered: {question}"] if question and recap_turn is None else []),
    ]
    rests_on = [*state.turns, *(report.turns if recap_turn is None else (recap_turn,))]
    return _Findings(
        (recap.goal and _bare(recap.goal, GOAL_CHARS)) or _goal(parts, phrases),
        _joined(statements, OUTCOME_CHARS),
        _joined(still_open, OPEN_CHARS),
        tuple(sorted(rests_on or [turns[-1]], key=line_of)),
    )


def _is_under_way(parts: Sequence[Stretch]) -> bool:
    """Return whether the thread ends in the middle of work."""
    return parts[-1].has_worked and not parts[-1].is_answered


def _last_recap(turns: Sequence[Turn], phrases: Phrasebook) -> tuple[Turn | None, Recap]:
    """Return the last recap if nothing was changed after it, taken apart."""
    recaps = [turn for turn in summed_up(turns) if turn["kind"] == "recap"]
    if not recaps or any(
        changes_state(call) for call in calls_that_ran(turns) if line_of(call.turn) > line_of(recaps[-1])
    ):
        return None, Recap()
    recap = recap_parts(text_of(recaps[-1]), phrases)
    return (recaps[-1], recap) if recap.done else (None, Recap())


def _goal(parts: Sequence[Stretch], phrases: Phrasebook) -> str:
    """
    Return what was asked for last that was worked on, a plan's heading or a request in its sentence.

    What was asked longer ago is a step that is done; then the request that opened the session counts.
    """
    worked = next((at for at in range(len(parts) - 1, -1, -1) if parts[at].has_worked), -1)
    latest = [part for part in parts[: worked + 1] if part.asked is not None][-GOAL_STRETCHES:]
    goals = (_asked_for(part, phrases) for part in [*reversed(latest), *parts[:1]])
    return next((goal for goal in goals if goal), "")


def _asked_for(part: Stretch, phrases: Phrasebook) -> str:
    if part.asked is not None and part.asked["kind"] == "plan":
        return _bare(plan_title(part.words), GOAL_CHARS)
    if part.asked is None or part.asked["kind"] not in ("prompt", "command"):
        return ""
    asked = _clause(_AT_ONCE.sub("", request(without_pasted_lines(part.words))))
    is_short = len(asked) < _SHORTEST_GOAL_CHARS or len(asked.split()) < _FEWEST_GOAL_WORDS
    points_at_people = phrases.addressed.search(asked)
    if points_at_people or phrases.chore.search(asked) or (asked.isascii() and is_short):
        return ""
    return _bare(asked[:1].upper() + asked[1:], GOAL_CHARS)


def _clause(asked: str) -> str:
    """Return a request up to where one of its clauses ends, if it is too long; nothing where none does."""
    asked = _SENTENCE_END.split(asked, maxsplit=1)[0]
    if len(asked) <= GOAL_CHARS and not asked.endswith("…"):
        return asked
    ends = [end.start() for end in _CLAUSE_END.finditer(asked[:GOAL_CHARS])]
    return next((asked[:end] for end in ends if end >= _SHORTEST_GOAL_CHARS), "")


def _decapitalised(text: str) -> str:
    return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text


def _joined(statements: Sequence[str], chars: int) -> str:
    """Return as many statements as fit, in their order, none twice; the first is cut where it is too long."""
    kept: list[str] = []
    words: list[set[str]] = []
    for statement in statements:
        bare = _bare(statement, chars)
        own = set(words_in(bare))
        is_repeated = any(share_of_fewer(own, other) >= SAME_STATEMENT_SHARE for other in words)
        if not bare or is_repeated or (kept and len("; ".join([*kept, bare])) > chars):
            continue
        kept.append(bare)
        words.append(own)
    return "; ".join(kept)


def _bare(text: str, chars: int) -> str:
    """Return `text` within `chars` without a full stop, and without what would part it or open a part."""
    return OUTCOME_PART.sub(r"\1 ", shortened(text.replace("; ", ", "), chars)).rstrip(" .。:;")
