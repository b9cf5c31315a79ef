"""
Whether memory helps the next session: what each condition gives, what was made of it, and where it was lost.

Without an agent and without answers only coverage is measured: whether the words of a fact stand in what a
session is given. Whether it then acts right is for hidden tests, or for judges who are told no condition.
"""

import hashlib
import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import numpy as np

from cortex.flows.context import Context
from cortex.flows.run.run import Progress, no_progress
from cortex.hooks.tokens import tokens_in
from cortex.scores.benefit_agents import (
    Agent,
    Done,
    Grade,
    answered,
    graded_by_tests,
    read_object,
    recorded_answers,
)
from cortex.scores.benefit_runs import (
    CONDITIONS,
    HARMLESS,
    STAGES,
    USUAL,
    Given,
    NotAvailable,
    Stores,
    given_under,
    memory_under,
)
from cortex.scores.benefit_tasks import Task, TaskSet, holds, load_tasks
from cortex.scores.retrieval_scores import Share
from cortex.transforms.errors import NotFound, UsageError
from cortex.transforms.writer.request import price_of, usd

RESAMPLES = 4_000
VERDICTS = ("right", "partly", "wrong")
ORDERS = ("first", "second")


@dataclass(frozen=True)
class Asked:
    """What is to be measured, as it stands on the command line."""

    tasks: Sequence[Path] = ()
    conditions: Sequence[str] = ()
    agent: str = ""
    answers: Sequence[str] = ()
    grades: Sequence[Path] = ()
    packets: Path | None = None
    homes: Sequence[Path] = ()
    model_homes: Sequence[Path] = ()
    keep: Path | None = None
    allow_commands: bool = False
    priced_as: str = ""


