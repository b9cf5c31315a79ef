"""What is unsettled, and which memories make the chain behind a subject or a path."""

from cortex.flows.operations.ask.reasoning import chain_of, fading_points, memories_about, open_points
from cortex.storage.settings.reference import read_policy, word_ranks
from cortex.transforms.memory.quality import flaw_of_lesson
from cortex.transforms.schemas import EDGES, MEMORIES
from tests.examples import cases
from tests.rows import at, memory

POLICY = read_policy(None)


def table(*rows):
    return MEMORIES.of(list(rows))


def edge(source, target, kind):
    ends = {"source_id": source, "target_id": target, "project_id": "reef-1"}
    return {"edge_id": f"{source}-{target}", "edge_type": kind, "strength": 1.0, "rule": "x", **ends}


def test_open_is_what_records_and_plans_that_have_not_faded_leave():
    record = "Goal: Read tides. Outcome: Tides are read. Open: not pushed; no retries."
    points = open_points(
        table(
            memory("a", record, memory_type="outcome", updated_at=at("2026-09-02")),
            memory("b", record, memory_type="outcome", confidence=0.1),
            memory("c", record, memory_type="outcome", status="archived"),
            memory("d", "Goal: Read tides. Outcome: Tides are read.", memory_type="outcome"),
            memory("e", "Plan: Ship. Next: tag it.", memory_type="progress", updated_at=at("2026-09-03")),
            memory("f", "Plan: Ship. All 3 steps done.", memory_type="progress"),
        ),
        POLICY,
    )
    assert [point.memory_ids for point in points] == [("e",), ("a",)]
    assert points[1].texts == ("not pushed", "no retries")


def test_a_claim_that_no_brief_shows_any_more_is_stale_unless_a_person_pinned_it():
    rows = table(
        memory("a", confidence=0.2),
        memory("b", confidence=0.2, is_pinned=True),
        memory("c", confidence=0.9),
        memory("d", confidence=0.2, status="archived"),
    )
    assert [point.memory_ids for point in fading_points(rows, POLICY)] == [("a",)]


def test_a_chain_follows_what_was_replaced_and_leaves_out_what_is_only_near():
    rows = table(
        memory("a", "Tides are kept in files", status="superseded", created_at=at("2026-09-01")),
        memory("b", "Tides are kept in SQLite", created_at=at("2026-09-02")),
        memory("c", "Charts are drawn in SVG", created_at=at("2026-09-03")),
        memory("d", "Tides in SQLite were merged away", merged_into="b"),
    )
    edges = EDGES.of([edge("b", "a", "supersedes"), edge("b", "c", "relates_to")])
    seeds = memories_about("sqlite tides", rows, POLICY)
    assert seeds == ["b"]
    assert [step.memory_id for step in chain_of(rows, edges, seeds, POLICY, limit=9)] == ["a", "b"]
    assert [step.memory_id for step in chain_of(rows, edges, seeds, POLICY, limit=1)] == ["b"]


@cases(
    ("target", "is_named"),
    [
        ("src/tide.py", True), ("tide.py", True), ("src", False), ("src/", True), ("./src/tide.py", True),
        ("/home/dev/reef/src/tide.py", True), ("rc/tide.py", False), ("ide.py", False),
    ],
)  # fmt: skip
def test_a_path_is_meant_by_its_end_its_folder_or_a_longer_path(target, is_named):
    rows = table(memory("a", "Levels are rounded", files=["src/tide.py"]))
    assert memories_about(target, rows, POLICY) == (["a"] if is_named else [])


@cases(
    "text",
    [
        "Never push on Fridays",
        "Always write tests first",
        "Deploys go through Jenkins",
        "Die Gezeiten stehen in SQLite",
        "潮位はSQLiteに保存します",
    ],
)
def test_a_lesson_may_be_short_if_it_names_what_it_is_about(text):
    assert flaw_of_lesson(text, POLICY, word_ranks()) == ""


@cases(
    "text",
    ["keep it simple", "make it good and fast", "Use tabs", "use [REDACTED:aws-key] for the upload of tides"],
)
def test_what_names_nothing_is_no_lesson(text):
    assert flaw_of_lesson(text, POLICY, word_ranks()) != ""
