"""Measures what briefs tell against ideal lines given as labels."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cortex.flows.context.context import Context
from cortex.flows.embedders import local_or_none
from cortex.flows.operations.ask.brief import read_briefs
from cortex.transforms.brief.score import BriefScore, IdealLine, Similarity, score_brief, totals
from cortex.transforms.errors import NotFound, UnknownProject, UsageError


@dataclass(frozen=True)
class BriefScores:
    """The scores by project in the order of the labels, and the rule a line was compared by."""

    projects: Sequence[BriefScore]
    compared_by: str

    def totals(self) -> dict[str, float | int]:
        """Return the figures over all projects."""
        return totals(self.projects)


def score_briefs(context: Context, labels: Path, *, is_today: bool = False) -> BriefScores:
    """
    Compare each labelled project's brief with its ideal lines, as of the label's day or as of today.

    A project that the store does not know has an empty brief. Lines are compared by the local model where
    one is installed, else by words. Raises NotFound for a missing file, UsageError for labels that cannot be
    read.
    """
    rows = _labels(labels)
    similarity = _similarity()
    scores = [
        score_brief(row["project"], _brief(context, row, is_today), row["ideal"], similarity) for row in rows
    ]
    return BriefScores(scores, "model" if similarity else "words")


def _labels(path: Path) -> list[dict[str, Any]]:
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
        return [{**row, "project": str(row["project"]), "ideal": _ideal(row["lines"])} for row in rows]
    except FileNotFoundError as error:
        raise NotFound(
            f"there is no file {path}.", "Name a file of labels, one JSON object a line."
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise UsageError(
            f"{path} cannot be read as labels of briefs.",
            "Each line is a JSON object with project, as_of and lines, each of text and weight.",
        ) from error


def _ideal(lines: list[dict[str, Any]]) -> list[IdealLine]:
    return [IdealLine(str(line["text"]), int(line["weight"])) for line in lines]


def _brief(context: Context, row: dict[str, Any], is_today: bool) -> str:
    as_of = None if is_today else row.get("as_of")
    try:
        return "".join(brief.text for brief in read_briefs(context, row["project"], as_of=as_of))
    except UnknownProject:
        return ""


def _similarity() -> Similarity | None:
    embedder = local_or_none()
    if embedder is None:
        return None

    def cosines(texts: Sequence[str], lines: Sequence[str]) -> Sequence[Sequence[float]]:
        matrix = embedder.embed(texts) @ embedder.embed(lines).T
        return [[float(value) for value in row] for row in matrix]

    return cosines
