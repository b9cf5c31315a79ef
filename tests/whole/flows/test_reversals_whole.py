"""A choice that is changed again and again: each month's brief tells the last word and none before it."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from cortex.flows.engines import runs
from cortex.flows.operations.change.review import review
from cortex.flows.past.as_of import as_of
from cortex.flows.publishing.briefs import brief_of
from cortex.storage.store import start_of_day
from tests.bench import Bench
from tests.transcripts import Talk

# The month in which each is said, and its words.
CHOICES = {
    1: "Chose Redis over RabbitMQ for the job queue because it is there already.",
    3: "The job queue moves from Redis to RabbitMQ: jobs were lost on restart.",
    6: "Chose Kafka over RabbitMQ for the job queue because of replays.",
    9: "The job queue uses SQS, not Kafka: nobody wants to run brokers.",
    11: "Moved the job queue from SQS to NATS because of the bill.",
}
OTHERS = ("reports", "invoices", "exports", "mails", "alerts", "maps", "tides", "logs", "users", "labels")


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
    bench.backfill(now=datetime(2027, 1, 1, tzinfo=UTC))
    return bench


def test_the_brief_of_each_month_says_the_last_choice(year: Bench):
    now = datetime(2027, 1, 1, tzinfo=UTC)
    for month in CHOICES:
        run = runs.read_only_run(year.at(now))
        past = as_of(run, start_of_day(first_of(month) + timedelta(days=2)), run.readings.scopes())
        [scope] = [each.project_id for each in year.store.projects.all()]
        [line] = [line for line in brief_of(past, scope).splitlines() if "job queue" in line]
        assert re.split(":| because", CHOICES[month])[0] in line


def test_the_review_asks_about_each_choice_once(year: Bench):
    reviews = review(year.at(datetime(2027, 1, 1, tzinfo=UTC)))
    items = [item for each in reviews for item in each.items if item.kind == "contradiction"]
    named = [name for item in items for name in item.memory_ids]
    assert items and len(named) == len(set(named))
    assert all("job queue" in text for item in items for text in item.texts)
