"""A workbench for whole runs: a scratch store, invented transcripts, an embedder that needs no model."""

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from filelock import FileLock
from numpy.typing import NDArray

from cortex.flows.context import Context, EmbedderOf
from cortex.flows.engines import runs
from cortex.flows.memory import Memory
from cortex.flows.run_report import RunReport
from cortex.flows.stages.publish import first_database
from cortex.storage.lake.lake import LAKE_TABLES, each_key_once
from cortex.storage.published import published
from cortex.storage.settings.settings import Settings
from cortex.storage.store import Store
from cortex.transforms.schemas import VECTORS
from tests.present import clock_at, embedding_with, present

NOW = datetime(2026, 11, 1, 10, tzinfo=UTC)
SAMPLES = Path(__file__).parents[1] / "data" / "samples"


class WordEmbedder:
    """Hashes words into 16 dimensions; goes by a name that has a calibration."""

    model = "all-MiniLM-L6-v2"
    dimensions = 16

    def embed(self, texts: Sequence[str], *, as_query: bool = False) -> NDArray[np.float32]:
        """Return one unit-length row per text."""
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                row[hashlib.sha256(word.encode()).digest()[0] % self.dimensions] += 1
            row[0] += 0.01
        unit: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit


def words_for_a_model(settings: Settings) -> WordEmbedder:
    """Return the model that stands for the local one."""
    return WordEmbedder()


@contextmanager
def publishing_once() -> Iterator[None]:
    """
    Let first runs of this process publish their database at their end alone: early too takes 0.6 s.

    Its 240 comments are left out as well, 0.1 s a run: they are in `sample_store`, which a test reads.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(published, "comments", lambda **_: ())
        for flow, stages in runs.FLOWS.items():
            patch.setitem(runs.FLOWS, flow, tuple(each for each in stages if each is not first_database))
        yield


@pytest.fixture(autouse=True)
def _words_for_a_model() -> Iterator[None]:
    with embedding_with(words_for_a_model), publishing_once():
        yield


def here() -> Memory:
    """Return the memory of the test's own store, at the time and with the model that the test has set."""
    return Memory.of(present())


@dataclass(frozen=True)
class Bench:
    """A store and a folder of transcripts."""

    home: Path
    projects: Path
    embedder_of: EmbedderOf = words_for_a_model

    @property
    def settings(self) -> Settings:
        return Settings(home=self.home)

    @property
    def store(self) -> Store:
        return Store(self.home)

    @property
    def context(self) -> Context:
        return self.at(NOW)

    def at(self, now: datetime) -> Context:
        """Return the context of what is done at an instant."""
        return Context(self.settings, self.embedder_of, lambda: now)

    def stage(self, *paths: Path) -> None:
        """Stage what is new below `paths` (default: the bench's transcripts), as a backfill does."""
        runs.stage_all(self.settings, runs.look_for(self.settings, paths or [self.projects]).transcripts)

    def run(self, flow: str = "ingest", now: datetime = NOW, engine: str = "plain") -> RunReport:
        """Run a flow over what is staged."""
        return runs.execute(flow, self.at(now), engine=engine)

    def backfill(self, *paths: Path, now: datetime = NOW) -> RunReport:
        """Stage and run."""
        self.stage(*paths)
        return self.run("backfill", now)

    def begin(self, now: datetime = NOW) -> RunReport:
        """Backfill the empty store; if the same transcripts were read before, copy the result."""
        paths = (path for path in self.projects.rglob("*") if path.is_file())
        transcripts = frozenset((path, path.read_bytes()) for path in paths)
        key = transcripts, self.embedder_of, now
        report: RunReport = kept(self, key, lambda bench: bench.backfill(now=now))
        return report

    def texts(self, project: str = "kelp") -> list[str]:
        """Return the texts of a project's memories, sorted."""
        return sorted(row["text"] for row in self.memories(project))

    def memories(self, project: str = "kelp") -> list[dict[str, Any]]:
        """Return a project's memories as rows."""
        scopes = [s for s in self.store.tables.scopes() if s.startswith(f"{project}-") or s == project]
        return [row for s in scopes for row in self.store.tables.open(s, "memories").read().to_pylist()]


_KEPT: dict[object, tuple[Path, Any]] = {}


def kept(bench: Bench, key: object, fill: Callable[[Bench], Any]) -> Any:
    """
    Fill an empty bench as `fill` does and return what that returns; from the second time on as a copy of it.

    For what many tests begin with. Nothing that matters may be patched meanwhile, and the transcripts must
    lie in one place for all tests, as those of the fixture `bench` do: a store knows their paths.
    """
    assert not bench.home.exists()
    if key not in _KEPT:
        value = fill(bench)
        _KEPT[key] = bench.projects.with_name(f"kept-{len(_KEPT)}"), value
        _copy(bench.home, _KEPT[key][0] / "home")
        _copy(bench.projects, _KEPT[key][0] / "projects")
        return value
    folder, value = _KEPT[key]
    _copy(folder / "home", bench.home)
    _copy(folder / "projects", bench.projects)
    _lead_views_to(bench)
    return value


