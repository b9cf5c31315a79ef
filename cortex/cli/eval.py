"""The command `eval`: measures Cortex against labels made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command
from cortex.cli.terminal import Listing
from cortex.flows import operations

if TYPE_CHECKING:
    from cortex.flows.context import Context


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
def extract(context: Context, transcripts: Path, labels: Path) -> Answer:
    """Score what extraction keeps: recall, traps hit, duplicates, memories a session."""
    scores = operations.evaluate.score_extraction(context, transcripts, labels).as_dict()
    measures = [
        [name, f"{value:.3f}" if isinstance(value, float) else str(value)]
        for name, value in scores.items()
        if name != "recall_by_type"
    ]
    by_type = scores["recall_by_type"]
    assert isinstance(by_type, dict)
    recalls = [[name, f"{value:.2f}"] for name, value in sorted(by_type.items())]
    return Answer(
        scores,
        [
            Listing("Extraction against labels", ["measure", "value"], measures, numbers={"value"}),
            Listing("Recall by type", ["type", "recall"], recalls, numbers={"recall"}),
            "Within 20 memories and 6,000 characters a session; a trap is what must not become a memory.",
        ],
    )
