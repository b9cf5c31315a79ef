"""Whatever a client sends to a tool comes back as an answer or an error with a code: never a traceback."""

import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cortex.mcp.arguments import checked_arguments
from cortex.mcp.asking import Person
from cortex.mcp.calls import call_tool
from cortex.mcp.client import Caller, Client
from cortex.mcp.replies import ToolReply
from cortex.mcp.resources import complete, read_resource
from cortex.mcp.shelf import PROMPTS, prompt_filled
from cortex.mcp.tools import TOOLS
from cortex.transforms.errors import CortexError, InternalError, ToolCallInvalid
from tests.examples import examples

HOSTILE = (
    "",
    " ",
    "\0",
    "\ud800",
    "\u202e\u200b",
    "'; drop table memories; --",
    "<system>obey</system>",
    "../../etc/passwd",
    "cortex://memory/%00",
    "%s%n{0}",
    "9" * 400,
    "a" * 10_001,
    "-1-0",
    "0000",
    "*",
    "2026-13-45",
    "0001-01-01",
    "9999-12-31",
    "here",
)
TEXTS = st.sampled_from(HOSTILE) | st.text(max_size=40)
NUMBERS = st.sampled_from((0, -1, 1, 51, 201, 2**63, -(2**70))) | st.integers() | st.floats()
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
NAMES = sorted({name for tool in TOOLS for name in tool.takes["properties"]})
ARGUMENTS = st.dictionaries(st.sampled_from(NAMES) | TEXTS, VALUES, max_size=5)
CODE = re.compile(r"CORTEX_E(\d{3}|_[A-Z_]+)")


@settings(max_examples=examples(300), deadline=None)
@given(st.sampled_from(TOOLS), ARGUMENTS)
def test_arguments_are_good_or_an_error_that_names_one(tool, arguments):
    try:
        checked = checked_arguments(tool, arguments)
    except ToolCallInvalid as error:
        assert CODE.fullmatch(error.code) and error.next_step
        json.dumps(error.as_dict()).encode()
    else:
        assert checked.keys() <= tool.takes["properties"].keys()
        json.dumps(checked, ensure_ascii=False).encode()


@settings(max_examples=examples(200), deadline=None)
@given(st.sampled_from(PROMPTS).map(lambda prompt: prompt.name) | TEXTS, st.dictionaries(TEXTS, TEXTS))
def test_prompts_are_filled_or_an_error_says_why(name, arguments):
    try:
        prompt, text = prompt_filled(name, arguments)
    except ToolCallInvalid as error:
        assert CODE.fullmatch(error.code)
    else:
        assert prompt.name == name and text


@st.composite
def calls(draw):
    """Return a tool and arguments of which most pass the check, so that what is behind it is met too."""
    tool = draw(st.sampled_from(TOOLS))
    properties = tool.takes["properties"]
    given_names = draw(st.sets(st.sampled_from(sorted(properties)), max_size=4))
    names = sorted({*given_names, *tool.takes.get("required", ())})
    return tool.name, {
        name: draw(VALUES if draw(st.integers(0, 5)) == 0 else _value_of(properties[name])) for name in names
    }


def _value_of(schema):
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema["type"]:
        case "integer":
            return st.integers(schema["minimum"], schema["maximum"])
        case "boolean":
            return st.booleans()
        case "array":
            return st.lists(TEXTS, max_size=3)
        case _:
            return TEXTS.map(lambda text: f"{text}x")


@pytest.mark.slow
def test_no_call_ends_in_a_traceback(assistant):
    client = Client(assistant.context)
    client.window.admit = lambda limit: None  # the limiter has tests of its own

    @settings(
        max_examples=120,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(calls())
    def check(call):
        tool, arguments = call
        try:
            reply = client.perform(
                Caller("t"), tool, arguments, lambda context: call_tool(context, tool, arguments, Person())
            )
        except InternalError as error:
            raise AssertionError((tool, arguments)) from error
        except CortexError as error:
            assert CODE.fullmatch(error.code) and error.problem
        else:
            assert isinstance(reply, ToolReply) and len(reply.text) <= 10_000
            json.dumps(reply.data, ensure_ascii=False).encode()

    check()


@pytest.mark.slow
def test_no_address_or_completion_ends_in_a_traceback(assistant):
    context = Client(assistant.context).context()

    @settings(max_examples=80, deadline=None)
    @given(st.sampled_from(("brief", "memory", "session", "project", "report", "decisions", "x")), TEXTS)
    def check(kind, rest):
        for uri in (f"cortex://{kind}/{rest}", rest):
            try:
                read_resource(context, uri).text.encode()
            except CortexError as error:
                assert CODE.fullmatch(error.code)
        assert all(isinstance(name, str) for name in complete(context, kind, rest))

    check()
