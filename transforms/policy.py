"""
The policy tables: half-lives, saliences, thresholds and word lists, read from CSV text and checked.

A column's name says its type in every table, so that a table added later needs no declaration here:
`memory_type`, `event_type` and the other enumerations are closed sets, `is_...` is true or false, the
names in `NUMBER_COLUMNS` are numbers, and everything else is text.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from cortex.transforms.errors import NotFound, SchemaMismatch, UnknownValue
from cortex.transforms.identity import content_id
from cortex.transforms.vocabulary import CATEGORIES, EDGE_TYPES, EVENT_TYPES, MEMORY_TYPES, TRUSTS, checked

# Only queries want the policy as tables; a look at what is published does without the library.
if TYPE_CHECKING:
    import pyarrow as pa

# Columns that are closed sets, and what one value of them is called in an error.
ENUMERATIONS = {
    "memory_type": ("memory type", MEMORY_TYPES),
    "event_type": ("event type", EVENT_TYPES),
    "edge_type": ("edge type", EDGE_TYPES),
    "category": ("category", CATEGORIES),
    "trust": ("trust", TRUSTS),
    "refused_from": ("who a text is refused from", ("anyone", "others", "files", "outcomes", "reasons")),
}
NUMBER_COLUMNS = frozenset(
    (
        *(
            "half_life_days",
            "brief_lines",
            "brief_place",
            "basic_lines",
            "basic_place",
            "salience",
            "confidence",
            "weight",
            "value",
        ),
        *("zero_at", "one_at", "answer_cosine", "answer_share"),
        *("input_usd", "output_usd", "batch_factor"),
        *("factor", "precision"),
    )
)

# What memory_types.csv says of a type in a column of true or false.
MEMORY_TYPE_FLAGS = {
    "is_in_force": "a fact that is in force or not: two can contradict each other",
    "is_instance": "something that happened, which may exemplify a design or be derived from a fact in force",
    "is_design": "how a thing is made, which an instance of the same file exemplifies",
    "is_claim": "says how things are, so that the repository can disagree",
    "is_description": "describes code by its lines, so that a rewritten file outdates it",
    "is_binding": "a person's choice of it is raised in the brief",
    "is_passed_by": "loses its room in the brief as sessions go by without it",
    "is_disputed": "a review asks which of two that contradict each other holds",
    "is_passing": "left out of the brief when it is a request or true for the hour alone",
    "is_guaranteed": "the best are in the brief before rank alone decides: needed whatever else there is",
    "is_latest_only": "of one subject a later word takes the place of an earlier one",
    "is_shared": "shared with colleagues, and proposed to them without being named",
}

# Columns that are no policy but names and rules of the program, which hooks and engine must share:
# `make docs` prints them as hooks/prose/memory_types.py.
BUILT_IN = {
    "memory_types": {
        "event_type": "the event that a line `[MEMORY: <memory_type>] text` reports; none: no such tag",
        "other_names": "what other tools call the type",
        "is_written": "a language model that reads a session may note a fact of it",
        "is_fact": "what somebody says; the others follow from a session or a file",
        "is_settling": "settled by a person's typing it; the rest are requests, questions and reports",
        "is_shown": "shown to the assistant while it works",
        "basic_place": "place of its section in the brief without an engine; none: no section",
        "basic_lines": "lines of that section at most",
    },
    "event_types": {
        "tag": "the tag that reports it, besides the names of memory types",
        "is_written": "a language model that reads a session may note a fact by that tag",
    },
}

# Tables that code looks things up in: their key and the columns that must be there.
_KEYS = {
    "memory_types": ("memory_type",),
    "event_types": ("event_type",),
    "edge_types": ("edge_type",),
    "thresholds": ("name",),
    "calibration": ("model",),
    "confidences": ("source",),
}
_COLUMNS = {
    "memory_types": (
        *("memory_type", "half_life_days", "brief_lines", "brief_section", "brief_place"),
        *MEMORY_TYPE_FLAGS,
        *BUILT_IN["memory_types"],
    ),
    "event_types": ("event_type", "salience", "is_immortal", "memory_type", *BUILT_IN["event_types"]),
    "edge_types": ("edge_type", "is_symmetric"),
    "thresholds": ("name", "value", "unit", "why"),
    "calibration": ("model", "zero_at", "one_at", "answer_cosine", "answer_share"),
    "confidences": ("source", "confidence", "why"),
}
# The stages and commands that read a table; in thresholds.csv each row has them in `read_by`. `fold` and
# `audit` are parts of several stages: events become memories, and rows are checked before they are visible.
READERS = {
    "brief_wording": ("render",),
    "calibration": ("link", "consolidate", "recall", "render"),
    "choice_words": ("fold", "link", "consolidate", "remember", "render"),
    "confidences": ("extract",),
    "contrary_rules": ("link", "decay", "render", "review"),
    "contrast_words": ("extract", "link", "consolidate", "remember", "stats"),
    "declared_names": ("render",),
    "edge_types": ("decay",),
    "event_types": ("extract", "decay"),
    "filler_words": ("remember",),
    "flaws": ("remember",),
    "kinds": ("extract",),
    "language_words": ("extract", "recall"),
    "markers": ("extract",),
    "measures": ("link", "consolidate"),
    "memory_types": ("decay", "fold", "link", "push", "render", "review", "team"),
    "model_prices": ("backfill", "plan", "cost"),
    "phrases": ("extract", "fold", "link", "consolidate", "recall", "remember", "stats"),
    "query_words": ("extract", "link", "consolidate", "recall", "remember", "render", "stats", "forget"),
    "question_patterns": ("recall",),
    "ranking": ("embed", "recall"),
    "refusals": ("extract", "import", "learn", "team"),
    "reversals": ("extract",),
    "signal_patterns": ("recall",),
    "technologies": ("fold", "link", "consolidate", "remember", "render", "stats"),
    "telling_words": ("render",),
    "time_words": ("recall",),
}
# Columns for people: no stage acts on them.
REMARKS = ("read_by", "unit", "why", "note")
# Tables whose rows are exactly the members of an enumeration.
COMPLETE = {"memory_types": MEMORY_TYPES, "event_types": EVENT_TYPES, "edge_types": EDGE_TYPES}

# What is made of a policy.
Derived = TypeVar("Derived")

Cell = str | float | bool | None
PolicyRow = dict[str, Cell]


@dataclass(frozen=True)
class Policy:
    """Every policy table, typed lookups into the known ones, and a fingerprint of them all."""

    columns: Mapping[str, tuple[str, ...]]
    fingerprint: str
    rows: Mapping[str, Mapping[tuple[Cell, ...], PolicyRow]]

    def derived(self, make: Callable[[Policy], Derived]) -> Derived:
        """Return what `make` makes of this policy, made once; it must follow from the policy alone."""
        if make not in self._derived:
            self._derived[make] = make(self)
        result: Derived = self._derived[make]
        return result

    @cached_property
    def _derived(self) -> dict[object, Any]:
        return {}

    def __getstate__(self) -> dict[str, object]:
        """Return what another process needs: it makes the rest for itself."""
        return {"columns": self.columns, "fingerprint": self.fingerprint, "rows": self.rows}

    @cached_property
    def tables(self) -> Mapping[str, pa.Table]:
        """Return every policy table, by its name."""
        return {stem: _arrow(self.columns[stem], self.rows[stem].values()) for stem in self.rows}

    def threshold(self, name: str) -> float:
        """Return the threshold `name`; its unit and reason are in thresholds.csv. Raises UnknownValue."""
        return self._number("thresholds", "threshold", name, "value")

    def brief_lines(self, memory_type: str) -> int:
        """Return how many lines of a brief the type may take."""
        return int(self._number("memory_types", "memory type", memory_type, "brief_lines"))

    def brief_section(self, memory_type: str) -> str:
        """Return the heading of a memory of the type in a brief; empty for none."""
        return str(self._row("memory_types", "memory type", memory_type)["brief_section"] or "")

    def brief_sections(self) -> tuple[str, ...]:
        """Return the memory types that have a section in a brief, in the order of printing."""
        rows = self.rows["memory_types"].items()
        places = {str(key): place for (key,), row in rows if (place := row["brief_place"]) is not None}
        return tuple(sorted(places, key=lambda memory_type: float(places[memory_type])))

    def types_with(self, flag: str) -> frozenset[str]:
        """Return the memory types of which a flag of MEMORY_TYPE_FLAGS is true."""
        return self._types[flag]

    @cached_property
    def _types(self) -> dict[str, frozenset[str]]:
        rows = self.rows["memory_types"].items()
        return {flag: frozenset(str(key) for (key,), row in rows if row[flag]) for flag in MEMORY_TYPE_FLAGS}

    def salience(self, event_type: str) -> float:
        """Return how much an event of the type matters when new, 0 to 1."""
        return self._number("event_types", "event type", event_type, "salience")

    def confidence(self, source: str) -> float:
        """Return how sure what a source of events says is, 0 to 1; confidences.csv says why."""
        return self._number("confidences", "source of events", source, "confidence")

    def calibration(self, model: str) -> tuple[float, float]:
        """Return the raw cosines of `model` that count as similarity 0 and 1. Raises UnknownValue."""
        row = self._row("calibration", "calibrated model", model)
        return float(row["zero_at"] or 0.0), float(row["one_at"] or 0.0)

    def rows_read_by(self, reader: str) -> dict[str, list[PolicyRow]]:
        """Return the rows, by table, that a stage or command reads: the columns that are policy."""
        return {
            stem: [
                {name: cell for name, cell in row.items() if name not in (*REMARKS, *BUILT_IN.get(stem, ()))}
                for row in rows.values()
                if reader in READERS.get(stem, str(row.get("read_by", "")).split())
            ]
            for stem, rows in sorted(self.rows.items())
        }

    def _row(self, stem: str, what: str, key: str) -> PolicyRow:
        rows = self.rows[stem]
        if (key,) not in rows:
            raise UnknownValue(what, key, [str(known[0]) for known in rows])
        return rows[(key,)]

    def _number(self, stem: str, what: str, key: str, column: str) -> float:
        return float(self._row(stem, what, key)[column] or 0.0)


def load_policy(texts: Mapping[str, str], overrides: Mapping[str, str] | None = None) -> Policy:
    """
    Return the policy of the CSV texts, by file stem; rows of `overrides` replace rows of the same key.

    An override must name a table that exists, with the same columns, and a row of a closed table (types,
    thresholds) that exists: a misspelt name is an error, never a row that nothing reads.

    Raises UnknownValue for a value outside its closed set or a malformed number, SchemaMismatch for missing
    or unexpected columns or a key given twice, NotFound for a missing table; each names file and row.
    """
    missing = sorted(set(_KEYS) - set(texts))
    if missing:
        raise NotFound(f"policy table {missing[0]}.csv is missing.", "Install cortex-lake again.")
    parsed = {stem: _parse(stem, texts[stem]) for stem in sorted(texts)}
    for stem, text in sorted((overrides or {}).items()):
        if stem not in parsed:
            raise UnknownValue("policy table", stem, sorted(parsed))
        parsed[stem] = _overridden(stem, parsed[stem], _parse(stem, text))
    for stem, members in COMPLETE.items():
        for member in members:
            if (member,) not in parsed[stem].rows:
                raise NotFound(
                    f"{stem}.csv has no row for '{member}'.", "Add it: every type needs its policy."
                )
    cells = {
        stem: [{name: row.get(name) for name in table.columns} for row in table.rows.values()]
        for stem, table in sorted(parsed.items())
    }
    fingerprint = content_id(*(part for stem, rows in cells.items() for part in (stem, repr(rows))))
    columns = {stem: table.columns for stem, table in parsed.items()}
    return Policy(columns, fingerprint, {stem: table.rows for stem, table in parsed.items()})


@dataclass(frozen=True)
class _Parsed:
    columns: tuple[str, ...]
    rows: dict[tuple[Cell, ...], PolicyRow]


def _parse(stem: str, text: str) -> _Parsed:
    lines = csv.reader(io.StringIO(text))
    columns = tuple(name.strip() for name in next(lines, []))
    required = _COLUMNS.get(stem, ())
    if not columns or set(required) - set(columns):
        raise SchemaMismatch(
            f"{stem}.csv has the columns {list(columns)}, needs {list(required)}.", "Correct its first line."
        )
    key = _KEYS.get(stem) or _leading_words(columns)
    rows: dict[tuple[Cell, ...], PolicyRow] = {}
    for number, cells in enumerate(lines, start=2):
        if not any(cell.strip() for cell in cells):
            continue
        row = _row(f"{stem}.csv row {number}", columns, cells)
        value = tuple(row[name] for name in key)
        if value in rows:
            raise SchemaMismatch(
                f"{stem}.csv row {number} repeats the key {list(value)}.", "Keep one of the rows."
            )
        rows[value] = row
    return _Parsed(columns, rows)


def _leading_words(columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the key of an undeclared table: its columns before the first number, flag or remark."""
    for position, name in enumerate(columns):
        if name in NUMBER_COLUMNS or name.startswith("is_") or name in ("why", "note"):
            return columns[:position] or columns[:1]
    return columns


