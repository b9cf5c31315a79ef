"""The command `report`: what a month of work came to, and what changed with memory."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import ALL_PROJECTS, PROJECT_OPTION, Answer, Listing, command
from cortex.storage.filesystem.place import install_extra
from cortex.transforms.errors import UsageError
from cortex.transforms.words.ages import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cortex.flows.context import Context
    from cortex.flows.operations.maintain.report import EffectReport
    from cortex.transforms.views.effect import EffectComparison, EffectDifference


# -- A month, as Markdown or as a page with plots.

NO_PLOTS = f"Without plots: they need Altair, 96 MB. {install_extra('report')}."


@command("report", "Report on a month: decisions, corrections, open points.", place=170)
@PROJECT_OPTION
@ALL_PROJECTS
@click.option("--month", metavar="YYYY-MM", help="Month to report on. Default: the last one with a session.")
@click.option(
    "--effect", "is_effect", is_flag=True, help="Compare sessions before and after the first brief."
)
@click.option("--html", "as_page", is_flag=True, help="Print an HTML page with plots instead of Markdown.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the report to FILE instead of printing it.",
)
def report(
    context: Context,
    project: str | None,
    all_projects: bool,
    month: str | None,
    is_effect: bool,
    as_page: bool,
    output: Path | None,
) -> Answer:
    """Report on a month: decisions, corrections, repeated instructions and open points.

    With --effect: what changed with memory. Compares sessions before a project's first brief with those after
    it, and after it those that were shown memories with those that were not, with 99 % intervals.
    """
    from cortex.flows.operations.maintain import report
    from cortex.flows.operations.maintain.report import report_html, report_markdown

    if is_effect:
        if month or as_page or output:
            raise UsageError(
                "--effect is of all months and printed: it takes no --month, --html or --output.",
                "For a program: cortex report --effect --json",
            )
        return _effect_answer(report.read_effect(context, project, all_projects=all_projects))
    values = report.month_report(context, month, project, all_projects=all_projects)
    plots = report.plots_of(values) if as_page else []
    text = report_html(values, plots or ()) if as_page else report_markdown(values)
    hints = [NO_PLOTS] if plots is None else []
    if output is not None:
        report.write_report(output, text)
        return Answer({**asdict(values), "file": str(output)}, [f"Written: {output}"], hints)
    return Answer(asdict(values), [text.removesuffix("\n")], hints)


# -- With --effect: what changed with memory.

OBSERVED = (
    "This is observed, not tested: the two sides also differ in when the sessions were and what they were "
    "about, so memory need not be the cause of a difference."
)
# Of each comparison the names of its sides, and the heads of their columns.
SIDES = {
    "first_brief": ("Before the first brief", "after it", "before", "after"),
    "memory": ("After it, without memory", "with memory", "without", "with"),
}
# What each measure is called, and what it is multiplied by for people.
EFFECTS = {
    "minutes_to_edit": ("minutes to first edit", 1),
    "turns_to_edit": ("turns to first edit", 1),
    "read_again": ("% of files read again", 100),
    "asked_again": ("questions asked again", 100),
    "corrections": ("corrections", 100),
    "re_proposals": ("rejected ways taken", 100),
}
UNITS = "Questions, corrections and rejected ways are by 100 prompts; minutes are active ones."


def _effect_answer(report: EffectReport) -> Answer:
    from cortex.transforms.views.effect import CONFIDENCE, TOO_FEW

    comparisons = {
        name: [_comparison_dict(each) for each in of_name] for name, of_name in report.comparisons.items()
    }
    data = {**asdict(report), "note": OBSERVED, "confidence": CONFIDENCE, "comparisons": comparisons}
    lines: list[str | Listing] = [OBSERVED]
    for name, of_name in report.comparisons.items():
        lines += ["", *_comparison_lines(of_name[-1], name, "")]
        by_project = of_name[:-1] if len(of_name) > 2 else ()  # one project is the same as all
        for each in by_project:
            lines += _comparison_lines(each, name, report.labels[each.project_id]) if each.is_enough else []
        if few := sum(not each.is_enough for each in by_project):
            lines.append(f"By itself {TOO_FEW}: {counted(few, 'project')}.")
    if report.window_share is not None:
        mean, low, high = (f"{100 * share:.1f}" for share in report.window_share)
        taken = f"What was shown took {mean} % of a context window of 200k tokens ({low} to {high} %)"
        lines += ["", f"{taken}, in {counted(report.window_sessions, 'session')} that noted it."]
    elif report.window_sessions:
        lines += ["", f"Share of the context window taken: {TOO_FEW}."]
    return Answer(data, lines, _effect_hints(report))


def _comparison_dict(comparison: EffectComparison) -> dict[str, object]:
    differences = [{**asdict(each), "verdict": each.verdict} for each in comparison.differences]
    return {**asdict(comparison), "differences": differences}


def _comparison_lines(comparison: EffectComparison, name: str, label: str) -> Iterator[str | Listing]:
    from cortex.transforms.views.effect import MIN_SESSIONS, TOO_FEW

    first, second, *heads = SIDES[name]
    counts = [counted(count, "session") for count in (comparison.base_sessions, comparison.sessions)]
    if not label:
        of_side = (comparison.base_projects, comparison.projects)
        counts = [
            f"{count} in {counted(projects, 'project')}"
            for count, projects in zip(counts, of_side, strict=True)
        ]
    sides = f"{f'{label}: ' if label else ''}{first}: {counts[0]}; {second}: {counts[1]}"
    if not comparison.is_enough:
        needed = f"it takes {MIN_SESSIONS} on each side, in the same projects"
        yield f"{sides}. {TOO_FEW.capitalize()}: {needed}."
        return
    rows = [_difference_row(each) for each in comparison.differences]
    yield Listing(
        sides, ["measure", *heads, "difference, 99 %", "it is"], rows, numbers=set(heads), wraps="measure"
    )


def _difference_row(difference: EffectDifference) -> list[str]:
    words, times = EFFECTS[difference.measure]
    if difference.low is None:
        return [words, "", "", "", difference.verdict]
    figures = (difference.base_mean, difference.mean, difference.difference, difference.low, difference.high)
    # A zero of either sign is one zero.
    base, mean, change, low, high = (f"{round(times * (figure or 0.0), 1) + 0.0:.1f}" for figure in figures)
    return [words, base, mean, f"{change} ({low} to {high})", difference.verdict]


def _effect_hints(report: EffectReport) -> list[str]:
    overall = report.comparisons["first_brief"][-1]
    hints = []
    if not any(each.sessions for each in report.comparisons["first_brief"]):
        hints.append(
            "No session that was read has been shown a brief yet: there are no two sides to compare."
        )
    if overall.is_enough:
        hints.append(UNITS)
        hints.append(
            "Lower is what is wished for. Of measures that nothing changed, up to 4 in 100 differ anyway."
        )
    if report.across:
        hints.append(
            f"Under way when the first brief came, on neither side: {counted(report.across, 'session')}."
        )
    hints.append("A session with CORTEX_OFF=1 is not stored and stands on no side.")
    return hints
