"""The background run: started by an event, one at a time, at low priority, gone when done (spec 4.6)."""

import json
import os
import signal
import stat
import time
from pathlib import Path

import pytest

# Takes the tickets as a run does, at its beginning, and notes each of its runs, and where two were at work.
ENGINE = """#!/bin/sh
here={folder}
mkdir $here/at_work 2>/dev/null || echo x >> $here/overlap
rm -f $CORTEX_HOME/staging/new/*.json
told="home=$CORTEX_HOME internal=$CORTEX_INTERNAL token=$CLAUDE_CODE_MESSAGING_TOKEN path=$PYTHONPATH"
echo "$* nice=$(nice) $told" >> $here/runs
echo $PPID >> $here/keepers
ls -l /proc/$$/fd > $here/descriptors
sleep {seconds}
rmdir $here/at_work
echo said
exit {code}
"""


def install(client, *, seconds=0.0, code=0, pause_seconds=0):
    engine = client.folder / "bin" / "cortex"
    engine.parent.mkdir()
    engine.write_text(ENGINE.format(folder=client.folder, seconds=seconds, code=code))
    engine.chmod(0o755)
    client.home.mkdir(exist_ok=True)
    (client.home / "engine").write_text(f"{engine}\n")
    keeper = client.own_hooks() / "background.py"
    told = keeper.read_text()
    spoken = "SECONDS_BETWEEN_STARTS = 30"
    assert spoken in told
    keeper.write_text(told.replace(spoken, f"SECONDS_BETWEEN_STARTS = {pause_seconds}"))


def end_session(client, event="session-end"):
    ran = client.hook(event, client.payload(client.write_transcript(), source="startup"))
    assert client.is_silent(ran)


def runs(client):
    path = client.folder / "runs"
    return path.read_text().splitlines() if path.exists() else []


