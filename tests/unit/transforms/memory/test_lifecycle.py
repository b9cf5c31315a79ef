"""Ageing: the SQL against a plain Python oracle, and the laws of decay, archiving, centrality and rank."""

import math
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import permutations
from operator import itemgetter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex.storage.settings.reference import read_policy
from cortex.transforms.memory.lifecycle import ACTIVITY, WEAK, age, sessions_of
from cortex.transforms.schemas import EDGE_TYPES, EDGES, MEMORIES, MEMORY_TYPES
from tests.examples import examples
from tests.rows import at, memories, memory, turn, turns

POLICY = read_policy(None)
NONE = EDGES.empty()
NOW = at("2026-09-01")
QUICK = settings(max_examples=examples(25), deadline=None)


def edge(source, target, edge_type="refines"):
    return {
        "edge_id": f"{source}-{target}-{edge_type}",
        "project_id": "reef-1",
        "source_id": source,
        "target_id": target,
        "edge_type": edge_type,
        "strength": 0.5,
        "rule": "similarity",
    }


DAILY = [at("2026-01-01") + timedelta(days=n) for n in range(4_000)]


def worked(days, *scopes):
    """Return the activity of scopes on each of `days`."""
    rows = [{"project_id": scope, "active_at": day} for scope in scopes or ("reef-1",) for day in days]
    return pa.Table.from_pylist(rows, schema=ACTIVITY)


def weak(**since):
    rows = [{"memory_id": name, "weak_since": instant} for name, instant in since.items()]
    return pa.Table.from_pylist(rows, schema=WEAK)


def ageing(rows, now=NOW, edges=(), days=DAILY, found=None):
    scopes = sorted({row["project_id"] for row in rows})
    activity = worked([day for day in days if day <= now], *scopes)
    known = weak() if found is None else found
    return age(memories(*rows), EDGES.of(list(edges)), POLICY, now, activity=activity, weak=known)


def aged(rows, now=NOW, edges=(), **chosen):
    return {row["memory_id"]: row for row in ageing(rows, now, edges, **chosen).memories.to_pylist()}


def progress(name="m1", **chosen):
    return memory(name, memory_type="progress", updated_at=at("2026-08-01"), **chosen)


def test_one_half_life_leaves_half_the_confidence():
    assert aged([progress(initial_confidence=0.8)], now=at("2026-08-08"))["m1"]["confidence"] == 0.4


def test_all_columns_but_those_of_time_come_through_unchanged_and_ordered():
    rows = [memory("b", evidence=[], tags=["sqlite"]), memory("a", text="Cache for an hour")]
    made = ageing(rows).memories
    assert made.schema.equals(MEMORIES.arrow)
    assert made["memory_id"].to_pylist() == ["a", "b"]
    changed = {"confidence", "status", "archived_at", "centrality", "rank"}
    kept = [name for name in made.column_names if name not in changed]
    assert made.select(kept).equals(memories(*rows).sort_by("memory_id").select(kept))


def test_no_memories_age_to_no_memories():
    assert ageing([]).memories.equals(MEMORIES.empty())


def test_archived_at_is_the_moment_it_happened_whenever_the_run_was():
    row, found = progress(initial_confidence=0.2), weak(m1=at("2026-08-01"))
    for day in ("2026-08-15", "2026-08-20", "2026-09-10"):
        assert aged([row], now=at(day), found=found)["m1"]["archived_at"] == at("2026-08-15")


def test_days_of_grace_begin_when_a_run_found_it_weak_and_never_before():
    row = progress(initial_confidence=0.2)
    assert aged([row], now=at("2028-01-01"))["m1"]["status"] == "active"
    found = weak(m1=at("2028-01-01"))
    assert aged([row], now=at("2028-01-14"), found=found)["m1"]["status"] == "active"
    assert aged([row], now=at("2028-01-15"), found=found)["m1"]["status"] == "archived"


