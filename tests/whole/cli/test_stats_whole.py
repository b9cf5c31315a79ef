"""`cortex stats`: its table can be read, and says which project is which."""

import json
import re

from cortex.cli.ask.figures import HEADINGS, SUMMED
from tests.bench import SAMPLES
from tests.transcripts import decisions


def test_no_line_of_the_table_is_folded(cortex, home, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    cortex("backfill", SAMPLES, "--engine", "plain")
    lines = cortex("stats").out.splitlines()
    [head] = [line for line in lines if "prompts" in line]
    assert head.split() == ["id", "day", *" ".join(HEADINGS).split()]
    rows = [line for line in lines if re.match(r"^ ?[0-9a-f]{6} ", line)]
    assert len(rows) == 6 and all(re.search(r" \d\d-\d\d-\d\d ", row) for row in rows)
    assert not any("-" in cell for row in rows for cell in row.split()[2:])


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


def test_the_folder_of_a_status_line_names_the_project(cortex, home, tmp_path):
    for name in ("reef", "kelp"):
        decisions(name, cwd=f"/home/dev/{name}").write(tmp_path / "projects")
    cortex("backfill", tmp_path / "projects", "--engine", "plain")
    given = json.dumps({"session_id": "s", "cwd": "/home/dev/kelp", "model": {"id": "m"}})
    assert cortex("stats", "--stdin", stdin=given).out.startswith("kelp: 1 session")
    refused = cortex("stats", "--stdin", stdin="no JSON")
    assert "names no folder" in refused.err
