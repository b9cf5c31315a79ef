"""Measures what extraction keeps against labels made by hand."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from cortex.flows.context.context import Context
from cortex.flows.embedders import local_or_none
from cortex.storage.staging.assistant_folders import find_transcripts
from cortex.transforms.errors import NotFound, UsageError
from cortex.transforms.extract.dense_labels import (
    DenseEvaluation,
    DenseLabel,
    ShownFact,
    Similarities,
    evaluate_dense,
)
from cortex.transforms.extract.events import extract_events
from cortex.transforms.schemas import TURNS
from cortex.transforms.transcripts.transcript import Source, read_transcript

# What a label must have; it grades what a session said that is worth keeping.
_LABEL_COLUMNS = {"session", "grade", "text", "quote", "lines", "until", "type", "found_in"}


def score_extraction(context: Context, transcripts: Path, labels: Path) -> DenseEvaluation:
    """
    Read the labelled sessions below `transcripts`, extract, score. Touches no store.

    Where no local model is installed, only shared words tell which label a fact meets. Raises NotFound for a
    missing file or session, UsageError for labels that cannot be read.
    """
    rows = _labels(labels)
    sessions = sorted({str(row["session"]) for row in rows})
    files = [path for name in sessions for path in _files_of(transcripts, name)]
    turns = pa.concat_tables([TURNS.empty(), *(_turns(path, transcripts) for path in files)])
    least_shown = context.policy.threshold("shown_min_confidence")
    events = extract_events(turns, context.policy)
    facts = shown_facts(events, sessions, least_shown)
    return evaluate_dense(facts, rows, similarities(facts, rows))


def shown_facts(events: pa.Table, sessions: Sequence[str], least_shown: float) -> list[ShownFact]:
    """Return the EVENTS of sessions that a reader sees, as facts that are measured."""
    return [
        ShownFact(
            row["file"],
            shown_text(row["text"], row["reason"], row["rejected"]),
            frozenset(row["lines"]),
            row["confidence"],
        )
        for row in events.to_pylist()
        if row["memory_type"] is not None
        and row["step_status"] is None
        and row["confidence"] >= least_shown
        and row["file"] in sessions
    ]


def shown_text(text: str, reason: str | None, rejected: str | None) -> str:
    """
    Return all that is shown of a fact: its text, and its reason and what lost if the text lacks them.

    >>> shown_text("Tides are kept in SQLite", "one file", "Postgres")
    'Tides are kept in SQLite Why: one file Not: Postgres'
    """
    parts = [(label, words) for label, words in (("Why", reason), ("Not", rejected)) if words]
    return text + "".join(f" {label}: {words}" for label, words in parts if words not in text)


def similarities(facts: Sequence[ShownFact], labels: Sequence[DenseLabel]) -> Similarities:
    """Return how similar each fact is to each label by the local model; none if it is not installed."""
    embedder = local_or_none()
    if embedder is None or not facts:
        return Similarities.none(len(facts), len(labels))
    vectors = embedder.embed([fact.text for fact in facts])
    texts, quotes = (embedder.embed([str(label[name]) for label in labels]) for name in ("text", "quote"))
    return Similarities(vectors @ texts.T, vectors @ quotes.T)


def _labels(path: Path) -> list[dict[str, Any]]:
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    except FileNotFoundError as error:
        raise NotFound(
            f"there is no file {path}.", "Name a file of labels, one JSON object a line."
        ) from error
    except (ValueError, OSError) as error:
        raise UsageError(
            f"{path} cannot be read as labels: {error}.", "Each line must be a JSON object."
        ) from error
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict) or not row.keys() >= _LABEL_COLUMNS:
            raise UsageError(
                f"{path}: label {number} lacks one of {', '.join(sorted(_LABEL_COLUMNS))}.",
                "See the labels' README.",
            )
    if not rows:
        raise UsageError(f"{path} holds no labels.", "Give one JSON object a line.")
    return rows


def _files_of(transcripts: Path, session: str) -> list[Path]:
    """Return a labelled session's file and those of its subagents."""
    path = transcripts / session
    if not path.is_file():
        raise NotFound(
            f"the labelled session {session} is not below {transcripts}.", "Name the folder that holds it."
        )
    agents = path.with_suffix("")
    return [path, *(find_transcripts(agents) if agents.is_dir() else [])]


def _turns(path: Path, transcripts: Path) -> pa.Table:
    name = path.relative_to(transcripts).as_posix()
    agent = path.stem.removeprefix("agent-") if path.stem.startswith("agent-") else None
    source = Source(name, project_id=name.split("/", 1)[0], session_id=None, agent_id=agent)
    return read_transcript(path.read_bytes(), source=source, final=True).turns
