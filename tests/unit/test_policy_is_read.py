"""No knob without a hand on it: each row and column of the policy tables is read by the product (spec 2)."""

import csv
import re
from functools import cache
from pathlib import Path

from cortex.flows.stages import order
from cortex.storage.settings.reference import read_policy
from cortex.transforms.policy import BUILT_IN, READERS
from docs.generate import commands

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "data" / "reference"
TABLES = sorted(REFERENCE.glob("*.csv"))
PRODUCTION = [
    path
    for room in ("benchmarks/scores", "cortex", "flows", "hooks", "storage", "transforms")
    for path in sorted((ROOT / room).rglob("*.*"))
    if path.suffix in (".py", ".sql") and not path.is_symlink()
]
# What each module that reads the policy belongs to; a folder stands for all modules in it that are not named.
BELONGS_TO = {
    "transforms/audit.py": ("audit",),
    "transforms/brief/": ("render",),
    "transforms/extract/": ("extract",),
    "flows/past/rederive.py": ("rederive",),
    "transforms/memory/reality.py": ("render",),
    "transforms/memory/consolidate.py": ("consolidate",),
    "flows/operations/ask/memory_details.py": ("decay",),
    "transforms/memory/fold.py": ("fold",),
    "transforms/memory/lifecycle.py": ("decay",),
    "transforms/memory/validity.py": ("decay",),
    "transforms/memory/link.py": ("link", "consolidate"),
    "transforms/memory/loss.py": ("guard",),
    "transforms/views/effect.py": ("stats",),
    "transforms/views/metrics.py": ("stats",),
    "transforms/views/review.py": ("review",),
    "transforms/memory/quality.py": ("remember", "learn"),
    "flows/operations/ask/reasoning.py": ("decay",),
    "transforms/search.py": ("embed", "recall"),
    "transforms/sql/brief_candidates.sql": ("render",),
    "flows/operations/edit/forget.py": ("forget",),
    "transforms/writer/": ("write",),
    "transforms/writer/pairs.py": ("judge",),
    "transforms/writer/project.py": ("judge",),
    "transforms/writer/answer.py": ("extract", "write"),
    "transforms/writer/written.py": ("extract", "write"),
    "transforms/words/": ("extract", "link", "consolidate", "remember", "stats"),
    "flows/run/run.py": ("extract", "render"),
    "flows/transcript_batches.py": ("backfill",),
    "flows/engines/prefect_stages.py": ("backfill",),
    "flows/publishing/briefs.py": ("render",),
    "flows/stages/embed.py": ("embed",),
    "flows/stages/erase.py": ("erase",),
    "flows/asking_model/writing.py": ("write",),
    "flows/asking_model/judging.py": ("judge",),
    "flows/stages/memories.py": ("retire",),
    "flows/operations/ask/answering.py": ("reflect", "infer"),
    "cortex/mcp/": ("mcp",),
    "benchmarks/scores/": ("eval",),
    "flows/operations/maintain/intake.py": ("backfill",),
    "flows/operations/maintain/cost.py": ("cost", "plan", "backfill"),
    "flows/operations/maintain/setup.py": ("setup",),
    "flows/run/model_replies.py": ("guard",),
}
# Said to the reader of a table, not to the program.
REMARKS = {"why", "note", "unit", "prior", "language", "read_by"}
LOOKUPS = (
    "rows_read_by",
    "threshold",
    "brief_lines",
    "brief_section",
    "brief_sections",
    "types_with",
    "salience",
    "calibration",
    "confidence",
)
# Named settings, whose rows the code asks for one by one.
NAMED = ("thresholds", "ranking")


@cache
def code_of(path: Path) -> str:
    """Return what a file holds, without comments."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return "\n".join(line for line in lines if not line.lstrip().startswith(("#", "--")))


@cache
def code() -> str:
    """Return all of the product's code but the declarations of tables."""
    return "\n".join(code_of(path) for path in PRODUCTION if path.name != "policy.py")


@cache
def sql() -> str:
    """Return all queries."""
    return "\n".join(path.read_text(encoding="utf-8") for path in PRODUCTION if path.suffix == ".sql")


def is_text_in(held: str, name: str) -> bool:
    """Return whether code holds a name as a text of its own."""
    return f'"{name}"' in held or f"'{name}'" in held


def is_read(name: str) -> bool:
    """Return whether the code holds a name as a text of its own, a parameter or a column of a query."""
    if is_text_in(code(), name):
        return True
    return bool(re.search(rf"(?<![\w\"'.]){re.escape(name)}(?![\w\"'])|[$.]{re.escape(name)}(?!\w)", sql()))


def rows(table: Path) -> list[dict[str, str]]:
    with table.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_named_number_is_read():
    names = [(stem, row["name"]) for stem in NAMED for row in rows(REFERENCE / f"{stem}.csv")]
    assert [name for name in names if not is_read(name[1])] == []


def test_every_table_is_read():
    assert [path.stem for path in TABLES if not (is_read(path.stem) or f"{path.stem}.csv" in code())] == []


def test_every_column_is_read():
    # These are looked up by methods of Policy, which production code calls: asserted below.
    looked_up = {"brief_lines", "brief_section", "brief_place", "salience", "zero_at", "one_at"}
    columns = [
        (path.stem, name)
        for path in TABLES
        for name in {*rows(path)[0]} - REMARKS - looked_up - {*BUILT_IN.get(path.stem, ())}
    ]
    assert [column for column in sorted(columns) if not is_read(column[1])] == []


def test_every_lookup_of_the_policy_is_called_by_the_product():
    assert [method for method in LOOKUPS if not re.search(rf"\.{method}\(", code())] == []


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


def belongs_to(module: str) -> tuple[str, ...]:
    """Return the stages and commands that a module is part of."""
    above = [f"{parent.as_posix()}/" for parent in Path(module).parents]
    return next((BELONGS_TO[each] for each in (module, *above) if each in BELONGS_TO), ())


THRESHOLDS = {row["name"]: tuple(row["read_by"].split()) for row in rows(REFERENCE / "thresholds.csv")}


def test_a_threshold_is_read_where_it_says():
    wrong = []
    code_by_module = {
        path.relative_to(ROOT).as_posix(): code_of(path)
        for path in PRODUCTION
        if path.name not in ("policy.py", "schemas.py")
    }
    for name, readers in THRESHOLDS.items():
        modules = [module for module, held in code_by_module.items() if is_text_in(held, name)]
        wrong += [
            (name, "is read by", module) for module in modules if not {*belongs_to(module)} & {*readers}
        ]
        read_by = {reader for module in modules for reader in belongs_to(module)}
        wrong += [(name, "is not read by", reader) for reader in readers if reader not in read_by]
    assert wrong == []


def test_every_reader_is_a_stage_or_a_command():
    names = {stage.name for stage in (*order.INGEST, *order.NIGHTLY)}
    known = names | {words[0] for words in commands()}
    declared = {reader for readers in (*READERS.values(), *THRESHOLDS.values()) for reader in readers}
    assert declared - known - {"audit", "fold"} == set()


def test_every_table_names_its_readers():
    assert READERS.keys() | {"thresholds"} == read_policy(None).tables.keys()
