"""Ageing: the SQL against a plain Python oracle, and the laws of decay, archiving, centrality and rank."""

import math
from collections import Counter
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex.storage.reference import read_policy
from cortex.transforms.lifecycle import age, event_salience, immortal_tiers, sessions_of
from cortex.transforms.schemas import EDGE_TYPES, EDGES, EVENTS, MEMORIES, MEMORY_TYPES, UTC_US
from tests.rows import at, events, memories, memory, turn, turns
from tests.rows import event as event_row

POLICY = read_policy(None)
NONE = EDGES.empty()
NOW = at("2026-09-01")
QUICK = settings(max_examples=25, deadline=None)


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


def aged(rows, now=NOW, edges=()):
    made = age(memories(*rows), EDGES.of(list(edges)), POLICY, now)
    return {row["memory_id"]: row for row in made.to_pylist()}


def progress(name="m1", **chosen):
    return memory(name, memory_type="progress", updated_at=at("2026-08-01"), **chosen)


def test_one_half_life_leaves_half_the_confidence():
    assert aged([progress(initial_confidence=0.8)], now=at("2026-08-08"))["m1"]["confidence"] == 0.4


def test_all_columns_but_those_of_time_come_through_unchanged_and_ordered():
    rows = [memory("b", evidence=[], tags=["sqlite"]), memory("a", text="Cache for an hour")]
    made = age(memories(*rows), NONE, POLICY, NOW)
    assert made.schema.equals(MEMORIES.arrow)
    assert made["memory_id"].to_pylist() == ["a", "b"]
    changed = {"confidence", "status", "archived_at", "centrality", "rank"}
    kept = [name for name in made.column_names if name not in changed]
    assert made.select(kept).equals(memories(*rows).sort_by("memory_id").select(kept))


def test_no_memories_age_to_no_memories():
    assert age(MEMORIES.empty(), NONE, POLICY, NOW).equals(MEMORIES.empty())


def test_archived_at_is_the_moment_it_happened_whenever_the_run_was():
    row = progress(initial_confidence=0.2)
    for day in ("2026-08-15", "2026-08-20", "2026-09-10"):
        assert aged([row], now=at(day))["m1"]["archived_at"] == at("2026-08-15")


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
    assert age(memories(row), NONE, policy, at("2027-01-01"))["status"].to_pylist() == ["active"]


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


def expected_life(row, centrality, now):
    """Return (confidence, status, archived_at) of one row, told in the words of spec 8.1 and 8.2."""
    half_life = POLICY.half_life_days(row["memory_type"])
    if row["is_pinned"]:
        half_life = None
    if half_life is not None:
        half_life *= 2 if row["access_count"] > 10 else 1
        half_life *= 2 if centrality > 0.5 else 1
    days = max((now - row["updated_at"]).total_seconds() / 86400, 0)
    confidence = row["initial_confidence"] * (0.5 ** (days / half_life) if half_life else 1)
    if row["status"] in ("superseded", "pruned"):
        return confidence, row["status"], row["archived_at"]
    if row["status"] == "archived":
        leaves = row["archived_at"]
    else:
        leaves = expected_archiving(row, half_life)
    if leaves is None or (row["status"] == "active" and leaves > now):
        return confidence, "active", None
    used = max(leaves, row["last_accessed_at"] or leaves)
    is_kept = row["is_pinned"] or row["merged_into"]
    return confidence, "pruned" if not is_kept and used + timedelta(days=30) <= now else "archived", leaves


def expected_archiving(row, half_life):
    if row["is_pinned"]:
        return None
    if row["initial_confidence"] < 0.3:
        fading = row["updated_at"]
    elif half_life is None:
        return None
    else:
        fading = row["updated_at"] + timedelta(days=half_life * math.log2(row["initial_confidence"] / 0.3))
    return max(fading, row["last_accessed_at"] or fading) + timedelta(days=14)


@QUICK
@given(stores, links, instants)
def test_sql_and_a_plain_python_oracle_agree(store, pairs, now):
    given_rows = table(store)
    made = aged(given_rows, now, [edge(*pair) for pair in pairs])
    centrality = expected_centrality(store, pairs)
    for row in given_rows:
        name = row["memory_id"]
        found = made[name]
        confidence, status, archived_at = expected_life(row, centrality[name], now)
        assert found["centrality"] == pytest.approx(centrality[name])
        assert found["confidence"] == pytest.approx(confidence)
        assert found["status"] == status
        if archived_at is None:
            assert found["archived_at"] is None
        else:
            assert abs(found["archived_at"] - archived_at) <= timedelta(microseconds=1)
        most = max(
            math.log(r["access_count"] + 1) for r in given_rows if r["project_id"] == row["project_id"]
        )
        rank = 0.5 * confidence + 0.2 * row["priority"] / 10 + 0.15 * centrality[name]
        rank += 0.15 * math.log(row["access_count"] + 1) / most if most else 0
        assert found["rank"] == pytest.approx(rank)


