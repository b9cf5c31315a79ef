"""A test lies in the folder of what it needs, which says whether it is slow: nobody marks it by hand."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
# What a test needs: nothing but code, a store, a process of its own, a whole run, the real client.
CLASSES = {"unit", "store", "process", "whole", "client"}
# Data, and the programs of `make chaos` and `make storm`.
OTHERS = {"chaos", "fixtures", "golden", "sql"}
# Folders whose single slow cases are still marked by hand. The list only shrinks.
MARKED = {"unit/extract"}


def test_every_folder_is_a_class_of_tests_or_known_by_name():
    folders = {path.name for path in TESTS.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders - CLASSES - OTHERS == set()


def test_every_test_lies_in_a_class():
    tests = [path.relative_to(TESTS) for path in TESTS.rglob("test_*.py")]
    assert [path.as_posix() for path in tests if path.parts[0] not in CLASSES] == []


def test_no_test_is_marked_slow_by_hand():
    mark = re.compile(r"mark\.slow\b")
    marked = {
        path.relative_to(TESTS).parent.as_posix()
        for path in TESTS.rglob("test_*.py")
        if path != Path(__file__) and mark.search(path.read_text(encoding="utf-8"))
    }
    assert marked == MARKED, "slow tests belong in tests/whole"
