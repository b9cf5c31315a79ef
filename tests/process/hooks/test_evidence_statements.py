"""What is shown of a passage bears on the question, and a reason is one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.flows.recalling.recall_search import question_of
from cortex.hooks.evidence.question import SearchQuestion, listing_asked
from cortex.hooks.evidence.statements import is_known, is_lead_in, reason_in, statement_in
from cortex.storage.settings.reference import read_policy
from cortex.transforms.search import search_settings
from tests.examples import cases

POLICY = read_policy(None)
SETTINGS = search_settings(POLICY)
GIVES_REASON = SETTINGS.pattern("gives_reason")


def asked(text: str) -> SearchQuestion:
    return question_of(text, POLICY)


@cases(
    "text",
    [
        "Why SQLite and not Postgres?",
        "what was the reason for the second buoy",
        "Warum misst die Boje in Metern?",
        "¿Por qué dos sondas?",
        "왜 부표를 옮겼나요?",
        "なぜブイを動かした?",
        "为什么要两个浮标?",
    ],
)
def test_a_question_for_the_reason_is_known_in_several_languages(text: str) -> None:
    assert asked(text).asks_why


@pytest.mark.parametrize("text", ["Which database holds the tides?", "Where is the whyte buoy?"])
def test_other_questions_ask_for_no_reason(text: str) -> None:
    assert not asked(text).asks_why


def test_the_reason_is_the_sentence_that_gives_one_for_what_is_shown() -> None:
    question = asked("Why does the buoy report in metres?").asked
    text = (
        "The buoy reports in metres. Gauges were painted because rust showed. "
        "The buoy uses metres because the agencies send metres. Because of the buoy we need:"
    )
    reason = reason_in([text], "The buoy reports in metres.", question, GIVES_REASON)
    assert reason == "The buoy uses metres because the agencies send metres."


def test_what_is_shown_already_or_has_nothing_of_the_question_is_no_reason() -> None:
    question = asked("Why does the buoy report in metres?").asked
    text = "Gauges were painted because rust showed."
    assert reason_in([text], "", question, GIVES_REASON) == ""
    text = "The buoy uses metres because agencies send metres."
    assert reason_in([text], text, question, GIVES_REASON) == ""


@given(st.text(max_size=300), st.text(max_size=100))
def test_a_reason_comes_from_the_text_and_is_news(text: str, shown: str) -> None:
    question = asked("Why does the buoy report because of metres?").asked
    reason = reason_in([text], shown, question, GIVES_REASON)
    assert not reason or (reason.rstrip("…") in text and not is_known(reason, shown))


@pytest.mark.parametrize("text", ["Now let me run it:", "이제 부표를 확인합니다:", "次に確認します："])
def test_what_ends_in_a_colon_only_leads_on(text: str) -> None:
    assert is_lead_in(text)
    assert not is_lead_in(f"The buoy reports its level in metres. {text}")


def test_a_short_command_stands_within_the_line() -> None:
    text = "You are ready:\n```bash\nbuoy start\n```\nIt listens on port 9."
    assert statement_in(text, asked("start").asked) == "You are ready: `buoy start` It listens on port 9."


@cases(
    ("question", "kind"),
    [
        ("what did we do?", "work"),
        ("Where did we leave off", "work"),
        ("was haben wir  gemacht?", "work"),
        ("¿Dónde nos quedamos?", "work"),
        ("は何をしましたか", "work"),
        ("what is open?", "open"),
        ("what's still left to do", "open"),
        ("was ist noch offen?", "open"),
        ("what was decided?", "decided"),
        ("Which decisions did we make", "decided"),
        ("show me the latest decisions", "decided"),
        ("was haben wir entschieden?", "decided"),
        ("welche Entscheidungen wurden getroffen", "decided"),
        ("¿qué decidimos?", "decided"),
        ("qu'avons-nous décidé ?", "decided"),
        ("quelles décisions ont été prises", "decided"),
        ("what was decided about the buoy?", ""),
        ("which decision log is read by the gauge?", ""),
        ("make a decision table for the tides", ""),
        ("what did we do about the buoy?", ""),
        ("which port is open on the gauge?", ""),
        ("what is the tide?", ""),
    ],
)
def test_the_record_of_sessions_is_asked_for_where_no_subject_is_named(question: str, kind: str) -> None:
    assert listing_asked(question, SETTINGS) == kind


@pytest.mark.parametrize(
    ("text", "languages"),
    [
        ("The tide is logged each hour.", {"en"}),
        ("Die Tide ist nicht in Metern.", {"en", "de"}),
        ("潮位を記録します。", {"en", "ja", "ko", "zh"}),
    ],
)
def test_sentences_are_looked_at_in_the_languages_of_what_was_found(text: str, languages: set[str]) -> None:
    assert SETTINGS.languages_of([text]) == languages


@pytest.mark.parametrize(
    ("text", "languages"),
    [("add a tide chart to the page", {"en"}), ("was ist noch offen?", set()), ("tide chart", set())],
)
def test_a_message_is_english_only_where_its_small_words_are(text: str, languages: set[str]) -> None:
    assert SETTINGS.language_of(text) == languages
