"""What is measured: each function makes its rows, times Cortex and, in the same run, a baseline."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import orjson

from benchmarks import invented, prompts
from cortex.flows.context import Context
from cortex.flows.embedders import embedder_in_force
from cortex.flows.engines.runs import FLOWS, opened, run_plain, stage_all
from cortex.flows.recalling.recall_search import search_store
from cortex.storage.published.published import Published
from cortex.storage.settings.reference import read_policy
from cortex.storage.settings.settings import Settings
from cortex.storage.staging.assistant_folders import find_transcripts
from cortex.storage.tables.lance_tables import LanceTables
from cortex.transforms.brief.render import choose, lay_out
from cortex.transforms.documents.client_settings import with_status_line
from cortex.transforms.memory.lifecycle import age
from cortex.transforms.schemas import EDGES
from cortex.transforms.transcripts.transcript import Source, read_transcript

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Sizes:
    """How much is measured: a quick look, or the sizes that the targets speak of."""

    processes: int
    copies: int
    aged: int
    briefed: int
    recalled: int
    questions: int
    nights: int
    streamed_megabytes: float


SIZES = {
    "quick": Sizes(
        processes=20, copies=24, aged=50_000, briefed=5_000, recalled=5_000, questions=20,
        nights=3_000, streamed_megabytes=4.0,
    ),
    "full": Sizes(
        processes=200, copies=60, aged=1_000_000, briefed=100_000, recalled=100_000, questions=100,
        nights=1_000_000, streamed_megabytes=1_000.0,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """One figure with its baseline from the same run; `must` and `aim` are for the full size."""

    what: str
    value: float
    unit: str
    baseline: str
    baseline_value: float
    must: str = ""
    aim: str = ""

    @property
    def ratio(self) -> float:
        """Return the figure by its baseline."""
        return self.value / self.baseline_value if self.baseline_value else float("nan")


def hook(sizes: Sizes) -> Iterator[Measured]:
    """Time the whole process of a Stop hook against Python that starts and ends."""
    with tempfile.TemporaryDirectory() as scratch:
        transcript = Path(scratch, "session.jsonl")
        transcript.write_bytes(b'{"type":"user"}\n')
        payload = json.dumps(
            {
                "session_id": "made",
                "transcript_path": str(transcript),
                "cwd": scratch,
                "hook_event_name": "Stop",
            }
        ).encode()
        surroundings = {"CORTEX_HOME": str(Path(scratch, "home")), "PATH": os.environ["PATH"]}
        launched = ["sh", str(ROOT / "hooks" / "run.sh"), "stop"]
        bare = ["sh", "-c", "python3 -I -S -c pass; exit 0"]
        ours = _milliseconds(launched, sizes.processes, payload, surroundings)
        none = _milliseconds(bare, sizes.processes, payload, surroundings)
    yield Measured(
        "hook, whole process, p95", _p95(ours), "ms", "sh + python -c pass", _p95(none), "50", "30"
    )


def status_line(sizes: Sizes) -> Iterator[Measured]:
    """Time the whole process of the status line, as the client's settings start it."""
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch, "home")
        published = Published(home)
        published.publish_projects({f"{scratch}/{number}": f"p-{number}" for number in range(200)})
        published.publish_counts({f"p-{number}": number for number in range(200)})
        payload = json.dumps({"cwd": f"{scratch}/7/src", "context_window": {"used_percentage": 71}}).encode()
        surroundings = {"CORTEX_HOME": str(home), "PATH": os.environ["PATH"]}
        command = with_status_line({}, str(ROOT / "hooks" / "run.sh"))["statusLine"]
        launched = ["sh", "-c", command["command"]]
        bare = ["sh", "-c", "python3 -I -S -c pass; exit 0"]
        ours = _milliseconds(launched, sizes.processes, payload, surroundings)
        none = _milliseconds(bare, sizes.processes, payload, surroundings)
    yield Measured("status line, p95", _p95(ours), "ms", "sh + python -c pass", _p95(none), "50", "30")


def prompt_hook(sizes: Sizes) -> Iterator[Measured]:
    """Time the whole process of a prompt's hook over an index of made rows, and the writing of that."""
    count = sizes.recalled
    measured = prompts.timed(count, sizes.processes)
    must = str(prompts.MUST.get(count, ""))
    yield Measured(
        f"prompt hook, p95, {count:,} rows",
        _p95(measured.ours),
        "ms",
        "sh + python -c pass",
        _p95(measured.bare),
        must,
    )
    rate = count / measured.written_seconds / 1e3
    yield Measured(f"writing the search index, {count:,} rows", rate, "thousand/s", "", 0.0)
    yield Measured(
        f"search index, disk per row, {count:,} rows", measured.index_bytes / count / 1024, "KiB", "", 0.0
    )


def command_line(sizes: Sizes) -> Iterator[Measured]:
    """Time `cortex --help` against Python that starts and ends."""
    shown = _milliseconds([sys.executable, "-m", "cortex", "--help"], sizes.processes)
    none = _milliseconds([sys.executable, "-c", "pass"], sizes.processes)
    yield Measured("cortex --help, p95", _p95(shown), "ms", "python -c pass", _p95(none), "150")


