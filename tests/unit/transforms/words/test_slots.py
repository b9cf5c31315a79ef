"""The slots of a fact: what it chooses, turns down, why and about what, however that is worded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.storage.settings.reference import read_policy
from cortex.transforms.memory.fold import fold
from cortex.transforms.schemas import EVENTS, JOURNAL
from cortex.transforms.words.facts import beginning_of, stem
from cortex.transforms.words.slots import SlotParser
from tests.examples import cases
from tests.rows import START, entry, event, events

POLICY = read_policy(None)
PARSER = SlotParser.of(POLICY)

WORDED = (
    ("Chose Redis over Memcached for the cache because it persists.",
     "Redis", "Memcached", "it persists", "the cache"),
    ("I went with Redis for the job queue instead of RabbitMQ, because we already run Redis",
     "Redis", "RabbitMQ", "we already run Redis", "the job queue"),
    ("I'll use SQLite rather than Postgres, because there is one writer.",
     "SQLite", "Postgres", "there is one writer", ""),
    ("Use npm, not pnpm, in the web folder", "npm", "pnpm", "", "the web folder"),
    ("The cache uses Memcached, not Redis", "Memcached", "Redis", "", "The cache"),
    ("The public API is REST, not GraphQL", "REST", "GraphQL", "", "The public API"),
    ("The public API switches from REST to GraphQL", "GraphQL", "REST", "", "The public API"),
    ("We now switch from REST to GraphQL", "GraphQL", "REST", "", ""),
    ("Moved the tokenizer from Python to Rust", "Rust", "Python", "", "the tokenizer"),
    ("Rejected Celery: too heavy for one worker", "", "Celery", "too heavy for one worker", ""),
    ("MongoDB was ruled out because it has no transactions.", "", "MongoDB", "it has no transactions", ""),
    ("Never use npm here, always pnpm", "pnpm", "npm", "", ""),
    ("Tabs over spaces", "Tabs", "spaces", "", ""),
    ("I do not want to sign my commits anymore.", "", "sign my commits", "", ""),
    ("Readings are cached in Postgres instead of SQLite because two writers came.",
     "Postgres", "SQLite", "two writers came", "Readings"),
    ("Passwords are hashed with Argon2.", "Argon2", "", "", "Passwords"),
    ("The staging server is in Lisbon.", "Lisbon", "", "", "The staging server"),
    ("We got rid of the coverage gate altogether", "", "coverage gate", "", ""),
    ("Celery is out, jobs run in threads.", "", "Celery", "", ""),
    ("Celery fliegt raus", "", "Celery", "", ""),
    ("Deploys go through Jenkins, no longer through Travis.", "", "Travis", "", ""),
    ("Instead of Mako, use Jinja", "Jinja", "Mako", "", ""),
    ("Replace moment.js with dayjs in the frontend", "dayjs", "moment.js", "", "the frontend"),
    ("Store money as integer cents, not floats", "", "floats", "", ""),
    ("We write the export service in Java.", "Java", "", "", "the export service"),
    ("Stick with npm", "npm", "", "", ""),
    ("The export service is written in Kotlin", "Kotlin", "", "", "The export service"),
    ("Wir nehmen SQLite statt Postgres, weil es einfacher ist", "SQLite", "Postgres", "es einfacher ist", ""),
)  # fmt: skip


@cases(("text", "chosen", "rejected", "reason", "subject"), WORDED)
def test_a_statement_fills_its_slots(text, chosen, rejected, reason, subject):
    slots = PARSER.slots_of(text)
    assert (slots.chosen, slots.rejected, slots.reason, slots.subject) == (chosen, rejected, reason, subject)


@pytest.mark.parametrize(
    "text",
    [
        "Keep ports over 9000",
        "Requests to the ledger time out after 30 seconds",
        "Stations report in local time until the firmware of 2025",
    ],
)
def test_words_of_a_choice_that_choose_nothing_fill_no_slot(text):
    slots = PARSER.slots_of(text)
    assert (slots.chosen, slots.rejected) == ("", "")


def told(kind, text):
    """Return the one memory of a fact that came in by an event of a layer, or by a journal entry."""
    if kind in ("remember", "import"):
        payload = {"text": text, "memory_type": "decision", "category": "project"}
        journal = JOURNAL.of([entry(kind, "reef-1", payload, recorded_at=START, memory_id="m1")])
        return fold(EVENTS.empty(), journal, POLICY).to_pylist()[0]
    return fold(events(event(text, layer=kind)), JOURNAL.empty(), POLICY).to_pylist()[0]


@cases("kind", ["layer3:tag", "layer2:user", "llm:small@session-1", "remember", "import"])
def test_a_fact_has_its_slots_whoever_says_it(kind):
    memory = told(kind, "Chose Redis over Memcached because it persists.")
    assert (memory["chosen"], memory["rejected"], memory["reason"]) == ("Redis", "Memcached", "it persists")


def test_what_a_source_says_of_itself_stands_before_what_its_words_say():
    row = event("Use SQLite instead of Redis", rejected="Redis and Valkey", reason="one writer")
    [memory] = fold(events(row), JOURNAL.empty(), POLICY).to_pylist()
    assert (memory["rejected"], memory["reason"]) == ("Redis and Valkey", "one writer")


@pytest.mark.parametrize(
    "text", ["Celery: too heavy for one worker", "Rejected Celery: too heavy for one worker"]
)
def test_what_was_reported_as_rejected_is_turned_down_whether_or_not_its_words_say_so(text):
    row = event(text, event_type="APPROACH_REJECTED", layer="layer3:tag")
    [memory] = fold(events(row), JOURNAL.empty(), POLICY).to_pylist()
    assert (memory["text"], memory["chosen"]) == (text, None)
    assert (memory["rejected"], memory["reason"]) == ("Celery", "too heavy for one worker")


def test_what_stands_in_brackets_turns_down_nothing():
    text = "The page lists the buoys by name (proposed by the assistant, not tried in a browser)."
    assert PARSER.slots_of(text).rejected == ""
    assert PARSER.slots_of("Readings go to a queue (not run).").rejected == ""


ENDINGS = (
    "",
    "s",
    "es",
    "ies",
    "ed",
    "eed",
    "ying",
    "ing",
    "y",
    "ly",
    "ability",
    "ization",
    "ational",
    "ogy",
    "é",
)


@given(st.text("abdeiloprstvyz'é", min_size=1), st.sampled_from(ENDINGS), st.sampled_from(ENDINGS))
def test_a_word_begins_as_its_stem_says(word, ending, more):
    word = "d" + word + ending + more if word.startswith("'") else word + ending + more
    assert word.startswith(beginning_of(stem(word)))


@pytest.mark.parametrize("word", ["skies", "dying", "hoping", "relies", "ability", "only", "news"])
def test_a_word_of_another_stem_than_its_letters_begins_as_that_says(word):
    assert word.startswith(beginning_of(stem(word)))
