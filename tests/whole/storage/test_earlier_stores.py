"""Stores and tables of earlier versions: they open, run and say what they said."""

import json
import shutil
from pathlib import Path

from cortex.flows.context import Context
from cortex.flows.engines import runs
from cortex.flows.run import fingerprints
from cortex.storage.settings.settings import Settings
from cortex.storage.store import Store
from cortex.storage.tables.lance_tables import lancedb
from cortex.transforms.schemas import FINDING_KINDS
from tests.bench import NOW, Bench
from tests.rows import at
from tests.transcripts import decisions

FIRST_RELEASE = Path(__file__).parents[2] / "fixtures" / "first-release-store"


def test_the_store_of_the_first_release_opens_runs_and_says_what_it_said(home):
    shutil.copytree(FIRST_RELEASE, home)
    report = runs.execute("ingest", Context(Settings(home=home), lambda _: None, lambda: at("2026-10-27")))
    expected = json.loads((FIRST_RELEASE / "expected.json").read_bytes())
    store = Store(home)
    [scope] = [s for s in store.tables.scopes() if s != "global"]
    said = sorted(m["text"] for m in store.tables.open(scope, "memories").read().to_pylist())
    # What a run notes by itself (memories first found weak) is news to a store of that release.
    noted = [kind for kind in store.journal.read()["kind"].to_pylist() if kind in FINDING_KINDS]
    rows = {**report.rows, "journal": report.rows["journal"] - len(noted)}
    assert {name: rows[name] for name in expected["rows"]} == expected["rows"]
    assert set(expected["explicit"]) <= set(said)
    assert store.published.brief(scope).startswith("# ")


def test_tables_of_an_earlier_version_get_the_new_columns_by_the_next_run(home, projects, monkeypatch):
    bench = Bench(home, projects)
    decisions().write(bench.projects)
    bench.backfill(now=NOW)
    expected = {
        scope: bench.store.tables.open(scope, "memories").read() for scope in bench.store.tables.scopes()
    }
    for path in (bench.home / "tables").glob("*/memories.lance"):
        lancedb().connect(path.parent).open_table("memories").drop_columns(
            ["subject", "summary", "closed_by"]
        )
    monkeypatch.setattr(fingerprints, "STAGES_VERSION", "of the next version")
    bench.run(now=NOW)
    for scope, rows in expected.items():
        stored = lancedb().connect(bench.home / "tables" / scope).open_table("memories").schema.names
        assert "closed_by" in stored
        assert bench.store.tables.open(scope, "memories").read() == rows
