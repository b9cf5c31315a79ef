"""Asks a language model under the budget: reserved before, kept, settled; one failure stops no other."""

import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from cortex.flows.asking_model.received_replies import take_arrivals
from cortex.flows.asking_model.request_round import (
    AskingResult,
    AskingRound,
    Keep,
    fewest_tokens,
    most_tokens,
    with_margin,
)
from cortex.flows.context.context import utc_now
from cortex.flows.run.run import Run
from cortex.flows.writers import Writer, writer_for
from cortex.storage.model_calls.model_failure import (
    WRITER,
    ModelFailure,
    clear_failure,
    note_failure,
    read_failure,
)
from cortex.storage.model_calls.spending import Reserved, Withheld
from cortex.transforms.errors import (
    AnswerLost,
    CortexError,
    ModelBusy,
    ModelClosed,
    ModelLimited,
    ModelRefused,
    ModelUnavailable,
)
from cortex.transforms.words.ages import counted
from cortex.transforms.writer.prices import usd
from cortex.transforms.writer.request import ModelRequest

# A busy service is asked this often for one request, with a pause between; each try is reserved.
TRIES = 3
LONGEST_PAUSE_S = 20.0
# A service that fails so often without one answer would fail for the rest too.
FAILURES_IN_A_ROW = 4
# A plan's longest limit is one of a week; what is noted beyond that is not believed.
LONGEST_LIMIT = timedelta(days=8)
# Flows that nobody waits for: their requests go as one batch, where the provider takes batches.
BATCH_FLOWS = ("nightly", "backfill")
# Below this a batch saves a cent, and its answers come a run later.
FEWEST_IN_BATCH = 5


def ask_all(
    run: Run,
    requests: Sequence[ModelRequest],
    keep: Keep,
    *,
    writer: Writer | None = None,
    in_batches: bool = True,
    clock: Callable[[], datetime] = utc_now,
    sleep: Callable[[float], None] = time.sleep,
) -> AskingResult:
    """
    Ask each request whose answer is not known yet, as far as the budget reaches, and say so in the report.

    `requests` must not hold what the lake has a reply to. `keep` is called with each answer that was charged,
    usable or not (see Reply.stop_reason), and must store it durably: only then is the reservation settled.
    What had arrived when an earlier run was killed, and the answers of batches that one has sent, are taken
    in first; nightly and backfill send what they ask as a batch, unless `in_batches` is False. With no
    language model chosen nothing happens. Money is real, so the day that an attempt counts to is the day by
    `clock`, whatever day the run is looking at.
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
        _ask(AskingRound(run, writer, keep, result, clock, sleep), pending, in_batches)
    for line in result.notes():
        run.report.note(line)
    _note_silence(run, result, clock())
    return result


def _known_limit(run: Run, now: datetime) -> ModelFailure | None:
    """Return the limit that an earlier run met and that is not reset yet: nothing would be answered."""
    failure = read_failure(run.store.home, WRITER)
    if failure is None or failure.until is None or failure.model != run.settings.models.writer:
        return None
    return failure if now < failure.until <= now + LONGEST_LIMIT else None


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


def _ask(asking: AskingRound, pending: dict[str, ModelRequest], in_batches: bool) -> None:
    if in_batches and asking.writer.name == "api":
        from cortex.flows.asking_model.request_batches import send_batch, take_batches

        take_batches(asking, pending)
        if asking.run.report.flow in BATCH_FLOWS and len(pending) >= FEWEST_IN_BATCH:
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
                if number == TRIES or pause > LONGEST_PAUSE_S:
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
