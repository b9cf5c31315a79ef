"""A session as a language model reads it: turns with ids and speakers, shortened to fit the cheap tier."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from cortex.hooks.prose.own_prose import EDIT_TOOLS, SHELL_TOOLS
from cortex.transforms.extract.events import is_sent_by_program
from cortex.transforms.extract.language.candidate import Turn, text_of
from cortex.transforms.extract.language.phrases import CHECK_COMMANDS
from cortex.transforms.extract.structural import field_text, input_of, objects_of
from cortex.transforms.schemas import EPOCH, Row
from cortex.transforms.words.ages import counted

# -- A session as a language model reads it: each turn with an id and its speaker, tool calls in one line.

# What a person said or settled; shortened last.
PERSONS = frozenset(("prompt", "command", "rejection", "choice", "plan", "shell"))
PROSE_KIND = "text"
SPEAKERS = {
    "prompt": "person",
    "command": "slash command",
    "rejection": "person refused",
    "choice": "person chose",
    "plan": "person approved plan",
    "shell": "person ran",
    "text": "assistant",
    "tool_call": "call",
    "summary": "summary",
    "recap": "recap",
    "program": "program",
}
RESULTS = {"error": "failed", "rejected": "refused by the person", "cancelled": "cancelled"}

# Of 83 sessions the longest answer has 11,000 characters; documents written into the chat are longer.
ANSWER_CHARS = 8_000
PLAN_CHARS = 10_000
SUMMARY_CHARS = 12_000
# What a program says in a prompt's place: how it begins says what it is.
PROGRAM_CHARS = 400
# A command with its options; a commit's message is cut after its first lines.
MAX_CALL_CHARS = 360
# As much as a turn keeps of what an edit took out or put in, with the mark where that was cut.
EDIT_CHARS = 340
ARGUMENT_CHARS = 140
# A question with its options and what each would mean.
QUESTIONS_CHARS = 3_000
PLAN_CALL_CHARS = 4_000
TASKS_CHARS = 1_200
# The message of an error stands at its end or at its beginning.
FAILED_HEAD_CHARS, FAILED_TAIL_CHARS = 300, 300
# What a command prints begins with what it is about and ends with its verdict; of a check the verdict counts.
RESULT_HEAD_CHARS, RESULT_TAIL_CHARS = 160, 240
# Left for so long, a session is taken up again by somebody who has done other things in between.
PAUSE = timedelta(hours=8)
SILENT, UNKNOWN = "(printed nothing)", "(no result in the record)"
CUT = " […] "
_INDENT = "\n  "


@dataclass(frozen=True)
class SessionLine:
    """One turn as it is shown: its speaker and its words; `turn` is the row of TURNS it was taken from."""

    turn: Row
    speaker: str
    words: str

    def shown(self, number: int) -> str:
        """Return the line with its id; its further lines are indented, so that no turn forges one."""
        return f"[t{number}] {self.speaker}: " + _INDENT.join(self.words.splitlines())


def session_lines(threads: Sequence[Sequence[Turn]]) -> list[SessionLine]:
    """
    Return the lines of a session in order, given the turns of its main threads.

    Thoughts are left out, since they repeat the prose; so are results, but for those of calls that did not
    succeed and the ends of what a command printed. A person's line says when it was typed, on which branch
    where that is another, and how long the session had been left before.
    """
    lines: list[SessionLine] = []
    for thread in sorted(threads, key=lambda turns: (turns[0]["said_at"] or EPOCH, str(turns[0]["turn_id"]))):
        calls = {turn["tool_use_id"]: turn for turn in thread if turn["kind"] == "tool_call"}
        lines += list(_thread_lines(thread, calls))
    return lines


def shortened_in_middle(text: str, chars: int) -> str:
    """
    Return text of at most about `chars` characters: its beginning and its end.

    >>> shortened_in_middle("one two three four five six", 12)
    'one two  […]  six'
    """
    if len(text) <= chars:
        return text
    head = chars * 2 // 3
    tail = chars - head
    return text[:head] + CUT + (text[-tail:] if tail else "")


def _thread_lines(thread: Sequence[Turn], calls: dict[str, Turn]) -> Iterator[SessionLine]:
    branch, last = "", None
    answered = {turn["tool_use_id"] for turn in thread if turn["kind"] == "tool_result"}
    for turn in thread:
        kind, before, last = turn["kind"], last, turn["said_at"] or last
        if kind == "tool_result":
            words, speaker = _result(turn, calls.get(turn["tool_use_id"]))
        else:
            words, speaker = _words(turn), _speaker(turn)
        if not speaker or not words.strip():
            continue
        if kind == "tool_call" and turn["tool_name"] in SHELL_TOOLS and turn["tool_use_id"] not in answered:
            words += f" {UNKNOWN}"
        if kind in PERSONS:
            notes = [turn["said_at"].strftime("%Y-%m-%d %H:%M")] if turn["said_at"] else []
            notes += _pause(before, turn["said_at"])
            if turn["git_branch"] and turn["git_branch"] != branch:
                branch = str(turn["git_branch"])
                notes.append(f"branch {_in_line(branch, ARGUMENT_CHARS)}")
            speaker += f" ({', '.join(notes)})" if notes else ""
        yield SessionLine(dict(turn), speaker, words.strip())


def _speaker(turn: Turn) -> str:
    speaker = SPEAKERS.get(turn["kind"], "")
    if turn["kind"] == "command" and turn["tool_name"]:
        return f"slash command {_in_line(str(turn['tool_name']), ARGUMENT_CHARS)}"
    return f"{speaker}, through a program" if is_sent_by_program(turn) else speaker


def _pause(before: datetime | None, now: datetime | None) -> list[str]:
    """Return how long a session had been left, where that was long."""
    if before is None or now is None or now - before < PAUSE:
        return []
    hours = int((now - before).total_seconds() // 3600)
    return [f"after {counted(hours // 24, 'day')}" if hours >= 24 else f"after {hours} hours"]


def _words(turn: Turn) -> str:
    kind, text = turn["kind"], text_of(turn)
    if kind == "tool_call":
        return _call(turn)
    limits = {
        PROSE_KIND: ANSWER_CHARS, "plan": PLAN_CHARS, "summary": SUMMARY_CHARS, "program": PROGRAM_CHARS,
    }  # fmt: skip
    return shortened_in_middle(text, limits.get(kind, len(text)))


def _call(turn: Turn) -> str:
    tool, given = str(turn["tool_name"] or "tool"), input_of(turn)
    if tool == "AskUserQuestion":
        return f"{tool} {shortened_in_middle(_questions(turn), QUESTIONS_CHARS)}"
    if tool == "ExitPlanMode":
        return f"{tool} {shortened_in_middle(text_of(turn), PLAN_CALL_CHARS)}"
    if tool == "TodoWrite":
        tasks = [
            f"{field_text(task, 'content')} ({field_text(task, 'status')})"
            for task in objects_of(given, "todos")
        ]
        return f"{tool} {shortened_in_middle('; '.join(tasks), TASKS_CHARS)}"
    if tool == "TaskUpdate":
        return f"{tool} {field_text(given, 'taskId')} {field_text(given, 'status')}"
    words = f"{tool} {_in_line(text_of(turn), MAX_CALL_CHARS)}"
    if tool in EDIT_TOOLS:
        before, after = field_text(given, "old_string"), field_text(given, "new_string")
        begins = field_text(given, "content")
        words += f" begins: {_in_line(begins, EDIT_CHARS)}" if begins else ""
        words += f" - {_in_line(before, EDIT_CHARS)}" if before else ""
        words += f" + {_in_line(after, EDIT_CHARS)}" if after else ""
    return words


def _questions(turn: Turn) -> str:
    asked = []
    for question in objects_of(input_of(turn), "questions"):
        options = [
            f"- {field_text(option, 'label')}: {field_text(option, 'description')}"
            for option in objects_of(question, "options")
        ]
        asked.append("\n".join([field_text(question, "question"), *options]))
    return "\n".join(asked) or text_of(turn)


def _result(turn: Turn, call: Turn | None) -> tuple[str, str]:
    """Return the words and the speaker of a result that is shown; empty for all others."""
    text, status = text_of(turn), str(turn["tool_status"] or "")
    if status in RESULTS:
        tool = str(call["tool_name"] or "") if call is not None else ""
        argument = _in_line(text_of(call), ARGUMENT_CHARS) if call is not None else ""
        if status != "error":
            return f"{tool} {argument}".strip() or "a call", RESULTS[status]
        chars = FAILED_HEAD_CHARS + FAILED_TAIL_CHARS
        return f"{tool} {argument}: {shortened_in_middle(text, chars)}", RESULTS[status]
    if call is None or call["tool_name"] not in SHELL_TOOLS:
        return "", ""
    is_check = CHECK_COMMANDS.search(text_of(call)) is not None
    return _ends(text, 0 if is_check else RESULT_HEAD_CHARS) or SILENT, "result"


def _ends(text: str, head_chars: int) -> str:
    """Return the first and last words of what a command printed, in one line."""
    words = " ".join(text.split())
    if len(words) <= head_chars + RESULT_TAIL_CHARS:
        return words
    return f"{words[:head_chars]}{CUT}{words[-RESULT_TAIL_CHARS:]}".lstrip()


def _in_line(text: str, chars: int) -> str:
    return shortened_in_middle(" ".join(text.split()), chars)


# -- Shortens a session until it fits into the cheap price tier: first the middle of what the assistant
# said.

# UTF-8 bytes of a token, on the safe side: English prose has about four, code three, and a sign of Chinese,
# Japanese or Korean three bytes.
BYTES_PER_TOKEN = 3
# Id, speaker and time of a line.
LINE_TOKENS = 12
# What the session is about stands at its beginning, and how things stand at its end.
OPENING_SHARE, CLOSING_SHARE = 0.1, 0.25
_CALLS = frozenset(("tool_call", "tool_result"))
_CLIENTS = frozenset(("summary", "recap", "program"))


@dataclass(frozen=True)
class _Step:
    """One thing given up: turns of `kinds` are cut to `chars` characters; to 0, they are left out."""

    kinds: frozenset[str]
    chars: int
    is_middle_only: bool = True


_STEPS = (
    _Step(frozenset((PROSE_KIND,)), 1_500),
    _Step(_CALLS, 120),
    _Step(frozenset((PROSE_KIND,)), 600),
    _Step(_CALLS, 0),
    _Step(frozenset((PROSE_KIND,)), 250),
    _Step(_CLIENTS, 2_000),
    _Step(_CALLS, 120, is_middle_only=False),
    _Step(frozenset((PROSE_KIND,)), 1_000, is_middle_only=False),
    _Step(_CALLS, 0, is_middle_only=False),
    _Step(PERSONS, 4_000),
    _Step(PERSONS, 1_000),
    _Step(frozenset((PROSE_KIND,)), 0),
    _Step(PERSONS | _CLIENTS, 300, is_middle_only=False),
)


def estimated_tokens(text: str) -> int:
    """
    Return about how many tokens a text has, rather too many than too few.

    >>> estimated_tokens("Use pnpm."), estimated_tokens("用 pnpm")
    (3, 3)
    """
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def fitted(lines: Sequence[SessionLine], tokens: int) -> list[SessionLine]:
    """
    Return lines of at most `tokens` estimated tokens, in their order; all of them as they are where they fit.

    Answers, calls and results between the opening and the end of the session are shortened and left out
    first, persons' words last. What then is still too long loses its middle.
    """
    shown = list(lines)
    middle = _middle(lines)
    for step in _STEPS:
        if tokens_of_lines(shown) <= tokens:
            return shown
        shown = [kept for line in shown if (kept := _after(step, line, middle)) is not None]
    while len(shown) > 1 and tokens_of_lines(shown) > tokens:
        del shown[len(shown) // 2]
    return shown


def _after(step: _Step, line: SessionLine, middle: frozenset[str]) -> SessionLine | None:
    """Return a line as a step leaves it, None if it leaves it out."""
    if line.turn["kind"] not in step.kinds or (step.is_middle_only and line.turn["turn_id"] not in middle):
        return line
    return replace(line, words=shortened_in_middle(line.words, step.chars)) if step.chars else None


def _middle(lines: Sequence[SessionLine]) -> frozenset[str]:
    """Return the turns between the opening and the end."""
    begin, end = int(len(lines) * OPENING_SHARE), int(len(lines) * (1 - CLOSING_SHARE))
    return frozenset(str(line.turn["turn_id"]) for line in lines[begin:end])


def tokens_of_line(line: SessionLine) -> int:
    """Return about how many tokens a line has with its id, speaker and time."""
    return estimated_tokens(line.words) + LINE_TOKENS


def tokens_of_lines(lines: Sequence[SessionLine]) -> int:
    """Return about how many tokens lines have."""
    return sum(map(tokens_of_line, lines))
