"""Made rows and transcripts for benchmarks: the same on every machine, with no word of a real session."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cortex.storage.tables.tables import INDEX_TEXT, VECTOR
from cortex.transforms.memory.lifecycle import ACTIVITY, WEAK
from cortex.transforms.schemas import EDGES, MEMORIES, PASSAGES

NOW = datetime(2026, 11, 1, tzinfo=UTC)
PROJECT = "made-00000000"
DIMENSIONS = 384
TYPES = ("decision", "gotcha", "pattern", "progress", "context", "architecture")
# Syllables give 8,000 words; a fact has about 24, as in the samples. Few words are common, most are rare.
SYLLABLES = [c + v for c in "bdfklmnprt" for v in "ai"]
WORDS = [a + b + c for a in SYLLABLES for b in SYLLABLES for c in SYLLABLES]
WORDS_PER_FACT = 24
# A passage is a part of a turn.
WORDS_PER_PASSAGE, WORDS_PER_COMMAND = 60, 12

_RESULT = re.compile(rb'"toolUseResult":')
SAMPLE_FOLDER = b"/home/dev/tidepool"
_IDS = re.compile(rb"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(?:msg|toolu|req)_\w+")


def memories(count: int, *, texts: bool = True, seed: int = 1) -> pa.Table:
    """Return `count` made MEMORIES of all ages up to a year; without `texts` they all say the same."""
    random = np.random.default_rng(seed)
    facts = _facts(random, count) if texts else pa.repeat("Poll each station once a minute.", count)
    instants = _instants(random, count)
    columns: dict[str, object] = {
        "memory_id": pa.array([f"{number:032x}" for number in range(count)]),
        "project_id": pa.repeat(PROJECT, count),
        "category": pa.repeat("project", count),
        "memory_type": pa.array(np.array(TYPES, dtype=object)[random.integers(0, len(TYPES), count)]),
        "text": facts,
        "status": pa.repeat("active", count),
        "source_type": pa.repeat("conversation", count),
        "trust": pa.repeat("assistant", count),
        "is_pinned": pa.array(random.random(count) < 0.01),
        "priority": pa.array(random.integers(1, 11, count)),
        "initial_confidence": pa.array(random.uniform(0.5, 1.0, count)),
        "confidence": pa.array(random.uniform(0.1, 1.0, count)),
        "salience": pa.array(random.uniform(0.5, 1.0, count)),
        "access_count": pa.array(random.integers(0, 20, count)),
        "created_at": instants,
        "updated_at": instants,
        "centrality": pa.array(np.zeros(count)),
        "rank": pa.array(random.random(count)),
        "session_count": pa.repeat(1, count),
        "content_hash": pa.array([f"{number:032x}" for number in range(count)]),
    }
    for name in ("files", "tags", "evidence"):
        columns[name] = pa.array([[]] * count, MEMORIES.arrow.field(name).type)
    arrays = [
        pa.array(columns[f.name]).cast(f.type) if f.name in columns else pa.nulls(count, f.type)
        for f in MEMORIES.arrow
    ]
    return pa.Table.from_arrays(arrays, schema=MEMORIES.arrow)


def passages(count: int, *, seed: int = 6) -> pa.Table:
    """Return `count` made PASSAGES in sessions of 200 lines: prompts, replies and (a tenth) commands."""
    random = np.random.default_rng(seed)
    numbers = np.arange(count)
    kinds = np.array(["prompt", "text", "text", "text", "tool_call"], dtype=object)[numbers % 10 // 2]
    kinds[(numbers % 10 == 8)] = "text"
    lengths = {"tool_call": WORDS_PER_COMMAND}
    texts = [
        " ".join(_words(random, lengths.get(kind, WORDS_PER_PASSAGE))).capitalize() + "." for kind in kinds
    ]
    sessions = [f"{number // 200:08x}-0000" for number in range(count)]
    columns: dict[str, object] = {
        "passage_id": [f"p{number:031x}" for number in range(count)],
        "project_id": pa.repeat(PROJECT, count),
        "session_id": sessions,
        "turn_id": [f"t{number:031x}" for number in range(count)],
        "seq": numbers % 200,
        "kind": kinds,
        "text": texts,
        "said_at": _instants(random, count),
        "file": [f"/t/{session}.jsonl" for session in sessions],
        "line": numbers % 200 + 1,
        "trust": ["user" if kind == "prompt" else "assistant" for kind in kinds],
        "content_hash": [f"{number:032x}" for number in range(count)],
    }
    arrays = [pa.array(columns[field.name]).cast(field.type) for field in PASSAGES.arrow]
    return pa.Table.from_arrays(arrays, schema=PASSAGES.arrow)


def activity(days: int = 365) -> pa.Table:
    """Return the ACTIVITY of the made project: a session on each of the last `days`."""
    at = [NOW - timedelta(days=number) for number in range(days)]
    return pa.table({"project_id": pa.repeat(PROJECT, days), "active_at": at}, schema=ACTIVITY)


def weak(rows: pa.Table) -> pa.Table:
    """Return every tenth of MEMORIES as found weak twenty days ago."""
    weak_ids = rows["memory_id"].to_pylist()[::10]
    since = [NOW - timedelta(days=20)] * len(weak_ids)
    return pa.table({"memory_id": weak_ids, "weak_since": since}, schema=WEAK)


def edges(count: int, among: int) -> pa.Table:
    """Return `count` made EDGES among `among` memories."""
    random = np.random.default_rng(2)
    ends = random.integers(0, among, (2, count))
    arrays = [
        pa.array([f"{number:032x}" for number in range(count)]),
        pa.repeat(PROJECT, count),
        pa.array([f"{number:032x}" for number in ends[0]]),
        pa.array([f"{number:032x}" for number in ends[1]]),
        pa.repeat("relates_to", count),
        pa.array(random.random(count)),
        pa.repeat("similarity", count),
    ]
    return pa.Table.from_arrays(arrays, schema=EDGES.arrow)


def vectors(count: int) -> npt.NDArray[np.float32]:
    """Return `count` unit-length vectors."""
    drawn = np.random.default_rng(3).standard_normal((count, DIMENSIONS), dtype=np.float32)
    unit: npt.NDArray[np.float32] = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit


def searchable(rows: pa.Table, unit: npt.NDArray[np.float32]) -> pa.Table:
    """Return MEMORIES with the columns that search needs."""
    column = pa.FixedSizeListArray.from_arrays(pa.array(unit.ravel()), DIMENSIONS)
    return rows.append_column(INDEX_TEXT, rows["text"]).append_column(VECTOR, column)


def questions(count: int) -> list[str]:
    """Return questions in the words of the made facts."""
    random = np.random.default_rng(4)
    return [
        f"why does {' '.join(_words(random, 3))} need {' '.join(_words(random, 2))}" for _ in range(count)
    ]


def transcripts(folder: Path, copies: int, *, first: int = 0, projects: int = 0, chars: int = 0) -> int:
    """
    Write `copies` of the sample sessions with ids of their own below `folder`; return the bytes.

    The copies are numbered from `first`. They belong to as many `projects` in turn, or (0) to that of the
    samples. `chars` are added to what each tool returned, where the client keeps files and output.
    """
    written = 0
    for copy in range(first, first + copies):
        for name, content in _samples():
            path = folder / f"copy-{copy:04d}" / re.sub(r"[0-9a-f]{4}(?=\.jsonl$)", f"{copy:04x}", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            own = _IDS.sub(lambda id_: id_.group()[:-4] + b"%04x" % copy, content)  # noqa: B023
            if projects:
                own = own.replace(SAMPLE_FOLDER, SAMPLE_FOLDER + b"-%04d" % (copy % projects))
            written += path.write_bytes(_with_output(own, chars) if chars else own)
    return written


def _with_output(content: bytes, chars: int) -> bytes:
    """Return a transcript in which each result of a tool is as long as real ones are."""
    output = (" ".join(WORDS) + " ") * (chars // (7 * len(WORDS)) + 1)
    added = json.dumps({"stdout": output[:chars], "stderr": ""}).encode()
    return _RESULT.sub(lambda _: b'"toolUseResult":' + added + b',"sampleResult":', content)


def _samples() -> Iterator[tuple[str, bytes]]:
    root = Path(str(files("cortex.data") / "samples" / "projects"))
    for path in sorted(root.rglob("*.jsonl")):
        yield path.relative_to(root).as_posix(), path.read_bytes()


def _facts(random: np.random.Generator, count: int) -> pa.Array:
    return pa.array([" ".join(_words(random, WORDS_PER_FACT)).capitalize() + "." for _ in range(count)])


def _words(random: np.random.Generator, count: int) -> list[str]:
    # Squared: the first tenth of the words makes up a third of all text.
    return [WORDS[int(at * at * len(WORDS))] for at in random.random(count)]


def _instants(random: np.random.Generator, count: int) -> pa.Array:
    ages_us = random.integers(0, 365 * 86_400, count) * 1_000_000
    start = int((NOW - timedelta(0)).timestamp()) * 1_000_000
    return pa.array(start - ages_us).cast(pa.timestamp("us")).cast(pa.timestamp("us", tz="UTC"))
