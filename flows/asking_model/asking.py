"""
Asks a language model under the budget, directly or in batches: reserved before, kept, settled.

The intent is the reservation of each request, in the ledger before anything is sent. A run that is killed
before it has noted the id of its batch leaves an intent without one: a later run looks for the batch among
those of the account, by the ids of its requests, so that nothing is paid for twice.
"""

import json
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from cortex.flows.context import utc_now
from cortex.flows.run.run import Run
from cortex.flows.writers import Writer, writer_for
from cortex.flows.writers.anthropic_api import (
    AnthropicApi,
    BatchGone,
    batch_results,
    batch_state,
    recent_batches,
    submit,
)
from cortex.storage.lake.lake import Lake
from cortex.storage.model_calls import (
    Arrival,
    Arrivals,
    BatchedAttempt,
    DailyLimits,
    Reserved,
    Spending,
    SpendingClaim,
    Withheld,
)
from cortex.storage.model_failure import WRITER, ModelFailure, clear_failure, note_failure, read_failure
from cortex.transforms.errors import (
    AnswerLost,
    CortexError,
    ModelBusy,
    ModelClosed,
    ModelLimited,
    ModelRefused,
    ModelUnavailable,
)
from cortex.transforms.redaction.redact import redact
from cortex.transforms.schemas import REPLIES, Row, values
from cortex.transforms.words.ages import counted
from cortex.transforms.writer.request import NANO, ModelRequest, Price, Reply, price_of, usd

# -- What direct requests and batches to a language model share: prices, reservations, answers, the outcome.

# In text a token seldom stands for more bytes than this.
MAX_BYTES_A_TOKEN = 8

Keep = Callable[[Reply], None]


@dataclass
class AskingResult:
    """
    What became of the requests; each counts once.

    `answered` have a usable answer; `refused` were answered or rejected in a way that the same request would
    meet again (a refusal, cut off, not JSON, not accepted); `failed` may be asked again by a later run;
    `waiting` did not fit the budget or came after everything had to stop; `in_batch` were sent as a batch,
    whose answers a later run takes in; `elsewhere` are being asked by another process. `lost` counts attempts
    of killed runs whose requests were asked again: each counts in full. `stopped` says why no more was asked,
    `limited_until` when the limit is reset that ended it.
    """

    answered: int = 0
    refused: int = 0
    failed: int = 0
    waiting: int = 0
    in_batch: int = 0
    elsewhere: int = 0
    lost: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    nano_usd: int = 0
    stopped: str = ""
    limited_until: datetime | None = None
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def usd(self) -> float:
        """Dollars that the answers cost."""
        return usd(self.nano_usd)

    def count_answer(self, reply: Reply, nano: int) -> None:
        """Count an answer that is kept, and its price in billionths of a dollar."""
        self.input_tokens += reply.input_tokens
        self.output_tokens += reply.output_tokens
        self.nano_usd += nano
        if is_usable(reply):
            self.answered += 1
        else:
            self.refused += 1
            reason = reply.stop_reason or "no reason given"
            self.reasons[f"the answer is of no use ({reason})."] += 1

    def notes(self) -> list[str]:
        """Return what a person should know of it, for the run's report."""
        notes = []
        if self.stopped:
            notes.append(f"The language model was not asked any more: {self.stopped}")
        if self.waiting:
            notes.append(f"{counted(self.waiting, 'request')} to the language model wait for a later run.")
        if self.in_batch:
            notes.append(
                f"{counted(self.in_batch, 'request')} to the language model are in a batch, at half the "
                "price; a later run takes the answers in (most are there within an hour)."
            )
        if self.lost:
            notes.append(
                f"{counted(self.lost, 'request')} to the language model {'was' if self.lost == 1 else 'were'}"
                " under way when a run was killed: counted in full, and asked again."
            )
        for reason, count in self.reasons.items():
            notes.append(f"Language model: {counted(count, 'time')}: {reason}")
        return notes


