"""`cortex stats`: its table can be read, and says which project is which."""

import re

from cortex.cli.stats import HEADINGS
from cortex.transforms.words.phrases import counted
from tests.flows.conftest import SAMPLES


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
