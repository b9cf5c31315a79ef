"""What search reads: words of identifiers, words of questions, passages of turns, embedded text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.storage.settings.reference import read_policy
from cortex.transforms.identity import content_id
from cortex.transforms.policy import Policy
from cortex.transforms.search import (
    embedded_text,
    identifier_parts,
    index_text,
    passages_of,
    prose,
    query_terms,
    search_text,
)
from tests.rows import memory, turn, turns


@pytest.fixture(scope="module")
def policy() -> Policy:
    return read_policy(None)


def test_identifiers_are_found_by_their_parts_and_as_a_whole() -> None:
    words = search_text("HTTPServer calls loadTideGauge, load_tide_gauge and tide-gauge v0.15.0").split()
    assert {"HTTP", "Server", "load", "Tide", "Gauge"} <= set(words)
    assert {"loadtidegauge", "tidegauge", "v0150"} <= set(words)


def test_scripts_without_spaces_are_found_by_pairs_of_characters() -> None:
    assert search_text("潮位計") == " 潮位計  潮位 位計"


def test_latin_words_with_an_ending_glued_on_stay_findable() -> None:
    assert "typed" in search_text("py.typed는").replace(".", " ").split()


def test_question_words_are_dropped_and_each_word_is_asked_once(policy: Policy) -> None:
    assert (
        query_terms("Why did we choose the reef cache, and what is a reef cache?", policy)
        == "choose reef cache"
    )
    assert query_terms("산호 캐시를 왜 골랐나요", policy).split()[:3] == ["산호", "캐시를", "골랐나요"]


def test_a_question_of_nothing_but_question_words_keeps_them(policy: Policy) -> None:
    assert query_terms("what is it", policy) == "what is it"


def test_an_empty_question_asks_for_nothing(policy: Policy) -> None:
    assert query_terms(" ?! ", policy) == ""


def test_only_prose_makes_passages(policy: Policy) -> None:
    kinds = ["prompt", "text", "thinking", "tool_call", "tool_result", "summary", "recap", "plan"]
    passages = passages_of(turns(*(turn(line, kind=kind) for line, kind in enumerate(kinds, 1))), policy)
    assert passages["kind"].to_pylist() == ["prompt", "text", "plan"]
    assert passages["seq"].to_pylist() == [0, 1, 2]


def test_what_a_program_asks_in_a_persons_place_is_found_as_its_own(policy: Policy) -> None:
    rows = [
        turn(1, "Judge this change.", kind="program", trust="assistant"),
        turn(2, "<task-notification>done</task-notification>", kind="program", trust="assistant"),
        turn(3, "Look for gauges.", kind="program", trust="assistant", agent_id="a1", file="/t/a1.jsonl"),
    ]
    passages = passages_of(turns(*rows), policy).to_pylist()
    assert [(row["kind"], row["trust"], row["text"]) for row in passages] == [
        ("program", "assistant", "Judge this change.")
    ]
    (first, _) = passages_of(turns(*rows, turn(4, "Go on.")), policy).to_pylist()
    assert (first["kind"], first["trust"]) == ("prompt", "user")


def test_seq_runs_over_each_file_in_the_order_of_its_lines(policy: Policy) -> None:
    rows = [turn(9, "late"), turn(2, "early"), turn(4, "other", file="/t/s2.jsonl")]
    passages = passages_of(turns(*rows), policy).to_pylist()
    assert [(row["text"], row["seq"]) for row in passages] == [("early", 0), ("late", 1), ("other", 0)]


def test_the_order_of_turns_changes_no_passage(policy: Policy) -> None:
    rows = [turn(line, "One reef. " * 60 * line) for line in range(1, 5)]
    assert passages_of(turns(*rows), policy).equals(passages_of(turns(*rows[::-1]), policy))


def test_a_long_turn_is_cut_at_paragraphs_into_passages_of_their_own(policy: Policy) -> None:
    paragraphs = [f"Paragraph {number}. " + "Tides turn twice a day. " * 15 for number in range(4)]
    passages = passages_of(turns(turn(3, "\n\n".join(paragraphs))), policy).to_pylist()
    assert [row["text"][:12] for row in passages] == ["Paragraph 0.", "Paragraph 2."]
    assert len({row["passage_id"] for row in passages}) == 2
    assert {row["line"] for row in passages} == {3}


def test_a_passage_is_embedded_with_its_date_and_speaker() -> None:
    assert embedded_text(turn(1, "Use SQLite")) == "1 September 2026 user: Use SQLite"
    assert embedded_text(turn(1, "Fine", kind="text", said_at=None)) == "assistant: Fine"


def test_a_memory_is_embedded_with_type_and_project() -> None:
    assert embedded_text(memory(project_id="reef-0123abcd")) == "[decision] [reef] Use SQLite"


def test_code_is_indexed_but_never_embedded() -> None:
    row = turn(1, "Call it so:\n```py\nopen_gauge()\n```\nand close it.", kind="text", said_at=None)
    assert embedded_text(row) == "assistant: Call it so:\nand close it."
    assert "open_gauge()" in index_text(row)


def test_a_passage_of_nothing_but_code_has_no_text_to_embed() -> None:
    assert embedded_text(turn(1, "```\nx = 1\n```")) == ""
    assert embedded_text(turn(1, "~~~py\nx = 1")) == ""


def test_a_cut_code_block_is_code_in_each_part() -> None:
    parts = identifier_parts("Before.\n```py\n" + "gauge = open()\n" * 30 + "```\nAfter.", 120)
    assert max(map(len, parts)) <= 120
    assert " ".join(filter(None, map(prose, parts))) == "Before. After."


def test_the_hash_of_a_passage_is_that_of_its_embedded_text(policy: Policy) -> None:
    (row,) = passages_of(turns(turn(1, "Use SQLite")), policy).to_pylist()
    assert row["content_hash"] == content_id(embedded_text(row))


def test_a_memory_is_found_by_its_files_and_tags() -> None:
    assert "tide_gauge.py" in index_text(memory(files=["src/tide_gauge.py"], tags=["sqlite"]))


@given(st.text(), st.integers(min_value=20, max_value=200))
def test_parts_keep_every_word_and_fit_the_limit(text: str, limit: int) -> None:
    text = text.replace("`", "").replace("~", "")
    parts = identifier_parts(text, limit)
    assert all(0 < len(part) <= limit for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())
