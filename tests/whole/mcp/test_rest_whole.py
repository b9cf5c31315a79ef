"""What a server does while nobody calls, and what its start costs."""

import subprocess
import sys

from cortex.mcp.protocol import idle_release

HEAVY = ("pyarrow", "numpy", "duckdb", "lancedb", "polars", "onnxruntime", "cortex.transforms.schemas")


def test_what_answers_a_client_before_its_first_call_brings_no_tables():
    program = f"import sys, cortex.mcp.server; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_search_brings_nothing_of_what_writes():
    program = (
        "import sys; from cortex.mcp.server import declared_tool; declared_tool('recall'); "
        "print([name for name in ('prefect', 'cortex.mcp.tools.write_tools') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_giving_back_memory_works_here():
    idle_release.trim_heap()
