"""Claims about published files: any DuckDB client reads them, equal content is not written again."""

from pathlib import Path

import duckdb

from cortex.storage.lake.lake import Lake
from cortex.storage.published.published import Published
from cortex.transforms.schemas import EVENTS, TURNS
from tests.rows import event, events, memories, memory, turn, turns


def test_a_plain_duckdb_client_reads_every_table(home: Path):
    lake = Lake(home)
    with lake.change() as change:
        change.append(TURNS, "reef-1", turns(turn(1), turn(2)))
    for text in ("old", "new"):
        with lake.change() as change:
            change.append(EVENTS, "reef-1", events(event(text), event("kept", session_id=text)), ("s1", text))
    Published(home).publish_database(lake, {"memories": memories(memory())})
    with duckdb.connect(str(home / "published" / "memory.duckdb"), read_only=True) as database:
        counts = {
            name: database.sql(f"select count(*) from {name}").fetchall()[0][0]
            for name in ("turns", "events", "memories", "edges", "journal")
        }
        texts = database.sql("select text from events order by all").fetchall()
    assert counts == {"turns": 2, "events": 2, "memories": 1, "edges": 0, "journal": 0}
    assert texts == [("kept",), ("new",)]


def test_a_turn_stored_twice_counts_once_at_its_earlier_place(home: Path):
    lake = Lake(home)
    for file in ("/t/copy.jsonl", "/t/a.jsonl"):
        with lake.change() as change:
            change.append(TURNS, "reef-1", turns(turn(1, file=file)))
    Published(home).publish_database(lake, {})
    with duckdb.connect(str(home / "published" / "memory.duckdb"), read_only=True) as database:
        assert database.sql("select file from turns").fetchall() == [("/t/a.jsonl",)]


def test_a_result_has_the_tool_of_its_call_and_no_other(home: Path):
    lake = Lake(home)
    call = {"kind": "tool_call", "tool_name": "Bash", "tool_use_id": "u1"}
    result = {"kind": "tool_result", "tool_name": None}
    rows = [
        turn(1, **call),
        turn(2, **result, tool_use_id="u1"),
        turn(3, **result, tool_use_id="u2"),
        turn(4, **result, tool_use_id=None),
        turn(5, **result, tool_use_id="u1", session_id="another"),
        turn(6, kind="text", tool_name=None, tool_use_id="u1"),
    ]
    with lake.change() as change:
        change.append(TURNS, "reef-1", turns(*rows))
    Published(home).publish_database(lake, {})
    with duckdb.connect(str(home / "published" / "memory.duckdb"), read_only=True) as database:
        names = database.sql("select tool_name from turns order by line").fetchall()
        [(calls,)] = database.sql("select count(*) from tool_calls").fetchall()
    assert names == [("Bash",), ("Bash",), (None,), (None,), (None,), (None,)]
    assert calls == 1


def test_an_equal_brief_is_not_written_again(home: Path):
    published = Published(home)
    assert published.publish_brief("reef-1", "# Notes\n")
    assert not published.publish_brief("reef-1", "# Notes\n")
    assert published.brief("reef-1") == "# Notes\n"
