"""The six tools as a client lists and calls them, in the old and the new era of the protocol."""

import json
from dataclasses import replace

import pytest

from cortex.flows.operations.ask import recall as recall_operation
from cortex.flows.operations.ask.recall import recall
from cortex.hooks.tokens import tokens_in
from cortex.mcp.protocol.call import NOTICE
from cortex.mcp.server import declared_tool
from cortex.mcp.tool_index import TOOLS
from cortex.mcp.tools.tool import checked_arguments, tool
from tests.examples import cases
from tests.protocol import BOTH, text_of

# Of names, descriptions and argument schemas: what a client puts before its model with every session.
MAX_TOKENS = 900


def error_of(result):
    assert result.is_error
    report = json.loads(text_of(result))
    assert set(report) == {
        "error", "code", "category", "message", "suggestion", "details", "retryable", "timestamp"
    }  # fmt: skip
    return report


def test_the_list_of_tools_costs_a_model_little():
    shown = [{key: listed[key] for key in ("name", "description", "inputSchema")} for listed in TOOLS]
    assert sum(tokens_in(json.dumps(listed)) for listed in shown) <= MAX_TOKENS


def test_a_tool_without_a_schema_of_an_object_is_refused(monkeypatch):
    monkeypatch.setattr("cortex.mcp.tools.tool.DECLARED", {})
    for schemas in ({"takes": {}, "gives": {"type": "object"}}, {"takes": {"type": "object"}, "gives": {}}):
        with pytest.raises(ValueError, match="needs a schema"):
            tool("dive", "Dive", "Go down.", **schemas)(print)


def test_two_tools_of_one_name_are_refused(monkeypatch):
    monkeypatch.setattr("cortex.mcp.tools.tool.DECLARED", {})
    declare = tool("dive", "Dive", "Go down.", takes={"type": "object"}, gives={"type": "object"})
    declare(text_of)
    with pytest.raises(ValueError, match="both declare the tool 'dive'"):
        declare(error_of)


@pytest.mark.parametrize("mode", BOTH)
def test_a_client_of_either_era_lists_the_same_six_tools_in_the_same_order(assistant, mode):
    assistant.mode = mode
    listed = assistant.do(lambda client: client.list_tools()).tools
    assert [tool.name for tool in listed] == ["recall", "query", "reflect", "infer", "learn", "consolidate"]
    assert [tool.name for tool in listed if not tool.annotations.read_only_hint] == ["learn", "consolidate"]
    assert not any(tool.annotations.destructive_hint for tool in listed)
    assert all(tool.output_schema and tool.annotations.idempotent_hint for tool in listed)


@pytest.mark.parametrize("mode", BOTH)
def test_recall_answers_with_evidence_age_confidence_and_who_said_it(assistant, mode):
    assistant.mode = mode
    result = assistant.call("recall", question="why SQLite for readings?")
    first = result.structured_content["results"][0]
    assert "sqlite" in first["text"].lower() and first["evidence"][0]["lines"] and first["age"]
    assert first["trust"] in ("user", "assistant") and 0 <= first["confidence"] <= 1
    lines = text_of(result).splitlines()
    assert lines[1] == NOTICE
    assert lines[2].startswith(f'- [{first["trust"]}] "') and first["id"][:12] in lines[2]


def test_recall_shows_the_reason_and_what_is_nearby_as_the_command_line_does(assistant):
    question = "why SQLite and not Postgres?"
    shown = recall(assistant.context, question).matches
    result = assistant.call("recall", question=question)
    found = result.structured_content["results"]
    assert [each["id"] for each in found] == [match.id for match in shown[: len(found)]]
    first, match = found[0], shown[0]
    assert first["why"] == match.why and match.why and first["text"] == match.statement
    assert first["nearby"] and [n["id"] for n in first["nearby"]] == [near.id for near in match.nearby]
    text = text_of(result)
    assert f'  why: "{first["why"]}"' in text and f"(id {first['nearby'][0]['id'][:12]})" in text
    [near] = assistant.data("recall", question=first["nearby"][0]["id"][:12])["results"]
    assert near["id"] == first["nearby"][0]["id"]


def test_recall_shows_what_was_turned_down(assistant, monkeypatch):
    def with_rejected(*given, **named):
        answer = recall(*given, **named)
        return replace(answer, matches=[replace(each, rejected="<b>Postgres</b>") for each in answer.matches])

    monkeypatch.setattr(recall_operation, "recall", with_rejected)
    result = assistant.call("recall", question="why SQLite for readings?")
    [rejected] = {each["rejected"] for each in result.structured_content["results"]}
    assert "Postgres" in rejected and "<b>" not in rejected
    assert f'  rejected: "{rejected}"' in text_of(result)


