"""Recall finds what was said and what is known, by words alone or with vectors, and says where it stands."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cortex.flows.recalling.recall_search import RecallResult, search_store, with_replaced
from cortex.storage.settings.reference import read_policy
from cortex.storage.tables.lance_tables import LanceTables
from cortex.transforms.errors import ModelUnavailable
from cortex.transforms.identity import content_id
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EDGES
from cortex.transforms.search import embedded_text, index_text, passages_of
from tests.rows import memories, memory, turn, turns

NOW = datetime(2026, 10, 1, tzinfo=UTC)
# Each topic is a direction, so that texts are near exactly if they speak of the same one.
TOPICS = (("tide", "sea", "water"), ("coral", "reef", "polyp"), ("clock", "time", "utc"))


class TopicEmbedder:
    model, dimensions = "topics", len(TOPICS) + 1

    def embed(self, texts: Sequence[str], *, as_query: bool = False) -> Any:
        rows = [
            [float(any(word in text.lower() for word in topic)) for topic in TOPICS] + [0.1] for text in texts
        ]
        vectors = np.array(rows, dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class BrokenEmbedder(TopicEmbedder):
    def embed(self, texts: Sequence[str], *, as_query: bool = False) -> Any:
        raise ModelUnavailable("no answer.", "Try later.")


@pytest.fixture(scope="module")
def policy() -> Policy:
    return read_policy(None)


def evidence(*lines: int, file: str = "/t/s1.jsonl") -> dict[str, Any]:
    return {
        "turn_id": "t", "session_id": "s1", "file": file, "lines": list(lines), "layer": "llm:small@1",
        "said_at": NOW, "git_branch": None,
    }  # fmt: skip


class Asked:
    """A real store of passages and memories in one scope, and the question's fixed words."""

    def __init__(self, home: Path, policy: Policy) -> None:
        self.tables, self.policy = LanceTables(home), policy

    def hold(self, name: str, rows: pa.Table, scope: str = "reef-1", with_vectors: bool = True) -> None:
        listed = rows.to_pylist()
        rows = rows.append_column("index_text", pa.array([index_text(row) for row in listed], pa.string()))
        if with_vectors:
            vectors = list(TopicEmbedder().embed([embedded_text(row) for row in listed]))
            rows = rows.append_column("vector", pa.array(vectors, pa.list_(pa.float32(), len(TOPICS) + 1)))
        self.tables.replace(scope, name, rows)

    def say(self, *rows: dict[str, Any]) -> None:
        self.hold("passages", passages_of(turns(*rows), self.policy))

    def know(self, *rows: dict[str, Any], scope: str = "reef-1") -> None:
        self.hold("memories", memories(*rows), scope)

    def __call__(
        self, question: str, embedder: Any = None, limit: int = 5, scopes: Any = ("reef-1",)
    ) -> list[RecallResult]:
        return search_store(
            self.tables, question, scopes=scopes, policy=self.policy, embedder=embedder, limit=limit
        )


@pytest.fixture
def ask(tmp_path: Path, policy: Policy) -> Asked:
    return Asked(tmp_path / "store", policy)


def test_a_turn_is_found_by_its_words_with_its_line(ask: Asked) -> None:
    ask.say(turn(7, "The tide gauges report in UTC."), turn(20, "Paint the boat."))
    (found,) = ask("Which gauges report?")
    assert (found.kind, found.text, found.confidence) == ("turn", "The tide gauges report in UTC.", None)
    assert [(item.session_id, item.file, item.lines) for item in found.evidence] == [
        ("s1", "/t/s1.jsonl", (7,))
    ]


def test_a_turn_is_found_by_its_meaning_without_a_common_word(ask: Asked) -> None:
    ask.say(turn(1, "Polyps grow slowly."), turn(9, "Set every clock."))
    assert ask("coral?") == []
    assert ask("coral?", TopicEmbedder())[0].text == "Polyps grow slowly."


def test_words_still_find_when_the_model_does_not_answer(ask: Asked) -> None:
    ask.say(turn(1, "Polyps grow slowly."))
    assert [found.text for found in ask("polyps", BrokenEmbedder())] == ["Polyps grow slowly."]


def test_words_still_find_when_the_stored_vectors_are_of_another_model(ask: Asked) -> None:
    class Wider(TopicEmbedder):
        def embed(self, texts: Sequence[str], *, as_query: bool = False) -> Any:
            return np.full((len(texts), 9), 1 / 3, dtype=np.float32)

    ask.say(turn(1, "Polyps grow slowly."))
    assert [found.text for found in ask("polyps", Wider())] == ["Polyps grow slowly."]


