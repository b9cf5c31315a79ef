"""What was told stays known: over a restore, and until the project is forgotten."""

from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from cortex.storage.published.shown_lines import ShownLinesRegister
from tests.examples import examples


def day(number: int) -> datetime:
    return datetime(2026, 9, number, tzinfo=UTC)


def register(folder: Path, *briefs: set[str]) -> ShownLinesRegister:
    """Return a book in which each of `briefs` was told a day after the last."""
    made = ShownLinesRegister(folder)
    for number, marks in enumerate(briefs, start=1):
        made.show("reef", marks, day(number))
    return made


def test_a_line_is_told_from_the_brief_that_has_it_to_the_one_that_has_not(tmp_path: Path):
    assert register(tmp_path, {"a"}, {"b"}).spans("reef") == {"a": [(day(1), day(2))], "b": [(day(2), None)]}


def test_what_was_told_since_a_backup_is_known_after_the_restore(tmp_path: Path):
    backup, replaced = register(tmp_path / "1", {"a"}), register(tmp_path / "2", {"a"}, {"b"}, {"a", "c"})
    backup.add(replaced)
    assert backup.spans("reef") == replaced.spans("reef")


def test_what_only_the_backup_knows_stays(tmp_path: Path):
    backup, empty = register(tmp_path / "1", {"a"}), ShownLinesRegister(tmp_path / "2")
    backup.add(empty)
    assert backup.spans("reef") == {"a": [(day(1), None)]}


def test_a_forgotten_project_leaves_nothing_and_the_others_stay(tmp_path: Path):
    made = register(tmp_path, {"a"})
    made.show("kelp", {"b"}, day(1))
    made.forget("reef")
    made.forget("reef")
    assert made.spans("reef") == {}
    assert made.spans("kelp") == {"b": [(day(1), None)]}


BRIEFS = st.lists(st.sets(st.sampled_from("abc")), min_size=1, max_size=6)


@given(briefs=BRIEFS, more=BRIEFS)
@settings(deadline=None, max_examples=examples(50))
def test_a_restore_loses_nothing_told_whatever_the_briefs_were(tmp_path_factory, briefs, more):
    folder = tmp_path_factory.mktemp("told")
    backup, replaced = register(folder / "1", *briefs), register(folder / "2", *briefs, *more)
    backup.add(replaced)
    assert backup.spans("reef") == replaced.spans("reef")
    backup.add(replaced)
    assert backup.spans("reef") == replaced.spans("reef")


def test_many_projects_are_noted_at_once_as_one_by_one(tmp_path: Path):
    at_once, one_by_one = ShownLinesRegister(tmp_path / "1"), ShownLinesRegister(tmp_path / "2")
    for number, marks in enumerate(({"a", "b"}, {"b", "c"}, set()), start=1):
        at_once.show_all({"reef": marks, "kelp": marks}, day(number))
        for name in ("reef", "kelp"):
            one_by_one.show(name, marks, day(number))
        assert [at_once.spans(n) for n in ("reef", "kelp")] == [one_by_one.spans(n) for n in ("reef", "kelp")]


def test_what_another_process_noted_is_read(tmp_path: Path):
    mine, other = ShownLinesRegister(tmp_path), ShownLinesRegister(tmp_path)
    mine.show("reef", {"a"}, day(1))
    assert mine.spans("reef") == {"a": [(day(1), None)]}
    other.show("reef", {"a", "bb"}, day(2))
    assert mine.spans("reef")["bb"] == [(day(2), None)]
