"""What a language model would be asked next: sessions, requests, tokens, dollars, minutes of each stage."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from cortex.flows.asking_model.judging import pairs_due
from cortex.flows.asking_model.reread_sessions import read_otherwise
from cortex.flows.asking_model.writing import (
    answered_requests,
    requests_about,
    requests_sent,
    unread_sessions,
)
from cortex.flows.context.context import Context, utc_now
from cortex.flows.engines.runs import looking
from cortex.flows.extracting.transcript_batches import agent_of
from cortex.flows.operations.care.cost import BudgetState, budget_state, model_price
from cortex.flows.reading.transcript_reader import read_turns
from cortex.flows.run.run import Run
from cortex.storage.ground.files import modified_at
from cortex.storage.model_calls.spending import SETTLED, Spending
from cortex.storage.settings.reference import read_prompt
from cortex.storage.staging.transcripts import START, open_transcript
from cortex.transforms.faults import contained
from cortex.transforms.schemas import LINKS_PURPOSE, TURNS
from cortex.transforms.transcripts.transcript import Source
from cortex.transforms.writer.fitting import estimated_tokens
from cortex.transforms.writer.pairs import LINKS_PROMPT
from cortex.transforms.writer.prices import Price, usd
from cortex.transforms.writer.prompt import SESSION_PROMPT
from cortex.transforms.writer.request import ModelRequest
from cortex.transforms.writer.session import SessionRequest, session_requests
from cortex.transforms.writer.written import SESSION_PURPOSE

# From so many answers on, their mean length says more than a number that was measured elsewhere.
FEWEST_ANSWERS = 10
# Of 73 real transcripts 4 MB a second are read and made into requests; each has 4,000 to 27,000 tokens.
MOST_MEASURED = 40
LONGEST_MEASURED = 8_000_000
# Of each stage the purpose of its requests, and the threshold that says how long an answer is until then.
EXPECTED_ANSWERS = {
    "write": (SESSION_PURPOSE, "writer_answer_tokens"),
    "judge": (LINKS_PURPOSE, "links_answer_tokens"),
}


@dataclass(frozen=True)
class PlannedStage:
    """
    What one stage would ask: `usd` one by one, `batch_usd` in message batches; all are estimates.

    `write` reads sessions, `judge` compares pairs of memories, also those that the sessions will bring; it
    sends no batches. `minutes` is for requests one by one; a batch takes up to a day, most less than an hour.
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
    write = _reading_stage(context, run, requests_about(run, unread_sessions(run)))
    pairs = _tokens_of([each.request for each in pairs_due(run).requests])
    stages = [
        write,
        _stage(context, "judge", 0, [*pairs, *_tokens_of_pairs_to_come(context, write.sessions)]),
    ]
    models = context.settings.models
    today = budget_state(context.settings, utc_now())
    return WritingPlan(models.writer, models.writer_model, stages, today, _days(stages, today))


def plan_again(context: Context, run: Run, prompts: Mapping[str, str]) -> PlannedStage:
    """Return what it takes to read with `prompts`, by project, the sessions that other versions have read."""
    return _reading_stage(context, run, requests_about(run, read_otherwise(run, prompts), prompts))


def _reading_stage(context: Context, run: Run, asked: Sequence[SessionRequest]) -> PlannedStage:
    paid = answered_requests(run, asked) | requests_sent(run)
    asked = [each for each in asked if each.request.request_id not in paid]
    names = {(each.project_id, each.session_id) for each in asked}
    # A session that is read in pieces is read once more when they are answered.
    in_pieces = {(each.project_id, each.session_id) for each in asked if each.is_piece}
    last = int(context.policy.threshold("writer_session_tokens_max"))
    sessions = [*_tokens_of([each.request for each in asked]), *[last] * len(in_pieces)]
    return _stage(context, "write", len(names), sessions)


