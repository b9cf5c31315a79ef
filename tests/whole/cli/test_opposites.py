"""The opposite of what was remembered is never reinforced: a person is asked, or both are kept."""

import click
import pytest

NPM = "Use npm, not pnpm, in the web folder"
PNPM = "Use pnpm, not npm, in the web folder"


@pytest.fixture
def remembered(cortex):
    assert cortex("remember", NPM, "--json").json["outcome"] == "remembered"
    return cortex


def active(cortex):
    rows = cortex("sql", "select text from memories where status = 'active' order by text", "--json").json
    return [text for (text,) in rows["rows"]]


def test_without_a_terminal_both_are_kept_and_the_review_asks(remembered):
    answer = remembered("remember", PNPM)
    assert "Remembered as" in answer.out and "both are kept: cortex review" in answer.out + answer.err
    assert active(remembered) == [NPM, PNPM]
    [project] = [each for each in remembered("review", "--json").json["projects"] if each["items"]]
    assert [(item["kind"], item["texts"]) for item in project["items"]] == [("contradiction", [NPM, PNPM])]


@pytest.mark.parametrize(("says", "left"), [(True, [PNPM]), (False, [NPM, PNPM])])
def test_at_a_terminal_the_person_says_whether_the_new_one_takes_its_place(
    remembered, monkeypatch, says, left
):
    monkeypatch.setattr("cortex.cli.shape.remember.can_ask", lambda: True)
    monkeypatch.setattr(click, "confirm", lambda *words, **more: says)
    assert NPM in remembered("remember", PNPM).out
    assert active(remembered) == left


def test_the_assistant_learns_nothing_against_it(remembered):
    answer = remembered("learn", PNPM, "--by-assistant", "--json")
    assert answer.code != 0 and answer.json["error"]["code"] == "CORTEX_E402"
    assert active(remembered) == [NPM]
