"""What search reads of turns and memories, what the policy says to it, and what narrows it down."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import itemgetter

import pyarrow as pa

from cortex.hooks.evidence.index import MEMORIES
from cortex.hooks.evidence.question import LISTINGS, SearchSettings
from cortex.hooks.evidence.text import (
    CODE_BLOCK,
    COMMAND_KIND,
    PEOPLE_KINDS,
    UNSPACED,
    heading,
    prose,
    query_words,
    row_text,
    search_text,
)
from cortex.hooks.prose.own_prose import SHELL_TOOLS
from cortex.transforms.extract.quotes import passage_trusts
from cortex.transforms.extract.structural import Call, calls_that_ran, field_text, input_of, shown_command
from cortex.transforms.identity import content_id
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EPOCH, PASSAGES, Row
from cortex.transforms.words.ages import DAYS_OF, midnight

# -- What the policy says to a search, as the search takes it and as the search index holds it for the hook.

# The signal of signal_patterns.csv and the phrases of phrases.csv that a search looks for in each language:
# a sentence says why or names a cause, only puts something forward, says what comes next.
_GIVES_REASON, _NAMES_CAUSE = "gives_reason", "names_cause"
# What a search looks for by a name: how questions ask, then how sentences say something.
_SEARCHED = ("reason", "means", *LISTINGS, _GIVES_REASON, "suggests", "announces")


def search_settings(policy: Policy) -> SearchSettings:
    """Return the numbers, the words without a topic and the patterns of a policy; made once for each."""
    return policy.derived(_settings)


def settings_document(policy: Policy) -> str:
    """Return the same as text, for the search index."""
    return policy.derived(_document)


def model_answers(policy: Policy, model: str) -> tuple[float, float] | None:
    """
    Return the cosine and the share of words that would each answer alone, by an embedding model.

    None without a model; a model that calibration.csv does not know hides nothing.
    """
    if not model:
        return None
    row = policy.rows["calibration"].get((model,), {})
    return float(row.get("answer_cosine") or 0.0), float(row.get("answer_share") or 0.0)


def _settings(policy: Policy) -> SearchSettings:
    document = json.loads(settings_document(policy))
    return SearchSettings(**document)


def _document(policy: Policy) -> str:
    numbers = {str(name): float(row["value"] or 0.0) for (name,), row in policy.rows["ranking"].items()}
    dropped = sorted(str(row["word"]) for row in policy.rows["query_words"].values())
    small_words = {
        str(row["language"]): str(row["words"]).split() for row in policy.rows["language_words"].values()
    }
    document = {
        "numbers": numbers,
        "dropped": dropped,
        "small_words": small_words,
        "patterns": _patterns(policy),
    }
    return json.dumps(document, sort_keys=True)


def _patterns(policy: Policy) -> dict[str, dict[str, str]]:
    rows = [(row["asks"], row) for row in policy.rows["question_patterns"].values()]
    rows += [(row["signal"], row) for row in policy.rows["signal_patterns"].values()]
    rows += [
        (_GIVES_REASON if row["name"] == _NAMES_CAUSE else row["name"], row)
        for row in policy.rows["phrases"].values()
    ]
    patterns: dict[str, dict[str, list[str]]] = {}
    for name, row in rows:
        if name in _SEARCHED:
            patterns.setdefault(str(name), {}).setdefault(str(row["language"]), []).append(
                str(row["pattern"])
            )
    return {
        name: {language: "|".join(parts) for language, parts in of_name.items()}
        for name, of_name in patterns.items()
    }


# -- The commands of a transcript as passages: what was run with success, and what it was run for.

# A longer one is a script written for the moment; nobody asks for it again.
_MAX_CHARS = 200
# Programs that look around or move files: how that is done needs no memory.
_LOOKS = re.compile(
    r"(?:ls|cat|head|tail|less|grep|rg|find|fd|sed -n|awk|wc|echo|printf|pwd|which|type|tree|stat|file|sleep"
    r"|ps|kill|cd|mkdir|touch|cp|mv|rm|ln|chmod|diff|sort|jq"
    r"|git(?: -C \S+)? (?:status|diff|log|show|branch|add|blame|ls-files|rev-parse|stash list|remote -v))\b"
)


def commands_run(turns: Sequence[Row]) -> Iterator[Row]:
    """
    Yield the commands of one transcript that went well, each once where it ran last, as rows of its turns.

    Takes turns by line, with `tool_name`, `tool_use_id`, `tool_status` and `tool_input`. The text is the
    command in backticks behind what the assistant said that it is for.
    """
    last: dict[str, Call] = {}
    for call in calls_that_ran(turns):
        command = shown_command(call.argument)
        is_short = len(call.argument) <= _MAX_CHARS and "\n" not in call.argument.strip()
        if (
            call.tool in SHELL_TOOLS
            and not call.failed
            and is_short
            and command
            and not _LOOKS.match(command)
        ):
            last.pop(command, None)
            last[command] = call
    for command, call in last.items():
        yield {**call.turn, "text": _text(command, call.turn)}


def _text(command: str, turn: Mapping[str, object]) -> str:
    purpose = " ".join(field_text(input_of(dict(turn)), "description").split()).rstrip(".:")
    return f"{purpose}: `{command}`" if purpose else f"`{command}`"


# -- What search reads: index text, query words, passages of turns, the text that is embedded.

# Prose: what people and the assistant said to each other. Thinking is missing from most transcripts and
# repeats the text; tool calls and results are mostly code; summaries, recaps and what an agent is asked
# repeat others. What a program asks in a person's place (`claude -p`) is added.
PASSAGE_KINDS = (*PEOPLE_KINDS, "plan", "text")

# The hash that ends a project's id means nothing to a model and would be cut into several word pieces.
_ID_END = re.compile(r"-[0-9a-f]{8}$")
# Where a part may end, best first: paragraph, line, sentence, word.
_BREAKS = (
    re.compile(r"\n\s*\n"),
    re.compile(r"\n"),
    re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])"),
    re.compile(r"\s+"),
)


def query_terms(question: str, policy: Policy) -> str:
    """
    Return the words of `question` that the lexical index is asked for, each once, expanded as the index is.

    Question words and other words that carry no topic are dropped (query_words.csv). If nothing is left, all
    words stay.
    """
    return search_text(" ".join(query_words(question, search_settings(policy).dropped)))


def unspaced_runs(text: str) -> list[str]:
    """
    Return the runs of scripts that are written without spaces between words.

    >>> unspaced_runs("端口 8080 被占用")
    ['端口', '被占用']
    """
    return UNSPACED.findall(text)


def embedded_text(row: dict[str, object]) -> str:
    """
    Return what is embedded of a PASSAGES or MEMORIES row; empty if it is nothing but code (spec 6.1).

    A passage carries its date and speaker, which questions ask for ("what did I say in May"); a memory
    carries `[type] [project]` (spec 6.2).
    """
    is_code = row.get("memory_type") == "code" or row.get("kind") == COMMAND_KIND
    text = "" if is_code else prose(str(row["text"]))
    if not text:
        return ""
    if "memory_type" in row:
        project = _ID_END.sub("", str(row["project_id"]))
        return f"[{row['memory_type']}] [{project}] {text}"
    return f"{_heading(str(row['kind']), row.get('said_at'))}: {text}"


# The columns of PASSAGES and MEMORIES that the lexical index is made from.
INDEXED_COLUMNS = ("memory_type", "text", "subject", "summary", "files", "tags", "kind", "said_at")


def index_text(row: dict[str, object]) -> str:
    """Return what the lexical index holds of a PASSAGES or MEMORIES row, code included."""
    return row_text(row, "" if "memory_type" in row else _heading(str(row["kind"]), row.get("said_at")))


def _heading(kind: str, said_at: object) -> str:
    day = (said_at.year, said_at.month, said_at.day) if isinstance(said_at, datetime) else None
    return heading(kind, day)


_TURN_COLUMNS = ["project_id", "session_id", "turn_id", "kind", "text", "said_at", "file", "line", "trust"]


def passages_of(turns: pa.Table, policy: Policy) -> pa.Table:
    """
    Cut the prose of TURNS into passages, and add the commands that went well.

    Takes TURNS of whole files in any order; returns PASSAGES ordered by file and `seq`, none longer than
    `passage_chars` of ranking.csv. What the assistant repeats of a page is of the page's trust, what a person
    sent through a program is a prompt. A file's first passage has seq 0.
    """
    import pyarrow.compute as pc  # here: a question needs none of these functions

    from cortex.transforms.extract.events import as_prompt, sent_prompts

    limit = int(search_settings(policy).numbers["passage_chars"])
    sent = sent_prompts(turns)
    is_sent = pc.is_in(turns["turn_id"], pa.array([*sent], pa.string()))
    prose = turns.filter(pc.or_(pc.is_in(turns["kind"], pa.array(PASSAGE_KINDS)), is_sent))
    prose = prose.sort_by([("file", "ascending"), ("line", "ascending"), ("block", "ascending")])
    rows: list[dict[str, object]] = []
    seq = 0
    for turn in prose.select(_TURN_COLUMNS).to_pylist():
        if not rows or rows[-1]["file"] != turn["file"]:
            seq = 0
        turn = as_prompt(turn) if sent.get(turn["turn_id"]) else turn
        for part, text in enumerate(identifier_parts(turn["text"], limit)):
            row = {**turn, "text": text, "seq": seq, "passage_id": content_id(turn["turn_id"], str(part))}
            rows.append({**row, "content_hash": content_id(embedded_text(row))})
            seq += 1
    for row, trust in zip(rows, passage_trusts(rows, turns), strict=True):
        row["trust"] = trust
    rows += _command_passages(turns, {str(row["file"]): row["seq"] for row in rows})
    rows.sort(key=lambda row: (str(row["file"]), row["seq"]))
    return PASSAGES.of(rows)


def _command_passages(turns: pa.Table, last_seq: Mapping[str, object]) -> Iterator[dict[str, object]]:
    """Yield the commands that ran as PASSAGES rows; `seq` follows no other: each is nobody's neighbour."""
    import pyarrow.compute as pc  # here: a question needs none of these functions

    columns = [*_TURN_COLUMNS, "block", "tool_name", "tool_use_id", "tool_status", "tool_input"]
    calls = turns.select(columns).filter(pc.is_in(turns["kind"], pa.array(["tool_call", "tool_result"])))
    # What a call gave back is nearly all of a session's bytes, and only how it ended counts.
    texts = pc.if_else(pc.equal(calls["kind"], pa.scalar("tool_call")), calls["text"], None)
    calls = calls.set_column(columns.index("text"), "text", texts)
    calls = calls.sort_by([("file", "ascending"), ("line", "ascending"), ("block", "ascending")])
    for file, group in groupby(calls.to_pylist(), key=itemgetter("file")):
        seq = int(str(last_seq.get(file, -1)))
        for run in commands_run(list(group)):
            seq += 2
            row = {name: run[name] for name in _TURN_COLUMNS} | {"seq": seq}
            row |= {"text": run["text"], "passage_id": content_id(run["turn_id"], "0")}
            yield {**row, "content_hash": content_id(embedded_text(row))}


