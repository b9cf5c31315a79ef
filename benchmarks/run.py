"""
The table of numbers: `python -m benchmarks.run [NAME …] [--size quick|full] [--json]`.

Every figure comes with a baseline measured in the same run, so that tables of two machines can be compared
by their ratios. Nothing is asserted: a figure is for reading, a slow machine is no failure. `quick` (the
default, some minutes) and `full` (the sizes that the targets speak of, an hour and more) can also be chosen
by CORTEX_BENCH_SIZE. With `--page` the table is written into docs/performance.md as well.
"""

import argparse
import json
import os
import platform
import sys
from dataclasses import asdict

from benchmarks import commands, fits, large_stores, measures
from benchmarks.measures import SIZES, Measured
from cortex.cli.answer import Listing, print_listing
from cortex.transforms import __version__

ALL = (*measures.ALL, *commands.ALL, *large_stores.ALL)
COLUMNS = ["what", "value", "unit", "baseline", "its value", "ratio", "must", "aim"]
NUMBERS = {"value", "its value", "ratio", "must", "aim"}


def main() -> None:
    """Measure, then print a table or JSON."""
    names = [measure.__name__ for measure in ALL]
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}; default: all")
    parser.add_argument("--size", choices=SIZES, default=os.environ.get("CORTEX_BENCH_SIZE", "quick"))
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--page", action="store_true", help="write the table into docs/performance.md")
    chosen = parser.parse_args()
    if unknown := set(chosen.names) - set(names):
        parser.error(f"no measure is called {', '.join(sorted(unknown))}")
    figures: list[Measured] = []
    for measure in ALL:
        if not chosen.names or measure.__name__ in chosen.names:
            print(f"measuring {measure.__name__} …", file=sys.stderr, flush=True)
            figures += measure(SIZES[chosen.size])
    if chosen.page:
        page = fits.PAGE.read_text(encoding="utf-8")
        text = fits.rewritten(page, "bench", as_markdown(chosen.size, figures))
        fits.PAGE.write_text(text, encoding="utf-8")
    if chosen.json:
        print(json.dumps(as_dict(chosen.size, figures), indent=2))
    else:
        print_listing(
            Listing(
                f"Cortex {__version__}, {chosen.size}, {machine()}",
                COLUMNS,
                list(map(_cells, figures)),
                numbers=NUMBERS,
            )
        )


def as_dict(size: str, measured: list[Measured]) -> dict[str, object]:
    """Return what was measured, with the machine it was measured on, for comparing runs by a program."""
    figures = [{**asdict(figure), "ratio": figure.ratio if figure.baseline else None} for figure in measured]
    return {"version": __version__, "size": size, "machine": machine(), "figures": figures}


def as_markdown(size: str, measured: list[Measured]) -> str:
    """Return what was measured as a table of a page."""
    lines = [
        f"`python -m benchmarks.run --size {size}`, {machine()}:",
        "",
        f"| {' | '.join(COLUMNS)} |",
        "|---|---:|---|---|---:|---:|---:|---:|",
        *(f"| {' | '.join(_cells(figure))} |" for figure in measured),
    ]
    return "\n".join(lines)


def machine() -> str:
    """Return what a figure depends on."""
    return f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"


def _cells(figure: Measured) -> list[str]:
    ratio = f"{figure.ratio:.3g}" if figure.baseline else ""
    baseline = f"{figure.baseline_value:.3g}" if figure.baseline else ""
    return [
        figure.what,
        f"{figure.value:.3g}",
        figure.unit,
        figure.baseline,
        baseline,
        ratio,
        figure.must,
        figure.aim,
    ]


if __name__ == "__main__":
    main()