@dataclass
class Session:
    """A task under a condition: what is given, what was done, how that was graded, where a fact was lost."""

    tasks: TaskSet
    task: Task
    condition: str
    given: Given
    done: Done | None = None
    grade: Grade | None = None
    lost: str = ""

    def covered(self) -> list[bool]:
        """Return for each item whether its words stand in what is given."""
        text = self.given.text
        return [holds(text, words) for _, words in self.task.items()]

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON has it, without the text that was given."""
        grade = asdict(self.grade) if self.grade else None
        covered = self.covered()
        return {
            "task": self.task.id, "project": self.tasks.name, "kind": self.task.kind,
            "condition": self.condition, "tokens_given": tokens_in(self.given.text),
            "items": len(covered), "covered": sum(covered), "is_late": self.given.is_late,
            "grade": grade, "lost": self.lost,
        }  # fmt: skip


@dataclass
class BenefitScores:
    """All sessions of an evaluation, conditions that could not be had, agreement of judges, and prices."""

    sessions: list[Session] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    writer_usd: dict[str, float] = field(default_factory=dict)
    agreement: dict[str, float | int] | None = None
    usd_of: Mapping[int, float] = field(default_factory=dict)
    packets: list[str] = field(default_factory=list)

    def conditions(self) -> list[str]:
        """Return the conditions that were measured, in the order of the table."""
        measured = {each.condition for each in self.sessions}
        return [name for name in CONDITIONS if name in measured]

    def of(self, condition: str, *, controls: bool = False) -> list[Session]:
        """Return the sessions under a condition where memory matters, or the controls."""
        return [
            each
            for each in self.sessions
            if each.condition == condition and (each.task.kind == "control") == controls
        ]

    def figures(self, condition: str) -> dict[str, Any]:
        """Return the figures of a condition: coverage always, grades where there are any."""
        rows, controls = self.of(condition), self.of(condition, controls=True)
        every = [*rows, *controls]
        covered = [float(held) for each in rows for held in each.covered()]
        graded = [each.grade for each in rows if each.grade]
        met = [grade.met for grade in graded if grade.met is not None]
        figures: dict[str, Any] = {
            "tasks": len(rows),
            "graded": len(graded),
            "coverage": Share.of(covered).as_dict() if covered else None,
            "items": len(covered),
            "tokens_given": _mean([tokens_in(each.given.text) for each in every]),
            "notes": sum(bool(each.given.note) for each in every),
            "late": sum(each.given.is_late for each in every),
            "lost": dict(Counter(each.lost for each in rows if each.lost)),
        }
        if graded:
            for name in ("right", "wrong", "misled"):
                figures[name] = Share.of([getattr(grade, name) for grade in graded]).as_dict()
            figures["facts_met"] = Share.of(met).as_dict() if met else None
            figures["controls_right"] = Share.of([e.grade.right for e in controls if e.grade]).as_dict()
            figures |= self._cost(condition, every)
        return figures

    def _cost(self, condition: str, rows: Sequence[Session]) -> dict[str, float]:
        done = [(each, each.done) for each in rows if each.done]
        usd_of_agent = [self.usd_of.get(id(each), each_done.usd or 0.0) for each, each_done in done]
        writer = sum(self.writer_usd.values()) if condition.startswith("model") else 0.0
        count = max(1, len(done))
        return {
            "input_tokens": _mean([_input(each, work) for each, work in done]),
            "output_tokens": _mean([_output(work) for _, work in done]),
            "agent_usd": sum(usd_of_agent) / count,
            "writer_usd": writer / count,
        }

    def differences(self) -> list[dict[str, Any]]:
        """Return what each condition adds to none, task by task, with a bootstrap interval over tasks."""
        rows = []
        for condition in self.conditions():
            if condition == "none":
                continue
            for measure in ("right", "wrong", "misled"):
                pairs = self._pairs(condition, measure)
                if pairs:
                    rows.append({"condition": condition, "measure": measure, **paired(pairs)})
        return rows

    def harmful(self) -> dict[str, bool]:
        """Return whether each condition that must not harm leaves sessions worse off than none, surely."""
        result: dict[str, bool] = {}
        for row in self.differences():
            if row["condition"] in HARMLESS:
                is_worse = row["high"] < 0 if row["measure"] == "right" else row["low"] > 0
                result[row["condition"]] = result.get(row["condition"], False) or is_worse
        return result

    def _pairs(self, condition: str, measure: str) -> list[tuple[float, float]]:
        none = {each.task.id: each.grade for each in self.sessions if each.condition == "none"}
        # Controls count where harm is looked for: there none does well, and a memory can only lose.
        every = self.of(condition) + (self.of(condition, controls=True) if condition in HARMLESS else [])
        grades = ((each.grade, none.get(each.task.id)) for each in every)
        return [(getattr(own, measure), getattr(base, measure)) for own, base in grades if own and base]

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as JSON has it."""
        return {
            "measures": "benefit" if any(each.grade for each in self.sessions) else "coverage",
            "conditions": {name: self.figures(name) for name in self.conditions()},
            "against_none": self.differences(),
            "worse_than_none": self.harmful(),
            "left_out": self.left_out,
            "agreement": self.agreement,
            "writer_usd": self.writer_usd,
            "packets": self.packets,
            "sessions": [each.as_dict() for each in self.sessions],
        }


def score_benefit(context: Context, asked: Asked, progress: Progress = no_progress) -> BenefitScores:
    """
    Give each task its context under each condition, have it done, grade it. Touches no store of the person's.

    Raises NotFound and UsageError for what was named, before anything runs.
    """
    sets = load_tasks(asked.tasks)
    agent = Agent(asked.agent) if asked.agent else None
    answers = recorded_answers(asked.answers)
    _check(asked, sets, answers)
    scores = BenefitScores()
    with ExitStack() as stack:
        temporary = tempfile.TemporaryDirectory(prefix="cortex-benefit-")
        scratch = (asked.keep or Path(stack.enter_context(temporary))).absolute()
        stores = Stores(context, scratch, asked.homes, asked.model_homes)
        wanted = asked.conditions or list(answers) or USUAL
        scores.sessions = list(_prepared(stores, sets, wanted, scores, progress))
        if asked.packets and not answers:
            scores.packets = write_reader_packets(scores.sessions, asked.packets)
        for number, each in enumerate(scores.sessions, start=1):
            _do(each, agent, answers, scratch)
            progress("ask", number, len(scores.sessions))
        judged = [each for each in scores.sessions if each.done and not each.task.is_tested]
        if judged and asked.packets and answers:
            scores.packets = write_judge_packets(judged, asked.packets)
        if asked.grades:
            scores.agreement = read_grades(judged, asked.grades)
        for each in scores.sessions:
            each.lost = _lost(stores, sets, each, context)
        scores.writer_usd = stores.writer_usd
    scores.usd_of = _priced(scores.sessions, context, asked.priced_as)
    return scores