def test_nothing_grows_older_while_nobody_works_on_its_project():
    rows = [progress(initial_confidence=0.8), memory("m2", memory_type="gotcha", updated_at=at("2026-07-01"))]
    days = [day for day in DAILY if day <= at("2026-08-08")]
    found = weak(m2=at("2026-08-08"))
    then = ageing(rows, now=at("2026-08-08"), found=found)
    for later in ("2026-10-08", "2031-08-08"):
        made = ageing(rows, now=at(later), days=days, found=found)
        assert made.memories.equals(then.memories)
        assert made.marks.equals(then.marks)


def test_a_pause_costs_three_days_whatever_its_length():
    row = progress(initial_confidence=0.8)
    before = [day for day in DAILY if day <= at("2026-08-05")]
    for back in ("2026-10-04", "2028-10-04"):
        [made] = ageing([row], now=at(back), days=[*before, at(back)]).memories.to_pylist()
        assert made["confidence"] == 0.4  # four days before, three of the pause


def test_where_nobody_ever_worked_nothing_ages():
    row = progress(initial_confidence=0.8)
    assert aged([row], now=at("2030-01-01"), days=())["m1"]["confidence"] == 0.8


def test_what_is_due_is_marked_and_not_pruned():
    row, found = progress(initial_confidence=0.2), weak(m1=at("2026-08-01"))
    for day, is_due in (("2026-09-13", False), ("2026-09-14", True)):
        made = ageing([row], now=at(day), found=found)
        assert made.marks["is_due"].to_pylist() == [is_due]
        assert made.memories["status"].to_pylist() == ["archived"]


def test_a_pinned_memory_outlives_everything():
    row = progress(initial_confidence=0.05, is_pinned=True)
    assert aged([row], now=at("2036-01-01"))["m1"]["status"] == "active"


def test_age_does_not_go_backwards_before_the_first_word():
    row = progress(initial_confidence=0.8)
    assert aged([row], now=at("2020-01-01"))["m1"]["confidence"] == 0.8


@pytest.mark.parametrize("limit", ["0", "0.000001"])
def test_a_limit_of_nothing_archives_nothing(tmp_path, limit):
    (tmp_path / "policy").mkdir()
    own = f"name,value,unit,why\narchive_below_confidence,{limit},fraction,keep\n"
    (tmp_path / "policy" / "thresholds.csv").write_text(own, encoding="utf-8")
    policy = read_policy(tmp_path)
    row = memory("m1", memory_type="pattern", initial_confidence=1.0)
    now = at("2027-01-01")
    made = age(memories(row), NONE, policy, now, activity=worked(DAILY), weak=weak(m1=at("2026-02-01")))
    assert made.memories["status"].to_pylist() == ["active"]


# --- the oracle: the same rules as the SQL, one memory at a time

instants = st.integers(0, 400 * 24).map(
    lambda hours: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=hours)
)
names = st.sampled_from([f"m{n}" for n in range(8)])
rows = st.builds(
    dict,
    memory_type=st.sampled_from(MEMORY_TYPES),
    project_id=st.sampled_from(["p", "q", "global"]),
    status=st.sampled_from(["active", "active", "active", "archived", "superseded", "pruned"]),
    is_pinned=st.booleans(),
    priority=st.integers(1, 10),
    initial_confidence=st.sampled_from([0.0, 0.1, 0.29, 0.3, 0.31, 0.5, 0.8, 1.0]),
    access_count=st.sampled_from([0, 1, 10, 11, 500]),
    updated_at=instants,
    last_accessed_at=st.none() | instants,
    archived_at=instants,
    merged_into=st.none() | st.just("m9"),
)
stores = st.dictionaries(names, rows, max_size=8)
links = st.lists(st.tuples(names, names, st.sampled_from(EDGE_TYPES)), max_size=20, unique=True)


def table(store):
    made = []
    for name, row in store.items():
        is_closed = row["status"] != "active"
        made.append(
            memory(name)
            | row
            | {
                "archived_at": row["archived_at"] if is_closed else None,
                "merged_into": row["merged_into"] if row["status"] == "archived" else None,
            }
        )
    return made


