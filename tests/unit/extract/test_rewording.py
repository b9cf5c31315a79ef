"""What was said becomes a statement that is read alone; what cannot be one is kept to be found."""

import pytest

from cortex.transforms.extract.alone import stands_alone
from cortex.transforms.extract.phrases import Phrasebook
from cortex.transforms.extract.prose import as_statement
from cortex.transforms.extract.rewording import reworded, without_speaker
from cortex.transforms.extract.sentences import Passage
from cortex.transforms.extract.typed import as_typed_statement, is_errand
from cortex.transforms.policy import Policy
from tests.sessions import call, prompt, text
from tests.shown import Shown


@pytest.mark.parametrize(
    ("words", "statement"),
    [
        ("I've also added a queue because imports overlap.", "Added a queue because imports overlap."),
        ("We moved the levels into `tides.db`.", "Moved the levels into `tides.db`."),
        ("I'll use SQLite because nobody shares it.", "Use SQLite because nobody shares it."),
        ("I'd use SQLite because nobody shares it.", "Proposed: use SQLite because nobody shares it."),
        ("I suggest a queue for the imports.", "Proposed: a queue for the imports."),
        ("It turns out that the gauge counts in feet.", "The gauge counts in feet."),
        ("So, the key insight is that the gauge counts in feet.", "The gauge counts in feet."),
        ("You need to run `make tides` first.", "Run `make tides` first."),
        ("The reading goes 1.2 → 1.3 at noon.", "The reading goes 1.2 -> 1.3 at noon."),
        ("The gauge is read at noon.", "The gauge is read at noon."),
        ("Die Pegel liegen in UTC, weil zwei Stationen im Ausland stehen.",) * 2,
        ("潮位は UTC で保存する。",) * 2,
    ],
)
def test_an_assistants_opening_gives_way_to_what_it_states(words: str, statement: str) -> None:
    assert reworded(words, is_person=False) == statement


@pytest.mark.parametrize(
    ("words", "statement"),
    [
        ("ok, can you please make the curve blue?", "Make the curve blue."),
        ("No, please don't poll the gauge.", "Do not poll the gauge."),
        ("I want you to keep the levels in UTC", "Keep the levels in UTC"),
        ("I prefer tabs over spaces", "Prefers tabs over spaces"),
        ("i don't like popups", "Does not like popups"),
        ("why don't we store it in one file?", "Store it in one file."),
        ("let's use pnpm", "Use pnpm"),
        ("Levels stay in UTC.", "Levels stay in UTC."),
    ],
)
def test_a_persons_request_becomes_a_directive(words: str, statement: str) -> None:
    assert reworded(words, is_person=True) == statement


@pytest.mark.parametrize("words", ["", " ", "?", "ok", "please", "I", "→", "no, " * 2_000, "so, " * 5_000])
@pytest.mark.parametrize("is_person", [True, False])
def test_hostile_words_are_reworded_too(words: str, is_person: bool) -> None:
    assert isinstance(reworded(words, is_person=is_person), str)
    assert not stands_alone(words, is_person=is_person)


@pytest.mark.parametrize(
    "words",
    [
        "It keeps the levels in UTC because two gauges stand abroad.",
        "This means the page loads in half the time.",
        "Should the levels be kept in UTC or in local time?",
        "All 12 tests pass now.",
        "Let me know if the curve should be blue instead.",
        "I'm going to look at the loader of the gauge now.",
        "The loader reads the levels of the day and…",
        "The levels are stored in the following tables:",
        "`a/b.py`, `c/d.py`, `e/f.py`",
        "─────────────────────────────────",
        "As you asked for, the curve is blue and your screenshot shows it.",
    ],
)
def test_what_needs_its_neighbours_does_not_stand_alone(words: str) -> None:
    assert not stands_alone(words)


@pytest.mark.parametrize(
    "words",
    [
        "Levels are kept in UTC because two gauges stand abroad.",
        "Use pnpm, not npm, in this repository.",
        "Los niveles se guardan en UTC porque dos estaciones están en el extranjero.",
        "潮位は UTC で保存する。二つの観測所が国外にあるためである。",
        "조위는 UTC로 저장한다. 두 관측소가 국외에 있기 때문이다.",
        "Tests of the importer run without a network because the gauge's server limits calls.",
    ],
)
def test_a_statement_stands_alone_in_every_language(words: str) -> None:
    assert stands_alone(words)


def test_what_has_no_subject_takes_that_of_its_heading(events: Shown) -> None:
    rows = events(
        text("## Chunked export\n\nIt keeps memory flat because rows are written as they are read.")
    )
    assert "Chunked export: It keeps memory flat because rows are written as they are read." in [
        row["text"] for row in rows
    ]


def test_nothing_shown_is_cut_or_glued(shown: Shown) -> None:
    long = "The loader " + ", ".join(f"reads the levels of station {n}" for n in range(40)) + "."
    rows = shown(
        prompt("ok, can you please keep the levels in UTC? they come from two time zones."),
        text(f"Levels 1 → 2 are kept in `tides.db` because the curve needs a month. {long}"),
        call("Bash", "git commit -m 'Keep levels' -m 'Because → one file.'", "[main 1a2b3c4] Keep levels\n"),
        prompt("yes"),
    )
    assert rows
    for row in rows:
        assert not any(mark in row["text"] for mark in (" → ", "User chose", "(asked:", "…"))


