"""What a command imports: most of the time that a question takes is spent on it."""

import subprocess
import sys

import pytest

from tests.process.cli.test_imports import modules_of

# Of a question alone; what makes memories, tables and briefs belongs to a run.
STAGES = (
    "lancedb",
    "polars",
    "duckdb",
    "cortex.transforms.extract.events",
    "cortex.flows.run.run",
    "cortex.flows.stages",
    "cortex.transforms.redaction.redact",
)


@pytest.mark.parametrize("where", [["--all-projects"], ["--project", "tidepool"]])
def test_a_question_imports_no_stage_and_no_library_of_the_tables(samples, where):
    modules = modules_of("recall", *where, "which", "database")
    assert {name for name in modules if name.startswith("prefect")} | (modules & set(STAGES)) == set()


def test_a_run_with_nothing_new_opens_no_table_checks_no_rows_and_asks_no_service(samples):
    modules_of("run", "--engine", "plain")  # on the day of the next one
    modules = modules_of("run", "--engine", "plain")
    assert modules & {"lancedb", "duckdb", "polars", "onnxruntime", "requests", "urllib3", "prefect"} == set()


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


@pytest.mark.parametrize("package", ["lance_namespace", "lance_namespace_urllib3_client", "overrides"])
def test_what_is_spared_can_be_imported_afterwards(package):
    program = (
        "from cortex.storage.tables.lance_tables import lancedb\n"
        f"lancedb()\nimport {package}\nprint({package}.__file__)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip().endswith("__init__.py")
