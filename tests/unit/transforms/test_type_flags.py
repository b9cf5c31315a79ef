"""Claims about the flags of memory_types.csv: each says what it said in code, and a changed one acts."""

import json
from datetime import timedelta

import pytest

from cortex.flows.operations.share.share import shareable
from cortex.hooks.prose.memory_types import MEMORY_TAGS, WRITTEN_TAGS
from cortex.storage.settings.reference import prompt_folder, read_policy
from cortex.transforms.brief.candidates import (
    NO_SESSIONS,
    LineCandidate,
    believed,
    eligibility_by_id,
)
from cortex.transforms.brief.explanation import Choice
from cortex.transforms.brief.render import by_turns, choose
from cortex.transforms.errors import SchemaMismatch
from cortex.transforms.memory.fold import fold
from cortex.transforms.memory.link import edges_between
from cortex.transforms.memory.reality import CommitEdit, Snapshot, doubts, questions
from cortex.transforms.policy import MEMORY_TYPE_FLAGS, Policy
from cortex.transforms.schemas import EDGES, JOURNAL, VECTORS
from cortex.transforms.views.review import disputes
from tests.rows import START, event, events, memories, memory

POLICY = read_policy(None)
MODEL = "voyage-4-large"


@pytest.fixture
def flipped(tmp_path):
    """Return a function that gives the policy with one flag of one type turned over."""

    def flip(memory_type: str, flag: str) -> Policy:
        row = POLICY.rows["memory_types"][(memory_type,)]
        turned = {**row, flag: not row[flag]}
        cells = [
            str(v).lower() if isinstance(v, bool) else "" if v is None else str(v) for v in turned.values()
        ]
        (tmp_path / "policy").mkdir(exist_ok=True)
        lines = (",".join(row), ",".join(f'"{cell}"' for cell in cells))
        (tmp_path / "policy" / "memory_types.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return read_policy(tmp_path)

    return flip


def test_the_flags_are_the_sets_that_stood_in_code():
    assert {flag: sorted(POLICY.types_with(flag)) for flag in MEMORY_TYPE_FLAGS} == {
        "is_in_force": ["architecture", "decision", "pattern"],
        "is_instance": ["gotcha", "progress"],
        "is_design": ["architecture", "pattern"],
        "is_claim": ["architecture", "code_description", "context", "decision", "gotcha", "pattern"],
        "is_description": ["architecture", "code_description", "gotcha"],
        "is_binding": ["decision", "pattern"],
        "is_passed_by": ["decision", "progress"],
        "is_disputed": ["decision", "pattern"],
        "is_passing": ["context", "progress"],
        "is_guaranteed": ["architecture", "decision", "gotcha", "pattern"],
        "is_latest_only": ["outcome", "pattern"],
        "is_shared": ["architecture", "context", "decision", "gotcha", "pattern"],
    }


def place(**changed):
    named = {
        "turn_id": "t1",
        "session_id": "s1",
        "file": "/t/s1.jsonl",
        "lines": [1],
        "layer": "llm:small@session-1",
    }
    return {"evidence": [named | changed]}


def relation(policy, *rows):
    [edge] = edges_between(memories(*rows), VECTORS.empty(), policy, MODEL).to_pylist()
    return edge["rule"]


def test_two_facts_in_force_contradict_each_other(flipped):
    rows = [
        memory(
            name,
            f"The proxy of proxy.py waits for {seconds} seconds",
            memory_type="gotcha",
            files=["proxy.py"],
        )
        for name, seconds in (("a", 30), ("b", 60))
    ]
    assert relation(POLICY, *rows) == "shared_terms"
    assert relation(flipped("gotcha", "is_in_force"), *rows) == "number"


def test_an_instance_exemplifies_a_design_of_its_file(flipped):
    plan = memory("a", "All writes go through the store.", memory_type="architecture", files=["store.py"])
    trap = memory("b", "A crash left a lock behind.", memory_type="gotcha", files=["store.py"])
    assert relation(POLICY, plan, trap) == "same_file"
    assert relation(flipped("gotcha", "is_instance"), plan, trap) == "shared_terms"
    assert relation(flipped("architecture", "is_design"), plan, trap) == "shared_terms"


def test_what_the_repository_is_asked_about_follows_the_flags(flipped):
    row = memory("a", "`read_store()` in src/store.py was the reader of levels.", memory_type="gotcha")
    assert questions([row], POLICY).symbols == {"read_store"}
    assert questions([row], POLICY).described == {"src/store.py"}
    assert questions([row], flipped("gotcha", "is_claim")).symbols == frozenset()
    assert questions([row], flipped("gotcha", "is_description")).described == frozenset()


def test_a_rewritten_file_outdates_a_description_alone(flipped):
    row = memory(
        "a",
        "Levels of src/store.py are rounded.",
        memory_type="gotcha",
        **place(said_at=START, git_branch="main"),
    )
    edits = (CommitEdit(START - timedelta(days=9), 100, 0), CommitEdit(START + timedelta(days=9), 100, 100))
    files = frozenset({"src/store.py"})
    snapshot = Snapshot(
        "1", START, "main", files, frozenset(), frozenset(), now=None, edits={"src/store.py": edits}
    )
    assert len(doubts([row], snapshot, POLICY)) == 1
    assert doubts([row], snapshot, flipped("gotcha", "is_description")) == []


def test_a_persons_choice_of_a_binding_type_is_raised(flipped):
    rows = memories(memory("a", "Use SQLite.", **place(layer="layer2:en:user")))
    assert believed(rows, NO_SESSIONS, POLICY)["rank"][0].as_py() > 0.5
    assert believed(rows, NO_SESSIONS, flipped("decision", "is_binding"))["rank"][0].as_py() == 0.5


def test_sessions_pass_by_the_types_that_say_so(flipped):
    rows, changed = memories(memory("a", "Use SQLite.")), flipped("decision", "is_passed_by")
    assert eligibility_by_id(believed(rows, NO_SESSIONS, POLICY), POLICY).keys() == {"a"}
    assert eligibility_by_id(believed(rows, NO_SESSIONS, changed), changed) == {}


def test_disputed_types_are_reviewed(flipped):
    rows = memories(memory("new", "Use Postgres.", updated_at=START + timedelta(days=1)), memory("old"))
    edge = {"edge_id": "e", "project_id": "reef-1", "source_id": "new", "target_id": "old"}
    edges = EDGES.of([edge | {"edge_type": "contradicts", "strength": 0.9, "rule": "number"}])
    assert len(disputes(rows, edges, POLICY)) == 1
    assert disputes(rows, edges, flipped("decision", "is_disputed")) == []


def test_of_a_type_that_is_replaced_the_latest_word_on_a_subject_is_the_memory(flipped):
    subject = {"memory_type": "pattern", "subject": "indents"}
    rows = [
        event(text, event_id=text, said_at=START + timedelta(days=day), **subject)
        for day, text in enumerate(("Use tabs.", "Use spaces."))
    ]
    texts = fold(events(*rows), JOURNAL.empty(), POLICY)["text"].to_pylist()
    assert texts == ["Use spaces."]
    assert fold(events(*rows), JOURNAL.empty(), flipped("pattern", "is_latest_only")).num_rows == 2


def test_what_is_guaranteed_comes_before_what_ranks_higher(flipped):
    def order(policy: Policy) -> list[str]:
        weights = {"context": 0.9, "gotcha": 0.1}
        choice = Choice("", "a", "", False, "")
        candidates = [LineCandidate(name, ("- x",), choice, weight=w) for name, w in weights.items()]
        return [each.section for each in by_turns(candidates, policy)]

    assert order(POLICY) == ["gotcha", "context"]
    assert order(flipped("gotcha", "is_guaranteed")) == ["context", "gotcha"]


def test_what_is_not_shared_stays(flipped):
    rows = memories(memory("a"), memory("b", memory_type="progress")).to_pylist()
    assert [row["memory_id"] for row in shareable(rows, POLICY.types_with("is_shared"))] == ["a"]
    assert shareable(rows, flipped("decision", "is_shared").types_with("is_shared")) == []


def test_a_built_in_column_is_not_for_a_person_to_change(flipped):
    with pytest.raises(SchemaMismatch, match=r"changes is_shown of 'gotcha', which is built in"):
        flipped("gotcha", "is_shown")


def test_what_is_built_in_is_no_input_of_a_stage():
    columns = {name for rows in POLICY.rows_read_by("extract").values() for row in rows for name in row}
    assert "salience" in columns
    assert columns & {"tag", "other_names", "is_shown"} == set()


def test_the_model_is_asked_for_the_facts_that_are_known():
    names = [each for each in prompt_folder().iterdir() if each.name.endswith(".schema.json")]
    schemas = [json.loads(each.read_text(encoding="utf-8"))["properties"] for each in names]
    asked = [
        schema["facts"]["items"]["properties"]["type"]["enum"] for schema in schemas if "facts" in schema
    ]
    assert asked and all(set(types) == set(WRITTEN_TAGS) for types in asked)


def test_a_tag_has_one_meaning():
    own = [key for (key,), row in POLICY.rows["memory_types"].items() if row["event_type"]]
    others = [row["tag"] for row in POLICY.rows["event_types"].values() if row["tag"]]
    assert sorted([*own, *others]) == sorted(MEMORY_TAGS)


def test_what_passes_is_not_in_the_brief(flipped):
    rows, stays = (
        memories(memory("a", "All tests pass.", memory_type="progress")),
        flipped("progress", "is_passing"),
    )
    for policy, count in ((POLICY, 0), (stays, 1)):
        choices = choose(
            rows, EDGES.empty(), policy, project_name="reef", budget_tokens=1000, sessions=NO_SESSIONS
        )
        assert len([choice for choice in choices if choice.is_shown]) == count
