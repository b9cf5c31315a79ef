"""The prompt hook and recall answer a question alike if no vectors are used, whatever the store holds."""

import math
import random
import sqlite3
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex.flows.recalling.recall_search import question_of, search_store
from cortex.flows.stages.publish import ranks_for
from cortex.hooks.evidence import index as reading
from cortex.hooks.evidence.index import best_rows, index_parts, open_index, ranks_in, read_settings
from cortex.hooks.evidence.question import Asked, SearchQuestion, certainty_of
from cortex.hooks.evidence.search import find
from cortex.storage.settings.reference import read_policy
from cortex.storage.tables.lance_tables import LanceTables
from cortex.storage.tables.search_file import write_index
from cortex.storage.tables.search_index import SearchIndex
from cortex.transforms.search import index_text, passages_of, search_settings, settings_document
from tests.examples import examples
from tests.rows import START, memories, memory, turn, turns

POLICY = read_policy(None)
NUMBERS = search_settings(POLICY).numbers
HOOKS = Path(__file__).resolve().parents[3] / "hooks"
VOCABULARY = """
tide gauge buoy reef harbour pump valve sensor pnpm sqlite postgres redis release deploy config
loadTideTable tide_table.py metres feet because instead of never always use keep the a of port 8080
부표 潮汐表 where when run tests commit branch parser retry timeout cache queue
"""
WORDS = VOCABULARY.split()
KINDS = ("decision", "gotcha", "outcome")
NEXT_DAY = START + timedelta(days=1)
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=14).map(" ".join)
STORES = st.tuples(
    st.lists(st.tuples(TEXTS, st.integers(1, 60), st.sampled_from(KINDS)), max_size=8),
    st.lists(st.tuples(TEXTS, st.sampled_from(["prompt", "text", "choice"])), min_size=1, max_size=25),
)


def with_text(rows: pa.Table) -> pa.Table:
    texts = [index_text(row) for row in rows.to_pylist()]
    return rows.append_column("index_text", pa.array(texts, pa.string()))


def evidence(line: int) -> dict[str, object]:
    return {"turn_id": "t", "session_id": "s1", "file": "s1", "lines": [line], "layer": "layer2:en",
            "said_at": None, "git_branch": None}  # fmt: skip


def made(home: Path, facts: list[tuple[str, int, str]], said: list[tuple[str, str]]) -> LanceTables:
    """Return tables of two scopes that hold these, indexed as a run leaves them."""
    tables = LanceTables(home)
    assert tables.index is not None
    rows = memories(
        *(
            memory(f"m{at}", text, memory_type=kind, evidence=[evidence(line)])
            for at, (text, line, kind) in enumerate(facts)
        )
    )
    talk = turns(*(turn(at, text, kind=kind, file="s1") for at, (text, kind) in enumerate(said, start=1)))
    for name, table in (("memories", rows), ("passages", passages_of(talk, POLICY))):
        table = with_text(table)
        tables.index.replace("reef-1", name, table, list(range(table.num_rows)))
    tables.settle_search(settings_document(POLICY), ranks_for(POLICY))
    return tables


def by_hook(home: Path, text: str, limit: int, *, with_nearby: bool = True) -> list[object]:
    connection = open_index(str(home / "tables" / "search.sqlite"))
    question = SearchQuestion(text, read_settings(connection), lambda words: ranks_in(connection, words))
    scopes, least = ["reef-1", "global"], NUMBERS["unsure_certainty"]
    results = find(connection, scopes, question, limit=limit, with_nearby=with_nearby, least_certainty=least)
    connection.close()
    return [shown(each) for each in results]


def by_recall(tables: LanceTables, text: str, limit: int, *, with_nearby: bool = True) -> list[object]:
    scopes = ["reef-1", "global"]
    results = search_store(
        tables, text, scopes=scopes, policy=POLICY, embedder=None, limit=limit, with_nearby=with_nearby
    )
    return [shown(each) for each in results]


def shown(result: Any) -> object:
    nearby = [(each.id, each.statement) for each in result.nearby]
    return result.id, result.score, result.statement, result.quote, result.why, nearby


@settings(max_examples=examples(30), deadline=None)
@given(STORES, st.lists(TEXTS, min_size=1, max_size=3), st.integers(1, 10))
def test_hook_and_recall_give_the_same_results_in_the_same_order(
    tmp_path_factory: pytest.TempPathFactory,
    store: tuple[list[tuple[str, int, str]], list[tuple[str, str]]],
    questions: list[str],
    limit: int,
) -> None:
    home = tmp_path_factory.mktemp("store")
    tables = made(home, *store)
    for question in questions:
        for with_nearby in (True, False):  # as recall shows them, and as the hook does
            found = by_hook(home, question, limit, with_nearby=with_nearby)
            assert found == by_recall(tables, question, limit, with_nearby=with_nearby)


