"""What a language model has cost, and what it would be asked next, at which price."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa

from cortex.flows.asking_model.judging import pairs_due
from cortex.flows.asking_model.writing import (
    answered_requests,
    read_otherwise,
    requests_about,
    requests_sent,
    unread_sessions,
)
from cortex.flows.context import Context, utc_now
from cortex.flows.engines.runs import read_only_run
from cortex.flows.reading.transcript_reader import read_turns
from cortex.flows.run.run import Run
from cortex.flows.transcript_batches import agent_of
from cortex.storage.filesystem.files import modified_at
from cortex.storage.model_calls import LOST, OPEN, SETTLED, Attempt, Spending
from cortex.storage.settings.reference import read_prompt
from cortex.storage.settings.settings import Settings
from cortex.storage.staging.transcripts import START, open_transcript
from cortex.transforms.errors import contained
from cortex.transforms.schemas import EVENTS, LINKS_PURPOSE, REPLIES, TURNS
from cortex.transforms.transcripts.transcript import Source
from cortex.transforms.writer.pairs import LINKS_PROMPT
from cortex.transforms.writer.rendering import estimated_tokens
from cortex.transforms.writer.request import NANO, SESSION_PROMPT, ModelRequest, Price, price_of, usd
from cortex.transforms.writer.session import SessionRequest, session_requests
from cortex.transforms.writer.written import LAYER_PREFIX, SESSION_PURPOSE

# -- What a language model has cost: by day, purpose, model and project, and for each memory that was kept.

UNKNOWN_PROJECT = "not kept"  # an answer that never arrived, or whose session was forgotten


@dataclass(frozen=True)
class BudgetState:
    """What the UTC day has cost so far, including reservations, and its caps."""

    spent_usd: float
    daily_usd: float
    requests: int
    daily_requests: int

    @property
    def left_usd(self) -> float:
        """Dollars that can still be spent today."""
        return max(0.0, self.daily_usd - self.spent_usd)

    @property
    def left_requests(self) -> int:
        """Requests that can still be sent today."""
        return max(0, self.daily_requests - self.requests)


@dataclass(frozen=True)
class CostRow:
    """What one group of attempts cost; tokens are those of the answers that came."""

    name: str
    requests: int
    input_tokens: int
    output_tokens: int
    usd: float


@dataclass(frozen=True)
class CostReport:
    """
    The ledger in sums: each of the four groupings adds up to `total`.

    `reserved_usd` is the part of the total for which no answer is known: under way, or lost. `facts` are what
    the language model wrote and the checks let pass; `usd_per_fact` is None if there are none.
    """

    total: CostRow
    reserved_usd: float
    facts: int
    usd_per_fact: float | None
    today: BudgetState
    by_day: Sequence[CostRow]
    by_purpose: Sequence[CostRow]
    by_model: Sequence[CostRow]
    by_project: Sequence[CostRow]


def read_cost(context: Context) -> CostReport:
    """Return what is in the ledger; zeros if nothing was ever asked."""
    attempts = Spending(context.home).attempts()
    projects = _projects(context) if attempts else {}
    facts = _kept_facts(context) if attempts else 0
    total = _row("total", attempts)
    return CostReport(
        total=total,
        facts=facts,
        usd_per_fact=total.usd / facts if facts else None,
        reserved_usd=usd(sum(each.spent_nano for each in attempts if each.state in (OPEN, LOST))),
        today=budget_state(context.settings, utc_now()),
        by_day=_grouped(attempts, lambda each: each.day),
        by_purpose=_grouped(attempts, lambda each: each.purpose),
        by_model=_grouped(attempts, lambda each: f"{each.model} ({each.provider})"),
        by_project=_grouped(attempts, lambda each: projects.get(each.request_id, UNKNOWN_PROJECT)),
    )


def budget_state(settings: Settings, now: datetime) -> BudgetState:
    """Return what is spent and left on the UTC day of `now`; reads the ledger and writes nothing."""
    total, budget = Spending(settings.home).total(now), settings.budget
    return BudgetState(total.spent_nano / NANO, budget.daily_usd, total.requests, budget.daily_requests)


def model_price(context: Context) -> Price:
    """Return the price of the chosen model today."""
    rows: list[Mapping[str, object]] = list(context.policy.rows["model_prices"].values())
    return price_of(rows, context.settings.models.writer_model, context.now.date())


def _projects(context: Context) -> Mapping[str, str]:
    """Return request id → name of the project, of the replies that the lake holds."""
    store = context.open_store()
    replies = store.lake.read(REPLIES, columns=["request_id", "project_id"])
    return {
        row["request_id"]: store.projects.label_of(store.projects.canonical(row["project_id"]))
        for row in replies.to_pylist()
    }


def _kept_facts(context: Context) -> int:
    """Return how many facts of a language model are good enough to be shown."""
    least_shown = context.policy.threshold("shown_min_confidence")
    events = context.open_store().lake.read(EVENTS, columns=["event_id", "layer", "confidence"])
    kept = {
        row["event_id"]
        for row in events.to_pylist()
        if row["layer"].startswith(LAYER_PREFIX) and (row["confidence"] or 0.0) >= least_shown
    }
    return len(kept)


def _grouped(attempts: Sequence[Attempt], name_of: Callable[[Attempt], str]) -> list[CostRow]:
    groups: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        groups.setdefault(name_of(attempt), []).append(attempt)
    return [_row(name, groups[name]) for name in sorted(groups)]


def _row(name: str, attempts: Sequence[Attempt]) -> CostRow:
    return CostRow(
        name,
        sum(each.requests for each in attempts),
        sum(each.input_tokens for each in attempts),
        sum(each.output_tokens for each in attempts),
        usd(sum(each.spent_nano for each in attempts)),
    )


# -- What a language model would be asked next: sessions, requests, tokens, dollars, minutes of each stage.

# From this many answers on, their mean length says more than a number measured elsewhere.
MIN_ANSWERS = 10
# Of 73 real transcripts 4 MB a second are read and made into requests; each has 4,000 to 27,000 tokens.
MAX_MEASURED = 40
MAX_MEASURED_LENGTH = 8_000_000
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
    run = read_only_run(context, with_model=False)
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

    Up to MAX_MEASURED of them are read as a run would and their requests made; of more, so many at even
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
    """Return at most MAX_MEASURED transcripts, from the oldest to the newest."""
    aged = sorted(transcripts, key=lambda path: (modified_at(path), str(path)))
    most = min(len(aged), MAX_MEASURED)
    return [aged[at * len(aged) // most] for at in range(most)]


def _tokens_of_transcript(context: Context, path: Path) -> list[int]:
    """Return the tokens of each request about a transcript; none if there is nothing to ask or to read."""
    faults: list[str] = []
    with suppress(OSError), contained(faults.append), open_transcript(path) as transcript:
        if transcript.size > MAX_MEASURED_LENGTH or agent_of(path.name):
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
    if len(lengths) >= MIN_ANSWERS:
        return round(sum(lengths) / len(lengths))
    return int(context.policy.threshold(expected))


def _days(stages: Sequence[PlannedStage], today: BudgetState) -> int:
    """Return on how many days the caps allow all of it; 0 for nothing to ask, or where nothing is allowed."""
    dollars, requests = sum(each.batch_usd for each in stages), sum(each.requests for each in stages)
    if not today.daily_usd or not today.daily_requests:
        return 0
    return max(math.ceil(dollars / today.daily_usd), math.ceil(requests / today.daily_requests))