def _check(asked: Asked, sets: Sequence[TaskSet], answers: Mapping[str, object]) -> None:
    for name in (*asked.conditions, *answers):
        if name not in CONDITIONS:
            raise UsageError(f"no condition is called '{name}'.", f"There are: {', '.join(CONDITIONS)}.")
    if asked.agent and answers:
        raise UsageError("--agent and --answers exclude each other.", "Name one of them.")
    for home in (*asked.homes, *asked.model_homes):
        if not (home / "lake").is_dir():
            raise NotFound(f"there is no store in {home}.", "Name the folder that CORTEX_HOME would name.")
    # Of our own tasks an agent's work is run: the person chose the agent. Answers are anybody's.
    runs_foreign = any(
        task.commands
        for each in sets
        for task in each.tasks
        if answers or (asked.agent and not each.is_built_in)
    )
    if runs_foreign and not asked.allow_commands:
        raise UsageError(
            "commands of the tasks, and code in the answers, would run on this machine.",
            "Look at the files, then add --allow-commands.",
        )
    if asked.grades and not answers:
        raise UsageError("--grades need the answers that were graded.", "Add --answers.")
    if asked.keep and asked.keep.exists() and any(asked.keep.iterdir()):
        raise UsageError(f"{asked.keep} is not empty.", "Name a new folder for --keep.")


def _prepared(
    stores: Stores, sets: Sequence[TaskSet], wanted: Sequence[str], scores: BenefitScores, progress: Progress
) -> Iterator[Session]:
    total = sum(len(each.tasks) for each in sets) * len(wanted)
    number = 0
    for tasks in sets:
        for task in tasks.tasks:
            for condition in wanted:
                number += 1
                try:
                    given = given_under(condition, stores, sets, tasks, task)
                except NotAvailable as reason:
                    scores.left_out[condition] = str(reason)
                    continue
                progress("extract", number, total)
                yield Session(tasks, task, condition, given)


def _do(each: Session, agent: Agent | None, answers: Mapping[str, Mapping[str, str]], scratch: Path) -> None:
    answer = answers.get(each.condition, {}).get(each.task.id)
    if agent:
        folder = scratch / "work" / each.tasks.name
        each.done = agent.do(folder, each.tasks.files, each.given.prompt(each.task.prompt))
    elif answer is not None:
        each.done = answered(each.tasks, answer)
    if each.done and each.task.is_tested:
        each.grade = graded_by_tests(each.tasks, each.task, each.done.changed)


def _lost(stores: Stores, sets: Sequence[TaskSet], each: Session, context: Context) -> str:
    """Return the stage that lost a fact of a task that was not done right, or, ungraded, is not covered."""
    items = [words for _, words in each.task.items()]
    if not items or (each.grade.right == 1 if each.grade else all(each.covered())):
        return ""
    memory = None if each.condition in ("none", "other") else memory_under(
        each.condition, stores, sets, each.tasks, each.task
    )  # fmt: skip
    if memory is None:
        return "obeyed" if all(each.covered()) else "not given"
    stages = [memory.stage_lost(each.task, words, each.given, context) for words in items]
    return min(stages, key=STAGES.index)


def _priced(sessions: Sequence[Session], context: Context, model: str) -> dict[int, float]:
    """Return dollars by session where the agent says none: of what it read and wrote, at the list price."""
    rows = context.policy.rows["model_prices"].values()
    price = price_of(rows, model or context.settings.models.writer_model, datetime.now(UTC).date())
    return {
        id(each): usd(price.nano_usd(_input(each, each.done), _output(each.done)))
        for each in sessions
        if each.done and each.done.usd is None
    }


def _input(each: Session, done: Done) -> int:
    return done.input_tokens or tokens_in(each.given.prompt(each.task.prompt))