def identifier_parts(text: str, limit_chars: int) -> list[str]:
    """
    Return `text` cut at paragraphs, else lines, sentences, words, into parts of at most `limit_chars`.

    Code fences are kept whole where they fit and are closed and opened again where they are cut, so that
    every part says by itself what of it is code. Neighbouring pieces share a part as long as they fit.
    """
    pieces: list[str] = []
    at = 0
    for fence in CODE_BLOCK.finditer(text):
        pieces += _cut(text[at : fence.start()], limit_chars)
        pieces += _cut_fence(fence.group().strip(), limit_chars)
        at = fence.end()
    return _packed([*pieces, *_cut(text[at:], limit_chars)], limit_chars, "\n\n")


def _cut(text: str, limit_chars: int, level: int = 0) -> list[str]:
    text = text.strip()
    if len(text) <= limit_chars:
        return [text] if text else []
    if level == len(_BREAKS):
        return [text[at : at + limit_chars] for at in range(0, len(text), limit_chars)]
    smaller = [piece for part in _BREAKS[level].split(text) for piece in _cut(part, limit_chars, level + 1)]
    return _packed(smaller, limit_chars, ("\n\n", "\n", " ", " ")[level])


def _cut_fence(fence: str, limit_chars: int) -> list[str]:
    if len(fence) <= limit_chars:
        return [fence]
    body = fence.split("\n", 1)[-1].removesuffix("```").removesuffix("~~~")
    return [f"```\n{piece}\n```" for piece in _cut(body, limit_chars - len("```\n\n```"), 1)]


