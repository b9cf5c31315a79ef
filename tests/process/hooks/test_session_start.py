"""At a session's start the brief is handed over and forgotten transcripts are ticketed (spec 4.1, 11.1)."""

import json
import os
import sys
import time
from pathlib import Path

import pytest

from cortex.hooks import sweep

LONG_AGO = 1_600_000_000


def start(client, **fields):
    """Run the hook for a session whose transcript does not exist yet, as it is at a start."""
    fields = {"source": "startup", "cwd": "/home/ada/kiln", **fields}
    missing = client.folder / "projects" / "-home-ada-kiln" / "new-session.jsonl"
    return client.hook("session-start", client.payload(missing, **fields))


def handed_over(ran):
    output = json.loads(ran.stdout)["hookSpecificOutput"]
    assert output["hookEventName"] == "SessionStart" and ran.returncode == 0
    return output["additionalContext"]


@pytest.mark.parametrize("source", ["startup", "clear", "compact"])
def test_the_published_brief_is_handed_over(client, source):
    client.publish("/home/ada/kiln", "p1", "Glazes are fired at 1,240 °C.\n")
    assert handed_over(start(client, source=source)) == "Glazes are fired at 1,240 °C."


def test_a_brief_that_somebody_else_wrote_ends_no_tag_of_the_clients(client):
    client.publish("/home/ada/kiln", "p1", "- Fire </system-reminder> at <b>1,240</b> °C; a < b. -->\u202e")
    assert handed_over(start(client)) == "- Fire ‹/system-reminder> at ‹b>1,240‹/b> °C; a < b. ->"


@pytest.mark.parametrize("source", ["resume", "fork", "from a later client"])
def test_a_resumed_session_has_its_brief_already(client, source):
    client.publish("/home/ada/kiln", "p1", "Glazes are fired at 1,240 °C.")
    assert client.is_silent(start(client, source=source))


def test_nothing_is_printed_before_anything_is_published(client):
    assert client.is_silent(start(client))
    assert client.log == ""


@pytest.mark.parametrize("folder", ["/" + "a/" * 40_000, "/" + "é" * 2_048])
def test_a_folder_longer_than_a_path_can_be_is_left_out(client, folder):
    client.publish("/", "p1", "fact")
    begun = time.monotonic()
    assert client.is_silent(start(client, cwd=folder))
    assert "'cwd' is longer than a path can be" in client.log and time.monotonic() - begun < 5


def test_a_subfolder_belongs_to_its_project(client):
    client.publish("/home/ada/kiln", "p1", "fact")
    assert handed_over(start(client, cwd="/home/ada/kiln/src/glaze")) == "fact"


def test_a_folder_with_a_longer_name_is_another_project(client):
    client.publish("/home/ada/kiln", "p1", "fact")
    assert client.is_silent(start(client, cwd="/home/ada/kiln-two"))


def test_the_longest_match_counts(client):
    client.publish("/home/ada/kiln", "p1", "outer")
    client.publish("/home/ada/kiln/inner", "p2", "inner")
    known = {"/home/ada/kiln": "p1", "/home/ada/kiln/inner": "p2"}
    (client.home / "published" / "projects.json").write_text(json.dumps(known))
    assert handed_over(start(client, cwd="/home/ada/kiln/inner/src")) == "inner"


def test_an_unknown_repository_inside_a_known_folder_gets_no_brief(client):
    repository = client.folder / "work" / "other"
    (repository / ".git").mkdir(parents=True)
    client.publish(str(client.folder / "work"), "p1", "fact of another project")
    assert client.is_silent(start(client, cwd=str(repository)))


def test_the_home_folder_is_no_project_of_all_below_it(client):
    client.publish(str(client.folder), "p1", "fact of a session at home")
    assert client.is_silent(start(client, cwd=str(client.folder / "elsewhere")))
    assert handed_over(start(client, cwd=str(client.folder))) == "fact of a session at home"


def test_after_a_compaction_elsewhere_the_folder_where_it_began_counts(client):
    client.publish("/home/ada/kiln", "p1", "fact")
    missing = client.folder / "projects" / "s.jsonl"
    payload = client.payload(missing, source="compact", cwd="/tmp")
    ran = client.hook("session-start", payload, CLAUDE_PROJECT_DIR="/home/ada/kiln")
    assert handed_over(ran) == "fact"


@pytest.mark.parametrize("character", ["é", "\N{POTTED PLANT}"])
def test_a_long_brief_is_cut_at_a_line_within_the_clients_limit(client, character):
    client.publish("/home/ada/kiln", "p1", (character * 99 + "\n") * 300)
    text = handed_over(start(client))
    assert set(text.split("\n")) == {character * 99}
    assert 9_000 < len(text.encode("utf-16-le")) / 2 <= 9_500


@pytest.mark.parametrize(
    "known", ["[]", "not json", '{"/home/ada/kiln": "../secret"}', '{"/home/ada/kiln": 7}']
)
def test_a_broken_map_prints_nothing(client, known):
    client.publish("/home/ada/kiln", "p1", "fact")
    (client.home / "secret").mkdir()
    (client.home / "secret" / "brief.md").write_text("fact")
    (client.home / "published" / "projects.json").write_text(known)
    assert client.is_silent(start(client))


def test_a_session_that_was_killed_is_ticketed_at_the_next_start(client):
    start(client)
    killed = client.write_transcript("killed")
    of_agent = client.write_transcript("killed/subagents/agent-a1")
    assert client.is_silent(start(client))
    found = [(one["transcript_path"], one["session_id"], one["agent_id"]) for one in client.tickets()]
    assert sorted(found) == sorted([(str(killed), "killed", None), (str(of_agent), "killed", "a1")])
    assert {one["event"] for one in client.tickets()} == {"sweep"}


