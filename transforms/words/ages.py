"""Ages, days, counts and who said something, as people read and write them."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from cortex.transforms.errors import UsageError
from cortex.transforms.vocabulary import SHARED_LAYER, TEAM_LAYER, WITHDRAWN_LAYER, Row

# Ages that stand by themselves.
_NO_AGES = ("just now", "age unknown")

DAYS_OF = {"day": 1, "week": 7, "month": 30}
_BACK = re.compile(r"(\d{1,3}) ?(?:(d)(?:ays?)?|(w)(?:eeks?)?|months?)(?: ago)?")


def midnight(now: datetime) -> datetime:
    """Return the first instant of a day of UTC."""
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def start_of(date: str, option: str, now: datetime) -> datetime:
    """
    Return midnight (UTC) of a day: `2026-09-14`, `today`, `yesterday`, `3 weeks`, `3w`, `10d`, `2 months`.

    A month is 30 days. Raises UsageError, which names the option.

    >>> start_of("3w", "--since", datetime(2026, 9, 22, 15, tzinfo=UTC)).date().isoformat()
    '2026-09-01'
    """
    word = date.strip().lower()
    if word in ("today", "yesterday"):
        return midnight(now) - timedelta(days=word == "yesterday")
    if match := _BACK.fullmatch(word):
        unit = "day" if match[2] else "week" if match[3] else "month"
        return midnight(now) - timedelta(days=int(match[1]) * DAYS_OF[unit])
    try:
        return datetime.strptime(date, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError as error:
        forms = f"Use YYYY-MM-DD, yesterday, 10d or 3w: {option} 2026-09-14"
        raise UsageError(f"Not a date: '{date}'.", forms) from error


def age_of(then: datetime | None, at: datetime) -> str:
    """
    Return how long ago something was, in the largest unit that fits.

    >>> age_of(datetime(2026, 9, 1, tzinfo=UTC), datetime(2026, 9, 15, tzinfo=UTC))
    '14 days'
    >>> age_of(datetime(2026, 9, 1, 9, 0, tzinfo=UTC), datetime(2026, 9, 1, 9, 29, tzinfo=UTC))
    '29 min'
    """
    if then is None:
        return "age unknown"
    days = (at - then).days
    if days >= 730:
        return f"{days // 365} years"
    if days >= 60:
        return f"{days // 30} months"
    if days >= 1:
        return counted(days, "day")
    minutes = int((at - then).total_seconds() // 60)
    if minutes >= 60:
        return counted(minutes // 60, "hour")
    return f"{minutes} min" if minutes >= 1 else "just now"


def old_age(then: datetime | None, at: datetime) -> str:
    """
    Return how old something is.

    >>> old_age(datetime(2026, 9, 1, tzinfo=UTC), datetime(2026, 9, 15, tzinfo=UTC))
    '14 days old'
    """
    age = age_of(then, at)
    return age if age in _NO_AGES else f"{age} old"


def ago(then: datetime | None, at: datetime) -> str:
    """
    Return when something was.

    >>> ago(datetime(2026, 9, 1, tzinfo=UTC), datetime(2026, 9, 15, tzinfo=UTC))
    '14 days ago'
    """
    age = age_of(then, at)
    return age if age in _NO_AGES else f"{age} ago"


def counted(count: int, noun: str) -> str:
    """
    Return a number of things in words.

    >>> counted(1, "session"), counted(3, "session"), counted(2, "memory")
    ('1 session', '3 sessions', '2 memories')
    """
    if count == 1:
        return f"{count} {noun}"
    return f"{count} {noun[:-1]}ies" if noun.endswith("ry") else f"{count} {noun}s"


# -- Who said a memory, in words: a colleague by name, and whether a team reviewed it.

COLLEAGUE = "colleague"
MAX_AUTHORS_LENGTH = 66  # characters, of all names together
HELD_LAYERS = (TEAM_LAYER, SHARED_LAYER)
_WORDS = ((TEAM_LAYER, "reviewed"), (SHARED_LAYER, "shared"), (WITHDRAWN_LAYER, "withdrawn"))


def authors_of(memory: Row) -> list[str]:
    """Return the colleagues who hold a row of MEMORIES, those of a repository or a team's place; sorted."""
    layers = (place["layer"] for place in memory["evidence"])
    return sorted({layer.partition(":")[2] for layer in layers if layer.startswith(HELD_LAYERS)})


