"""Layer 1: what a session came to: its goal, what was done and proved, what its calls left, what is open."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cortex.hooks.evidence.statements import OUTCOME_PART, OUTCOME_PARTS
from cortex.hooks.prose.own_prose import EDIT_TOOLS, SHELL_TOOLS, without_pasted
from cortex.transforms.extract.language.candidate import PERSON, Candidate, Turn, line_of, text_of
from cortex.transforms.extract.language.phrases import CHECK_COMMANDS, Phrasebook, part_of
from cortex.transforms.extract.language.statements import plain, prose_blocks
from cortex.transforms.extract.plans import plan_title, request, unchanged_files
from cortex.transforms.extract.prose import without_tags
from cortex.transforms.extract.structural import (
    COMMIT,
    COMMITTED,
    LINES_KEPT,
    MERGED,
    PR_CREATE,
    PULL_REQUEST,
    PUSH,
    Call,
    calls_that_ran,
    commit_message,
    is_red,
    shown_command,
    stopped_checks,
)
from cortex.transforms.extract.user_statements import TERSE_CHARS
from cortex.transforms.identity import content_id
from cortex.transforms.words.sentences import PROSE, sentences, share_of_fewer, shortened, words_in

# -- What the calls of a session left behind: commits, pull requests, pushes, checks and their verdict.

AMEND = re.compile(r"\s--amend\b")
# Serving, installing and formatting prove nothing.
_FORMATS = re.compile(r"\s+(?:format|fmt)\b(?!.*--check)")
NO_PROOF = re.compile(r"(?:\b(?:dev|install|format|fmt|vite|serve|start)[\w:-]*|\bgo run|:fix)$")
# What chooses a part of the checks: a path, a test's name, the value of one of these options.
_PART_ENDS = re.compile(r"[|;&<>\n]|\s\d>")
_CHOOSING = frozenset(("-k", "-m", "-t", "-p", "-run", "--run", "--filter", "--grep", "-g"))
_WHOLE = frozenset((".", "./", "./...", "--"))
_WORDS = re.compile(r"\"[^\"]*\"|'[^']*'|\S+")
_PATH = re.compile(r"/|::|\w\.\w")
CHECK_CHARS = 60
STASH = re.compile(r"\bgit stash\b(?!\s+(?:pop|apply|list|show|drop|clear|branch))")
UNSTASH = re.compile(r"\bgit stash (?:pop|apply|drop|clear|branch)\b")
# What a shell writes into a command in place of a message.
_NO_SUBJECT = re.compile(r"^[\"'$<(]|^\W*$")
SUBJECT_CHARS = 90
SHELL = "Bash"
TYPED_KIND = "shell"
CHECKS_NAMED = 2
_CHANGED_NAMED = 3


@dataclass
class WorkingState:
    """What was done and proved, what is open, and the turns that show it."""

    done: list[str] = field(default_factory=list)
    changed: str = ""  # files that no commit holds, if there is none
    open: list[str] = field(default_factory=list)
    earlier: list[str] = field(default_factory=list)  # commits before the last, latest first
    turns: list[Turn] = field(default_factory=list)
    commits: list[tuple[str, str]] = field(default_factory=list)  # hash, subject
    has_worked: bool = False  # changed a file, committed or checked something


@dataclass
class _Trail:
    """The calls of a session as far as they leave a state."""

    commits: list[tuple[str, str, Turn]] = field(default_factory=list)  # hash, subject
    pull_requests: list[tuple[str, Turn]] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)  # files that no commit holds yet, in order
    is_merged: bool = False
    is_pushed: bool = True
    is_committed: bool = True
    is_stashed: bool = False
    checks: dict[str, tuple[bool, Turn]] = field(default_factory=dict)  # failed, by command; since the edits
    last_check: tuple[str, bool, Turn] | None = None  # command, failed


def working_state(calls: Sequence[Call]) -> WorkingState:
    """Return the state in which the calls of one thread that ran leave its work."""
    trail = _Trail()
    for call in calls:
        _follow(trail, call)
    state = WorkingState(commits=[(name, subject) for name, subject, _ in trail.commits])
    state.has_worked = bool(trail.commits or trail.pull_requests or not trail.is_committed)
    _add_commits(trail, state)
    _add_checks(trail, state)
    if trail.is_stashed:
        state.open.append("changes are stashed")
    return state


def typed_commands(turns: Sequence[Turn]) -> list[Call]:
    """Return the commands that a person ran at the client, whose output is not in the session."""
    return [
        Call(turn, {**turn, "text": ""}, SHELL, failed=False) for turn in turns if turn["kind"] == TYPED_KIND
    ]


def changes_state(call: Call) -> bool:
    """Return whether a call changes what a recap before it says: a file, a commit, what is published."""
    if call.failed:
        return False
    is_command = call.tool in SHELL_TOOLS
    return call.tool in EDIT_TOOLS or (
        is_command and any(sign.search(call.argument) for sign in (COMMIT, PUSH, PR_CREATE, MERGED))
    )


def _add_commits(trail: _Trail, state: WorkingState) -> None:
    if trail.commits:
        names = [f"{subject}{f' ({name})' if name else ''}" for name, subject, _ in trail.commits]
        before = f"{len(names)} commits, the last: " if len(names) > 1 else "Committed: "
        state.done.append(f"{before}{names[-1]}")
        state.earlier = names[-2::-1]
        state.turns += [turn for _, _, turn in trail.commits]
    for number, turn in trail.pull_requests[-1:]:
        state.done.append(f"PR{f' #{number}' * bool(number)} {'merged' if trail.is_merged else 'opened'}")
        state.turns.append(turn)
    # Whether these are committed is not said: most are committed soon after, unseen by any session.
    names = list(dict.fromkeys(reversed(trail.changed)))
    if names and not trail.commits:
        more = f" and {len(names) - _CHANGED_NAMED} more" if len(names) > _CHANGED_NAMED else ""
        state.changed = f"changed {', '.join(names[:_CHANGED_NAMED])}{more}"
    if trail.commits and not trail.is_pushed:
        state.open.append("not pushed")


def _add_checks(trail: _Trail, state: WorkingState) -> None:
    """Say of the checks since the last edit whether they passed, and of the last one of all if it failed."""
    red = [command for command, (failed, _) in trail.checks.items() if failed]
    green = [command for command, (failed, _) in trail.checks.items() if not failed][-CHECKS_NAMED:]
    if green:
        named = " and ".join(f"`{command}`" for command in green)
        state.done.append(f"{named} {'passes' if len(green) == 1 else 'pass'}")
        state.turns += [trail.checks[command][1] for command in green]
    failed_last = [(red[-1], trail.checks[red[-1]][1])] if red else []
    if not trail.checks and trail.last_check is not None and trail.last_check[1]:
        failed_last = [(trail.last_check[0], trail.last_check[2])]
    for command, turn in failed_last:
        state.open.append(f"`{command}` failed when it last ran")
        state.turns.append(turn)


def _follow(trail: _Trail, call: Call) -> None:
    if call.tool in EDIT_TOOLS and not call.failed:
        trail.is_committed = False
        trail.changed.append(call.argument.replace("\\", "/").rsplit("/", 1)[-1])
        trail.checks.clear()
        return
    if call.tool not in SHELL_TOOLS:
        return
    for check in CHECK_COMMANDS.finditer(call.argument):
        if not NO_PROOF.search(check[0]) and not _FORMATS.match(call.argument, check.end()):
            _check(trail, call, _with_part(check, call.argument))
    if call.failed:
        return
    _stash(trail, call)
    if COMMIT.search(call.argument):
        _commit(trail, call)
    if PUSH.search(call.argument):
        trail.is_pushed = True
    opened = PULL_REQUEST.search(text_of(call.result))
    if PR_CREATE.search(call.argument) and (opened or call.turn["kind"] == TYPED_KIND):
        trail.pull_requests.append((opened[1] if opened else "", call.result))
        trail.is_merged, trail.is_pushed = False, True
    trail.is_merged = trail.is_merged or bool(MERGED.search(call.argument))


def _check(trail: _Trail, call: Call, command: str) -> None:
    trail.checks.pop(command, None)
    if call.turn["kind"] == TYPED_KIND:
        return  # its output is not in the session
    trail.checks[command] = (is_red(call), call.result)
    trail.last_check = (command, *trail.checks[command])


def _with_part(check: re.Match[str], command: str) -> str:
    """
    Return the name of a check with what chose a part of it: a pass of that part says nothing of the rest.

    >>> command = "uv run pytest -q tests/test_tide.py 2>&1 | tail"
    >>> _with_part(CHECK_COMMANDS.search(command), command)
    'pytest tests/test_tide.py'
    """
    rest = [word.strip("()") for word in _WORDS.findall(_PART_ENDS.split(command[check.end() :])[0])]
    parts: list[str] = []
    for before, word in zip(["", *rest], rest, strict=False):
        is_path = not word.startswith("-") and _PATH.search(word) and word not in _WHOLE
        if is_path or word in _CHOOSING or before in _CHOOSING:
            parts.append(word)
    named = " ".join([check[0], *parts])
    if len(named) > CHECK_CHARS:
        ends = (part.rstrip("/").rsplit("/", 1)[-1].rsplit("::")[-1] for part in parts)
        named = " ".join([check[0], *ends])
    return named if len(named) <= CHECK_CHARS else f"{check[0]} …"


def _stash(trail: _Trail, call: Call) -> None:
    for command in _PART_ENDS.split(call.argument):
        if UNSTASH.search(command):
            trail.is_stashed = False
        elif STASH.search(command):
            trail.is_stashed = True


def _commit(trail: _Trail, call: Call) -> None:
    message = plain(commit_message(call.argument).split("\n", 1)[0])
    commits = [(name, plain(subject)) for _, name, subject in COMMITTED.findall(text_of(call.result))]
    if not commits and not _NO_SUBJECT.search(message):
        commits = [("", message)]
    if AMEND.search(call.argument) and commits and trail.commits:
        trail.commits.pop()
    for name, subject in commits:
        trail.commits.append((name, shortened(subject.rstrip("."), SUBJECT_CHARS), call.result))
    if commits:
        trail.is_committed, trail.is_pushed = True, False
        trail.changed.clear()


GOAL_CHARS = 90
OUTCOME_CHARS = 210
OPEN_CHARS = 140
SAME_STATEMENT_SHARE = 0.7
UNSAID = ("program", "tool_result")
_CLAUSE_END = re.compile(r"[,;:.] |,? (?:so that|so|and|but|because|since|which|where|when|or) | [-–—] |\(")
_NAME = re.compile(r"#\d+|\b[0-9a-f]{7,40}\b")  # of a pull request or a commit
_AT_ONCE = re.compile(r"^(?:(?:also|just|maybe|then|now|please|first)\s+)+", re.IGNORECASE)
_WIDE_STOP = re.compile(r"(?<=[。！？])(?=\S)")
_PRONOUN = re.compile(r"(?:it|they|this|that|these|those|yes|no|ok(?:ay)?|thanks?)\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.?!] |[。？！]")
_MIN_GOAL_CHARS, _MIN_GOAL_WORDS = 14, 3
GOAL_EXCHANGES = 4
FAULT_CHARS, _MIN_FAULT_CHARS = 90, 12
_FILES_NAMED = 3
_MIN_OFFER_CHARS = 12
# "ship it", "do 0.54.0": an order in a few words says what was under way.
_MAX_ORDER_CHARS = 40
_MIN_QUESTION_WORDS = 4
_MIN_QUESTION_CHARS = 15
_MAX_QUESTION_CHARS = 120
WORK = (COMMIT, PUSH, PR_CREATE, MERGED, CHECK_COMMANDS)


def is_work(call: Turn) -> bool:
    """Return whether a call changes a file, commits, publishes or checks."""
    if call["tool_name"] in EDIT_TOOLS:
        return True
    return call["tool_name"] in SHELL_TOOLS and any(sign.search(text_of(call)) for sign in WORK)


@dataclass
class Exchange:
    """A person's prompt and all that follows up to the next one."""

    asked: Turn | None
    turns: list[Turn] = field(default_factory=list)

    @property
    def answer(self) -> Turn | None:
        """Return the last words of the assistant, if no call comes after them."""
        spoken = [turn for turn in self.turns if turn["kind"] in ("text", "tool_call")]
        return spoken[-1] if spoken and spoken[-1]["kind"] == "text" else None

    @property
    def has_worked(self) -> bool:
        """Return whether files were changed or commands run that change or check something."""
        return any(turn["kind"] == "tool_call" and is_work(turn) for turn in self.turns)

    @property
    def edited(self) -> list[str]:
        """Return the files that were to be changed, in the order of their last change."""
        calls = [turn for turn in self.turns if turn["tool_name"] in EDIT_TOOLS and text_of(turn)]
        return list(dict.fromkeys(text_of(turn) for turn in reversed(calls)))

    @property
    def is_answered(self) -> bool:
        """Return whether the assistant said anything at its end."""
        return self.answer is not None

    @property
    def words(self) -> str:
        """Return what the person said."""
        return text_of(self.asked) if self.asked is not None else ""


