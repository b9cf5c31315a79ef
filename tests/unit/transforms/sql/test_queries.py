"""Every query in transforms/sql: planned against empty tables, and run on the golden cases here."""

import csv
import json
import re
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

import pyarrow as pa

from cortex.storage.settings.reference import read_policy
from cortex.transforms.database import query, sql_text
from cortex.transforms.memory.lifecycle import ACTIVITY, WEAK
from cortex.transforms.schemas import EDGES, EVENTS, MEMORIES, PASSAGES, TELLING_ORDER, TURNS, UTC_US
from cortex.transforms.views.effect import ASKED_AGAIN, HANDED, SESSION_COUNTS
from cortex.transforms.views.metrics import NAMES, PLANS, REPEATS, SHOWINGS
from cortex.transforms.views.outcomes import ABOUT, DECISIONS, REVERTS, RIVALS
from tests.examples import cases

HERE = Path(__file__).parents[3] / "sql"
POLICY = read_policy(None)
QUERIES = sorted(
    entry.name.removesuffix(".sql")
    for entry in resources.files("cortex.transforms.sql").iterdir()
    if entry.name.endswith(".sql")
)
CASES = sorted(path.parent for path in HERE.glob("*/*/expected.csv"))
INPUTS = {
    "memories": MEMORIES.arrow,
    "edges": EDGES.arrow,
    "events": EVENTS.arrow,
    "passages": PASSAGES.arrow,
    "turns": TURNS.arrow,
    "known_turns": TURNS.arrow,
    "repeats": REPEATS,
    "plans": PLANS,
    "showings": SHOWINGS,
    "names": NAMES,
    "asked": ASKED_AGAIN,
    "counts": SESSION_COUNTS,
    "handed": HANDED,
    "decisions": DECISIONS,
    "about": ABOUT,
    "reverts": REVERTS,
    "rivals": RIVALS,
    "sessions": pa.schema([("project_id", pa.string()), ("session_id", pa.string()), ("began_at", UTC_US)]),
    "projects": pa.schema([("project_id", pa.string()), ("is_read_by_model", pa.bool_())]),
    "telling_order": TELLING_ORDER.arrow,
    "activity": ACTIVITY,
    "weak": WEAK,
    "clock": pa.schema(
        [
            ("project_id", pa.string()),
            ("active_at", UTC_US),
            ("worked_us", pa.int64()),
            ("runs_us", pa.int64()),
        ]
    ),
    "terms": pa.schema(
        [
            ("memory_id", pa.string()),
            ("project_id", pa.string()),
            ("term", pa.string()),
            ("has_vector", pa.bool_()),
        ]
    ),
}
UNNAMED = {pa.int16(): 0, pa.int32(): 0, pa.int64(): 0}
# What a case does not say about a row.
UNSAID = {
    "project_id": "p",
    "category": "project",
    "memory_type": "progress",
    "status": "active",
    "source_type": "conversation",
    "trust": "user",
    "is_pinned": "false",
    "priority": "5",
    "initial_confidence": "0.8",
    "confidence": "0.8",
    "salience": "0.5",
    "access_count": "0",
    "created_at": "2026-03-01",
    "updated_at": "2026-03-01",
    "centrality": "0",
    "rank": "0",
    "session_count": "1",
    "edge_type": "relates_to",
    "strength": "0.5",
    "has_vector": "false",
    "briefs": "1",
    "prompts": "0",
    "recalls": "0",
    "kind": "prompt",
    "text": "Keep readings in UTC.",
    "event_type": "DECISION_MADE",
    "rule": "similarity",
}


@cases("name", QUERIES)
def test_each_query_plans_against_empty_tables_and_writes_the_columns_its_header_names(name):
    made = query(name, params(name, {"memory_ids": []}), **tables({}))
    header = "".join(line for line in sql_text(name).splitlines() if line.startswith("--"))
    writes = header.split("writes", 1)[1]
    assert made.num_rows == 0
    assert [column for column in made.column_names if column not in writes] == []


@cases("name", QUERIES)
def test_each_query_has_a_golden_case(name):
    assert [case for case in CASES if case.parent.name == name]


@cases("name", QUERIES)
def test_no_query_is_ordered_by_nothing_or_written_in_capitals(name):
    code = "\n".join(line.split("--")[0] for line in sql_text(name).splitlines())
    assert re.search(r"order by\s+[\w\s.,]+$", code)
    words = re.sub(r"'[^']*'", "''", code)  # a pattern such as \\pL has its own capitals
    assert words == words.lower()


@cases("case", CASES)
def test_golden_case(case):
    told = json.loads((case / "params.json").read_text()) if (case / "params.json").exists() else {}
    given = {path.stem: rows(path) for path in case.glob("*.csv") if path.stem != "expected"}
    result = query(case.parent.name, params(case.parent.name, told), **tables(given, told)).to_pylist()
    assert [shown(row) for row in result] == rows(case / "expected.csv")


def params(name, told):
    """Return every parameter the query names: as told, else from the policy."""
    known = {"now": datetime(2026, 3, 1, tzinfo=UTC), "memory_ids": ["m1"], "depth": 2, "scope": "p"}
    known |= {
        "edit_tools": ["Edit"],
        "read_tools": ["Read"],
        "complaint": "wrong|still fails",
        "cited_chars": 8,
        "pause_minutes": 5.0,
        "sessions_back": 1,
        "text_chars": 160,
    } | told
    if isinstance(known["now"], str):
        known["now"] = instant(known["now"])
    wanted = set(re.findall(r"\$(\w+)", sql_text(name)))
    return {param: known[param] if param in known else POLICY.threshold(param) for param in wanted}


def tables(given, told=None):
    made = {name: table(schema, given.get(name, [])) for name, schema in INPUTS.items()}
    made |= {name: POLICY.tables[name] for name in ("memory_types", "event_types", "edge_types")}
    thresholds = POLICY.tables["thresholds"].select(["name", "value"]).to_pylist()
    known = [row | {"value": float((told or {}).get(row["name"], row["value"]))} for row in thresholds]
    return made | {"thresholds": pa.Table.from_pylist(known)}


def table(schema, given):
    filled = [{field.name: value(field, row) for field in schema} for row in given]
    return pa.Table.from_pylist(filled, schema=schema)


def value(field, row):
    said = row[field.name] if field.name in row else UNSAID.get(field.name, "")
    if pa.types.is_list(field.type):
        return []
    if said == "":
        return None if field.nullable else UNNAMED.get(field.type, "")
    if pa.types.is_timestamp(field.type):
        return instant(said)
    if pa.types.is_boolean(field.type):
        return said == "true"
    if pa.types.is_integer(field.type):
        return int(said)
    return float(said) if pa.types.is_floating(field.type) else said


def shown(row):
    """Return a result row as the text of expected.csv: fractions to six decimals, instants to the second."""
    return {name: text(cell) for name, cell in row.items()}


def text(cell):
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.6f}".rstrip("0").rstrip(".")
    return f"{cell:%Y-%m-%d %H:%M:%S}".removesuffix(" 00:00:00") if isinstance(cell, datetime) else str(cell)


def rows(path):
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def instant(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
