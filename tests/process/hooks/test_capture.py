"""Hooks leave a ticket and a link, print nothing, and survive whatever they are given (spec 4.1, 4.2)."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

HOOKS = Path(__file__).parents[3] / "hooks"

# Events that every client since 2.1.197 knows; one name it does not know, and it drops the whole file.
OLD_EVENTS = {
    *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SubagentStop"),
    *("PreCompact", "SessionEnd", "Notification", "PostCompact", "SubagentStart", "PostToolUseFailure"),
}


@pytest.mark.parametrize("event", ["stop", "pre-compact", "session-end"])
def test_an_event_leaves_a_ticket_and_a_hard_link_and_prints_nothing(client, event):
    transcript = client.write_transcript()
    ran = client.hook(event, client.payload(transcript, unknown_field={"later": 1}))
    assert client.is_silent(ran)
    [ticket] = client.tickets()
    at = ticket.pop("at")
    assert ticket == {
        "version": 1,
        "event": event,
        "session_id": client.session,
        "agent_id": None,
        "transcript_path": str(transcript),
        "cwd": "/home/ada/kiln",
        "size": transcript.stat().st_size,
    }
    [kept] = (client.staging / "transcripts").iterdir()
    assert kept.samefile(transcript)
    [name] = client.names("new")
    assert name.startswith(f"{at}-{event}-") and kept.stem in name
    assert client.log == ""


def test_a_growing_transcript_is_linked_once(client):
    transcript = client.write_transcript()
    client.hook("stop", client.payload(transcript))
    with transcript.open("a") as file:
        file.write('{"type":"assistant"}\n')
    client.hook("session-end", client.payload(transcript))
    assert len(client.tickets()) == 2
    [kept] = (client.staging / "transcripts").iterdir()
    assert kept.read_bytes() == transcript.read_bytes()


def test_a_subagent_is_ticketed_by_its_own_transcript(client):
    transcript = client.write_transcript()
    of_agent = client.write_transcript(f"{client.session}/subagents/agent-a1b2")
    payload = client.payload(
        transcript, agent_id="a1b2", agent_type="Explore", agent_transcript_path=str(of_agent)
    )
    assert client.is_silent(client.hook("subagent-stop", payload))
    [ticket] = client.tickets()
    assert (ticket["transcript_path"], ticket["agent_id"], ticket["session_id"]) == (
        str(of_agent),
        "a1b2",
        client.session,
    )


def test_the_compaction_run_is_no_subagent(client):
    transcript = client.write_transcript()
    payload = client.payload(transcript, agent_id="a9", agent_type="", agent_transcript_path=str(transcript))
    assert client.is_silent(client.hook("subagent-stop", payload))
    assert client.tickets() == [] and client.log == ""


def test_files_are_readable_by_their_owner_only(client):
    client.hook("stop", client.payload(client.write_transcript()))
    made = [client.home, *client.home.rglob("*")]
    assert [path for path in made if path.stat().st_mode & 0o077 and "transcripts" not in path.parts] == []


@pytest.mark.parametrize(
    ("stdin", "reason"),
    [
        (b"", "Expecting value"),
        (b"not json {", "Expecting value"),
        (b'{"cwd": "\xff"}', "UnicodeDecodeError"),
        (b"[1, 2]", "the payload is not an object"),
        (b"{}", "'transcript_path' is missing"),
        (b'{"transcript_path": 7}', "'transcript_path' is missing"),
        (b'{"transcript_path": "here.jsonl", "session_id": "s"}', "'transcript_path' is not absolute"),
        (b'{"transcript_path": "/a\\u0000b", "session_id": "s"}', "null"),
        (b'{"transcript_path": "/\\ud800", "session_id": "s"}', "UnicodeEncodeError"),
        (b"[" * 100_000, "RecursionError"),
    ],
)
@pytest.mark.parametrize("event", ["stop", "session-start"])
def test_bad_input_is_one_line_in_the_log(client, event, stdin, reason):
    ran = client.hook(event, stdin)
    assert client.is_silent(ran)
    assert client.tickets() == []
    if event == "stop":
        assert client.log.count("\n") == 1 and reason in client.log


def test_huge_input_is_refused_and_its_text_is_not_logged(client):
    transcript = client.write_transcript()
    ran = client.hook("stop", client.payload(transcript, last_assistant_message="tin " * 5_000_000))
    assert client.is_silent(ran)
    assert "payload over" in client.log and "tin" not in client.log
    assert client.tickets() == []


def test_a_long_last_message_is_no_obstacle(client):
    transcript = client.write_transcript()
    ran = client.hook("stop", client.payload(transcript, last_assistant_message="tin " * 500_000))
    assert client.is_silent(ran)
    assert len(client.tickets()) == 1


def test_an_unknown_event_is_logged(client):
    assert client.is_silent(client.hook("weather", b"{}"))
    assert "no such event" in client.log


def test_the_log_is_bounded(client):
    log = client.home / "runs" / "hooks.log"
    log.parent.mkdir(parents=True)
    log.write_text("old line\n" * 20_000)
    client.hook("stop", b"")
    assert client.log.count("\n") == 1
    assert sorted(path.name for path in log.parent.iterdir()) == ["hooks.log", "hooks.log.1"]


@pytest.mark.parametrize("event", ["stop", "session-start"])
def test_a_home_that_cannot_be_made_is_no_error(client, event):
    client.home.write_text("a file where the home should be")
    assert client.is_silent(client.hook(event, client.payload(client.write_transcript(), source="startup")))


def test_a_staging_folder_that_cannot_be_written_is_logged(client):
    client.home.mkdir()
    client.staging.write_text("a file where staging should be")
    assert client.is_silent(client.hook("stop", client.payload(client.write_transcript())))
    assert "NotADirectoryError" in client.log


def test_a_full_disk_leaves_no_half_ticket(client):
    transcript = client.write_transcript()
    client.hook("stop", client.payload(transcript))
    # A limit on file size stops the write in the middle, as a full disk does.
    hook = client.folder / "hooks" / "hook.py"
    command = f"trap '' XFSZ; ulimit -f 0; exec {sys.executable} -I -S {hook} session-end"
    ran = client.run(["/bin/sh", "-c", command], client.payload(transcript), {})
    assert client.is_silent(ran)
    assert [ticket["event"] for ticket in client.tickets()] == ["stop"]
    assert client.names("tmp") == []


def test_a_hook_killed_while_writing_leaves_nothing_in_new(client):
    transcript = client.write_transcript()
    killed_at_fsync = (
        "import os, runpy, sys; sys.argv = sys.argv[1:]; sys.path.insert(0, os.path.dirname(sys.argv[0]))\n"
        "os.fsync = lambda _: os.kill(os.getpid(), 9)\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    command = [sys.executable, "-I", "-c", killed_at_fsync, str(client.folder / "hooks" / "hook.py"), "stop"]
    ran = client.run(command, client.payload(transcript), {})
    assert ran.returncode == -9
    assert client.tickets() == []
    assert len(client.names("tmp")) == 1
    assert client.is_silent(client.hook("stop", client.payload(transcript)))
    assert len(client.tickets()) == 1


def without_links(client) -> list[str]:
    """Return the command of a hook on a file system that refuses links."""
    script = (
        "import errno, os, runpy, sys; sys.argv = sys.argv[1:]\n"
        "sys.path.insert(0, os.path.dirname(sys.argv[0]))\n"
        "def link(*_): raise OSError(errno.EXDEV, 'another file system')\n"
        "os.link = link\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    return [sys.executable, "-I", "-c", script, str(client.folder / "hooks" / "hook.py"), "stop"]


def test_where_linking_is_impossible_nothing_of_an_excluded_folder_is_copied(client):
    home = client.staging.parent
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.toml").write_text('[capture]\nexcluded_projects = ["/home/ada/kiln"]\n')
    inside = json.dumps({"cwd": "/home/ada/kiln/src", "text": "the glaze"}) + "\n"
    outside = json.dumps({"cwd": "/home/ada/other", "text": "the clay"}) + "\n"
    for name, text in (("in", inside), ("out", outside), ("later", outside * 10 + inside)):
        transcript = client.write_transcript(name)
        transcript.write_text(text)
        assert client.is_silent(client.run(without_links(client), client.payload(transcript), {}))
    kept = [path for path in (client.staging / "transcripts").iterdir() if path.stat().st_size]
    assert [path.read_text() for path in kept] == [outside] and kept[0].stat().st_mode & 0o777 == 0o600
    assert len(client.tickets()) == 3


def test_where_linking_is_impossible_each_event_copies_what_is_new(client):
    transcript = client.write_transcript()
    command = without_links(client)
    for line in ('{"n":1}\n', '{"n":2}\n'):
        with transcript.open("a") as file:
            file.write(line)
        assert client.is_silent(client.run(command, client.payload(transcript), {}))
        [kept] = (client.staging / "transcripts").iterdir()
        assert kept.read_bytes() == transcript.read_bytes() and not kept.samefile(transcript)


def test_a_symbolic_link_keeps_what_it_points_at(client):
    real = client.write_transcript("real")
    pointing = client.folder / "pointing.jsonl"
    pointing.symlink_to(real)
    client.hook("stop", client.payload(pointing))
    [kept] = (client.staging / "transcripts").iterdir()
    assert kept.samefile(real) and not kept.is_symlink()


def test_hooks_at_the_same_time_all_leave_their_ticket(client):
    transcript = client.write_transcript()
    hook = str(client.folder / "hooks" / "hook.py")
    running = [
        subprocess.Popen(
            [sys.executable, "-I", "-S", hook, event],
            stdin=subprocess.PIPE,
            env={"HOME": str(client.folder), "CORTEX_HOME": str(client.home)},
        )
        for event in ["stop", "session-end", "pre-compact"] * 3
    ]
    for process in running:
        process.communicate(client.payload(transcript))
    assert [process.returncode for process in running] == [0] * 9
    assert len(client.tickets()) == 9
    assert len(client.names("transcripts")) == 1


def test_only_event_names_that_old_clients_know():
    told = json.loads((HOOKS / "hooks.json").read_text())["hooks"]
    used = {"SessionStart", "UserPromptSubmit", "Stop", "SubagentStop", "PreCompact", "SessionEnd"}
    assert set(told) == used and used <= OLD_EVENTS
    for groups in told.values():
        [hook] = groups[0]["hooks"]
        assert hook["command"] == "sh" and hook["args"][0] == "${CLAUDE_PLUGIN_ROOT}/run.sh"


def test_every_event_of_hooks_json_is_known_to_the_entry(client):
    told = json.loads((HOOKS / "hooks.json").read_text())["hooks"]
    transcript = client.write_transcript()
    payload = client.payload(
        transcript, agent_id="a", agent_type="Plan", agent_transcript_path=str(transcript)
    )
    for groups in told.values():
        client.hook(groups[0]["hooks"][0]["args"][1], payload)
    assert client.log == "" and len(client.tickets()) == 4


def test_hooks_import_the_standard_library_only():
    allowed = {
        *sys.stdlib_module_names,
        "cortex",
        *(path.name for path in HOOKS.iterdir()),
        *(path.stem for path in HOOKS.rglob("*.py")),
    }
    for path in HOOKS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert {alias.name.partition(".")[0] for alias in node.names} <= allowed, path
            if isinstance(node, ast.ImportFrom):
                assert str(node.module).partition(".")[0] in allowed, path
                package = ".".join(str(node.module).split(".")[:2])
                assert package == "cortex.hooks" or not package.startswith("cortex."), path


def test_a_stop_before_its_transcript_is_no_failure_and_the_sessions_end_has_it(client):
    """`claude -p` was seen to write the transcript after Stop on an idle machine."""
    transcript = client.folder / "projects" / "-home-ada-kiln" / "later.jsonl"
    assert client.is_silent(client.hook("stop", client.payload(transcript)))
    assert (client.tickets(), client.log) == ([], "")
    client.write_transcript("later")
    client.hook("session-end", client.payload(transcript))
    assert [told["transcript_path"] for told in client.tickets()] == [str(transcript)]


def test_a_subagent_without_its_transcript_is_told_in_the_log(client):
    payload = client.payload(
        client.write_transcript(),
        agent_id="a1",
        agent_type="Explore",
        agent_transcript_path=str(client.folder / "gone.jsonl"),
    )
    client.hook("subagent-stop", payload)
    assert "subagent-stop FileNotFoundError" in client.log


@pytest.mark.parametrize("event", ["stop", "pre-compact", "session-end"])
def test_a_session_that_was_left_without_a_prompt_has_no_transcript_and_that_is_no_error(client, event):
    missing = client.folder / "projects" / "-home-ada-kiln" / "left-at-once.jsonl"
    assert client.is_silent(client.hook(event, client.payload(missing)))
    assert (client.tickets(), client.log) == ([], "")


# A context that fills up: said once, to the person, by what the last answer took


def answered(tokens: int, **fields: object) -> str:
    """Return a transcript whose last answer took so many tokens of context."""
    usage = {"input_tokens": 7, "cache_read_input_tokens": tokens - 7, "output_tokens": 900}
    message = {"role": "assistant", "content": [], "usage": usage}
    record = {"type": "assistant", "isSidechain": False, "message": message, **fields}
    lines = [{"type": "user"}, record, {"type": "system", "content": "done"}]
    return "".join(json.dumps(line) + "\n" for line in lines)


def test_the_person_is_told_once_that_the_context_fills_up(client):
    payload = client.payload(client.write_transcript(text=answered(142_000)))
    output = json.loads(client.hook("stop", payload).stdout)
    assert list(output) == ["systemMessage"]
    assert "142k tokens of context in use, 71 % of a window of 200k" in output["systemMessage"]
    assert client.is_silent(client.hook("stop", payload))
    assert client.log == ""


@pytest.mark.parametrize(
    ("tokens", "fields"),
    [
        (139_000, {}),
        # More than the usual window holds: the session has a larger one, of which nothing is known.
        (260_000, {}),
        # A subagent's answer says nothing of the session's own context.
        (142_000, {"isSidechain": True}),
    ],
)
def test_of_a_context_that_is_not_known_to_fill_up_nothing_is_said(client, tokens, fields):
    payload = client.payload(client.write_transcript(text=answered(tokens, **fields)))
    assert client.is_silent(client.hook("stop", payload))


def test_the_share_at_which_a_person_is_told_is_a_setting(client):
    payload = client.payload(client.write_transcript(text=answered(90_000)))
    assert client.hook("stop", payload, CORTEX_STATUSLINE_WARN_PERCENT="40").stdout