def _packed(pieces: Iterable[str], limit_chars: int, between: str) -> list[str]:
    packed: list[str] = []
    for piece in pieces:
        if packed and len(packed[-1]) + len(between) + len(piece) <= limit_chars:
            packed[-1] += between + piece
        else:
            packed.append(piece)
    return packed


# -- What narrows a search down: days, a session, a branch, a file; as options and within the question.

# "in session 0211": the beginning of an id, which has a digit, so that no word is taken for it.
_SESSION = re.compile(
    r"\b(?:in |of |from |during )?(?:the )?session ((?=[a-f-]{0,36}\d)[0-9a-f-]{4,36})(?![\w-])",
    re.IGNORECASE,
)
_DAYS_BACK = re.compile(
    r"\b(?:in |over |within |during )?the (?:last|past) (\d{1,3}) (day|week|month)s?\b", re.IGNORECASE
)
_SINCE = re.compile(r"\b(since|before|until|on) (\d{4}-\d{2}-\d{2})\b", re.IGNORECASE)
# "sessions 5-8", "in session 6", "session 6?": a number of at most three digits, which no id is. A unit
# behind it makes it a time ("keep it in session 30 minutes").
_TO = r"(?: ?[-–—] ?| (?:to|and|through|until|bis|und|à|et|a|y) )"
_ALONE = rf"(?= #?\d{{1,3}}(?:{_TO}#?\d{{1,3}})?\s*[?.!,;]*$)"
_NUMBERS = (
    rf" (?:no\.? ?|nr\.? ?|number |#)?(\d{{1,3}})(?:{_TO}#?(\d{{1,3}}))?"
    r"(?![\w%]|[-.,:]\d| (?:ms|min|minutes?|sec|seconds?|hours?|days?|times|users?)\b)"
)
_NUMBER_ALONE = re.compile(r"#?(\d{1,3})(?:[-–](\d{1,3}))?")
_SESSION_PERIOD = "session"


