"""What a command imports: most of the time that a question takes is spent on it."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cortex.stubbed_imports import stubbing
from tests.process.cli.test_commands import HEAVY

PROGRAM = """
import sys
from cortex.cli.main import main
try:
    main(sys.argv[1:])
finally:
    print(*sys.modules, file=sys.stderr)
"""


def modules_of(*words: str) -> set[str]:
    """Return the names of the modules that a command has imported when it ends."""
    run = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=True)
    return set(run.stderr.splitlines()[-1].split())


# What tables are written, searched and compared with.
LIBRARIES = ("pyarrow", "numpy", "polars", "lancedb", "prefect", "onnxruntime", "cortex.storage.store")


@pytest.mark.first_is_quick
@pytest.mark.parametrize("words", [["status"], ["brief", "--project", "tidepool"]])
def test_what_is_published_is_shown_without_a_table_library(samples, words):
    assert modules_of(*words) & {*LIBRARIES, "duckdb"} == set()


@pytest.mark.first_is_quick
@pytest.mark.parametrize(
    "words", [["list", "--all-projects"], ["timeline", "--all-projects"], ["today"], ["show", "ID"]]
)
def test_memories_are_looked_up_with_duckdb_alone(cortex, samples, words):
    first = cortex("list", "--all-projects", "--limit", "1", "--json").json["memories"][0]["memory_id"]
    modules = modules_of(*[first if word == "ID" else word for word in words])
    assert modules & {*LIBRARIES, *HEAVY} == {"duckdb"}


def test_a_spared_package_is_itself_again_afterwards_also_where_the_import_fails(tmp_path, monkeypatch):
    (tmp_path / "tideware").mkdir()
    (tmp_path / "tideware" / "__init__.py").write_text("")
    (tmp_path / "tideware" / "util.py").write_text("def is_high(level):\n    return level > 4\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ZeroDivisionError), stubbing("tideware"):
        from tideware.util import Anything

        assert issubclass(Anything, Exception)
        1 / 0  # noqa: B018
    assert not any(name.partition(".")[0] == "tideware" for name in sys.modules)
    from tideware.util import is_high

    assert is_high(5)


def test_other_threads_find_the_package_itself_while_one_spares_it(tmp_path, monkeypatch):
    (tmp_path / "gaugeware.py").write_text("LEVEL = 4\n")
    monkeypatch.syspath_prepend(tmp_path)
    levels = []

    def read_level():
        import gaugeware

        levels.append(gaugeware.LEVEL)

    with stubbing("gaugeware"):
        thread = threading.Thread(target=read_level)
        thread.start()
        thread.join()
    assert levels == [4]


HOSTILE = ("click", "mcp", "typing", "tomlkit", "orjson", "duckdb", "pyarrow", "lancedb", "rich", "storage")
INITIALIZE = (
    b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", '
    b'"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}\n'
)


@pytest.mark.first_is_quick
@pytest.mark.parametrize("words", [("mcp",), ("list",), ("recall", "what do we use")])
def test_python_m_cortex_runs_no_module_of_the_folder_it_is_called_in(tmp_path, words):
    """A client whose `.mcp.json` names `python -m cortex mcp` starts it in the repository."""
    sprung, folder = tmp_path / "sprung", tmp_path / "repository"
    folder.mkdir()
    for name in HOSTILE:
        (folder / f"{name}.py").write_text(f"open({str(sprung)!r}, 'a').write({name!r})\n")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    run = subprocess.run(
        [sys.executable, "-m", "cortex", *words],
        cwd=folder,
        env={**environment, "HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[3])},
        input=INITIALIZE,
        capture_output=True,
    )
    assert not sprung.exists(), sprung.read_text()
    assert words != ("mcp",) or b'"serverInfo"' in run.stdout, run.stderr