@dataclass
class AskingRound:
    """One round of requests of a run: who answers, where replies are kept, what has become of them."""

    run: Run
    writer: Writer
    keep: Keep
    result: AskingResult
    clock: Callable[[], datetime]
    sleep: Callable[[float], None]

    def __post_init__(self) -> None:
        self.spending = Spending(self.run.store.home)
        budget = self.run.settings.budget
        self.limits = DailyLimits(round(budget.daily_usd * NANO), budget.daily_requests)

    @property
    def requests_left(self) -> int:
        """How many requests this run may still send."""
        return max(0, self.run.settings.budget.run_requests - self.run.model_requests)

    def price(self, model: str) -> Price:
        """Return what the model costs today."""
        rows = self.run.policy.rows["model_prices"].values()
        return price_of(rows, model, self.clock().date())

    def claim(self, request: ModelRequest, input_tokens: int, *, in_batch: bool = False) -> SpendingClaim:
        """Return what is to be reserved for a request of at most `input_tokens`."""
        price = self.price(request.model)
        most_nano = price.nano_usd(input_tokens, request.max_output_tokens, in_batch=in_batch)
        most_nano *= self.writer.requests_reserved
        writer = self.writer
        return SpendingClaim(
            request.request_id, request.purpose, writer.name, request.model, most_nano, writer.most_requests
        )

    def take(self, reply: Reply, attempt_id: int, request: ModelRequest, *, in_batch: bool = False) -> None:
        """
        Keep an answer, then settle what it cost: never less than its words and those of the request must.

        Before anything else it is written down, so that a run that ends on the way leaves it to the next one;
        what is in a batch the service keeps.
        """
        reply = replace(
            reply,
            input_tokens=max(reply.input_tokens, fewest_tokens(request)),
            output_tokens=max(
                reply.output_tokens, len(reply.text.encode("utf-8", "replace")) // MAX_BYTES_A_TOKEN
            ),
        )
        nano = self.price(request.model).nano_usd(reply.input_tokens, reply.output_tokens, in_batch=in_batch)
        reply = replace(reply, usd=usd(nano), text=redact(reply.text)[0])
        if in_batch:
            self.keep(reply)
            self._settle(reply, attempt_id, nano)
        else:
            self._take_direct(reply, attempt_id, nano)
        self.result.count_answer(reply, nano)

    def _take_direct(self, reply: Reply, attempt_id: int, nano: int) -> None:
        arrivals = Arrivals(self.run.store.lake)
        try:
            arrivals.write(Arrival(attempt_id, nano, self.clock(), reply))
            self.keep(reply)
        finally:
            self._settle(reply, attempt_id, nano)
        arrivals.remove(reply.request_id)

    def _settle(self, reply: Reply, attempt_id: int, nano: int) -> None:
        tokens = (reply.input_tokens, reply.output_tokens)
        self.spending.settle(attempt_id, nano, *tokens, self.clock(), reply.requests)

    def wait(self, reason: str) -> None:
        """Count a request that waits for a later run."""
        self.result.waiting += 1
        self.result.reasons[reason] += 1


def is_usable(reply: Reply) -> bool:
    """Return whether the answer came to its end and is a JSON object."""
    if reply.stop_reason not in ("end_turn", "stop_sequence"):
        return False
    try:
        return isinstance(json.loads(reply.text), dict)
    except (ValueError, RecursionError):
        return False


def request_bytes(request: ModelRequest) -> int:
    """Return how many bytes of text a request sends."""
    parts = (request.system, request.content, request.schema)
    return sum(len(part.encode("utf-8", "surrogatepass")) for part in parts)


def fewest_tokens(request: ModelRequest) -> int:
    """Return a number of tokens that the request hardly has less than."""
    return request_bytes(request) // MAX_BYTES_A_TOKEN


def most_tokens(request: ModelRequest, writer: Writer) -> int:
    """Return a number of tokens that the request cannot have more than: a token has at least one byte."""
    return request_bytes(request) + writer.overhead_tokens


def with_margin(tokens: int) -> int:
    """Return a provider's count with room for what it calls an estimate: two in a hundred."""
    return tokens + tokens // 50 + 1


# -- Answers that the lake holds, and those that had arrived, and were paid for, when a run was killed.

# An answer that no run has asked for again: a session that has gone on since asks again, but one that did not
# fit a run's requests asks the same later.
ARRIVAL_KEPT = timedelta(days=7)


