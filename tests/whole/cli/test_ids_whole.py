"""An id is typed by its beginning, 4 characters or more, wherever one is asked for; several are listed."""

import re

import pytest


@pytest.fixture
def name(cortex, home, tmp_path, monkeypatch) -> str:
    monkeypatch.chdir(tmp_path)
    return str(cortex("remember", "The harbour door is red.", "--type", "decision", "--json").json["id"])


def with_a_digit(name: str) -> str:
    """Return a beginning of an id that is no word."""
    return name[:4] if not name[:4].isalpha() else name[:8]


@pytest.mark.spread(2)
@pytest.mark.parametrize(
    ("words", "form"),
    [
        (["show", "{}"], "{}"),
        (["pin", "{}"], "[{}]"),
        (["confirm", "{}"], " {} "),
        (["edit", "{}", "The harbour door is blue."], "`{}`"),
    ],
)
def test_the_beginning_names_a_memory_as_it_is_printed_and_copied(cortex, name, words, form):
    target = form.format(with_a_digit(name).upper())
    assert cortex(*(word.format(target) for word in words)).code == 0


@pytest.mark.parametrize("command", ["pin", "confirm", "show"])
def test_fewer_characters_name_nothing_and_the_error_says_how_many_do(cortex, name, command):
    answer = cortex(command, name[:3])
    is_number = command == "show" and name[:3].isdigit()  # of a session
    assert answer.code in (2, 5) and ("cortex timeline" if is_number else "4") in answer.err


def test_what_is_no_id_is_words_to_forget_by(cortex, name):
    answer = cortex("forget", "2026", "--yes")
    assert "holds all of these words. Nothing was forgotten." in answer.err


def test_the_ids_that_list_prints_are_taken_by_pin(cortex, name):
    [printed] = re.findall(r"^([0-9a-f]{6})\b", cortex("list").out, re.MULTILINE)
    assert cortex("pin", printed).code == 0
