"""`cortex audit`: what programs did, on the screen and as a file."""

import csv
import json
from datetime import timedelta

import pytest

from cortex.flows.context import Context
from cortex.flows.operations.maintain.audit import CalledTool, note_call
from cortex.transforms.schemas import CALLS
from tests.bench import NOW
from tests.process.cli.test_commands import error_of


@pytest.fixture
def calls(home):
    context = Context(clock=lambda: NOW)
    for number, outcome in enumerate(("ok", "CORTEX_E202", "asked")):
        call = CalledTool(
            "1-1", number, "probe 1.0", "stdio", "recall", {"question": "secret words"}, NOW, outcome, 0.25
        )
        note_call(context, call)


def test_calls_are_shown_newest_first_and_can_be_chosen(cortex, calls):
    data = cortex("audit", "--json").json
    assert data["total"] == 3 and {row["outcome"] for row in data["calls"]} == {"ok", "CORTEX_E202", "asked"}
    assert [row["outcome"] for row in cortex("audit", "--failed", "--json").json["calls"]] == ["CORTEX_E202"]
    assert cortex("audit", "--tool", "learn", "--json").json["total"] == 0
    shown = cortex("audit").out
    assert "probe 1.0" in shown and "12 characters" in shown and "secret" not in shown


def test_a_period_begins_and_ends_with_its_days(cortex, calls):
    context = Context(clock=lambda: NOW)
    late = CalledTool("1-1", 9, "probe 1.0", "stdio", "learn", {}, NOW + timedelta(days=2), "ok", 0.25)
    note_call(context, late)
    day, next_day = f"{NOW:%Y-%m-%d}", f"{NOW + timedelta(days=1):%Y-%m-%d}"
    assert cortex("audit", "--until", day, "--json").json["total"] == 3
    assert cortex("audit", "--since", day, "--until", day, "--json").json["total"] == 3
    assert [row["tool"] for row in cortex("audit", "--since", next_day, "--json").json["calls"]] == ["learn"]
    assert cortex("audit", "--since", "2030-01-01").err.startswith("No call is among these")
    assert cortex("audit", "--since", "yesterday", "--json").code == 2


def test_parquet_has_the_columns_of_the_lake(cortex, calls, tmp_path):
    import pyarrow.parquet as pq

    file = tmp_path / "calls.parquet"
    assert cortex("audit", "--tool", "recall", "--export", file, "--json").json["exported"] == 3
    rows = pq.read_table(file)
    assert rows.schema.equals(CALLS.arrow) and {row["called_at"] for row in rows.to_pylist()} == {NOW}
    assert cortex("audit", "--export", tmp_path / "no" / "calls.csv", "--json").code != 0


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_calls_are_exported(cortex, calls, tmp_path, ending):
    file = tmp_path / f"calls.{ending}"
    assert cortex("audit", "--export", file, "--json").json["exported"] == 3
    text = file.read_text(encoding="utf-8")
    rows = (
        list(csv.DictReader(text.splitlines()))
        if ending == "csv"
        else list(map(json.loads, text.splitlines()))
    )
    assert len(rows) == 3 and rows[0]["caller"] == "probe 1.0"


def test_another_kind_of_file_is_refused(cortex, calls, tmp_path):
    answer = cortex("audit", "--export", tmp_path / "calls.txt", "--json")
    assert error_of(answer)["code"] == "CORTEX_E_USAGE" and not (tmp_path / "calls.txt").exists()


def test_without_a_call_it_says_how_there_would_be_one(cortex, home):
    answer = cortex("audit")
    assert answer.code == 0 and "cortex mcp" in answer.err
