"""What a command imports: most of the time that a question takes is spent on it."""

import subprocess
import sys

import pytest

from cortex.transforms.spared_imports import sparing

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
    "cortex.transforms.redaction.redact",
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
def test_a_run_with_nothing_new_opens_no_table_checks_no_rows_and_asks_no_service(samples):
    modules_of("run", "--engine", "plain")  # on the day of the next one
    modules = modules_of("run", "--engine", "plain")
    assert modules & {"lancedb", "duckdb", "polars", "onnxruntime", "requests", "urllib3", "prefect"} == set()


@pytest.mark.slow
def test_the_redactor_has_the_rules_of_detect_secrets_with_and_without_what_it_spares():
    rules = (
        "from cortex.transforms.redaction.redact import Redactor\n"
        "rules = [(rule.kind, str(rule.pattern.pattern)) for rule in Redactor()._rules]\n"
        "assert len(rules) > 100\nprint(rules, 'requests' in sys.modules)\n"
    )
    outputs = []
    for first in ("import sys\n", "import sys, requests\n"):
        run = subprocess.run(
            [sys.executable, "-c", first + rules], capture_output=True, text=True, check=True
        )
        outputs.append(run.stdout.strip().rpartition(" "))
    assert outputs[0][0] == outputs[1][0]
    assert [has_requests for *_, has_requests in outputs] == ["False", "True"]


def test_a_spared_package_is_itself_again_afterwards_also_where_the_import_fails(tmp_path, monkeypatch):
    (tmp_path / "tideware").mkdir()
    (tmp_path / "tideware" / "__init__.py").write_text("")
    (tmp_path / "tideware" / "util.py").write_text("def is_high(level):\n    return level > 4\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ZeroDivisionError), sparing("tideware"):
        from tideware.util import Anything

        assert issubclass(Anything, Exception)
        1 / 0  # noqa: B018
    assert not any(name.partition(".")[0] == "tideware" for name in sys.modules)
    from tideware.util import is_high

    assert is_high(5)


@pytest.mark.slow
@pytest.mark.parametrize("package", ["lance_namespace", "lance_namespace_urllib3_client", "overrides"])
def test_what_is_spared_can_be_imported_afterwards(package):
    program = (
        "from cortex.storage.lance_library import lancedb\n"
        f"lancedb()\nimport {package}\nprint({package}.__file__)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip().endswith("__init__.py")
