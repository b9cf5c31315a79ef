"""Claims about the fold: one memory a fact, the journal applied in order, input order irrelevant."""

import json
import random
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.storage.settings.reference import read_policy
from cortex.transforms.memory.fold import fold, memory_id
from cortex.transforms.schemas import JOURNAL
from tests.examples import cases
from tests.rows import START, entry, event, events

POLICY = read_policy(None)
DAY = timedelta(days=1)


def told(kind: str, name: str | None, after: timedelta = DAY, **payload: object) -> dict[str, object]:
    return entry(kind, "reef-1", payload, recorded_at=START + after, memory_id=name)


def folded(*rows: dict, journal: list[dict] | None = None) -> list[dict]:
    return fold(events(*rows), JOURNAL.of(journal or []), POLICY).to_pylist()


def test_the_same_fact_said_twice_is_one_memory_with_both_places():
    first = event("Use SQLite.", turn_id="t1", lines=[3])
    again = event("use `SQLite`", turn_id="t2", session_id="s2", lines=[8], said_at=START + DAY)
    (memory,) = folded(first, again)
    assert [e["lines"] for e in memory["evidence"]] == [[8], [3]]
    assert (memory["created_at"], memory["updated_at"]) == (START, START + DAY)
    assert memory["session_count"] == 2


def test_the_same_fact_in_two_projects_stays_two_memories():
    assert len(folded(event("Use SQLite"), event("Use SQLite", project_id="other-1"))) == 2


def test_a_confirmed_memory_counts_as_said_again_that_day():
    [memory] = folded(event(), journal=[told("confirm", folded(event())[0]["memory_id"])])
    assert (memory["created_at"], memory["updated_at"]) == (START, START + DAY)
    assert (memory["trust"], memory["text"]) == (folded(event())[0]["trust"], folded(event())[0]["text"])


def test_a_confirmed_memory_that_was_archived_as_stale_is_active_again():
    name = folded(event())[0]["memory_id"]
    journal = [told("archive", name), told("confirm", name, 2 * DAY)]
    [memory] = folded(event(), journal=journal)
    assert (memory["status"], memory["archived_at"]) == ("active", None)


def test_an_event_below_the_threshold_makes_no_memory():
    assert folded(event(confidence=0.49)) == []


def test_an_event_without_memory_type_makes_no_memory():
    assert folded(event(memory_type=None, event_type="FILE_EXPLORED")) == []


def test_a_reason_and_a_rejected_way_survive_the_fold():
    (memory,) = folded(event(reason="it needs no server", rejected="Postgres"), event(turn_id="t2"))
    assert (memory["reason"], memory["rejected"]) == ("it needs no server", "Postgres")


def test_plan_events_of_one_subject_are_one_living_memory():
    plan = {"subject": "plan-1", "memory_type": "progress"}
    steps = [
        event("Ship 1.0", **plan, event_type="PLAN_CREATED", turn_id="t1"),
        event("write docs", **plan, step_status="completed", turn_id="t2", said_at=START + DAY),
        event("cut release", **plan, step_status="pending", turn_id="t3", said_at=START + DAY),
        event("cut release", **plan, step_status="in_progress", turn_id="t4", said_at=START + 2 * DAY),
    ]
    (memory,) = folded(*steps)
    assert memory["text"] == "Plan: Ship 1.0. Done: write docs. Now: cut release."


def test_remembered_words_are_a_memory_of_the_user():
    name = memory_id("reef-1", "gotcha", "Tests need the venv")
    payload = {
        "text": "Tests need the venv",
        "memory_type": "gotcha",
        "category": "project",
        "priority": 8,
        "pinned": True,
        "tags": [],
        "files": [],
    }
    (memory,) = folded(journal=[told("remember", name, **payload)])
    assert (memory["trust"], memory["source_type"], memory["priority"]) == ("user", "explicit", 8)
    assert memory["is_pinned"] and memory["initial_confidence"] == 1.0


def test_each_journal_entry_has_its_effect():
    name = memory_id("reef-1", "decision", "Use SQLite")
    after = {
        kind: folded(event(), journal=[told(kind, name, **payload)])
        for kind, payload in {
            "edit": {"text": "Use SQLite 3.45"},
            "pin": {},
            "forget": {},
            "supersede": {"by": "m9"},
            "archive": {},
        }.items()
    }
    assert after["forget"] == []
    assert after["edit"][0]["text"] == "Use SQLite 3.45"
    assert after["pin"][0]["is_pinned"]
    assert (after["supersede"][0]["status"], after["supersede"][0]["superseded_by"]) == ("superseded", "m9")
    assert after["archive"][0]["status"] == "archived"


