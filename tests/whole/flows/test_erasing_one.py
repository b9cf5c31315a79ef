"""Forgetting one memory changes nothing else: every other row stays as it was (spec 12)."""

import re
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from cortex.flows.engines import runs
from cortex.flows.engines.runs import run_plain
from cortex.flows.operations.edit.forget import plan_forget
from cortex.flows.past.rebuilding import compare
from cortex.flows.past.rederive import propose_rederivation
from cortex.flows.stages.order import FORGET
from cortex.transforms.memory.forgetting import MIN_PHRASE_LENGTH, statements_of
from cortex.transforms.schemas import TURNS
from tests.bench import NOW, SAMPLES, Bench
from tests.examples import HAS_EVERY_CASE
from tests.rows import entry

# Whole runs, a second each: together too long for the quick suite.

# Real sessions that grow: the last lines of each are read after something was forgotten.
LINES_KEPT_BACK = 40


def rows(bench: Bench) -> dict[str, dict[str, Any]]:
    """Return every memory of the store by id, before its neighbours and the day make anything of it."""
    run = runs.read_only_run(bench.context)
    return {
        row["memory_id"]: row
        for scope in run.readings.scopes()
        for row in run.readings.memories(scope).to_pylist()
    }


def forget(bench: Bench, memory: dict[str, Any]) -> None:
    turn_ids = {"turn_ids": sorted(e["turn_id"] for e in memory["evidence"])}
    wish = entry("forget", memory["project_id"], turn_ids, recorded_at=NOW, memory_id=memory["memory_id"])
    bench.store.journal.write(wish)
    with runs.opened("forget", bench.context) as run:
        run_plain(FORGET, run)


def copies(bench: Bench, folder: Path, every: int = 1) -> Iterator[tuple[Bench, dict[str, Any]]]:
    """Yield, for each memory of a store (or every nth), a copy of the store in which it is forgotten."""
    for number, memory in enumerate(list(rows(bench).values())[::every]):
        copy = Bench(folder / f"copy-{number}", bench.projects)
        shutil.copytree(bench.home, copy.home)
        forget(copy, memory)
        yield copy, memory
        shutil.rmtree(copy.home)


def words(row: dict[str, Any]) -> str:
    return " ".join(" ".join(row[n] or "" for n in ("text", "reason", "rejected")).split()).lower()


def holding(before: dict[str, dict[str, Any]], memory: dict[str, Any]) -> set[str]:
    """Return the memories that may hold words of the one forgotten: those go wherever they stand."""
    gone = [" ".join(memory["text"].split()).rstrip(".!?").lower()]
    if gone[0].startswith("plan: "):  # one memory of many events: its title and its steps
        gone = [part for part in re.split(r"[:;.] ", gone[0]) if len(part) >= MIN_PHRASE_LENGTH]
    # The record of a session goes with a statement that it repeats, as a goal or a commit.
    parts = [" ".join(part.split()).lower() for part in statements_of(memory)]
    return {
        name
        for name, row in before.items()
        if any(part in words(row) for part in gone)
        or (row["memory_type"] == "outcome" and any(part in words(row) for part in parts))
    }


def unlike(
    before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]], memory: dict[str, Any]
) -> list[str]:
    """Return what forgetting a memory changed beside it: rows that differ, and rows that nobody asked for."""
    hit = holding(before, memory)
    left = " ".join(words(before[name]) for name in hit)
    changed = [name for name in before.keys() - hit if after.get(name) != before[name]]
    new = [name for name in after.keys() - before.keys() if words(after[name]).strip() not in left]
    back = [memory["memory_id"]] if memory["memory_id"] in after else []
    return sorted([*changed, *new, *back])


def check_each(bench: Bench, folder: Path) -> None:
    before = rows(bench)
    for copy, memory in copies(bench, folder, every=1 if HAS_EVERY_CASE else 3):
        after, plan = rows(copy), plan_forget(bench.context, memory["memory_id"])
        assert unlike(before, after, memory) == [], memory["text"]
        announced = {memory["memory_id"], *(row["memory_id"] for row in plan.others)}
        assert before.keys() - after.keys() <= announced, memory["text"]
        with runs.opened("rederive", copy.context) as run:
            again = propose_rederivation(run)
            assert compare(run).differences == []
        proposed = [p for p in again.proposals if p.appears or p.vanishes or p.changes]
        assert proposed == [], memory["text"]


def test_each_memory_of_the_samples_can_go_alone(bench, tmp_path):
    bench.backfill(SAMPLES / "projects")
    assert len(rows(bench)) > 10
    check_each(bench, tmp_path)


def cut(folder: Path, bench: Bench) -> dict[Path, bytes]:
    """Copy the transcripts below a folder without their last lines; return each whole, by its copy."""
    whole = {}
    for path in sorted(folder.rglob("*.jsonl")):
        target = bench.projects / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        whole[target] = path.read_bytes()
        lines = whole[target].splitlines(keepends=True)
        target.write_bytes(b"".join(lines[:-LINES_KEPT_BACK] or lines))
    return whole


def grow(whole: dict[Path, bytes], copy: Bench) -> None:
    for path, content in whole.items():
        path.write_bytes(content)
    copy.backfill(now=NOW + timedelta(hours=1))


def test_what_is_said_later_fills_no_gap(bench, tmp_path):
    whole = cut(SAMPLES / "projects", bench)
    bench.begin()
    shorter = {path: path.read_bytes() for path in whole}
    before, turns = rows(bench), {row["turn_id"] for row in bench.store.lake.read(TURNS).to_pylist()}
    control = Bench(tmp_path / "control", bench.projects)
    shutil.copytree(bench.home, control.home)
    grow(whole, control)
    in_control = rows(control)
    for path, content in shorter.items():
        path.write_bytes(content)
    for copy, memory in copies(bench, tmp_path, every=3 if HAS_EVERY_CASE else 6):
        kept = rows(copy)
        grow(whole, copy)
        after = rows(copy)
        # A plan goes on, a fact is said again: their rows grow. What is new was said since.
        lost = [row["text"] for name, row in kept.items() if name not in after and name in in_control]
        new = [
            row
            for name, row in after.items()
            if not {name} & (before.keys() | kept.keys() | in_control.keys())
        ]
        assert lost == [], memory["text"]
        assert all({e["turn_id"] for e in row["evidence"]} - turns for row in new), memory["text"]
        assert (
            memory["memory_id"] not in after
            or {e["turn_id"] for e in after[memory["memory_id"]]["evidence"]} - turns
        )
        for path, content in shorter.items():
            path.write_bytes(content)
