"""Measures what extraction keeps against labels made by hand."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from cortex.flows.context import Context
from cortex.storage.assistant_folders import find_transcripts
from cortex.transforms.errors import NotFound, UsageError
from cortex.transforms.extract import extract_events
from cortex.transforms.extract.evaluate import Evaluation, evaluate
from cortex.transforms.schemas import TURNS
from cortex.transforms.transcripts.transcript import Source, read_transcript


def score_extraction(context: Context, transcripts: Path, labels: Path) -> Evaluation:
    """
    Read the labelled sessions below `transcripts`, extract, score. Touches no store.

    Raises NotFound for a missing file or session, UsageError for labels that cannot be read.
    """
    rows = _labels(labels)
    sessions = sorted({str(row["session"]) for row in rows})
    files = [path for name in sessions for path in _files_of(transcripts, name)]
    turns = pa.concat_tables([TURNS.empty(), *(_turns(path, transcripts) for path in files)])
    policy = context.policy
    return evaluate(extract_events(turns, policy), rows, policy.threshold("shown_min_confidence"))


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
        if not isinstance(row, dict) or "session" not in row or "kind" not in row:
            raise UsageError(f"{path}: label {number} has no session or kind.", "See the labels' README.")
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