def exact_scores(index: SearchIndex, words: list[str]) -> dict[int, float]:
    """Return BM25 of all rows as numpy adds it up, without any bound."""
    with index.reading([]) as connection:
        assert connection is not None
        parts = index_parts(connection, ["reef-1"], "passages")
        count, mean = parts[0].rows, parts[0].words / parts[0].rows
        scores: dict[int, float] = {}
        for word in words:
            row = connection.execute("select entries from postings where word = ?", (word,)).fetchone()
            entries = np.frombuffer(row[0] if row else b"", "<u4,<u2,<u2")
            rarity = np.log(1 + (count - len(entries) + 0.5) / (len(entries) + 0.5))
            for number, often, length in entries.tolist():
                weight = rarity * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * length / mean))
                scores[number] = scores.get(number, 0.0) + weight
    return scores


def many(home: Path, rows: int) -> SearchIndex:
    chance = random.Random(7)
    said = [(" ".join(chance.choices(WORDS, k=12)), "text") for _ in range(rows)]
    tables = made(home, [], said)
    assert tables.index is not None
    return tables.index


def test_within_the_bound_of_entries_the_best_rows_are_the_best_of_all(tmp_path: Path) -> None:
    index = many(tmp_path, 400)
    words = ["tide", "gaug", "pump", "8080"]
    exact = exact_scores(index, words)
    with index.reading([]) as connection:
        best = best_rows(connection, index_parts(connection, ["reef-1"], "passages"), words, 50)
    assert [score for _, score in best] == pytest.approx(sorted(exact.values(), reverse=True)[:50])


def test_beyond_the_bound_common_words_still_order_the_rows_of_the_rarer_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = many(tmp_path, 400)
    words = ["tide", "gaug", "pump", "8080"]
    exact = exact_scores(index, words)
    monkeypatch.setattr(reading, "MAX_ENTRIES", 250)
    with index.reading([]) as connection:
        best = best_rows(connection, index_parts(connection, ["reef-1"], "passages"), words, 20)
    for row, score in best:
        assert score == pytest.approx(exact[row])
    assert [row for row, _ in best[:5]] == sorted(exact, key=lambda row: -exact[row])[:5]


def test_the_same_order_whatever_order_the_rows_were_written_in(tmp_path: Path) -> None:
    said = [("the tide gauge", "text")] * 9
    tables = made(tmp_path, [], said)
    assert tables.index is not None
    first = by_hook(tmp_path, "tide gauge", 9)
    again = turns(*(turn(at, text, kind=kind, file="s1") for at, (text, kind) in enumerate(said, start=1)))
    rows = with_text(passages_of(again, POLICY))
    backwards = rows.take(list(range(rows.num_rows))[::-1])
    tables.index.replace("reef-1", "passages", backwards, list(range(rows.num_rows)), keeps=False)
    assert by_hook(tmp_path, "tide gauge", 9) == first


def test_reading_leaves_nothing_beside_the_index_and_waits_for_no_writer(tmp_path: Path) -> None:
    home = tmp_path
    made(home, [], [("the tide gauge reports in metres", "prompt")])
    folder = home / "tables"
    before = sorted(path.name for path in folder.iterdir())
    assert by_hook(home, "tide gauge metres", 3)
    assert sorted(path.name for path in folder.iterdir()) == before
    with write_index(folder / "search.sqlite") as connection:
        connection.execute("update settings set value = value")
        assert by_hook(home, "tide gauge metres", 3)


def test_a_read_only_folder_is_read(tmp_path: Path) -> None:
    made(tmp_path, [], [("the tide gauge reports in metres", "prompt")])
    (tmp_path / "tables").chmod(0o555)
    try:
        assert by_hook(tmp_path, "tide gauge metres", 3)
    finally:
        (tmp_path / "tables").chmod(0o755)


