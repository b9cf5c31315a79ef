"""
Recall on the labelled developer questions: `python -m benchmarks.retrieval [--memories] [--no-model]`.

The transcripts and labels in ../shared/data are put into real tables and asked through
`cortex.flows.recalling.recall_search`: does any of the first k results rest on a line that answers, within
the question's project and over all? `--set` tries another number of ranking.csv, `--memories` adds extracted
memories. Any other data set is measured by `cortex eval retrieval`.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from cortex.flows.embedders import Embedder, embedder_for
from cortex.flows.recalling.recall_search import RecallResult, search_store
from cortex.scores.retrieval_set import searchable
from cortex.storage.settings.reference import read_policy
from cortex.storage.tables.lance_tables import LanceTables
from cortex.transforms.extract.events import extract_events
from cortex.transforms.memory.fold import fold
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import JOURNAL
from cortex.transforms.search import passages_of
from cortex.transforms.transcripts.transcript import Source, read_transcript

DATA = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
CUTS = (1, 5, 10)
ASKED = 30

Place = tuple[str, int]


@dataclass(frozen=True)
class Question:
    """A question, the scopes to search, and the places that answer it: (transcript, line)."""

    text: str
    scopes: tuple[str, ...]
    answers: frozenset[Place]


@dataclass(frozen=True)
class Set:
    """A set of questions over turns by scope."""

    name: str
    turns: dict[str, pa.Table]
    questions: list[Question]


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
    return Set("labels, all" if everywhere else "labels, project", scopes, questions)


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
    cuts = [f"R@{cut} {np.mean([any_line(*pair, cut) for pair in pairs]):.3f}" for cut in CUTS]
    firsts = [next((k for k in range(1, ASKED + 1) if any_line(*pair, k)), None) for pair in pairs]
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


def main() -> None:
    """Measure the questions within their project, then over all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--set", action="append", default=[], dest="changes", metavar="NAME=VALUE")
    parser.add_argument("--no-model", action="store_true", help="search by words alone")
    parser.add_argument("--memories", action="store_true", help="search extracted memories too")
    chosen = parser.parse_args()
    embedder = None if chosen.no_model else embedder_for()
    policies = list(variants(read_policy(None), chosen.changes))
    for of in (labels(everywhere=False), labels(everywhere=True)):
        measure(of, policies, embedder, chosen.memories)


if __name__ == "__main__":
    main()
