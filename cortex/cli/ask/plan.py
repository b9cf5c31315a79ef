"""The command `plan`: what a language model would be asked next, and what that would cost."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from cortex.cli.answer import Answer, command
from cortex.cli.terminal import Listing
from cortex.transforms.words.ages import counted

if TYPE_CHECKING:
    from cortex.flows.context.context import Context
    from cortex.flows.operations.care.plan import PlannedStage, WritingPlan

PLAN_HEADINGS = ("sessions", "requests", "tokens in", "tokens out", "$", "$ in batches", "minutes")


@command("plan", "Show pending language model requests and their price.", place=140)
def plan(context: Context) -> Answer:
    """Show the next language model requests: sessions, requests, tokens, dollars, minutes."""
    from cortex.flows.operations.care import plan

    planned = plan.read_plan(context)
    table = Listing(
        f"To ask {planned.model}, about",
        ["stage", *PLAN_HEADINGS],
        [_row(stage) for stage in planned.stages],
        numbers=set(PLAN_HEADINGS),
    )
    return Answer(asdict(planned), [table, _within(planned)], _hints(planned))


def _row(stage: PlannedStage) -> list[str]:
    return [
        stage.stage,
        f"{stage.sessions:,}",
        f"{stage.requests:,}",
        f"{stage.input_tokens:,}",
        f"{stage.output_tokens:,}",
        f"{stage.usd:.4f}",
        f"{stage.batch_usd:.4f}",
        f"{stage.minutes:,}",
    ]


def _within(planned: WritingPlan) -> str:
    today = planned.today
    left = f"${today.left_usd:.4f} of ${today.daily_usd:g} and {today.left_requests} requests are left today"
    return f"{left}; in batches all of it takes {counted(planned.days, 'day')} of the budget."


def _hints(planned: WritingPlan) -> list[str]:
    if planned.writer != "none":
        return []
    return ["No language model is chosen, so nothing is asked. See: cortex config set models.writer"]
