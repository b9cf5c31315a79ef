"""A long transcript is committed piece by piece: a run that is stopped midway keeps what it read."""

import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from cortex.flows import extract_transcripts, transcript_batches
from cortex.flows.reading import shards
from cortex.flows.reading.transcript_reader import read_turns
from cortex.flows.run.run import Run
from cortex.storage.staging import transcripts
from cortex.storage.store import Store
from cortex.transforms.schemas import EVENTS, TURNS, Table
from cortex.transforms.transcripts.transcript import Source
from tests.bench import NOW, Bench, leftovers
from tests.transcripts import KELP, START, Talk, lines

PIECE = 40_000
# A run of its own that is sent a signal once a share of the bytes is committed, by its own progress.
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
share = float(sys.argv[5])
transcripts.PIECE_BYTES = transcript_batches.PIECE_BYTES = piece

def progress(stage, done, total):
    if stage == "extract" and done >= int(total * share):
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


def stopped(bench: Bench, number: signal.Signals, share: float = 0.5) -> subprocess.CompletedProcess[bytes]:
    words = [str(bench.home), str(PIECE), str(number.value), NOW.isoformat(), str(share)]
    return subprocess.run([sys.executable, "-c", STOPPED_RUN, *words], capture_output=True, timeout=120)


@pytest.mark.spread(2)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("share", [0.5, 1.0])  # between two pieces; between the last one and the events
def test_a_run_stopped_midway_keeps_its_pieces_and_the_next_gives_what_an_unbroken_one_does(
    tmp_path: Path, talk: Talk, number: signal.Signals, share: float
) -> None:
    whole, broken = (Bench(tmp_path / name, tmp_path / "projects") for name in ("whole", "broken"))
    path = talk.write(tmp_path / "projects")
    whole.stage(path)
    assert whole.run(now=NOW).transcripts == 1
    broken.stage(path)
    assert stopped(broken, number, share).returncode != 0
    kept, is_read = rows(broken.home, TURNS), share == 1
    assert kept and (kept == rows(whole.home, TURNS)) == is_read and not rows(broken.home, EVENTS)
    assert broken.run(now=NOW).transcripts == (not is_read)
    assert leftovers(broken.home) == leftovers(whole.home) == []
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


def poison(monkeypatch: pytest.MonkeyPatch, session_id: str) -> None:
    """Make the events of one session fail as a shape that nobody foresaw does."""
    events_of = extract_transcripts.events_of

    def poisoned(run: Run, project_id: str, turns: pa.Table, *more: object) -> pa.Table:
        if pc.any(pc.equal(turns["session_id"], pa.scalar(session_id))).as_py():
            raise ValueError("nobody foresaw this")
        return events_of(run, project_id, turns, *more)

    monkeypatch.setattr(extract_transcripts, "events_of", poisoned)


@pytest.mark.usefixtures("contained_faults")
@pytest.mark.parametrize("is_gone", [False, True])
def test_a_session_read_in_part_whose_events_fail_waits_alone_and_is_tried_again(
    tmp_path: Path, talk: Talk, monkeypatch: pytest.MonkeyPatch, is_gone: bool
) -> None:
    bench, sound = (Bench(tmp_path / name, tmp_path / "projects") for name in ("home", "sound"))
    path, others = talk.write(tmp_path / "projects"), []
    for name, folder in (("near", KELP), ("far", "/home/ada/far")):
        other = Talk(name, cwd=folder)
        other.user(f"Never use the old pump for the {name} harbour, since it leaks.")
        other.assistant("Noted, the new pump it is.")
        others.append(other.write(tmp_path / "projects"))
    bench.stage(path)
    stopped(bench, signal.SIGKILL)
    if is_gone:
        for left in (bench.home / "staging" / "transcripts").iterdir():
            left.unlink()
        path.rename(tmp_path / "gone")
    bench.stage(*others)
    with monkeypatch.context() as patched:
        poison(patched, talk.session_id)
        report = bench.run(now=NOW)
    reasons = [(line.file, line.reason) for line in report.quarantined if "internal error" in line.reason]
    [(named, reason)] = reasons
    assert named == talk.session_id and reason.startswith("nothing extracted from session yet: ")
    assert bench.store.staging.count_quarantined() == is_gone
    assert {row["session_id"] for row in rows(bench.home, EVENTS)} == {other.stem for other in others}
    assert [*bench.store.lake.notes.unextracted.values()] == [(talk.session_id,)]
    bench.run(now=NOW)
    assert not bench.store.lake.notes.unextracted
    if is_gone:
        assert talk.session_id in {row["session_id"] for row in rows(bench.home, EVENTS)}
        return
    sound.stage(path, *others)
    sound.run(now=NOW)
    assert rows(bench.home, EVENTS) == rows(sound.home, EVENTS)


@pytest.mark.usefixtures("contained_faults")
def test_a_session_read_in_part_that_the_extractor_itself_fails_on_is_named_by_each_run_until_it_does_not(
    tmp_path: Path, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path / "home", tmp_path / "projects")
    bench.stage(talk.write(tmp_path / "projects"))
    stopped(bench, signal.SIGKILL)
    with monkeypatch.context() as patched:
        for module in (extract_transcripts, shards):
            patched.setattr(module, "extract_from", failing)
        for _ in range(2):
            reasons = [line.reason for line in bench.run(now=NOW).quarantined]
            assert [reason for reason in reasons if reason.startswith("nothing extracted from session: ")]
            assert [*bench.store.lake.notes.unextracted.values()] == [(talk.session_id,)]
    bench.run(now=NOW)
    assert not bench.store.lake.notes.unextracted
    assert talk.session_id in {row["session_id"] for row in rows(bench.home, EVENTS)}


def failing(*_: object) -> pa.Table:
    """Fail as the extractor does on a shape that nobody foresaw."""
    raise ValueError("nobody foresaw this")


@pytest.mark.parametrize("before", [0, 200])
def test_of_a_private_session_nothing_is_taken_in_or_kept_however_late_its_first_prompt_comes(
    tmp_path: Path, before: int
) -> None:
    bench = Bench(tmp_path / "home", tmp_path / "projects")
    talk = Talk("private", cwd=KELP, start=START)
    for number in range(201):
        if number == before:
            talk.user("#private The harbour is closed.")
        talk.assistant(f"Harbour {number} reports its levels in unit {number}. " * 8)
    path = talk.path_in(tmp_path / "projects")
    path.parent.mkdir(parents=True)
    path.write_bytes(lines(talk.records))
    bench.stage(path)
    bench.run(now=NOW)
    assert path.stat().st_size > 3 * PIECE and rows(bench.home, TURNS) == []
    assert leftovers(bench.home) == []


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