@pytest.mark.parametrize(
    ("words", "statement"),
    [
        ("However, the gauge counts in feet.", "The gauge counts in feet."),
        ("Yes, the gauge counts in feet.", "The gauge counts in feet."),
        ("One caveat worth knowing: the gauge counts in feet.", "The gauge counts in feet."),
        ("Minor (fixed): the gauge counts in feet.", "The gauge counts in feet."),
    ],
)
def test_an_opening_that_ties_a_statement_to_the_talk_is_cut(words: str, statement: str) -> None:
    assert reworded(words, is_person=False) == statement


@pytest.mark.parametrize(
    ("words", "statement"),
    [
        ("Set it in your profile.", "Set it in the profile."),
        ("It prints `your name` (as I showed above).", "It prints `your name`."),
        ("The gauge counts in feet — as I noted in the readme.", "The gauge counts in feet."),
        ("The gauge has our own clock.", "The gauge has our own clock."),
    ],
)
def test_who_speaks_and_who_is_spoken_to_leave_the_statement(words: str, statement: str) -> None:
    assert without_speaker(words) == statement


@pytest.mark.parametrize(
    ("words", "statement"),
    [
        ("Thanks! I think we should keep the levels in UTC.", "Keep the levels in UTC."),
        ("In the chart, I think we should use feet for depths.", "In the chart, use feet for depths."),
        ("We don't need the tide forecast. Let me know if not.", "No tide forecast is needed."),
        ("I don't want tokens under my account.", "The user does not want tokens under the user's account."),
        ("The chart is blank, can you please fix the axis labels?", "Fix the axis labels."),
        ("Keep the file name, otherwise gtg", "Keep the file name"),
        ("So, use `my_levels` for our stations.", "Use `my_levels` for the stations."),
        ("Claude, keep the levels in UTC. What do you think?", "Keep the levels in UTC."),
        ("潮位は UTC で保存する。ありがとう。", "潮位は UTC で保存する。"),
        ("Para mí me gusta guardar las alturas en UTC.",) * 2,
    ],
)
def test_a_persons_words_become_statements(policy: Policy, words: str, statement: str) -> None:
    assert as_typed_statement(words, Phrasebook.of(policy)) == statement


@pytest.mark.parametrize(
    ("words", "is_for_the_hour"),
    [
        ("Explain how the gauge works.", True),
        ("Commit it.", True),
        ("Commit each station by itself.", False),
        ("Explain the units in each chart. Keep feet.", False),
    ],
)
def test_an_errand_is_no_memory(policy: Policy, words: str, is_for_the_hour: bool) -> None:
    assert is_errand(words, Phrasebook.of(policy)) == is_for_the_hour


@pytest.mark.parametrize(
    "words",
    [
        "tides/load.ts:12:4 - error TS2769: No overload matches this call.",
        "(node:60463) DeprecationWarning: calling the gauge twice is deprecated.",
        "=== gauge === reading 12 stations of the north coast",
        "Line 402 reads the gauge with a default that is never used.",
        "Option C: keep the gauge where it stands and move the chart.",
        "Asked whether to keep the gauge, and am waiting on your answer.",
    ],
)
def test_output_and_words_said_in_the_middle_of_work_do_not_stand_alone(words: str) -> None:
    assert not stands_alone(words)


@pytest.mark.parametrize(
    ("heading", "item", "statement"),
    [
        (
            "Corrections to the import",
            "Gauge clock: it runs in UTC, so no reading is shifted anywhere.",
            "",
        ),
        (
            "Not supported",
            "Gauge clock: it runs in UTC, so no reading is shifted anywhere.",
            "Not supported: ",
        ),
        ("How it works", "the gauge counts in feet", ""),
        ("What's still missing", "a chart of depths", "Missing: "),
        ("Two details I made sure of", "the gauge counts in feet", ""),
    ],
)
def test_a_heading_is_told_where_the_item_needs_it(
    policy: Policy, heading: str, item: str, statement: str
) -> None:
    wording = as_statement(Passage(item, heading, "item", 0), Phrasebook.of(policy))
    assert wording.lower() == f"{statement}{item}".lower()


@pytest.mark.parametrize(
    "words",
    [
        "Test coverage added: Units: Tests that feet are read; Clocks: Tests that UTC is kept.",
        "The documentation maintains the clean look of the chart throughout.",
        "No unit was given, so I inferred feet from the depth of the harbour.",
    ],
)
def test_lists_of_tests_praise_and_the_speaker_do_not_stand_alone(words: str) -> None:
    assert not stands_alone(words)


def test_a_sentence_of_the_speaker_is_left_out_where_another_says_the_fact(policy: Policy) -> None:
    said = "The gauge counts in feet because the harbour chart does. I added a test for it."
    statement = as_statement(Passage(said, "", "paragraph", 0), Phrasebook.of(policy))
    assert statement == "The gauge counts in feet because the harbour chart does."