def _copy(source: Path, target: Path) -> None:
    if source.exists():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)


def _lead_views_to(bench: Bench) -> None:
    """Let the views of a copied database read the files beside it: they name them by their whole paths."""
    if not bench.store.published.database_path.is_file():
        return
    with duckdb.connect(str(bench.store.published.database_path)) as database:
        views = database.sql("select sql from duckdb_views() where not internal").fetchall()
        # Those that read files first: the others are views on them.
        for (view,) in sorted(views, key=lambda row: "read_parquet(" not in row[0]):
            moved = re.sub(r"read_parquet\('.*?(?=/(?:lake|published)/)", f"read_parquet('{bench.home}", view)
            database.execute(moved.replace("CREATE VIEW", "CREATE OR REPLACE VIEW", 1))


def contents(home: Path) -> dict[str, object]:
    """Return all that a store says: lake, tables, briefs; its cached vectors say nothing."""
    store = Store(home)
    tables: dict[str, object] = {}
    for name, table in LAKE_TABLES.items():
        if table is VECTORS:
            continue
        tables[name] = each_key_once(table, store.lake.read(table)).to_pylist()
    for scope in store.tables.scopes():
        for name in ("memories", "edges", "passages"):
            tables[f"{scope}/{name}"] = store.tables.open(scope, name).read().to_pylist()
        tables[f"{scope}/brief"] = store.published.brief(scope)
    return {name: rows for name, rows in tables.items() if rows}


def fixed_state(home: Path) -> dict[str, object]:
    """Return what a run with nothing to do must leave as it is: manifest, files, versions."""
    store = Store(home)
    files = {
        str(path.relative_to(home)): path.stat().st_mtime_ns
        for folder in ("lake", "published", "staging")
        for path in sorted((home / folder).rglob("*"))
        if path.is_file()
    }
    versions = {
        (scope, name): store.tables.open(scope, name).version
        for scope in store.tables.scopes()
        for name in ("memories", "edges", "passages")
    }
    manifest = (home / "runs" / "manifest.json").read_bytes()
    return {"files": files, "versions": versions, "manifest": manifest}


def leftovers(home: Path) -> list[str]:
    """Return what no finished run may leave: half-written files, claims, kept transcripts."""
    folders = ("new", "claimed", "transcripts", "tmp", "journal")
    waits = [path for folder in folders for path in (home / "staging" / folder).glob("*")]
    parts = [p for p in home.rglob("*") if p.name.endswith((".part", ".tmp"))]
    return sorted(str(path.relative_to(home)) for path in {*waits, *parts})


@pytest.fixture(scope="session")
def sample_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    Return the folder of a store with the samples, one for all tests of a run; nothing may be changed in it.

    The worker that needs it first fills it, the others wait.
    """
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    home, filled = shared / "samples" / "home", shared / "samples" / "filled"
    with FileLock(shared / "samples.lock"):
        if not filled.exists():
            Bench(home, SAMPLES).backfill()
            filled.touch()
    return home


@pytest.fixture
def samples(sample_store: Path, home: Path) -> Path:
    """Return the test's own store, with the samples read into it."""
    shutil.copytree(sample_store, home)
    return home


@pytest.fixture
def bench(home: Path, projects: Path) -> Bench:
    return Bench(home, projects)


@pytest.fixture
def in_kelp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in a folder of that name, as a person does whose commands are about it."""
    (tmp_path / "kelp").mkdir()
    monkeypatch.chdir(tmp_path / "kelp")


@pytest.fixture
def at_noon() -> Iterator[None]:
    """Let commands be given at the instant of the bench's runs."""
    with clock_at(NOW):
        yield


@pytest.fixture
def other(tmp_path: Path, projects: Path) -> Bench:
    """A second store over the same transcripts."""
    return Bench(tmp_path / "other-home", projects)


def difference(first: dict[str, object], second: dict[str, object]) -> dict[str, object]:
    """Return what two contents say differently, by table: rows of only one of them."""
    differing: dict[str, object] = {}
    for name in sorted({*first, *second}):
        one, two = first.get(name, []), second.get(name, [])
        if one != two and isinstance(one, list) and isinstance(two, list):
            differing[name] = [row for row in one if row not in two], [row for row in two if row not in one]
        elif one != two:
            differing[name] = one, two
    return differing
