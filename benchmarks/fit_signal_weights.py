"""
Fits data/reference/signal_weights.csv to dense labels: what a signal adds to the log-odds of being worth it.

    python benchmarks/fit_signal_weights.py --corpus TRANSCRIPTS LABELS [--corpus …] [--write]

A candidate is worth keeping when the best label that it meets (transforms/extract/dense_labels.py) has grade
2 or 3 and holds until the session's end; every other candidate is not. The fit is a logistic regression drawn
towards zero. All figures are of repositories left out of the fit: weights fitted to the others choose among
their candidates as extraction does. `--without` leaves out signals by the start of their names, to see what
they bring; `--list` prints what is noise, missed or overturned, `--sample` random shown facts.
"""

import argparse
import csv
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cortex.flows.embedders import embedder_for
from cortex.flows.operations.evaluate import shown_text
from cortex.transforms.extract.candidate import Candidate
from cortex.transforms.extract.dense_labels import (
    WORTH_GRADE,
    DenseEvaluation,
    DenseLabel,
    ShownFact,
    Similarities,
    evaluate_dense,
)
from cortex.transforms.extract.events import session_candidates, threads_by_session
from cortex.transforms.extract.lexicon import Lexicon
from cortex.transforms.extract.select import Budget, confidences, is_memory, is_never_shown
from cortex.transforms.extract.surroundings import with_surroundings
from cortex.transforms.policy import Policy, load_policy
from cortex.transforms.transcripts.transcript import Source, read_transcript

REFERENCE = Path(__file__).parents[1] / "data" / "reference"
# Strength of the pull towards zero. AUC on left-out repositories: .731 at 1 and 4, .730 at 10, .726 at 30.
STRENGTH = 4.0
# A signal that fewer candidates show is a chance of the sample.
LEAST_SHOWN_BY = 5
# Signals that a fact is never shown with: it does not stand by itself, was refuted or is said again later.
NEVER_SHOWN = ("claims_refuted", "is_overtaken")
NEVER = -9.0
FACTS_A_SESSION = 10.0

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Example:
    """One candidate with the signals of its place, its session, and whether it is worth keeping."""

    session: str
    candidate: Candidate
    signals: Mapping[str, float]
    grade: int = 0
    is_worth: bool = False

    @property
    def repository(self) -> str:
        """The folder of the session."""
        return self.session.split("/")[0]

    @property
    def competes(self) -> bool:
        """Whether the weights decide on it."""
        is_hidden = is_never_shown(self.candidate) or any(
            self.signals.get(name, 0.0) >= 1.0 for name in NEVER_SHOWN
        )
        return not is_hidden and self.candidate.confidence is None


