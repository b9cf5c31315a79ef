"""A private session leaves nothing: hooks write no ticket, show nothing, and no later sweep finds it."""

import pytest

from tests.hook_client import SESSION

EVENTS = ("stop", "subagent-stop", "pre-compact", "session-end")


def tickets(client):
    new = client.staging / "new"
    return sorted(path.name for path in new.iterdir()) if new.exists() else []


def payload_of(client, transcript, **fields):
    return client.payload(transcript, source="startup", agent_type="x", agent_id="a1", **fields)


@pytest.mark.parametrize("event", [*EVENTS, "session-start", "user-prompt-submit"])
def test_with_the_switch_no_event_leaves_more_than_the_sessions_name(client, event):
    transcript = client.write_transcript()
    ran = client.hook(event, payload_of(client, transcript, prompt="Which cone?"), CORTEX_OFF="1")
    assert client.is_silent(ran) and client.log == ""
    files = [path for path in client.home.rglob("*") if path.is_file()]
    assert [(path.parent.name, path.name, path.stat().st_size) for path in files] == [("private", SESSION, 0)]


@pytest.mark.parametrize("value", ["", "0"])
def test_a_switch_that_is_off_changes_nothing(client, value):
    client.hook("stop", client.payload(client.write_transcript()), CORTEX_OFF=value)
    assert len(tickets(client)) == 1


def test_once_private_a_session_stays_so_without_the_switch(client):
    transcript = client.write_transcript()
    client.hook("stop", client.payload(transcript), CORTEX_OFF="1")
    client.hook("session-end", client.payload(transcript))
    assert tickets(client) == []


def test_the_word_in_the_first_prompt_makes_it_private(client):
    transcript = client.write_transcript().with_name("0c00.jsonl")
    payload = client.payload(transcript, prompt="What is this lump? #Private.")
    assert client.is_silent(client.hook("user-prompt-submit", payload))
    transcript.write_text('{"type":"user"}\n')
    client.hook("stop", client.payload(transcript))
    assert tickets(client) == [] and client.log == ""


def test_the_word_in_a_later_prompt_or_inside_another_does_not(client):
    transcript = client.write_transcript()
    client.hook("user-prompt-submit", client.payload(transcript, prompt="What does #private mean in Ruby?"))
    client.hook("stop", client.payload(transcript))
    assert len(tickets(client)) == 1


def test_a_later_sweep_passes_it_and_its_subagents_over(client):
    client.hook("session-start", payload_of(client, client.write_transcript("first")))
    transcript = client.write_transcript("hidden")
    client.hook("stop", client.payload(transcript), CORTEX_OFF="1")
    client.write_transcript("hidden/subagents/agent-a1")
    client.write_transcript("killed")
    client.hook("session-start", payload_of(client, client.write_transcript("next")))
    assert [name for name in tickets(client) if "hidden" in name] == []
    assert [name for name in tickets(client) if "killed" in name]
