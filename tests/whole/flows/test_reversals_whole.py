"""A choice that is changed again and again: each month's brief tells the last word and none before it."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from cortex.flows.engines import runs
from cortex.flows.operations.edit.review import review
from cortex.flows.past.as_of import as_of
from cortex.flows.publishing.briefs import brief_of
from cortex.storage.store import start_of_day
from tests.bench import Bench
from tests.transcripts import Talk

# The month in which each is said, and its words: little but what they are about is the same.
CHOICES = {
    1: "Chose Redis over RabbitMQ for the mails because it is there already.",
    3: "The mails leave through RabbitMQ, not Redis: restarts of the harbour box lost half a day.",
    6: "Kafka instead of RabbitMQ for the mails, as accounting asks for replays of whole weeks.",
    8: "Moved the mails back from Kafka to RabbitMQ since the office knows it.",
    9: "Moved the mails from RabbitMQ to SQS since nobody wants to run brokers at night.",
    11: "Chose NATS over SQS for the mails: the bill tripled in autumn.",
}
OTHERS = ("reports",)


def first_of(month: int) -> datetime:
    return datetime(2026, month, 1, 9, tzinfo=UTC)


@pytest.fixture
def year(bench: Bench) -> Bench:
    for month in range(1, 13):
        talk = Talk(f"queue-{month}", start=first_of(month)).user("What is next?")
        if month in CHOICES:
            talk.assistant(f"[MEMORY: decision] {CHOICES[month]}")
        talk.write(bench.projects)
        for number, thing in enumerate(OTHERS):
            start = first_of(month) + timedelta(days=1 + number)
            words = f"The {thing} of month {month} are rendered by module {thing}_{month}.py alone."
            Talk(f"{thing}-{month}", start=start).user("And then?").assistant(
                f"[MEMORY: decision] {words}"
            ).write(bench.projects)
    bench.begin(now=datetime(2027, 1, 1, tzinfo=UTC))
    return bench


def told_each_month(year: Bench) -> dict[int, list[str]]:
    """Return what the brief of each month says of the mails."""
    now = datetime(2027, 1, 1, tzinfo=UTC)
    run = runs.read_only_run(year.at(now))
    [scope] = [each.project_id for each in year.store.projects.all()]
    lines = {}
    for month in range(1, 13):
        past = as_of(run, start_of_day(first_of(month) + timedelta(days=2)), run.readings.scopes())
        lines[month] = [line for line in brief_of(past, scope).splitlines() if "mails" in line]
    return lines


def last_word(month: int) -> str:
    return re.split(":|, as| because| since", CHOICES[max(each for each in CHOICES if each <= month)])[0]


def test_the_brief_of_each_month_says_the_last_choice_and_no_other(year: Bench):
    for month, lines in told_each_month(year).items():
        [line] = lines
        assert last_word(month) in line and "contradicted" not in line


def test_but_for_what_ends_an_older_word_a_brief_would_tell_it_too(year: Bench, monkeypatch):
    unended = lambda memories, edges, by_others, policy: memories  # noqa: E731
    for place in ("stages.memories", "run.model_replies"):
        monkeypatch.setattr(f"cortex.flows.{place}.with_valid_time", unended)
    assert any(len(lines) > 1 for lines in told_each_month(year).values())


def test_the_review_asks_about_each_choice_once(year: Bench):
    reviews = review(year.at(datetime(2027, 1, 1, tzinfo=UTC)))
    items = [item for each in reviews for item in each.items if item.kind == "contradiction"]
    named = [name for item in items for name in item.memory_ids]
    assert items and len(named) == len(set(named))
    assert all("mails" in text for item in items for text in item.texts)


# By project, its sessions, and what is asked and answered in each.
SESSIONS = {
    "signing": [
        [("How do I sign commits with my key?",
          "Done.\n[MEMORY: gotcha] The next time you sign a commit, git asks for the passphrase.")],
        [("I do not want to sign my commits anymore. Too much overhead.", "Commit signing is now off.")],
    ],
    "quiz": [[("Look at the review of the questions.", "The user wonders more if we throw out q7.")]],
    "folders": [
        [('Stick to "kelp" but just move it out of the pkg folder', "Moved to ./kelp."),
         ("Change in plan: all files in the root folder", "All files are now in the root folder.")],
    ],
    "report": [
        [("Let us work on the report layer. Please settle how it should be built.", "I looked at it all.")],
    ],
    "worker": [
        [("The worker crashes with duplicate jobs, please fix",
          "The cause was the timeout of 30 s; I raised it to 300 s and the worker runs each job once.")],
    ],
    "speech": [
        [("Add speech to text.", "One question still pending: which model size, base or small?"),
         ("Yes, let's do small", "The small one it is, and the page asks for nothing else any more.")],
    ],
}  # fmt: skip
HOLDS = {
    "signing": ["I do not want to sign my commits anymore."],
    "quiz": [],
    "folders": ["All files in the root folder"],
    "report": [],
    "worker": [],
    "speech": [],
}


def test_what_was_asked_wondered_mended_answered_or_taken_back_is_no_fact(bench: Bench):
    for project, sessions in SESSIONS.items():
        for number, turns in enumerate(sessions):
            talk = Talk(f"{project}-{number}", cwd=f"/home/ada/{project}", start=first_of(1 + number))
            for asked, answered in turns:
                talk.user(asked).assistant(answered)
            talk.write(bench.projects)
    bench.backfill(now=datetime(2027, 1, 1, tzinfo=UTC))
    facts = {
        project: [
            row["text"]
            for row in bench.memories(project)
            if row["valid_until"] is None and row["memory_type"] not in ("outcome", "progress")
        ]
        for project in SESSIONS
    }
    assert facts == HOLDS
