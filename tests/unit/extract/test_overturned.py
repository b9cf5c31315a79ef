"""What a later turn takes back, mends or replaces is closed; nothing else is."""

import random

import pytest

from cortex.transforms.extract.candidate import Candidate
from cortex.transforms.extract.events import session_candidates, threads_by_session
from cortex.transforms.extract.lexicon import Lexicon
from cortex.transforms.extract.overturned import with_overturned
from cortex.transforms.extract.select import Budget, confidences, weights_of
from tests.sessions import call, prompt, session, text

INTERVAL = "Decision: the gauge poller uses a POLL_SECONDS = 900 interval, so that the mast's battery lasts."
DYNAMIC = "The station page has scripted offset detection, so that it works on the mast and in the office."


def candidates(policy, *said) -> list[Candidate]:
    (threads,) = threads_by_session(session(*said))
    return session_candidates(threads, Lexicon.of(policy))


def closed(policy, *said) -> dict[str, int]:
    """Return the line that closes each memory, by its text."""
    return {
        candidate.text: candidate.overturned_at
        for candidate in candidates(policy, *said)
        if candidate.memory_type is not None and candidate.overturned_at is not None
    }


def edit(path: str, old: str, new: str, tool: str = "Edit"):
    return call(tool, path, "updated", file_path=path, old_string=old, new_string=new)


def commit(message: str):
    return call("Bash", f"git commit -m '{message}'", f"[main 1a2b3c4] {message}")


def test_a_value_set_otherwise_later_is_closed_where_it_was_set(policy):
    said = [
        prompt("Make the poller slower"),
        text(INTERVAL),
        edit("/p/poller.py", "POLL_SECONDS = 900", "POLL_SECONDS = 3600"),
    ]
    assert closed(policy, *said) == {INTERVAL: 3}


def test_a_value_set_back_again_is_not_closed(policy):
    there = edit("/p/poller.py", "POLL_SECONDS = 900", "POLL_SECONDS = 3600")
    back = edit("/p/poller.py", "POLL_SECONDS = 3600", "POLL_SECONDS = 900")
    assert closed(policy, prompt("Make the poller slower"), text(INTERVAL), there, back) == {}


def test_a_value_that_only_occurs_is_not_closed(policy):
    says = "The root cause: the mast sends 900 readings a day and the poller keeps POLL_SECONDS apart."
    change = edit("/p/poller.py", "POLL_SECONDS = 900", "POLL_SECONDS = 3600")
    assert closed(policy, prompt("Why?"), text(says), change) == {}


HELPER = "The mast's page is built by `render_mast_page`, so that the office sees what the harbour sees."


def test_what_is_said_of_a_function_that_was_taken_out_is_closed(policy):
    gone = edit("/p/page.py", "def render_mast_page(mast):\n    return mast", "")
    assert closed(policy, prompt("How?"), text(HELPER), prompt("simpler"), gone) == {HELPER: 4}


def test_a_function_that_was_moved_is_not_gone(policy):
    gone = edit("/p/page.py", "def render_mast_page(mast):\n    return mast", "")
    back = edit("/p/mast.py", "", "def render_mast_page(mast):\n    return mast")
    assert closed(policy, prompt("How?"), text(HELPER), prompt("move it"), gone, back) == {}


def test_what_a_commit_removes_is_closed(policy):
    said = [prompt("Look"), text(DYNAMIC), prompt("simpler"), commit("Remove scripted offset detection")]
    assert closed(policy, *said) == {DYNAMIC: 4}


def test_what_says_itself_that_a_thing_has_gone_stays(policy):
    says = "Decision: scripted offset detection is removed, because two requests fail with it."
    said = [prompt("Look"), text(says), prompt("yes"), commit("Remove scripted offset detection")]
    assert says not in closed(policy, *said)


def test_a_person_is_not_closed_by_the_assistant(policy):
    says = "We should keep the scripted offset detection on the station page."
    assert closed(policy, prompt(says), commit("Remove scripted offset detection")) == {}


def test_a_fault_stays_when_the_thing_that_had_it_goes(policy):
    says = "The root cause: scripted offset detection reads the office clock before the mast has answered."
    assert closed(policy, prompt("Why?"), text(says), commit("Remove scripted offset detection")) == {}


