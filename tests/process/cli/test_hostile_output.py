"""What a stranger put into words, names and paths steers no terminal: every command, field and form."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cortex.transforms.schemas import GLOBAL_SCOPE
from tests.bench import Bench, kept
from tests.transcripts import Talk

HOSTILE = (
    "\x1b[31mred\x1b[0m \x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\ \x1b]0;owned\x07 "
    "\x9b2J\x08\x08 "
    "a\u202eb\u2067c\u200bd\u00ade\u034ff\ufeffg\ufe0fh\U000e0041\U000e0042i\u3164j\u2800k\u115fl\U000e0100m\rn"
)
# Everything that may not reach a person's terminal; line ends and tabs are a command's own.
RAW = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
HOOKS = Path(__file__).parents[3] / "hooks"


@pytest.fixture
def hostile(home: Path, projects: Path) -> str:
    """Return the id of a project whose every field is hostile; the store is the shell's."""
    scope: str = kept(Bench(home, projects), "hostile fields", fill)
    return scope


def fill(bench: Bench) -> str:
    """Fill a store with a project whose every field is hostile, and return its id."""
    for number in range(2):
        talk = Talk(f"h{number}", cwd=f"/home/dev/ke{HOSTILE}lp")
        talk.user(f"Which store? {HOSTILE}")
        talk.assistant(
            f"We decided to use SQLite{number} {HOSTILE} for the gauges because one writer is enough there."
        )
        talk.assistant(f"[MEMORY: gotcha] The gauge {HOSTILE} number {number} needs a store of its own.")
        talk.call(
            f"mcp__{HOSTILE}__put", f"done {HOSTILE}", **{f"field{HOSTILE}": HOSTILE, "command": HOSTILE}
        )
        talk.call("Edit", "done", file_path=f"/home/dev/kelp/{HOSTILE}.py", old_string="a", new_string="b")
        for record in talk.records:
            record |= {"gitBranch": f"b{HOSTILE}", "version": HOSTILE, "sessionId": f"s{number}{HOSTILE}"}
        folder = bench.projects / f"p{HOSTILE.replace('/', '')}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"t{number}\x1b[31m\u202e.jsonl").write_text(
            "".join(json.dumps(record) + "\n" for record in talk.records) + "{broken\n"
        )
    bench.backfill()
    [scope] = [name for name in bench.store.tables.scopes() if name != GLOBAL_SCOPE]
    assert bench.store.tables.open(scope, "memories").count()
    return str(scope)


def test_what_is_published_for_hooks_has_no_raw_control(home, hostile):
    for path in (home / "published").rglob("*"):
        if path.suffix in (".md", ".sqlite"):
            text = path.read_bytes().decode("utf-8", "ignore")
            assert "\u202e" not in text and "\x1b[" not in text, path.name


def test_hooks_hand_over_no_raw_control_though_a_file_holds_it(home, hostile):
    folder = next(iter(json.loads((home / "published/projects.json").read_bytes())))
    (home / "published" / hostile / "brief.md").write_text(
        f"# Notes\n- {HOSTILE} 👩\u200d🚀\n", encoding="utf-8"
    )
    payload = {"session_id": "x", "cwd": folder, "source": "startup", "transcript_path": "/none.jsonl"}
    command = [sys.executable, "-I", "-S", str(HOOKS / "hook.py"), "session-start"]
    done = subprocess.run(
        command,
        input=json.dumps(payload).encode(),
        capture_output=True,
        check=True,
        env={"CORTEX_HOME": str(home)},
    )
    context = json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]
    assert "red click" in context and "👩\u200d🚀" in context
    assert not RAW.findall(context.replace("👩\u200d🚀", ""))
    assert not RAW.findall(done.stdout.decode())