def test_beside_the_bare_hooks_the_search_imports_without_the_engine() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(HOOKS)!r}); import evidence.search; print(sorted(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert not {"dataclasses", "typing", "inspect", "cortex"} & set(eval(found.stdout))


def test_a_question_is_cut_at_both_ends() -> None:
    text = "tide " + "x " * 9_000 + "gauge"
    terms = question_of(text, POLICY).terms
    assert {"tide", "gaug"} <= set(terms)


def test_another_layout_is_refused(tmp_path: Path) -> None:
    made(tmp_path, [], [("the tide gauge", "prompt")])
    with sqlite3.connect(tmp_path / "tables" / "search.sqlite") as connection:
        connection.execute("drop table settings")
    connection = open_index(str(tmp_path / "tables" / "search.sqlite"))
    with pytest.raises(sqlite3.Error):
        read_settings(connection)


def found_in(home: Path, question: str, *rows: dict[str, Any]) -> list[Any]:
    """Return what is found where these memories are all there is."""
    tables = LanceTables(home)
    assert tables.index is not None
    table = with_text(memories(*rows))
    tables.index.replace("reef-1", "memories", table, list(range(table.num_rows)))
    tables.settle_search(settings_document(POLICY), ranks_for(POLICY))
    connection = open_index(str(home / "tables" / "search.sqlite"))
    asked = SearchQuestion(question, read_settings(connection), lambda words: ranks_in(connection, words))
    results = find(connection, ["reef-1"], asked, limit=5)
    connection.close()
    return results


def test_what_a_later_word_ended_gives_way_to_that_word(tmp_path: Path) -> None:
    older = memory(
        "m1", "Tide readings of the harbour are kept in SQLite", valid_until=NEXT_DAY, closed_by="m2"
    )
    newer = memory("m2", "The harbour archive is in Postgres now", updated_at=NEXT_DAY)
    [first, *_] = found_in(tmp_path, "Are tide readings of the harbour kept in SQLite?", older, newer)
    assert first.id == "m2"


def test_the_reason_given_is_the_memorys_own(tmp_path: Path) -> None:
    rows = (
        memory(
            "m1", "Chose Redis over Memcached for the cache", reason="it persists", evidence=[evidence(10)]
        ),
        memory(
            "m2", "Chose Stripe over Adyen for the payments", evidence=[evidence(12)], updated_at=NEXT_DAY
        ),
        memory("m3", "Chose Redis over Kafka for the queue because it is there", evidence=[evidence(14)]),
    )
    [first, *_] = found_in(tmp_path, "why did we choose Redis for the cache", *rows)
    assert (first.id, first.why) == ("m1", "it persists")


def test_a_result_is_led_by_what_has_the_questions_words(tmp_path: Path) -> None:
    rows = (
        memory("m1", "Chose Redis over Memcached for the report cache", evidence=[evidence(10)]),
        memory(
            "m2", "Chose Stripe over Adyen for the report page", evidence=[evidence(11)], updated_at=NEXT_DAY
        ),
    )
    [first, *_] = found_in(tmp_path, "why did we choose Redis as cache", *rows)
    assert first.id == "m1"


WEIGHTS = st.dictionaries(st.sampled_from(WORDS), st.floats(0.1, 4.6), min_size=1, max_size=12)


@given(WEIGHTS, st.lists(TEXTS, max_size=6), TEXTS, st.integers(0, 50_000), st.integers(0, 50_000))
def test_a_row_more_never_takes_certainty_away_and_words_more_never_give_any(
    weights, texts, text, words, more
):
    asked, numbers = Asked(weights), NUMBERS

    def certainty(rows, searched):
        near = [asked.nearness(row, None) for row in rows]
        return certainty_of(asked, near, numbers, searched_words=searched)

    assert 1 >= certainty([*texts, text], words) >= certainty(texts, words) >= 0
    assert certainty(texts, words) >= certainty(texts, words + more)


@given(WEIGHTS, st.lists(TEXTS, min_size=1, max_size=6), st.floats(0, 1), st.integers(0, 50_000))
def test_what_words_and_what_the_model_say_adds_up(weights, texts, cosine, searched):
    asked, whole = Asked(weights), (0.5, 0.9)
    plain, near = (
        [asked.nearness(text, None) for text in texts],
        [asked.nearness(text, cosine) for text in texts],
    )

    def certainty(rows, whole, numbers=NUMBERS):
        return certainty_of(asked, rows, numbers, whole, searched_words=searched)

    by_words, by_model = (
        certainty(plain, None),
        certainty(near, whole, {**NUMBERS, "answer_weight": math.inf}),
    )
    assert certainty(near, whole) == pytest.approx(min(by_words + by_model, 1), abs=1e-9)
    assert certainty(plain, whole) == by_words


def test_words_of_any_projects_sessions_weigh_less_when_it_is_asked_whether_anything_answers():
    asked = question_of("commit the celadon glaze", POLICY).asked
    assert asked.telling["commit"] < 1 < asked.weights["commit"]
    assert asked.telling["celadon"] == asked.weights["celadon"] == asked.rare
