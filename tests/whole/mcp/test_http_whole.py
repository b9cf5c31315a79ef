"""The memory over HTTP: who may enter, what they see, how often they may call, and that nothing stays."""

import json
from collections import Counter
from urllib.parse import urlsplit

import anyio
import pytest

from cortex.flows.operations.maintain.audit import read_calls
from cortex.mcp.http_server import MAX_OF_A_SUBJECT
from tests.protocol import SAMPLES_FOLDER, text_of
from tests.store.mcp.test_http import HELLO, LESSON, message, provider, settings, team, token  # noqa: F401


def call(tool, **arguments):
    return lambda client: client.call_tool(tool, arguments)


def test_nothing_else_answers_without_a_token(team):
    for path in ("/mcp", "/", "/elsewhere", "/.well-known/other"):
        for method in ("GET", "POST", "DELETE", "PUT"):
            address = f"http://{urlsplit(team.address).netloc}{path}"
            assert team.ask(method, path=address).status_code == 401, (method, path)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_a_call_needs_its_scope_and_what_lacks_one_is_noted_and_not_done(
    team, token, assistant, settings, mode
):
    settings(f'http_projects = ["{assistant.folder}"]')
    lesson = {"text": LESSON, "type": "gotcha", "everywhere": True}
    asked = message("tools/call", name="learn", arguments=lesson)
    version = {"mcp-protocol-version": "2025-11-25"}
    answer = team.ask("POST", token(), version, json=asked)
    assert answer.status_code == 403
    assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]
    assert 'scope="memory:write"' in answer.headers["www-authenticate"]
    read = team.do(token(), call("recall", question="breakwater gate"), mode=mode)
    assert "breakwater" not in text_of(read).casefold()
    write = token("memory:read memory:write")
    learned = team.do(write, call("learn", **lesson), mode=mode)
    assert learned.structured_content["id"], text_of(learned)
    plan = message("tools/call", name="consolidate", arguments={"plan": "0" * 12})
    assert team.ask("POST", write, version, json=plan).status_code == 403
    outcomes = Counter((row["tool"], row["outcome"]) for row in read_calls(assistant.context))
    assert outcomes == {
        ("learn", "CORTEX_E320"): 1,
        ("consolidate", "CORTEX_E320"): 1,
        ("recall", "ok"): 1,
        ("learn", "ok"): 1,
    }
    callers = {row["caller"] for row in read_calls(assistant.context) if row["outcome"] == "ok"}
    assert len(callers) == 1 and callers.pop().startswith("ada via editor (mcp ")
    assert {row["transport"] for row in read_calls(assistant.context)} == {"http"}


def test_a_caller_sees_the_projects_of_the_settings_and_else_what_is_shared(team, token, settings):
    def projects(**claims):
        asked = call("query", sql="select distinct project_id from turns")
        return [row[0] for row in team.do(token(**claims), asked).structured_content["rows"]]

    assert projects() == []
    settings(f'http_projects = ["bob={SAMPLES_FOLDER}"]')
    assert projects() == [] and len(projects(sub="bob")) == 1
    settings(f'http_projects = ["{SAMPLES_FOLDER}"]')
    assert projects() == projects(sub="bob") != []
    settings('http_projects = ["ada=*"]')
    assert len(projects()) >= 1 and projects(sub="bob") == []
    # The settings of stdio, where a client is the user's own, say nothing about callers.
    settings('projects = ["*"]')
    assert projects() == []


