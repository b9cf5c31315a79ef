"""Scores what extraction keeps against labels of all that is worth keeping: noise can be counted."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cortex.flows.context import Context
from cortex.flows.embedders import local_or_none
from cortex.scores.labels import rows_of
from cortex.storage.staging.assistant_folders import find_transcripts
from cortex.transforms.errors import NotFound, UsageError
from cortex.transforms.extract.events import extract_events
from cortex.transforms.schemas import TURNS
from cortex.transforms.transcripts.transcript import Source, read_transcript

# A fact that shares a line with a label, or stands one line apart, meets it from the first similarity on, any
# other fact of the session from the second; a second reading of the labels agreed with matches so made.
NEAR_SIMILARITY, FAR_SIMILARITY = 0.45, 0.70
LINE_DISTANCE = 1
# A shorter quote shares its words with too many facts.
QUOTE_WORDS_MIN = 4
WORTH_GRADE, VITAL_GRADE = 2, 3
CONFIDENCE_BANDS = 10

_WORD = re.compile(r"\w{3,}")

Vectors = npt.NDArray[np.float32]
DenseLabel = Mapping[str, Any]


@dataclass(frozen=True)
class ShownFact:
    """One fact as a reader sees it: its session as labels name it, its text, its lines, how sure it is."""

    session: str
    text: str
    lines: frozenset[int]
    confidence: float


@dataclass(frozen=True)
class Similarities:
    """Cosine similarities of each fact (row) to the text and to the quote of each label (column)."""

    to_text: Vectors
    to_quote: Vectors

    @classmethod
    def none(cls, facts: int, labels: int) -> "Similarities":
        """Return those of no model: only shared words then tell."""
        return cls(*(np.zeros((facts, labels), np.float32) for _ in range(2)))


@dataclass(frozen=True)
class DenseEvaluation:
    """All figures of one evaluation against dense labels; shares are 0 to 1."""

    facts: Sequence[ShownFact]
    labels: Sequence[DenseLabel]
    # By fact, the positions of the labels that it meets, best first.
    met: Sequence[Sequence[int]]

    @cached_property
    def grades(self) -> list[int]:
        """The grade of the best label that each fact meets; 0 for noise."""
        return [int(self.labels[places[0]]["grade"]) if places else 0 for places in self.met]

    @cached_property
    def is_met(self) -> frozenset[int]:
        """The positions of the labels that any fact meets."""
        return frozenset(place for places in self.met for place in places)

    @property
    def valid(self) -> list[int]:
        """The positions of the labels that a perfect memory would hold."""
        return [
            at
            for at, label in enumerate(self.labels)
            if label["grade"] >= WORTH_GRADE and label["until"] is None
        ]

    @property
    def overturned(self) -> list[int]:
        """The positions of the labels that the session itself takes back or finishes."""
        return [at for at, label in enumerate(self.labels) if label["until"] is not None]

    def recall(self, places: Sequence[int]) -> float:
        """Return the share of the labels at `places` that are met."""
        return sum(at in self.is_met for at in places) / max(1, len(places))

    def recall_by(self, column: str) -> dict[str, float]:
        """Return the recall of valid labels by the value of one of their columns."""
        groups: dict[str, list[int]] = defaultdict(list)
        for at in self.valid:
            groups[str(self.labels[at][column])].append(at)
        return {name: round(self.recall(places), 3) for name, places in sorted(groups.items())}

    def calibration(self) -> list[dict[str, float]]:
        """Return, by tenth of confidence: facts, mean confidence stated, share found worth keeping."""
        bands: dict[int, list[int]] = defaultdict(list)
        for at, fact in enumerate(self.facts):
            bands[min(int(fact.confidence * CONFIDENCE_BANDS), CONFIDENCE_BANDS - 1)].append(at)
        return [
            {
                "from": band / CONFIDENCE_BANDS,
                "facts": len(places),
                "stated": round(sum(self.facts[at].confidence for at in places) / len(places), 3),
                "found": round(sum(self.grades[at] >= WORTH_GRADE for at in places) / len(places), 3),
            }
            for band, places in sorted(bands.items())
        ]

    def as_dict(self) -> dict[str, object]:
        """Return the figures by name, shares rounded to three digits."""
        count = max(1, len(self.facts))
        sessions = len({label["session"] for label in self.labels})
        vital = [at for at in self.valid if self.labels[at]["grade"] >= VITAL_GRADE]
        shares = {
            "worth": sum(grade >= WORTH_GRADE for grade in self.grades) / count,
            "harmless": sum(0 < grade < WORTH_GRADE for grade in self.grades) / count,
            "noise": sum(grade == 0 for grade in self.grades) / count,
            "recall": self.recall(self.valid),
            "recall_grade_3": self.recall(vital),
            "overturned_shown": self.recall(self.overturned),
        }
        return {
            "facts": len(self.facts),
            "sessions": sessions,
            "facts_per_session": round(len(self.facts) / max(1, sessions), 1),
            **{name: round(share, 3) for name, share in shares.items()},
            "valid_labels": len(self.valid),
            "overturned_labels": len(self.overturned),
            "recall_by_type": self.recall_by("type"),
            "recall_by_place": self.recall_by("found_in"),
            "calibration": self.calibration(),
        }

    def listed(self) -> list[dict[str, object]]:
        """Return each noise, each miss and each overturned fact shown, with its session and first lines."""
        noise: list[dict[str, object]] = [
            {"kind": "noise", "session": fact.session, "lines": sorted(fact.lines)[:3], "text": fact.text}
            for fact, grade in zip(self.facts, self.grades, strict=True)
            if grade == 0
        ]
        missed = [self._listed("missed", at) for at in self.valid if at not in self.is_met]
        return [
            *noise,
            *missed,
            *(self._listed("overturned", at) for at in self.overturned if at in self.is_met),
        ]

    def _listed(self, kind: str, at: int) -> dict[str, object]:
        label = self.labels[at]
        return {"kind": kind, "session": label["session"], "lines": label["lines"][:3], "text": label["text"]}


def evaluate_dense(
    facts: Sequence[ShownFact], labels: Sequence[DenseLabel], similarities: Similarities
) -> DenseEvaluation:
    """
    Return which labels each fact meets.

    A fact meets a label of its session that is similar enough: by the larger of its cosines to the label's
    text and quote, or the share of the quote's words in the fact. It counts by the best label it meets; one
    that holds counts before an overturned one of the same grade.
    """
    of_session: dict[str, list[int]] = defaultdict(list)
    for at, label in enumerate(labels):
        of_session[str(label["session"])].append(at)
    quoted = [_words(str(label["quote"])) for label in labels]
    cosines = np.maximum(similarities.to_text, similarities.to_quote)
    met = []
    for row, fact in enumerate(facts):
        own = _words(fact.text)
        ranked = []
        for at in of_session[fact.session]:
            words = quoted[at]
            contained = len(words & own) / len(words) if len(words) >= QUOTE_WORDS_MIN else 0.0
            similarity = max(float(cosines[row, at]), contained)
            if similarity >= (NEAR_SIMILARITY if _is_near(fact, labels[at]) else FAR_SIMILARITY):
                ranked.append((_worth(labels[at]), similarity, -at))
        met.append([-at for *_, at in sorted(ranked, reverse=True)])
    return DenseEvaluation(facts, labels, met)


def _is_near(fact: ShownFact, label: DenseLabel) -> bool:
    return any(abs(own - line) <= LINE_DISTANCE for own in fact.lines for line in label["lines"])


def _worth(label: DenseLabel) -> float:
    return float(label["grade"]) - 0.5 * (label["until"] is not None)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


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
    def label_of(row: object, where: str) -> dict[str, Any]:
        if not isinstance(row, dict) or not row.keys() >= _LABEL_COLUMNS:
            columns = ", ".join(sorted(_LABEL_COLUMNS))
            raise UsageError(f"{where}: the label lacks one of {columns}.", "See the labels' README.")
        return row

    rows = list(rows_of(path, label_of))
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
