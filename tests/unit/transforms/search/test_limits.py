"""A search is narrowed to days, a session, a branch, a file, by options or by the question's own words."""

from datetime import UTC, datetime
from time import process_time

import pytest

from cortex.storage.settings.reference import read_policy
from cortex.transforms.errors import UsageError
from cortex.transforms.search import SearchLimits, limits_in, passages_of
from cortex.transforms.words.ages import start_of
from tests.examples import cases
from tests.rows import memories, memory, turn, turns

POLICY = read_policy(None)
# A Wednesday.
NOW = datetime(2026, 9, 16, 15, tzinfo=UTC)


def days(question: str) -> tuple[str | None, str | None]:
    limits, _ = limits_in(question, NOW, POLICY)
    first, last = (each.strftime("%m-%d") if each else None for each in (limits.since, limits.until))
    return first, last


@cases(
    ("question", "first", "last"),
    [
        ("what did we decide today", "09-16", "09-17"),
        ("which gauge failed yesterday?", "09-15", "09-16"),
        ("decisions of last week", "09-07", "09-14"),
        ("gauges this month", "09-01", "10-01"),
        ("gauges last month", "08-01", "09-01"),
        ("gauges in the last 3 days", "09-13", None),
        ("gauges since 2026-09-02", "09-02", None),
        ("gauges on 2026-09-02", "09-02", "09-03"),
        ("gauges before 2026-09-02", None, "09-02"),
        ("지난주에 정한 것", "09-07", "09-14"),
        ("was haben wir letzte Woche entschieden", "09-07", "09-14"),
        ("the last gauge", None, None),
        ("is week-1 of yesterdays tides kept", None, None),
        ("gauges on 2026-13-45", None, None),
    ],
)
def test_a_question_names_its_days(question: str, first: str | None, last: str | None) -> None:
    assert days(question) == (first, last)


def test_the_words_of_a_limit_are_not_searched_for() -> None:
    limits, rest = limits_in("which gauge failed last week in session 0211ab?", NOW, POLICY)
    assert (limits.session, rest.split()) == ("0211ab", ["which", "gauge", "failed", "?"])


@cases(
    ("question", "numbers", "rest"),
    [
        ("what did we do in sessions 5-8", (5, 8), "what did we do"),
        ("sessions 5–8", (5, 8), ""),
        ("what happened in sessions 8 to 5?", (5, 8), "what happened ?"),
        ("what was decided in session 6", (6, 6), "what was decided"),
        ("session 6", (6, 6), ""),
        ("and session #12?", (12, 12), "and ?"),
        ("was haben wir in den Sitzungen 5 bis 8 gemacht", (5, 8), "was haben wir gemacht"),
        ("qu'avons-nous décidé dans les séances 5 à 8", (5, 8), "qu'avons-nous décidé"),
        ("¿qué decidimos en la sesión 6?", (6, 6), "¿qué decidimos ?"),
        ("keep a session 30 minutes", None, "keep a session 30 minutes"),
        ("the pool holds it in session 30 minutes", None, "the pool holds it in session 30 minutes"),
        ("add session 2 factor login", None, "add session 2 factor login"),
        ("in session 2.1 of the protocol", None, "in session 2.1 of the protocol"),
    ],
)
def test_sessions_are_named_by_their_numbers(
    question: str, numbers: tuple[int, int] | None, rest: str
) -> None:
    limits, left = limits_in(question, NOW, POLICY)
    assert (limits.numbers, " ".join(left.split())) == (numbers, rest)


@pytest.mark.parametrize("question", ["how is session handling done", "session cafe", "session management"])
def test_a_word_after_session_is_no_id(question: str) -> None:
    assert limits_in(question, NOW, POLICY) == (SearchLimits(), question)


def place(session: str, day: int, branch: str | None = None) -> dict[str, object]:
    return {
        "turn_id": "t", "session_id": session, "file": f"/t/{session}", "lines": [3], "layer": "llm:small@1",
        "said_at": datetime(2026, 9, day, tzinfo=UTC), "git_branch": branch,
    }  # fmt: skip


ROWS = memories(
    memory("old", "Tides are logged", evidence=[place("aa11", 1, "main")]),
    memory("new", "Tides are hourly", evidence=[place("bb22", 10, "gauges")], files=["src/poll.py"]),
    memory("both", "Tides in UTC", evidence=[place("aa11", 1), place("bb22", 10)]),
)


@cases(
    ("limits", "ids"),
    [
        (SearchLimits(since=datetime(2026, 9, 5, tzinfo=UTC)), {"new", "both"}),
        (SearchLimits(until=datetime(2026, 9, 5, tzinfo=UTC)), {"old", "both"}),
        (SearchLimits(session="aa"), {"old", "both"}),
        (SearchLimits(branch="gauges"), {"new"}),
        (SearchLimits(branch="gauges", branch_sessions=frozenset({"bb22"})), {"new", "both"}),
        (SearchLimits(file="poll.py"), {"new"}),
        (SearchLimits(file="oll.py"), set()),
        (SearchLimits(), {"old", "new", "both"}),
    ],
)
def test_a_memory_meets_limits_by_a_place_it_rests_on(limits: SearchLimits, ids: set[str]) -> None:
    met = [row["memory_id"] for row in ROWS.to_pylist() if limits.admits("memories", row)]
    assert set(met) == ids


def test_a_turn_meets_limits_by_its_session_and_the_files_it_names() -> None:
    rows = passages_of(turns(turn(1, "Edit `src/poll.py` now."), turn(2, "The tide turns.")), POLICY)
    rows = rows.to_pylist()
    of_file = SearchLimits(file="src/poll.py")
    assert [row["line"] for row in rows if of_file.admits("passages", row)] == [1]
    assert not any(SearchLimits(session="nowhere").admits("passages", row) for row in rows)


def test_limits_are_said_in_words() -> None:
    since, until = datetime(2026, 9, 1, tzinfo=UTC), datetime(2026, 9, 8, tzinfo=UTC)
    limits = SearchLimits(since, until, "0211", "main", file="a.py")
    assert str(limits) == "since 2026-09-01, until 2026-09-07, in session 0211, on branch main, of a.py"


@pytest.mark.parametrize(
    ("word", "day"),
    [
        ("2026-09-01", "2026-09-01"),
        ("today", "2026-09-16"),
        ("Yesterday", "2026-09-15"),
        ("10d", "2026-09-06"),
        ("1 day ago", "2026-09-15"),
        ("3w", "2026-08-26"),
        ("3 weeks", "2026-08-26"),
        ("2 months ago", "2026-07-18"),
    ],
)
def test_a_day_is_a_date_or_so_long_ago(word, day) -> None:
    assert start_of(word, "--since", NOW) == datetime.fromisoformat(f"{day}T00:00+00:00")


@pytest.mark.parametrize("word", ["1.9.2026", "3 moons", "3m", "9999w", "", "w", "2026-13-45"])
def test_what_names_no_day_is_refused_with_the_form(word) -> None:
    with pytest.raises(UsageError, match=r"Not a date.*YYYY-MM-DD, yesterday, 10d or 3w: --since 2026-09-14"):
        start_of(word, "--since", NOW)


def test_a_long_question_is_read_in_no_time() -> None:
    begun = process_time()
    for part in ("session 0", "in the last ", "since 2026-", "a-" * 9):
        limits_in(part * 20_000, NOW, POLICY)
    assert process_time() - begun < 2
