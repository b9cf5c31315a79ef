"""A long transcript is committed piece by piece: a run that is stopped midway keeps what it read."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cortex.flows import transcript_batches
from cortex.flows.reading.transcript_reader import read_turns
from cortex.storage.staging import transcripts
from cortex.storage.store import Store
from cortex.transforms.schemas import EVENTS, TURNS, Table
from cortex.transforms.transcripts.transcript import Source
from tests.bench import NOW, Bench
from tests.transcripts import KELP, START, Talk, lines

PIECE = 40_000
# A run of its own that is sent a signal once half of the bytes are committed, by its own progress.
STOPPED_RUN = """
import os, sys
from datetime import datetime
from pathlib import Path
from cortex.flows import transcript_batches
from cortex.flows.reading.transcript_reader import read_turns
from cortex.flows.context import Context
from cortex.flows.engines import runs
from cortex.storage.settings.settings import Settings
from cortex.storage.staging import transcripts

home, piece, number, now = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
transcripts.PIECE_BYTES = transcript_batches.PIECE_BYTES = piece

def progress(stage, done, total):
    if stage == "extract" and done >= total // 2:
        os.kill(os.getpid(), number)

context = Context(Settings(home=home), lambda settings: None, lambda: datetime.fromisoformat(now))
runs.execute("ingest", context, progress=progress)
"""


@pytest.fixture
def talk() -> Talk:
    talk = Talk("long")
    for number in range(120):
        talk.user(f"Use store {number} for the readings of harbour {number}, not the old file {number}.")
        talk.assistant(f"[MEMORY: gotcha] Harbour {number} reports its levels in unit {number}.")
        talk.call("Bash", f"reading {number} " * 40, command=f"gauge --harbour {number}")
    talk.user("Never mind store 7, please get rid of the readings of harbour 7.")
    return talk


@pytest.fixture(autouse=True)
def _pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcripts, "PIECE_BYTES", PIECE)
    monkeypatch.setattr(transcript_batches, "PIECE_BYTES", PIECE)


def rows(home: Path, table: Table) -> list[dict]:
    order = [(name, "ascending") for name in table.key]
    return Store(home).lake.read(table).sort_by(order).to_pylist()


def stopped(bench: Bench, number: signal.Signals) -> subprocess.CompletedProcess[bytes]:
    words = [str(bench.home), str(PIECE), str(number.value), NOW.isoformat()]
    return subprocess.run([sys.executable, "-c", STOPPED_RUN, *words], capture_output=True, timeout=120)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_stopped_midway_keeps_its_pieces_and_the_next_gives_what_an_unbroken_one_does(
    tmp_path: Path, talk: Talk, number: signal.Signals
) -> None:
    whole, broken = (Bench(tmp_path / name, tmp_path / "projects") for name in ("whole", "broken"))
    path = talk.write(tmp_path / "projects")
    whole.stage(path)
    whole.run(now=NOW)
    broken.stage(path)
    assert stopped(broken, number).returncode != 0
    kept = rows(broken.home, TURNS)
    assert 0 < len(kept) < len(rows(whole.home, TURNS)) and not rows(broken.home, EVENTS)
    broken.run(now=NOW)
    for table in (TURNS, EVENTS):
        assert rows(broken.home, table) == rows(whole.home, table) != []
    assert Store(broken.home).lake.manifest.cursors == Store(whole.home).lake.manifest.cursors
    assert not Store(broken.home).lake.notes.unextracted


def test_pieces_give_what_a_transcript_read_at_once_does(
    tmp_path: Path, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces, at_once = (Bench(tmp_path / name, tmp_path / "projects") for name in ("pieces", "at_once"))
    path = talk.write(tmp_path / "projects")
    pieces.stage(path)
    pieces.run(now=NOW)
    monkeypatch.setattr(transcripts, "PIECE_BYTES", path.stat().st_size + 1)
    monkeypatch.setattr(transcript_batches, "PIECE_BYTES", path.stat().st_size + 1)
    at_once.stage(path)
    at_once.run(now=NOW)
    for table in (TURNS, EVENTS):
        assert rows(pieces.home, table) == rows(at_once.home, table) != []


def test_sessions_read_in_part_have_their_events_though_the_rest_says_nothing_or_is_gone(
    tmp_path: Path, talk: Talk
) -> None:
    bench = Bench(tmp_path / "home", tmp_path / "projects")
    path = talk.write(tmp_path / "projects")
    bench.stage(path)
    stopped(bench, signal.SIGKILL)
    for left in (bench.home / "staging" / "transcripts").iterdir():
        left.unlink()
    path.unlink()
    bench.run(now=NOW)
    assert rows(bench.home, EVENTS) and not Store(bench.home).lake.notes.unextracted


def test_of_a_private_session_no_piece_is_taken_in_however_late_its_first_prompt_comes(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path / "home", tmp_path / "projects")
    talk = Talk("private", cwd=KELP, start=START)
    for number in range(200):
        talk.assistant(f"Harbour {number} reports its levels in unit {number}. " * 8)
    talk.user("#private The harbour is closed.")
    talk.assistant("Noted.")
    path = talk.path_in(tmp_path / "projects")
    path.parent.mkdir(parents=True)
    path.write_bytes(lines(talk.records))
    bench.stage(path)
    bench.run(now=NOW)
    assert path.stat().st_size > 3 * PIECE and rows(bench.home, TURNS) == []


@pytest.mark.parametrize(
    ("tool", "kinds"), [("Bash", ["tool_result", "rejection"]), ("mcp__x__y", ["tool_result"])]
)
def test_who_refused_a_call_is_known_though_the_call_stands_in_what_was_read_before(
    tmp_path: Path, talk: Talk, tool: str, kinds: list[str]
):
    words = (
        "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a "
        "file edit, the new_string was NOT written to the file). To tell you how to proceed, "
        "the user said:\nUse tabs."
    )
    talk.call(tool, words, command="make")
    talk.records[-1]["message"]["content"][0]["is_error"] = True
    talk.records[-1]["toolUseResult"] = f"Error: {words}"
    path = talk.write(tmp_path)
    *before, _ = path.read_bytes().splitlines(keepends=True)
    begin = transcripts.Position(sum(map(len, before)), len(before) + 1)
    with transcripts.open_transcript(path) as transcript:
        [turns] = read_turns(transcript, Source(str(path), "p1"), begin).turns
    assert turns["kind"].to_pylist() == kinds
