"""Claims about the audit: each rule of each column is enforced, each golden row named with its reason."""

from pathlib import Path

import pyarrow as pa

from cortex.storage.settings.reference import read_policy
from cortex.transforms import schemas
from cortex.transforms.audit import (
    column_violations,
    edges_violations,
    events_violations,
    layout_violations,
    memories_violations,
    passages_violations,
    turns_violations,
)
from cortex.transforms.schemas import ALL_TABLES, EDGES, EVENTS, MEMORIES, PASSAGES, TURNS, Table
from tests.examples import cases
from tests.rows import START
from tests.unit.transforms.sql.test_queries import rows, table

HERE = Path(__file__).parent / "audit"
POLICY = read_policy(None)
RULED = [
    (of, column)
    for of in ALL_TABLES
    for column in of.columns
    if column.one_of or column.between or column.is_filled or column.is_text
]


def golden(name: str, of: Table) -> pa.Table:
    return table(of.arrow, rows(HERE / name / f"{name}.csv"))


def violations_of(name: str) -> list:
    if name == "turns":
        return turns_violations(golden(name, TURNS))
    if name == "events":
        known = table(TURNS.arrow, rows(HERE / name / "known_turns.csv"))
        return events_violations(golden(name, EVENTS), known)
    if name == "memories":
        return memories_violations(golden(name, MEMORIES), MEMORIES.empty(), "p", POLICY)
    if name == "edges":
        return edges_violations(
            golden(name, EDGES), table(MEMORIES.arrow, rows(HERE / name / "memories.csv"))
        )
    return passages_violations(golden(name, PASSAGES), "p")


@cases("name", sorted(path.name for path in HERE.iterdir()))
def test_each_golden_row_is_named_with_its_reason_and_no_other(name):
    named = {(violation.row_id, violation.reason) for violation in violations_of(name)}
    assert named == {(row["row_id"], row["reason"]) for row in rows(HERE / name / "expected.csv")}
    assert {violation.table for violation in violations_of(name)} == {name}


def row_of(of: Table, row_id: str) -> dict:
    """Return a row of any table that breaks nothing."""
    values = {pa.string(): "words", schemas.UTC_US: START, pa.bool_(): False}
    row = {
        column.name: column.one_of[0] if column.one_of else values.get(column.field.type, 0)
        for column in of.columns
    }
    for field in of.arrow:
        if pa.types.is_list(field.type):
            row[field.name] = []
    return row | dict.fromkeys(of.key, row_id)


def reasons(of: Table, *changed: dict, scope: str | None = None) -> set:
    given = [row_of(of, f"r{at}") | change for at, change in enumerate(changed)]
    return {(v.row_id, v.reason) for v in column_violations(of.of(given), of, scope)}


@cases(("of", "column"), RULED)
def test_each_rule_of_each_column_is_enforced_and_null_breaks_none(of, column):
    name, words = column.name, column.name.replace("_", " ")
    if column.one_of:
        assert reasons(of, {}, {name: "other"}) == {("r1", f"unknown {words}")}
        assert reasons(of, *({name: value} for value in column.one_of)) == set()
    if column.between:
        low, high = column.between
        outside = f"{words} outside {low:g} to {high:g}"
        beyond = [low - 1e-9, high + 1e-9, float("nan"), float("inf"), float("-inf")]
        assert reasons(of, *({name: value} for value in beyond)) == {(f"r{at}", outside) for at in range(5)}
        assert reasons(of, {name: low}, {name: high}) == set()
    if column.is_filled:
        assert reasons(of, {name: ""}, {name: " \n"}) == {("r0", f"no {words}"), ("r1", f"no {words}")}
    if column.is_text:
        private = "text of a private section"
        assert reasons(of, {name: "a <PRIVATE>b"}, {name: "<private>"}) == {("r0", private), ("r1", private)}
    if column.field.nullable:
        assert reasons(of, {name: None}) == set()


@cases("of", [of for of in ALL_TABLES if len(of.key) == 1])
def test_each_key_is_there_once_and_each_row_of_its_scope(of):
    [key] = of.key
    assert reasons(of, {key: "same"}, {key: "same"}, {}) == {("same", "its key is there twice")}
    if "project_id" in of.arrow.names:
        assert reasons(of, {"project_id": "p"}, {}, scope="p") == {("r1", "of another scope")}


@cases("of", ALL_TABLES)
def test_each_column_is_there_of_its_type_and_filled_where_it_must_be(of):
    whole = of.of([row_of(of, "r0")])
    assert layout_violations(whole, of) == []
    for at, field in enumerate(of.arrow):
        [lost] = layout_violations(whole.drop_columns([field.name]), of)
        assert (lost.row_id, lost.reason) == (field.name, "column is missing")
        [other] = layout_violations(whole.set_column(at, field.name, pa.array([b"x"])), of)
        assert (other.row_id, other.reason) == (field.name, "column has another type")
        if not field.nullable:
            empty = whole.set_column(at, field.name, pa.nulls(1, field.type))
            [unfilled] = layout_violations(empty, of)
            assert (unfilled.row_id, unfilled.reason) == (field.name, "column has empty cells")


def test_a_column_that_names_a_closed_set_has_it():
    for of in ALL_TABLES:
        for column in of.columns:
            meaning = of.meaning(column.name)
            if meaning.startswith("one of "):
                assert column.one_of == getattr(schemas, meaning.split()[2].rstrip(":;"))
            if "fraction, 0 to 1" in meaning:
                assert column.between == (0, 1)
