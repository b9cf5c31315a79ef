"""
Cortex at 1,000 developers, on paper: `python -m benchmarks.scale_paper` prints the tables of `docs/scale.md`.

Every number there is a measurement times stated factors, all of them rows of `scale_figures.csv`: measured
here, with date and source, or assumed, with a range. This script measures nothing.
"""

import csv
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FIGURES = Path(__file__).with_name("scale_figures.csv")
PAGE = Path(__file__).parents[1] / "docs" / "scale.md"
SIZES = (1, 25)  # developers who share a store, besides all of them

# What a commit writes one after another: files, manifest, tree, and the entry of the log.
REQUESTS_OF_A_COMMIT = 4
# The entries that take the lease and give it back.
LEASE_ENTRIES = 2
HOUR, DAY = 3_600, 86_400

Cells = list[str]


@dataclass(frozen=True)
class Figure:
    """One row of the file: a value, measured or assumed, the latter between `low` and `high`."""

    kind: str
    name: str
    value: float
    low: float
    high: float
    unit: str
    date: str
    source: str


class Figures(dict[str, Figure]):
    """The rows by name; an attribute is a row's value."""

    def __getattr__(self, name: str) -> float:
        """Return the value of a row. Raises AttributeError for a name that no row has."""
        if name not in self:
            raise AttributeError(name)
        return self[name].value


def read_figures(path: Path = FIGURES) -> Figures:
    """Return the rows of the file of figures by name."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return Figures(
        (
            row["name"],
            Figure(
                kind=row["kind"],
                name=row["name"],
                value=float(row["value"]),
                low=float(row["low"] or row["value"]),
                high=float(row["high"] or row["value"]),
                unit=row["unit"],
                date=row["date"],
                source=row["source"],
            ),
        )
        for row in rows
    )


@dataclass(frozen=True)
class SharedStore:
    """What a store comes to that `developers` share; sizes in MB, times in seconds of one processor."""

    figures: Figures
    developers: float

    @property
    def transcripts_mb(self) -> float:
        """Return the transcripts of all of them."""
        return self.developers * self.figures.developer_mb

    @property
    def projects(self) -> float:
        """Return the number of projects, at least those of one laptop."""
        return max(self.figures.sample_projects, self.developers * self.figures.developer_projects)

    @property
    def sessions_a_day(self) -> float:
        """Return the sessions of a working day."""
        return self.developers * self.figures.sessions_a_day

    @property
    def sessions_a_year(self) -> float:
        """Return the sessions of a year."""
        return self.sessions_a_day * self.figures.days_a_year

    def of_sample(self, value: float) -> float:
        """Return what was measured of the sample, by the megabyte, for these transcripts."""
        return value * self.transcripts_mb / self.figures.sample_mb

    @property
    def memories(self) -> float:
        """Return the memories."""
        return self.of_sample(self.figures.sample_memories)

    @property
    def night_s(self) -> float:
        """Return a night with nothing new."""
        return self.figures.night_s * self.memories / self.figures.night_memories

    @property
    def recall_s(self) -> float:
        """Return the search over all projects for one question."""
        return self.figures.search_ms / 1_000 * self.memories / self.figures.search_memories

    @property
    def session_mb(self) -> float:
        """Return what one session sends, without trees and manifests."""
        return self.figures.session_mb * self.memories / self.figures.session_memories

    @property
    def lists_mb(self) -> float:
        """Return what trees and manifests of one session's commits weigh."""
        kilobytes = (self.figures.tree_kb + self.figures.manifest_kb) / self.figures.sample_projects
        return self.figures.session_commits * kilobytes * self.projects / 1_000

    @property
    def entries_a_session(self) -> float:
        """Return the entries of the log that a session leaves."""
        return self.figures.session_commits + LEASE_ENTRIES

    @property
    def looks(self) -> float:
        """Return the reads that find the end of a year's log: ahead in doubled steps, then back by halves."""
        return 2 * math.ceil(math.log2(self.sessions_a_year * self.entries_a_session))

    @property
    def requests_a_session(self) -> float:
        """Return the requests that follow one another for one session."""
        return self.figures.session_commits * REQUESTS_OF_A_COMMIT + LEASE_ENTRIES

    @property
    def lease_s(self) -> float:
        """Return how long a session keeps the only writer, without what it uploads."""
        return self.figures.short_run_s + self.requests_a_session * self.figures.round_trip_s


def sizes(figures: Figures) -> list[SharedStore]:
    """Return the stores that the tables compare."""
    return [SharedStore(figures, count) for count in (*SIZES, figures.developers)]


