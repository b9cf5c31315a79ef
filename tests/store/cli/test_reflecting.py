"""`reflect`, `infer` and `learn`: what is unsettled, why something is so, and what may be learned."""

import re

import pytest

from tests.process.cli.test_commands import error_of

PORT = "The tide gauge listens on port 8080."


def learned(cortex, *words):
    answer = cortex("learn", *words, "--json")
    assert answer.code == 0, answer.err
    return answer.json


def test_reflect_lists_what_is_open_contradictory_and_stale(cortex, samples):
    answer = cortex("reflect", "--all-projects", "--json")
    assert answer.code == 0 and set(answer.json) == {"open", "contradictory", "stale", "answer"}
    assert answer.json["answer"] is None and answer.json["open"]
    for point in answer.json["open"]:
        assert point["texts"] and cortex("show", point["memory_ids"][0]).code == 0
    text = cortex("reflect", "--all-projects").out
    assert [line.split(":")[0] for line in text.splitlines() if not line.startswith(" ")] == [
        "Open",
        "Contradictory",
        "Stale",
    ]


@pytest.mark.slow
def test_two_decisions_at_odds_are_a_point_until_a_person_settles_them(cortex, home):
    old = learned(cortex, PORT, "--type", "decision")["id"]
    new = learned(cortex, "The tide gauge listens on port 9090.", "--type", "decision", "--anyway")
    assert new["contradicts"] == [old]
    [point] = cortex("reflect", "--json").json["contradictory"]
    assert set(point["memory_ids"]) == {old, new["id"]}
    [item] = cortex("review", "--json").json["projects"][0]["items"]
    cortex("review", "--keep", item["id"])
    assert cortex("reflect", "--json").json["contradictory"] == []


@pytest.mark.slow
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


def test_an_open_point_says_of_what_session_it_is(cortex, samples):
    reasons = [point["reason"] for point in cortex("reflect", "--all-projects", "--json").json["open"]]
    assert any(re.fullmatch("left open by the session “.+”", reason) for reason in reasons)


@pytest.mark.slow
@pytest.mark.parametrize(
    "target", ["maxPackBytes", "--max-pack-bytes", "max_pack_bytes", "MaxPackBytes", "env var binding"]
)
def test_infer_knows_a_name_however_its_words_are_joined(cortex, home, target):
    text = "The env-var binding of --max-pack-bytes belongs to cmd.go, since cobra has none."
    named = learned(cortex, text, "--type", "decision")["id"]
    learned(cortex, "Gauges report the maximum of a pack of bytes each minute.", "--type", "decision")
    assert [step["id"] for step in cortex("infer", "--json", "--", target).json["chain"]] == [named]


def test_a_question_without_a_word_is_refused(cortex, samples):
    assert error_of(cortex("reflect", "???", "--json"))["code"] == "CORTEX_E401"
    assert error_of(cortex("infer", "???", "--json"))["code"] == "CORTEX_E401"


@pytest.mark.slow
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


def test_infer_says_why_and_what_was_rejected(cortex, samples):
    chain = cortex("infer", "SQLite", "--project", "tidepool", "--json").json["chain"]
    assert chain and all("sqlite" in f"{step['text']} {step['rejected']}".lower() for step in chain)
    assert [step["created_at"] for step in chain] == sorted(step["created_at"] for step in chain)


def test_infer_about_nothing_that_was_kept_says_so(cortex, samples):
    answer = cortex("infer", "zeppelin/mooring.rs", "--all-projects", "--json")
    assert (answer.code, answer.json["chain"]) == (0, [])
    assert "No memory is about" in cortex("infer", "zeppelin/mooring.rs", "--all-projects").err


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("should we use Redis?", "a question"),
        ("Use tabs", "too short"),
        ("make it good and fast", "names nothing"),
        ("the of and", "say nothing"),
        ("It is much better than the old cache", "leans on"),
        ("The staging key is sk-ant-api03-" + "A1b2C3d4" * 11 + "-AAAAAAAA", "secret"),
    ],
)
def test_what_is_no_lesson_is_refused_with_the_reason_and_nothing_is_kept(cortex, home, text, reason):
    answer = cortex("learn", text, "--json")
    assert (answer.code, error_of(answer)["code"]) == (18, "CORTEX_E400")
    assert reason in error_of(answer)["problem"] and not (home / "journal").exists()


@pytest.mark.slow
def test_what_contradicts_an_active_decision_needs_a_person_who_says_so(cortex, home):
    old = learned(cortex, PORT, "--type", "decision")["id"]
    answer = cortex("learn", "The tide gauge listens on port 9090.", "--json")
    assert (answer.code, error_of(answer)["code"]) == (18, "CORTEX_E402")
    assert old[:12] in error_of(answer)["problem"] and "--anyway" in error_of(answer)["next_step"]
    assert cortex("sql", "select count(*) from memories", "--json").json["rows"] == [[1]]


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_lesson_that_holds_everywhere_is_not_learned_again_for_one_project(cortex, home):
    fact = "Commits in every repository are signed with gitsign."
    everywhere = learned(cortex, fact, "--global")["id"]
    again = learned(cortex, fact)
    assert (again["id"], again["outcome"]) == (everywhere, "reinforced")


@pytest.mark.slow
def test_what_is_learned_names_its_evidence_and_is_believed_as_who_found_it_out(cortex, home):
    text = "Retries in poll.py stop after three tries, since the gauge then sleeps."
    mine = learned(cortex, text, "--evidence", "src/poll.py", "--evidence", "docs/gauge.md")["id"]
    its = learned(cortex, "The ledger of tides is sealed at midnight by seal.py.", "--by-assistant")["id"]
    rows = [cortex("show", name, "--json").json["memory"] for name in (mine, its)]
    assert [row["trust"] for row in rows] == ["user", "assistant"]
    assert rows[0]["files"] == ["docs/gauge.md", "src/poll.py"]
    assert [step["id"] for step in cortex("infer", "docs/gauge.md", "--json").json["chain"]] == [mine]


@pytest.mark.slow
def test_the_assistant_rewords_nothing_that_a_person_learned(cortex, home):
    mine = learned(cortex, "Retries in poll.py stop after three tries.")["id"]
    again = learned(cortex, "Retries in poll.py stop after three tries.", "--by-assistant")
    assert (again["id"], again["outcome"]) == (mine, "reinforced")
    assert cortex("show", mine, "--json").json["memory"]["trust"] == "user"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("Why do retries stop?", "question"),
        ("ok, thanks", ""),
        ("It works now.", ""),
        ("The key of the gauge is ghp_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R", "secret"),
    ],
)
def test_what_is_no_lesson_is_refused_with_the_reason(cortex, home, words, reason):
    error = error_of(cortex("learn", words, "--by-assistant", "--evidence", "a.py", "--json"))
    assert error["code"] == "CORTEX_E400" and reason in str(error)
