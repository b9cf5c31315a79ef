"""`cortex report`: a month as Markdown or as a page; what a session said cannot act in either."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.cli.ask.report import _effect_answer
from cortex.flows.operations.maintain.report import (
    EffectReport,
    MonthReport,
    ReportLine,
    report_html,
    report_markdown,
)
from cortex.transforms.views.effect import COMPARED_SIDES, MEASURES, TOO_FEW, compared
from tests.examples import cases

HEADINGS = ["Decisions", "Gotchas", "Corrections", "Said again and again", "Left open"]


def month(*texts: str, **chosen) -> MonthReport:
    values = {
        "month": "2026-09",
        "title": "reef, September 2026",
        "sessions": 1,
        "prompts": 4,
        "corrections": 1,
        "days": {"2026-09-03": 4},
        "trend": {"2026-08": 0.5, "2026-09": 0.25},
        "sections": {"Decisions": [ReportLine("2026-09-03", "", text) for text in texts]},
    }
    return MonthReport(**(values | chosen))


def test_the_last_month_with_a_session_is_reported(cortex, samples):
    answer = cortex("report", "--project", "tidepool", "--json")
    report = answer.json
    assert answer.code == 0 and report["sessions"] > 0 and list(report["sections"]) == HEADINGS
    assert all(item["day"].startswith(report["month"]) for item in report["sections"]["Decisions"])
    text = cortex("report", "--project", "tidepool").out
    assert text.startswith("# tidepool, ") and [f"## {name}" in text for name in HEADINGS] == [True] * 5
    assert cortex("report", "--project", "tidepool", "--month", report["month"]).out == text


def test_a_month_without_a_session_is_empty_and_another_word_is_an_error(cortex, samples):
    assert "0 sessions on 0 days" in cortex("report", "--month", "2020-01").out
    answer = cortex("report", "--month", "lately")
    assert (answer.code, "YYYY-MM" in answer.err) == (2, True)


def test_the_page_goes_to_a_file(cortex, samples, tmp_path):
    path = tmp_path / "report.html"
    answer = cortex("report", "--html", "--output", path, "--project", "tidepool")
    assert answer.code == 0 and str(path) in answer.out
    page = path.read_text(encoding="utf-8")
    assert (
        page.startswith("<!doctype html>")
        and "<script" not in page
        and "http" not in page.split("<body>")[0][200:]
    )


def test_the_plots_are_svg_that_needs_nothing_else(cortex, samples):
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    page = cortex("report", "--html", "--project", "tidepool").out
    images = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(images) == 2
    assert all(ElementTree.fromstring(image).tag.endswith("svg") for image in images)


def test_a_long_section_says_how_much_more_there_is():
    text = report_markdown(month(*map(str, range(33))))
    assert text.count("\n- ") == 30 and "And 3 more." in text


@cases(
    "hostile",
    ["![x](https://x.invalid/a.png)", "[x](javascript:1)", "<img src=x>", "a\n# b", "https://x.invalid"],
)
def test_nothing_that_was_said_becomes_a_link_an_image_or_a_tag(hostile):
    text = report_markdown(month(hostile))
    line = next(line for line in text.splitlines() if line.startswith("- "))
    assert not re.search(r"(?<!\\)\[|<|://", line)
    assert text.count("\n# ") == 0
    assert "<img" not in report_html(month(hostile))


@given(st.text())
def test_a_page_has_as_many_items_as_there_are_texts_whatever_they_say(text):
    page = report_html(month(text, text))
    assert page.count("<li>") == page.count("</li>") == 2


# -- What changed with memory


def test_where_nothing_was_shown_yet_the_effect_is_too_little_to_tell(cortex, samples):
    answer = cortex("report", "--effect", "--all-projects")
    assert answer.code == 0 and answer.out.startswith("This is observed, not tested")
    assert answer.out.lower().count(TOO_FEW) >= 2 and "has been shown a brief yet" in answer.err
    report = cortex("report", "--effect", "--all-projects", "--json").json
    assert report["comparisons"].keys() == COMPARED_SIDES.keys() and report["note"] in answer.out
    overall = report["comparisons"]["first_brief"][-1]
    assert [each["measure"] for each in overall["differences"]] == list(MEASURES)
    assert {each["verdict"] for each in overall["differences"]} == {TOO_FEW}


def test_the_effect_is_of_all_months_and_is_printed(cortex, samples):
    assert cortex("report", "--effect", "--html").code == 2
    assert cortex("report", "--effect", "--month", "2026-09").code == 2


def test_a_difference_is_shown_with_its_interval_and_nothing_is_called_better():
    def session(side, number):
        measures = dict.fromkeys(MEASURES, number % 3 / 100)
        measures["minutes_to_edit"] = number % 3 + 20.0 * (side == "before")
        return {"project_id": "p", "side": side} | measures

    sessions = [session(side, number) for side in ("before", "with") for number in range(9)]
    comparisons = {name: compared(sessions, name) for name in COMPARED_SIDES}
    answer = _effect_answer(EffectReport({"p": "reef"}, comparisons, 1, 9, (0.01, 0.008, 0.012)))
    [table] = [line for line in answer.lines if not isinstance(line, str)]
    assert table.title == "Before the first brief: 9 sessions in 1 project; after it: 9 sessions in 1 project"
    minutes, turns, *_ = table.rows
    assert minutes[:3] == ["minutes to first edit", "21.0", "1.0"] and minutes[3].startswith("-20.0 (-2")
    assert turns[3] == "0.0 (0.0 to 0.0)"
    assert minutes[-1] == "lower" and turns[-1] == "no difference shown"
    assert "1.0 % of a context window" in str(answer.lines[-1]) and "better" not in str(answer)