@dataclass(frozen=True)
class SearchLimits:
    """
    What results must meet: said from `since` on, before `until` (UTC), in a session, on a branch, of a file.

    `session` is the beginning of an id; `numbers` are the first and the last number of sessions of a project,
    and `numbered` their ids, once somebody has looked them up; `branch_sessions` are the sessions that ended
    on `branch`, for what does not say its own; `file` is a path or the end of one.
    """

    since: datetime | None = None
    until: datetime | None = None
    session: str = ""
    branch: str = ""
    branch_sessions: frozenset[str] = frozenset()
    file: str = ""
    numbers: tuple[int, int] | None = None
    numbered: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        """Whether everything meets it."""
        return self == SearchLimits()

    def narrowed(self, other: "SearchLimits") -> "SearchLimits":
        """Return these limits, and those of `other` where these say nothing."""
        return replace(
            other,
            **{field.name: getattr(self, field.name) for field in fields(self) if getattr(self, field.name)},
        )

    def admits(self, name: str, row: Row) -> bool:
        """
        Return whether a row of the table `name` meets it: a memory by a place it rests on, else by its dates.

        Instants may be microseconds since 1970, as the search index has them.
        """
        return self._admits_memory(row) if name == MEMORIES else self._admits_passage(row)

    def __str__(self) -> str:
        """Return it in words, for people."""
        last = self.until - timedelta(days=1) if self.until else None
        parts = [
            f"since {self.since:%Y-%m-%d}" if self.since else "",
            f"until {last:%Y-%m-%d}" if last else "",
            f"in session {self.session}" if self.session else "",
            _numbers_in_words(self.numbers) if self.numbers else "",
            f"on branch {self.branch}" if self.branch else "",
            f"of {self.file}" if self.file else "",
        ]
        return ", ".join(part for part in parts if part)

    def _admits_memory(self, row: Row) -> bool:
        names_file = any(_is_file(name, self.file) for name in row["files"] or ())
        if self.file and not (names_file or _names_file(row["text"], self.file)):
            return False
        places = row["evidence"] or ()
        if not places:
            is_placed = self.session or self.numbers or self.branch
            return not is_placed and (self._admits(row["created_at"]) or self._admits(row["updated_at"]))
        return any(
            self._admits(place["said_at"] or row["created_at"])
            and self._is_of_session(place["session_id"])
            and self._is_on_branch(place["session_id"], place.get("git_branch"))
            for place in places
        )

    def _admits_passage(self, row: Row) -> bool:
        return (
            (not self.file or _names_file(row["text"], self.file))
            and self._admits(row["said_at"])
            and self._is_of_session(row["session_id"])
            and self._is_on_branch(row["session_id"], None)
        )

    def _admits(self, instant: datetime | int | None) -> bool:
        if self.since is None and self.until is None:
            return True
        if instant is None:
            return False
        if isinstance(instant, int):
            instant = EPOCH + timedelta(microseconds=instant)
        return (self.since is None or instant >= self.since) and (self.until is None or instant < self.until)

    def _is_of_session(self, session_id: str) -> bool:
        if self.numbers and session_id not in self.numbered:
            return False
        return session_id.lower().startswith(self.session.lower())

    def _is_on_branch(self, session_id: str, branch: str | None) -> bool:
        return not self.branch or branch == self.branch or session_id in self.branch_sessions


