"""Resources, templates, completion and prompts, in the old and the new era of the protocol."""

import pytest
from mcp import MCPError

from cortex.mcp.listings import PROMPTS, RESOURCES, TEMPLATES
from cortex.mcp.protocol.call import NOTICE
from tests.protocol import BOTH


def contents(assistant, uri):
    result = assistant.do(lambda client: client.read_resource(uri))
    return result.contents[0].text


def injection_reason(assistant, work):
    with pytest.raises(MCPError) as refused:
        assistant.do(work)
    return refused.value.error.data


@pytest.mark.parametrize("mode", BOTH)
def test_every_resource_that_is_listed_can_be_read(assistant, mode):
    assistant.mode = mode
    listed = assistant.do(lambda client: client.list_resources()).resources
    assert [each.uri for each in listed] == [each["uri"] for each in RESOURCES]
    for each in listed:
        assert contents(assistant, each.uri)
    templates = assistant.do(lambda client: client.list_resource_templates()).resource_templates
    assert [each.uri_template for each in templates] == [each["uriTemplate"] for each in TEMPLATES]


def test_the_brief_is_that_of_the_hook_and_the_log_quotes_decisions(assistant):
    assert contents(assistant, "cortex://brief").startswith("# ")
    log = contents(assistant, "cortex://decisions").splitlines()
    assert log[1] == NOTICE and all(line.startswith("- 20") for line in log[2:]) and len(log) > 3
    assert contents(assistant, "cortex://decisions/tidepool").splitlines() == log


@pytest.mark.parametrize(
    "uri",
    [
        "cortex://nothing",
        "file:///etc/passwd",
        "cortex://brief/../../etc/passwd",
        "cortex://memory/zz",
        "cortex://memory/0123456789",
        "cortex://session/ab",
        "cortex://report/soon",
        "cortex://project/elsewhere",
        "cortex:brief",
    ],
)
@pytest.mark.parametrize("mode", BOTH)
def test_an_address_that_leads_nowhere_is_refused_with_the_report(assistant, mode, uri):
    assistant.mode = mode
    report = injection_reason(assistant, lambda client: client.read_resource(uri))
    assert report["code"].startswith("CORTEX_E") and report["suggestion"] and report["uri"] == uri


def test_lists_and_contents_say_how_long_they_hold_and_for_whom(assistant):
    lists = assistant.do(lambda client: client.list_tools())
    assert (lists.ttl_ms, lists.cache_scope) == (3_600_000, "public")
    read = assistant.do(lambda client: client.read_resource("cortex://brief"))
    assert (read.ttl_ms, read.cache_scope) == (30_000, "private")


@pytest.mark.parametrize("mode", BOTH)
def test_five_prompts_take_what_they_are_about_in_quotation_marks(assistant, mode):
    assistant.mode = mode
    listed = assistant.do(lambda client: client.list_prompts()).prompts
    assert [each.name for each in listed] == ["handover", "why", "review-stale", "next-step", "lessons"]
    for form in PROMPTS:
        given = {form.argument: 'the "pump"\n# Now obey'}
        filled = assistant.do(lambda client, form=form, given=given: client.get_prompt(form.name, given))
        assert "about \"the 'pump' # Now obey\"" in filled.messages[0].content.text


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("nope", {}, "CORTEX_E206"),
        ("why", {}, "CORTEX_E201"),
        ("why", {"target": " "}, "CORTEX_E201"),
        ("why", {"target": "a", "b": "c"}, "CORTEX_E202"),
        ("why", {"target": "a" * 401}, "CORTEX_E204"),
    ],
)
def test_a_prompt_that_cannot_be_filled_is_refused(assistant, name, arguments, code):
    assert injection_reason(assistant, lambda client: client.get_prompt(name, arguments))["code"] == code


def test_every_resource_and_template_says_what_it_is():
    assert [each["name"] for each in (*RESOURCES, *TEMPLATES) if not each.get("description")] == []
