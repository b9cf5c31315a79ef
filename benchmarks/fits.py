"""
Which stage grows how: `python -m benchmarks.fits` brings docs/performance.md in line with the figures kept.

The figures are in benchmarks/growth_figures.csv, where `nightly` and `stream` put them with `--csv`. Of each
stage the exponent is fitted by least squares on the logarithms of size and processor seconds, and the curves
are drawn. Between the marks of the page nothing is written by hand.
"""

import re
from pathlib import Path

from benchmarks import stage_times
from benchmarks.stage_times import Figure

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "benchmarks" / "growth_figures.csv"
PAGE = ROOT / "docs" / "performance.md"
# What is measured, what its size counts, and the size that the target speaks of.
CURVES = {"night": ("memories", 1_000_000.0), "stream": ("MB read before", 10_000.0)}


def table(figures: list[Figure], what: str) -> str:
    """Return the figures of `what` by size and stage, with how each stage grows, as Markdown."""
    unit, target = CURVES[what]
    sizes = sorted({each.size for each in figures if each.what == what})
    seconds = {(each.stage, each.size): each.seconds for each in figures if each.what == what}
    peaks = {each.size: each.peak_mb for each in figures if each.what == what}
    shown = [sizes[round(at)] for at in _spread(len(sizes))]
    heads = [f"{size:,.0f}" for size in shown]
    lines = [
        f"| stage, by {unit} | {' | '.join(heads)} | grows as size to the | at {target:,.0f} |",
        f"|---|{'---|' * (len(shown) + 2)}",
    ]
    for fit in stage_times.fits(figures, what):
        cells = [f"{seconds[fit.stage, size]:.1f}" if (fit.stage, size) in seconds else "" for size in shown]
        name = "all, processor s" if fit.stage == stage_times.WHOLE else fit.stage
        lines.append(f"| {name} | {' | '.join(cells)} | {fit.exponent:.2f} | {fit.at(target):,.0f} |")
    lines.append(f"| memory at most, MB | {' | '.join(f'{peaks[size]:,.0f}' for size in shown)} | | |")
    return "\n".join(lines)


def _spread(count: int, most: int = 5) -> list[float]:
    """Return at most `most` places between 0 and count - 1, evenly."""
    if count <= most:
        return [float(at) for at in range(count)]
    return [at * (count - 1) / (most - 1) for at in range(most)]


def rewritten(page: str, what: str, text: str) -> str:
    """Return the page with `text` between its marks of `what`. Raises ValueError if it has none."""
    marks = re.compile(rf"(<!-- {what} -->\n).*?(<!-- /{what} -->)", re.DOTALL)
    if not marks.search(page):
        raise ValueError(f"the page has no marks of {what}")
    return marks.sub(lambda match: f"{match[1]}{text}\n{match[2]}", page)


def main() -> None:
    """Write tables and plots."""
    figures, page = stage_times.read(FIGURES), PAGE.read_text(encoding="utf-8")
    for what, (unit, _) in CURVES.items():
        if len({each.size for each in figures if each.what == what}) > 1:
            page = rewritten(page, what, table(figures, what))
            stage_times.plot(figures, what, unit, PAGE.with_name(f"{what}-stages.svg"))
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