def store_rows(figures: Figures) -> Iterator[Cells]:
    """Yield a row a quantity, with a cell for each size of store."""
    stores = sizes(figures)
    uplink = figures.line_mb_s
    for label, values in (
        ("transcripts, GB", [s.transcripts_mb / 1_000 for s in stores]),
        ("projects", [s.projects for s in stores]),
        ("memories, millions", [s.memories / 1e6 for s in stores]),
        ("a backfill on one core, days", [s.of_sample(figures.backfill_s) / DAY for s in stores]),
        ("of that without embedding", [s.of_sample(figures.words_s) / DAY for s in stores]),
        ("the store, and each machine's copy, GB", [s.of_sample(figures.store_mb) / 1_000 for s in stores]),
        ("its search index, GB", [s.of_sample(figures.search_mb) / 1_000 for s in stores]),
        ("files that a session sends, MB", [s.session_mb for s in stores]),
        ("… in minutes", [s.session_mb / uplink / 60 for s in stores]),
        ("trees and manifests that a session writes, MB", [s.lists_mb for s in stores]),
        ("sessions a working day", [s.sessions_a_day for s in stores]),
        (
            "hours a day the one writer is busy, without uploads",
            [s.sessions_a_day * s.lease_s / HOUR for s in stores],
        ),
        (
            "entries of the log a year, millions",
            [s.sessions_a_year * s.entries_a_session / 1e6 for s in stores],
        ),
        ("reads until a new copy knows the end of a year's log", [s.looks for s in stores]),
        ("a night with nothing new, hours", [s.night_s / HOUR for s in stores]),
        ("a question over all projects, s of searching", [s.recall_s for s in stores]),
    ):
        yield [label, *map(shown, values)]


@dataclass(frozen=True)
class Limit:
    """What ends a store that all share: what it comes to, what is allowed, and what would end the limit."""

    what: str
    amount: float
    allowed: Figure
    unit: str
    remedy: str

    @property
    def share(self) -> float:
        """Return the part of all developers that it holds for; above 1 it is no limit."""
        return self.allowed.value / self.amount


def limits(figures: Figures) -> list[Limit]:
    """Return the limits, tightest first."""
    f, everybody = figures, SharedStore(figures, figures.developers)
    files_s, lists_s = (mb / f.line_mb_s for mb in (everybody.session_mb, everybody.lists_mb))
    writer_h = everybody.sessions_a_day * everybody.lease_s / HOUR
    copy_gb, backfill_h = everybody.of_sample(f.store_mb) / 1_000, everybody.of_sample(f.backfill_s) / HOUR
    rows = (
        Limit("upload of files after a session", files_s, f["wait_s"], "s", "files a project"),
        Limit("a backfill on one core", backfill_h, f["first_hours"], "h", "shards over workers"),
        Limit("a question over all projects", everybody.recall_s, f["recall_s"], "s", "an index of vectors"),
        Limit(
            "a copy of the whole on each machine", copy_gb, f["laptop_gb"], "GB", "copies of one's projects"
        ),
        Limit(
            "one writer, a lease a session", writer_h, f["hours_a_day"], "h", "a log and a writer a project"
        ),
        Limit("a night by one process", everybody.night_s / HOUR, f["night_hours"], "h", "nights by project"),
        Limit("upload of trees and manifests after a session", lists_s, f["wait_s"], "s", "trees of changes"),
    )
    return sorted(rows, key=lambda limit: limit.share)


def limit_rows(figures: Figures) -> Iterator[Cells]:
    """Yield a row a limit, tightest first."""
    for limit in limits(figures):
        row = limit.allowed
        amount, allowed = (f"{shown(value)} {limit.unit}" for value in (limit.amount, row.value))
        holds, low, high = (
            shown(value / limit.amount * figures.developers) for value in (row.value, row.low, row.high)
        )
        yield [limit.what, amount, allowed, f"{holds} ({low} to {high})", limit.remedy]


def worker_rows(figures: Figures) -> Iterator[Cells]:
    """Yield what a backfill over workers would come to."""
    everybody = SharedStore(figures, figures.developers)
    shards = math.ceil(everybody.transcripts_mb / figures.shard_mb)
    shard_s = figures.backfill_s / figures.sample_mb * figures.shard_mb
    shard_words_s = figures.words_s / figures.sample_mb * figures.shard_mb
    for label, value in (
        ("shards, a task each", shards),
        ("a shard on one core, minutes", shard_s / 60),
        ("… without embedding, minutes", shard_words_s / 60),
        ("processor hours in all", shards * shard_s / HOUR),
        (f"hours on {shown(figures.cores)} cores", shards * shard_s / HOUR / figures.cores),
        ("… without embedding", shards * shard_words_s / HOUR / figures.cores),
        ("GB of memory of all workers, at the measured peak", figures.peak_mb * figures.cores / 1_000),
        (
            "hours of one writer, if each shard took the lease as a session does",
            shards * everybody.lease_s / HOUR,
        ),
    ):
        yield [label, shown(value)]


