"""`list`, `show`, `timeline` and `today`: looking around without a question, from published files alone."""

import pyarrow.parquet as pq
import pytest

from cortex.transforms.schemas import MEMORIES, PROJECTS


def test_the_newest_memories_come_first_with_ids_that_show_takes(cortex, samples):
    rows = cortex("list", "--project", "tidepool", "--json").json["memories"]
    assert [row["updated_at"] for row in rows] == sorted((row["updated_at"] for row in rows), reverse=True)
    lines = cortex("list", "--project", "tidepool").out.splitlines()
    assert lines[0].startswith("tidepool: ") and lines[1].split()[:3] == ["id", "day", "type"]
    short = lines[2].split()[0]
    assert len(short) == 6 and rows[0]["memory_id"].startswith(short)
    shown = cortex("show", short)
    assert shown.code == 0 and rows[0]["memory_id"] in shown.out
    for label in ("project", "status", "confidence", "from"):
        assert f"\n{label} " in shown.out


def test_a_type_is_one_of_a_closed_set(cortex, samples):
    assert {r["memory_type"] for r in cortex("list", "--type", "decision", "--json").json["memories"]} == {
        "decision"
    }
    assert (cortex("list", "--type", "idea").code, "decision" in cortex("list", "--type", "idea").err) == (
        4,
        True,
    )


def test_the_timeline_says_what_came_of_each_session(cortex, samples):
    answer = cortex("timeline", "--all-projects", "--json")
    ended = [row["ended_at"] for row in answer.json["sessions"]]
    assert ended == sorted(ended, reverse=True) and answer.json["total"] == len(ended)
    first = answer.json["sessions"][0]
    shown = cortex("show", first["session_id"][:8])
    assert first["session_id"] in shown.out and f"project     {first['project']}" in shown.out


def test_a_session_is_shown_by_the_number_that_timeline_and_show_give_it(cortex, samples):
    listed = cortex("timeline", "--project", "tidepool", "--json").json["sessions"]
    number, session_id = listed[0]["number"], listed[0]["session_id"]
    assert f"cortex show {number} --project tidepool" in cortex("timeline", "--project", "tidepool").err
    assert "cortex show SESSION" in cortex("timeline", "--all-projects").err
    shown = cortex("show", str(number), "--project", "tidepool", "--json")
    assert shown.json["session"]["session_id"] == session_id
    memory = shown.json["memories"][-1]["memory_id"]
    assert f"session {number} ({session_id[:8]}), " in cortex("show", memory).out


def test_a_number_that_is_no_sessions_says_which_there_are(cortex, samples):
    answer = cortex("show", "60", "--project", "tidepool")
    assert answer.code == 5 and "tidepool has no session 60; its sessions are numbered 1 to " in answer.err
    answer = cortex("show", "6")
    assert answer.code == 2 and "--project NAME" in answer.err


def test_today_is_the_last_session_of_each_project(cortex, samples):
    sessions = cortex("today", "--json").json["sessions"]
    names = [row["project_id"] for row in sessions]
    assert len(set(names)) == len(names) > 0
    [own] = cortex("today", "--project", "tidepool", "--json").json["sessions"]
    assert own in sessions
    text = cortex("today", "--project", "tidepool").out
    assert text.startswith(f"tidepool: session {own['number']} ({own['session_id'][:8]}), ")
    assert ("  open " in text) == bool(own["still_open"])


def test_a_place_shows_what_was_said_there_and_around_it(cortex, samples):
    rows = cortex("list", "--project", "tidepool", "--json").json["memories"]
    place = cortex("show", rows[0]["memory_id"], "--json").json["memory"]["evidence"][0]
    target = f"{place['session_id'][:8]}:{place['lines'][0]}"
    answer = cortex("show", target, "--json").json
    assert answer["session"]["session_id"] == place["session_id"]
    [line] = [turn["line"] for turn in answer["turns"] if turn["is_cited"]]
    assert line <= place["lines"][0] and len(answer["turns"]) > 1
    text = cortex("show", target).out
    assert f"{place['session_id'][:8]}:{line})" in text and text.count("\n> ") + text.startswith("> ") == 1
    missing = cortex("show", f"{place['session_id'][:8]}:999999")
    assert (missing.code, "has no line 999999" in missing.err) == (5, True)
    for wrong in (f"{place['session_id'][:8]}:x", f"{rows[0]['memory_id'][:12]}:4"):
        assert "Write SESSION:LINE" in cortex("show", wrong).err


def test_an_id_that_is_too_short_or_unknown_or_of_several_says_so(cortex, samples):
    assert "at least 4" in cortex("show", "ab").err
    unknown = cortex("show", "ffffffffff")
    assert (unknown.code, "cortex list" in unknown.err) == (5, True)


def test_an_empty_store_says_how_to_begin(cortex, home):
    for command in ("list", "timeline", "today"):
        answer = cortex(command)
        assert (answer.code, "cortex backfill" in answer.err) == (5, True)


def test_a_piped_table_has_one_line_a_row_whatever_the_width(cortex, samples, monkeypatch):
    tables = []
    for width in ("40", "200"):
        monkeypatch.setenv("COLUMNS", width)
        tables.append(cortex("list", "--all-projects").out)
    assert tables[0] == tables[1]
    assert len(tables[0].splitlines()) == 2 + len(cortex("list", "--all-projects", "--json").json["memories"])
    assert "\x1b" not in tables[0] and "─" not in tables[0]


@pytest.mark.parametrize(
    ("faded", "words"),
    [(3, "its 3 memories have faded: cortex list --faded"), (0, "contain nothing to keep")],
)
def test_a_project_without_a_memory_says_why(cortex, samples, faded, words):
    path = samples / "published" / "projects.parquet"
    rows = pq.read_table(path).to_pylist()
    pq.write_table(PROJECTS.of([{**row, "active": 0, "faded": faded} for row in rows]), path)
    (samples / "published" / "catalogue.json").unlink()  # an older version published none
    path = samples / "published" / "memories.parquet"
    pq.write_table(MEMORIES.empty(), path)
    answer = cortex("list", "--project", "tidepool")
    assert (answer.code, words in answer.err) == (0, True)


def test_the_beginning_of_a_projects_id_names_it(cortex, samples):
    [row] = [p for p in cortex("projects", "--json").json["projects"] if p["name"] == "tidepool"]
    first = cortex("list", "--project", "tidepool", "--json").json
    assert cortex("list", "--project", row["id"][:-3], "--json").json == first
    assert cortex("brief", "--project", row["id"][:-3]).out == cortex("brief", "--project", "tidepool").out
