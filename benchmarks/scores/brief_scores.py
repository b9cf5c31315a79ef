"""Scores what briefs tell against ideal briefs, given line by line as labels."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cortex.flows.context import Context
from cortex.flows.embedders import local_or_none
from cortex.flows.operations.ask.brief import read_briefs
from cortex.hooks.prose.plain import CLOSING, MORE, PREAMBLE, PREAMBLE_BY_MODEL
from cortex.hooks.tokens import tokens_in
from cortex.scores.labels import rows_of
from cortex.transforms.brief.wording import without_provenance
from cortex.transforms.errors import UnknownProject, UsageError

# A line is covered where one of the brief is this similar (cosine) or holds this share of its words: the rule
# of the figures published for earlier versions.
SAME_COSINE = 0.60
SAME_WORDS = 0.60
MIN_LINE_CHARS = 20
WEIGHTS = (3, 2, 1)

_WORD = re.compile(r"\w{3,}")
# For each ideal text its cosine with each line of a brief.
Similarity = Callable[[Sequence[str], Sequence[str]], Sequence[Sequence[float]]]


@dataclass(frozen=True)
class IdealLine:
    """What a careful colleague would tell the next session; without it (weight 3) it would go wrong."""

    text: str
    weight: int


@dataclass(frozen=True)
class BriefScore:
    """Of one project: the ideal lines covered and missed, the brief's lines that match none, its tokens."""

    project: str
    covered: tuple[IdealLine, ...]
    missed: tuple[IdealLine, ...]
    unmatched: tuple[str, ...]
    lines: int
    tokens: int


def score_brief(
    project: str, brief: str, ideal: Sequence[IdealLine], similarity: Similarity | None
) -> BriefScore:
    """Compare a brief with the ideal lines; without `similarity` by words alone."""
    lines = facts_of(brief)
    texts = [line.text for line in ideal]
    cosines = (
        similarity(texts, lines) if similarity and lines and texts else [[0.0] * len(lines)] * len(texts)
    )
    is_similar = [
        [
            cosine >= SAME_COSINE or _share(text, line) >= SAME_WORDS
            for line, cosine in zip(lines, row, strict=True)
        ]
        for text, row in zip(texts, cosines, strict=True)
    ]
    covered = tuple(line for line, row in zip(ideal, is_similar, strict=True) if any(row))
    missed = tuple(line for line, row in zip(ideal, is_similar, strict=True) if not any(row))
    unmatched = tuple(line for number, line in enumerate(lines) if not any(row[number] for row in is_similar))
    return BriefScore(project, covered, missed, unmatched, len(lines), tokens_in(brief))


def facts_of(brief: str) -> list[str]:
    """Return what the lines of a brief say, without its frame, headings and who said it when."""
    frame = (PREAMBLE, PREAMBLE_BY_MODEL, MORE, CLOSING)
    lines = [line for line in brief.split("\n") if not line.startswith("#") and line not in frame]
    facts = [without_provenance(line.strip()) for line in lines]
    return [fact for fact in facts if len(fact) > MIN_LINE_CHARS]


def totals(scores: Iterable[BriefScore]) -> dict[str, float | int]:
    """Return the share of ideal lines covered by weight, lines that match none, and tokens, over all."""
    scores = list(scores)
    result: dict[str, float | int] = {"projects": len(scores)}
    for weight in WEIGHTS:
        covered = sum(line.weight == weight for score in scores for line in score.covered)
        missed = sum(line.weight == weight for score in scores for line in score.missed)
        result[f"ideal_lines_{weight}"] = covered + missed
        result[f"told_{weight}"] = covered / (covered + missed) if covered + missed else 0.0
    result["lines"] = sum(score.lines for score in scores)
    result["lines_that_match_none"] = sum(len(score.unmatched) for score in scores)
    result["tokens_per_brief"] = sum(score.tokens for score in scores) / len(scores) if scores else 0.0
    return result


def _share(text: str, line: str) -> float:
    words = set(_WORD.findall(text.lower()))
    return len(words & set(_WORD.findall(line.lower()))) / max(len(words), 1)


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
    def label_of(row: Any, where: str) -> dict[str, Any]:
        try:
            return {**row, "project": str(row["project"]), "ideal": _ideal(row["lines"])}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(
                f"{where} is no label of a brief.",
                "Each line is a JSON object with project, as_of and lines, each of text and weight.",
            ) from error

    return list(rows_of(path, label_of))


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