def keepers(client):
    """Return the command lines of the processes that stand in the scratch home: a keeper, its engine."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink() == client.home:
                found.append((process / "cmdline").read_bytes())
        except OSError:
            continue  # ended meanwhile
    return found


def wait_until(holds, seconds=10.0):
    give_up_at = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < give_up_at, "it never came true"
        time.sleep(0.02)


def mark(client):
    path = client.home / "runs" / "background.json"
    return json.loads(path.read_text()) if path.exists() else {}


def ended(client):
    return "exit_code" in mark(client) and not keepers(client)


pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are told apart by /proc")


def test_the_end_of_a_session_starts_a_run_that_outlives_the_hook(client):
    install(client, seconds=0.3)
    end_session(client)
    assert mark(client).get("exit_code") is None
    wait_until(lambda: ended(client))
    assert mark(client)["exit_code"] == 0
    assert len(runs(client)) == 1 and client.log == ""


def test_it_runs_the_plain_engine_at_low_priority_without_the_clients_token(client):
    install(client)
    payload = client.payload(client.write_transcript())
    client.hook("session-end", payload, CLAUDE_CODE_MESSAGING_TOKEN="secret", PYTHONPATH="/nowhere")
    wait_until(lambda: ended(client))
    nice = min(19, os.nice(0) + 10)
    assert runs(client) == [f"run --engine plain nice={nice} home={client.home} internal=1 token= path="]


def test_it_holds_no_descriptor_of_the_client(client):
    install(client)
    end_session(client)
    wait_until(lambda: ended(client))
    lines = (client.folder / "descriptors").read_text().splitlines()
    held = {line.split(" -> ")[1] for line in lines if " -> " in line}
    runs_folder = client.home / "runs"
    assert held - {str(client.folder / "bin" / "cortex"), str(client.folder / "descriptors")} == {
        "/dev/null",
        f"{runs_folder}/background.log",
        f"{runs_folder}/background.lock",
    }


def test_its_output_is_kept_in_a_bounded_log(client):
    install(client)
    log = client.home / "runs" / "background.log"
    log.parent.mkdir()
    log.write_text("x" * 200_000)
    end_session(client)
    wait_until(lambda: ended(client))
    assert "said\n" in log.read_text() and log.stat().st_size < 1_000
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert (log.parent / "background.log.1").stat().st_size == 200_000


def test_a_compaction_starts_a_run_so_that_the_brief_behind_it_knows_the_session(client):
    install(client)
    end_session(client, "pre-compact")
    wait_until(lambda: ended(client))
    assert len(runs(client)) == 1


def test_the_end_of_an_answer_starts_nothing(client):
    install(client)
    end_session(client, "stop")
    assert keepers(client) == [] and mark(client) == {}


def test_the_start_of_a_session_starts_a_run_where_tickets_wait(client):
    install(client)
    end_session(client, "session-start")
    assert mark(client) == {} and keepers(client) == []
    end_session(client, "stop")
    end_session(client, "session-start")
    wait_until(lambda: ended(client))
    assert len(runs(client)) == 1


@pytest.mark.parametrize("engine", ["", "relative/cortex", "/gone/cortex", "/tmp", "/etc/passwd", "a\0b"])
def test_without_an_engine_nothing_starts(client, engine):
    client.home.mkdir()
    (client.home / "engine").write_text(engine)
    end_session(client)
    assert keepers(client) == [] and mark(client) == {} and client.log == ""


def put_on_path(client, text):
    install(client)
    (client.home / "engine").unlink()
    engine = client.folder / "bin" / "cortex"
    engine.write_text(engine.read_text() + text)
    return {"PATH": f"relative:{engine.parent}:/usr/bin:/bin"}


def test_without_setup_the_command_on_the_path_is_started(client):
    path = put_on_path(client, "# from cortex.cli.main import main\n")
    client.hook("session-end", client.payload(client.write_transcript()), **path)
    wait_until(lambda: ended(client))
    assert len(runs(client)) == 1 and client.log == ""


def test_another_program_of_this_name_on_the_path_is_not_started(client):
    path = put_on_path(client, "# a tool of somebody else\n")
    client.hook("session-end", client.payload(client.write_transcript()), **path)
    assert keepers(client) == [] and mark(client) == {} and client.log == ""


def test_what_comes_while_a_run_goes_on_is_taken_in_by_another_round(client):
    install(client, seconds=0.3)
    end_session(client)
    wait_until(lambda: len(runs(client)) == 1)
    end_session(client, "stop")
    wait_until(lambda: ended(client))
    assert len(runs(client)) == 2 and client.tickets() == []


def test_killed_keepers_start_no_second_run_beside_the_first(client):
    install(client, seconds=1)
    end_session(client)
    wait_until(lambda: len(runs(client)) == 1)
    os.kill(int((client.folder / "keepers").read_text()), signal.SIGKILL)
    for _ in range(5):
        end_session(client)
    wait_until(lambda: not keepers(client))
    assert len(runs(client)) == 1 and not (client.folder / "overlap").exists()


@pytest.mark.parametrize("told", [{"exit_code": 10}, {}])
def test_after_a_failed_or_killed_run_the_next_one_waits(client, told):
    install(client)
    client.home.joinpath("runs").mkdir()
    path = client.home / "runs" / "background.json"
    path.write_text(json.dumps({"started_at": time.time() - 60, **told}))
    end_session(client)
    assert keepers(client) == [] and runs(client) == []
    path.write_text(json.dumps({"started_at": time.time() - 3600, **told}))
    end_session(client)
    wait_until(lambda: runs(client) and not keepers(client))
    assert mark(client)["exit_code"] == 0


@pytest.mark.parametrize("text", ["", "[]", "nonsense", '{"started_at": "x"}', '{"started_at": 9e18}'])
def test_a_broken_mark_holds_nobody_up(client, text):
    install(client)
    client.home.joinpath("runs").mkdir()
    (client.home / "runs" / "background.json").write_text(text)
    end_session(client)
    wait_until(lambda: runs(client) and not keepers(client))
    assert mark(client)["exit_code"] == 0


def test_two_runs_in_a_row_keep_their_distance(client):
    install(client, pause_seconds=1)
    begun = time.monotonic()
    end_session(client)
    wait_until(lambda: ended(client))
    end_session(client)
    assert time.monotonic() - begun < 1
    wait_until(lambda: len(runs(client)) == 2)
    assert time.monotonic() - begun >= 1
    wait_until(lambda: ended(client))