def _row(where: str, columns: tuple[str, ...], cells: list[str]) -> PolicyRow:
    if len(cells) != len(columns):
        raise SchemaMismatch(
            f"{where} has {len(cells)} cells, needs {len(columns)}.",
            'Put text that holds commas in "quotes".',
        )
    return {name: _cell(where, name, cell) for name, cell in zip(columns, cells, strict=True)}


def _cell(where: str, name: str, text: str) -> Cell:
    value = text.strip()
    if name in ENUMERATIONS:
        what, allowed = ENUMERATIONS[name]
        return checked(f"{what} ({where})", value, allowed) if value else None
    if name.startswith("is_"):
        return checked(f"truth value ({where}, column {name})", value, ("true", "false")) == "true"
    if name not in NUMBER_COLUMNS:
        return text
    if not value:
        return None
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UnknownValue(f"number ({where}, column {name})", value, ["a decimal number such as 0.5"])
    return number


def _overridden(stem: str, base: _Parsed, user: _Parsed) -> _Parsed:
    if {*user.columns, "read_by"} != {*base.columns, "read_by"}:
        raise SchemaMismatch(
            f"your {stem}.csv has the columns {list(user.columns)}, needs {list(base.columns)}.",
            "Copy the first line from the file that comes with Cortex.",
        )
    if stem in COMPLETE or stem == "thresholds":
        for key in user.rows:
            if key not in base.rows:
                raise UnknownValue(f"name in {stem}.csv", str(key[0]), [str(known[0]) for known in base.rows])
    rows = dict(base.rows)
    for key, row in user.rows.items():
        own = {name: cell for name, cell in row.items() if name != "read_by"}
        for name in BUILT_IN.get(stem, ()):
            if own[name] != base.rows[key][name]:
                raise SchemaMismatch(
                    f"your {stem}.csv changes {name} of '{key[0]}', which is built in.",
                    "Copy that cell from the file that comes with Cortex.",
                )
        rows[key] = {**base.rows.get(key, {}), **own}
    return _Parsed(base.columns, rows)


def _arrow(columns: tuple[str, ...], rows: Iterable[PolicyRow]) -> pa.Table:
    import pyarrow as pa

    def type_of(name: str) -> pa.DataType:
        if name in NUMBER_COLUMNS:
            return pa.float64()
        return pa.bool_() if name.startswith("is_") else pa.string()

    schema = pa.schema([pa.field(name, type_of(name)) for name in columns])
    return pa.Table.from_pylist(list(rows), schema=schema)
