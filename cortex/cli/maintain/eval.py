"""The command `eval`: measures Cortex against labels made by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cortex.cli.answer import (
    ALL_PROJECTS,
    PROJECT_OPTION,
    Answer,
    Listing,
    command,
    listed,
    progress_bar,
    size_of,
)

if TYPE_CHECKING:
    from cortex.flows.context import Context
    from cortex.scores.backtest import Backtest
    from cortex.scores.benefit_scores import BenefitScores
    from cortex.scores.brief_scores import BriefScores, IdealLine
    from cortex.scores.retrieval_scores import RetrievalScores


@listed("Measure Cortex against hand-made labels and tasks.", place=80)
@click.group("eval")
def evaluation() -> None:
    """Measure Cortex against hand-made labels and tasks."""


@command("extract", parent=evaluation)
@click.option(
    "--transcripts",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder with the labelled sessions.",
)
@click.option(
    "--labels", type=click.Path(path_type=Path), required=True, help="Labels, one JSON object per line."
)
@click.option("--list", "lists", is_flag=True, help="Print each false, missed and overturned fact.")
def extract(context: Context, transcripts: Path, labels: Path, lists: bool) -> Answer:
    """Score extraction: recall, noise, overturned facts, calibration, memories per session."""
    from cortex.scores import extraction_scores

    scores = extraction_scores.score_extraction(context, transcripts, labels)
    figures = scores.as_dict()
    bands = [
        [f"{band['from']:.1f}", str(band["facts"]), f"{band['stated']:.2f}", f"{band['found']:.2f}"]
        for band in scores.calibration()
    ]
    listed = scores.listed() if lists else []
    tables: list[Listing | str] = [
        Listing("Extraction against labels", ["measure", "value"], _measures(figures), numbers={"value"}),
        Listing("Recall by type", ["type", "recall"], _shares(scores.recall_by("type")), numbers={"recall"}),
        Listing(
            "Calibration",
            ["confidence from", "facts", "stated", "found"],
            bands,
            numbers={"facts", "stated", "found"},
        ),
        *(f"{row['kind']} {row['session']} {row['lines']} {row['text']}" for row in listed),
        "Worth: grade 2 and 3; harmless: grade 1; noise: no label. Overturned ones should not be shown.",
    ]
    return Answer({**figures, "listed": listed} if lists else figures, tables)


@command("brief", parent=evaluation)
@click.option(
    "--labels",
    type=click.Path(path_type=Path),
    required=True,
    help="Ideal briefs: one JSON object per line with project, as_of and lines of text and weight (3, 2, 1).",
)
@click.option("--today", is_flag=True, help="Score today's briefs, not those of each label's day.")
@click.option(
    "--list", "is_listed", is_flag=True, help="List each missed ideal line and each line that matches none."
)
def brief(context: Context, labels: Path, today: bool, is_listed: bool) -> Answer:
    """Score the briefs: share of ideal lines by weight, lines that match none, tokens."""
    from cortex.scores import brief_scores

    scores = brief_scores.score_briefs(context, labels, is_today=today)
    rows = [
        [score.project, f"{len(score.covered)} of {len(score.covered) + len(score.missed)}",
         f"{len(score.unmatched)} of {score.lines}", str(score.tokens)]
        for score in scores.projects
    ]  # fmt: skip
    total = [[name, f"{value:.3f}" if isinstance(value, float) else str(value)]
             for name, value in scores.totals().items()]  # fmt: skip
    headings = ["project", "ideal lines told", "lines that match none", "tokens"]
    return Answer(
        _as_dict(scores),
        [
            Listing("Briefs against ideal lines", headings, rows, numbers={"tokens"}),
            Listing("All projects", ["measure", "value"], total, numbers={"value"}),
            *(_differences(scores) if is_listed else []),
            f"Compared by {scores.compared_by}; weight 3: without the line the next session would go wrong.",
        ],
    )


@command("retrieval", parent=evaluation)
@click.option(
    "--corpus",
    type=click.Path(path_type=Path),
    required=True,
    help="What is searched: one JSON object a line, {id, text, session, time, role?, project?}; time in ISO "
    "8601, in seconds since 1970, or null.",
)
@click.option(
    "--queries",
    type=click.Path(path_type=Path),
    required=True,
    help="What is asked: one JSON object a line, {id, text, evidence, category?, project?}; evidence lists "
    "ids of the corpus, none where nothing answers.",
)
@click.option("--no-model", is_flag=True, help="Search by words only.")
def retrieval(context: Context, corpus: Path, queries: Path, no_model: bool) -> Answer:
    """Score recall on a data set, next to plain rankings: recall@k, MRR, nDCG with 95 % intervals, times."""
    from cortex.scores import retrieval_scores

    with progress_bar() as progress:
        scores = retrieval_scores.score_retrieval(
            context, corpus, queries, with_model=not no_model, progress=progress
        )
    return Answer(scores.as_dict(), _retrieval_lines(scores))


RETRIEVAL_SHOWN = (
    *("recall_any@1", "recall_any@5", "recall_any@10", "recall_any@20"),
    *("recall_share@5", "recall_all@5", "mrr", "ndcg@10"),
)


def _retrieval_lines(scores: RetrievalScores) -> Iterator[str | Listing]:
    headings = ["ranking", *RETRIEVAL_SHOWN, "p50 ms", "p95 ms"]
    rows = [
        [name, *_with_intervals(each["overall"]), f"{each['p50_ms']:.1f}", f"{each['p95_ms']:.1f}"]
        for name, each in scores.figures.items()
    ]
    yield Listing("Retrieval, all queries", headings, rows, numbers=set(headings[1:]))
    ours = next(iter(scores.figures.values()))
    if len(ours["by_category"]) > 1:
        rows = [
            [category, str(each["queries"]), *_with_intervals(each)]
            for category, each in ours["by_category"].items()
        ]
        headings = ["category", "queries", *RETRIEVAL_SHOWN]
        yield Listing("Cortex by category", headings, rows, numbers=set(headings[1:]))
    yield f"Queries with evidence that got an answer: {_with_interval(ours['answered'])}."
    if falsely := ours["answered_falsely"]:
        yield f"Queries without an answer in the data that got one anyway: {_with_interval(falsely)}."
    yield (
        f"{scores.rows:,} rows, {size_of(scores.bytes)}, read and indexed in {scores.ingest_seconds:.1f} s "
        f"({scores.rows / max(scores.ingest_seconds, 1e-9):,.0f} a second); "
        f"{'model ' + scores.model if scores.model else 'no model: words alone'}."
    )


def _with_intervals(figures: dict[str, dict[str, float]]) -> list[str]:
    return [_with_interval(figures[name]) if name in figures else "" for name in RETRIEVAL_SHOWN]


def _with_interval(share: dict[str, float]) -> str:
    """
    Return a share with its interval, for people.

    >>> _with_interval({"value": 0.8, "low": 0.49, "high": 0.943})
    '.800 (.49-.94)'
    """
    return f"{share['value']:.3f} ({share['low']:.2f}-{share['high']:.2f})".replace("0.", ".")


_FILE = click.Path(path_type=Path)


@command("benefit", parent=evaluation)
@click.option(
    "--tasks",
    type=_FILE,
    multiple=True,
    help="Task file: JSON lines or {repo, tasks}. Default: the built-in tasks.",
)
@click.option(
    "--conditions", help="Conditions, separated by commas. Default: all that need no language model."
)
@click.option("--agent", default="", help="`claude`, by your own login, or a command: prompt on stdin.")
@click.option("--answers", multiple=True, help="Recorded answers: CONDITION=FILE of {task: text}.")
@click.option(
    "--packets", type=_FILE, help="Folder to write what readers get; with --answers, what judges get."
)
@click.option(
    "--grades", type=_FILE, multiple=True, help="A judge's grades of the packets; give both orders."
)
@click.option(
    "--home", "homes", type=_FILE, multiple=True, help="A store to copy, for tasks without history."
)
@click.option(
    "--model-home",
    "model_homes",
    type=_FILE,
    multiple=True,
    help="Like --home, but a store with facts by a language model.",
)
@click.option("--keep", type=_FILE, help="New folder in which the stores of the tasks are left.")
@click.option("--priced-as", default="", help="Model whose list price counts where the agent names no cost.")
@click.option("--allow-commands", is_flag=True, help="Run the commands of foreign tasks and code in answers.")
@click.option("--list", "lists", is_flag=True, help="Print each missed task and its stage.")
def benefit(context: Context, conditions: str | None, lists: bool, **values: Any) -> Answer:
    """
    Score whether memory helps the next session: tasks done right, wrong and misled, by what it is given.

    Without --agent or --answers only coverage is measured: the share of facts that stand in what is given.
    """
    from cortex.scores import benefit_scores

    wanted = tuple(name.strip() for name in conditions.split(",")) if conditions else ()
    with progress_bar() as progress:
        asked = benefit_scores.Asked(conditions=wanted, **values)
        scores = benefit_scores.score_benefit(context, asked, progress)
    return Answer(scores.as_dict(), _benefit_lines(scores, lists))


def _benefit_lines(scores: BenefitScores, lists: bool) -> Iterator[str | Listing]:
    from cortex.scores.benefit_runs import CONDITIONS, STAGES

    figures = {name: scores.figures(name) for name in scores.conditions()}
    headings = ["condition", "items", "coverage", "tokens", "notes", "late"]
    rows = [
        [name, str(each["items"]), _with_interval(each["coverage"]) if each["coverage"] else "",
         f"{each['tokens_given']:,.0f}", str(each["notes"]), str(each["late"])]
        for name, each in figures.items()
    ]  # fmt: skip
    yield Listing("Coverage: facts that stand in what is given", headings, rows, numbers=set(headings[1:]))
    graded = {name: each for name, each in figures.items() if each["graded"]}
    if graded:
        parts = ("right", "wrong", "misled", "facts_met", "controls_right")
        headings = ["condition", "tasks", *parts, "tokens in", "out", "$ agent", "$ writer"]
        rows = [
            [name, str(each["graded"]), *(_with_interval(each[part]) if each[part] else "" for part in parts),
             f"{each['input_tokens']:,.0f}", f"{each['output_tokens']:,.0f}",
             f"{each['agent_usd']:.4f}", f"{each['writer_usd']:.4f}"]
            for name, each in graded.items()
        ]  # fmt: skip
        yield Listing("Benefit, per task where memory matters", headings, rows, numbers=set(headings[1:]))
        rows = [
            [
                row["condition"],
                row["measure"],
                f"{row['value']:+.3f}",
                f"{row['low']:+.2f} to {row['high']:+.2f}",
            ]
            for row in scores.differences()
        ]
        headings = ["condition", "measure", "more than none", "95 %"]
        yield Listing(
            "Against none, by paired bootstrap over tasks", headings, rows, numbers=set(headings[2:])
        )
        worse = [name for name, is_worse in scores.harmful().items() if is_worse]
        if worse:
            yield f"Worse than nothing: {', '.join(worse)}."
    stages = [*STAGES, "not given"]
    lost = [[name, *(str(each["lost"].get(stage, "")) for stage in stages)] for name, each in figures.items()]
    yield Listing(
        "Missed tasks, by the stage that lost them", ["condition", *stages], lost, numbers={*stages}
    )
    if lists:
        for session in scores.sessions:
            if session.lost:
                why = session.grade.why if session.grade else ""
                yield f"{session.condition} {session.task.id} {session.lost} {why}".rstrip()
    yield from (f"{name} ({CONDITIONS[name]}): left out, {why}." for name, why in scores.left_out.items())
    if scores.agreement:
        same, kappa = scores.agreement["share"], scores.agreement["kappa"]
        pairs = scores.agreement["pairs"]
        yield f"The judges agree on {same:.0%} of {pairs:.0f} answers (Cohen's kappa {kappa:.2f})."
    yield from (f"Written: {name}" for name in scores.packets)
    if not graded:
        yield "This is coverage, not benefit: whether a session acts right is for --agent or --answers."


def _differences(scores: BriefScores) -> Iterator[str]:
    for score in scores.projects:
        yield f"\n{score.project}"
        for line in score.missed:
            yield f"  missed, weight {line.weight}: {line.text}"
        for fact in score.unmatched:
            yield f"  matches none: {fact}"


def _as_dict(scores: BriefScores) -> dict[str, object]:
    def weighed(line: IdealLine) -> dict[str, object]:
        return {"text": line.text, "weight": line.weight}

    projects = [
        {"project": score.project, "told": [weighed(line) for line in score.covered],
         "missed": [weighed(line) for line in score.missed], "matches_none": list(score.unmatched),
         "lines": score.lines, "tokens": score.tokens}
        for score in scores.projects
    ]  # fmt: skip
    return {"compared_by": scores.compared_by, "totals": scores.totals(), "projects": projects}


def _measures(figures: dict[str, object]) -> list[list[str]]:
    return [
        [name, f"{value:.3f}" if isinstance(value, float) else str(value)]
        for name, value in figures.items()
        if isinstance(value, int | float)
    ]


def _shares(by_name: dict[str, float]) -> list[list[str]]:
    return [[name, f"{value:.2f}"] for name, value in sorted(by_name.items())]


@command("backtest", parent=evaluation)
@PROJECT_OPTION
@ALL_PROJECTS
@click.option("--list", "is_listed", is_flag=True, help="List each correction and repeat, and what held it.")
def backtest(context: Context, project: str | None, all_projects: bool, is_listed: bool) -> Answer:
    """
    Replay your history: how much of what each session had to be told again was in its brief or notes.

    Each session is given what the sessions before it make, without a language model; nothing is changed.
    """
    from cortex.scores import backtest as scores

    with progress_bar() as progress:
        result = scores.backtest(context, project, all_projects=all_projects, progress=progress)
    data = result.as_dict()
    return Answer(
        {**data, "listed": _chances(result)} if is_listed else data, _backtest_lines(result, is_listed)
    )


_SHARES = {
    "held": "in the brief or at a prompt",
    "in_brief": "  in the brief",
    "at_prompt": "  at a prompt",
    "said_before": "said in an earlier session",
    "held_of_said": "of what was said, in brief or prompt",
}


def _backtest_lines(result: Backtest, is_listed: bool) -> Iterator[str | Listing]:
    from cortex.scores.backtest import KINDS, MIN_CHANCES

    count, kinds = len(result.chances), [chance.kind for chance in result.chances]
    rows = [
        [label, str(share.count), _with_interval(share.as_dict())]
        for name, label in _SHARES.items()
        for share in [result.shares()[name]]
    ]
    if not count:
        rows = [[label, "0", ""] for label in _SHARES.values()]
    yield Listing("Told again, and held", ["what", "chances", "share"], rows, numbers={"chances", "share"})
    listed_kinds = ", ".join(f"{kinds.count(kind)} {kind}s" for kind in KINDS)
    yield f"{count} chances ({listed_kinds}). Compared by words: a line with six in ten of them holds it."
    if not result.decides:
        yield f"Fewer than {MIN_CHANCES} chances: this decides nothing."
    order = result.order_by_use()
    yield (
        f"Memories shown: {order['shown']:.0f}, used: {order['used']:.0f}. Shown before: "
        f"{order['with_history']:.0f}; five times or more: {order['five_times']:.0f}; twenty or more: "
        f"{order['twenty_times']:.0f}. Of {order['pairs']:.0f} pairs of a used and an unused memory, rank "
        f"puts the used one first in {order['by_rank']:.0%}, earlier use in {order['by_use']:.0%}."
    )
    for row in _chances(result) if is_listed else ():
        yield f"{row['held']:9} {row['kind']:11} {str(row['session'])[:8]}  {row['text']}"


def _chances(result: Backtest) -> list[dict[str, object]]:
    return [
        {
            "session": chance.session_id,
            "kind": chance.kind,
            "held": "brief" if chance.in_brief else "prompt" if chance.at_prompt else "no",
            "is_said_before": chance.is_said_before,
            "text": " ".join(chance.text.split())[:160],
        }
        for chance in result.chances
    ]
