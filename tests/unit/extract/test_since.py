"""A fault that was mended and a proposal are told as what they are, never as what is."""

import pytest

from cortex.transforms.extract.candidate import Candidate
from cortex.transforms.extract.events import session_candidates, threads_by_session
from cortex.transforms.extract.lexicon import Lexicon
from cortex.transforms.words.history_marks import CHANGED_SINCE, PROPOSED
from tests.sessions import call, prompt, session, text

FAULT = "`read_gauge` in `gauge.py` only handles whole numbers and ignores every other reading of the mast."
LASTING = "The mast's logger only supports serial lines, which is why the gauge has a converter in front."


def memories(policy, *said) -> list[Candidate]:
    (threads,) = threads_by_session(session(*said))
    seen = session_candidates(threads, Lexicon.of(policy))
    return [candidate for candidate in seen if candidate.layer.startswith("layer2")]


def texts(policy, *said) -> list[str]:
    return [candidate.text for candidate in memories(policy, *said)]


def edit(path: str, old: str, new: str):
    return call("Edit", path, "updated", file_path=path, old_string=old, new_string=new)


MENDED = edit("/p/gauge.py", "def read_gauge(raw): return int(raw)", "def read_gauge(raw): return float(raw)")
ELSEWHERE = edit("/p/README.md", "Tides", "Tides and gauges")


def test_a_fault_of_code_that_was_edited_afterwards_says_so(policy):
    assert FAULT + CHANGED_SINCE in texts(policy, prompt("Review it"), text(FAULT), prompt("mend it"), MENDED)


@pytest.mark.parametrize(
    "said",
    [
        (prompt("Review it"), text(FAULT), prompt("thanks"), ELSEWHERE),
        (prompt("Mend it"), MENDED, text(FAULT)),
        (prompt("Review it"), text(FAULT)),
    ],
    ids=["another file", "edited before", "never edited"],
)
def test_a_fault_that_nothing_mended_stays_as_it_is(policy, said):
    assert FAULT in texts(policy, *said)


def test_what_holds_of_something_that_is_no_code_here_stays_as_it_is(policy):
    assert LASTING in texts(policy, prompt("Why a converter?"), text(LASTING), prompt("add one"), MENDED)


def test_a_report_of_what_was_mended_is_no_present_fault(policy):
    says = "Fixed in `gauge.py`: `read_gauge` ignored every other reading because it could not read decimals."
    assert not any(CHANGED_SINCE in each for each in texts(policy, prompt("Mend it"), text(says), MENDED))


def test_a_cause_said_before_the_edit_that_answers_it_is_history(policy):
    says = (
        "The issue is that the loader takes the first column for the time, so every tide comes an hour late."
    )
    assert says + CHANGED_SINCE in texts(policy, prompt("Tides come late"), text(says), ELSEWHERE)


@pytest.mark.parametrize(
    ("reply", "edited"),
    [
        (
            "El problema es que `read_gauge` ignora los decimales y por eso faltan lecturas del mareógrafo.",
            True,
        ),
        ("Das Problem ist, dass `read_gauge` Nachkommastellen ignoriert und deshalb Messwerte fehlen.", True),
        ("原因は `read_gauge` が小数を無視しているため、潮位の読み取りが半分失われていることです。", True),
    ],
    ids=["es", "de", "ja"],
)
def test_a_mended_fault_is_history_in_every_language(policy, reply, edited):
    asked = {
        "es": "¿Por qué faltan lecturas?",
        "de": "Warum fehlen Werte?",
        "ja": "なぜ読み取りが失われますか",
    }
    language = "es" if "El " in reply else "de" if "Das" in reply else "ja"
    said = (prompt(asked[language]), text(reply), MENDED)
    assert any(each.endswith(CHANGED_SINCE) for each in texts(policy, *said)) is edited


@pytest.mark.parametrize(
    "says",
    [
        "The cleanest fix is to read the gauge over serial and keep the last reading in the mast's cache.",
        "You could read the gauge over serial, so that the mast's battery lasts through the winter.",
        "Option B: read the gauge over serial, so that the mast's battery lasts through the winter.",
    ],
)
def test_a_proposal_is_called_one_and_is_no_decision(policy, says):
    (proposal,) = [each for each in memories(policy, prompt("How?"), text(says)) if "serial" in each.text]
    assert proposal.text.startswith(PROPOSED)
    assert proposal.memory_type != "decision"


def test_what_was_agreed_on_is_no_proposal(policy):
    says = "Read the gauge over serial?"
    agreed = texts(policy, prompt("How?"), text(says), prompt("yes"))
    assert not any(each.startswith(PROPOSED) for each in agreed)


def test_a_list_under_options_is_a_proposal_whichever_item_it_is(policy):
    says = "We have a few options:\n\n- Poll the gauge every hour\n- Subscribe to the mast's own feed\n"
    proposals = [each for each in memories(policy, prompt("How?"), text(says)) if "mast" in each.text]
    assert proposals
    assert all(each.text.startswith(PROPOSED) for each in proposals)


def test_a_step_that_was_agreed_on_settles_nothing(policy):
    says = "The loader reads decimals now. Shall I run the whole test suite of the gauge and the mast?"
    agreed = memories(policy, prompt("Repair it"), text(says), prompt("yes please"))
    assert not [each for each in agreed if each.layer.endswith(":agreed") and each.memory_type == "decision"]
