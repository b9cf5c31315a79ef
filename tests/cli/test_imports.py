"""What a command imports: most of the time that a question takes is spent on it."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from cortex.cli.main import main
try:
    main(sys.argv[1:])
finally:
    print(*sys.modules, file=sys.stderr)
"""
# Of a question alone; what makes memories, tables and briefs belongs to a run.
STAGES = (
    "lancedb",
    "polars",
    "duckdb",
    "cortex.transforms.extract.events",
    "cortex.flows.run",
    "cortex.flows.stages",
)


def modules_of(*words: str) -> set[str]:
    """Return the names of the modules that a command has imported when it ends."""
    run = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=True)
    return set(run.stderr.splitlines()[-1].split())


@pytest.mark.slow
@pytest.mark.parametrize("where", [["--all-projects"], ["--project", "tidepool"]])
def test_a_question_imports_no_stage_and_no_library_of_the_tables(samples, where):
    modules = modules_of("recall", *where, "which", "database")
    assert {name for name in modules if name.startswith("prefect")} | (modules & set(STAGES)) == set()


# What tables are written, searched and compared with.
LIBRARIES = ("pyarrow", "numpy", "polars", "lancedb", "prefect", "onnxruntime", "cortex.storage.store")


@pytest.mark.parametrize("words", [["status"], ["brief", "--project", "tidepool"]])
def test_what_is_published_is_shown_without_a_table_library(samples, words):
    assert modules_of(*words) & {*LIBRARIES, "duckdb"} == set()


@pytest.mark.parametrize(
    "words", [["list", "--all-projects"], ["timeline", "--all-projects"], ["show", "ID"]]
)
def test_memories_are_looked_up_with_duckdb_alone(cortex, samples, words):
    first = cortex("list", "--all-projects", "--limit", "1", "--json").json["memories"][0]["memory_id"]
    modules = modules_of(*[first if word == "ID" else word for word in words])
    assert modules & set(LIBRARIES) == set() and "duckdb" in modules


@pytest.mark.slow
@pytest.mark.parametrize("package", ["lance_namespace", "lance_namespace_urllib3_client", "overrides"])
def test_what_is_spared_can_be_imported_afterwards(package):
    program = (
        "from cortex.storage.lance_library import lancedb\n"
        f"lancedb()\nimport {package}\nprint({package}.__file__)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip().endswith("__init__.py")
