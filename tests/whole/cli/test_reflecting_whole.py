"""`reflect`, `infer` and `learn`: what is unsettled, why something is so, and what may be learned."""

import re

import pytest

from tests.process.cli.test_commands import error_of

PORT = "The tide gauge listens on port 8080."


def learned(cortex, *words):
    answer = cortex("learn", *words, "--json")
    assert answer.code == 0, answer.err
    return answer.json


def test_two_decisions_at_odds_are_a_point_until_a_person_settles_them(cortex, home):
    old = learned(cortex, PORT, "--type", "decision")["id"]
    new = learned(cortex, "The tide gauge listens on port 9090.", "--type", "decision", "--anyway")
    assert new["contradicts"] == [old]
    [point] = cortex("reflect", "--json").json["contradictory"]
    assert set(point["memory_ids"]) == {old, new["id"]}
    [item] = cortex("review", "--json").json["projects"][0]["items"]
    cortex("review", "--keep", item["id"])
    assert cortex("reflect", "--json").json["contradictory"] == []


def test_a_question_is_answered_by_the_memories_themselves_that_hold_the_nearest_first(cortex, home):
    first = learned(cortex, "Levels of the harbour are stored as millimetres in tides.db.")["id"]
    second = learned(cortex, "Levels of the lagoon are stored as centimetres.")["id"]
    question = "how are levels of the harbour stored in tides.db"
    answer = cortex("reflect", question, "--json").json["answer"]
    assert [each["memory_ids"] for each in answer["statements"]] == [[first], [second]]
    assert answer["source"] == "rules" and "no language model" in answer["note"]
    cortex("supersede", first, second)
    answer = cortex("reflect", question, "--json").json["answer"]
    assert [each["memory_ids"] for each in answer["statements"]][:1] == [[second]]
    shown = cortex("reflect", question)
    # When it was said stands with it, and what became of it.
    assert re.search(rf"\[{second[:8]}, \d{{4}}-\d\d-\d\d\]", shown.out)
    assert "no language model is chosen" in shown.err.lower()


@pytest.mark.spread(2)
@pytest.mark.parametrize(
    "target", ["maxPackBytes", "--max-pack-bytes", "max_pack_bytes", "MaxPackBytes", "env var binding"]
)
def test_infer_knows_a_name_however_its_words_are_joined(cortex, home, target):
    text = "The env-var binding of --max-pack-bytes belongs to cmd.go, since cobra has none."
    named = learned(cortex, text, "--type", "decision")["id"]
    learned(cortex, "Gauges report the maximum of a pack of bytes each minute.", "--type", "decision")
    assert [step["id"] for step in cortex("infer", "--json", "--", target).json["chain"]] == [named]


def test_infer_gives_the_chain_of_decisions_by_time_with_what_was_replaced(cortex, home):
    old = learned(cortex, "Gauge readings are polled by src/poll.py each minute.", "--type", "decision")["id"]
    new = learned(cortex, "Gauge readings arrive as webhooks at src/hook.py.", "--type", "decision")["id"]
    other = learned(cortex, "Invoices are written in Go.", "--type", "decision")["id"]
    cortex("supersede", old, new)
    for target in ("gauge readings", "src/poll.py", "poll.py", "src/", new):
        inference = cortex("infer", target, "--json").json
        chain = inference["chain"]
        assert [step["id"] for step in chain] == [old, new], target
        assert chain[0]["relations"] == [{"relation": "replaced by", "id": new}]
        assert chain[1]["relations"] == [{"relation": "replaces", "id": old}]
        assert [step["status"] for step in chain] == ["superseded", "active"]
        cited = [each["memory_ids"] for each in inference["narrative"]["statements"]]
        assert cited == [[old], [new]] and other not in str(inference)
    text = cortex("infer", "src/poll.py").out
    assert f"replaced by {new[:8]}" in text and "superseded" in text


def test_what_contradicts_an_active_decision_needs_a_person_who_says_so(cortex, home):
    old = learned(cortex, PORT, "--type", "decision")["id"]
    answer = cortex("learn", "The tide gauge listens on port 9090.", "--json")
    assert (answer.code, error_of(answer)["code"]) == (18, "CORTEX_E402")
    assert old[:12] in error_of(answer)["problem"] and "--anyway" in error_of(answer)["next_step"]
    assert cortex("sql", "select count(*) from memories", "--json").json["rows"] == [[1]]


def test_what_is_known_is_reinforced_and_named(cortex, samples):
    [known, *_] = [
        row
        for row in cortex("list", "--project", "tidepool", "--type", "decision", "--json").json["memories"]
    ]
    before = cortex("sql", "select count(*) from memories", "--json").json["rows"]
    again = learned(cortex, known["text"], "--type", "decision", "--project", "tidepool")
    assert (again["id"], again["outcome"]) == (known["memory_id"], "reinforced")
    assert cortex("sql", "select count(*) from memories", "--json").json["rows"] == before
    own = learned(cortex, "Bollards in the north basin are painted white.")
    assert learned(cortex, "Bollards in the north basin are painted white!")["id"] == own["id"]


def test_a_lesson_that_holds_everywhere_is_not_learned_again_for_one_project(cortex, home):
    fact = "Commits in every repository are signed with gitsign."
    everywhere = learned(cortex, fact, "--global")["id"]
    again = learned(cortex, fact)
    assert (again["id"], again["outcome"]) == (everywhere, "reinforced")


def test_what_is_learned_names_its_evidence_and_is_believed_as_who_found_it_out(cortex, home):
    text = "Retries in poll.py stop after three tries, since the gauge then sleeps."
    mine = learned(cortex, text, "--evidence", "src/poll.py", "--evidence", "docs/gauge.md")["id"]
    its = learned(cortex, "The ledger of tides is sealed at midnight by seal.py.", "--by-assistant")["id"]
    rows = [cortex("show", name, "--json").json["memory"] for name in (mine, its)]
    assert [row["trust"] for row in rows] == ["user", "assistant"]
    assert rows[0]["files"] == ["docs/gauge.md", "src/poll.py"]
    assert [step["id"] for step in cortex("infer", "docs/gauge.md", "--json").json["chain"]] == [mine]


def test_the_assistant_rewords_nothing_that_a_person_learned(cortex, home):
    mine = learned(cortex, "Retries in poll.py stop after three tries.")["id"]
    again = learned(cortex, "Retries in poll.py stop after three tries.", "--by-assistant")
    assert (again["id"], again["outcome"]) == (mine, "reinforced")
    assert cortex("show", mine, "--json").json["memory"]["trust"] == "user"
