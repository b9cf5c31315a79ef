"""Resources, templates, completion and prompts, in the old and the new era of the protocol."""

import json

import mcp_types as types
import pytest

from tests.protocol import BOTH
from tests.store.mcp.test_resources import contents, injection_reason
from tests.whole.mcp.test_tools_whole import other_project


def test_a_memory_a_session_a_project_and_a_month_have_addresses(assistant):
    memory = assistant.data("recall", question="why SQLite for readings?")["results"][0]["id"]
    assert json.loads(contents(assistant, f"cortex://memory/{memory}"))["id"] == memory
    [[session]] = assistant.data("query", sql="select session_id from sessions order by 1 limit 1")["rows"]
    assert json.loads(contents(assistant, f"cortex://session/{session}"))["session_id"] == session
    assert json.loads(contents(assistant, "cortex://project/tidepool"))["name"] == "tidepool"
    assert contents(assistant, "cortex://report/2026-09").startswith("# ")


def test_resources_of_another_project_lead_nowhere(assistant, tmp_path):
    other = other_project(assistant.home, tmp_path)
    secret = other.data("recall", question="lighthouse beacon.py")["results"][0]["id"]
    for uri in (f"cortex://memory/{secret}", "cortex://brief/elsewhere", "cortex://decisions/elsewhere"):
        injection_reason(assistant, lambda client, uri=uri: client.read_resource(uri))
    assert "beacon" not in contents(assistant, "cortex://decisions")


def completed(assistant, argument, value):
    reference = types.ResourceTemplateReference(type="ref/resource", uri="cortex://x/{y}")
    asked = {"name": argument, "value": value}
    return assistant.do(lambda client: client.complete(reference, asked)).completion.values


@pytest.mark.parametrize("mode", BOTH)
def test_names_ids_and_months_are_completed_from_what_the_client_sees(assistant, tmp_path, mode):
    assistant.mode = mode
    other_project(assistant.home, tmp_path)
    assert completed(assistant, "project", "tide") == ["tidepool"]
    assert completed(assistant, "project", "else") == []
    [first, *_] = completed(assistant, "id", "")
    assert completed(assistant, "id", first[:8]) == [first]
    assert completed(assistant, "session", "") and completed(assistant, "month", "2026") != []
    assert completed(assistant, "colour", "") == []
