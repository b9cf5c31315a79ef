"""How a memory reads in one line: what is cut, what is joined, whose words are shown."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from cortex.transforms.brief.wording import choice, fact_forms, gist
from cortex.transforms.policy import load_policy

REFERENCE = Path(__file__).parents[4] / "data" / "reference"
POLICY = load_policy({path.stem: path.read_text(encoding="utf-8") for path in REFERENCE.glob("*.csv")})
WHEN = datetime(2026, 9, 14, tzinfo=UTC)


def line(text: str, *, memory_type: str = "decision", layer: str = "layer2:en:user") -> str:
    evidence = [{"said_at": WHEN, "session_id": "3f2a", "layer": layer}]
    row = {
        "memory_type": memory_type, "text": text, "files": [], "reason": None, "rejected": None,
        "evidence": evidence, "updated_at": WHEN, "session_count": 1, "trust": "assistant",
        "category": "project", "confidence": 0.9,
    }  # fmt: skip
    return fact_forms(row, POLICY)[0]


def told(text: str) -> str:
    return gist(text, POLICY.tables["telling_words"], 200)[0]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("use pnpm (said when refusing Bash: npm install) → Done.", "- use pnpm (not `npm install`) ("),
        (
            "don't run the nightly tests here, they are slow (said when refusing Bash: make nightly) → Done.",
            "- don't run the nightly tests here, they are slow (",
        ),
        (
            "yes, do that (asked: There are two ways, etc. - mostly old Shall I keep the tides?)",
            "- Do that (asked: Shall I keep the tides?) (",
        ),
    ],
)
def test_the_occasion_is_told_only_where_the_words_need_it(words, shown):
    assert line(words).startswith(shown)


def test_a_reported_fault_is_told_with_what_it_was():
    shown = line("The curve fails on Sunday. → The loader dropped the last day.", memory_type="gotcha")
    assert shown.startswith("- The curve fails on Sunday. → The loader dropped the last day. (")


def test_an_arrow_in_the_assistants_words_is_no_answer():
    shown = line(
        "The gauge pushes → the poller stores it.", memory_type="architecture", layer="llm:small@session-1"
    )
    assert shown.startswith("- The gauge pushes → the poller stores it. (")


def test_a_question_is_cut_at_a_clause_and_options_are_left_out_whole():
    told_in_short = choice(
        "Should archives found on disk (not only inside others) be read too, or would you rather keep to one"
        " level as it is now? User chose: Both; not: Only inside others (as now), Neither of the two",
        120,
    )
    assert told_in_short == (
        "Should archives found on disk be read too? User chose Both, not Only inside others."
    )


def test_a_sentence_that_points_back_brings_what_it_points_to():
    assert told("The encoder returns nothing. I think we should fail in this situation.") == (
        "The encoder returns nothing. I think we should fail in this situation."
    )


def test_praise_fragments_and_numbers_are_not_the_gist():
    assert told("There's the bug! The poller reads `message` but the field is `content`.").startswith(
        "The poller reads"
    )
    assert told("Fields: 27-30; Timestamp access:; the last reading wins") == "Fields: the last reading wins."
