"""The tutorial, followed from its text alone: each command runs in a shell, each line shown comes out."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def steps() -> list[tuple[str, list[str]]]:
    """Return each command of the page with the lines that it must print."""
    commands: list[tuple[str, list[str]]] = []
    for kind, text in BLOCK.findall((ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")):
        if kind == "sh":
            commands.append((text, []))
        else:
            commands[-1][1].extend(text.splitlines())
    return commands


def pattern_of(line: str) -> re.Pattern[str]:
    return re.compile("^" + ".*".join(map(re.escape, line.split("…"))) + "$", re.MULTILINE)


def test_the_tutorial_does_what_it_says(tmp_path):
    end = '\necho "::end $?"\n'
    script = end.join(command for command, _ in steps()) + end
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "cortex").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m cortex "$@"\n')
    (bin_folder / "cortex").chmod(0o755)
    given = {
        **os.environ,
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
    }
    given.pop("CORTEX_HOME", None)
    run = subprocess.run(
        ["sh"], input=script, cwd=ROOT, env=given, capture_output=True, text=True, check=False, timeout=280
    )
    outputs = re.split(r"::end (\d+)\n", run.stdout)
    codes = outputs[1::2]
    assert len(codes) == len(steps())
    for (command, lines), output, code in zip(steps(), outputs[::2], codes, strict=False):
        assert code == "0", (command, output, run.stderr)
        missing = [line for line in lines if not pattern_of(line).search(output)]
        assert missing == [], (command, output)
    assert not list(tmp_path.glob("*/store"))