def test_a_name_that_was_kept_and_then_taken_out_is_closed(policy):
    says = "Decision: keep `read_mast_twice` for now, it could be useful when the gauge freezes."
    change = edit("/p/gauge.py", "def read_mast_twice():\n    pass", "# nothing")
    assert closed(policy, prompt("Clean up"), text(says), change) == {says: 3}


def test_a_name_that_was_moved_is_not_closed(policy):
    says = "Decision: keep `read_mast_twice` for now, it could be useful when the gauge freezes."
    out = edit("/p/gauge.py", "def read_mast_twice():\n    pass", "# nothing")
    into = edit("/p/mast.py", "# empty", "def read_mast_twice():\n    pass")
    assert closed(policy, prompt("Clean up"), text(says), out, into) == {}


@pytest.mark.parametrize(
    ("says", "does"),
    [
        ("The changes to the gauge loader are not yet committed.", commit("Add the loader")),
        ("Everything about the tide table is ready to push.", call("Bash", "git push", "main -> main")),
        (
            "The heading in `tide-table.md` still says millimetres.",
            edit("/p/tide-table.md", "millimetres", "centimetres"),
        ),
    ],
)
def test_what_was_still_to_do_is_closed_once_it_is_done(policy, says, does):
    assert closed(policy, prompt("How far are we?"), text(says), does) == {says: 3}


def test_what_is_still_to_do_stays(policy):
    says = "The changes to the gauge loader are not yet committed."
    assert closed(policy, prompt("How far are we?"), text(says), call("Bash", "git status", "clean")) == {}


def test_a_claim_taken_back_in_the_next_answer_is_closed(policy):
    wrong = "The offsets leak into every station of the harbour, which is why the root cause is the poller."
    said = [
        prompt("Why are the stations wrong?"),
        text(wrong),
        prompt("but every station has offsets of its own, or not?"),
        text("You're right, I overstated that: offsets do not leak into every station of the harbour."),
    ]
    assert closed(policy, *said)[wrong] == 4


def test_closing_does_not_depend_on_the_order_of_candidates(policy):
    said = [
        prompt("Look"),
        text(INTERVAL),
        text(DYNAMIC),
        edit("/p/a.py", "POLL_SECONDS = 900", "POLL_SECONDS = 60"),
    ]
    said.append(commit("Remove scripted offset detection"))
    (threads,) = threads_by_session(session(*said))
    lexicon = Lexicon.of(policy)
    seen = candidates(policy, *said)
    shuffled = random.Random(7).sample(seen, len(seen))
    again = {c.text: c.overturned_at for c in with_overturned(shuffled, threads[0], lexicon)}
    assert again == {c.text: c.overturned_at for c in seen}


def test_nothing_said_afterwards_opens_what_was_closed(policy):
    said = [prompt("Look"), text(DYNAMIC), prompt("simpler"), commit("Remove scripted offset detection")]
    grown = [*said, prompt("thanks"), text("The tide table is printed in centimetres from now on.")]
    assert closed(policy, *grown)[DYNAMIC] == closed(policy, *said)[DYNAMIC]


def test_a_closed_candidate_is_never_shown(policy):
    said = [prompt("Look"), text(INTERVAL), edit("/p/a.py", "POLL_SECONDS = 900", "POLL_SECONDS = 60")]
    seen = candidates(policy, *said)
    budget = Budget.of(policy)
    given = dict(zip((c.text for c in seen), confidences(seen, budget, weights_of(policy)), strict=True))
    assert given[INTERVAL] < budget.least_shown


def test_a_proposal_that_nobody_answered_is_no_decision(policy):
    says = "I recommend that we switch the gauge from polling to webhooks. Should I do that instead?"
    seen = candidates(policy, prompt("What next?"), text(says))
    proposals = [c.memory_type for c in seen if c.signals.get("is_open_proposal")]
    assert proposals and "decision" not in proposals


def test_a_claim_is_unconfirmed_until_a_check_passes(policy):
    says = "The root cause is that the loader drops the last column of the tide table."
    check = call("Bash", "pytest -q", "3 passed")

    def marks(*said):
        return [c.signals.get("is_unconfirmed") for c in candidates(policy, *said) if c.text == says]

    assert marks(prompt("Why?"), text(says)) == [1.0]
    assert marks(prompt("Why?"), text(says), check) == [None]
