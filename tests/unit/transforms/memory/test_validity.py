"""Who may end what: a later word closes what is trusted no more, and only a person what a person said."""

from datetime import timedelta
from itertools import pairwise, product

from hypothesis import example, given, settings
from hypothesis import strategies as st

from cortex.storage.settings.reference import read_policy
from cortex.transforms.memory.fold import fold
from cortex.transforms.memory.link import contrary_rules, edges_between
from cortex.transforms.memory.validity import with_valid_time
from cortex.transforms.schemas import EDGES, JOURNAL, SOURCE_TYPES, TRUSTS, VECTORS
from tests.examples import cases
from tests.rows import START, event, events, memories, memory

POLICY = read_policy(None)
MODEL = "all-MiniLM-L6-v2"
DAY = timedelta(days=1)
WORDS = ("Use npm, not pnpm, in the web folder", "Use pnpm, not npm, in the web folder")


def contradiction(newer, older, rule="rejected_there_chosen_here"):
    """Return the edge between two memories at odds."""
    edge = {"edge_id": newer, "project_id": "reef-1", "source_id": newer, "target_id": older}
    return edge | {"edge_type": "contradicts", "strength": 1.0, "rule": rule}


def ended(rows, *edges):
    """Return which memories no longer hold, all of them still active."""
    known = with_valid_time(rows, EDGES.of(edges), {}, POLICY).to_pylist()
    assert {row["status"] for row in known} == {"active"}
    return {row["memory_id"] for row in known if row["valid_until"] is not None}


def test_what_is_trusted_more_or_said_on_purpose_is_never_ended():
    rows, edges, expected = [], [], set()
    for older, newer, source, rule in product(TRUSTS, TRUSTS, SOURCE_TYPES, contrary_rules(POLICY)):
        pair = f"{older}, {newer}, {source}, {rule}"
        rows.append(memory(f"old {pair}", WORDS[0], trust=older, source_type=source))
        rows.append(memory(f"new {pair}", WORDS[1], trust=newer, updated_at=START + DAY))
        edges.append(contradiction(f"new {pair}", f"old {pair}", rule))
        may_end = TRUSTS.index(older) <= TRUSTS.index(newer) and newer != TRUSTS[0]
        is_on_purpose = source == "explicit" or (source == "code_index" and older == "user")
        if may_end and not is_on_purpose:
            expected.add(f"old {pair}")
    assert ended(memories(*rows), *edges) == expected


@cases("older", TRUSTS)
def test_what_is_pinned_is_never_ended(older):
    rows = memories(
        memory("old", WORDS[0], trust=older, is_pinned=True), memory("new", WORDS[1], updated_at=START + DAY)
    )
    assert ended(rows, contradiction("new", "old")) == set()


said = st.lists(st.tuples(st.sampled_from(TRUSTS), st.sampled_from(WORDS)), min_size=2, max_size=6)


@given(said)
@example([("user", WORDS[0]), ("user", WORDS[1]), ("assistant", WORDS[0])])
@example([("user", WORDS[0]), ("user", WORDS[1]), ("external", WORDS[0])])
@settings(deadline=None)
def test_a_persons_word_holds_until_a_person_says_otherwise_however_often_others_do(sayings):
    rows = events(
        *(
            event(words, trust=trust, event_id=f"e{n}", turn_id=f"t{n}", said_at=START + n * DAY)
            for n, (trust, words) in enumerate(sayings)
        )
    )
    folded = fold(rows, JOURNAL.empty(), POLICY)
    edges = edges_between(folded, VECTORS.empty(), POLICY, MODEL)
    ended = {
        row["text"]
        for row in with_valid_time(folded, edges, {}, POLICY).to_pylist()
        if row["valid_until"] is not None
    }
    of_person = [words for trust, words in sayings if trust == "user"]
    if of_person:
        assert of_person[-1] not in ended
    if any(first != second for first, second in pairwise(of_person)):
        assert ended == set(WORDS) - {of_person[-1]}
