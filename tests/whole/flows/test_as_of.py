"""Looking at an earlier day shows what the store would say had nothing been said since (spec 8.5)."""

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cortex.flows.engines import runs
from cortex.flows.operations.ask.sql import query_tables
from cortex.flows.past.as_of import as_of
from cortex.flows.publishing.briefs import archive_of, brief_of
from cortex.flows.recalling.recall_search import search_store
from cortex.storage.settings.reference import read_policy
from cortex.storage.store import start_of_day
from cortex.transforms.errors import UsageError
from cortex.transforms.schemas import GLOBAL_SCOPE
from tests.bench import NOW, SAMPLES, Bench, WordEmbedder, here
from tests.present import clock_at
from tests.transcripts import START, Talk, decisions

# Whole runs, two seconds each: together too long for the quick suite.

DAY = timedelta(days=1)
QUESTION = "How are the harvest records and levels kept?"


def seen(tables, bench: Bench, run, now) -> dict[str, object]:
    """Return all that can be seen of tables: their rows, briefs, archives, answers."""
    scopes = [
        p.project_id for p in bench.store.projects.all() if tables.open(p.project_id, "memories").count()
    ]
    told: dict[str, object] = {
        f"{scope}/{name}": tables.open(scope, name).read().to_pylist()
        for scope in [*scopes, GLOBAL_SCOPE]
        for name in ("memories", "edges", "passages")
    }
    run.store.tables = tables
    told |= {f"{scope}/brief": brief_of(run, scope) for scope in scopes}
    told |= {f"{scope}/archive": archive_of(run, scope) for scope in scopes}
    told["recall"] = search_store(
        tables,
        QUESTION,
        scopes=[*scopes, GLOBAL_SCOPE],
        policy=read_policy(bench.home),
        embedder=WordEmbedder(),
        limit=10,
    )
    return {name: rows for name, rows in told.items() if rows}


def live(bench: Bench, now) -> dict[str, object]:
    run = runs.read_only_run(bench.at(now))
    return seen(bench.store.tables, bench, run, now)


def looked_at(bench: Bench, day, now=NOW) -> dict[str, object]:
    run = runs.read_only_run(bench.at(now))
    made = as_of(run, day, run.readings.scopes(), searchable=True)
    return seen(made.store.tables, bench, made, made.now)


def test_as_of_today_equals_live(bench):
    bench.backfill(SAMPLES)
    assert looked_at(bench, start_of_day(NOW)) == live(bench, NOW)


def test_as_of_a_day_equals_the_store_that_had_seen_no_more(bench, other):
    day = start_of_day(START) + DAY
    # One session of the day, one that goes on over midnight, one of the day after.
    decisions("s1").write(bench.projects)
    evening = day + DAY - timedelta(microseconds=1)
    begun = day + timedelta(hours=23, minutes=57)
    whole, half = decisions("s2", start=begun), Talk("s2", start=begun)
    half.records = [r for r in whole.records if r["timestamp"] < f"{day + DAY:%Y-%m-%d}"]
    half.write(bench.projects)
    other.backfill(now=evening)
    expected = live(other, evening)
    whole.write(bench.projects)
    decisions("s3", start=day + 2 * DAY).write(bench.projects)
    bench.begin()
    assert looked_at(bench, day) == expected


def test_a_backfill_of_today_shows_what_was_true_last_month(bench):
    decisions("s1").write(bench.projects)
    decisions("s2", start=START + 20 * DAY).write(bench.projects)
    bench.backfill(now=NOW)
    made = looked_at(bench, start_of_day(START) + DAY)
    texts = [row["text"] for name, rows in made.items() if name.endswith("/memories") for row in rows]
    assert any("s1" in text for text in texts)
    assert not any("s2" in text for text in texts)


def test_what_was_forgotten_since_is_in_no_look_back(bench):
    word = "quagsireplum"
    fact = f"[MEMORY: decision] The {word} gauge reports every six minutes because batteries are small."
    decisions("s1").user("And the gauge?").assistant(fact).write(bench.projects)
    bench.begin()
    day = start_of_day(START)
    assert word in str(looked_at(bench, day))
    [memory] = [row for row in bench.memories() if word in row["text"]]
    with clock_at(NOW):
        here().forget(memory["memory_id"])
    assert word not in str(looked_at(bench, day))


def test_before_the_first_word_there_is_nothing(bench):
    decisions("s1").write(bench.projects)
    bench.begin()
    assert looked_at(bench, start_of_day(START) - DAY) == {}


def test_projects_merged_today_are_one_in_every_look_back(bench):
    decisions("s1").write(bench.projects)
    decisions("s2", cwd="/home/dev/reef").write(bench.projects)
    bench.begin()
    with clock_at(NOW):
        here().merge_projects("reef", "kelp")
    texts = str(looked_at(bench, start_of_day(START)))
    assert "s1 writes levels" in texts and "s2 writes levels" in texts


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    days=st.lists(st.integers(0, 2), min_size=1, max_size=3),
    looked=st.integers(0, 2),
)
def test_fed_in_order_every_day_is_what_the_store_said_that_evening(tmp_path_factory, days, looked):
    place = tmp_path_factory.mktemp("ordered")
    bench = Bench(place / "home", place / "projects")
    evenings: dict[int, dict[str, object]] = {}
    for day in range(3):
        for number, begun in enumerate(days):
            if begun == day:
                decisions(f"s{number}", start=START + day * DAY).write(bench.projects)
        evening = start_of_day(START) + (day + 1) * DAY - timedelta(microseconds=1)
        if bench.projects.is_dir():
            bench.backfill(now=evening)
            evenings[day] = live(bench, evening)
    expected = evenings.get(looked, {})
    assert looked_at(bench, start_of_day(START) + looked * DAY) == expected


# The commands


@pytest.fixture
def store(bench):
    decisions("s1").write(bench.projects)
    decisions("s2", start=START + 20 * DAY).write(bench.projects)
    bench.begin()
    with clock_at(NOW):
        yield bench


def test_sql_as_of_a_day_sees_that_days_tables_and_no_file(store):
    def rows(query):
        return query_tables(store.context, query, as_of=f"{START:%Y-%m-%d}").rows

    for name in ("turns", "events", "memories", "metrics"):
        assert rows(f"select count(*) from {name}")[0][0] > 0
    assert rows("select count(*) from turns where said_at > '2026-09-02'") == ((0,),)
    with pytest.raises(UsageError, match="no other file"):
        rows("from read_csv('/etc/hostname')")


def test_recall_as_of_a_day_reinforces_nothing(store):
    before = store.store.journal.read().num_rows
    for word, count in (("s1", True), ("s2", False)):
        recalled = here().recall(f"harvest records {word}", project="kelp", as_of=f"{START:%Y-%m-%d}")
        assert any(f"{word} " in match.text for match in recalled.matches) == count
    assert store.store.journal.read().num_rows == before


def test_export_as_of_a_day_holds_that_days_memories(store):
    out = here().export(form="markdown", project="kelp", as_of=f"{START:%Y-%m-%d}").text
    assert "s1 writes levels" in out and "s2" not in out