def test_a_recall_counts_and_dates_the_access():
    name = memory_id("reef-1", "decision", "Use SQLite")
    recalls = [told("recall", None, n * DAY, memory_ids=[name, "unknown"]) for n in (1, 2)]
    (memory,) = folded(event(), journal=recalls)
    assert (memory["access_count"], memory["last_accessed_at"]) == (2, START + 2 * DAY)


def test_a_merge_archives_its_members_and_keeps_their_evidence_and_lowest_trust():
    one, two = (memory_id("reef-1", "decision", text) for text in ("Use SQLite", "SQLite it is"))
    payload = {"members": [one, two], "text": "Use SQLite: it needs no server", "memory_type": "decision"}
    rows = folded(
        event("Use SQLite", turn_id="t1"),
        event("SQLite it is", turn_id="t2", trust="assistant"),
        journal=[told("merge", "merged", **payload)],
    )
    by_id = {row["memory_id"]: row for row in rows}
    assert {by_id[one]["status"], by_id[two]["status"]} == {"archived"}
    assert by_id[one]["merged_into"] == "merged"
    assert by_id["merged"]["trust"] == "assistant"
    assert {e["turn_id"] for e in by_id["merged"]["evidence"]} == {"t1", "t2"}


def test_an_unknown_memory_type_in_the_journal_is_an_error_that_names_the_allowed_ones():
    payload = {"text": "x", "memory_type": "opinion", "category": "project"}
    with pytest.raises(ValueError, match="Not a memory type: 'opinion'"):
        folded(journal=[told("remember", "m", **payload)])


@given(st.randoms(use_true_random=False), st.lists(st.sampled_from(["Use A", "use a.", "Use B"]), max_size=6))
def test_the_order_of_events_does_not_matter(shuffler: random.Random, texts: list[str]):
    rows = [
        event(text, turn_id=f"t{n}", lines=[n], said_at=START + n % 3 * DAY) for n, text in enumerate(texts)
    ]
    mixed = list(rows)
    shuffler.shuffle(mixed)
    assert json.dumps(folded(*rows), default=str) == json.dumps(folded(*mixed), default=str)


def step(text: str, status: str | None, subject: str, day: int, **chosen: object) -> dict:
    kind = "PLAN_STEP_COMPLETED" if status else "PLAN_CREATED"
    return event(
        text, event_type=kind, memory_type="progress", subject=subject, step_status=status,
        said_at=START + day * DAY, layer="layer1:TaskCreate", turn_id=f"{subject}-{day}", **chosen
    )  # fmt: skip


FIRST_LIST = (
    step("Plan: Quality flags", None, "one", 0),
    step("Write the spike filter", "completed", "one", 0),
    step("Backfill the flags of 2026", "pending", "one", 0),
)


def test_a_later_list_with_an_open_step_carries_the_plan_on():
    later = (
        step("Plan: I am back on the harbour box", None, "two", 3),
        step("Backfill the flags of 2026", "completed", "two", 3),
        step("Mark flags in the export", "in_progress", "two", 3),
    )
    (memory,) = folded(*FIRST_LIST, *later)
    assert memory["text"] == (
        "Plan: Quality flags. Done: Write the spike filter; Backfill the flags of 2026."
        " Now: Mark flags in the export."
    )


def test_a_step_that_was_done_or_is_in_every_list_carries_nothing_on():
    common = step("Run tests", "pending", "one", 0)
    other = (
        step("Plan: Tide tables", None, "two", 3),
        step("Write the spike filter", "pending", "two", 3),
        step("Run tests", "pending", "two", 3),
    )
    assert len(folded(*FIRST_LIST, common, *other)) == 2


def test_a_plan_is_closed_when_its_last_step_is_done():
    done = step("Backfill the flags of 2026", "completed", "one", 2)
    (memory,) = folded(*FIRST_LIST, done)
    assert memory["text"] == "Plan: Quality flags. All 2 steps done."