NO_LIMITS = SearchLimits()


def _numbers_in_words(numbers: tuple[int, int]) -> str:
    first, last = numbers
    return f"in session {first}" if first == last else f"in sessions {first} to {last}"


def session_limits(words: str) -> SearchLimits:
    """
    Return the limits that somebody's word for sessions means: a number, a range, or the beginning of an id.

    >>> session_limits("5-8").numbers, session_limits("0211").session
    ((5, 8), '0211')
    """
    match = _NUMBER_ALONE.fullmatch(words.strip())
    return SearchLimits(numbers=_range(match)) if match else SearchLimits(session=words)


def _range(match: re.Match[str]) -> tuple[int, int]:
    first, last = int(match[1]), int(match[2] or match[1])
    return min(first, last), max(first, last)


def limits_in(question: str, now: datetime, policy: Policy) -> tuple[SearchLimits, str]:
    """
    Return what a question itself is limited to, and the question without the words that say so.

    Read are the phrases of time_words.csv, "the last 3 weeks", "since 2026-03-01", "in session 0211", and
    "sessions 5-8". Days are those of UTC.
    """
    since, until, session, numbers, rest = None, None, "", None, question
    if match := policy.derived(_numbered_sessions).search(rest):
        numbers, rest = _range(match), _without(rest, match)
    elif match := _SESSION.search(rest):
        session, rest = match[1], _without(rest, match)
    if match := _DAYS_BACK.search(rest):
        since = midnight(now) - timedelta(days=int(match[1]) * DAYS_OF[match[2].lower()])
        rest = _without(rest, match)
    elif match := _SINCE.search(rest):
        since, until = _around(match[1].lower(), match[2])
        rest = _without(rest, match)
    else:
        since, until, rest = _by_phrase(rest, now, policy)
    return SearchLimits(since=since, until=until, session=session, numbers=numbers), rest


