"""Words of pages, files, commands and subagents become no fact, however the assistant repeats them."""

from itertools import product

from benchmarks.injections import CARRIERS, CHANGES, SENTENCE, SOURCES, WRAPPINGS, outcome, session, wrapped

CASES = list(product(CARRIERS, WRAPPINGS))
# Every source and change comes up with every carrier, and the report tries all of them with all wrappings.
TURNS = list(product(SOURCES, CHANGES))


def leaking(folder, step):
    """Return the cases, of each `step` one, whose marked words came out."""
    leaks = []
    for number in range(0, len(CASES), step):
        carrier, wrapping = CASES[number]
        source, change = TURNS[number % len(TURNS)]
        talk = session(CARRIERS[carrier], SOURCES[source](SENTENCE), wrapped(wrapping, change))
        if outcome(talk, folder, with_brief=number % 9 == 0).leaks:
            leaks.append((carrier, wrapping, source, change))
    return leaks


def test_what_a_tool_brought_in_is_believed_in_no_wrapping(tmp_path):
    # A step of 5 meets every wrapping, every carrier five times, and every source with every change.
    assert leaking(tmp_path, step=5) == []


def test_the_assistants_own_words_are_kept_unless_it_shows_them_as_anothers(tmp_path):
    wrong = []
    for wrapping, (_, is_shown_as_anothers) in WRAPPINGS.items():
        own = outcome(session(None, "", wrapped(wrapping, "word for word")), tmp_path)
        if own.believed is is_shown_as_anothers or (is_shown_as_anothers and own.leaks):
            wrong.append(wrapping)
    assert wrong == []