def ingest(sizes: Sizes) -> Iterator[Measured]:
    """Time reading alone, a run without a model and one with, against parsing the same bytes as JSON."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "transcripts")
        megabytes = invented.transcripts(folder, sizes.copies) / 1e6
        paths = find_transcripts(folder)
        parsed = megabytes / _seconds(lambda: [parse_as_json(path) for path in paths])
        read = megabytes / _seconds(lambda: [_read(path) for path in paths])
        plain = megabytes / _seconds(lambda: _run(Path(scratch, "plain"), paths, with_model=False))
        yield Measured("reading turns", read, "MB/s", "orjson parse", parsed)
        yield Measured("ingest without a model", plain, "MB/s", "orjson parse", parsed, "20", "60")
        # Texts repeat from copy to copy and are embedded once, so the model's own speed hardly shows here.
        embedded = megabytes / _seconds(lambda: _run(Path(scratch, "model"), paths, with_model=True))
        yield Measured("ingest with the local model", embedded, "MB/s", "the same without", plain)


def lifecycle(sizes: Sizes) -> Iterator[Measured]:
    """Time ageing, ranking and centrality against the decay formula alone in numpy."""
    policy = read_policy(None)
    rows, edges = invented.memories(sizes.aged, texts=False), invented.edges(sizes.aged, sizes.aged)
    activity, weak = invented.activity(), invented.weak(rows)
    aged = _seconds(lambda: age(rows, edges, policy, invented.NOW, activity=activity, weak=weak))
    initial = rows["initial_confidence"].to_numpy()
    idle_days = np.random.default_rng(5).uniform(0, 365, sizes.aged)
    formula = _seconds(lambda: initial * 0.5 ** (idle_days / 45))
    what = f"lifecycle, rank, centrality, {sizes.aged:,} memories"
    yield Measured(what, aged, "s", "decay in numpy", formula, "30", "10")


def brief(sizes: Sizes) -> Iterator[Measured]:
    """Time a brief against sorting the same memories by rank."""
    policy, rows = read_policy(None), invented.memories(sizes.briefed)

    def render() -> object:
        choices = choose(rows, EDGES.empty(), policy, project_name="made", budget_tokens=1_000)
        return lay_out(choices, project_name="made")

    rendered = _seconds(render) * 1e3
    ranked = _seconds(lambda: rows.sort_by([("rank", "descending"), ("memory_id", "ascending")])) * 1e3
    yield Measured(
        f"brief from {sizes.briefed:,} memories", rendered, "ms", "sort by rank", ranked, "500", "150"
    )


def recalls(sizes: Sizes) -> Iterator[Measured]:
    """Time warm recall against comparing the question's vector with all in numpy; and weigh the table."""
    policy = read_policy(None)
    unit = invented.vectors(sizes.recalled)
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        tables = LanceTables(home)
        rows = invented.searchable(invented.memories(sizes.recalled), unit)
        written = _seconds(lambda: tables.replace(invented.PROJECT, "memories", rows))
        size = sum(path.stat().st_size for path in tables.root.rglob("*") if path.is_file())
        embedder = embedder_in_force(Settings(home))

        def ask(question: str) -> object:
            return search_store(
                tables,
                question,
                scopes=[invented.PROJECT],
                policy=policy,
                embedder=embedder,
                limit=10,
            )

        asked = invented.questions(sizes.questions + 1)
        ask(asked[0])  # the first one opens the model and the tables
        began = time.process_time()
        times = [_seconds(lambda question=question: ask(question)) * 1e3 for question in asked[1:]]
        busy = (time.process_time() - began) * 1e3 / len(times)
    scans = [_seconds(lambda at=at: np.argpartition(unit @ unit[at], -10)) * 1e3 for at in range(20)]
    what = f"{sizes.recalled:,} memories"
    yield Measured(f"warm recall, p95, {what}", _p95(times), "ms", "numpy scan", _p95(scans), "100", "30")
    # Beside the time on the clock, which on a shared machine tells of the neighbours as well.
    yield Measured(f"warm recall, processor time, mean, {what}", busy, "ms", "", 0.0)
    yield Measured(
        f"disk per memory, {what}", size / sizes.recalled / 1024, "KiB", "its vector", DIMENSION_KIB, "4", "3"
    )
    rate = sizes.recalled / written / 1e3
    yield Measured(f"writing and indexing, {what}", rate, "thousand/s", "", 0.0)


DIMENSION_KIB = invented.DIMENSIONS * 4 / 1024
ALL: tuple[Callable[[Sizes], Iterator[Measured]], ...] = (
    hook,
    status_line,
    prompt_hook,
    command_line,
    ingest,
    lifecycle,
    brief,
    recalls,
)


def _run(home: Path, paths: list[Path], *, with_model: bool) -> None:
    settings = Settings(home)
    stage_all(settings, paths)
    embedder_of = embedder_in_force if with_model else lambda settings: None
    with opened("backfill", Context(settings, embedder_of, lambda: invented.NOW)) as run:
        run_plain(FLOWS["backfill"], run)
    shutil.rmtree(home)


def parse_as_json(path: Path) -> None:
    """Parse each line of a transcript as JSON: less than that no reader can do."""
    for line in path.read_bytes().splitlines():
        try:
            orjson.loads(line)
        except orjson.JSONDecodeError:
            continue


def _read(path: Path) -> None:
    read_transcript(path.read_bytes(), source=Source(str(path), invented.PROJECT))


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _milliseconds(
    command: list[str], count: int, given: bytes = b"", surroundings: dict[str, str] | None = None
) -> list[float]:
    return [_run_once(command, given, surroundings) for _ in range(count + 1)][1:]


def _run_once(command: list[str], given: bytes, surroundings: dict[str, str] | None) -> float:
    def once() -> None:
        subprocess.run(command, input=given, env=surroundings, stdout=subprocess.DEVNULL, check=True)

    return _seconds(once) * 1e3


def _p95(values: list[float]) -> float:
    return float(np.percentile(values, 95))
