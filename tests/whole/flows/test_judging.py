"""A language model says how pairs of memories stand: once, under the budget, settled by a person."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cortex.flows.engines.runs import opened
from cortex.flows.operations.edit.review import resolve_items, review, undo_merges
from cortex.flows.operations.maintain.cost import read_cost, read_plan
from cortex.flows.past.rebuilding import compare, rebuild
from cortex.flows.stages import order
from cortex.storage.model_calls import Spending
from cortex.storage.settings.settings import ModelBudget
from cortex.transforms.journal_entries import Forget
from cortex.transforms.schemas import LINKS_PURPOSE, REPLIES
from tests.bench import NOW, contents, words_for_a_model
from tests.model_server import HOSTILE, Answer, Body, ModelServer, Recorded, noisy
from tests.transcripts import Talk
from tests.whole.flows.test_writing import (
    FACT,
    OUTCOME,
    WritingBench,
    answers,
    edges_of,
    shown,
    talk,
)

STATEMENT = FACT["statement"]
NEWER = "Tide tables are kept in SQLite at storage/tides.db, one file a month."
SAME = "Tide tables are kept in SQLite at storage/tides.db, and one file holds a year."
QUOTES = {
    NEWER: "Please keep the tide tables in SQLite at storage/tides.db, one file a month.",
    SAME: "Please keep the tide tables in SQLite at storage/tides.db; one file holds a year.",
}


@pytest.fixture
def unasked(home: Path, projects: Path) -> WritingBench:
    """Return a bench whose store asks no language model."""
    return WritingBench(home, projects, words_for_a_model)


def is_about_pairs(body: Body) -> bool:
    return str(body["messages"][0]["content"]).startswith("<pairs>")


def pairs_in(body: Body) -> list[str]:
    return re.findall(r"^\[(p\d+)\]$", body["messages"][0]["content"], re.MULTILINE)


def verdicts(word: str) -> Callable[[Body], Answer]:
    return lambda body: Answer(
        json.dumps({"pairs": [{"pair": pair, "answer": word} for pair in pairs_in(body)]})
    )


def reading(newer: str, of_pairs: Callable[[Body], Answer]) -> Callable[[Body, int], Answer]:
    """Return a temper that reads the second session as saying `newer`, and answers about pairs."""

    def answer(body: Body, number: int) -> Answer:
        if is_about_pairs(body):
            return of_pairs(body)
        said = QUOTES[newer]
        if said not in body["messages"][0]["content"]:
            return answers(FACT)
        return answers(FACT | {"statement": newer, "quote": said, "why": "", "instead_of": ""}, open="")

    return answer


def write_two(bench: WritingBench, newer: str) -> None:
    talk(start=NOW - timedelta(hours=9)).write(bench.projects)
    later = Talk("s2", start=NOW - timedelta(hours=5)).user(QUOTES[newer])
    later.assistant("Done: the tide tables are as you want them now, and the tests pass.").write(
        bench.projects
    )


def judgements(bench: WritingBench) -> list[dict[str, Any]]:
    rows = bench.store.lake.read(REPLIES).to_pylist()
    return [row for row in rows if row["purpose"] == LINKS_PURPOSE]


def asked_about_pairs(server: ModelServer) -> int:
    return sum(map(is_about_pairs, server.asked))


def live_tables_are_what_the_lake_gives(bench: WritingBench) -> bool:
    with opened("rebuild", bench.context) as run:
        comparison = compare(run)
    return comparison.rows > 0 and comparison.differences == []


def test_a_newer_fact_that_holds_is_proposed_and_a_second_run_asks_nothing(unasked):
    write_two(unasked, NEWER)
    with ModelServer(reading(NEWER, verdicts("newer holds"))) as server:
        bench = replace(unasked, url=server.url)
        report = bench.backfill()
        assert (len(server.asked), asked_about_pairs(server)) == (4, 1)
        assert next(stage for stage in report.stages if stage.stage == "judge").rows_out == 1
        (item,) = next(each.items for each in review(bench.context) if each.items)
        assert (item.kind, item.texts, item.is_by_model) == ("contradiction", (STATEMENT, NEWER), True)
        bench.run()
        before = contents(bench.home)
        bench.run("nightly")
        bench.run()
        assert (len(server.asked), contents(bench.home)) == (4, before)
        edges = edges_of(bench)
        assert live_tables_are_what_the_lake_gives(bench)
        with opened("rebuild", bench.context) as run:
            rebuild(run)
        assert edges_of(bench) == edges
        resolve_items(bench.context, accept=[item])
        assert NEWER in shown(bench) and STATEMENT not in shown(bench)
        assert len(server.asked) == 4


def test_kept_side_by_side_the_two_are_not_asked_about_again(unasked):
    write_two(unasked, NEWER)
    with ModelServer(reading(NEWER, verdicts("unsure"))) as server:
        bench = replace(unasked, url=server.url)
        bench.backfill()
        (item,) = next(each.items for each in review(bench.context) if each.items)
        assert item.is_by_model
        resolve_items(bench.context, keep=[item])
        assert [each.items for each in review(bench.context) if each.items] == []
        bench.run("nightly")
        assert {NEWER, STATEMENT} <= set(shown(bench)) and asked_about_pairs(server) == 1


def test_two_that_say_the_same_become_one_of_their_own_words_and_can_be_parted_again(unasked):
    write_two(unasked, SAME)
    with ModelServer(reading(SAME, verdicts("same"))) as server:
        bench = replace(unasked, url=server.url)
        bench.backfill()
        bench.run("nightly")
        texts = [text for text in shown(bench) if "storage/tides.db" in text]
        assert texts == [SAME]
        (merged,) = [row for row in bench.memories() if row["source_type"] == "consolidation"]
        assert len({place["session_id"] for place in merged["evidence"]}) == 2
        assert merged["created_at"] < NOW - timedelta(hours=8)
        originals = {row["text"]: row["status"] for row in bench.memories() if row["merged_into"]}
        assert originals == {STATEMENT: "archived", SAME: "archived"}
        assert live_tables_are_what_the_lake_gives(bench)
        undo_merges(bench.context)
        bench.run("nightly")
        assert {STATEMENT, SAME} <= set(shown(bench)) and asked_about_pairs(server) == 1


def test_both_that_hold_are_left_as_they_are(unasked):
    write_two(unasked, NEWER)
    with ModelServer(reading(NEWER, verdicts("both hold"))) as server:
        bench = replace(unasked, url=server.url)
        bench.backfill()
        bench.run("nightly")
        assert {NEWER, STATEMENT} <= set(shown(bench))
        assert [each.items for each in review(bench.context) if each.items] == []
        assert "contradicts" not in {edge["edge_type"] for edge in edges_of(bench)}


def test_only_new_pairs_are_asked_about(unasked):
    write_two(unasked, NEWER)
    with ModelServer(reading(NEWER, verdicts("both hold"))) as server:
        bench = replace(unasked, url=server.url)
        bench.backfill()
        again = talk("s3", cwd="/home/dev/reef", start=NOW - timedelta(hours=3))
        again.write(bench.projects)
        bench.backfill()
        assert asked_about_pairs(server) == 1  # another project's first fact meets none
        bench.run("nightly", now=NOW + timedelta(days=1))
        assert asked_about_pairs(server) == 1


def test_the_plan_the_bill_and_the_ledger_know_the_stage(unasked):
    write_two(unasked, NEWER)
    with ModelServer(reading(NEWER, verdicts("both hold"))) as server:
        bench = replace(unasked, url=server.url)
        replace(bench, url="").backfill()
        planned = {stage.stage: stage for stage in read_plan(bench.context).stages}
        assert planned["judge"].requests == 1 and planned["judge"].batch_usd == planned["judge"].usd > 0
        limited = replace(bench, budget=ModelBudget(run_requests=2))
        report = limited.run()
        assert asked_about_pairs(server) == 0
        assert any("1 pair of memories" in str(stage.note) for stage in report.stages)
        planned = {stage.stage: stage for stage in read_plan(bench.context).stages}
        assert (planned["write"].requests, planned["judge"].requests) == (0, 1)
        bench.run()
        assert [stage.requests for stage in read_plan(bench.context).stages] == [0, 0]
        purposes = {row.name: row for row in read_cost(bench.context).by_purpose}
        assert purposes[LINKS_PURPOSE].requests == 1
        attempts = Spending(bench.home).attempts()
        for name in ("input_tokens", "output_tokens"):
            assert server.billed[name] == sum(getattr(each, name) for each in attempts)
            assert server.billed[name] == sum(row[name] for row in bench.store.lake.read(REPLIES).to_pylist())


@pytest.mark.spread(3)
@pytest.mark.parametrize(
    "failure",
    ["rate limit", "refusal", "cut off", "half a JSON", "no JSON", "a list", "hung up", "bad request"],
)
def test_a_hostile_answer_changes_nothing_and_the_run_goes_on(unasked, failure):
    write_two(unasked, NEWER)
    with ModelServer(reading(NEWER, lambda body: HOSTILE[failure])) as server:
        bench = replace(unasked, url=server.url)
        report = bench.backfill()
        assert {NEWER, STATEMENT} <= set(shown(bench))
        assert any("anguage model" in note for note in report.notes)
        assert [each.items for each in review(bench.context) if each.items] == []
        asked = asked_about_pairs(server)
        bench.run("nightly")
        is_kept = failure in ("refusal", "cut off", "half a JSON", "no JSON", "a list")
        # What was answered and is of no use is not paid for again; what never came is asked for again.
        assert (asked_about_pairs(server) == asked, len(judgements(bench)) == 1) == (is_kept, is_kept)


def test_noise_is_believed_only_where_it_is_a_known_word_about_a_given_pair(unasked):
    write_two(unasked, NEWER)

    def noise(body: Body) -> Answer:
        right = json.loads(verdicts("newer holds")(body).text)
        return noisy(lambda content: right, seed=len(server.asked))(body, 0)

    with ModelServer(reading(NEWER, noise)) as server:
        bench = replace(unasked, url=server.url)
        bench.backfill()
        (row,) = judgements(bench)
    words = {item["answer"] for item in json.loads(row["text"])["pairs"]}
    assert words <= {"newer holds", ""}


def test_a_recorded_answer_is_found_by_the_request_that_was_sent(unasked, tmp_path):
    write_two(unasked, NEWER)
    with ModelServer(reading(NEWER, verdicts("newer holds"))) as server:
        bench = replace(unasked, url=server.url)
        bench.backfill()
        (row,) = judgements(bench)
        (body,) = filter(is_about_pairs, server.asked)
    (tmp_path / f"{row['request_id']}.json").write_text(json.dumps({"text": {"pairs": []}}))
    assert Recorded(tmp_path, [("links", "links@1")])(body, 0).text == '{"pairs": []}'


def test_killed_after_an_answer_it_is_not_asked_for_again(unasked, monkeypatch):
    write_two(unasked, NEWER)
    with ModelServer(reading(NEWER, verdicts("newer holds"))) as server:
        bench = replace(unasked, url=server.url)
        bench.stage()
        settle = Spending.settle

        def killed(*args: Any) -> None:
            if asked_about_pairs(server):
                raise KeyboardInterrupt
            settle(*args)

        monkeypatch.setattr(Spending, "settle", killed)
        with pytest.raises(KeyboardInterrupt):
            bench.run()
        monkeypatch.setattr(Spending, "settle", settle)
        bench.run()
        assert asked_about_pairs(server) == 1
        assert any(each.items for each in review(bench.context))
        assert live_tables_are_what_the_lake_gives(bench)


def test_what_is_forgotten_is_gone_from_the_verdicts_and_nothing_is_asked_again(unasked):
    write_two(unasked, NEWER)
    with ModelServer(reading(NEWER, verdicts("newer holds"))) as server:
        bench = replace(unasked, url=server.url)
        bench.backfill()
        memory = next(row for row in bench.memories() if row["text"] == NEWER)
        assert memory["memory_id"] in judgements(bench)[0]["known"]
        wish = Forget(turn_ids=tuple(place["turn_id"] for place in memory["evidence"]))
        bench.store.journal.write(
            wish.to_row(memory["project_id"], recorded_at=NOW, memory_id=memory["memory_id"])
        )
        with opened("nightly", bench.context) as run:
            for stage in order.FORGET:
                stage(run)
        assert judgements(bench) == []
        assert STATEMENT in shown(bench) and NEWER not in shown(bench)
        assert live_tables_are_what_the_lake_gives(bench)
        bench.run("nightly")
        assert len(server.asked) == 4


def test_with_replays_the_kept_verdicts_count_and_nothing_is_asked(unasked):
    write_two(unasked, NEWER)
    with ModelServer(reading(NEWER, verdicts("newer holds"))) as server:
        bench = replace(unasked, url=server.url)
        bench.backfill()
        edges = edges_of(bench)
    offline = WritingBench(bench.home, bench.projects, replays=True)
    with opened("rebuild", offline.context) as run:
        rebuild(run)
    assert edges_of(offline) == edges
    assert OUTCOME["goal"] in " ".join(shown(offline))
