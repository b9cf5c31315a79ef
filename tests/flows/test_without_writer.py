"""With no language model chosen nothing of it is loaded, no file appears and nothing leaves."""

import subprocess
import sys
from pathlib import Path

from tests.transcripts import decisions

# What only a chosen language model needs.
LOADED = """
import sys
from cortex.cli.main import main
try:
    main(sys.argv[1:])
finally:
    names = ("anthropic", "cortex.flows.asking", "cortex.flows.writers", "cortex.storage.spending")
    print("LOADED", [name for name in names if name in sys.modules], file=sys.stderr)
"""


def run(home: Path, *words: str) -> str:
    # Its key may be set for other tools: only the setting counts.
    environment = {"CORTEX_HOME": str(home), "HOME": str(home.parent), "PATH": "/usr/bin:/bin"}
    environment |= {"ANTHROPIC_API_KEY": "sk-none", "CLAUDE_CODE_OAUTH_TOKEN": "sk-none"}
    command = [sys.executable, "-c", LOADED, *words]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stderr.splitlines()[-1]


def test_a_run_loads_nothing_of_it_and_leaves_no_file(home, tmp_path):
    decisions("s1").write(tmp_path / "projects")
    assert run(home, "backfill", str(tmp_path / "projects"), "--engine", "plain") == "LOADED []"
    assert run(home, "nightly", "--engine", "plain") == "LOADED []"
    names = {path.name for path in (home / "runs").iterdir()}
    assert not {name for name in names if "spending" in name or "scratch" in name}
