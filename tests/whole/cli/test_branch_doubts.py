"""What was said on a branch that is not merged, or went unmerged, is doubted in one wording everywhere."""

import pytest

from cortex.mcp.protocol.call import ToolCall
from cortex.mcp.tools.read_tools import answer_recall
from tests.bench import NOW
from tests.process.flows.test_branches import FEATURE_FACT, MARK, TRUNK_FACT, checkout

__all__ = ["checkout"]
GONE = "branch try/ring is gone and was not merged into HEAD"


def lines_about(text, fact):
    return [line for line in text.splitlines() if fact in line]


@pytest.fixture
def gone(bench, checkout):
    """Return a checkout whose branch was deleted with all that it had."""
    checkout.git("switch", "-q", "try/ring")
    (checkout.folder / "ring.py").write_text("levels = []\n")
    checkout.git("add", "ring.py")
    checkout.commit("Keep a ring")
    checkout.git("switch", "-q", "main")
    checkout.git("branch", "-q", "-D", "try/ring")
    bench.run("nightly", NOW)
    return checkout


def test_recall_show_brief_and_mcp_say_that_its_branch_went_unmerged(bench, gone, cortex):
    recalled = cortex("recall", "--project", "kelp", "ring buffer levels", "--json").json["results"]
    own = [row for row in recalled if row["kind"] == "memory" and FEATURE_FACT in row["text"]]
    assert [row["doubt"] for row in own] == [GONE]
    assert cortex("show", own[0]["id"], "--json").json["doubt"] == GONE
    assert GONE in cortex("show", own[0]["id"]).out
    [line] = lines_about(cortex("brief", "--project", "kelp").out, FEATURE_FACT)
    assert "[on branch try/ring, gone and not merged]" in line
    for question in ("ring buffer levels", own[0]["id"]):
        reply = answer_recall(ToolCall(bench.context, {"question": question, "project": "kelp"}))
        assert f"doubted: {GONE}" in reply.text


def test_a_brief_is_printed_as_a_session_on_a_branch_gets_it(bench, checkout, cortex):
    [line] = lines_about(cortex("brief", "--project", "kelp", "--branch", "main").out, FEATURE_FACT)
    assert MARK in line
    printed = cortex("brief", "--project", "kelp", "--branch", "try/ring")
    [line] = lines_about(printed.out, FEATURE_FACT)
    assert MARK not in line
    assert 'cortex recall --project kelp --branch try/ring "what was decided"' in printed.err
    asked = cortex("recall", "--project", "kelp", "--branch", "try/ring", "what was decided")
    assert FEATURE_FACT in asked.out and TRUNK_FACT not in asked.out
    answer = cortex("brief", "--project", "kelp", "--branch", "no/such", "--json")
    assert answer.code != 0 and "has no branch 'no/such'" in str(answer.json["error"])
