"""What narrows a search down: days, a session, a branch, a file; as options and within the question."""

import re
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta

from cortex.hooks.evidence.index import MEMORIES
from cortex.transforms.errors import UsageError
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EPOCH, Row

# "in session 0211": the beginning of an id, which has a digit, so that no word is taken for it.
_SESSION = re.compile(
    r"\b(?:in |of |from |during )?(?:the )?session ((?=[a-f-]{0,36}\d)[0-9a-f-]{4,36})(?![\w-])",
    re.IGNORECASE,
)
_DAYS_BACK = re.compile(
    r"\b(?:in |over |within |during )?the (?:last|past) (\d{1,3}) (day|week|month)s?\b", re.IGNORECASE
)
_SINCE = re.compile(r"\b(since|before|until|on) (\d{4}-\d{2}-\d{2})\b", re.IGNORECASE)
_DAYS_OF = {"day": 1, "week": 7, "month": 30}


@dataclass(frozen=True)
class SearchLimits:
    """
    What results must meet: said from `since` on, before `until` (UTC), in a session, on a branch, of a file.

    `session` is the beginning of an id; `branch_sessions` are the sessions that ended on `branch`, for what
    does not say its own; `file` is a path or the end of one.
    """

    since: datetime | None = None
    until: datetime | None = None
    session: str = ""
    branch: str = ""
    branch_sessions: frozenset[str] = frozenset()
    file: str = ""

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
            is_placed = self.session or self.branch
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
        return session_id.lower().startswith(self.session.lower())

    def _is_on_branch(self, session_id: str, branch: str | None) -> bool:
        return not self.branch or branch == self.branch or session_id in self.branch_sessions


NO_LIMITS = SearchLimits()


def limits_in(question: str, now: datetime, policy: Policy) -> tuple[SearchLimits, str]:
    """
    Return what a question itself is limited to, and the question without the words that say so.

    Read are the phrases of time_words.csv, "the last 3 weeks", "since 2026-03-01", and "in session 0211".
    Days are those of UTC.
    """
    since, until, session, rest = None, None, "", question
    if match := _SESSION.search(rest):
        session, rest = match[1], _without(rest, match)
    if match := _DAYS_BACK.search(rest):
        since = _day(now) - timedelta(days=int(match[1]) * _DAYS_OF[match[2].lower()])
        rest = _without(rest, match)
    elif match := _SINCE.search(rest):
        since, until = _around(match[1].lower(), match[2])
        rest = _without(rest, match)
    else:
        since, until, rest = _by_phrase(rest, now, policy)
    return SearchLimits(since=since, until=until, session=session), rest


def start_of(date: str, option: str) -> datetime:
    """Return midnight (UTC) of a day as `2026-09-14`. Raises UsageError, which names the option."""
    try:
        return datetime.strptime(date, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError as error:
        raise UsageError(f"Not a date: '{date}'.", f"Use YYYY-MM-DD: {option} 2026-09-14") from error


def _by_phrase(question: str, now: datetime, policy: Policy) -> tuple[datetime | None, datetime | None, str]:
    lowered = question.lower()
    if len(lowered) != len(question):  # a capital İ becomes two characters
        lowered = question
    for row in sorted(policy.rows["time_words"].values(), key=lambda row: -len(str(row["phrase"]))):
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
    """Return the first instant of a day, week, month or year so many back, and of the one after it."""
    day = _day(now)
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
        day = start_of(date, "")
    except UsageError:  # 2026-13-45 is no day, and then it is a word like others
        return None, None
    after = day + timedelta(days=1)
    return {"since": (day, None), "on": (day, after), "before": (None, day), "until": (None, after)}[word]


def _day(now: datetime) -> datetime:
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


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
