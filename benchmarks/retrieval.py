"""
Recall measured: `python benchmarks/retrieval.py [SET …] [--set NAME=VALUE …] [--no-model] [--memories]`.

Each set is put into real tables and asked through `cortex.flows.recalling.recall_search`: the figures are
the product's.
DevMemBench is judged by session (share of the right sessions among the first k), CoSQA by function, the
labels by transcript line (is any of the first k results one that rests on an evidence line?). The sets are
read from ../shared/data; `--set` tries another number of ranking.csv, `--memories` adds extracted memories.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cortex.flows.embedders import Embedder, embedder_for
from cortex.flows.recalling.recall_search import RecallResult, search_store
from cortex.storage.settings.reference import read_policy
from cortex.storage.tables.lance_tables import LanceTables
from cortex.transforms.extract.events import extract_events
from cortex.transforms.identity import content_id
from cortex.transforms.memory.fold import fold
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import JOURNAL, TURNS
from cortex.transforms.search import (
    PEOPLE_KINDS,
    embedded_text,
    index_text,
    passages_of,
)
from cortex.transforms.transcripts.transcript import Source, read_transcript

DATA = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
CUTS = (1, 5, 10)
# Results asked for: sessions are counted once, and several results may be of one session.
ASKED = 30

Place = tuple[str, int | None]


@dataclass(frozen=True)
class Question:
    """A question, the scopes to search, and the places that answer it: (transcript, line or None for any)."""

    text: str
    scopes: tuple[str, ...]
    answers: frozenset[Place]


@dataclass(frozen=True)
class Set:
    """A set of questions over turns by scope; `judge` turns results into 0..1 for one cut."""

    name: str
    turns: dict[str, pa.Table]
    questions: list[Question]
    judge: Callable[[Question, list[RecallResult], int], float]


def devmembench() -> Set:
    """Return 175 questions over 25 generated working sessions, one scope."""
    folder = DATA / "retrieval-dev" / "devmembench"
    sessions = json.loads((folder / "sessions.json").read_text())
    turns = [
        _turn(session["sessionId"], number, message["role"], message["content"], session["metadata"]["date"])
        for session in sessions
        for number, message in enumerate(session["messages"], start=1)
    ]
    questions = [
        Question(item["question"], ("p",), frozenset((name, None) for name in item["haystackSessionIds"]))
        for item in json.loads((folder / "questions.json").read_text())
        if item["haystackSessionIds"] and item["questionType"] != "abstention"
    ]
    return Set("devmembench", {"p": TURNS.of(turns)}, questions, share_of_files)


def cosqa() -> Set:
    """Return 500 web questions over 6,267 functions, one scope."""
    folder = DATA / "retrieval-dev" / "cosqa"
    codes = json.loads((folder / "code_idx_map.txt").read_text())
    turns = [_turn(f"f{number}", 1, "assistant", code, None) for code, number in codes.items()]
    asked = json.loads((folder / "cosqa-retrieval-dev-500.json").read_text())
    questions = [Question(q["doc"], ("p",), frozenset({(f"f{q['retrieval_idx']}", None)})) for q in asked]
    return Set("cosqa", {"p": TURNS.of(turns)}, questions, share_of_files)


def labels(*, everywhere: bool) -> Set:
    """Return the 39 developer questions, over the project's transcripts or over all 57 at once."""
    root = DATA / "transcripts"
    turns: dict[str, list[pa.Table]] = {}
    for path in sorted(root.rglob("*.jsonl")):
        file = str(path.relative_to(root))
        project = file.split("/")[0]
        reading = read_transcript(path.read_bytes(), source=Source(file, project, None, None))
        turns.setdefault(project, []).append(reading.turns)
    scopes = {project: pa.concat_tables(parts) for project, parts in turns.items()}
    lines = [json.loads(line) for line in (DATA / "labels" / "dev.jsonl").read_text().splitlines()]
    questions = [
        Question(
            item["question"],
            tuple(scopes) if everywhere else (item["session"].split("/")[0],),
            frozenset((item["session"], line) for line in item["evidence_lines"]),
        )
        for item in lines
        if item["kind"] == "question"
    ]
    return Set("labels, all" if everywhere else "labels, project", scopes, questions, any_line)


def _turn(file: str, line: int, role: str, text: str, date: str | None) -> dict[str, object]:
    said_at = datetime.fromisoformat(date).replace(tzinfo=UTC) if date else None
    kind = "prompt" if role == "user" else "text"
    return {
        "turn_id": f"{file}:{line}",
        "project_id": "p",
        "session_id": file,
        "file": file,
        "line": line,
        "block": 0,
        "kind": kind,
        "said_at": said_at,
        "text": text,
        "trust": "user" if kind in PEOPLE_KINDS else "assistant",
        "redactions": 0,
        "reader_version": 1,
    }


def share_of_files(question: Question, results: list[RecallResult], cut: int) -> float:
    """Return the share of the right transcripts among the first `cut` transcripts named."""
    named = list(dict.fromkeys(item.evidence[0].file for item in results))[:cut]
    right = {file for file, _ in question.answers}
    return len(right.intersection(named)) / len(right)


