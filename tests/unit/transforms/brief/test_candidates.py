"""Claims about what a brief chooses from: the query ranks as these rules, written out in Python, say."""

from datetime import timedelta

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex.storage.settings.reference import read_policy
from cortex.transforms.brief.candidates import NO_SESSIONS, believed
from cortex.transforms.schemas import TELLING_ORDER, UTC_US, Row
from tests.examples import examples
from tests.rows import START, at, memories, memory

POLICY = read_policy(None)
SCOPES = ("reef-1", "global")
TEXTS = ("Keep readings in UTC.", "Plan: tides. Done: read. Next: write.")
LAYERS = ("layer2:en:user", "layer1:tool", "team:reef", "layer2:en:choice")
TRUSTS = ("external", "tool", "assistant", "colleague", "user")
TYPES = (*POLICY.brief_sections(), "code")

rows_of_memories = st.lists(
    st.fixed_dictionaries(
        {
            "project_id": st.sampled_from(SCOPES),
            "memory_type": st.sampled_from(TYPES),
            "text": st.sampled_from(TEXTS),
            "status": st.sampled_from(("active", "active", "active", "archived")),
            "trust": st.sampled_from(TRUSTS),
            "source_type": st.sampled_from(("conversation", "explicit", "code_index")),
            "is_pinned": st.booleans(),
            "initial_confidence": st.sampled_from((0.1, 0.5, 0.9)),
            "confidence": st.sampled_from((0.1, 0.5, 0.9)),
            "rank": st.sampled_from((0.1, 0.3, 0.5)),
            "updated_at": st.integers(0, 5).map(lambda days: START + timedelta(days=days)),
            "layer": st.sampled_from(LAYERS),
            "place": st.none() | st.integers(-3, 30),
        }
    ),
    max_size=60,
)


def is_plan(row: Row) -> bool:
    return row["memory_type"] == "progress" and row["text"] == TEXTS[1]


def is_on_purpose(row: Row) -> bool:
    is_edited_code = row["source_type"] == "code_index" and row["trust"] == "user"
    return row["source_type"] == "explicit" or is_edited_code or row["is_pinned"]


def is_believed(row: Row) -> bool:
    is_sure = row["initial_confidence"] >= POLICY.threshold("brief_min_confidence")
    is_fresh = row["confidence"] >= POLICY.threshold("archive_below_confidence")
    is_state = is_plan(row) or row["memory_type"] == "outcome"
    is_told = (is_sure and (is_fresh or is_state)) or row["is_pinned"]
    return row["status"] == "active" and row["trust"] in TRUSTS[2:] and is_told


def raised(row: Row) -> float:
    is_by_person = not row["layer"].endswith(":tool") and row["memory_type"] in POLICY.types_with(
        "is_binding"
    )
    lead, bonus = POLICY.threshold("brief_explicit_bonus"), POLICY.threshold("brief_choice_bonus")
    return float(row["rank"] + (lead * is_on_purpose(row) + bonus * is_by_person))


def kind_of(row: Row) -> str:
    is_open = row["memory_type"] == "progress" and (is_plan(row) or row["place"] is not None)
    return "plans" if is_open else row["memory_type"]


def chosen(rows: list[Row], kind: str, *, is_read_by_model: bool) -> list[str]:
    """Return the memories of a kind that a brief chooses from, in their order."""
    of_kind = [row for row in rows if is_believed(row) and kind_of(row) == kind]
    is_ranked = is_read_by_model and kind not in ("plans", "progress", "outcome", "decision")
    placed = [row for row in of_kind if row["place"] is not None]
    placed.sort(key=lambda row: (row["place"], row["memory_id"]))
    free = [row for row in of_kind if row["place"] is None]
    free.sort(
        key=lambda row: (
            not row["is_pinned"],
            not is_on_purpose(row),
            -raised(row) if is_ranked else 0.0,
            -row["updated_at"].timestamp(),
            row["memory_id"],
        )
    )
    most = 2 * POLICY.brief_lines("progress" if kind == "plans" else kind)
    return [row["memory_id"] for row in (*placed, *free[:most])]


@settings(max_examples=examples(60), deadline=None)
@given(rows_of_memories, st.booleans(), st.randoms(use_true_random=False))
def test_the_query_ranks_as_the_rules_say_whatever_the_order_of_the_rows(made_rows, is_read_by_model, random):
    rows = [row | {"memory_id": f"m{at:02}"} for at, row in enumerate(made_rows)]
    shuffled = random.sample(rows, len(rows))
    places = TELLING_ORDER.of(
        [
            {"project_id": project_of(rows), "memory_id": row["memory_id"], "place": row["place"]}
            for row in shuffled
            if row["place"] is not None
        ]
    )
    table = memories(*(as_memory(row) for row in shuffled))
    ranked = believed(table, NO_SESSIONS, POLICY, places=places, is_read_by_model=is_read_by_model)
    assert set(ranked["memory_id"].to_pylist()) == {row["memory_id"] for row in rows if is_believed(row)}
    assert {row["memory_id"]: round(row["rank"], 9) for row in ranked.to_pylist()} == {
        row["memory_id"]: round(raised(row), 9) for row in rows if is_believed(row)
    }
    kinds = {kind_of(row) for row in rows} - {"code"}
    listed = [row for row in ranked.to_pylist() if row["is_candidate"]]
    for kind in kinds:
        of_kind = [row["memory_id"] for row in listed if row["kind"] == kind]
        assert of_kind == chosen(rows, kind, is_read_by_model=is_read_by_model)


def project_of(rows: list[Row]) -> str:
    return "reef-1" if any(row["project_id"] == "reef-1" for row in rows) else ""


def as_memory(row: Row) -> Row:
    given = {name: value for name, value in row.items() if name not in ("memory_id", "layer", "place")}
    place = {"turn_id": "t1", "session_id": "s1", "file": "/made", "lines": [1], "layer": row["layer"]}
    return memory(row["memory_id"], **given, evidence=[place])


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
    tiers = believed(memories(*rows), sessions, POLICY).to_pylist()
    assert [(row["memory_id"], row["sessions_since"], row["tier"]) for row in tiers] == [
        ("read", 4, "full"),
        ("asleep", 60, "archive"),
    ]
