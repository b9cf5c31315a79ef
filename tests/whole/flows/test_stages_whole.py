"""What a stage declares that it reads and writes is what it does."""

from collections import defaultdict
from collections.abc import Iterator

import pytest

from cortex.flows.engines.runs import opened
from cortex.flows.run.run import Stage
from cortex.flows.stages import order
from cortex.storage.lake import lake
from cortex.storage.lake.journal import Journal
from cortex.storage.lake.lake import Lake
from cortex.storage.tables.lance_tables import LanceTables
from cortex.transforms.journal_entries import Forget
from tests.bench import NOW, Bench
from tests.store.flows.test_stages import EVERY_STAGE
from tests.transcripts import decisions


class Recorder:
    """Notes which tables are opened and written while a stage runs."""

    def __init__(self) -> None:
        self.reads: dict[str, set[str]] = defaultdict(set)
        self.writes: dict[str, set[str]] = defaultdict(set)
        self.stage = ""


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    noted = Recorder()
    read, write, opens = Lake.read, Lake.write_file, LanceTables.open
    replace, purge = LanceTables.replace, LanceTables.purge
    read_journal = Journal.read

    def reads(self, table, *args, **named):
        noted.reads[noted.stage].add(table.name)
        return read(self, table, *args, **named)

    def reads_journal(self, *args):
        noted.reads[noted.stage].add("journal")  # kept from an earlier stage, perhaps
        return read_journal(self, *args)

    def writes(self, table, *args):
        noted.writes[noted.stage].add(table.name)
        return write(self, table, *args)

    def opened_table(self, scope, name):
        noted.reads[noted.stage].add(name)
        return opens(self, scope, name)

    def replaces(self, scope, name, rows):
        noted.writes[noted.stage].add(name)
        return replace(self, scope, name, rows)

    def purges(self, scope):
        noted.writes[noted.stage] |= {"memories", "edges", "passages"}
        return purge(self, scope)

    monkeypatch.setattr(Lake, "read", reads)
    monkeypatch.setattr(Journal, "read", reads_journal)
    monkeypatch.setattr(Lake, "write_file", writes)
    monkeypatch.setattr(LanceTables, "open", opened_table)
    monkeypatch.setattr(LanceTables, "replace", replaces)
    monkeypatch.setattr(LanceTables, "purge", purges)
    yield noted


def ran(bench: Bench, stages: tuple[Stage, ...], recorder: Recorder) -> None:
    with opened("nightly", bench.context) as run:
        for stage in stages:
            recorder.stage = stage.name
            stage(run)
        recorder.stage = ""


def test_a_stage_reads_and_writes_what_it_declares(bench, recorder, monkeypatch):
    decisions("s1").write(bench.projects)
    decisions("s2", cwd="/home/dev/reef").write(bench.projects)
    bench.stage()
    ran(bench, order.NIGHTLY, recorder)
    forgotten = min(bench.memories(), key=lambda row: row["memory_id"])
    place = forgotten["evidence"][0]
    wish = Forget(turn_ids=(place["turn_id"],))
    bench.store.journal.write(
        wish.to_row(forgotten["project_id"], recorded_at=NOW, memory_id=forgotten["memory_id"])
    )
    monkeypatch.setattr(lake, "MAXIMUM_FILES_PER_PARTITION", 0)
    ran(bench, order.INGEST, recorder)
    undeclared = {
        name: ((recorder.reads[name] - stage.reads), (recorder.writes[name] - stage.writes))
        for name, stage in EVERY_STAGE.items()
    }
    assert {name: sides for name, sides in undeclared.items() if any(sides)} == {}
    assert all(
        recorder.writes[name] for name in ("extract", "compact", "embed", "link", "decay", "erase", "wipe")
    )
