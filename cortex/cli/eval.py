"""The command `eval`: measures Cortex against labels made by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.cli.terminal import Listing
from cortex.flows import operations

if TYPE_CHECKING:
    from cortex.flows.context import Context
    from cortex.flows.operations.evaluate_briefs import BriefScores
    from cortex.transforms.brief.score import IdealLine
    from cortex.transforms.extract.dense_labels import DenseEvaluation


@click.group("eval")
def evaluation() -> None:
    """Measure Cortex against labels made by hand."""


@command("extract", parent=evaluation)
@click.option(
    "--transcripts",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder that holds the labelled sessions.",
)
@click.option(
    "--labels", type=click.Path(path_type=Path), required=True, help="Labels, one JSON object a line."
)
@click.option("--list", "lists", is_flag=True, help="Print each noise, miss and overturned fact.")
def extract(context: Context, transcripts: Path, labels: Path, lists: bool) -> Answer:
    """Score what extraction keeps: recall, noise, what was overturned, calibration, memories a session."""
    from cortex.transforms.extract.dense_labels import DenseEvaluation

    scores = operations.evaluate.score_extraction(context, transcripts, labels)
    if isinstance(scores, DenseEvaluation):
        return _against_dense_labels(scores, lists)
    figures = scores.as_dict()
    by_type = figures["recall_by_type"]
    assert isinstance(by_type, dict)
    return Answer(
        figures,
        [
            Listing("Extraction against labels", ["measure", "value"], _measures(figures), numbers={"value"}),
            Listing("Recall by type", ["type", "recall"], _shares(by_type), numbers={"recall"}),
            "Within 20 memories and 6,000 characters a session; a trap is what must not become a memory.",
        ],
    )


@command("brief", parent=evaluation)
@click.option(
    "--labels",
    type=click.Path(path_type=Path),
    required=True,
    help="Ideal briefs: one JSON object a line with project, as_of and lines of text and weight (3, 2, 1).",
)
@click.option("--today", is_flag=True, help="Score the briefs of today, not of each label's day.")
@click.option(
    "--list", "is_listed", is_flag=True, help="List each ideal line missed and each line unasked for."
)
def brief(context: Context, labels: Path, today: bool, is_listed: bool) -> Answer:
    """Score what the briefs tell: ideal lines told by weight, lines that match none, tokens."""
    scores = operations.evaluate_briefs.score_briefs(context, labels, is_today=today)
    rows = [
        [score.project, f"{len(score.covered)} of {len(score.covered) + len(score.missed)}",
         f"{len(score.unmatched)} of {score.lines}", str(score.tokens)]
        for score in scores.projects
    ]  # fmt: skip
    total = [[name, f"{value:.3f}" if isinstance(value, float) else str(value)]
             for name, value in scores.totals().items()]  # fmt: skip
    headings = ["project", "ideal lines told", "lines that match none", "tokens"]
    return Answer(
        _as_dict(scores),
        [
            Listing("Briefs against ideal lines", headings, rows, numbers={"tokens"}),
            Listing("All projects", ["measure", "value"], total, numbers={"value"}),
            *(_differences(scores) if is_listed else []),
            f"Compared by {scores.compared_by}; weight 3: without the line the next session would go wrong.",
        ],
    )


def _differences(scores: BriefScores) -> Iterator[str]:
    for score in scores.projects:
        yield f"\n{score.project}"
        for line in score.missed:
            yield f"  missed, weight {line.weight}: {line.text}"
        for fact in score.unmatched:
            yield f"  matches none: {fact}"


def _as_dict(scores: BriefScores) -> dict[str, object]:
    def weighed(line: IdealLine) -> dict[str, object]:
        return {"text": line.text, "weight": line.weight}

    projects = [
        {"project": score.project, "told": [weighed(line) for line in score.covered],
         "missed": [weighed(line) for line in score.missed], "matches_none": list(score.unmatched),
         "lines": score.lines, "tokens": score.tokens}
        for score in scores.projects
    ]  # fmt: skip
    return {"compared_by": scores.compared_by, "totals": scores.totals(), "projects": projects}


def _against_dense_labels(scores: DenseEvaluation, lists: bool) -> Answer:
    figures = scores.as_dict()
    bands = [
        [f"{band['from']:.1f}", str(band["facts"]), f"{band['stated']:.2f}", f"{band['found']:.2f}"]
        for band in scores.calibration()
    ]
    listed = scores.listed() if lists else []
    tables: list[Listing | str] = [
        Listing(
            "Extraction against dense labels", ["measure", "value"], _measures(figures), numbers={"value"}
        ),
        Listing("Recall by type", ["type", "recall"], _shares(scores.recall_by("type")), numbers={"recall"}),
        Listing(
            "Calibration",
            ["confidence from", "facts", "stated", "found"],
            bands,
            numbers={"facts", "stated", "found"},
        ),
        *(f"{row['kind']} {row['session']} {row['lines']} {row['text']}" for row in listed),
        "Worth: grade 2 and 3; harmless: grade 1; noise: no label. Overturned ones should not be shown.",
    ]
    return Answer({**figures, "listed": listed} if lists else figures, tables)


def _measures(figures: dict[str, object]) -> list[list[str]]:
    return [
        [name, f"{value:.3f}" if isinstance(value, float) else str(value)]
        for name, value in figures.items()
        if isinstance(value, int | float)
    ]


def _shares(by_name: dict[str, float]) -> list[list[str]]:
    return [[name, f"{value:.2f}"] for name, value in sorted(by_name.items())]