def _output(done: Done) -> int:
    return done.output_tokens or tokens_in(done.answer)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def paired(pairs: Sequence[tuple[float, float]]) -> dict[str, float]:
    """
    Return the mean difference of pairs and its 95 % interval: resampled over tasks, the same each time.

    >>> paired([(1.0, 0.0)] * 10)
    {'value': 1.0, 'low': 1.0, 'high': 1.0}
    """
    differences = np.array([own - base for own, base in pairs])
    drawn = np.random.default_rng(27).integers(0, len(pairs), (RESAMPLES, len(pairs)))
    low, high = np.quantile(differences[drawn].mean(axis=1), (0.025, 0.975))
    return {
        "value": round(float(differences.mean()), 4),
        "low": round(float(low), 4),
        "high": round(float(high), 4),
    }


# -- Packets: what a reader or a judge gets, and nothing else.

READER = """You are a coding assistant. Each section below is a session of its own with one developer's
project. Answer each message from what its section and the part about its project say, as if you saw
no other section. You have no tools.

Where files of the project are shown, answer with each file that you create or change, whole, behind a line
`=== path/of/file`. Elsewhere say in at most 12 lines what you would do, as concretely as you can.

Write one JSON object, {"ID of the section": "your answer", ...}, and nothing else.
"""
JUDGE = """You grade answers of coding assistants to a developer's message. You see what a right answer
holds, and what a wrong one does. For each answer say for each item of MUST 1
(specifically met), 0.5 (partly) or 0 (a general remark or objection is 0), for each item of MUST NOT 1
(done) or 0, and one verdict: right, partly or wrong. The answers are in no order. Grade each by itself.

Write one JSON object and nothing else:
{"packet": "PACKET",
 "grades": {"ID": {"A": {"must": [1, 0.5], "must_not": [0], "verdict": "partly"}, ...}, ...}}
"""


def write_reader_packets(sessions: Sequence[Session], folder: Path) -> list[str]:
    """Write `readers/CONDITION.md` for each condition; return the names."""
    names = []
    (folder / "readers").mkdir(parents=True, exist_ok=True)
    for condition in CONDITIONS:
        rows = [each for each in sessions if each.condition == condition]
        if not rows:
            continue
        path = folder / "readers" / f"{condition}.md"
        parts = [READER]
        for tasks, group in groupby(rows, key=lambda each: each.tasks):
            start: str | None = None
            parts.append(f"\n######## A project{_shown_files(tasks)}")
            for each in group:
                if each.given.start != start:
                    start = each.given.start
                    parts.append(f"\nFrom here on a session starts with:\n<<<\n{start or '(nothing)'}\n>>>")
                added = f"\nAdded to the message:\n<<<\n{each.given.note}\n>>>" if each.given.note else ""
                parts.append(f"\n### {each.task.id}\nThe developer says:\n{each.task.prompt}{added}")
        path.write_text("\n".join(parts) + "\n", encoding="utf-8")
        names.append(str(path))
    return names


def _shown_files(tasks: TaskSet) -> str:
    return "".join(f"\n--- {name}\n{text}" for name, text in sorted(tasks.files.items()) if text.strip())


def write_judge_packets(judged: Sequence[Session], folder: Path) -> list[str]:
    """Write `judges/first.md` and `judges/second.md`: the same answers, the second time in reverse order."""
    names = []
    (folder / "judges").mkdir(parents=True, exist_ok=True)
    for order in ORDERS:
        parts = [JUDGE.replace("PACKET", f"{_packet_id(judged)}-{order}")]
        for rows in _by_task(judged).values():
            task = rows[0].task
            must, must_not = ("".join(f"\n- {item}" for item in each) for each in (task.must, task.must_not))
            parts.append(f"\n######## {task.id}\nThe developer says:\n{task.prompt}\n\nMUST:{must}")
            parts.append(f"MUST NOT:{must_not or ' (nothing)'}")
            parts += [
                f"\n--- {task.id} answer {label}\n{each.done.answer.strip()}"
                for label, each in _labelled(rows, order).items()
                if each.done
            ]
        path = folder / "judges" / f"{order}.md"
        path.write_text("\n".join(parts) + "\n", encoding="utf-8")
        names.append(str(path))
    return names