def test_an_id_shows_the_whole_entry(assistant):
    first = assistant.data("recall", question="why SQLite for readings?")["results"][0]
    [whole] = assistant.data("recall", question=first["id"][:12])["results"]
    assert whole["id"] == first["id"] and whole["evidence"] and "files" in whole
    assert whole["text"].startswith(first["text"].rstrip("…"))


def test_a_turn_is_shown_by_its_id_too(assistant):
    tables = assistant.context.open_store().tables
    scope = next(name for name in tables.scopes() if name.startswith("tidepool"))
    turn = tables.open(scope, "passages").read(["passage_id"])["passage_id"][0].as_py()
    [whole] = assistant.data("recall", question=turn)["results"]
    assert (whole["id"], whole["kind"]) == (turn, "turn") and whole["text"]


def test_an_earlier_day_is_asked_as_it_was_known_then(assistant):
    assert assistant.data("recall", question="SQLite readings", as_of="2001-01-01")["results"] == []
    assert error_of(assistant.call("recall", question="SQLite", as_of="soon"))["code"] == "CORTEX_E_USAGE"


def test_what_was_recalled_is_reinforced(assistant):
    assistant.call("recall", question="why SQLite for readings?")
    assert [row["kind"] for row in assistant.context.open_store().journal.waiting()] == ["recall"]


def test_reflect_lists_what_is_unsettled_and_answers_with_citations(assistant):
    points = assistant.data("reflect")["points"]
    assert points and all(point["memory_ids"] and point["texts"] for point in points)
    answered = assistant.data("reflect", question="why SQLite for readings?")
    assert answered["source"] == "rules" and answered["answer"][0]["memory_ids"]


def test_infer_gives_the_chain_of_decisions_with_reasons(assistant):
    chain = assistant.data("infer", target="why SQLite")["chain"]
    assert chain and [step["said_on"] for step in chain] == sorted(step["said_on"] for step in chain)
    assert all(isinstance(step["outcomes"], list) for step in chain)


@cases(
    ("name", "arguments", "code", "argument"),
    [
        ("recall", {}, "CORTEX_E201", "question"),
        ("recall", {"question": None}, "CORTEX_E201", "question"),
        ("recall", {"question": 7}, "CORTEX_E203", "question"),
        ("recall", {"question": ["a"]}, "CORTEX_E203", "question"),
        ("recall", {"question": "   "}, "CORTEX_E204", "question"),
        ("recall", {"question": "x" * 2_001}, "CORTEX_E204", "question"),
        ("recall", {"question": "\ud800"}, "CORTEX_E203", "question"),
        ("recall", {"question": "a", "q": 1}, "CORTEX_E202", "q"),
        ("recall", {"question": "a", "detail": "huge"}, "CORTEX_E204", "detail"),
        ("recall", {"question": "a", "detail": []}, "CORTEX_E204", "detail"),
        ("recall", {"question": "a", "limit": 0}, "CORTEX_E204", "limit"),
        ("recall", {"question": "a", "limit": 51}, "CORTEX_E204", "limit"),
        ("recall", {"question": "a", "limit": True}, "CORTEX_E203", "limit"),
        ("recall", {"question": "a", "limit": 1.5}, "CORTEX_E203", "limit"),
        ("infer", {"target": "a", "all": 1}, "CORTEX_E203", "all"),
        ("learn", {"text": "a", "evidence": "poll.py"}, "CORTEX_E203", "evidence"),
        ("learn", {"text": "a", "evidence": [1]}, "CORTEX_E203", "evidence"),
        ("learn", {"text": "a", "evidence": ["a"] * 11}, "CORTEX_E204", "evidence"),
        ("learn", {"text": "a", "type": "code"}, "CORTEX_E204", "type"),
    ],
)
def test_bad_arguments_are_refused_by_their_kind_and_name(name, arguments, code, argument):
    from cortex.transforms.errors import ToolCallInvalid

    with pytest.raises(ToolCallInvalid) as refused:
        checked_arguments(declared_tool(name), arguments)
    assert (refused.value.code, refused.value.details) == (code, argument)


def test_an_empty_store_says_so(learner):
    assert error_of(learner.call("recall", question="which database"))["code"] == "CORTEX_E_NOT_FOUND"
    assert error_of(learner.call("query", sql="select 1"))["code"] == "CORTEX_E_NOT_FOUND"
