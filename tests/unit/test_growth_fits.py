"""Claims about what is told of growth: fits are of the figures kept, and the page says what they say."""

import pytest

from benchmarks import fits, stage_times
from benchmarks.stage_times import Figure


def cubes(stage="decay"):
    return [Figure("night", float(size), stage, 2e-3 * size**3, 100.0 + size) for size in (10, 20, 40)]


def test_a_fit_finds_how_seconds_grow_and_the_longest_stage_comes_first():
    squares = [Figure("night", float(size), "all", size**2.0, 9.0) for size in (10, 20, 40)]
    first, second = stage_times.fits([*cubes(), *squares], "night")
    assert (first.stage, second.stage) == ("all", "decay")
    assert (round(first.exponent, 6), round(second.exponent, 6)) == (2.0, 3.0)
    assert second.at(80) == pytest.approx(2e-3 * 80**3)


def test_of_too_short_stages_nothing_is_told():
    short = [Figure("night", float(size), "guard", 0.01, 9.0) for size in (10, 20)]
    assert stage_times.fits(short, "night") == []


def test_figures_kept_are_read_back_and_new_ones_take_their_place(tmp_path):
    path = tmp_path / "figures.csv"
    stage_times.keep(path, cubes())
    stage_times.keep(path, [Figure("night", 20.0, "decay", 7.0, 8.0)])
    assert stage_times.read(path)[1] == Figure("night", 20.0, "decay", 7.0, 8.0)
    assert [each.size for each in stage_times.read(path)] == [10.0, 20.0, 40.0]
    assert stage_times.read(tmp_path / "missing.csv") == []


def test_a_page_has_its_table_between_its_marks_and_the_rest_stays():
    page = "# A\n<!-- night -->\nold\n<!-- /night -->\nend\n"
    text = fits.table(cubes(), "night")
    assert "| decay | 2.0 | 16.0 | 128.0 | 3.00 |" in text
    assert fits.rewritten(page, "night", text) == f"# A\n<!-- night -->\n{text}\n<!-- /night -->\nend\n"
    with pytest.raises(ValueError, match="no marks of stream"):
        fits.rewritten(page, "stream", text)


def test_the_page_says_what_the_figures_say():
    figures, page = stage_times.read(fits.FIGURES), fits.PAGE.read_text(encoding="utf-8")
    for what in fits.CURVES:
        assert fits.rewritten(page, what, fits.table(figures, what)) == page


def test_a_plot_is_drawn_without_a_script_from_elsewhere(tmp_path):
    stage_times.plot(cubes(), "night", "memories", tmp_path / "night.svg")
    drawn = (tmp_path / "night.svg").read_text(encoding="utf-8")
    assert "decay: size ^ 3.00" in drawn and "tooltips.min.js" not in drawn
