"""
The end of a transcript: the assistant's `[MEMORY: type]` lines and list of steps, not what only repeats.

A small part of what the engine reads, for machines without an engine. Only the assistant's own prose and its
calls of the list tools count: no tool output, no injected text, no subagent, no words of a person's.
"""

from __future__ import annotations

import json
import os
import re
import time
from bisect import bisect_right

TYPE_CHECKING = False
if TYPE_CHECKING or __package__:
    from collections.abc import Iterator, Sequence

    from cortex.hooks import private, ticket
    from cortex.hooks.prose import own_prose as self_report
    from cortex.hooks.prose import own_prose as sources
    from cortex.hooks.prose import plain, repeats
    from cortex.hooks.prose.own_prose import own_prose
else:
    import private
    import ticket
    from prose import own_prose as self_report
    from prose import own_prose as sources
    from prose import plain, repeats
    from prose.own_prose import own_prose


# -- Which statements at the end of a transcript only repeat what a tool had brought in before.

# A longer line is neither a list (fifty steps have about 10 kB) nor an answer. A longer result is not read
# word by word (half a megabyte takes 30 ms): it repeats a statement where its bytes hold enough of the words.
MAX_LINE_BYTES = 256 * 1024
_RESULT = b'tool_result"'
_TAG = b"[memory:"


class _TooLateError(Exception):
    """The time to look through the results is over."""


