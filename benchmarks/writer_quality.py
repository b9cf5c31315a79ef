"""
Says what became of all that a language model answered, and compares its facts with what the rules keep.

    python -m benchmarks.writer_quality --played STORE --replies DIR [--labels FILE] [--list] [--facts FILE]

`--played` is a store that `writer_requests --played` left, `--replies` the answers that it was run against;
both may be given several times, in pairs. The table counts what was given and what of it is shown, with the
reason where it is not. With dense labels, the facts of labelled sessions that have an answer are scored,
beside those of the rules: events are made of turns and answers by the code that makes them in a store.
`--list` prints what is not shown and why, and each noise, miss and overturned fact of the writer; `--facts`
writes what is shown as JSON lines.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from cortex.scores.extraction_scores import (
    DenseEvaluation,
    evaluate_dense,
    shown_facts,
    similarities,
)
from cortex.storage.settings.reference import read_policy
from cortex.storage.store import Store
from cortex.transforms.extract.events import extract_events
from cortex.transforms.extract.quotes import with_quotes_lowered
from cortex.transforms.masking import masked
from cortex.transforms.memory.fold import memory_id
from cortex.transforms.schemas import (
    EVENTS,
    PROJECT_PURPOSE,
    PROPOSED_BY_MODEL,
    REPLIES,
    TURNS,
    Row,
)
from cortex.transforms.writer.answer import FACT_KINDS, Checked, SessionTurns, checked_facts
from cortex.transforms.writer.project import ANSWER_PARTS
from cortex.transforms.writer.request import SESSION_PROMPT
from cortex.transforms.writer.session import ID_CHARS, facts_most
from cortex.transforms.writer.written import (
    OVER,
    SessionReply,
    outcome_text,
    replies_in_force,
    statement_of,
    with_written,
)

POLICY = read_policy(None)
SHARES = ("worth", "harmless", "noise", "recall", "recall_grade_3", "overturned_shown")
OUTCOME_FIELDS = {"goal": "Goal: ", "outcome": "Outcome: ", "proved": "; proved: ", "still_open": "Open: "}
SHOWN = "shown"


@dataclass(frozen=True)
class Fate:
    """What became of one thing that an answer gave: `kind` says what it is, `became` SHOWN or why not."""

    kind: str
    became: str
    words: str


@dataclass(frozen=True)
class PlayedStore:
    """A store that was run against recorded answers."""

    store: Store
    replies_folder: Path | None = None
    replies: Sequence[Row] = field(default_factory=list)

    @cached_property
    def parts(self) -> list[str]:
        """The partitions with a reply."""
        return self.store.lake.manifest.partitions(REPLIES.name)

    @cached_property
    def memories(self) -> dict[str, Row]:
        """All memories by id, as its tables hold them."""
        scopes = self.store.tables.scopes()
        tables = [self.store.tables.open(scope, "memories").read() for scope in scopes]
        return {row["memory_id"]: row for table in tables for row in table.to_pylist()}

    @cached_property
    def proposed(self) -> set[tuple[str, str]]:
        """Which memory a language model says is over, by which: (closed, closing)."""
        tables = [self.store.tables.open(scope, "edges").read() for scope in self.store.tables.scopes()]
        rows = [row for table in tables for row in table.to_pylist()]
        return {(row["target_id"], row["source_id"]) for row in rows if row["rule"] == PROPOSED_BY_MODEL}

    def sessions(self) -> Iterator[tuple[SessionReply, SessionTurns]]:
        """Yield the reply that counts of each session, with the turns that it read."""
        for part in self.parts:
            table = self.store.lake.read(TURNS, part)
            turns = {row["turn_id"]: row for row in table.to_pylist()}
            by_session = _turns_by_session(table)
            replies = replies_in_force(self.store.lake.read(REPLIES, part), by_session, SESSION_PROMPT)
            for _, reply in sorted(replies.items()):
                yield reply, SessionTurns([turns.get(name) for name in reply.row["turn_ids"]])


def _turns_by_session(turns: pa.Table) -> dict[str, list[str]]:
    by_session: dict[str, list[str]] = {}
    for row in turns.select(["session_id", "turn_id"]).to_pylist():
        by_session.setdefault(row["session_id"], []).append(row["turn_id"])
    return by_session


def main() -> None:
    """Print what became of the answers and, with labels, the figures of rules and writer in one table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--played", type=Path, action="append", required=True)
    parser.add_argument("--replies", type=Path, action="append", required=True)
    parser.add_argument("--labels", type=Path, action="append", default=[])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--facts", type=Path)
    chosen = parser.parse_args()
    pairs = zip(chosen.played, chosen.replies, strict=True)
    stores = [PlayedStore(Store(played), replies) for played, replies in pairs]
    fates = [fate for store in stores for fate in fates_in(store)]
    _print_fates(fates)
    if chosen.list:
        for fate in fates:
            if fate.became != SHOWN:
                print(f"{fate.kind} | {fate.became} | {fate.words}")
    results = scored(stores, chosen.labels) if chosen.labels else {}
    _print(results)
    if results and chosen.list:
        for listed in results["writer"].listed():
            print(listed["kind"].upper(), listed["session"], listed["lines"], listed["text"])  # type: ignore[attr-defined]
    if results and chosen.facts:
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