def any_line(question: Question, results: list[RecallResult], cut: int) -> float:
    """Return 1 if one of the first `cut` results rests on a line that answers, else 0."""
    rested_on = {(e.file, line) for item in results[:cut] for e in item.all_evidence for line in e.lines}
    return float(bool(question.answers & rested_on))


def fill(
    tables: LanceTables, of: Set, policy: Policy, embedder: Embedder | None, with_memories: bool
) -> tuple[int, float]:
    """Write the set's tables; return the number of rows and the seconds that embedding took."""
    rows, seconds = 0, 0.0
    for scope, turns in of.turns.items():
        projected = [("passages", passages_of(turns, policy))]
        if with_memories:
            memories = fold(extract_events(turns, policy), JOURNAL.empty(), policy)
            projected.append(("memories", memories))
        for name, table in projected:
            began = time.perf_counter()
            ready = searchable(table, embedder)
            seconds += time.perf_counter() - began
            rows += table.num_rows
            tables.replace(scope, name, ready)
    return rows, seconds


def _vectors(embedder: Embedder, texts: list[str]) -> Any:
    """Return the vectors of `texts`, kept between runs: embedding CoSQA takes two minutes."""
    kept = Path(tempfile.gettempdir()) / "cortex-benchmark" / f"{content_id(embedder.model, *texts)}.npy"
    if not kept.is_file():
        kept.parent.mkdir(exist_ok=True)
        np.save(kept, embedder.embed(texts))
    return np.load(kept)


def searchable(table: pa.Table, embedder: Embedder | None) -> pa.Table:
    """Return a table with its index text and, where there is prose, its vector."""
    rows = table.to_pylist()
    table = table.append_column("index_text", pa.array([index_text(row) for row in rows], pa.string()))
    if embedder is None or not rows:
        return table
    texts = {text for text in map(embedded_text, rows) if text}
    vector_of = dict(zip(sorted(texts), _vectors(embedder, sorted(texts)), strict=True))
    vectors = [vector_of.get(embedded_text(row)) for row in rows]
    kind = pa.list_(pa.float32(), embedder.dimensions)
    return table.append_column("vector", pa.array(vectors, kind))


def measure(
    of: Set, policies: Sequence[tuple[str, Policy]], embedder: Embedder | None, with_memories: bool
) -> None:
    """Print one line per policy: recall at each cut and the time of a question."""
    with tempfile.TemporaryDirectory() as home:
        tables = LanceTables(Path(home))
        rows, seconds = fill(tables, of, policies[0][1], embedder, with_memories)
        print(
            f"{of.name}: {rows} rows ({seconds:.1f} s for texts and vectors), {len(of.questions)} questions"
        )
        for name, policy in policies:
            results, times = [], []
            for question in of.questions:
                began = time.perf_counter()
                results.append(
                    search_store(
                        tables, question.text, scopes=question.scopes, policy=policy, embedder=embedder,
                        limit=ASKED,
                    )
                )  # fmt: skip
                times.append((time.perf_counter() - began) * 1e3)
            p50, p95 = np.quantile(times, (0.5, 0.95))
            print(f"  {name:44} {_figures(of, results)}  p50 {p50:.0f} ms, p95 {p95:.0f} ms")


def _figures(of: Set, results: list[list[RecallResult]]) -> str:
    pairs = list(zip(of.questions, results, strict=True))
    cuts = [f"R@{cut} {np.mean([of.judge(*pair, cut) for pair in pairs]):.3f}" for cut in CUTS]
    firsts = [next((k for k in range(1, ASKED + 1) if of.judge(*pair, k)), None) for pair in pairs]
    reciprocal = np.mean([1 / first if first else 0.0 for first in firsts])
    return " ".join([*cuts, f"MRR {reciprocal:.3f}"])


def variants(base: Policy, changes: Sequence[str], table: str = "ranking") -> Iterator[tuple[str, Policy]]:
    """Yield the base policy and one more for each change to a table, written `name=value[,name=value]`."""
    yield "as shipped", base
    for change in changes:
        numbers = dict(part.split("=") for part in change.split(","))
        rows = {**base.rows[table]}
        for name, value in numbers.items():
            rows[(name,)] = {**rows[(name,)], "value": float(value)}
        yield change, replace(base, rows={**base.rows, table: rows})


SETS: dict[str, Callable[[], list[Set]]] = {
    "devmembench": lambda: [devmembench()],
    "cosqa": lambda: [cosqa()],
    "labels": lambda: [labels(everywhere=False), labels(everywhere=True)],
}


def main() -> None:
    """Measure the sets named on the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", nargs="*", metavar="SET", help=", ".join(SETS))
    parser.add_argument("--set", action="append", default=[], dest="changes", metavar="NAME=VALUE")
    parser.add_argument("--no-model", action="store_true", help="search by words alone")
    parser.add_argument("--memories", action="store_true", help="search extracted memories too")
    chosen = parser.parse_args()
    embedder = None if chosen.no_model else embedder_for()
    policies = list(variants(read_policy(None), chosen.changes))
    for name in chosen.sets or SETS:
        for of in SETS[name]():
            measure(of, policies, embedder, chosen.memories)


if __name__ == "__main__":
    main()
