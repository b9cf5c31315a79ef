"""Retention by project and by type of memory: what is past its days goes, and nothing else does."""

from dataclasses import replace
from datetime import datetime, timedelta

from cortex.flows.engines import runs
from cortex.storage.settings.settings import Settings
from cortex.transforms.memory.forgetting import tombstones_of
from cortex.transforms.memory.retention import ProjectRetention, Retention
from cortex.transforms.schemas import JOURNAL, TURNS
from tests.bench import NOW, Bench
from tests.present import clock_at
from tests.rows import entry, turn
from tests.traces import traces
from tests.transcripts import Talk
from tests.whole.flows.test_erasure import here

RULE = "Tide gauges of the harbour report every six minutes."
TRAP = "The quagsireplum pump stalls where its hose is longer than nine metres."
PINNED = "The wembleflorp valve sticks in the first frost."


def _talk(name: str, project: str) -> Talk:
    return (
        Talk(name, cwd=f"/home/dev/{project}")
        .user("What should we know of the plant?")
        .assistant(f"[MEMORY: gotcha] {TRAP}")
        .user("Fine.")
        .assistant(f"[MEMORY: decision] {RULE}")
        .user("And the valve?")
        .assistant(f"[MEMORY: gotcha] {PINNED}")
        .user("Thanks.")
    )


def _run(bench: Bench, days: int, **settings: object) -> None:
    chosen = Settings(home=bench.home, **settings)  # type: ignore[arg-type]
    runs.execute("nightly", replace(bench.at(NOW + timedelta(days=days)), settings=chosen))


def test_only_that_type_of_that_project_goes(bench):
    _talk("k1", "kelp").write(bench.projects)
    _talk("r1", "reef").write(bench.projects)
    with clock_at(NOW):
        bench.begin()
        [kept] = [memory for memory in bench.memories() if PINNED in memory["text"]]
        pin = entry("pin", kept["project_id"], {}, recorded_at=NOW, memory_id=kept["memory_id"])
        bench.store.journal.write(pin)
    reef, turns = bench.texts("reef"), bench.store.lake.read(TURNS).num_rows
    assert {TRAP, RULE, PINNED} <= set(bench.texts("kelp")) and TRAP in reef
    rules = {kept["project_id"]: {"retention.types": ("gotcha=90",)}}

    _run(bench, 1, by_project=rules)
    assert {TRAP, RULE, PINNED} <= set(bench.texts("kelp"))
    _run(bench, 60, by_project=rules)
    left = [memory["text"] for memory in bench.memories("kelp")]
    assert TRAP not in left and RULE in left and PINNED in left
    # What it rests on goes with it; the same words elsewhere, and all other turns, stay.
    own = [row for row in bench.store.lake.read(TURNS).to_pylist() if "quagsireplum" in row["text"]]
    assert own and all(row["project_id"].startswith("reef") for row in own)
    assert bench.store.lake.read(TURNS).num_rows == turns
    assert set(reef) <= {memory["text"] for memory in bench.memories("reef")}


def test_a_project_keeps_longer_or_shorter_than_the_others(bench):
    _talk("k1", "kelp").write(bench.projects)
    _talk("r1", "reef").write(bench.projects)
    bench.begin()
    [reef] = {memory["project_id"] for memory in bench.memories("reef")}
    [kelp] = {memory["project_id"] for memory in bench.memories("kelp")}
    _run(bench, 60, retention_days=90, by_project={reef: {"retention.days": 0}})
    rows = bench.store.lake.read(TURNS).to_pylist()
    assert rows and {row["project_id"] for row in rows} == {reef}
    assert not bench.texts("kelp") and bench.memories("reef")
    assert not (bench.home / "tables" / kelp).exists() and not (bench.home / "published" / kelp).exists()
    _run(bench, 61, by_project={reef: {"retention.days": 90}})
    assert traces(bench.home, "quagsireplum") == []


def test_what_expired_is_not_brought_back_by_reading_again_and_can_be_remembered(bench):
    path = _talk("k1", "kelp").write(bench.projects)
    bench.begin()
    _run(bench, 60, retention_types=("gotcha=90",))
    assert traces(bench.home, "quagsireplum") == []
    path.write_bytes(path.read_bytes().replace(b'"2.1.330"', b'"2.1.331"'))
    bench.backfill(now=NOW + timedelta(days=60, hours=1))
    assert TRAP not in bench.texts()
    with clock_at(NOW + timedelta(days=61)):
        here().remember(TRAP, project="/home/dev/kelp")
    assert TRAP in bench.texts()


def test_a_rule_covers_the_turns_of_its_project_alone():
    def at(days: int) -> datetime:
        return NOW - timedelta(days=days)

    turns = TURNS.of(
        [
            turn(days, project_id=name, turn_id=f"{name}{days}", said_at=at(days), text="Said.")
            for name in ("kelp", "reef", "tide")
            for days in (10, 100)
        ]
    )
    rules = Retention(ProjectRetention(at(50)), {"reef": ProjectRetention(), "tide": ProjectRetention(at(5))})
    covered = tombstones_of(JOURNAL.empty(), rules).covers(turns).to_list()
    assert covered == [False, True, False, False, True, True]