def take_arrivals(
    run: Run, pending: dict[str, ModelRequest], keep: Keep, result: AskingResult, now: datetime
) -> None:
    """
    Keep the answers that wait, settle them, and take their requests out of `pending`.

    What is not asked for now is settled, and stays until it is kept or has waited for a week.
    """
    arrivals, spending = Arrivals(run.store.lake), Spending(run.store.home)
    left: list[Arrival] = []
    for arrival in arrivals.read():
        reply = arrival.reply
        is_asked = pending.pop(reply.request_id, None) is not None
        if is_asked:
            keep(reply)
        tokens = (reply.input_tokens, reply.output_tokens)
        spending.settle(arrival.attempt_id, arrival.nano, *tokens, now, reply.requests, if_open=True)
        if is_asked:
            arrivals.remove(reply.request_id)
            result.count_answer(reply, arrival.nano)
        else:
            left.append(arrival)
    kept = kept_requests(run.store.lake) if left else set()
    for arrival in left:
        if arrival.reply.request_id in kept or now - arrival.arrived_at > ARRIVAL_KEPT:
            arrivals.remove(arrival.reply.request_id)


def finish_arrivals(run: Run, now: datetime) -> None:
    """Settle and remove what an earlier run had kept when it was killed."""
    take_arrivals(run, {}, lambda reply: None, AskingResult(), now)


def kept_requests(lake: Lake) -> set[str]:
    """Return the ids of all requests that the lake has an answer to."""
    return set(values(lake.read(REPLIES, columns=["request_id"]), "request_id"))


def kept_replies(lake: Lake, wanted: Collection[str], parts: Collection[str] | None = None) -> Iterator[Row]:
    """Yield the first of REPLIES to each request of `wanted` that has one, in `parts` (default: in any)."""
    left = set(wanted)
    for part in lake.manifest.partitions(REPLIES.name) if left else ():
        if parts is not None and part not in parts:
            continue
        ids = lake.read(REPLIES, part, columns=["request_id"])
        for row in (
            lake.read(REPLIES, part).to_pylist() if left.intersection(values(ids, "request_id")) else ()
        ):
            if row["request_id"] in left:
                left.discard(row["request_id"])
                yield row


# -- Batches of requests, over several runs: intent, create, id; a later run takes the answers in.

INTENT = "intent-"
# The clocks of two machines differ, and a request takes a while to arrive.
CLOCKS_DIFFER = timedelta(minutes=10)
# An answer that no run has asked for again waits in its batch, where the service keeps it for 29 days: a
# session that has grown since makes a new request; one beyond a run's cap makes the same request later.
KEPT_IN_BATCH = timedelta(days=7)
# The service keeps the requests of a batch to this number.
MAX_IN_BATCH = 1_000


def take_batches(asking: AskingRound, pending: dict[str, ModelRequest]) -> None:
    """
    Take in the answers of the batches that have ended; take out of `pending` what waits in one.

    A batch that cannot be asked for now is left for a later run.
    """
    api = asking.writer
    waiting = asking.spending.open_batches(asking.clock())
    if not waiting or not isinstance(api, AnthropicApi):
        return
    try:
        _adopt(asking, api, waiting)
        for name, attempts in asking.spending.open_batches(asking.clock()).items():
            if not name.startswith(INTENT):
                _take_batch(asking, api, name, attempts, pending)
    except ModelUnavailable as error:
        asking.result.reasons[error.problem] += 1
        if isinstance(error, ModelClosed):
            asking.result.stopped = str(error)
    for attempts in asking.spending.open_batches(asking.clock()).values():
        for attempt in attempts:
            if pending.pop(attempt.request_id, None):
                asking.result.in_batch += 1


