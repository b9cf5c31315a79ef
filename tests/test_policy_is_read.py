"""No knob without a hand on it: each row and column of the policy tables is read by the product (spec 2)."""

import ast
import csv
import re
from pathlib import Path

import pytest

from cortex.flows.stages import order
from cortex.storage.reference import read_policy
from cortex.transforms.policy import READERS
from docs.generate import commands

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "data" / "reference"
TABLES = sorted(REFERENCE.glob("*.csv"))
PRODUCTION = [
    path
    for room in ("cortex", "flows", "hooks", "storage", "transforms")
    for path in sorted((ROOT / room).rglob("*.*"))
    if path.suffix in (".py", ".sql") and not path.is_symlink()
]
# What each module that reads the policy belongs to; a folder stands for all modules in it that are not named.
BELONGS_TO = {
    "transforms/audit.py": ("audit",),
    "transforms/brief/": ("render",),
    "transforms/extract/": ("extract",),
    "transforms/memory/carried.py": ("rederive",),
    "transforms/memory/chosen.py": ("render",),
    "transforms/memory/consolidate.py": ("consolidate",),
    "transforms/memory/curve.py": ("decay",),
    "transforms/memory/fold.py": ("fold",),
    "transforms/memory/lifecycle.py": ("decay",),
    "transforms/memory/link.py": ("link",),
    "transforms/memory/loss.py": ("guard",),
    "transforms/memory/metrics.py": ("stats",),
    "transforms/memory/neighbours.py": ("link", "consolidate"),
    "transforms/memory/quality.py": ("remember",),
    "transforms/lessons.py": ("learn",),
    "transforms/reflection.py": ("decay",),
    "transforms/memory/reality.py": ("render",),
    "transforms/memory/repeated_decisions.py": ("stats",),
    "transforms/search/answers.py": ("recall",),
    "transforms/search/index_text.py": ("embed", "recall"),
    "transforms/search/naming.py": ("forget",),
    "transforms/writer/": ("write",),
    "transforms/writer/pairs.py": ("judge",),
    "transforms/writer/written.py": ("extract", "write"),
    "transforms/words/": ("extract", "link", "consolidate", "remember", "stats"),
    "flows/readings.py": ("extract",),
    "flows/run.py": ("render",),
    "flows/shard_batches.py": ("backfill",),
    "flows/prefect_runners.py": ("backfill",),
    "flows/repository_doubts.py": ("render",),
    "flows/stages/embed.py": ("embed",),
    "flows/stages/erase.py": ("erase",),
    "flows/writing.py": ("write",),
    "flows/judging.py": ("judge",),
    "flows/stages/retire.py": ("retire",),
    "flows/answering.py": ("reflect", "infer"),
    "cortex/mcp/": ("mcp",),
    "flows/operations/intake.py": ("backfill",),
    "flows/operations/cost.py": ("cost",),
    "flows/operations/plan.py": ("plan", "backfill"),
    "flows/given_way.py": ("guard",),
    "flows/operations/evaluate.py": ("eval",),
}
# Said to the reader of a table, not to the program.
REMARKS = {"why", "note", "unit", "prior", "language", "read_by"}
LOOKUPS = (
    "rows_read_by",
    "threshold",
    "brief_lines",
    "brief_section",
    "types_with",
    "salience",
    "calibration",
    "confidence",
)
# Named settings, whose rows the code asks for one by one.
NAMED = ("thresholds", "ranking", "prompt_gate")


def code() -> str:
    """Return all of the product's code but the declarations of tables, without comments."""
    kept = [path for path in PRODUCTION if path.name != "policy.py"]
    lines = [line for path in kept for line in path.read_text(encoding="utf-8").split("\n")]
    return "\n".join(line for line in lines if not re.match(r"\s*(?:#|--)", line))


CODE = code()


def is_read(name: str) -> bool:
    """Return whether the code holds a name as a text of its own, a parameter or a column of a query."""
    in_python = re.search(rf"[\"']{re.escape(name)}[\"']", CODE)
    in_sql = re.search(rf"(?<![\w\"'.]){re.escape(name)}(?![\w\"'])|[$.]{re.escape(name)}(?!\w)", SQL)
    return bool(in_python or in_sql)


SQL = "\n".join(path.read_text(encoding="utf-8") for path in PRODUCTION if path.suffix == ".sql")


def rows(table: Path) -> list[dict[str, str]]:
    with table.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("stem", NAMED)
def test_every_named_number_is_read(stem):
    names = [row["name"] for row in rows(REFERENCE / f"{stem}.csv")]
    assert [name for name in names if not is_read(name)] == []


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_every_table_and_column_is_read(table):
    columns = set(rows(table)[0]) - REMARKS
    assert is_read(table.stem) or f"{table.stem}.csv" in CODE
    # These four are looked up by methods of Policy, which production code calls: asserted below.
    looked_up = {"brief_lines", "brief_section", "salience", "zero_at", "one_at"}
    assert [name for name in sorted(columns - looked_up) if not is_read(name)] == []


@pytest.mark.parametrize("method", LOOKUPS)
def test_every_lookup_of_the_policy_is_called_by_the_product(method):
    assert re.search(rf"\.{method}\(", CODE)


def test_the_policy_has_no_other_lookups():
    text = (ROOT / "transforms" / "policy.py").read_text(encoding="utf-8")
    methods = re.findall(r"^    def ([a-z]\w*)\(self", text, re.MULTILINE)
    assert set(methods) - {"tables", "derived"} == set(LOOKUPS)


def test_every_source_of_events_has_its_confidence_and_every_confidence_its_source():
    named = {row["source"] for row in rows(REFERENCE / "confidences.csv")}
    extraction = "\n".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "transforms/extract").glob("*.py")
    )
    assert [name for name in sorted(named) if f'"{name}"' not in extraction] == []


def texts(path: Path) -> set[str]:
    """Return the texts that stand in a module's code."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


TEXTS = {
    path.relative_to(ROOT).as_posix(): texts(path)
    for path in PRODUCTION
    if path.suffix == ".py" and path.name not in ("policy.py", "schemas.py")
}


def belongs_to(module: str) -> tuple[str, ...]:
    """Return the stages and commands that a module is part of."""
    return BELONGS_TO.get(module) or BELONGS_TO.get(f"{module.rpartition('/')[0]}/", ())


THRESHOLDS = {row["name"]: tuple(row["read_by"].split()) for row in rows(REFERENCE / "thresholds.csv")}


@pytest.mark.parametrize(("name", "readers"), THRESHOLDS.items())
def test_a_threshold_is_read_where_it_says(name, readers):
    modules = [module for module, held in TEXTS.items() if name in held]
    assert [module for module in modules if not {*belongs_to(module)} & {*readers}] == []
    assert [reader for reader in readers if not any(reader in belongs_to(module) for module in modules)] == []


def test_every_reader_is_a_stage_or_a_command():
    names = {stage.name for stage in (*order.INGEST, *order.NIGHTLY)}
    known = names | {words[0] for words in commands()}
    declared = {reader for readers in (*READERS.values(), *THRESHOLDS.values()) for reader in readers}
    assert declared - known - {"audit", "fold"} == set()


def test_every_table_names_its_readers():
    assert READERS.keys() | {"thresholds"} == read_policy(None).tables.keys()