def test_rows_without_vectors_are_found_beside_rows_with_them(ask: Asked) -> None:
    ask.know(memory("m1", "Coral needs light"))
    ask.hold(
        "passages", passages_of(turns(turn(1, "Coral grows near light.")), ask.policy), with_vectors=False
    )
    assert {found.kind for found in ask("coral light", TopicEmbedder())} == {"memory", "turn"}


def test_a_memory_and_its_passage_are_one_result_with_the_lines_of_both(ask: Asked) -> None:
    ask.say(turn(4, "Let us keep all times in UTC."), turn(30, "Coral is an animal."))
    ask.know(memory("m1", "Times are kept in UTC", evidence=[evidence(4, 6)]))
    (found, *others) = ask("times in UTC", TopicEmbedder())
    assert (found.id, found.kind, found.passage) == ("m1", "memory", "Let us keep all times in UTC.")
    assert [item.lines for item in found.evidence] == [(4, 6)]
    assert all(other.text != "Let us keep all times in UTC." for other in others)


@pytest.mark.parametrize(
    "hidden", [{"status": "superseded"}, {"status": "pruned"}, {"status": "archived", "merged_into": "m2"}]
)
def test_what_is_no_longer_valid_is_not_told(ask: Asked, hidden: dict[str, Any]) -> None:
    ask.know(memory("m1", "Tides are logged hourly", **hidden))
    assert ask("tides logged", TopicEmbedder()) == []


def test_an_archived_memory_is_found_and_says_so(ask: Asked) -> None:
    ask.know(memory("m1", "Tides are logged hourly", status="archived"))
    assert [found.status for found in ask("tides logged")] == ["archived"]


def test_an_external_memory_is_found_with_its_source_or_as_imported(ask: Asked) -> None:
    ask.know(
        memory("m1", "Tides are logged hourly", trust="external", evidence=[evidence(3)]),
        memory("m2", "Tides and tides logged daily", trust="external"),
        memory("m3", "Tides logged at the pier", trust="external", source_type="import"),
    )
    assert {(found.id, found.trust) for found in ask("tides logged")} == {
        ("m1", "external"),
        ("m3", "external"),
    }


def test_only_the_named_scopes_are_searched_and_global_beside_the_project(ask: Asked) -> None:
    ask.know(memory("m1", "Tides are logged hourly"))
    ask.know(memory("m2", "Tides: prefer metres", project_id="global"), scope="global")
    ask.know(memory("m3", "Tides of another harbour", project_id="other"), scope="other")
    assert {found.id for found in ask("tides", scopes=("reef-1", "global"))} == {"m1", "m2"}


def test_no_more_results_than_asked_best_first(ask: Asked) -> None:
    ask.say(*(turn(10 * line, f"Tide {'tide ' * (line % 3)}note {'abcdefghi'[line]}") for line in range(9)))
    found = ask("tide note", limit=4)
    assert len(found) == 4
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


def test_the_order_of_scopes_changes_nothing(ask: Asked) -> None:
    ask.know(memory("m1", "Tides are logged hourly"))
    ask.know(memory("m2", "Tides are read at noon", project_id="global"), scope="global")
    there, back = (
        ask("tides", TopicEmbedder(), scopes=scopes)
        for scopes in (("reef-1", "global"), ("global", "reef-1"))
    )
    assert there == back


def test_an_empty_store_and_an_empty_question_find_nothing(ask: Asked) -> None:
    assert ask("tides", TopicEmbedder()) == []
    ask.say(turn(1, "The tide turns."))
    assert ask(" ", TopicEmbedder()) == []


class ApartEmbedder(TopicEmbedder):
    """Texts of no common topic have nothing in common; goes by a name that has a calibration."""

    model, dimensions = "all-MiniLM-L6-v2", len(TOPICS) + 64

    def embed(self, texts: Sequence[str], *, as_query: bool = False) -> Any:
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[: len(TOPICS)] = [any(word in text.lower() for word in topic) for topic in TOPICS]
            row[len(TOPICS) + int(content_id(text), 16) % 64] = 0.5
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def stored(ask: Asked, name: str, rows: pa.Table) -> None:
    listed = rows.to_pylist()
    vectors = list(ApartEmbedder().embed([row["text"] for row in listed]))
    kind = pa.list_(pa.float32(), ApartEmbedder.dimensions)
    rows = rows.append_column("index_text", pa.array([index_text(row) for row in listed], pa.string()))
    ask.tables.replace("reef-1", name, rows.append_column("vector", pa.array(vectors, kind)))


