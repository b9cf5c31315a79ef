"""The main way through an installed Cortex, for programs: CORTEX=COMMAND python installed.py [--short]."""

import json
import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

SAMPLES = str(files("cortex.data") / "samples" / "projects")
PROJECT = ["--project", "tidepool"]


def cortex(*words: str, exit_code: int = 0) -> str:
    """Return what the command prints; another exit code ends the check."""
    done = subprocess.run([os.environ["CORTEX"], *words], capture_output=True, text=True, check=False)
    if done.returncode != exit_code:
        told = f"{done.stdout}{done.stderr}"
        sys.exit(f"cortex {' '.join(words)} left with {done.returncode}, not {exit_code}\n{told}")
    return done.stdout


def report_of(*words: str) -> dict[str, Any]:
    """Return the JSON that the command prints."""
    return dict(json.loads(cortex(*words, "--json")))


def expect(claim: str, holds: bool) -> None:
    """Say the claim, or end the check."""
    if not holds:
        sys.exit(f"not so: {claim}")
    print(f"ok: {claim}", flush=True)


def expect_answer() -> None:
    """Ask what the samples answer."""
    first = report_of("recall", "which database holds the readings", *PROJECT)["results"][0]
    expect("recall names SQLite with its source", "SQLite" in first["text"] and bool(first["evidence"]))


def try_shortly() -> None:
    """Backfill, and ask once."""
    expect(
        "the samples give memories",
        report_of("backfill", SAMPLES, "--engine", "plain")["rows"]["memories"] > 10,
    )
    expect_answer()
    expect("doctor finds nothing missing", all(check["ok"] for check in report_of("doctor")["checks"]))


def main() -> None:
    """Backfill twice, ask in every way, look for what may be left behind."""
    first = report_of("backfill", SAMPLES, "--engine", "prefect")
    expect(f"the samples give memories: {first['rows']}", first["rows"]["memories"] > 10)
    expect("the engine was Prefect, and printed JSON alone", first["engine"] == "prefect")
    ran = {stage["stage"] for stage in first["stages"]}
    expect("every stage ran", ran >= {"extract", "embed", "link", "decay", "consolidate", "render"})
    again = report_of("backfill", SAMPLES, "--engine", "plain")
    expect(
        "the same again adds no row", again["rows"] == first["rows"] and not any(again["new_rows"].values())
    )
    expect_answer()
    counted = report_of("sql", "select count(*) from memories")["rows"]
    expect("sql counts the same memories", counted == [[first["rows"]["memories"]]])
    expect("the brief has its sections", "## Decisions" in cortex("brief", *PROJECT))
    kept = report_of("remember", "The harbour office reads the dashboard at six", *PROJECT)
    expect("a fact is remembered and found", kept["searchable"])
    cortex("forget", kept["id"], *PROJECT)
    expect(
        "an unknown memory type is exit code 4",
        bool(cortex("remember", "x", "--type", "y", "--json", exit_code=4)),
    )
    checks = report_of("doctor")["checks"]
    expect("doctor finds nothing missing", all(check["ok"] for check in checks))
    parts = [path.name for path in Path(os.environ["CORTEX_HOME"]).rglob("*.part")]
    expect("no half-written file is left", not parts)


if __name__ == "__main__":
    try_shortly() if "--short" in sys.argv else main()