def main() -> None:
    """Fit, report, and with --write store the weights."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, nargs=2, action="append", required=True)
    parser.add_argument("--write", action="store_true", help="store the weights in data/reference")
    parser.add_argument("--without", nargs="*", default=[], help="starts of signals' names to leave out")
    parser.add_argument("--threshold", type=float, help="instead of the one that gives ten facts a session")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--by-repository", action="store_true")
    parser.add_argument("--weights", action="store_true", help="print the weights")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    policy = load_policy({path.stem: path.read_text(encoding="utf-8") for path in REFERENCE.glob("*.csv")})
    labels = [row for _, file in given.corpus for row in _rows(file)]
    matcher = Matcher(labels)
    examples = [
        replace(example, signals=_without(example.signals, given.without))
        for folder, _ in given.corpus
        for example in examples_of(folder, policy)
    ]
    examples = matcher.graded(examples)
    _print_candidates(examples, matcher)
    out_of_fit = left_out(examples)
    competing = [at for at, example in enumerate(examples) if example.competes]
    worth = np.array([examples[at].is_worth for at in competing])
    print(f"AUC of left-out repositories: {auc(out_of_fit[competing], worth):.3f}")
    budget = Budget.of(policy)
    threshold = given.threshold or _threshold(examples, budget, len({row["session"] for row in labels}))
    for near in (threshold - 0.08, threshold + 0.08, threshold):
        shown, evaluation = chosen(examples, replace(budget, least_chance=near), matcher)
        _print_figures(near, evaluation)
    _print_layers(examples, shown)
    if given.by_repository:
        _print_repositories(examples, shown, labels)
    weights = fitted(examples)
    if given.weights:
        counts = Counter(name for example in examples for name, value in example.signals.items() if value)
        for name, weight in sorted(weights.items(), key=lambda pair: pair[1]):
            print(f"  {weight:+.2f} {name} ({counts[name]})")
    if given.list:
        for row in evaluation.listed():
            print(str(row["kind"]).upper(), row["session"], row["lines"], row["text"])
    for at in random.Random(given.seed).sample(sorted(shown), min(given.sample, len(shown))):
        example = examples[at]
        print(
            f"{shown[at]:.2f} grade {example.grade} {example.candidate.memory_type} "
            f"{example.candidate.layer} {example.session}:{example.candidate.lines} "
            f"{_text(example.candidate)}"
        )
    if given.write:
        write(policy.tables["signal_weights"].to_pylist(), weights)


def _rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def _without(signals: Mapping[str, float], starts: Sequence[str]) -> dict[str, float]:
    return {name: value for name, value in signals.items() if not name.startswith(tuple(starts))}


def examples_of(folder: Path, policy: Policy) -> Iterator[Example]:
    """Yield every candidate of the sessions of a folder that could become a memory."""
    lexicon = Lexicon.of(policy)
    for path in sorted(folder.glob("*/*.jsonl")):
        session = path.relative_to(folder).as_posix()
        source = Source(session, project_id=session.split("/")[0], session_id=None, agent_id=None)
        turns = read_transcript(path.read_bytes(), source=source, final=True).turns
        for threads in threads_by_session(turns):
            seen = [candidate for candidate in session_candidates(threads, lexicon) if candidate.text.strip()]
            memories = [candidate for candidate in seen if is_memory(candidate)]
            for candidate, signals in zip(memories, with_surroundings(memories), strict=True):
                yield Example(session, candidate, signals)


class Matcher:
    """Says which dense labels a fact meets; every text is embedded once."""

    def __init__(self, labels: Sequence[DenseLabel]) -> None:
        """Embed the texts and quotes of `labels`."""
        self.labels = labels
        self._embedder = embedder_for()
        self._vectors: dict[str, npt.NDArray[np.float32]] = {}

    def evaluate(
        self, facts: Sequence[ShownFact], labels: Sequence[DenseLabel] | None = None
    ) -> DenseEvaluation:
        """Return which of the labels, as a rule all, the facts meet."""
        wanted = self.labels if labels is None else labels
        texts = self._embedded([str(label["text"]) for label in wanted])
        quotes = self._embedded([str(label["quote"]) for label in wanted])
        own = self._embedded([fact.text for fact in facts])
        return evaluate_dense(facts, wanted, Similarities(own @ texts.T, own @ quotes.T))

    def graded(self, examples: Sequence[Example]) -> list[Example]:
        """Return the examples with their grades."""
        evaluation = self.evaluate([_fact(example, 0.0) for example in examples])
        best = [self.labels[places[0]] if places else None for places in evaluation.met]
        return [
            replace(
                example,
                grade=int(label["grade"]) if label else 0,
                is_worth=label is not None and label["grade"] >= WORTH_GRADE and label["until"] is None,
            )
            for example, label in zip(examples, best, strict=True)
        ]

    def _embedded(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        new = sorted({*texts} - self._vectors.keys())
        if new:
            self._vectors.update(zip(new, self._embedder.embed(new), strict=True))
        if not texts:
            return np.zeros((0, self._embedder.dimensions), np.float32)
        return np.array([self._vectors[text] for text in texts])


def _fact(example: Example, confidence: float) -> ShownFact:
    candidate = example.candidate
    return ShownFact(example.session, _text(candidate), frozenset(candidate.lines), confidence)


def _text(candidate: Candidate) -> str:
    return shown_text(candidate.text, candidate.reason, candidate.rejected)


def fitted(examples: Sequence[Example]) -> dict[str, float]:
    """Return the weight of each signal, `bias` included, by Newton steps on the penalised likelihood."""
    rows = [example for example in examples if example.competes]
    counts = Counter(name for example in rows for name, value in example.signals.items() if value)
    names = sorted(name for name, count in counts.items() if count >= LEAST_SHOWN_BY)
    signals = np.array([[row.signals.get(name, 0.0) for name in names] + [1.0] for row in rows])
    wanted = np.array([float(row.is_worth) for row in rows])
    penalty = np.array([STRENGTH] * len(names) + [1e-3])
    weights: Vector = np.zeros(len(penalty))
    for _ in range(30):
        chances = 1.0 / (1.0 + np.exp(-signals @ weights))
        slope = signals.T @ (chances - wanted) + penalty * weights
        curve = (signals * (chances * (1 - chances))[:, None]).T @ signals + np.diag(penalty)
        step = np.linalg.solve(curve, slope)
        weights = weights - step
        if np.abs(step).max() < 1e-5:
            break
    fitted_weights = dict(zip([*names, "bias"], weights.tolist(), strict=True))
    return {**fitted_weights, **dict.fromkeys(NEVER_SHOWN, NEVER)}


_LEFT_OUT: dict[str, dict[str, float]] = {}


def _weights_without(examples: Sequence[Example], repository: str) -> dict[str, float]:
    if repository not in _LEFT_OUT:
        _LEFT_OUT[repository] = fitted([row for row in examples if row.repository != repository])
    return _LEFT_OUT[repository]


def left_out(examples: Sequence[Example]) -> Vector:
    """Return the chance of each example by the weights that were fitted to the other repositories."""
    chances = np.zeros(len(examples))
    for at, example in enumerate(examples):
        weights = _weights_without(examples, example.repository)
        points = sum(weights.get(name, 0.0) * value for name, value in example.signals.items())
        chances[at] = 1.0 / (1.0 + np.exp(-weights["bias"] - points))
    return chances


def auc(chances: Vector, is_worth: npt.NDArray[np.bool_]) -> float:
    """Return how often an example that is worth keeping has a higher chance than one that is not."""
    ranks = np.empty(len(chances))
    ranks[np.argsort(chances)] = np.arange(1, len(chances) + 1)
    positive = int(is_worth.sum())
    negative = len(chances) - positive
    return float((ranks[is_worth].sum() - positive * (positive + 1) / 2) / (positive * negative))


def chosen(
    examples: Sequence[Example], budget: Budget, matcher: Matcher
) -> tuple[dict[int, float], DenseEvaluation]:
    """Return the confidence of each example shown, chosen as extraction does, by weights of the others."""
    by_session: dict[str, list[int]] = defaultdict(list)
    for at, example in enumerate(examples):
        by_session[example.session].append(at)
    shown: dict[int, float] = {}
    for places in by_session.values():
        weights = _weights_without(examples, examples[places[0]].repository)
        values = confidences([examples[at].candidate for at in places], budget, weights)
        shown |= {at: value for at, value in zip(places, values, strict=True) if value >= budget.least_shown}
    facts = [_fact(examples[at], value) for at, value in shown.items()]
    return shown, matcher.evaluate(facts)


def _threshold(examples: Sequence[Example], budget: Budget, sessions: int) -> float:
    """Return the chance from which on as many facts as the labels allow a session are shown."""
    low, high = 0.3, 0.9
    for _ in range(9):
        middle = (low + high) / 2
        count = 0
        by_session: dict[str, list[Example]] = defaultdict(list)
        for example in examples:
            by_session[example.session].append(example)
        for rows in by_session.values():
            weights = _weights_without(examples, rows[0].repository)
            values = confidences(
                [row.candidate for row in rows], replace(budget, least_chance=middle), weights
            )
            count += sum(value >= budget.least_shown for value in values)
        low, high = (middle, high) if count / sessions > FACTS_A_SESSION else (low, middle)
    return (low + high) / 2


def _print_candidates(examples: Sequence[Example], matcher: Matcher) -> None:
    evaluation = matcher.evaluate([_fact(example, 0.0) for example in examples])
    hidden = [row for row in examples if not row.competes and row.candidate.confidence is None]
    figures = evaluation.as_dict()
    print(
        f"candidates {len(examples)}, {sum(row.is_worth for row in examples) / len(examples):.3f} worth it; "
        f"together they meet {figures['recall']} of valid labels, {figures['recall_grade_3']} of grade 3, "
        f"{figures['overturned_shown']} of overturned ones"
    )
    for name in ("overturned_at", "no_statement", *NEVER_SHOWN):
        rows = [
            row
            for row in hidden
            if (row.candidate.overturned_at is not None if name == "overturned_at" else row.signals.get(name))
        ]
        if rows:
            worth, noise = (
                sum(row.is_worth for row in rows) / len(rows),
                sum(row.grade == 0 for row in rows) / len(rows),
            )
            print(f"  hidden by {name}: {len(rows)} ({worth:.2f} worth, {noise:.2f} noise)")


def _print_figures(threshold: float, evaluation: DenseEvaluation) -> None:
    figures = evaluation.as_dict()
    overturned = sum(at in evaluation.is_met for at in evaluation.overturned)
    print(
        f"from {threshold:.3f}: {figures['facts_per_session']} facts a session, "
        f"worth {figures['worth']}, harmless {figures['harmless']}, noise {figures['noise']}, "
        f"recall {figures['recall']}, grade 3 {figures['recall_grade_3']}, "
        f"overturned {overturned} of {len(evaluation.overturned)}, "
        f"characters {np.mean([len(fact.text) for fact in evaluation.facts]):.0f}"
    )
    print("  calibration", [tuple(band.values()) for band in evaluation.calibration()])
    print("  recall by type", figures["recall_by_type"], "by place", figures["recall_by_place"])


def _print_layers(examples: Sequence[Example], shown: Mapping[int, float]) -> None:
    groups: dict[str, list[int]] = defaultdict(list)
    for at, example in enumerate(examples):
        name = example.candidate.layer
        sure = "sure " if example.candidate.confidence is not None else ""
        groups[sure + (name.replace(":en", "") if name.startswith("layer2") else name)].append(at)
    for name, places in sorted(groups.items()):
        own = [examples[at] for at in places if at in shown]
        worth = sum(row.is_worth for row in own) / max(1, len(own))
        noise = sum(row.grade == 0 for row in own) / max(1, len(own))
        print(f"  {name}: {len(places)} candidates, {len(own)} shown, {worth:.2f} worth, {noise:.2f} noise")


def _print_repositories(
    examples: Sequence[Example], shown: Mapping[int, float], labels: Sequence[DenseLabel]
) -> None:
    matcher = Matcher(labels)
    for name in sorted({str(label["session"]).split("/")[0] for label in labels}):
        own = [label for label in labels if str(label["session"]).startswith(f"{name}/")]
        facts = [_fact(examples[at], value) for at, value in shown.items() if examples[at].repository == name]
        figures = matcher.evaluate(facts, own).as_dict()
        figures = {key: figures[key] for key in list(figures)[:9]}
        print(f"  {name}: {figures}")


def write(table: list[dict[str, Any]], weights: dict[str, float]) -> None:
    """Store the weights, keeping the reasons."""
    reasons = {str(row["signal"]): str(row["why"]) for row in table}
    with (REFERENCE / "signal_weights.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["signal", "weight", "why"])
        for name in sorted(weights, key=lambda name: (name != "bias", name)):
            rows.writerow([name, f"{weights[name]:.3f}", reasons.get(name, _reason(name))])


def _reason(name: str) -> str:
    start, _, rest = name.partition("_")
    whose = {"layer": "seen by", "type": "kind of memory:", "turn": "said in a turn of kind", "at": "said"}
    return f"{whose.get(start, 'signal')} {rest.replace('_', ' ')}".strip()


if __name__ == "__main__":
    main()
