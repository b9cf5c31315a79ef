"""`cortex stats`: its table can be read, and says which project is which."""

import re

import pytest

from cortex.cli.stats import HEADINGS, SUMMED
from cortex.cli.terminal import Listing, records, sparkline
from cortex.transforms.words.phrases import counted
from tests.bench import SAMPLES
from tests.transcripts import decisions


@pytest.mark.slow
def test_no_line_of_the_table_is_folded(cortex, home, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    cortex("backfill", SAMPLES, "--engine", "plain")
    lines = cortex("stats").out.splitlines()
    [head] = [line for line in lines if "prompts" in line]
    assert head.split() == ["id", "day", *" ".join(HEADINGS).split()]
    rows = [line for line in lines if re.match(r"^ ?[0-9a-f]{6} ", line)]
    assert len(rows) == 6 and all(re.search(r" \d\d-\d\d-\d\d ", row) for row in rows)
    assert not any("-" in cell for row in rows for cell in row.split()[2:])


def test_one_session_is_one_session():
    assert counted(1, "session") == "1 session"
    assert counted(13, "session") == "13 sessions"


@pytest.mark.slow
def test_of_several_projects_each_has_one_row_and_all_have_totals(cortex, home, tmp_path):
    for name in ("reef", "kelp"):
        decisions(name, cwd=f"/home/dev/{name}").write(tmp_path / "projects")
    cortex("backfill", tmp_path / "projects", "--engine", "plain")
    title, head, *rows = cortex("stats").out.splitlines()
    assert title == "2 projects, 2 sessions"
    assert head.split() == ["project", *SUMMED, "trend"]
    assert [row.split()[0] for row in rows[:2]] == ["kelp", "reef"]
    numbers = [[int(cell) for cell in row.split()[1:7]] for row in rows[:2]]
    assert [int(cell) for cell in rows[2].split()] == [sum(column) for column in zip(*numbers, strict=True)]


def test_a_line_of_bars_shows_shares_of_the_largest():
    assert sparkline([0, 1, 4, 8]) == " ▁▄█"
    assert sparkline([]) == "" and sparkline([0, 0]) == "  "


def test_a_table_that_is_too_wide_goes_as_a_block_a_row():
    text = records(Listing("2 rows", ["id", "words"], [["a1", "one two"], ["b22", "three\nfour"]]))
    assert text == "2 rows\n\nid     a1\nwords  one two\n\nid     b22\nwords  three four\n"