def test_the_approved_title_stands_before_the_words_a_list_began_with():
    approved = step("Plan: Flags for readings (approved). They mark spikes.", None, "one", 0) | {
        "layer": "layer1:plan"
    }
    (memory,) = folded(*FIRST_LIST, approved)
    assert memory["text"].startswith("Plan: Flags for readings. Aim: They mark spikes. Done:")


def test_a_memory_carries_the_technologies_its_text_names():
    (memory,) = folded(event("Run pytest against PostgreSQL, never SQLite."))
    assert memory["tags"] == ["postgres", "python", "sqlite"]


def test_tags_it_was_told_with_stay_beside_those_its_text_names():
    payload = {"text": "Use ruff", "memory_type": "pattern", "category": "project", "tags": ["style"]}
    (memory,) = folded(journal=[told("import", "m", **payload)])
    assert memory["tags"] == ["style", "python"]


@cases("name", [f"m{number}" for number in range(8)])  # ids in either order
def test_of_one_instant_what_takes_back_comes_last_and_forgetting_after_all(name: str):
    fact = {"text": "Use SQLite", "memory_type": "decision", "category": "project"}
    fact_entry = told("remember", name, **fact)
    superseded, restored = told("supersede", name, by="m9"), told("restore", name)
    [memory] = folded(journal=[restored, superseded, fact_entry])
    assert memory["status"] == "active"
    [memory] = folded(journal=[superseded, fact_entry])
    assert memory["status"] == "superseded"
    assert folded(journal=[told("forget", name), restored, superseded, fact_entry]) == []


# What only the assistant's prose says (spec 5.4a)

PROSE = {"layer": "layer2:en", "trust": "assistant"}


def test_what_only_prose_says_is_no_memory():
    recap = event("Moved the levels into one file.", layer="layer1:recap", memory_type="progress")
    fault = event("The worker crashes.", layer="layer2:en:user", memory_type="gotcha", trust="user")
    assert folded(event("Use SQLite.", **PROSE), recap, fault) == []


def test_prose_that_a_tag_or_a_person_says_too_is_a_memory_with_both_places():
    said = event("Use SQLite.", turn_id="t1", **PROSE)
    (memory,) = folded(said, event("use sqlite", turn_id="t2", layer="layer3:tag"))
    assert {place["layer"] for place in memory["evidence"]} == {"layer2:en", "layer3:tag"}
    order = event("Use SQLite.", layer="layer2:en:user", trust="user")
    assert [row["text"] for row in folded(order)] == ["Use SQLite."]


@pytest.mark.parametrize(
    ("kind", "payload"), [("pin", {}), ("confirm", {}), ("edit", {"text": "Use SQLite, in WAL mode."})]
)
def test_prose_that_a_person_stood_for_before_stays_a_memory(kind, payload):
    name = memory_id("reef-1", "decision", "Use SQLite.")
    (memory,) = folded(event("Use SQLite.", **PROSE), journal=[told(kind, name, **payload)])
    assert (memory["memory_id"], memory["is_pinned"]) == (name, kind == "pin")


def test_what_took_another_ones_place_by_a_persons_word_stays():
    old, new = event("Use files.", layer="layer3:tag"), event("Use SQLite.", turn_id="t2", **PROSE)
    names = [memory_id("reef-1", "decision", text) for text in ("Use files.", "Use SQLite.")]
    rows = folded(old, new, journal=[told("supersede", names[0], by=names[1])])
    assert {row["text"]: row["status"] for row in rows} == {
        "Use files.": "superseded", "Use SQLite.": "active"
    }  # fmt: skip


def test_of_what_was_merged_with_prose_the_told_parts_stand_again():
    tag, prose = (
        event("Use SQLite.", layer="layer3:tag"),
        event("Use SQLite for levels.", turn_id="t2", **PROSE),
    )
    members = [memory_id("reef-1", "decision", row["text"]) for row in (tag, prose)]
    merge = told("merge", "m", members=members, text="Use SQLite for levels.", memory_type="decision")
    assert [(row["text"], row["status"]) for row in folded(tag, prose, journal=[merge])] == [
        ("Use SQLite.", "active")
    ]
    assert {row["text"] for row in folded(tag, prose, journal=[merge, told("pin", "m", 2 * DAY)])} == {
        "Use SQLite.", "Use SQLite for levels."
    }  # fmt: skip
