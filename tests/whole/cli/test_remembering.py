"""`cortex remember`: noise is refused with a next step, a known fact is reinforced, `recall` needs a word."""

import pytest

from tests.process.cli.test_commands import error_of

FACT = "The invoice service is written in Go."


def of(cortex, memory_id):
    columns = "text, access_count, is_pinned, priority, created_at, updated_at"
    answer = cortex("sql", f"select {columns} from memories where memory_id = '{memory_id}'", "--json").json
    return [dict(zip(answer["columns"], row, strict=True)) for row in answer["rows"]]


@pytest.mark.parametrize(
    "text", ["asdf", "???", "", "the of and", "should we use X?", "password=Tr0ub4dor3xyz"]
)
def test_noise_is_refused_and_nothing_is_kept(cortex, home, text):
    answer = cortex("remember", text, "--json")
    assert (answer.code, error_of(answer)["code"]) == (18, "CORTEX_E400")
    assert "cortex remember" in error_of(answer)["next_step"] and not (home / "journal").exists()
    assert "[CORTEX_E400]" in cortex("remember", text).err


def test_an_edit_to_noise_is_refused(cortex, home):
    name = cortex("remember", FACT, "--json").json["id"]
    answer = cortex("edit", name, "???", "--json")
    assert (answer.code, error_of(answer)["code"]) == (18, "CORTEX_E400")
    assert of(cortex, name)[0]["text"] == FACT


@pytest.mark.parametrize("question", ["", "   ", "???", "🎉"])
@pytest.mark.parametrize("words", [[], ["--json"]])
def test_a_recall_of_nothing_is_refused(cortex, samples, question, words):
    answer = cortex("recall", question, *words)
    assert answer.code == 18 and "[CORTEX_E401]" in answer.err


def test_a_fact_said_again_is_one_memory_and_loses_nothing(cortex, home):
    name = cortex("remember", FACT, "--pin", "--priority", "9", "--json").json["id"]
    cortex("recall", "invoice service")
    again = cortex("remember", "the invoice services are written in `Go`!", "--json").json
    assert (again["id"], again["outcome"]) == (name, "reinforced")
    [row] = of(cortex, name)
    assert (row["text"], row["is_pinned"], row["priority"], row["access_count"]) == (FACT, True, 9, 1)
    assert row["created_at"] < row["updated_at"]
    assert cortex("sql", "select count(*) from memories", "--json").json["rows"] == [[1]]
    assert cortex("remember", FACT).out.startswith(f"Known already as {name[:12]}")


def test_words_that_say_more_take_the_place_of_the_shorter_ones(cortex, home):
    name = cortex("remember", FACT, "--json").json["id"]
    more = "The invoice service is written in Go, since the team knows it."
    again = cortex("remember", more, "--json").json
    assert (again["id"], again["outcome"]) == (name, "reworded")
    assert [row["text"] for row in of(cortex, name)] == [more]


def test_another_fact_is_another_memory(cortex, home):
    first = cortex("remember", FACT, "--json").json
    other = cortex("remember", "The invoice service is not written in Go.", "--json").json
    assert {first["outcome"], other["outcome"]} == {"remembered"} and first["id"] != other["id"]
