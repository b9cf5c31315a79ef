"""Sessions that say next to nothing are not taken in until they grow (spec 4.6, capture.min_chars)."""

from cortex.transforms.schemas import TURNS
from tests.bench import contents, difference
from tests.transcripts import Talk


def greeted() -> Talk:
    return Talk().user("hi").assistant("Hello! What shall we do?")


def turns(bench) -> int:
    return int(bench.store.lake.read(TURNS).num_rows)


def test_a_greeting_is_not_taken_in_and_leaves_nothing_waiting(bench):
    greeted().write(bench.projects)
    report = bench.backfill()
    assert (turns(bench), report.transcripts, report.quarantined) == (0, 0, [])
    assert bench.store.staging.list_waiting() == []


def test_once_it_has_grown_it_is_taken_in_from_its_first_word(bench, other):
    talk = greeted()
    talk.write(bench.projects)
    bench.begin()
    talk.user("We decided to keep levels in millimetres, because the gauges send whole ones.")
    talk.write(bench.projects)
    bench.backfill()
    talk.write(other.projects)
    other.begin()
    assert turns(bench) == 3
    assert difference(contents(bench.home), contents(other.home)) == {}


def test_what_is_told_on_purpose_may_be_short(bench):
    Talk().user("[MEMORY: gotcha] Gauge 7 drifts.").write(bench.projects)
    bench.begin()
    assert turns(bench) == 1


def test_fifty_characters_are_enough(bench):
    Talk().user("x" * 49).write(bench.projects)
    Talk("s2").user("y" * 50).write(bench.projects)
    bench.begin()
    assert turns(bench) == 1
