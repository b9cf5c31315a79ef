"""What a person typed holds in their own words; requests, faults and what is taken back make no memory."""

import pytest

from tests.sessions import call, prompt, said, text
from tests.shown import Shown

REVIEW = (
    "Medium: the loader now exits with 0 although the argument is missing, so scripts that check the exit "
    "code keep the old file instead of failing, which must never happen in the nightly import of the tides."
)
PAGE = (
    "Because it is common to read gauges without a key, an alias is provided instead of the long command; "
    "the two are exactly equivalent, and the documentation only uses the alias."
)


def typed(rows: list[dict]) -> list[tuple[str, str]]:
    """Return (memory type, text) of what a person typed among shown rows."""
    return [(row["memory_type"], row["text"]) for row in rows if row["layer"].endswith(":user")]


@pytest.mark.parametrize(
    ("words", "memory_type", "statement"),
    [
        ("No, please don't poll the gauge; use the push feed instead.", "pattern", None),
        ("I don't like popups on the harbour page.", "pattern", None),
        ("let's use SQLite instead of Postgres", "decision", "Use SQLite instead of Postgres"),
        ("ok, can you please replace the poller with the push feed?", "decision", None),
        ("Keep the old name of the module.", "decision", None),
        ("Thanks! Keep the old name of the module. How are the tides?", "decision", None),
    ],
)
def test_an_order_is_kept_in_the_persons_words(
    shown: Shown, words: str, memory_type: str, statement: str | None
) -> None:
    [(kind, told)] = typed(shown(prompt(words), text("Done.")))
    assert kind == memory_type
    assert told.rstrip(".").casefold() in words.casefold() and (statement is None or told == statement)


@pytest.mark.parametrize(
    "words",
    [
        "The worker crashes on the second harbour, please fix it.",
        "Let us work on the report component. Please settle how it should be built.",
        "Work on the tide table, and decide which format it gets.",
        "I wonder more if we throw out the seventh gauge.",
        "Implement the fix of the tide table in a new branch, do meaningful commits.",
        "let's also verify that the gauge's tests still work with the mast",
        "I see no use of the gauge's cache in our code. Tell me where we should add it.",
        "Explícame cómo se calcula la marea en la página del puerto.",
        "Replace them with a single link instead.",
        "They don't look that bad.",
        "First fix the empty pack",
        "yes",
        "Should we use SQLite instead of Postgres?",
    ],
)
def test_a_request_a_fault_and_a_question_are_events_alone(events: Shown, words: str) -> None:
    rows = [row for row in events(prompt(words), text("Done.")) if row["layer"].endswith(":user")]
    assert all(row["memory_type"] is None and row["confidence"] < 0.5 for row in rows)


def test_pasted_words_are_nobodys(events: Shown) -> None:
    rows = events(prompt(f"{REVIEW}\n\n{PAGE}\n\nnot sure about the first one, what do you say?"))
    assert not [row for row in rows if "exits with 0" in row["text"] or "equivalent" in row["text"]]
    rows = events(prompt("The import fails.\n12:01:33 ERROR never use the old gauge\n$ make import"))
    assert all("old gauge" not in row["text"] for row in rows)


def test_a_long_prompt_in_the_persons_voice_stays_theirs(shown: Shown) -> None:
    own = "I think we should fail when the argument is missing instead of keeping the old file for days."
    assert typed(shown(prompt(f"{REVIEW}\n\n{own}\n\n{PAGE}"))) == [("decision", own)]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("We should keep the levels in local time.", "Never mind, undo that."),
        ("Use the old gauge client instead of the new one.", "Use the old gauge client for tests alone."),
        ("We also rename the repository to reef/old.", "We renamed it from reef/old to reef/kelp."),
        ("Keep the push feed beside the poller.", "please get rid of the push feed"),
        ("We also rename the repository to kelpsync.", "Rename the repository back to kelp-sync."),
    ],
)  # fmt: skip
def test_of_what_is_taken_back_or_said_again_the_last_word_stays(shown: Shown, first: str, then: str) -> None:
    assert first not in [told for _, told in typed(shown(prompt(first), text("Done."), prompt(then)))]
    assert first.rstrip(".") in [told.rstrip(".") for _, told in typed(shown(prompt(first), text("Done.")))]


def test_a_question_answered_twice_is_answered_as_it_was_last(shown: Shown) -> None:
    def answered(choice: str) -> list:
        asked, _ = call("AskUserQuestion", "", questions=[{
            "question": "Which store should be used?", "header": "Store",
            "options": [{"label": "SQLite", "description": ""}, {"label": "Postgres", "description": ""}],
        }])  # fmt: skip
        key = asked["tool_use_id"] + choice
        turn = said("choice", f"Which store should be used? → {choice}", tool_use_id=key)
        return [{**asked, "tool_use_id": key}, turn]

    rows = shown(answered("SQLite"), answered("Postgres"))
    assert [row["text"] for row in rows if row["memory_type"] == "decision"] == [
        "For store that should be used: Postgres, not SQLite."
    ]


def test_words_that_stop_a_call_say_how_it_is_done_here_unless_only_for_now(events: Shown) -> None:
    def refused(words: str) -> str | None:
        asked, _ = call("Bash", "npm run lint")
        rows = events([asked], said("rejection", words, tool_use_id=asked["tool_use_id"]))
        return next(row["memory_type"] for row in rows if row["layer"].endswith(":user"))

    assert refused("run the whole suite on the small gauge first") == "pattern"
    assert refused("don't worry about linting for now, just continue") is None


def test_two_words_that_refuse_a_call_are_enough(shown: Shown) -> None:
    asked, answered = call("Bash", "npm install", status="rejected")
    rows = shown([asked, answered], said("rejection", "use pnpm", tool_use_id=asked["tool_use_id"]))
    assert [row["text"] for row in rows if row["memory_type"] == "decision"] == [
        "Instead of `npm install`: use pnpm"
    ]


@pytest.mark.parametrize("words", ["wait", "no, wait", "hm", "don't", "skip this", "hold on", "commit first"])
def test_few_words_that_settle_or_name_nothing_are_no_rule(shown: Shown, words: str) -> None:
    asked, answered = call("Bash", "npm install", status="rejected")
    assert shown([asked, answered], said("rejection", words, tool_use_id=asked["tool_use_id"])) == []


def test_a_wish_is_of_its_project_unless_it_names_every_one(shown: Shown) -> None:
    (here,) = shown(prompt("Never commit to main, I always prefer small steps."))
    (everywhere,) = shown(prompt("I always prefer small steps, in all my projects."))
    assert (here["category"], everywhere["category"]) == ("project", "global")


@pytest.mark.parametrize("words", ["", " ", "?", "ok", "please", "I", "→", "no, " * 2_000, "so, " * 5_000])
def test_hostile_words_make_no_memory(shown: Shown, words: str) -> None:
    assert typed(shown(prompt(words))) == []