def endorsement_of(memory: Row) -> str:
    """Return how colleagues hold a row of MEMORIES: reviewed, or only shared; empty if they do not."""
    layers = [place["layer"] for place in memory["evidence"]]
    held = (words for start, words in _WORDS[:2] if any(layer.startswith(start) for layer in layers))
    return next(held, "")


# What a program asked in a person's place, with `claude -p` or another client, and a session of nothing else.
STARTED_BY_PROGRAM = "started by a program"


def speaker_of_turn(turn: Row) -> str:
    """
    Return who said a row of TURNS or PASSAGES, in words.

    >>> speaker_of_turn({"kind": "program", "trust": "assistant"})
    'started by a program'
    """
    return STARTED_BY_PROGRAM if turn["kind"] == "program" else str(turn["trust"])


def speaker_of(memory: Row) -> str:
    """
    Return who said a row of MEMORIES, in words: a colleague by name, and whether a team reviewed it.

    >>> speaker_of({"trust": "colleague", "evidence": [{"layer": "team:Ana Lopez"}]})
    'colleague Ana Lopez (reviewed)'
    """
    endorsement = endorsement_of(memory)
    if memory["trust"] == COLLEAGUE and endorsement:
        return f"{COLLEAGUE} {' and '.join(authors_of(memory))[:MAX_AUTHORS_LENGTH]} ({endorsement})"
    return f"{memory['trust']} ({endorsement})" if endorsement else str(memory["trust"])


def author_of_layer(layer: str) -> str:
    """
    Return a layer of evidence as people read it: of a colleague's file its author.

    >>> author_of_layer("team:Ana Lopez"), author_of_layer("withdrawn:Bo"), author_of_layer("layer2:en")
    ('colleague Ana Lopez, reviewed', 'colleague Bo, withdrawn', 'layer2:en')
    """
    for start, words in _WORDS:
        if layer.startswith(start):
            return f"{COLLEAGUE} {layer.removeprefix(start)}, {words}"
    return layer


def copies_of(memory: Row) -> list[str]:
    """Return where colleagues hold a row of MEMORIES, in words, sorted: what is erased here stays there."""
    places = memory["evidence"]
    git = {place["file"] for place in places if place["layer"].startswith(TEAM_LAYER)}
    shared = {place["layer"].partition(":")[2] for place in places if place["layer"].startswith(SHARED_LAYER)}
    return [
        *(f"{file} on the default branch and in its history" for file in sorted(git)),
        *(f"what {author} shares at the team's place" for author in sorted(shared)),
    ]


# -- What came of a decision, in words.

FAILED = ("reverted", "complained")
_OUTCOME_VERBS = {"complained": "complained about"}


def outcome_words(outcome: Row) -> str:
    """
    Return in a few words what came of a decision, a row of OUTCOMES.

    >>> outcome_words({"kind": "reverted", "days": 3}), outcome_words({"kind": "complained", "days": 0})
    ('reverted 3 days later', 'complained about the same day')
    """
    days = f"{counted(outcome['days'], 'day')} later" if outcome["days"] else "the same day"
    return f"{_OUTCOME_VERBS.get(outcome['kind'], outcome['kind'])} {days}"


def outcome_lines(outcomes: Iterable[Row]) -> list[str]:
    """Return OUTCOMES as lines, in their order: what came of it, what says so, and its id."""
    lines = []
    for row in outcomes:
        settled = ", settled since" if row["is_settled"] and row["kind"] in FAILED else ""
        lines.append(f"{outcome_words(row)}{settled}: {row['text']} [{row['what'][:8]}]")
    return lines