def send_batch(asking: AskingRound, pending: dict[str, ModelRequest]) -> None:
    """
    Send what the budget allows of `pending` as one batch and take it out; the rest waits.

    Where the endpoint takes no batches everything stays in `pending`, to be asked directly.
    """
    api = asking.writer
    if not isinstance(api, AnthropicApi) or asking.result.stopped:
        return
    name = f"{INTENT}{uuid.uuid4().hex}"
    chosen = list(pending.values())[: min(asking.requests_left, MAX_IN_BATCH)]
    claims = [
        asking.claim(request, with_margin(api.count(request) or most_tokens(request, api)), in_batch=True)
        for request in chosen
    ]
    reserved = set(asking.spending.reserve_batch(claims, name, asking.limits, asking.clock()))
    sent = [request for request in chosen if request.request_id in reserved]
    if not sent or not _create(asking, api, name, sent):
        return
    asking.run.model_requests += len(sent)
    asking.result.in_batch += len(sent)
    for request in sent:
        del pending[request.request_id]
    for request in list(pending.values()):
        del pending[request.request_id]
        asking.wait("did not fit the batch and the day's budget")


def _create(asking: AskingRound, api: AnthropicApi, name: str, sent: Sequence[ModelRequest]) -> bool:
    """Create an intended batch; return whether its requests are, or may be, on their way."""
    try:
        asking.spending.name_batch(name, submit(api, sent))
    except AnswerLost:
        return True  # it may exist: a later run looks for it
    except (ModelUnavailable, ModelRefused) as error:
        for attempt in asking.spending.open_batches(asking.clock()).get(name, []):
            asking.spending.release(attempt.attempt_id, asking.clock())
        _explain(asking, error)
        return False
    return True


def _explain(asking: AskingRound, error: CortexError) -> None:
    # An endpoint of one's own may take no batches: what it says then is no reason to stop.
    asking.result.reasons[f"no batch was created: {error.problem}"] += 1


def _adopt(asking: AskingRound, api: AnthropicApi, waiting: dict[str, list[BatchedAttempt]]) -> None:
    """Find the batches of intents that a killed run left without an id; release those that have none."""
    left = {
        name: attempts
        for name, attempts in waiting.items()
        if name.startswith(INTENT) and not any(attempt.is_held for attempt in attempts)
    }
    if not left:
        return
    since = min(attempt.reserved_at for attempts in left.values() for attempt in attempts) - CLOCKS_DIFFER
    known = asking.spending.batch_names()
    unknown = [state for state in recent_batches(api, since) if state.batch_id not in known]
    for state in unknown:
        if state.is_ended:
            ids = {request_id for request_id, _ in batch_results(api, state.batch_id)}
            for name, attempts in list(left.items()):
                if ids >= {attempt.request_id for attempt in attempts}:
                    asking.spending.name_batch(name, state.batch_id)
                    del left[name]
    if all(state.is_ended for state in unknown):  # else one that goes on may be it
        for attempts in left.values():
            for attempt in attempts:
                asking.spending.release(attempt.attempt_id, asking.clock())


def _take_batch(
    asking: AskingRound,
    api: AnthropicApi,
    name: str,
    attempts: Sequence[BatchedAttempt],
    pending: dict[str, ModelRequest],
) -> None:
    """Take in the answers of one batch that has ended, each kept before it is settled."""
    try:
        if not batch_state(api, name).is_ended:
            return
    except BatchGone:
        for attempt in attempts:
            asking.spending.lose(attempt.attempt_id)
        return
    by_request = {attempt.request_id: attempt for attempt in attempts}
    unasked: list[tuple[BatchedAttempt, Reply]] = []
    for request_id, reply in batch_results(api, name):
        if request_id not in by_request:
            continue
        attempt = by_request.pop(request_id)
        if reply is None:
            asking.spending.release(attempt.attempt_id, asking.clock())
        elif isinstance(reply, AnswerLost):
            asking.spending.lose(attempt.attempt_id)
            asking.result.reasons[reply.problem] += 1
        elif request_id in pending:
            asking.take(reply, attempt.attempt_id, pending.pop(request_id), in_batch=True)
        else:
            unasked.append((attempt, reply))
    kept = kept_requests(asking.run.store.lake) if unasked else set()
    for attempt, reply in unasked:  # kept by a run that was killed then, or nobody asks it any more
        if attempt.request_id in kept or asking.clock() - attempt.reserved_at > KEPT_IN_BATCH:
            _settle(asking, attempt, reply.input_tokens, reply.output_tokens)


