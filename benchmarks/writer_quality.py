"""
Compares what a language model wrote about labelled sessions with what the rules keep of them.

    python -m benchmarks.writer_quality --transcripts DIR --labels FILE --replies DIR [--list] [--facts FILE]
        [--model NAME]

`--replies` holds recorded answers as `<request_id>.json` (see writer_requests.py). A session counts where the
folder holds the answer to exactly its request; the model's name is part of a request. Events are made by the
code that makes them in a store: the rules', with the checked facts in their place. `--list` prints what was
refused and why, and each noise, miss and overturned fact of the writer; `--facts` writes what is shown as
JSON lines.
`--transcripts` and `--labels` may be given several times, in pairs.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.writer_requests import MODEL, requests_below, turns_of
from cortex.scores.extraction_scores import DenseEvaluation, evaluate_dense, shown_facts, similarities
from cortex.storage.settings.reference import read_policy
from cortex.transforms.extract.events import extract_events
from cortex.transforms.extract.quotes import with_quotes_lowered
from cortex.transforms.masking import masked
from cortex.transforms.schemas import EVENTS, REPLIES, TURNS, Row
from cortex.transforms.writer.request import SESSION_PROMPT
from cortex.transforms.writer.session import SessionRequest
from cortex.transforms.writer.written import LAYER_PREFIX, REFUSED_CONFIDENCE, reply_row, with_written

POLICY = read_policy(None)
RECORDED_AT = datetime(2026, 11, 22, tzinfo=UTC)
SHARES = ("worth", "harmless", "noise", "recall", "recall_grade_3", "overturned_shown")


@dataclass(frozen=True)
class Corpus:
    """The labelled sessions of one folder that have a recorded answer: turns, rows of REPLIES, labels."""

    turns: pa.Table
    replies: pa.Table
    labels: Sequence[dict[str, Any]]


def main() -> None:
    """Print the figures of rules and writer in one table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--transcripts", type=Path, action="append", required=True)
    parser.add_argument("--labels", type=Path, action="append", required=True)
    parser.add_argument("--replies", type=Path, required=True)
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--facts", type=Path)
    chosen = parser.parse_args()
    pairs = list(zip(chosen.transcripts, chosen.labels, strict=True))
    results, written = scored(pairs, chosen.replies, chosen.model)
    _print(results, written)
    if chosen.list:
        _list(results["writer"], written)
    if chosen.facts:
        rows = [
            {
                "session": fact.session,
                "text": fact.text,
                "lines": sorted(fact.lines),
                "confidence": fact.confidence,
            }
            for fact in results["writer"].facts
        ]
        chosen.facts.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


def scored(
    pairs: Sequence[tuple[Path, Path]], replies: Path, model: str = MODEL
) -> tuple[dict[str, DenseEvaluation], pa.Table]:
    """
    Return how `rules` and `writer` do on the sessions with a recorded answer, and the EVENTS of the writer.

    `pairs` are folders of transcripts with the file of their dense labels.
    """
    corpora = [read_corpus(transcripts, labels, replies, model) for transcripts, labels in pairs]
    labels = [label for corpus in corpora for label in corpus.labels]
    rules = pa.concat_tables([_rules(corpus) for corpus in corpora])
    written = pa.concat_tables([written_events(corpus) for corpus in corpora])
    return {"rules": _scored(rules, labels), "writer": _scored(written, labels)}, written


def read_corpus(transcripts: Path, labels: Path, replies: Path, model: str) -> Corpus:
    """Return the labelled sessions below a folder that have a recorded answer, and say how many have none."""
    lines = labels.read_text(encoding="utf-8").split("\n")
    rows = [json.loads(line) for line in lines if line.strip()]
    named = {str(row["session"]) for row in rows}
    answers: dict[str, Row] = {}
    for name, asked in requests_below(transcripts, model, named):
        path = replies / f"{asked.request.request_id}.json"
        if path.is_file():
            answers[name] = _reply(asked, json.loads(path.read_text(encoding="utf-8")))
    missing = sorted(named - answers.keys())
    print(f"{labels.name}: {len(answers)} sessions with a recorded answer, {len(missing)} without")
    turns = pa.concat_tables(
        [TURNS.empty(), *(turns_of(transcripts / name, transcripts) for name in answers)]
    )
    return Corpus(
        turns, REPLIES.of(list(answers.values())), [row for row in rows if row["session"] in answers]
    )


def _reply(asked: SessionRequest, recorded: dict[str, Any]) -> Row:
    text = recorded["text"]
    return reply_row(
        asked,
        text=text if isinstance(text, str) else json.dumps(text),
        provider="recorded",
        stop_reason="end_turn",
        asked_at=RECORDED_AT,
    )


def _rules(corpus: Corpus) -> pa.Table:
    return _finished(extract_events(corpus.turns, POLICY), corpus)


def written_events(corpus: Corpus) -> pa.Table:
    """Return the EVENTS of a corpus, the checked facts of its answers in the place of the rules'."""
    events = extract_events(corpus.turns, POLICY)
    return _finished(with_written(events, corpus.turns, corpus.replies, POLICY, SESSION_PROMPT), corpus)


def _finished(events: pa.Table, corpus: Corpus) -> pa.Table:
    return masked(with_quotes_lowered(events, corpus.turns), EVENTS)


def _scored(events: pa.Table, labels: Sequence[dict[str, Any]]) -> DenseEvaluation:
    sessions = sorted({str(label["session"]) for label in labels})
    facts = shown_facts(events, sessions, POLICY.threshold("shown_min_confidence"))
    return evaluate_dense(facts, labels, similarities(facts, labels))


def _print(results: dict[str, DenseEvaluation], written: pa.Table) -> None:
    figures = {name: result.as_dict() for name, result in results.items()}
    print(f"{'':18}" + "".join(f"{name:>10}" for name in figures))
    for row in ("sessions", "facts", "facts_per_session", *SHARES):
        print(f"{row:18}" + "".join(f"{figure[row]!s:>10}" for figure in figures.values()))
    for row in ("recall_by_place", "recall_by_type"):
        for name, figure in figures.items():
            print(f"{row} {name}: {figure[row]}")
    refused = Counter(str(row["reason"]).split(" say ")[0] for row in _refused(written))
    facts = sum(row["layer"].startswith(LAYER_PREFIX) for row in written.to_pylist())
    print(f"refused: {refused.total()} of {facts} written facts and records: {dict(refused.most_common())}")


def _refused(written: pa.Table) -> Iterator[Row]:
    for row in written.to_pylist():
        if row["layer"].startswith(LAYER_PREFIX) and row["confidence"] == REFUSED_CONFIDENCE:
            yield row


def _list(result: DenseEvaluation, written: pa.Table) -> None:
    for row in _refused(written):
        print("REFUSED", row["session_id"], row["reason"], "|", row["text"])
    for listed in result.listed():
        print(listed["kind"].upper(), listed["session"], listed["lines"], listed["text"])  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