NONSENSE = (
    "asdf qwer zxcv",
    "purple zebra submarine",
    "who painted the Mona Lisa",
    "오늘 저녁 메뉴 추천해줘",
)


@pytest.mark.parametrize("embedder", [None, ApartEmbedder()])
@pytest.mark.parametrize("question", NONSENSE)
def test_nonsense_finds_nothing(ask: Asked, question: str, embedder: Any) -> None:
    said = turns(turn(7, "The tide gauges report in UTC."), turn(20, "Paint the boat."))
    stored(ask, "passages", passages_of(said, ask.policy))
    stored(ask, "memories", memories(memory("m1", "Levels are whole millimetres, who ever reads them.")))
    assert ask(question, embedder) == []


@pytest.mark.parametrize("question", ["millimetres", "whole levels or not?", "what does poll_gauge do"])
@pytest.mark.parametrize("embedder", [None, ApartEmbedder()])
def test_a_question_in_the_words_of_a_memory_or_its_files_is_answered(
    ask: Asked, question: str, embedder: Any
) -> None:
    row = memory("m1", "Levels are whole millimetres.", files=["src/poll_gauge.py"])
    stored(ask, "memories", memories(row))
    assert [found.id for found in ask(question, embedder)] == ["m1"]


def test_what_has_no_vector_yet_is_answered_by_fewer_words(ask: Asked) -> None:
    ask.hold("memories", memories(memory("m1", "Levels are whole millimetres.")), with_vectors=False)
    assert [found.id for found in ask("What unit are the levels in?", ApartEmbedder())] == ["m1"]


def test_meaning_alone_answers_where_no_word_is_shared(ask: Asked) -> None:
    said = turns(turn(7, "The reef bleaches."), turn(9, "Paint the boat."))
    stored(ask, "passages", passages_of(said, ask.policy))
    (found,) = ask("Any polyp news?", ApartEmbedder(), limit=1)
    assert found.text == "The reef bleaches."


@pytest.mark.parametrize(
    ("question", "is_answered"),
    [
        ("Which whole levels do we bake?", True),
        ("How do I bake sourdough bread?", False),  # one word of three, and no more between all results
        ("Which whole level has the gauge?", True),
        ("Which whole level have the snowflake and the kimono?", False),  # no result has the names
    ],
)
def test_by_words_alone_one_of_several_is_no_answer_nor_words_beside_missing_names(
    ask: Asked, question: str, is_answered: bool
) -> None:
    ask.say(turn(3, "The gauges bake in the sun."), turn(90, "Levels are whole millimetres."))
    assert bool(ask(question)) is is_answered


@pytest.mark.parametrize("embedder", [None, ApartEmbedder()])
@pytest.mark.parametrize(
    ("question", "is_answered"),
    [
        ("Warum schreibt saltmarsh keine Pegel nach tidepool.db hinein?", True),
        ("Warum liest saltmarsh keine Pegel aus Snowflake ein?", False),  # a name alone
    ],
)
def test_two_names_answer_a_question_in_another_language(
    ask: Asked, question: str, is_answered: bool, embedder: Any
) -> None:
    stored(ask, "memories", memories(memory("m1", "Only acme writes to tidepool.db, saltmarsh is read.")))
    assert bool(ask(question, embedder)) is is_answered


def test_the_only_memory_of_a_small_store_is_found_by_one_telling_word(ask: Asked) -> None:
    ask.know(memory("m1", "Use pnpm"))
    assert [found.id for found in ask("npm or pnpm?")] == ["m1"]
    assert [found.id for found in ask("pnpm")] == ["m1"]


def test_the_reason_and_what_was_rejected_stand_beside_a_choice(ask: Asked) -> None:
    ask.know(
        memory(
            "m1", "Tides are kept in SQLite", reason="one writer is enough", rejected="Postgres",
            evidence=[evidence(4)],
        )
    )  # fmt: skip
    [result] = ask("Where are tides kept?")
    assert (result.why, result.rejected) == ("one writer is enough", "Postgres")


def test_what_the_statement_says_is_not_said_again(ask: Asked) -> None:
    text = "Tides are kept in SQLite, not Postgres, since one writer is enough"
    ask.know(memory("m1", text, reason="one writer is enough", rejected="Postgres"))
    [result] = ask("Where are tides kept?")
    assert (result.why, result.rejected) == ("", "")


