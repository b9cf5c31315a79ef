"""With no language model chosen nothing of it is loaded, no file appears and nothing leaves."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench import Bench
from tests.transcripts import decisions

# What only a chosen language model needs.
LOADED = """
import sys
from cortex.cli.main import main
try:
    main(sys.argv[1:])
finally:
    rooms = (
        "anthropic", "httpx", "httpx2", "keyring", "cortex.flows.asking_model.asking", "cortex.flows.writ",
        "cortex.flows.operations.ask.answering", "cortex.flows.asking_model.judging",
        "cortex.storage.model_calls",
        "cortex.transforms.writer.",
    )
    few = {"cortex.transforms.writer.request"}  # a name and a dataclass
    print("LOADED", sorted(n for n in sys.modules if n.startswith(rooms) and n not in few), file=sys.stderr)
"""


def run(home: Path, *words: str, is_fine: bool = True) -> str:
    # Its key may be set for other tools: only the setting counts.
    environment = {"CORTEX_HOME": str(home), "HOME": str(home.parent), "PATH": "/usr/bin:/bin"}
    environment |= {"ANTHROPIC_API_KEY": "sk-none", "CLAUDE_CODE_OAUTH_TOKEN": "sk-none"}
    command = [sys.executable, "-c", LOADED, *words]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0 or not is_fine, result.stderr
    return result.stderr.splitlines()[-1]


def test_a_run_loads_nothing_of_it_and_leaves_no_file(home, tmp_path):
    decisions("s1").write(tmp_path / "projects")
    assert run(home, "backfill", str(tmp_path / "projects"), "--engine", "plain") == "LOADED []"
    assert run(home, "run", "--engine", "plain") == "LOADED []"
    assert run(home, "nightly", "--engine", "plain") == "LOADED []"
    names = {path.name for path in (home / "runs").iterdir()}
    assert not {name for name in names if re.search("spending|scratch|arrivals", name)}


@pytest.mark.spread(3)
@pytest.mark.parametrize(
    "words",
    [
        ("brief",), ("status",), ("recall", "swell"), ("reflect",), ("reflect", "Which queue?"),
        ("infer", "queue"), ("doctor",), ("review",), ("forget", "--session", "no-such-session"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_no_command_loads_anything_of_it(home, tmp_path, words):
    decisions("s1").write(tmp_path / "projects")
    Bench(home, tmp_path / "projects").backfill()
    scope = () if words[0] in ("status", "doctor", "forget") else ("--project", "kelp")
    assert run(home, *words, *scope, is_fine=words[0] not in ("doctor", "forget")) == "LOADED []"
    assert not (home / "runs" / "arrivals").exists() and not (home / "runs" / "spending.sqlite").exists()