def test_a_role_in_a_project_limits_what_the_token_allows(team, token, settings):
    everything = "memory:read memory:write memory:delete admin"

    def ask(tool, sub="ada", **arguments):
        answer = team.do(token(everything, sub=sub), call(tool, **arguments))
        return json.loads(text_of(answer))["code"] if answer.is_error else answer.structured_content

    projects = {"sql": "select distinct project_id from turns"}
    seen = f'http_projects = ["{SAMPLES_FOLDER}"]'
    settings(seen, f'http_roles = ["ada=writer@{SAMPLES_FOLDER}", "bob=reader"]')
    assert len(ask("query", **projects)["rows"]) == len(ask("query", "bob", **projects)["rows"]) == 1
    assert ask("query", "cy", **projects)["rows"] == [], "who has no role sees no project"
    assert ask("learn", "bob", text=LESSON, type="gotcha") == "CORTEX_E321"
    assert ask("learn", "cy", text=LESSON, type="gotcha", everywhere=True) == "CORTEX_E321"
    assert ask("learn", text=LESSON, type="gotcha", everywhere=True) == "CORTEX_E321", "writer of one project"
    assert ask("learn", text=LESSON, type="gotcha")["id"]
    assert ask("consolidate", plan="0" * 12) == "CORTEX_E321"
    settings(seen, 'http_roles = ["*=reader", "ada=admin"]')
    assert ask("consolidate", plan="0" * 12) != "CORTEX_E321", "an admin's plan is looked for"
    assert ask("consolidate", "bob", plan="0" * 12) == "CORTEX_E321"
    assert ask("query", "bob", sql="select * from calls")["rows"] == []
    # A token's scopes are needed too.
    short = message("tools/call", name="learn", arguments={"text": LESSON})
    assert team.ask("POST", token(), json=short).status_code == 403


@pytest.mark.parametrize("everywhere", [False, True])
def test_who_is_in_no_project_learns_nothing_that_no_person_agreed_to(team, token, everywhere):
    write = token("memory:read memory:write")
    refused = team.do(write, call("learn", text=LESSON, everywhere=everywhere))
    assert json.loads(text_of(refused))["code"] == "CORTEX_E_USAGE"


def test_each_caller_has_a_limit_of_its_own(team, token, settings):
    settings("calls_per_minute = 2")

    async def three(client):
        results = [await client.call_tool("query", {"sql": "select 1"}) for _ in range(3)]
        return [json.loads(text_of(each))["code"] if each.is_error else "ok" for each in results]

    for claims in ({}, {"sub": "bob"}, {"client_id": "terminal"}):
        assert team.do(token(**claims), three) == ["ok", "ok", "CORTEX_E310"]
    assert team.do(token("memory:read admin"), three) == ["CORTEX_E310"] * 3  # another token, the same caller
    refused = message("tools/call", name="learn", arguments={"text": "x"})
    assert team.ask("POST", token(), json=refused).status_code == 429


def test_of_a_thousand_calls_at_once_over_http_the_limit_is_answered(team, token, assistant):
    async def storm(client):
        codes = Counter()

        async def call(number):
            result = await client.call_tool("query", {"sql": f"select {number}"})
            codes[json.loads(text_of(result))["code"] if result.is_error else "ok"] += 1

        async with anyio.create_task_group() as group:
            for number in range(1_000):
                group.start_soon(call, number)
        return codes

    assert team.do(token(), storm) == {"ok": 120, "CORTEX_E310": 880}
    outcomes = Counter(row["outcome"] for row in read_calls(assistant.context))
    assert outcomes == {"ok": 120, "CORTEX_E310": 1}


def test_one_subject_does_not_use_up_the_sessions_and_loses_those_that_were_idle_longest(team, token):
    def open_session(bearer):
        return team.ask("POST", bearer, json=HELLO).headers["mcp-session-id"]

    def is_open(session, bearer):
        headers = {"mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
        return team.ask("POST", bearer, headers, json=message("tools/list")).status_code == 200

    eve, bob = token(sub="eve"), token(sub="bob")
    his = open_session(bob)
    sessions = [open_session(eve) for _ in range(MAX_OF_A_SUBJECT)]
    assert is_open(sessions[0], eve)  # no longer the one that was idle longest
    newest = open_session(eve)
    assert not is_open(sessions[1], eve)
    assert all(is_open(each, eve) for each in (sessions[0], sessions[2], newest)) and is_open(his, bob)
