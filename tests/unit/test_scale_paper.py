"""The paper on 1,000 developers says what its script computes, and each figure counts and has a source."""

import re
from dataclasses import replace

import pytest

from benchmarks.scale_paper import (
    PAGE,
    Figures,
    SharedStore,
    filled,
    limits,
    read_figures,
    tables,
)
from tests.examples import cases

FIGURES = read_figures()
COMPUTED = ("store", "limits", "workers", "money")
LINK = re.compile(r"\]\(([^)#]+)")


def changed(name: str, factor: float = 2) -> Figures:
    row = FIGURES[name]
    other = replace(row, value=row.value * factor, low=row.low * factor, high=row.high * factor)
    return Figures({**FIGURES, name: other})


def test_the_page_is_as_the_script_prints_it():
    text = PAGE.read_text(encoding="utf-8")
    assert filled(text, FIGURES) == text, "run `python -m benchmarks.scale_paper`"


@cases("name", FIGURES)
def test_every_figure_moves_a_computed_table(name: str):
    before, after = tables(FIGURES), tables(changed(name))
    assert [table for table in COMPUTED if before[table] != after[table]]


def test_measurements_have_a_day_and_a_source_and_assumptions_a_year_and_a_range():
    measured = [row for row in FIGURES.values() if row.kind == "measured"]
    assumed = [row for row in FIGURES.values() if row.kind == "assumed"]
    assert len(measured) + len(assumed) == len(FIGURES)
    assert [
        row.name for row in measured if not (re.fullmatch(r"20\d\d-\d\d-\d\d", row.date) and row.source)
    ] == []
    assert [row.name for row in assumed if not re.fullmatch(r"20\d\d", row.date)] == []
    assert [row.name for row in FIGURES.values() if not row.low <= row.value <= row.high] == []


@cases("name", [name for name, row in FIGURES.items() if LINK.search(row.source)])
def test_a_measurement_taken_from_a_page_still_stands_there(name: str):
    row = FIGURES[name]
    link = LINK.search(row.source)
    assert link
    text = (PAGE.parent / link[1]).read_text(encoding="utf-8").replace(",", "")
    value = f"{row.value:.10f}".rstrip("0").rstrip(".").removeprefix("0")
    assert re.search(rf"(?<![\d.]){re.escape(value)}(?!\d|\.\d)", text)


def test_a_store_of_the_samples_size_is_the_sample():
    f = changed("developer_mb", FIGURES.sample_mb / FIGURES.developer_mb)
    laptop = SharedStore(f, 1)
    assert laptop.of_sample(f.store_mb) == pytest.approx(f.store_mb)
    assert laptop.memories == pytest.approx(f.sample_memories)
    assert laptop.projects == f.sample_projects


def test_a_limit_that_holds_for_some_developers_is_met_by_just_as_many():
    copy = next(limit for limit in limits(FIGURES) if limit.unit == "GB")
    some = SharedStore(FIGURES, copy.share * FIGURES.developers)
    assert some.of_sample(FIGURES.store_mb) / 1_000 == pytest.approx(FIGURES.laptop_gb)


def test_limits_come_tightest_first():
    shares = [limit.share for limit in limits(FIGURES)]
    assert shares == sorted(shares)


@pytest.mark.parametrize("page", ["", "<!-- table store -->\n\n<!-- end store -->"])
def test_a_page_without_its_markers_is_refused(page: str):
    with pytest.raises(ValueError, match="markers"):
        filled(page, FIGURES)
