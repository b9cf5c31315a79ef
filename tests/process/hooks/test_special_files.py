"""What is not a transcript is neither waited for nor copied: pipes, devices, folders, others' files."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cortex.hooks import basic_brief, sweep, ticket, transcript_end
from cortex.storage.staging.staging import Claim, Staging
from cortex.storage.staging.transcripts import open_transcript
from cortex.transforms.errors import CortexError
from tests.hook_process import run_forked
from tests.transcripts import decisions

HOOK = Path(__file__).parents[3] / "hooks" / "hook.py"


def pipe(path: Path) -> None:
    os.mkfifo(path)


def socket_file(path: Path) -> None:
    import socket

    folder = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as server:  # a path below 108 bytes
        server.bind(f"/proc/self/fd/{folder}/{path.name}")
    os.close(folder)


def folder(path: Path) -> None:
    path.mkdir()


def zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def terminal(path: Path) -> None:
    path.symlink_to("/dev/tty")


def link_to_pipe(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to(path.with_name("pipe"))


def foreign(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    path.write_bytes(b'{"type": "user"}\n')
    os.chown(path, 65534, 65534)


def link_to_foreign(path: Path) -> None:
    foreign(path.with_name("theirs"))
    path.symlink_to(path.with_name("theirs"))


def holes(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b'{"type": "user"}\n')
        file.truncate(2**40)


Laying = Callable[[Path], None]
SPECIAL = (pipe, socket_file, folder, zeros, terminal, link_to_pipe, foreign, link_to_foreign, holes)


@pytest.fixture(params=SPECIAL, ids=lambda lay: lay.__name__)
def special(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a path that a transcript could have and something else has."""
    path = tmp_path / "projects" / "-home-dev-kelp" / "0aa9b9a8.jsonl"
    path.parent.mkdir(parents=True)
    request.param(path)
    return path


def run_hook(home: Path, event: str, **payload: object) -> float:
    """Run a hook as the client does and return how long it took."""
    fields = {"session_id": "s", "cwd": "/home/dev/kelp", "source": "startup", "agent_id": "a", **payload}
    began = time.monotonic()
    environment = {"CORTEX_HOME": str(home), "PATH": os.environ["PATH"]}
    done = run_forked(HOOK, event, stdin=json.dumps(fields).encode(), environment=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    return time.monotonic() - began


def staged(home: Path) -> list[str]:
    """Return the names of tickets and kept transcripts."""
    found = [*(home / "staging").glob("new/*"), *(home / "staging").glob("transcripts/*")]
    return sorted(path.name for path in found)


@pytest.mark.parametrize("event", ["stop", "subagent-stop", "pre-compact", "session-end"])
def test_a_hook_neither_waits_for_nor_keeps_it(home, special, event):
    run_hook(home, event, transcript_path=str(special), agent_transcript_path=str(special))
    assert staged(home) == []
    assert "not a regular file" in log(home) or "another user" in log(home) or "holes" in log(home)


def log(home: Path) -> str:
    return (home / "runs" / "hooks.log").read_text()


@pytest.mark.parametrize("source", ["startup", "compact"])
def test_a_session_starts_beside_it_and_with_it(home, special, source):
    mark = home / "staging" / "seen" / f"{ticket.path_hash(str(special.parent)):016x}"
    mark.parent.mkdir(parents=True)
    mark.write_text("0")
    honest = decisions().write(special.parents[1])
    run_hook(home, "session-start", transcript_path=str(honest), source=source)
    run_hook(home, "session-start", transcript_path=str(special), source=source)
    assert all(honest.name[:8] in name or "sweep" in name or "_" in name for name in staged(home))
    assert len([name for name in staged(home) if name.endswith(".json")]) == 1


SYSTEM = ("/dev/zero", "/dev/random", "/dev/stdin", "/proc/self/environ", "/proc/kmsg", "/proc/self/mem")


@pytest.mark.parametrize("path", SYSTEM)
def test_a_payload_that_names_a_file_of_the_system_captures_nothing(home, path):
    run_hook(home, "stop", transcript_path=path)
    run_hook(home, "session-start", transcript_path=path, source="compact")
    kept = list((home / "staging" / "transcripts").glob("*"))
    assert [file.stat().st_size for file in kept] in ([], [0])


def test_a_hook_reads_it_as_having_nothing(home, special):
    with pytest.raises(OSError, match=r"regular|another|holes"):
        transcript_end.reports_in(str(special), time.monotonic() + 9, ())
    assert basic_brief.this_session(str(home), str(special), "") == ""


def test_a_sweep_goes_past_it(home, special):
    mark = home / "staging" / "seen" / f"{ticket.path_hash(str(special.parent)):016x}"
    mark.parent.mkdir(parents=True)
    mark.write_text("0")
    decisions(cwd="/home/dev/kelp").write(special.parents[1])
    assert sweep.sweep(str(home / "staging"), str(special), time.time_ns()) == 1


def test_special_files_take_no_transcripts_place_in_the_basic_brief(home, tmp_path):
    honest = decisions().write(tmp_path / "projects")
    for number in range(9):
        os.mkfifo(honest.with_name(f"{number}.jsonl"))
    assert basic_brief.recent_transcripts(str(home), str(honest), "/home/dev/kelp") == [str(honest)]


def test_staging_and_reading_refuse_it(home, special):
    assert Staging(home).stage(special) is False
    assert staged(home) == []
    with pytest.raises(OSError, match=r"regular|another|holes"), open_transcript(special):
        pass


# What is a transcript


def test_a_link_to_a_transcript_is_followed_and_its_text_kept(home, tmp_path):
    real = decisions().write(tmp_path / "real")
    link = tmp_path / "projects" / "-home-dev-kelp" / real.name
    link.parent.parent.mkdir()
    link.parent.symlink_to(real.parent)
    run_hook(home, "stop", transcript_path=str(link))
    [kept] = (home / "staging" / "transcripts").iterdir()
    assert kept.read_bytes() == real.read_bytes() and not kept.is_symlink()


def test_a_small_hole_that_a_power_cut_left_does_not_hide_a_transcript(home, tmp_path):
    path = decisions().write(tmp_path / "projects")
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size + 1024 * 1024)
    run_hook(home, "stop", transcript_path=str(path))
    assert len(staged(home)) == 2


def test_opening_has_no_effect_on_the_file_and_is_not_inherited(tmp_path):
    path = decisions().write(tmp_path)
    descriptor = ticket.open_regular(str(path))
    assert not os.get_inheritable(descriptor)
    os.close(descriptor)
    os.mkfifo(tmp_path / "pipe")
    before = time.monotonic()
    with pytest.raises(ticket.NotATranscript):
        ticket.open_regular(str(tmp_path / "pipe"))
    assert time.monotonic() - before < 1


def test_a_claim_of_a_pipe_reads_what_was_kept(home, tmp_path):
    path = decisions().write(tmp_path)
    assert Staging(home).stage(path)
    text = path.read_bytes()
    path.unlink()
    os.mkfifo(path)
    [claim] = Staging(home).claim()
    assert isinstance(claim, Claim)
    readable = claim.readable()
    assert readable is not None and readable.read_bytes() == text
    assert not issubclass(ticket.NotATranscript, CortexError)