# -- What became of all that was answered.


def fates_in(played: PlayedStore) -> Iterator[Fate]:
    """Yield what became of each fact, closed id and outcome part of a store, and of each project's answer."""
    for reply, evidence in played.sessions():
        most = facts_most(len(evidence.turns), POLICY)
        for checked in checked_facts(reply.answer.facts, evidence, most):
            became = _fate_of_fact(checked, played.memories)
            yield Fate("fact", became, checked.fact.statement)
            for name in checked.fact.closes:
                words = f"{name} by {checked.fact.statement}"
                yield Fate("closes", _fate_of_closing(name, checked, reply.row["known"], played), words)
        record = outcome_text(reply.answer.outcome, evidence)
        for name, begins in OUTCOME_FIELDS.items():
            if words := getattr(reply.answer.outcome, name):
                yield Fate(f"outcome: {name}", SHOWN if begins in record else "not borne out", words)
    for part in played.parts:
        for row in played.store.lake.read(REPLIES, part).to_pylist():
            if row["purpose"] == PROJECT_PURPOSE and played.replies_folder:
                yield from _fates_of_project(row, played.replies_folder)


def _fate_of_fact(checked: Checked, memories: Mapping[str, Row]) -> str:
    fact = checked.fact
    if checked.refused:
        return "refused: " + checked.refused.partition(" say ")[0]
    if fact.state in OVER:
        return "over when the session ended"
    if fact.confidence < POLICY.threshold("shown_min_confidence"):
        return "less sure than what is shown"
    row = memory_of(checked, memories)
    if row is None:
        return "no memory"
    if row["valid_until"]:
        return "closed"
    return SHOWN if row["status"] == "active" else str(row["status"])


def memory_of(checked: Checked, memories: Mapping[str, Row]) -> Row | None:
    """Return the memory that a fact has made."""
    _, memory_type = FACT_KINDS.get(checked.fact.fact_type, FACT_KINDS["context"])
    scopes = sorted({row["project_id"] for row in memories.values()})
    names = (memory_id(scope, memory_type, statement_of(checked.fact)) for scope in scopes)
    return next((memories[name] for name in names if name in memories), None)


def _fate_of_closing(name: str, checked: Checked, known: Sequence[str], played: PlayedStore) -> str:
    whole = next((each for each in known if each[:ID_CHARS] == name[:ID_CHARS]), "")
    row = played.memories.get(whole)
    if row is None:
        return "not among the known" if not whole else "no memory any more"
    if row["valid_until"]:
        return SHOWN
    if any(closed == whole for closed, _ in played.proposed):
        return "proposed only: trusted more, or said on purpose"
    return f"by a fact that was refused: {checked.refused}" if checked.refused else "not taken over"