def money_rows(figures: Figures) -> Iterator[Cells]:
    """Yield what is paid, at the assumed prices and over their range."""
    f, everybody = figures, SharedStore(figures, figures.developers)
    hours = everybody.of_sample(f.backfill_s) / HOUR
    gigabytes = everybody.of_sample(f.store_mb) / 1_000
    requests = everybody.sessions_a_year * everybody.requests_a_session / 1_000
    tokens = everybody.transcripts_mb * f.embed_tokens_per_mb / 1e6
    written = f.writer_usd / f.sample_sessions
    for label, amount, factors in (
        ("backfill, processor time, once", hours, ("core_usd", "work_factor")),
        ("hosted embedding of the backfill instead of local, once", tokens, ("embed_usd",)),
        ("a language model over the backfill, once", everybody.of_sample(f.writer_usd), ("writer_factor",)),
        ("a language model, a year", everybody.sessions_a_year * written, ("writer_factor",)),
        ("the bucket, a year", gigabytes * 12, ("gb_month_usd",)),
        ("its writing requests, a year", requests, ("put_usd",)),
        ("a first copy to each machine, once", gigabytes * f.developers, ("traffic_usd",)),
    ):
        rows = [f[name] for name in factors]
        low, value, high = (
            amount * math.prod(getattr(row, column) for row in rows) for column in ("low", "value", "high")
        )
        yield [label, shown(value), f"{shown(low)} to {shown(high)}", shown(value / f.developers)]


def tables(figures: Figures) -> dict[str, str]:
    """Return name → table of the page."""
    people = [
        f"{shown(store.developers)} developer{'s' * (store.developers > 1)}" for store in sizes(figures)
    ]
    assumed = [row for row in figures.values() if row.kind == "assumed"]
    measured = [row for row in figures.values() if row.kind == "measured"]
    return {
        "store": grid(["one store for", *people], store_rows(figures)),
        "limits": grid(
            ["limit", f"{people[-1]} in one store", "allowed", "holds up to, developers", "what ends it"],
            limit_rows(figures),
        ),
        "workers": grid(["backfill over workers", ""], worker_rows(figures)),
        "money": grid(["US dollars", "amount", "range", "a developer"], money_rows(figures)),
        "measured": grid(
            ["measured", "value", "unit", "date", "where"],
            ([f"`{r.name}`", exact(r.value), r.unit, r.date, r.source] for r in measured),
        ),
        "assumed": grid(
            ["assumed", "value", "range", "unit", "why"],
            (
                [f"`{r.name}`", exact(r.value), f"{exact(r.low)} to {exact(r.high)}", r.unit, r.source]
                for r in assumed
            ),
        ),
    }


def grid(headings: Cells, rows: Iterator[Cells]) -> str:
    """Return a Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def shown(value: float) -> str:
    """
    Return a number with two digits that count: more would claim what is not known.

    >>> shown(3154.8), shown(.0634), shown(25)
    ('3,200', '.063', '25')
    """
    if value == 0:
        return "0"
    places = 1 - math.floor(math.log10(abs(value)))
    return exact(round(value, places))


def exact(value: float) -> str:
    """
    Return a number as it is.

    >>> exact(100000), exact(.0848), exact(2.0)
    ('100,000', '.0848', '2')
    """
    text = f"{value:,.10f}".rstrip("0").rstrip(".")
    return text.removeprefix("0") if text.startswith("0.") else text


def filled(page: str, figures: Figures) -> str:
    """
    Return the page with each table printed again between its markers.

    Raises ValueError if the page has no pair of them, or several.
    """
    texts = tables(figures)
    for name, text in texts.items():
        begin, end = f"<!-- table {name} -->\n", f"\n<!-- end {name} -->"
        if page.count(begin) != 1 or page.count(end) != 1:
            raise ValueError(f"the page needs one pair of markers of {name}")
        page = re.sub(f"{begin}.*?{end}", lambda _, new=f"{begin}{text}{end}": new, page, flags=re.DOTALL)
    return page


def main() -> None:
    """Print the tables into the page."""
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), read_figures()), encoding="utf-8")


if __name__ == "__main__":
    main()