def _by_task(judged: Sequence[Session]) -> dict[str, list[Session]]:
    by_task: dict[str, list[Session]] = {}
    for each in judged:
        by_task.setdefault(each.task.id, []).append(each)
    return by_task


def _packet_id(judged: Sequence[Session]) -> str:
    rows = sorted((each.task.id, each.condition, each.done.answer) for each in judged if each.done)
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:10]


def _labelled(rows: Sequence[Session], order: str) -> dict[str, Session]:
    """Return the answers to one task by label: shuffled by what they say, the second time the other way."""
    seed = _packet_id(rows)
    shuffled = sorted(rows, key=lambda each: each.condition)
    random.Random(seed).shuffle(shuffled)
    if order == ORDERS[1]:
        shuffled.reverse()
    return dict(zip(ascii_uppercase, shuffled, strict=False))


def read_grades(judged: Sequence[Session], paths: Sequence[Path]) -> dict[str, float | int] | None:
    """
    Give each session the mean of the judges' grades; return their agreement, None for one judge.

    Raises UsageError for grades of other answers or of another form.
    """
    by_order = [_grades_in(path, judged) for path in paths]
    for each in judged:
        verdicts = [grades[id(each)] for grades in by_order if id(each) in grades]
        if verdicts:
            each.grade = _mean_grade(verdicts)
    if len(by_order) < 2:
        return None
    both = by_order[0].keys() & by_order[1].keys()
    pairs = [tuple(str(grades[name]["verdict"]) for grades in by_order[:2]) for name in both]
    return agreement(pairs)


def agreement(pairs: Sequence[tuple[str, ...]]) -> dict[str, float | int]:
    """
    Return how often two judges agree, and Cohen's kappa: that beyond chance; 1 where there is one verdict.

    >>> agreement([("right", "right"), ("wrong", "wrong"), ("right", "wrong"), ("wrong", "wrong")])
    {'pairs': 4, 'share': 0.75, 'kappa': 0.5}
    """
    count = max(1, len(pairs))
    share = sum(a == b for a, b in pairs) / count
    first, second = (Counter(pair[at] for pair in pairs) for at in (0, 1))
    chance = sum(first[verdict] * second[verdict] for verdict in VERDICTS) / count**2
    kappa = (share - chance) / (1 - chance) if chance < 1 else 1.0
    return {"pairs": len(pairs), "share": round(share, 4), "kappa": round(kappa, 4)}


def _grades_in(path: Path, judged: Sequence[Session]) -> dict[int, Mapping[str, Any]]:
    document = read_object(path)
    packet, _, order = str(document.get("packet")).rpartition("-")
    if packet != _packet_id(judged) or order not in ORDERS:
        raise UsageError(
            f"{path} grades the packet '{document.get('packet')}', not one of these answers.",
            "Give the answers that the packets were written with.",
        )
    grades, graded = document.get("grades"), {}
    for name, rows in _by_task(judged).items():
        given = grades.get(name) if isinstance(grades, dict) else None
        for label, each in _labelled(rows, order).items():
            value = given.get(label) if isinstance(given, dict) else None
            if value is not None:
                graded[id(each)] = _checked_grade(value, each.task, f"{path}: {name} {label}")
    return graded


def _checked_grade(value: object, task: Task, where: str) -> Mapping[str, Any]:
    if isinstance(value, dict) and value.get("verdict") in VERDICTS:
        must, must_not = value.get("must", []), value.get("must_not", [])
        fits = len(must) == len(task.must) and len(must_not) == len(task.must_not)
        if fits and all(mark in (0, 0.5, 1) for mark in (*must, *must_not)):
            return value
    raise UsageError(
        f"{where}: the grade has another form.", "The packet says which: must, must_not, verdict."
    )


def _mean_grade(verdicts: Sequence[Mapping[str, Any]]) -> Grade:
    def share(values: Sequence[float]) -> float:
        return sum(values) / len(values)

    met = [share(each["must"]) for each in verdicts if each["must"]]
    return Grade(
        share([each["verdict"] == "right" for each in verdicts]),
        share([each["verdict"] == "wrong" for each in verdicts]),
        share([any(each["must_not"]) for each in verdicts]),
        share(met) if met else None,
    )