def _numbered_sessions(policy: Policy) -> re.Pattern[str]:
    """Return what names sessions by their numbers: several words, or one that something leads up or ends."""
    words = [str(row["phrase"]) for row in policy.rows["time_words"].values() if _is_session(row)]
    named = "|".join(sorted(words, key=len, reverse=True))
    lead = r"\b(?:in|of|from|during|between|over|aus|von|zwischen|de|en|entre|dans|pendant|des)\b"
    article = r"(?: (?:the|der|den|las?|los|les))?"
    several = "|".join(word for word in words if word.endswith(("s", "en")))
    # Groups 1 and 2 are the numbers, whichever way leads there.
    return re.compile(
        rf"(?:{lead}{article} (?:{named})|\b(?:{several})|\b(?:{named}){_ALONE}){_NUMBERS}",
        re.IGNORECASE,
    )


def _is_session(row: Row) -> bool:
    return str(row["period"]) == _SESSION_PERIOD


def _by_phrase(question: str, now: datetime, policy: Policy) -> tuple[datetime | None, datetime | None, str]:
    lowered = question.lower()
    if len(lowered) != len(question):  # a capital İ becomes two characters
        lowered = question
    words = [row for row in policy.rows["time_words"].values() if not _is_session(row)]
    for row in sorted(words, key=lambda row: -len(str(row["phrase"]))):
        phrase = str(row["phrase"])
        at = lowered.find(phrase)
        if at >= 0 and (not phrase[0].isascii() or _is_word(lowered, at, len(phrase))):
            since, until = _period(str(row["period"]), int(float(row["value"] or 0)), now)
            return since, until, f"{question[:at]} {question[at + len(phrase) :]}"
    return None, None, question


def _is_word(text: str, at: int, length: int) -> bool:
    around = text[max(0, at - 1) : at] + text[at + length : at + length + 1]
    return not any(character.isalnum() or character in "-_'’" for character in around)


def _period(name: str, back: int, now: datetime) -> tuple[datetime, datetime]:
    """Return the first instant of an earlier day, week, month or year, and of the one after it."""
    day = midnight(now)
    if name == "day":
        since = day - timedelta(days=back)
        return since, since + timedelta(days=1)
    if name == "week":
        since = day - timedelta(days=day.weekday() + 7 * back)
        return since, since + timedelta(days=7)
    months = 12 if name == "year" else 1
    first = day.year * 12 + (0 if name == "year" else day.month - 1) - back * months
    return _month(first), _month(first + months)


def _month(number: int) -> datetime:
    return datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC)


def _around(word: str, date: str) -> tuple[datetime | None, datetime | None]:
    try:
        day = datetime.strptime(date, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:  # 2026-13-45 is no day, and then it is a word like others
        return None, None
    after = day + timedelta(days=1)
    return {"since": (day, None), "on": (day, after), "before": (None, day), "until": (None, after)}[word]


def _without(question: str, match: re.Match[str]) -> str:
    return f"{question[: match.start()]} {question[match.end() :]}"


def _is_file(path: str, wanted: str) -> bool:
    path, wanted = path.replace("\\", "/").lower(), wanted.replace("\\", "/").lower().removeprefix("./")
    return path == wanted or path.endswith(f"/{wanted}")


def _names_file(text: str, wanted: str) -> bool:
    """Return whether a text names a file by its path or its name alone."""
    name = wanted.replace("\\", "/").rsplit("/", 1)[-1].lower()
    lowered, at = text.lower(), -1
    while (at := lowered.find(name, at + 1)) >= 0:
        if _is_word(lowered, at, len(name)):
            return True
    return False