class Results:
    """The results of tools in the end of a transcript, looked through for what some statements say."""

    def __init__(self, tail: bytes, give_up_at: float) -> None:
        self._tail, self._lowered, self._give_up_at = tail, tail.lower(), give_up_at
        self._held: dict[bytes, list[tuple[int, int]]] = {}

    def repeated(self, texts: Sequence[tuple[str, int]], trusts: Sequence[str]) -> set[int]:
        """
        Return the positions of those of `texts`, each with the place its line ends at, that repeat a result.

        Counted are results before that place whose words have one of `trusts`. What is not looked through by
        `give_up_at` (of time.monotonic()) counts as repeated: in doubt nothing is shown.
        """
        try:
            return self._repeated(texts, trusts)
        except _TooLateError:
            return set(range(len(texts)))

    def _repeated(self, texts: Sequence[tuple[str, int]], trusts: Sequence[str]) -> set[int]:
        wanted, near = [], []
        places = self._places()
        for text, _ in texts:
            self._check_time()
            # No brief shows a longer one.
            wanted.append(repeats.statements(text[: plain.MAX_LINE_LENGTH]))
            near.append({place for words in wanted[-1] for place in self._near(words, places)})
        earlier_text = repeats.EarlierText(words for statements in wanted for words in statements)
        holding: set[tuple[int, int]] = set()  # long results, whose words are not read
        for place in sorted({place for held in near for place in held}):
            self._check_time()
            for text in self._texts(self._tail[slice(*place)], trusts):
                if place[1] - place[0] > MAX_LINE_BYTES:
                    holding.add(place)
                else:
                    earlier_text.add(text, place[1])
        repeated = set()
        for at, (_, said_at) in enumerate(texts):
            self._check_time()
            marks = [end for _, end in holding & near[at]]
            marks += [mark for words in wanted[at] for mark in earlier_text.marks_of(words)]
            if any(mark < said_at for mark in marks):
                repeated.add(at)
        return repeated

    def _check_time(self) -> None:
        if time.monotonic() > self._give_up_at:
            raise _TooLateError

    def _places(self) -> list[tuple[int, int]]:
        """Return (start, end) of each line that holds the result of a tool, in order."""
        places: list[tuple[int, int]] = []
        at = self._tail.find(_RESULT)
        while at >= 0:
            start, end = self._tail.rfind(b"\n", 0, at) + 1, self._tail.find(b"\n", at)
            end = end if end >= 0 else len(self._tail)
            places.append((start, end))
            at = self._tail.find(_RESULT, end)
        return places

    def _near(self, words: Sequence[str], places: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """
        Yield the places that hold a tag or enough of `words` to say nearly the same; no JSON is read for it.

        At most so many of the words may be missing, so of one more than these one must be there. Those looked
        for are the longest, which are rare.
        """
        distinct = set(words)
        may_miss = len(distinct) - repeats.least_words(len(distinct))
        ascii_words = sorted((word.encode() for word in distinct if word.isascii()), key=len, reverse=True)
        must = [_TAG]
        if len(distinct) >= repeats.MIN_WORDS:
            must += ascii_words[: may_miss + 1] if len(ascii_words) == len(distinct) else [b""]
        for place in {place for word in must for place in self._holding(word, places)}:
            self._check_time()
            missing = sum(self._lowered.find(word, *place) < 0 for word in ascii_words)
            if missing <= may_miss or self._lowered.find(_TAG, *place) >= 0:
                yield place

    def _holding(self, word: bytes, places: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the places that hold a word, an empty one all; half a megabyte takes 0.2 ms."""
        if word in self._held:
            return self._held[word]
        holding: list[tuple[int, int]] = []
        at = self._lowered.find(word)
        while at >= 0:
            number = bisect_right(places, (at, len(self._tail))) - 1
            is_in = number >= 0 and at < places[number][1]
            if is_in:
                holding.append(places[number])
            if number + 1 >= len(places):
                break
            at = self._lowered.find(word, places[number + 1][0])
        self._held[word] = holding
        return holding

    def _texts(self, line: bytes, trusts: Sequence[str]) -> Iterator[str]:
        for block in _read_before_blocks(line):
            if not str(block.get("type")).endswith("tool_result"):
                continue
            if self._trust_of(block, line) in trusts:
                yield "\n".join(_strings(block.get("content")))

    def _trust_of(self, block: dict[str, object], line: bytes) -> str | None:
        """Return the trust of a result's words: by the call that it answers, which stands before it."""
        if str(block.get("type")).startswith("web_"):
            return "external"
        needle = json.dumps(str(block.get("tool_use_id"))).encode()
        at = self._tail.find(needle)
        start, end = self._tail.rfind(b"\n", 0, max(at, 0)) + 1, self._tail.find(b"\n", max(at, 0))
        for call in _read_before_blocks(self._tail[start:end]) if at >= 0 else ():
            given = call.get("input")
            if call.get("id") == block.get("tool_use_id") and isinstance(given, dict):
                argument = " ".join(str(given.get(name) or "") for name in ("command", "file_path"))
                return sources.trust_of_call(str(call.get("name")), argument)
        return "tool"


def _read_before_blocks(line: bytes) -> list[dict[str, object]]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return []
    message = record.get("message") if isinstance(record, dict) else None
    content = message.get("content") if isinstance(message, dict) else None
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _strings(content: object) -> list[str]:
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else [content]
    return [str(block.get("text") or "") for block in blocks if isinstance(block, dict)]


# Of half the transcripts seen this is all, of others the last hours; to look through it takes 2 ms.
TAIL_BYTES = 512 * 1024
# Records that may name the same call: its result, and requests that repeat it.
RESULTS_TRIED = 4

# What was read in time is worth looking through for what only repeats; 5 ms as a rule.
CHECKING_SECONDS = 0.02

LIST_TOOLS = ("TodoWrite", "TaskCreate", "TaskUpdate", "ExitPlanMode")
DEFAULT_TITLE = "Task list"

_HEADING = re.compile(r"^[^\S\n]*#{1,3}\s+(?:plan\s*[:–—-]\s*)?(\S.*)$", re.IGNORECASE | re.MULTILINE)
# What a line of a brief ends in: who repeats it tells nothing new.
_PROVENANCE = re.compile(
    r"\((?:user, )?(?:(?:[^(),\n]{1,66}, )?(?:reviewed|shared), )?(?:all projects, )?"
    r"\d{1,2} [A-Z][a-z]{2} \d\d(?:, .{0,20}(?:1|\.\d\d))?\)"
)


class TaggedFact:
    """One `[MEMORY: kind] text` line, its day (`14 Sep 26`) and the first digits of its session."""

    def __init__(self, kind: str, text: str, day: str, session: str) -> None:
        self.kind, self.text, self.day, self.session = kind, text, day, session


class TaskList:
    """A list of steps as it stood last: status by step, in the list's order."""

    def __init__(self, title: str) -> None:
        self.title = title or DEFAULT_TITLE
        self.steps: dict[str, str] = {}
        self.day = self.session = ""
        self.end = 0

    def steps_that_are(self, status: str) -> list[str]:
        """Return the steps with this status, in their order."""
        return [step for step, state in self.steps.items() if state == status]

    def leave_out(self, results: Results) -> None:
        """Leave out the steps that a stranger wrote; a file of the project may say what there is to do."""
        for step in [step for step in self.steps if plain.is_against_person(step)]:
            del self.steps[step]
        steps = list(self.steps)
        for at in results.repeated([(step, self.end) for step in steps], ("external",)) if steps else ():
            del self.steps[steps[at]]

    @property
    def is_done(self) -> bool:
        """Return whether every step is completed."""
        return bool(self.steps) and set(self.steps.values()) == {"completed"}


def reports_in(
    path: str, give_up_at: float, excluded: tuple[str, ...] = ()
) -> tuple[list[TaggedFact], TaskList | None]:
    """
    Return the tagged facts at the end of the transcript at `path`, last first, and its plan if one goes on.

    What was said in one of the `excluded` folders is left out, as is what repeats the result of a tool, and
    what is not read by `give_up_at` (of time.monotonic()). Raises OSError.
    """
    tail = _tail_of(path)
    facts: list[tuple[TaggedFact, int]] = []
    lists = _Lists(tail)
    for end, line in _lines_with_hits(tail):
        if time.monotonic() > give_up_at:
            break
        record = _own_record(line)
        if record is None or private.is_below(str(record.get("cwd")), excluded):
            continue
        day, session = plain.day_of(str(record.get("timestamp"))), _digits(record.get("sessionId"))
        for block in _blocks(record):
            if block.get("type") == "text":
                tags = shown_tags(str(block.get("text")))
                facts += [(TaggedFact(kind, text, day, session), end) for kind, text in tags]
            if lists.take(block, end):
                lists.last.day, lists.last.session, lists.last.end = day, session, end
    plan = lists.last
    if not facts and not plan.steps:
        return [], None
    results = Results(tail, give_up_at + CHECKING_SECONDS)
    repeated = results.repeated([(fact.text, end) for fact, end in facts], ("tool", "external"))
    plan.leave_out(results)
    is_living = len(plan.steps) >= self_report.MIN_STEPS and not plan.is_done
    own = [fact for at, (fact, _) in enumerate(facts) if at not in repeated]
    return own[::-1], plan if is_living else None


def shown_tags(text: str) -> Iterator[tuple[str, str]]:
    """Yield (type, text) of each tag in the assistant's own prose, without a brief's lines."""
    for kind, words in self_report.tags_in(plain.without_private(text)):
        if not _PROVENANCE.search(words) and not plain.is_against_person(words):
            yield kind, words


class _Lists:
    """Follows the list tools and the checklists in prose; `last` is the list that was worked on last."""

    def __init__(self, tail: bytes) -> None:
        self.last = TaskList("")
        self._tail, self._title = tail, ""
        self._subjects: dict[str, str] = {}

    def take(self, block: dict[str, object], end: int) -> bool:
        """Follow one block of an answer, whose line ends at `end`; return whether it changed a list."""
        if block.get("type") == "text":
            return self._tick(own_prose(plain.without_private(str(block.get("text")))))
        name, given = block.get("name"), block.get("input")
        if block.get("type") != "tool_use" or name not in LIST_TOOLS or not isinstance(given, dict):
            return False
        failed, answer = self._result(str(block.get("id")), end)
        if failed:
            return False
        if name == "TodoWrite":
            return self._rewrite(given.get("todos"))
        if name == "TaskCreate":
            return self._create(str(given.get("subject") or "").strip(), answer)
        if name == "TaskUpdate":
            return self._update(self._subjects.get(str(given.get("taskId")), ""), str(given.get("status")))
        heading = _HEADING.search(plain.without_private(str(given.get("plan"))))
        self._title = heading[1].strip() if heading else ""
        return False

    def _tick(self, prose: str) -> bool:
        boxes = self_report.CHECKBOX.findall(prose)
        if len(boxes) < self_report.MIN_STEPS:
            return False
        self.last = TaskList(self._title)
        self.last.steps = {step.strip(): "pending" if box == " " else "completed" for box, step in boxes}
        return True

    def _rewrite(self, todos: object) -> bool:
        items = {
            str(todo.get("content") or "").strip(): str(todo.get("status"))
            for todo in (todos if isinstance(todos, list) else [])
            if isinstance(todo, dict) and todo.get("status") in self_report.STEP_STATUSES
        }
        self.last = TaskList(self._title)
        self.last.steps = {step: status for step, status in items.items() if step}
        return True

    def _create(self, subject: str, answer: str) -> bool:
        if not subject:
            return False
        if not self._subjects or self.last.is_done:
            self.last = TaskList(self._title)
        number = self_report.TASK_NUMBER.search(answer)
        self._subjects[number[1] if number else str(len(self._subjects) + 1)] = subject
        self.last.steps[subject] = "pending"
        return True

    def _update(self, subject: str, status: str) -> bool:
        if status == "deleted":
            self.last.steps.pop(subject, None)
        elif subject in self.last.steps and status in self_report.STEP_STATUSES:
            self.last.steps[subject] = status
        else:
            return False
        return True

    def _result(self, use_id: str, start: int) -> tuple[bool, str]:
        """Return whether a call failed or was refused, and what its result says."""
        needle, at = json.dumps(use_id).encode(), start
        for _ in range(RESULTS_TRIED):
            at = self._tail.find(needle, at)
            if at < 0:
                break
            line_start, at = self._tail.rfind(b"\n", 0, at) + 1, self._tail.find(b"\n", at)
            record = _parsed(self._tail[line_start:at])
            for block in _blocks(record) if record.get("type") == "user" else ():
                if block.get("tool_use_id") == use_id:
                    return block.get("is_error") is True, str(block.get("content"))
        return False, ""


def _tail_of(path: str) -> bytes:
    # To the last complete line: a session may be writing the next one.
    with os.fdopen(ticket.open_regular(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - TAIL_BYTES))
        tail = file.read(min(size, TAIL_BYTES))  # some files of the system say no size and have no end
    start = tail.find(b"\n") + 1 if size > TAIL_BYTES else 0
    return tail[start:] if tail.endswith(b"\n") else tail[start:] + b"\n"


def _lines_with_hits(tail: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (end, line) of the lines that may hold a tag or a list, in their order."""
    lowered = tail.lower()
    hits = _places(lowered, b"[memory:") + _places(lowered, b"- [ ] ") + _places(lowered, b"* [ ] ")
    for tool in LIST_TOOLS:
        hits += _places(tail, b'"%s"' % tool.encode())
    done = -1
    for hit in sorted(hits):
        if hit <= done:
            continue
        start, done = tail.rfind(b"\n", 0, hit) + 1, tail.find(b"\n", hit)
        # Requests and attachments repeat every injected text; the assistant's records name it as their type.
        if done - start <= MAX_LINE_BYTES and tail.find(b'"assistant"', start, done) >= 0:
            yield done, tail[start:done]


def _places(text: bytes, needle: bytes) -> list[int]:
    places, at = [], text.find(needle)
    while at >= 0:
        places.append(at)
        at = text.find(needle, at + 1)
    return places


def _own_record(line: bytes) -> dict[str, object] | None:
    record = _parsed(line)
    message = record.get("message")
    is_own = record.get("type") == "assistant" and record.get("isSidechain") is not True
    is_clients = record.get("isApiErrorMessage") is True or (
        isinstance(message, dict) and message.get("model") == "<synthetic>"
    )
    return record if is_own and not is_clients else None


def _parsed(line: bytes) -> dict[str, object]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _blocks(record: dict[str, object]) -> list[dict[str, object]]:
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _digits(session_id: object) -> str:
    return "".join(c for c in str(session_id or "") if c.isascii() and c.isalnum())[:4]
