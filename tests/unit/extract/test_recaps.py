"""What the client sums up itself: recaps while a person was away, and summaries at a compaction."""

from tests.sessions import Said, call, prompt, said, text
from tests.shown import Shown

ASKED = prompt("Please keep the gauge's readings for a year.")
WORK = [ASKED, call("Edit", "gauge.py"), text("Kept the readings.")]
SUMMARY = """This session is being continued from a previous conversation that ran out of context.

Analysis:
1. The user asked about gauges.

Summary:
1. Primary Request and Intent:
   - Keep the readings of the gauge for a year

2. Key Technical Concepts:
   - Readings are kept per gauge in one Parquet file a month

4. Errors and fixes:
   - **The gauge lost its clock at noon**: fixed by reading the time from the server

6. All user messages:
   - "please keep the readings of the gauge for a year"

9. Optional Next Step:
   - "Now write the manual of the gauge"
"""


def texts_of(events: Shown, layer: str, *turns: Said | list[Said]) -> dict[str, str]:
    """Return text → memory type of what a layer saw."""
    return {row["text"]: row["memory_type"] for row in events(*turns) if row["layer"] == layer}


def test_a_recap_is_told_sentence_by_sentence_without_goal_and_next_step(events: Shown) -> None:
    recap = said(
        "recap", "Goal: keep readings. Moved the readings into Parquet files. Next: write the manual."
    )
    assert texts_of(events, "layer1:recap", *WORK, recap) == {
        "Moved the readings into Parquet files.": "progress"
    }


def test_a_later_recap_takes_the_place_of_what_it_says_again(events: Shown) -> None:
    first = said("recap", "Moved the readings of the gauge into Parquet files.")
    second = said("recap", "Moved the readings of the gauge into Parquet files, committed on main.")
    assert list(texts_of(events, "layer1:recap", *WORK, first, text("Committed."), second)) == [
        "Moved the readings of the gauge into Parquet files, committed on main."
    ]


def test_of_a_summary_faults_and_knowledge_are_told_and_no_boilerplate(events: Shown) -> None:
    summary = said("summary", SUMMARY, trust="assistant")
    assert texts_of(events, "layer1:summary", *WORK, summary) == {
        "Readings are kept per gauge in one Parquet file a month": "context",
        "The gauge lost its clock at noon: fixed by reading the time from the server": "gotcha",
    }


def test_a_summary_that_opens_a_session_is_of_the_session_before(events: Shown) -> None:
    assert texts_of(events, "layer1:summary", said("summary", SUMMARY, trust="assistant"), *WORK) == {}


def test_what_the_client_sums_up_is_the_assistants_word(events: Shown) -> None:
    recap = said("recap", "Moved the readings into Parquet files.", trust="assistant")
    trusts = {row["trust"] for row in events(*WORK, recap) if row["layer"] == "layer1:recap"}
    assert trusts == {"assistant"}
