"""A list of decisions that two branches change at once: written again, it has what both did, once."""

import pytest

from cortex.transforms.documents.team_memory import (
    BEGIN,
    END,
    DecisionsFile,
    decision_id,
    decision_line,
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


def conflict(ours: str, theirs: str, before: str = "") -> str:
    base = [f"||||||| 1a2b3c4\n{before}\n"] if before else []
    return "".join(["<<<<<<< HEAD\n", f"{ours}\n", *base, "=======\n", f"{theirs}\n", ">>>>>>> main\n"])


@pytest.mark.parametrize("before", ["", "- 2026-09-14 Use npm. (Ana) <!-- 0123456789ab -->"])
def test_written_again_a_list_in_conflict_has_the_lines_of_both_sides(before):
    ours, theirs = (decision_line(each, "2026-09-15", "Ana") for each in ("Use pnpm.", "Use SQLite."))
    text = listed("Use UTC.").replace(END, conflict(ours, theirs, before) + END)
    written = listed("Use go.", base=text)
    assert statements(written) == ["Use SQLite.", "Use UTC.", "Use go.", "Use pnpm."]
    assert "<<<<<<<" not in written and "=======" not in written and "1a2b3c4" not in written


def test_a_conflict_in_what_people_wrote_is_theirs_to_settle():
    text = listed("Use UTC.").replace("# Decisions\n", conflict("# What we decided", "# Settled"))
    assert "<<<<<<< HEAD\n# What we decided\n" in listed("Use go.", base=text)


def test_a_line_that_both_sides_kept_stands_once_and_what_no_longer_holds_goes():
    text = listed("Use UTC.", "Use npm.")
    lines = [line for line in text.split("\n") if line.startswith("- ")]
    twice = text.replace(END, "\n".join([*lines, END]))
    assert listed(base=twice, gone=("Use npm.",)) == listed("Use UTC.")


def test_a_list_of_an_earlier_version_is_known():
    earlier = "<!-- cortex decisions: one line each, merged by `cortex team merge` -->"
    assert listed(base=listed("Use UTC.").replace(BEGIN, earlier)) == listed("Use UTC.")
