"""
Fits data/reference/signal_weights.csv to labelled transcripts: what a signal adds to the log-odds of keeping.

    python benchmarks/fit_signal_weights.py --transcripts DIR --labels FILE [--write]

A candidate counts as worth keeping when it finds a labelled item (transforms/extract/evaluate.py). The fit is
a logistic regression drawn towards the priors in the table, which are what one would set by hand: few labels
move a weight a little, many move it as far as they go. Prints recall by cross-validation over sessions and
over projects, so that a gain on the sessions it was fitted to is not taken for one on others.
"""

import argparse
import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cortex.transforms.extract import session_candidates, threads_by_session
from cortex.transforms.extract.candidate import Candidate
from cortex.transforms.extract.evaluate import ShownMemory, finds, hits
from cortex.transforms.extract.lexicon import Lexicon
from cortex.transforms.extract.select import Budget, confidences
from cortex.transforms.policy import Policy, load_policy
from cortex.transforms.transcripts.transcript import Source, read_transcript

REFERENCE = Path(__file__).parents[1] / "data" / "reference"
# Strength of the priors. Recall on left-out projects: .77 at 4, .79 at 8, .81 at 16 and at 30.
PRIOR_STRENGTH = 20.0
# Signals that a memory is never shown with: what was refuted, overtaken or provisional when it was said.
NEVER_SHOWN = {"claims_refuted": -9.0, "is_overtaken": -9.0, "is_transient": -9.0}
TRAP_WEIGHT = 3.0

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Example:
    """One candidate: its session, signals, the labelled items it finds, and whether it hits a trap."""

    session: str
    candidate: Candidate
    items: tuple[int, ...]
    is_trap: bool


def main() -> None:
    """Fit, report, and with --write store the weights."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--transcripts", type=Path, required=True)
    parser.add_argument("--labels", type=Path, required=True)
    parser.add_argument("--write", action="store_true", help="store the weights in data/reference")
    given = parser.parse_args()
    policy = load_policy({path.stem: path.read_text(encoding="utf-8") for path in REFERENCE.glob("*.csv")})
    labels = [json.loads(line) for line in given.labels.read_text(encoding="utf-8").splitlines()]
    examples = examples_of(given.transcripts, labels, policy)
    table = policy.tables["signal_weights"].to_pylist()
    priors = {row["signal"]: float(row["prior"]) for row in table}
    items = [label for label in labels if label["kind"] == "item"]
    for what, group_of in (("sessions", lambda s: s), ("projects", lambda s: s.split("/")[0])):
        label_ids = cross_validated(examples, labels, priors, policy, group_of)
        print(f"left-out {what}: recall {len(label_ids) / len(items):.3f}")
    weights = fitted(examples, labels, priors)
    print(f"on all: recall {len(labels_shown_with(examples, weights, policy)) / len(items):.3f}")
    if given.write:
        write(table, weights)


def examples_of(folder: Path, labels: Sequence[dict[str, Any]], policy: Policy) -> list[Example]:
    """Return every candidate of the labelled sessions that could become a memory."""
    examples = []
    for session in sorted({label["session"] for label in labels}):
        source = Source(session, session.split("/")[0], session, None)
        turns = read_transcript((folder / session).read_bytes(), source=source, final=True).turns
        for threads in threads_by_session(turns):
            for candidate in session_candidates(threads, Lexicon.of(policy)):
                if candidate.memory_type and candidate.step_status is None and candidate.confidence is None:
                    examples.append(_example(session, candidate, labels))
    return examples


def _example(session: str, candidate: Candidate, labels: Sequence[dict[str, Any]]) -> Example:
    shown = [ShownMemory(candidate.text, 1.0, frozenset(candidate.lines))]
    of_session = [(number, label) for number, label in enumerate(labels) if label["session"] == session]
    return Example(
        session,
        candidate,
        tuple(number for number, label in of_session if label["kind"] == "item" and finds(label, shown)),
        any(label["kind"] == "trap" and hits(label, shown) for _, label in of_session),
    )


def fitted(
    examples: Sequence[Example], labels: Sequence[dict[str, Any]], priors: dict[str, float]
) -> dict[str, float]:
    """Return the weight of each signal, `bias` included, by Newton steps on the penalised likelihood."""
    names = sorted(
        {name for example in examples for name in example.candidate.signals} | (priors.keys() - {"bias"})
    )
    signals = np.array([[ex.candidate.signals.get(name, 0.0) for name in names] + [1.0] for ex in examples])
    wanted = np.array([float(bool(ex.items) and not ex.is_trap) for ex in examples])
    costs = np.array([_cost(example, labels) for example in examples])
    prior = np.array([priors.get(name, 0.0) for name in names] + [0.0])
    penalty = np.array([PRIOR_STRENGTH] * len(names) + [1e-3])
    weights: Vector = np.zeros(len(prior))
    for _ in range(60):
        chance = 1.0 / (1.0 + np.exp(-signals @ weights))
        slope = signals.T @ (costs * (chance - wanted)) + penalty * (weights - prior)
        curve = (signals * (costs * chance * (1 - chance))[:, None]).T @ signals + np.diag(penalty)
        weights = weights - np.linalg.solve(curve, slope)
    return {**dict(zip([*names, "bias"], weights.tolist(), strict=True)), **NEVER_SHOWN}


def _cost(example: Example, labels: Sequence[dict[str, Any]]) -> float:
    importance = max((labels[number].get("importance", 1) for number in example.items), default=1)
    return float(importance**0.5 * (TRAP_WEIGHT if example.is_trap else 1.0))


def cross_validated(
    examples: Sequence[Example],
    labels: Sequence[dict[str, Any]],
    priors: dict[str, float],
    policy: Policy,
    group_of: Any,
) -> set[int]:
    """Return the items found when each group is judged by weights fitted to the others."""
    label_ids: set[int] = set()
    for group in sorted({group_of(example.session) for example in examples}):
        others = [example for example in examples if group_of(example.session) != group]
        own = [example for example in examples if group_of(example.session) == group]
        label_ids |= labels_shown_with(own, fitted(others, labels, priors), policy)
    return label_ids


def labels_shown_with(examples: Sequence[Example], weights: dict[str, float], policy: Policy) -> set[int]:
    """Return the items that the memories within budget find."""
    label_ids: set[int] = set()
    for session in sorted({example.session for example in examples}):
        own = [example for example in examples if example.session == session]
        values = confidences([example.candidate for example in own], Budget.of(policy), weights)
        label_ids |= {
            item for example, value in zip(own, values, strict=True) if value >= 0.5 for item in example.items
        }
    return label_ids


def write(table: list[dict[str, Any]], weights: dict[str, float]) -> None:
    """Store the weights, keeping priors and reasons."""
    by_signal = {row["signal"]: row for row in table}
    with (REFERENCE / "signal_weights.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["signal", "weight", "prior", "why"])
        for name in sorted(weights, key=lambda name: (name != "bias", name)):
            row = by_signal.get(name, {"prior": "0", "why": ""})
            rows.writerow([name, f"{weights[name]:.3f}", row["prior"], row["why"]])


if __name__ == "__main__":
    main()
