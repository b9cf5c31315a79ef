"""What a language model would be asked next: sessions, requests, tokens, dollars, minutes of each stage."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cortex.flows.context import Context, utc_now
from cortex.flows.operations.writer_choice import BudgetState, budget_state, model_price
from cortex.flows.runs import looking
from cortex.flows.writing import answered_requests, requests_about, requests_sent, unread_sessions
from cortex.storage.spending import SETTLED, Spending
from cortex.transforms.writer.fitting import estimated_tokens
from cortex.transforms.writer.prices import Price, usd
from cortex.transforms.writer.request import ModelRequest

# From so many answers on, their mean length says more than a number that was measured elsewhere.
FEWEST_ANSWERS = 10


@dataclass(frozen=True)
class PlannedStage:
    """
    What one stage would ask: `usd` one by one, `batch_usd` in message batches; all are estimates.

    `minutes` is for requests one by one; a batch takes up to a day, most less than an hour.
    """

    stage: str
    sessions: int
    requests: int
    input_tokens: int
    output_tokens: int
    usd: float
    batch_usd: float
    minutes: int


@dataclass(frozen=True)
class WritingPlan:
    """The stages that ask a language model; `days` is how long their budget takes, in batches."""

    writer: str
    model: str
    stages: Sequence[PlannedStage]
    today: BudgetState
    days: int


def read_plan(context: Context) -> WritingPlan:
    """
    Return what the language model in the settings would be asked about sessions that are over; asks nothing.

    With none chosen it says what the one that is named would cost.
    """
    run = looking(context, with_model=False)
    asked = requests_about(run, unread_sessions(run))
    paid = answered_requests(run, asked) | requests_sent(run)
    asked = [each for each in asked if each.request.request_id not in paid]
    stages = [_planned(context, "write", [each.request for each in asked])]
    models = context.settings.models
    today = budget_state(context.settings, utc_now())
    return WritingPlan(models.writer, models.writer_model, stages, today, _days(stages, today))


def plan_transcripts(context: Context, transcripts: int, transcript_bytes: int) -> PlannedStage:
    """Return what would be asked about transcripts that were not read yet, estimated from their size."""
    per_megabyte = context.policy.threshold("writer_tokens_per_megabyte")
    tokens = round(transcript_bytes / 1e6 * per_megabyte)
    return _stage(context, "write", transcripts, [tokens // transcripts] * transcripts if transcripts else [])


def _planned(context: Context, stage: str, requests: Sequence[ModelRequest]) -> PlannedStage:
    tokens = [
        estimated_tokens(request.system + request.content + request.schema)
        for request in {each.request_id: each for each in requests}.values()
    ]
    return _stage(context, stage, len(requests), tokens)


def _stage(context: Context, stage: str, sessions: int, tokens: Sequence[int]) -> PlannedStage:
    price, answer = model_price(context), _answer_tokens(context)
    seconds = context.policy.threshold("writer_request_seconds")
    return PlannedStage(
        stage,
        sessions,
        len(tokens),
        sum(tokens),
        answer * len(tokens),
        _cost(price, tokens, answer, in_batch=False),
        _cost(price, tokens, answer, in_batch=True),
        math.ceil(len(tokens) * seconds / 60),
    )


def _cost(price: Price, tokens: Sequence[int], answer: int, *, in_batch: bool) -> float:
    return usd(sum(price.nano_usd(each, answer, in_batch=in_batch) for each in tokens))


def _answer_tokens(context: Context) -> int:
    """Return how long an answer is: the mean of those in the ledger, else a measured number."""
    lengths = [each.output_tokens for each in Spending(context.home).attempts() if each.state == SETTLED]
    if len(lengths) >= FEWEST_ANSWERS:
        return round(sum(lengths) / len(lengths))
    return int(context.policy.threshold("writer_answer_tokens"))


def _days(stages: Sequence[PlannedStage], today: BudgetState) -> int:
    """Return on how many days the caps allow all of it; 0 for nothing to ask, or where nothing is allowed."""
    dollars, requests = sum(each.batch_usd for each in stages), sum(each.requests for each in stages)
    if not today.daily_usd or not today.daily_requests:
        return 0
    return max(math.ceil(dollars / today.daily_usd), math.ceil(requests / today.daily_requests))
