"""Decisions that a project makes twice, and what it turned down and proposes again."""

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex.storage.settings.reference import read_policy
from cortex.transforms.views.metrics import metrics_since, repeats_of, session_metrics
from tests.examples import cases
from tests.rows import START, event, events, turn, turns

POLICY = read_policy(None)
NEXT_DAY = START + timedelta(days=1)


def repeated(earlier, later, *, kinds=("DECISION_MADE", "DECISION_MADE"), sessions=("a", "b"), **of_earlier):
    """Return which repeats a decision of session b is, given one that session a made a day before."""
    rows = events(
        event(earlier, event_id="e1", session_id=sessions[0], event_type=kinds[0], **of_earlier),
        event(
            later,
            event_id="e2",
            session_id=sessions[1],
            event_type=kinds[1],
            said_at=NEXT_DAY,
        ),
    )
    return [
        "proposed" if row["is_re_proposal"] else "repeated" for row in repeats_of(rows, POLICY).to_pylist()
    ]


@cases(
    ("earlier", "later"),
    [
        ("SQLite holds the readings of every station", "We keep the readings of every station in SQLite."),
        (
            "We use PostgreSQL for the invoice store because of JSON columns.",
            "PostgreSQL stores the invoices.",
        ),
        ("Chose FastAPI over Flask for the API.", "The API uses FastAPI instead of Django."),
        ("Levels are whole millimetres.", "Let's store levels as whole millimetres (floats drift)."),
        ("Retries stop after 3 attempts.", "Stop retries after 3 attempts → Done, the loop ends there."),
    ],
)
def test_a_decision_in_other_words_is_the_same_decision(earlier, later):
    assert repeated(earlier, later) == ["repeated"]
    assert repeated(earlier, later, sessions=("a", "a")) == []


@cases(
    ("earlier", "later"),
    [
        ("SQLite holds the readings of every station", "PostgreSQL holds the readings of every station"),
        ("SQLite holds the readings", "SQLite holds the invoices"),
        ("Retries stop after 3 attempts.", "Retries stop after 5 attempts."),
        ("Enable the cache by default.", "Disable the cache by default."),
        ("Use SQLite.", "SQLite is in the image now."),
        ("Store readings as a queue", "Store readings as a file"),
    ],
)
def test_another_value_or_subject_is_another_decision(earlier, later):
    assert repeated(earlier, later) == []


@cases(
    ("earlier", "later"),
    [
        ("MongoDB for the invoice store: no transactions.", "Use MongoDB for the invoice store."),
        ("Rejected: web socket for Acme, too chatty", "Acme is polled through a web socket"),
        ("MongoDB was ruled out because it has no transactions.", "Invoices move to MongoDB."),
        ("No global state in the parser", "The parser keeps global state between files."),
    ],
)
def test_what_was_turned_down_and_is_chosen_later_is_proposed_again(earlier, later):
    assert repeated(earlier, later, kinds=("APPROACH_REJECTED", "DECISION_MADE")) == ["proposed"]


def test_what_a_choice_left_behind_is_turned_down_too():
    assert repeated("Chose FastAPI over Flask.", "Flask serves the API.") == ["proposed"]
    assert repeated("Use FastAPI.", "Flask serves the API.", rejected="Flask") == ["proposed"]


@pytest.mark.parametrize(
    "later",
    ["Still no MongoDB for the invoices.", "PostgreSQL instead of MongoDB for the invoice store."],
)
def test_who_turns_it_down_once_more_proposes_nothing(later):
    assert (
        repeated(
            "MongoDB for the invoice store: no transactions.",
            later,
            kinds=("APPROACH_REJECTED", "DECISION_MADE"),
        )
        == []
    )


def test_the_figures_of_a_session_count_them():
    rows = events(
        event("SQLite holds the levels", event_id="e1", session_id="a"),
        event("MongoDB for levels", event_id="e2", session_id="a", event_type="APPROACH_REJECTED"),
        event("Levels are kept in SQLite", event_id="e3", session_id="b", said_at=NEXT_DAY),
        event("Move levels to MongoDB", event_id="e4", session_id="b", said_at=NEXT_DAY),
    )
    said = turns(turn(1, session_id="a"), turn(2, session_id="b", said_at=NEXT_DAY))
    [_, second] = session_metrics(said, rows, POLICY).to_pylist()
    assert (second["decisions"], second["duplicate_decisions"], second["re_proposals"]) == (2, 1, 1)


SAID = ("Chose Redis over Memcached for the cache", "The cache uses Memcached", "We keep the cache in Redis")
histories = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 6), st.sampled_from(SAID), st.booleans()), max_size=14
)


def _spoken(history):
    """Return turns and events of a history: who says when what, and whether they turn it down."""
    places = [
        {"session_id": f"s{name}", "said_at": START + timedelta(hours=12 * name + 4 * place)}
        for name, place, _, _ in history
    ]
    spoken = [turn(line, **place) for line, place in enumerate(places)]
    decided = []
    for (name, place, text, is_rejection), where in zip(history, places, strict=True):
        kind = "APPROACH_REJECTED" if is_rejection else "DECISION_MADE"
        names = {"event_id": f"{name}-{place}-{text}-{kind}", "turn_id": f"{name}-{place}"}
        decided.append(event(text, event_type=kind, **names, **where))
    return spoken, list({row["event_id"]: row for row in decided}.values())


@settings(deadline=None)
@given(histories, histories, st.sets(st.integers(0, 4), max_size=2))
def test_figures_counted_in_part_are_those_counted_of_all(before, after, lost):
    """Sessions go on, and some no longer decide what they decided (`lost`)."""
    (spoken, decided), (more, fresh) = _spoken(before), _spoken(after)
    kept = {row["event_id"]: row for row in decided if int(row["session_id"][1:]) not in lost}
    all_turns = turns(*spoken, *more)
    all_events = events(*{**kept, **{row["event_id"]: row for row in fresh}}.values())
    changed = {f"s{name}" for name in {*lost, *(name for name, *_ in after)}}
    earlier = session_metrics(turns(*spoken), events(*decided), POLICY)
    part = metrics_since(earlier, changed, all_turns, all_events, POLICY)
    assert part.to_pylist() == session_metrics(all_turns, all_events, POLICY).to_pylist()


PIECES = ("reli", "relying", "rely", "c++.x", "dying", "dies", "no-op", "_hoping", "hope’s", "(asked)")
SIGNS = (" ", ", ", ".", "(", ")", "-", "/", " not ", " instead of ", ": ", "; not: ", "_", "'")
parts = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(SIGNS)), min_size=1, max_size=6)
texts = parts.map(lambda pairs: "".join(word + sign for word, sign in pairs))


@settings(deadline=None)
@given(st.lists(st.tuples(texts, st.booleans(), st.one_of(st.none(), texts)), min_size=2, max_size=5))
def test_what_one_session_repeats_needs_no_other_decisions_than_are_parsed(decided):
    """Wherever a clause is cut out of a text: only what may have a word of the session is parsed."""
    kinds = ("DECISION_MADE", "APPROACH_REJECTED")
    rows = events(
        *(
            event(
                text,
                event_id=f"e{number}",
                session_id=f"s{number}",
                event_type=kinds[is_rejection],
                rejected=rejected,
                said_at=START + timedelta(days=number),
            )
            for number, (text, is_rejection, rejected) in enumerate(decided)
        )
    )
    last = f"e{len(decided) - 1}"
    whole = [row for row in repeats_of(rows, POLICY).to_pylist() if row["event_id"] == last]
    assert repeats_of(rows, POLICY, {f"s{len(decided) - 1}"}).to_pylist() == whole