def exchanges_in(turns: Sequence[Turn]) -> list[Exchange]:
    """Return the exchanges of one thread in order; turns before the first prompt form one without a
    prompt."""
    parts = [Exchange(None)]
    for turn in turns:
        if turn["kind"] in PERSON:
            parts.append(Exchange(turn))
        else:
            parts[-1].turns.append(turn)
    return parts if parts[0].turns else parts[1:]


@dataclass(frozen=True)
class Recap:
    """A recap taken apart: what the session is for, what was done, what comes next."""

    goal: str = ""
    done: tuple[str, ...] = ()
    next_step: str = ""


@dataclass(frozen=True)
class _Findings:
    goal: str
    outcome: str
    still_open: str
    turns: tuple[Turn, ...]


def outcome_candidates(turns: Sequence[Turn], phrases: Phrasebook) -> Iterator[Candidate]:
    """
    Yield the outcome record of one thread, or nothing if nothing can be said well.

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
        last, tuple(lines)[:LINES_KEPT], text, "SESSION_OUTCOME", "outcome", "layer1:outcome", "outcome",
        "assistant", subject=subject_of_session(last),
    )  # fmt: skip


def subject_of_session(turn: Turn) -> str:
    """Return the key by which the record of a session is known again when the session has grown."""
    return content_id("outcome", str(turn["project_id"]), str(turn["session_id"]))


def _findings(turns: Sequence[Turn], phrases: Phrasebook) -> _Findings | None:
    parts = exchanges_in(turns)
    if not any(part.asked is not None for part in parts):
        return None
    calls = [*calls_that_ran(turns), *typed_commands(turns)]
    state = working_state(sorted(calls, key=lambda call: line_of(call.turn)))
    recap_turn, recap = _last_recap(turns, phrases)
    if recap_turn is None and not state.has_worked:
        return None
    _add_undone(turns, calls, state)
    summed = " ".join(recap.done)
    known = [done for done in state.done if not any(name in summed for name in _NAME.findall(done))]
    statements = [*recap.done, *known]
    if recap_turn is None:
        statements = [state.changed, *statements, *state.earlier]
    rests_on = [*state.turns, *([recap_turn] if recap_turn is not None else [])]
    return _Findings(
        (recap.goal and _bare(recap.goal, GOAL_CHARS)) or _goal(parts, phrases),
        _joined(statements, OUTCOME_CHARS),
        _joined(_open_points(parts, recap, state.open, phrases), OPEN_CHARS),
        tuple(sorted(rests_on or [turns[-1]], key=line_of)),
    )


def _add_undone(turns: Sequence[Turn], calls: Sequence[Call], state: WorkingState) -> None:
    """Name what a person stopped, and what a plan lists and nobody changed."""
    for turn, words in stopped_checks(turns):
        command = shortened(shown_command(text_of(turn)), CHECK_CHARS)
        quoted = f': "{shortened(words, FAULT_CHARS)}"' if words else ""
        state.open.append(f"`{command}` was stopped by the user{quoted}")
        state.turns.append(turn)
    if names := unchanged_files(turns, calls):
        more = f" and {len(names) - _FILES_NAMED} more" if len(names) > _FILES_NAMED else ""
        state.open.append(f"planned, not changed: {', '.join(names[:_FILES_NAMED])}{more}")


def _last_recap(turns: Sequence[Turn], phrases: Phrasebook) -> tuple[Turn | None, Recap]:
    """Return the last recap if nothing was changed after it, taken apart."""
    recaps = summed_up(turns)
    if not recaps or any(
        changes_state(call) for call in calls_that_ran(turns) if line_of(call.turn) > line_of(recaps[-1])
    ):
        return None, Recap()
    recap = recap_parts(text_of(recaps[-1]), phrases)
    return (recaps[-1], recap) if recap.done else (None, Recap())


def _goal(parts: Sequence[Exchange], phrases: Phrasebook) -> str:
    """
    Return what was asked for last that was worked on, a plan's heading or a request in its sentence.

    What was asked longer ago is a step that is done; then the request that opened the session counts.
    """
    worked = next((at for at in range(len(parts) - 1, -1, -1) if parts[at].has_worked), -1)
    latest = [part for part in parts[: worked + 1] if part.asked is not None][-GOAL_EXCHANGES:]
    goals = (_asked_for(part, phrases) for part in [*reversed(latest), *parts[:1]])
    quoted = (_quoted(part) for part in [*reversed(latest), *parts[:1]])
    return next((goal for goal in [*goals, *quoted] if goal), "")


def _quoted(part: Exchange) -> str:
    """Return the first whole sentence that a person typed, as a quotation; nothing if it points back."""
    if part.asked is None or part.asked["kind"] not in ("prompt", "command"):
        return ""
    for spoken in prose_sentences(without_pasted(part.words).replace("\n", " ")):
        sentence = spoken.strip().rstrip(".")
        is_whole = len(sentence.split()) > _MIN_GOAL_WORDS and not _PRONOUN.match(sentence)
        if is_whole and len(sentence) <= GOAL_CHARS and not sentence.endswith("?"):
            whole = OUTCOME_PART.sub(r"\1 ", sentence)
            return f'"{whole}"'
    return ""


def _asked_for(part: Exchange, phrases: Phrasebook) -> str:
    if part.asked is not None and part.asked["kind"] == "plan":
        return _bare(plan_title(part.words), GOAL_CHARS)
    if part.asked is None or part.asked["kind"] not in ("prompt", "command"):
        return ""
    asked = _clause(_AT_ONCE.sub("", request(without_pasted(part.words))))
    is_short = len(asked) < _MIN_GOAL_CHARS or len(asked.split()) < _MIN_GOAL_WORDS
    points_at_people = phrases.addressed.search(asked)
    if points_at_people or phrases.chore.search(asked) or (asked.isascii() and is_short):
        return ""
    return _bare(asked[:1].upper() + asked[1:], GOAL_CHARS)


def _clause(asked: str) -> str:
    """Return a request up to where one of its clauses ends, if it is too long; nothing if none does."""
    asked = _SENTENCE_END.split(asked, maxsplit=1)[0]
    if len(asked) <= GOAL_CHARS and not asked.endswith("…"):
        return asked
    ends = [end.start() for end in _CLAUSE_END.finditer(asked[:GOAL_CHARS])]
    return next((asked[:end] for end in ends if end >= _MIN_GOAL_CHARS), "")


def _decapitalised(text: str) -> str:
    return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text


def _joined(statements: Sequence[str], chars: int) -> str:
    """Return as many statements as fit, in their order, none twice; the first is cut if it is too long."""
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


# What the client itself sums up of a session that was left: its recaps


def summed_up(turns: Sequence[Turn]) -> list[Turn]:
    """Return the recaps that tell of this thread: those with an answer before them."""
    first = next((at for at, turn in enumerate(turns) if turn["kind"] in ("text", "tool_call")), len(turns))
    return [turn for turn in turns[first:] if turn["kind"] == "recap"]


def recap_parts(text: str, phrases: Phrasebook) -> Recap:
    """Return a recap taken apart."""
    goal, next_step = "", ""
    done: list[str] = []
    for sentence in prose_sentences(text):
        if step := phrases.next_named.match(sentence):
            next_step = "" if phrases.no_next.search(part_of(step)) else part_of(step)
        elif phrases.no_next.search(sentence) or sentence.endswith(("?", "？")):
            continue
        elif aim := phrases.goal_named.match(sentence):
            goal = goal or part_of(aim)
        else:
            done.append(as_action(sentence, phrases))
    return Recap(_opened(goal), tuple(done), _opened(next_step))


def as_action(sentence: str, phrases: Phrasebook) -> str:
    """Return what the assistant says it did with the action first, without filler."""
    text = phrases.own_deed.cut_from(phrases.without_filler(sentence).strip())
    first = text.split(" ", 1)[0].rstrip(",.:")
    return text[:1].upper() + text[1:] if first.isalpha() else text  # no file name and no version


def prose_sentences(text: str) -> list[str]:
    """Return the sentences of a paragraph; a full stop of Chinese or Japanese needs no space."""
    return [part for sentence in sentences(plain(text), PROSE) for part in _WIDE_STOP.split(sentence)]


def _opened(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(" .。;:")


# What is open


def _open_points(
    parts: Sequence[Exchange], recap: Recap, left: Sequence[str], phrases: Phrasebook
) -> list[str]:
    """Return what a session leaves open: requests not seen done, faults reported last, unfinished work."""
    unfinished = _unfinished_request(parts, phrases)
    reported = "" if unfinished else _reported_fault(parts, phrases)
    points = [
        f"asked last, not seen done: {_decapitalised(unfinished)}" if unfinished else "",
        f'reported last by the user, not confirmed mended: "{reported}"' if reported else "",
        _unreported_edits(parts),
        recap.next_step,
        *left,
    ]
    if not recap.done:
        offered, asked = _unanswered(parts, phrases)
        points.append(f"offered, unanswered: {_decapitalised(offered)}" if offered else "")
        points.append(f"asked, unanswered: {asked}" if asked else "")
    return [point for point in points if point]


def _reported_fault(parts: Sequence[Exchange], phrases: Phrasebook) -> str:
    """Return the fault that a person's last words report: answered, and by nobody said to be mended."""
    last = parts[-1] if parts else None
    if last is None or last.asked is None or last.asked["kind"] not in ("prompt", "command"):
        return ""
    reported = prose_sentences(without_pasted(last.words))
    fault = next((sentence for sentence in reported if phrases.complaint.search(sentence)), "")
    return shortened(fault, FAULT_CHARS).rstrip(".") if len(fault) >= _MIN_FAULT_CHARS else ""


