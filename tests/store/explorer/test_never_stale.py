"""Answers are kept for speed, and never longer than they hold: an action, a run or a commit counts at
once."""

import json

import pytest

from cortex.explorer.page import ANSWERS_CACHED, AnswerCache
from cortex.flows.operations.ask import brief
from cortex.storage.published.catalogue import read_columns
from cortex.transforms.brief.explanation import Choice, brief_choices_of, choices_in
from cortex.transforms.masking import explanation_document


def test_the_brief_shown_is_the_one_that_would_be_explained_now(browser):
    context = browser.explorer.open_context()
    data = browser.json("/")
    published = brief.published_explanation(context, data["project_id"])
    [live] = brief.explain_briefs(context, data["project_id"])
    assert published is not None and published.text == live.text == data["text"]
    assert published.shown == live.shown and published.left_out == live.left_out
    assert published.total == live.total == data["candidates"]


@pytest.mark.first_is_quick
@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[1]", b'{"version": 1, "shown": [{"text": 3}]}', b"[" * 9_999]
)
def test_a_damaged_explanation_is_made_again_and_not_shown(browser, home, content):
    data = browser.json("/")
    (home / "published" / data["project_id"] / "choices.json").write_bytes(content)
    assert browser.json("/") == data


def test_a_commit_in_the_repository_counts_at_once(browser, monkeypatch):
    project = browser.json("/")["project_id"]
    states = iter(["first", "second"])
    monkeypatch.setattr("cortex.storage.published.catalogue.state_of", lambda paths: "moved")
    assert brief.published_explanation(browser.explorer.open_context(), project) is None
    monkeypatch.setattr("cortex.flows.operations.lookup.state_of", lambda paths: next(states))
    asked: list[str] = []
    explain = brief.explain_briefs

    def counted(*words, **options):
        asked.append("asked")
        return explain(*words, **options)

    monkeypatch.setattr(brief, "explain_briefs", counted)
    browser.page("/")
    browser.page("/")
    assert asked == ["asked", "asked"]


def test_an_answer_is_found_once_for_a_state_and_the_oldest_goes():
    answers, asked = AnswerCache(), []

    def find() -> str:
        asked.append(1)
        return f"answer {len(asked)}"

    assert [answers.get("a", 1, find), answers.get("a", 1, find), answers.get("a", 2, find)] == [
        "answer 1",
        "answer 1",
        "answer 2",
    ]
    for number in range(ANSWERS_CACHED):
        answers.get(number, 1, find)
    assert answers.get("a", 2, find) != "answer 2" and len(answers._cached) == ANSWERS_CACHED


def test_columns_are_those_of_the_file_that_is_there(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, new = tmp_path / "rows.parquet", tmp_path / "new.parquet"
    pq.write_table(pa.table({"a": [1], "b": ["x"]}), path)
    assert read_columns(path, ["a"])["a"].to_pylist() == [1] and read_columns(path).num_columns == 2
    pq.write_table(pa.table({"a": [2], "b": ["y"]}), new)
    new.replace(path)
    assert read_columns(path, ["b", "a"]).to_pylist() == [{"b": "y", "a": 2}]
    path.unlink()
    with pytest.raises(FileNotFoundError):
        read_columns(path, ["a"])


def test_what_is_published_of_a_brief_holds_no_secret():
    secret = "ghp_" + "a1B2" * 9
    choices = [Choice("decision", f"m{n}", f"fact {n}", n < 2, "why", n / 100) for n in range(60)]
    choices.append(Choice("gotcha", "m99", f"The token is {secret}.", False, "no room", 0.9))
    document = json.loads(
        json.dumps(explanation_document(brief_choices_of(choices, {"m1": "gone", "x": "y"})))
    )
    assert secret not in json.dumps(document) and document["doubts"] == {"m1": "gone"}
    back = choices_in(document)
    assert back is not None and back.candidates == 61 and len(back.left_out) == 40
    assert [choice.memory_id for choice in back.left_out[:2]] == ["m99", "m59"]


def test_no_thread_of_arrow_holds_a_file_of_python(tmp_path, monkeypatch):
    """It would let go of it at the end of the process, and abort that now and then."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    sources = []
    opened = pq.ParquetFile
    monkeypatch.setattr(pq, "ParquetFile", lambda source: sources.append(source) or opened(source))
    read_columns(tmp_path / "a.parquet")
    assert [type(source) for source in sources] == [pa.OSFile]
