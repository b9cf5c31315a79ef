"""Whatever a client sends to a tool comes back as an answer or an error with a code: never a traceback."""

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cortex.mcp.protocol.call import Person, ToolReply
from cortex.mcp.protocol.client import Caller, Client
from cortex.mcp.resources import complete, read_resource
from cortex.mcp.server import call_tool
from cortex.transforms.errors import CortexError, InternalError
from tests.store.mcp.test_bad_input import CODE, TEXTS, TOOLS, VALUES


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