def expected_centrality(store, pairs):
    degrees = Counter()
    for source, target, edge_type in pairs:
        if source != target:
            degrees[target] += 1
            degrees[source] += edge_type in ("relates_to", "contradicts")
    highest = Counter()
    for name, row in store.items():
        highest[row["project_id"]] = max(highest[row["project_id"]], degrees[name])
    return {name: degrees[name] / max(highest[row["project_id"]], 1) for name, row in store.items()}


def worked_until(instant, days):
    """Return the microseconds for which a clock had run at an instant, gaps of more than three days cut."""
    total = timedelta()
    for day, after in zip(days, [*days[1:], days[-1]] if days else [], strict=True):
        if instant < day:
            break
        total += min(instant - day, after - day, timedelta(days=3))
    return total


def expected_life(row, centrality, now, days, since):
    """Return (confidence, status, is_weak, is_due) of one row, in the words of spec 8.1 and 8.2."""
    half_life = POLICY.rows["memory_types"][(row["memory_type"],)]["half_life_days"]
    if row["is_pinned"]:
        half_life = None
    if half_life is not None:
        half_life *= 2 if row["access_count"] > 10 else 1
        half_life *= 2 if centrality > 0.5 else 1
    passed = (worked_until(now, days) - worked_until(row["updated_at"], days)).total_seconds() / 86400
    confidence = row["initial_confidence"] * (0.5 ** (max(passed, 0) / half_life) if half_life else 1)
    is_kept = row["is_pinned"] or (row["status"] == "archived" and row["merged_into"])
    if row["status"] in ("superseded", "pruned"):
        return confidence, row["status"], False, False
    is_weak = confidence < 0.3 and not is_kept
    if row["status"] == "archived":
        rested = row["archived_at"]
    else:
        rested = since if is_weak and since and since >= min(row["updated_at"], now) else None
    if rested is None:
        return confidence, "active", is_weak, False
    rested = max(rested, row["last_accessed_at"] or rested)
    idle = worked_until(now, days) - worked_until(rested, days)
    if row["status"] == "archived":
        return confidence, "archived", is_weak, not is_kept and idle >= timedelta(days=30)
    status = "archived" if idle >= timedelta(days=14) else "active"
    return confidence, status, is_weak, idle >= timedelta(days=44)


workdays = st.lists(instants, max_size=12, unique=True).map(sorted)
sightings = st.dictionaries(names, instants, max_size=8)


@QUICK
@given(stores, links, instants, workdays, sightings)
def test_sql_and_a_plain_python_oracle_agree(store, pairs, now, days, since):
    given_rows = table(store)
    days = [day for day in days if day <= now]
    made = ageing(given_rows, now, [edge(*pair) for pair in pairs], days=days, found=weak(**since))
    found = {row["memory_id"]: row for row in made.memories.to_pylist()}
    marks = {row["memory_id"]: row for row in made.marks.to_pylist()}
    centrality = expected_centrality(store, pairs)
    for row in given_rows:
        name = row["memory_id"]
        confidence, status, is_weak, is_due = expected_life(row, centrality[name], now, days, since.get(name))
        assert found[name]["centrality"] == pytest.approx(centrality[name])
        assert found[name]["confidence"] == pytest.approx(confidence)
        assert (found[name]["status"], marks[name]["is_due"]) == (status, is_due)
        assert marks[name]["is_weak"] == is_weak
        most = max(
            math.log(r["access_count"] + 1) for r in given_rows if r["project_id"] == row["project_id"]
        )
        rank = 0.5 * confidence + 0.2 * row["priority"] / 10 + 0.15 * centrality[name]
        rank += 0.15 * math.log(row["access_count"] + 1) / most if most else 0
        assert found[name]["rank"] == pytest.approx(rank)