def _settle(asking: AskingRound, attempt: BatchedAttempt, input_tokens: int, output_tokens: int) -> None:
    nano = asking.price(attempt.model).nano_usd(input_tokens, output_tokens, in_batch=True)
    asking.spending.settle(attempt.attempt_id, nano, input_tokens, output_tokens, asking.clock())


# -- Asks a language model under the budget: reserved before, kept, settled; one failure stops no other.

# A busy service is asked this often for one request, with a pause between; each try is reserved.
TRIES = 3
MAX_PAUSE_S = 20.0
# A service that fails so often without one answer would fail for the rest too.
FAILURES_IN_A_ROW = 4
# A plan's longest limit is one of a week; what is noted beyond that is not believed.
MAX_LIMIT_LENGTH = timedelta(days=8)
# Flows that nobody waits for: their requests go as one batch, where the provider takes batches.
BATCH_FLOWS = ("nightly", "backfill")
# Below this a batch saves a cent, and its answers come a run later.
MIN_IN_BATCH = 5


def _nothing() -> Sequence[ModelRequest]:
    return ()


def ask_all(
    run: Run,
    requests: Sequence[ModelRequest],
    keep: Keep,
    *,
    writer: Writer | None = None,
    in_batches: bool = True,
    sends_batch: bool = True,
    then: Callable[[], Sequence[ModelRequest]] = _nothing,
    clock: Callable[[], datetime] = utc_now,
    sleep: Callable[[float], None] = time.sleep,
) -> AskingResult:
    """
    Ask each request whose answer is not known yet, as far as the budget reaches, and say so in the report.

    `requests` must not hold what the lake has a reply to. `keep` is called with each answer that was charged,
    usable or not (see Reply.stop_reason), and must store it durably: only then is the reservation settled.
    What had arrived when an earlier run was killed, and the answers of batches that one has sent, are taken
    in first; nightly and backfill send what they ask as a batch if it `sends_batch`, and where not
    `in_batches` those of other purposes are left alone. With no language model chosen nothing happens. Once
    they are asked, `then` says what follows from the answers, until it says nothing more or nothing more may
    be asked. Money is real, so the day that an attempt counts to is the day by `clock`, whatever day the run
    is looking at.
    """
    result = AskingResult()
    pending = {request.request_id: request for request in requests}
    if not run.settings.models.is_on or not pending:
        return result
    take_arrivals(run, pending, keep, result, clock())
    if limit := _known_limit(run, clock()):  # told when it was met, and by `cortex status` since
        result.stopped, result.waiting = limit.reason, len(pending)
        return result
    try:
        writer = writer or writer_for(run.settings)
        writer.ready()
    except ModelUnavailable as error:
        result.stopped, result.waiting = str(error), len(pending)
    else:
        asking = AskingRound(run, writer, keep, result, clock, sleep)
        _ask(asking, pending, in_batches, sends_batch)
        while not (result.stopped or result.waiting) and (requests := then()):
            pending = {request.request_id: request for request in requests}
            take_arrivals(run, pending, keep, result, clock())
            _ask(asking, pending, in_batches, sends_batch)
    for line in result.notes():
        run.report.note(line)
    _note_silence(run, result, clock())
    return result


def _known_limit(run: Run, now: datetime) -> ModelFailure | None:
    """Return the limit that an earlier run met and that is not reset yet: nothing would be answered."""
    failure = read_failure(run.store.home, WRITER)
    if failure is None or failure.until is None or failure.model != run.settings.models.writer:
        return None
    return failure if now < failure.until <= now + MAX_LIMIT_LENGTH else None


def _note_silence(run: Run, result: AskingResult, now: datetime) -> None:
    """Note since when nothing is answered, for the hooks to say after a day; forget it once something is."""
    home, since = run.store.home, now
    if not result.failed and not result.stopped and run.model_requests >= run.settings.budget.run_requests:
        return  # what waits is more than one run asks: that is no silence
    is_quiet = result.answered or result.in_batch or not (result.waiting or result.failed)
    if is_quiet and not result.limited_until:
        clear_failure(home, WRITER)
        return
    if known := read_failure(home, WRITER):
        since = known.failed_at
    # Written again by each run: what no run has noted for days, somebody has settled or switched off.
    reason = result.stopped or next(iter(result.reasons), "")
    failure = ModelFailure(run.settings.models.writer, since, reason, result.limited_until)
    note_failure(home, failure, WRITER)