def plan_transcripts(context: Context, transcripts: Sequence[Path]) -> list[PlannedStage]:
    """
    Return the stages that would ask about transcripts not read yet.

    Up to MOST_MEASURED of them are read as a run would and their requests made; of more, so many at even
    distances in time, and the others are taken to be like them.
    """
    measured = _spread(transcripts)
    tokens = [each for path in measured for each in _tokens_of_transcript(context, path)]
    share = len(transcripts) / len(measured) if measured else 0.0
    requests = round(len(tokens) * share)
    tokens = [tokens[at * len(tokens) // requests] for at in range(requests)] if tokens else []
    return [
        _stage(context, "write", requests, tokens),
        _stage(context, "judge", 0, _tokens_of_pairs_to_come(context, requests)),
    ]


def _spread(transcripts: Sequence[Path]) -> list[Path]:
    """Return at most MOST_MEASURED transcripts, from the oldest to the newest."""
    aged = sorted(transcripts, key=lambda path: (modified_at(path), str(path)))
    most = min(len(aged), MOST_MEASURED)
    return [aged[at * len(aged) // most] for at in range(most)]


def _tokens_of_transcript(context: Context, path: Path) -> list[int]:
    """Return the tokens of each request about a transcript; none where there is nothing to ask or to read."""
    faults: list[str] = []
    with suppress(OSError), contained(faults.append), open_transcript(path) as transcript:
        if transcript.size > LONGEST_MEASURED or agent_of(path.name):
            return []
        source = Source(path.name, "", path.stem, head=transcript.head)
        turns = pa.concat_tables([TURNS.empty(), *read_turns(transcript, source, START).turns])
        prompt, model = read_prompt(SESSION_PROMPT), context.settings.models.writer_model
        asked = session_requests(turns, [], context.policy, model, prompt)
        return _tokens_of([each.request for each in asked])
    return []


def _tokens_of(requests: Sequence[ModelRequest]) -> list[int]:
    return [
        estimated_tokens(request.system + request.content + request.schema)
        for request in {each.request_id: each for each in requests}.values()
    ]


def _tokens_of_pairs_to_come(context: Context, sessions: int) -> list[int]:
    """Return the tokens of the requests about the pairs that sessions bring once they are read."""
    policy = context.policy
    pairs = round(sessions * policy.threshold("links_pairs_per_session"))
    most = int(policy.threshold("links_pairs_per_request"))
    each = int(policy.threshold("links_tokens_per_pair"))
    prompt = read_prompt(LINKS_PROMPT)
    instruction = estimated_tokens(prompt.system + prompt.schema)
    return [instruction + each * min(most, pairs - begin) for begin in range(0, pairs, most)]


def _stage(context: Context, stage: str, sessions: int, tokens: Sequence[int]) -> PlannedStage:
    price, answer = model_price(context), _answer_tokens(context, stage)
    seconds = context.policy.threshold("writer_request_seconds")
    return PlannedStage(
        stage,
        sessions,
        len(tokens),
        sum(tokens),
        answer * len(tokens),
        _cost(price, tokens, answer, in_batch=False),
        _cost(price, tokens, answer, in_batch=stage == "write"),
        math.ceil(len(tokens) * seconds / 60),
    )


def _cost(price: Price, tokens: Sequence[int], answer: int, *, in_batch: bool) -> float:
    return usd(sum(price.nano_usd(each, answer, in_batch=in_batch) for each in tokens))


def _answer_tokens(context: Context, stage: str) -> int:
    """Return how long an answer is: the mean of those in the ledger, else a measured number."""
    purpose, expected = EXPECTED_ANSWERS[stage]
    settled = [each for each in Spending(context.home).attempts() if each.state == SETTLED]
    lengths = [each.output_tokens for each in settled if each.purpose == purpose]
    if len(lengths) >= FEWEST_ANSWERS:
        return round(sum(lengths) / len(lengths))
    return int(context.policy.threshold(expected))


def _days(stages: Sequence[PlannedStage], today: BudgetState) -> int:
    """Return on how many days the caps allow all of it; 0 for nothing to ask, or where nothing is allowed."""
    dollars, requests = sum(each.batch_usd for each in stages), sum(each.requests for each in stages)
    if not today.daily_usd or not today.daily_requests:
        return 0
    return max(math.ceil(dollars / today.daily_usd), math.ceil(requests / today.daily_requests))