@QUICK
@given(stores, links, instants, workdays, sightings)
def test_ageing_twice_at_one_instant_equals_once(store, pairs, now, days, since):
    chosen = {"edges": [edge(*pair) for pair in pairs], "days": days, "found": weak(**since)}
    once = ageing(table(store), now, **chosen).memories
    assert ageing(once.to_pylist(), now, **chosen).memories.equals(once)


@QUICK
@given(stores, links, instants, workdays, sightings, st.randoms())
def test_the_order_of_rows_does_not_matter(store, pairs, now, days, since, shuffler):
    shuffled, shuffled_edges = table(store), [edge(*pair) for pair in pairs]
    shuffler.shuffle(shuffled)
    shuffler.shuffle(shuffled_edges)
    chosen = {"days": days, "found": weak(**since)}
    in_order = ageing(table(store), now, [edge(*pair) for pair in pairs], **chosen).memories
    assert ageing(shuffled, now, shuffled_edges, **chosen).memories.equals(in_order)


@QUICK
@given(stores, links, instants, instants, workdays, sightings)
def test_strength_never_rises_and_no_state_goes_back_without_use(store, pairs, one, other, days, since):
    edges, earlier_now = [edge(*pair) for pair in pairs], min(one, other)
    known = weak(**{name: found for name, found in since.items() if found <= earlier_now})
    made = [aged(table(store), now, edges, days=days, found=known) for now in sorted((one, other))]
    steps = ["active", "archived"]
    for name, row in made[1].items():
        earlier = made[0][name]
        if store[name]["updated_at"] > earlier_now:
            continue  # said in between
        assert row["confidence"] <= earlier["confidence"]
        if row["status"] in steps:
            assert steps.index(row["status"]) >= steps.index(earlier["status"])


@QUICK
@given(stores, links, instants)
def test_confidence_centrality_and_rank_are_fractions(store, pairs, now):
    for row in aged(table(store), now, [edge(*pair) for pair in pairs]).values():
        assert 0 <= row["confidence"] <= row["initial_confidence"]
        assert 0 <= row["centrality"] <= 1
        assert 0 <= row["rank"] <= 1 + 1e-12


@QUICK
@given(stores, links, instants)
def test_what_has_at_least_as_much_of_everything_ranks_at_least_as_high(store, pairs, now):
    rows = aged(table(store), now, [edge(*pair) for pair in pairs]).values()
    parts = itemgetter("confidence", "priority", "centrality", "access_count")
    for more, less in permutations(rows, 2):
        is_at_least = all(left >= right for left, right in zip(parts(more), parts(less), strict=True))
        if more["project_id"] == less["project_id"] and is_at_least:
            assert more["rank"] >= less["rank"] - 1e-12


def test_ageing_scope_by_scope_equals_ageing_all():
    rows = [
        memory("a", project_id="p"),
        memory("b", project_id="p", access_count=3),
        memory("c", project_id="q"),
    ]
    edges = EDGES.of([edge("a", "b")])
    edges = edges.to_pylist()
    whole = ageing(rows, edges=edges).memories
    parts = [ageing(part, edges=edges).memories for part in (rows[:2], rows[2:])]
    assert pa.concat_tables(parts).equals(whole)


def test_a_session_runs_from_its_first_to_its_last_dated_turn_and_counts_where_its_project_went():
    rows = turns(
        turn(1, said_at=at("2026-03-01")),
        turn(2, said_at=at("2026-03-03")),
        turn(3, said_at=None),
        turn(4, session_id="s2", project_id="kelp-2", said_at=at("2026-03-02")),
    )
    assert sessions_of(rows, {"kelp-2": "reef-1"}).to_pylist() == [
        {
            "project_id": "reef-1",
            "session_id": "s1",
            "started_at": at("2026-03-01"),
            "ended_at": at("2026-03-03"),
        },
        {
            "project_id": "reef-1",
            "session_id": "s2",
            "started_at": at("2026-03-02"),
            "ended_at": at("2026-03-02"),
        },
    ]