def _fates_of_project(row: Row, folder: Path) -> Iterator[Fate]:
    """Yield how many pieces of an answer about a project were given and are believed, part by part."""
    path = folder / f"{row['request_id']}.json"
    if not path.is_file():
        return
    text = json.loads(path.read_bytes())["text"]
    given, believed = (json.loads(words) if words else {} for words in (text, row["text"]))
    for part in ANSWER_PARTS:
        shown, all_of_it = len(believed.get(part, [])), given.get(part, [])
        for at, piece in enumerate(all_of_it):
            yield Fate(f"project: {part}", SHOWN if at < shown else "not believed", json.dumps(piece))


def _print_fates(fates: Sequence[Fate]) -> None:
    counts = Counter((fate.kind, fate.became) for fate in fates)
    for kind in dict.fromkeys(fate.kind for fate in fates):
        print(f"{kind}: {sum(count for (name, _), count in counts.items() if name == kind)} given")
        for (name, became), count in counts.most_common():
            if name == kind:
                print(f"  {count:5} {became}")


# -- The facts of labelled sessions, beside those of the rules.


def scored(stores: Sequence[PlayedStore], labels: Sequence[Path]) -> dict[str, DenseEvaluation]:
    """
    Return how `rules` and `writer` do on the labelled sessions with an answer.

    A label names its session by folder and file, as the transcripts were laid out when they were read.
    """
    lines = [line for path in labels for line in path.read_text(encoding="utf-8").split("\n")]
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines if line.strip()]
    events: dict[str, list[pa.Table]] = {"rules": [], "writer": []}
    read: set[str] = set()
    for played in stores:
        for part in played.parts:
            turns, replies = (played.store.lake.read(table, part) for table in (TURNS, REPLIES))
            answered = set(replies_in_force(replies, _turns_by_session(turns), SESSION_PROMPT))
            read |= {_label(row["file"]) for row in turns.to_pylist() if row["session_id"] in answered}
            by_rules = extract_events(turns, POLICY)
            written = with_written(by_rules, turns, replies, POLICY, SESSION_PROMPT)
            for name, table in (("rules", by_rules), ("writer", written)):
                events[name].append(_by_label(masked(with_quotes_lowered(table, turns), EVENTS)))
    kept = [row for row in rows if row["session"] in read]
    print(f"{len({row['session'] for row in kept})} labelled sessions have an answer")
    return {name: _scored(pa.concat_tables(tables), kept) for name, tables in events.items()}


def _label(file: str) -> str:
    return "/".join(Path(file).parts[-2:])


def _by_label(events: pa.Table) -> pa.Table:
    at = EVENTS.arrow.get_field_index("file")
    names = pa.array([_label(name) for name in events["file"].to_pylist()], pa.string())
    return events.set_column(at, EVENTS.arrow.field("file"), names)


def _scored(events: pa.Table, labels: Sequence[dict[str, Any]]) -> DenseEvaluation:
    sessions = sorted({str(label["session"]) for label in labels})
    facts = shown_facts(events, sessions, POLICY.threshold("shown_min_confidence"))
    return evaluate_dense(facts, labels, similarities(facts, labels))


def _print(results: Mapping[str, DenseEvaluation]) -> None:
    figures = {name: result.as_dict() for name, result in results.items()}
    print(f"{'':18}" + "".join(f"{name:>10}" for name in figures) if figures else "")
    for row in ("sessions", "facts", "facts_per_session", *SHARES) if figures else ():
        print(f"{row:18}" + "".join(f"{figure[row]!s:>10}" for figure in figures.values()))
    for row in ("recall_by_place", "recall_by_type"):
        for name, figure in figures.items():
            print(f"{row} {name}: {figure[row]}")


if __name__ == "__main__":
    main()
