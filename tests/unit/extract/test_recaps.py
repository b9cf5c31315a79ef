"""What the client sums up of a session that a person left: goal, deeds and the next step."""

from cortex.storage.settings.reference import read_policy
from cortex.transforms.extract.language.phrases import Phrasebook
from cortex.transforms.extract.outcome import Recap, recap_parts
from tests.sessions import call, prompt, said, text
from tests.shown import Shown

PHRASES = Phrasebook.of(read_policy(None))
WORK = [prompt("Please keep the gauge's readings for a year."), call("Edit", "gauge.py"), text("Kept.")]


def test_a_recap_is_taken_apart() -> None:
    recap = "Goal: keep readings. I moved the readings into Parquet files. Next: write the manual."
    assert recap_parts(recap, PHRASES) == Recap(
        "Keep readings", ("Moved the readings into Parquet files.",), "Write the manual"
    )


def test_a_recap_is_told_in_the_record_of_its_session_alone(events: Shown) -> None:
    rows = events(*WORK, said("recap", "Moved the readings into Parquet files.", trust="assistant"))
    assert [row["layer"] for row in rows if "Parquet" in row["text"]] == ["layer1:outcome"]


def test_a_recap_of_the_session_before_is_not_told(events: Shown) -> None:
    rows = events(said("recap", "Moved the readings into Parquet files.", trust="assistant"), *WORK)
    assert not [row for row in rows if "Parquet" in row["text"]]