@QUICK
@given(stores, links, instants)
def test_ageing_twice_at_one_instant_equals_once(store, pairs, now):
    edges = EDGES.of([edge(*pair) for pair in pairs])
    once = age(memories(*table(store)), edges, POLICY, now)
    assert age(once, edges, POLICY, now).equals(once)


@QUICK
@given(stores, links, instants, st.randoms())
def test_the_order_of_rows_does_not_matter(store, pairs, now, shuffler):
    shuffled, shuffled_edges = table(store), [edge(*pair) for pair in pairs]
    shuffler.shuffle(shuffled)
    shuffler.shuffle(shuffled_edges)
    in_order = age(memories(*table(store)), EDGES.of([edge(*pair) for pair in pairs]), POLICY, now)
    assert age(memories(*shuffled), EDGES.of(shuffled_edges), POLICY, now).equals(in_order)


@QUICK
@given(stores, links, instants, instants)
def test_strength_never_rises_and_no_state_goes_back_without_use(store, pairs, one, other):
    edges = [edge(*pair) for pair in pairs]
    earlier, later = (aged(table(store), now, edges) for now in sorted((one, other)))
    steps = ["active", "archived", "pruned"]
    for name, row in later.items():
        assert row["confidence"] <= earlier[name]["confidence"]
        if row["status"] in steps:
            assert steps.index(row["status"]) >= steps.index(earlier[name]["status"])


@QUICK
@given(stores, links, instants)
def test_confidence_centrality_and_rank_are_fractions(store, pairs, now):
    for row in aged(table(store), now, [edge(*pair) for pair in pairs]).values():
        assert 0 <= row["confidence"] <= row["initial_confidence"]
        assert 0 <= row["centrality"] <= 1
        assert 0 <= row["rank"] <= 1 + 1e-12


def test_ageing_scope_by_scope_equals_ageing_all():
    rows = [
        memory("a", project_id="p"),
        memory("b", project_id="p", access_count=3),
        memory("c", project_id="q"),
    ]
    edges = EDGES.of([edge("a", "b")])
    whole = age(memories(*rows), edges, POLICY, NOW)
    parts = [age(memories(*part), edges, POLICY, NOW) for part in (rows[:2], rows[2:])]
    assert pa.concat_tables(parts).equals(whole)


def accesses(*pairs):
    return pa.Table.from_pylist(
        [{"event_id": name, "accessed_at": day} for name, day in pairs],
        schema=pa.schema([("event_id", pa.string()), ("accessed_at", UTC_US)]),
    )


def test_an_event_read_just_now_is_worth_a_fifth_more():
    found = events(
        event_row(event_id="e", event_type="FILE_MODIFIED", salience=0.5, said_at=at("2026-08-01"))
    )
    assert event_salience(found, accesses(("e", NOW)), POLICY, NOW).to_pylist() == [
        {"event_id": "e", "salience": 0.6}
    ]


def test_no_events_have_no_salience():
    assert event_salience(EVENTS.empty(), accesses(), POLICY, NOW).num_rows == 0


@QUICK
@given(st.lists(instants, max_size=6), instants, st.sampled_from([0.2, 0.5, 0.9]))
def test_event_salience_follows_the_plain_rule(days, now, salience):
    said = at("2026-01-01")
    row = event_row(event_id="e", event_type="FILE_MODIFIED", salience=salience, said_at=said)
    made = event_salience(events(row), accesses(*(("e", day) for day in days)), POLICY, now).to_pylist()
    raised = salience
    for _ in days:
        raised = min(1.0, raised * 1.2)
    hours = max((now - max([said, *days])).total_seconds() / 3600, 0)
    assert made[0]["salience"] == pytest.approx(raised * 0.995**hours)


def test_an_access_lifts_an_archived_decision_to_its_full_text():
    days = [at("2026-01-01") + timedelta(days=n) for n in range(60)]
    sessions = pa.table(
        {
            "project_id": ["reef-1"] * 60,
            "session_id": [f"s{n}" for n in range(60)],
            "started_at": pa.array(days, UTC_US),
        }
    )
    old = {"created_at": at("2025-12-01"), "updated_at": at("2025-12-01")}
    rows = [memory("asleep", **old), memory("read", last_accessed_at=days[-5], **old)]
    tiers = immortal_tiers(memories(*rows), sessions, POLICY).to_pylist()
    assert [(row["memory_id"], row["sessions_since"], row["tier"]) for row in tiers] == [
        ("asleep", 60, "archive"),
        ("read", 4, "full"),
    ]


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
