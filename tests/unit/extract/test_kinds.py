"""What kind of memory a person's and an assistant's words become."""

import pytest

from cortex.transforms.extract.lexicon import Lexicon
from cortex.transforms.extract.plans import request

WISHES = (
    "Always run the linter before a commit.",
    "I prefer small commits, one change each.",
    "Use uv, not pip.",
    "Please don't touch the generated files.",
    "I actually don't like this idea, can you list its risks?",
    "I didn't find those links helpful, can you replace them with a single one?",
    "I have both here, but I don't want to make assumptions about other machines.",
)
CHOICES = (
    "Let's go with option B.",
    "Keep the raw payloads for 90 days instead of dropping them.",
    "I think we should fail here.",
    "Does it only run on main? I think we should run it on every push?",
    "I want to replace the user id with a machine identifier.",
    "Change in plan: all files in the root folder.",
    "Yeah, let's migrate to cobra.",
    "Can you rename the loader to `TideReader`?",
)
REQUESTS = (
    "Set up storage for the tide gauges. I want something that runs on the small box.",
    "I want quality flags on readings: spikes, gaps, and gauges that are stuck.",
    "Can you review the poller? Then add a test.",
    "Keep six minutes for now.",
    "I want to pick it up again and fix the broken APIs.",
    "Let's add a unit test for that.",
    "Let's see what the log says.",
)
QUESTIONS = (
    "Do we need the second pass?",
    "Please have a look at the diff.",
    "Fair enough. Can you write a balanced opinion? Keep it short.",
    "Use two helpers to give me an overview of the loader.",
)


@pytest.fixture
def lexicon(policy) -> Lexicon:
    return Lexicon.of(policy)


@pytest.mark.parametrize(
    ("words", "memory_type"),
    [
        *((words, "pattern") for words in WISHES),
        *((words, "decision") for words in CHOICES),
        *((words, "progress") for words in REQUESTS),
        *((words, "context") for words in QUESTIONS),
        ("The database is not writable, it fails at once.", "gotcha"),
    ],
)
def test_only_lasting_wishes_are_preferences_and_a_request_is_at_most_progress(lexicon, words, memory_type):
    assert lexicon.kinds.of_person(words)[1] == memory_type


@pytest.mark.parametrize(
    ("words", "memory_type"),
    [
        ("Files updated: poll.py - now uses httpx instead of requests; store.py - moved", "progress"),
        ("3. Next steps: write the docs; tag the release", "progress"),
        ("Decided: levels are millimetres; flags lie beside the reading", "decision"),
        ("We decided to use SQLite over PostgreSQL because one writer is enough.", "decision"),
        ("It was renamed in spring.", "context"),
        ("How it works: the gauge pushes a level each minute; the poller stores it", "architecture"),
    ],
)
def test_a_change_log_is_no_decision(lexicon, words, memory_type):
    assert lexicon.kind_of(words)[1] == memory_type


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("I am back. Can you please add tar support?", "Add tar support"),
        ("ok, let's make it cross-browser", "Make it cross-browser"),
        ("test/test_tides.py:166: AssertionError", ""),
        ("The office says the curve doubled on Sunday.", ""),
    ],
)
def test_a_list_is_titled_with_what_was_asked_for(prompt, title):
    assert request(prompt) == title


@pytest.mark.parametrize(
    ("words", "memory_type"),
    [
        ("Could we reuse the gauge template for that?", "decision"),
        (
            "I feel like even if a single reading of the day before is there we should continue, or?",
            "decision",
        ),
        ("The log should be as small as possible.", "pattern"),
        ("It still reads as if we opened a new file always", "progress"),
        ("I'd explain the tide first and then the curve in general.", "progress"),
    ],
)
def test_a_wish_stands_where_it_is_wished_and_a_choice_may_be_a_question(lexicon, words, memory_type):
    assert lexicon.kinds.of_person(words)[1] == memory_type


@pytest.mark.parametrize(
    ("words", "memory_type"),
    [
        ("The simplest approach is to split the loader from the poller.", "context"),
        (
            "The tarball is private. The cleanest way is the git strategy. Going with that approach.",
            "decision",
        ),
        ("I've successfully replaced the gauge list with the shared component.", "decision"),
        ("Loader issues: gaps are skipped silently; the last day is lost", "gotcha"),
        ("There's a schema error - the property should be `directory` instead of `folder`.", "gotcha"),
        ("But when the flag is set we skip the rest instead of reading on.", "context"),
        ("`poll.yaml` edits: remove the hook; keep only the schedule", "progress"),
        ("커밋이 서명 에이전트 거부로 실패했습니다.", "gotcha"),
    ],
)
def test_proposals_and_thinking_aloud_settle_nothing(lexicon, words, memory_type):
    assert lexicon.kind_of(words)[1] == memory_type