def _ask(asking: AskingRound, pending: dict[str, ModelRequest], in_batches: bool, sends_batch: bool) -> None:
    if in_batches:
        take_batches(asking, pending)
        is_worth_it = asking.run.report.flow in BATCH_FLOWS and len(pending) >= MIN_IN_BATCH
        if sends_batch and is_worth_it:
            send_batch(asking, pending)
    direct = _Direct(asking)
    for number, request in enumerate(pending.values()):
        asking.run.progress("ask", number, len(pending))
        direct.ask(request)


class _Direct:
    """Requests one by one; `failures` counts those in a row."""

    def __init__(self, asking: AskingRound) -> None:
        self.asking, self.result, self.failures = asking, asking.result, 0

    def ask(self, request: ModelRequest) -> None:
        """Ask one request, a busy service several times; count what became of it."""
        if self.result.stopped:
            self.result.waiting += 1
            return
        try:
            self._tries(request)
            self.failures = 0
        except ModelClosed as error:
            self.result.stopped = str(error)
            self.result.limited_until = error.until if isinstance(error, ModelLimited) else None
            self.result.waiting += 1
        except ModelRefused as error:
            self.result.refused += 1
            self._count(error)
        except (ModelBusy, AnswerLost) as error:
            self.result.failed += 1
            self._count(error)

    def _count(self, error: CortexError) -> None:
        self.result.reasons[error.problem] += 1
        self.failures += 1
        if self.failures >= FAILURES_IN_A_ROW:
            self.result.stopped = f"{counted(self.failures, 'request')} in a row failed: {error}"

    def _tries(self, request: ModelRequest) -> None:
        for number in range(1, TRIES + 1):
            reservation = self._reserve(request)
            if reservation is None:
                return
            try:
                self._send(request, reservation)
                return
            except ModelBusy as error:
                pause = error.wait_s if error.wait_s is not None else 2.0 ** (number - 1)
                if number == TRIES or pause > MAX_PAUSE_S:
                    raise
                self.asking.sleep(pause)

    def _reserve(self, request: ModelRequest) -> Reserved | None:
        """Reserve the most that the request can cost, or count why it waits."""
        if not self.asking.requests_left:
            self.asking.wait("the run's requests are used up")
            return None
        answer = self._claim(request, most_tokens(request, self.asking.writer))
        if isinstance(answer, Withheld) and answer.reason == "dollars":
            answer = self._claim_counted(request, answer)
        if isinstance(answer, Reserved):
            self.asking.run.model_requests += 1
            self.result.lost += answer.lost
            return answer
        if answer.reason == "under way":
            self.result.elsewhere += 1
        else:
            self.asking.wait(f"the day's {answer.reason} are used up")
        return None

    def _claim_counted(self, request: ModelRequest, withheld: Withheld) -> Reserved | Withheld:
        """Try again with the provider's own count, where the request could fit at all."""
        fewest = self.asking.claim(request, fewest_tokens(request))
        if fewest.most_nano > withheld.left_nano:
            return withheld
        tokens = self.asking.writer.count(request)
        return withheld if tokens is None else self._claim(request, with_margin(tokens))

    def _claim(self, request: ModelRequest, input_tokens: int) -> Reserved | Withheld:
        asking = self.asking
        return asking.spending.reserve(asking.claim(request, input_tokens), asking.limits, asking.clock())

    def _send(self, request: ModelRequest, reservation: Reserved) -> None:
        asking = self.asking
        most_usd = usd(reservation.most_nano // asking.writer.requests_reserved)
        try:
            reply = asking.writer.ask(request, most_usd)
        except (ModelBusy, ModelClosed, ModelRefused):
            asking.spending.release(reservation.attempt_id, asking.clock())
            raise
        except AnswerLost:
            asking.spending.lose(reservation.attempt_id)
            raise
        asking.take(reply, reservation.attempt_id, request)
