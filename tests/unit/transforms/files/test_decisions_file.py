"""A list of decisions that two branches change at once: what both did is there, once, whatever the order."""

import random

import pytest

from cortex.transforms.documents.decisions_file import (
    BEGIN,
    DecisionsFile,
    decision_id,
    decision_line,
    merged_decisions,
    with_decisions,
)


def listed(*statements: str, base: str = "", gone: tuple[str, ...] = ()) -> str:
    lines = {decision_id(each): decision_line(each, "2026-09-14", "Ana") for each in statements}
    return with_decisions(base, lines, {decision_id(each) for each in gone})


def statements(text: str) -> list[str]:
    return sorted(line[13:].partition(" (Ana)")[0] for line in DecisionsFile.of(text).lines.values())


def test_writing_again_changes_nothing_and_keeps_what_people_wrote_around_it():
    text = "# How we decide\n\nBy talking.\n\n" + listed("Use UTC.").split("\n", 2)[2] + "See also README.\n"
    again = listed("Use UTC.", base=text)
    assert again == text
    assert listed("Use pnpm.", base=text).count("By talking.") == 1
    assert listed("Use pnpm.", base=text).endswith("See also README.\n")


def test_two_that_both_add_merge_without_a_conflict():
    base = listed("Use UTC.")
    ours, theirs = listed("Use pnpm.", base=base), listed("Use SQLite.", base=base)
    text, conflicts = merged_decisions(base, ours, theirs)
    assert (statements(text), conflicts) == (["Use SQLite.", "Use UTC.", "Use pnpm."], 0)


def test_a_removal_beside_an_addition_holds():
    base = listed("Use UTC.", "Use npm.")
    text, conflicts = merged_decisions(
        base, listed(base=base, gone=("Use npm.",)), listed("Use go.", base=base)
    )
    assert (statements(text), conflicts) == (["Use UTC.", "Use go."], 0)


def test_a_line_that_both_changed_otherwise_is_a_conflict():
    base = listed("Use UTC.")
    text, conflicts = merged_decisions(base, base.replace("(Ana)", "(Bo)"), base.replace("(Ana)", "(Cy)"))
    assert conflicts == 1
    assert text.index("<<<<<<< ours") < text.index("(Bo)") < text.index("=======") < text.index("(Cy)")


def test_words_around_the_list_merge_as_one_piece():
    base = listed("Use UTC.")
    ours = base.replace("# Decisions", "# What we decided")
    text, conflicts = merged_decisions(base, ours, listed("Use pnpm.", base=base))
    assert (conflicts, text.startswith("# What we decided"), len(statements(text))) == (0, True, 2)
    assert merged_decisions(base, ours, base.replace("# Decisions", "# Settled"))[1] == 1


@pytest.mark.parametrize("seed", range(20))
def test_any_changes_on_two_sides_merge_to_both_in_either_order(seed):
    chance = random.Random(seed)
    names = [f"Use tool number {n}." for n in range(12)]
    known = chance.sample(names, 6)
    base = listed(*known)
    sides = []
    for _ in range(2):
        gone = tuple(chance.sample(known, 2))
        sides.append(listed(*chance.sample(sorted(set(names) - set(known)), 3), base=base, gone=gone))
    text, conflicts = merged_decisions(base, *sides)
    other, _ = merged_decisions(base, *reversed(sides))
    a, b, c = (set(statements(each)) for each in (base, *sides))
    assert conflicts == 0
    assert text == other
    assert set(statements(text)) == (b & c) | ((b | c) - a)
    assert text.count(BEGIN) == 1