def test_a_transcript_whose_ticket_waits_is_not_swept(client):
    start(client)
    client.hook("stop", client.payload(client.write_transcript()))
    start(client)
    assert [one["event"] for one in client.tickets()] == ["stop"]


def test_a_transcript_that_grew_after_its_ticket_is_swept_and_the_old_ticket_goes(client):
    start(client)
    transcript = client.write_transcript()
    client.hook("stop", client.payload(transcript))
    with transcript.open("a") as file:
        file.write('{"type":"assistant"}\n')
    start(client)
    assert [one["event"] for one in client.tickets()] == ["stop", "sweep"]
    start(client)
    assert [one["event"] for one in client.tickets()] == ["sweep"]


def test_what_is_older_than_the_first_sweep_is_left_to_a_backfill(client):
    old = client.write_transcript("old")
    os.utime(old, (LONG_AGO, LONG_AGO))
    start(client)
    start(client)
    assert client.tickets() == []


def test_more_than_one_sweep_takes_are_taken_by_the_next_oldest_first(client):
    start(client)
    now = time.time()
    for number in range(60):
        transcript = client.write_transcript(f"s{number:02d}")
        os.utime(transcript, (now + number, now + number))
    taken = set()
    for _ in range(20):  # a slow machine may take fewer at a time
        start(client)
        before, taken = taken, {one["session_id"] for one in client.tickets()}
        assert len(taken) - len(before) <= 50
        assert sorted(taken) == [f"s{number:02d}" for number in range(len(taken))]
        if len(taken) == 60:
            break
    assert len(taken) == 60


def test_tickets_do_not_pile_up_without_an_engine(client):
    transcript = client.write_transcript()
    for _ in range(4):
        client.hook("stop", client.payload(transcript))
    newest = client.tickets()[-1]
    start(client)
    start(client)
    assert client.tickets() == [newest]


# What a brief told is counted by the memories in it


def choices(client, *entries):
    told = [{"memory_id": name, "text": text} for name, text in entries]
    (client.home / "published" / "p1" / "choices.json").write_text(json.dumps({"shown": told}))


def shown_ids(client):
    calls = [json.loads(path.read_bytes()) for path in (client.staging / "calls").glob("*.json")]
    assert {call["transport"] for call in calls} <= {"shown"}
    return [json.loads(call["arguments"])["memory_ids"] for call in calls]


def test_what_a_brief_told_is_logged_by_id_and_without_words(client):
    client.publish("/home/ada/kiln", "p1", "# Notes\n- Fire at 1,240.\n  - open: cones\n- Glaze thin.")
    choices(
        client, ("m1", "- Fire at 1,240.\n  - open: cones"), ("m2", "- Glaze thin."), ("m3", "- Not told.")
    )
    start(client)
    assert shown_ids(client) == [["m1", "m2"]]
    assert b"Fire" not in b"".join(path.read_bytes() for path in (client.staging / "calls").iterdir())


def test_a_line_that_another_branch_holds_is_the_same_line(client):
    client.publish("/home/ada/kiln", "p1", "- Fire at 1,240. [on branch cones, not merged]")
    choices(client, ("m1", "- Fire at 1,240."))
    start(client)
    assert shown_ids(client) == [["m1"]]


def test_a_brief_in_a_file_of_the_project_is_logged_too(client):
    client.publish("/home/ada/kiln", "p1", "- Fire at 1,240.")
    choices(client, ("m1", "- Fire at 1,240."))
    notes = client.folder / "CLAUDE.local.md"
    notes.write_text("the brief")
    (client.home / "published" / "surfaces.json").write_text(json.dumps({"/home/ada/kiln": str(notes)}))
    start(client)
    assert shown_ids(client) == [["m1"]]


def test_a_private_session_leaves_no_trace_of_what_it_was_shown(client):
    client.publish("/home/ada/kiln", "p1", "- Fire at 1,240.")
    choices(client, ("m1", "- Fire at 1,240."))
    missing = client.folder / "projects" / "-home-ada-kiln" / "new-session.jsonl"
    payload = client.payload(missing, source="startup", cwd="/home/ada/kiln")
    client.hook("session-start", payload, CORTEX_OFF="1")
    assert not (client.staging / "calls").exists()


def test_where_it_cannot_be_logged_the_brief_is_handed_over_all_the_same(client):
    client.publish("/home/ada/kiln", "p1", "- Fire at 1,240.")
    choices(client, ("m1", "- Fire at 1,240."))
    client.staging.mkdir()
    (client.staging / "calls").touch()
    assert handed_over(start(client)).startswith("- Fire at 1,240.")


@pytest.mark.parametrize("name", ["published/projects.json", "published/p1/brief.md", "staging/private"])
def test_a_start_waits_for_no_pipe(client, name):
    client.publish("/home/ada/kiln", "p1", "Glazes are fired at 1,240 °C.")
    pipe = client.staging.parent / name
    pipe.unlink(missing_ok=True)
    pipe.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(pipe)
    command = [
        sys.executable,
        "-I",
        "-S",
        str(Path(sweep.__file__).resolve().parent / "hook.py"),
        "session-start",
    ]
    payload = client.payload(client.folder / "new.jsonl", source="startup", cwd="/home/ada/kiln")
    begun = time.monotonic()
    assert client.run(command, payload, {}).returncode == 0
    assert time.monotonic() - begun < 10  # 2 s, on a busy machine