def test_asked_why_a_result_gives_the_reason_of_its_stretch(ask: Asked) -> None:
    why = "The buoy reports metres because the agencies send metres."
    ask.know(memory("m1", "The buoy reports metres", evidence=[evidence(4)]))
    painted = " ".join(f"Pier {number} was painted." for number in range(30))
    ask.say(turn(4, f"The buoy reports. Buoys report metres, not feet. {painted} {why}"))
    assert ask("Why does the buoy report metres?")[0].why == why
    assert ask("Does the buoy report metres?")[0].why == ""


def test_a_turn_is_shown_once(ask: Asked) -> None:
    ask.know(
        memory("m1", "Tides are kept in SQLite", evidence=[evidence(4)]),
        memory("m2", "The coral tides need light of their own", evidence=[evidence(900)]),
    )
    said = "We settled on it: tides are kept in SQLite, one file for each harbour, and coral has none."
    ask.say(turn(4, said), turn(20, "Tides of the harbour are in metres."), turn(901, said + " Coral tides."))
    results = ask("tides of coral and harbour")
    shown = [text for each in results for text in (each.quote, each.why, *(n.statement for n in each.nearby))]
    texts = [text for text in shown if text]
    assert len(results) > 1
    assert len(texts) == len(set(texts))
    assert sum("one file for each harbour" in text for text in [*texts, *(r.statement for r in results)]) == 1


def test_of_two_statements_of_a_session_the_later_one_comes_first(ask: Asked) -> None:
    ask.know(
        memory("m1", "The buoy sends its level by radio", evidence=[evidence(4)]),
        memory("m2", "The buoy sends its level by cable", evidence=[evidence(900)]),
    )
    assert ask("How does the buoy send its level?")[0].id == "m2"


def test_what_only_says_what_comes_next_stands_behind_what_says_something(ask: Asked) -> None:
    ask.say(
        turn(4, "Tides: high water at noon.", kind="text"), turn(90, "Let me read the tides:", kind="text")
    )
    assert ask("tides")[0].text == "Tides: high water at noon."


def test_a_turn_that_only_puts_something_forward_says_so(ask: Asked) -> None:
    ask.say(turn(4, "We could keep the tide tables in Postgres.", kind="text", trust="assistant"))
    [result] = ask("Where are tide tables kept?")
    assert result.statement == "Proposed: We could keep the tide tables in Postgres."


def test_a_person_who_puts_something_forward_is_quoted(ask: Asked) -> None:
    ask.say(turn(4, "We could keep the tide tables in Postgres."))
    assert ask("Where are tide tables kept?")[0].statement == "We could keep the tide tables in Postgres."


def test_of_the_passage_below_a_memory_what_it_does_not_say_is_quoted(ask: Asked) -> None:
    fact = "Tide tables of every harbour are kept in one SQLite file"
    ask.know(memory("m1", fact, evidence=[evidence(4)]))
    ask.say(turn(4, f"{fact}. {'Piers are painted white each spring. ' * 12}Tide files are copied nightly."))
    assert "Tide files are copied nightly." in ask("Where are the tide tables?")[0].quote


@pytest.mark.parametrize(
    ("edge_type", "text", "is_earlier"),
    [
        ("contradicts", "Tide tables are kept in Postgres", True),
        ("relates_to", "Tide tables are kept in Postgres", False),
        ("relates_to", "Proposed: Tide tables are kept in Postgres", True),
    ],
)
def test_a_memory_is_called_earlier_where_the_links_say_it_is_of_one_subject_or_it_was_put_forward(
    ask: Asked, edge_type: str, text: str, is_earlier: bool
) -> None:
    ask.know(
        memory("m1", text, evidence=[evidence(4)]),
        memory("m2", "Tide tables are kept in SQLite now", evidence=[evidence(900)], updated_at=NOW),
    )
    link = {
        "edge_id": "e1", "project_id": "reef-1", "source_id": "m1", "target_id": "m2",
        "edge_type": edge_type, "strength": 0.9, "rule": "negation",
    }  # fmt: skip
    ask.tables.replace("reef-1", "edges", EDGES.of([link]))
    [result] = with_replaced(ask.tables, ask("Where are tide tables kept?"))
    assert (result.id, [(near.id, near.is_earlier) for near in result.nearby]) == ("m2", [("m1", is_earlier)])
