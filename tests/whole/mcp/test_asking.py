"""What a person is asked: which of several was meant, and whether a lesson may contradict a decision."""

import pytest

from cortex.flows.operations.edit.review import plan_merges
from tests.protocol import BOTH
from tests.store.mcp.test_tools import error_of

PORT = "The tide gauge listens on port 8080."
OTHER_PORT = "The tide gauge listens on port 9090."


def texts(assistant):
    return [row[0] for row in assistant.data("query", sql="select text from memories order by text")["rows"]]


@pytest.mark.parametrize("mode", BOTH)
def test_a_lesson_is_stored_as_the_assistants_word_and_comes_back_with_its_id(learner, mode):
    learner.mode = mode
    learned = learner.data("learn", text=PORT, type="decision", evidence=["src/gauge.py"])
    assert learned["outcome"] == "learned" and learned["in_effect"]
    [whole] = learner.data("recall", question=learned["id"])["results"]
    assert (whole["text"], whole["trust"], whole["files"]) == (PORT, "assistant", ["src/gauge.py"])
    assert learner.data("learn", text=PORT, type="decision")["outcome"] == "reinforced"
    assert texts(learner) == [PORT]


@pytest.mark.parametrize("mode", BOTH)
def test_a_lesson_against_a_decision_is_kept_only_if_the_person_says_so(learner, mode):
    learner.mode = mode
    old = learner.data("learn", text=PORT, type="decision")["id"]
    refused = error_of(learner.call("learn", text=OTHER_PORT, type="decision"))
    assert refused["code"] == "CORTEX_E402" and texts(learner) == [PORT]
    for answer in ("", "leave", "made up"):
        learner.chooses = answer
        assert error_of(learner.call("learn", text=OTHER_PORT, type="decision"))["code"] == "CORTEX_E402"
        assert texts(learner) == [PORT]
    learner.chooses = "anyway"
    kept = learner.data("learn", text=OTHER_PORT, type="decision")
    assert kept["contradicts"] == [old] and texts(learner) == [PORT, OTHER_PORT]
    assert len(learner.questions) == 4 and PORT in learner.questions[0].message


def test_a_lesson_takes_the_place_of_a_decision_if_the_person_says_so(learner):
    old = learner.data("learn", text=PORT, type="decision")["id"]
    learner.chooses = "replace"
    new = learner.data("learn", text=OTHER_PORT, type="decision")
    assert new["contradicts"] == []
    [row] = learner.data(
        "query", sql=f"select status, superseded_by from memories where memory_id = '{old}'"
    )["rows"]
    assert row == ["superseded", new["id"]]


def test_the_words_of_a_person_are_not_reworded_by_the_assistant(learner):
    from cortex.flows.operations.edit.remember import remember

    own = "Bollards in the north basin are painted white."
    remember(learner.context, own)
    learner.data("learn", text="Bollards in the north basin are painted white with lead paint by Kofi.")
    rows = learner.data("query", sql="select text, trust from memories order by trust")["rows"]
    assert [own, "user"] in rows and len(rows) == 2


def test_what_a_person_replaced_is_not_brought_back_by_the_assistant(learner):
    from cortex.flows.operations.edit.remember import remember, supersede

    context = learner.context
    old = remember(context, PORT, memory_type="decision").memory_id
    new = remember(context, "The tide gauge is read over a serial line.", memory_type="decision").memory_id
    supersede(context, old, new)
    assert error_of(learner.call("learn", text=PORT, type="decision"))["code"] == "CORTEX_E402"


def two_about_auth(assistant):
    return [
        assistant.data("learn", text=text, type="decision")["id"]
        for text in (
            "Auth of the harbour site uses signed cookies.",
            "Auth between buoys is a shared key per mast.",
        )
    ]


@pytest.mark.parametrize("mode", BOTH)
def test_a_word_that_means_several_decisions_is_asked_about(learner, mode):
    learner.mode = mode
    cookies, keys = two_about_auth(learner)
    undecided = learner.data("infer", target="auth")
    assert undecided["chain"] == [] and {o["id"] for o in undecided["options"]} == {
        cookies[:12], keys[:12], "all"
    }  # fmt: skip
    assert {each["id"] for each in learner.data("infer", target="auth", all=True)["chain"]} == {cookies, keys}
    learner.chooses = keys[:12]
    assert [each["id"] for each in learner.data("infer", target="auth")["chain"]] == [keys]
    learner.chooses = "all"
    assert len(learner.data("infer", target="auth")["chain"]) == 2
    learner.chooses = ""
    assert learner.data("infer", target="auth")["chain"] == []


def test_recall_in_full_asks_which_of_several_is_meant(learner):
    cookies, _ = two_about_auth(learner)
    listed = learner.data("recall", question="auth", detail="full")
    assert len(listed["results"]) == 2 and len(listed["options"]) == 3
    learner.chooses = cookies[:12]
    [whole] = learner.data("recall", question="auth", detail="full")["results"]
    assert whole["id"] == cookies


def test_a_consolidation_is_planned_first_and_its_plan_alone_is_carried_out(learner):
    empty = learner.data("learn", text=PORT, type="decision")
    assert empty["id"]
    plan = learner.data("consolidate")
    assert plan["is_done"] is False and plan["merges"] == []
    assert plan["plan"] == plan_merges(learner.context).plan_id
    assert error_of(learner.call("consolidate", plan="0123456789abcdef"))["code"] == "CORTEX_E207"
    assert learner.data("consolidate", plan=plan["plan"])["is_done"] is True