def _unfinished_request(parts: Sequence[Exchange], phrases: Phrasebook) -> str:
    """Return what a person asked for last if no answer followed: their request, or the offer they took."""
    last = parts[-1] if parts else None
    if last is None or last.asked is None or last.is_answered:
        return ""
    asked = request(without_pasted(last.words))
    if asked or last.asked["kind"] not in ("prompt", "command"):
        return asked
    words = last.words.strip()
    if len(words) <= TERSE_CHARS and phrases.acceptance.search(words):
        return _offer(parts[-2], phrases) if len(parts) > 1 else ""
    is_order = len(words) <= _MAX_ORDER_CHARS and "\n" not in words and not words.endswith(("?", "？"))
    return f'"{words}"' if is_order else ""


def _unreported_edits(parts: Sequence[Exchange]) -> str:
    """Return what was changed after a person's last words if no answer followed."""
    last = parts[-1] if parts else None
    if last is None or last.asked is None or last.is_answered or not last.edited:
        return ""
    names = ", ".join(path.replace("\\", "/").rsplit("/", 1)[-1] for path in last.edited[:_FILES_NAMED])
    return f"edits of {names} came last, without a report"


def _unanswered(parts: Sequence[Exchange], phrases: Phrasebook) -> tuple[str, str]:
    """Return what the assistant offered and what it asked in the last words of a thread."""
    last = parts[-1] if parts else None
    if last is None or last.answer is None:
        return "", ""
    offered = _offer(last, phrases)
    return offered, "" if offered else _question(last)


def _offer(part: Exchange, phrases: Phrasebook) -> str:
    for sentence in reversed(_last_sentences(part)):
        offered = phrases.offer.match(sentence)
        if offered:
            words = part_of(offered)
            return "" if len(words) < _MIN_OFFER_CHARS and words.isascii() else words
    return ""


def _question(part: Exchange) -> str:
    asked = [sentence for sentence in _last_sentences(part)[-1:] if sentence.endswith(("?", "？"))]
    is_whole = asked and (not asked[0].isascii() or len(asked[0].split()) >= _MIN_QUESTION_WORDS)
    fits = is_whole and _MIN_QUESTION_CHARS <= len(asked[0]) <= _MAX_QUESTION_CHARS
    return asked[0] if fits else ""


def _last_sentences(part: Exchange) -> list[str]:
    blocks = prose_blocks(without_tags(text_of(part.answer))) if part.answer is not None else []
    return prose_sentences(blocks[-1].text) if blocks else []
