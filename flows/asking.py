"""Asks a language model under the budget: reserved before, kept, settled; one failure stops no other."""

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from cortex.flows.context import utc_now
from cortex.flows.run import Run
from cortex.flows.writers import Writer, writer_for
from cortex.storage.spending import DailyLimits, Reserved, Spending, SpendingClaim, Withheld
from cortex.transforms.errors import AnswerLost, CortexError, ModelBusy, ModelClosed, ModelRefused
from cortex.transforms.words.phrases import counted
from cortex.transforms.writer.prices import NANO, Price, price_of, usd
from cortex.transforms.writer.request import ModelRequest, Reply

# A busy service is asked this often for one request, with a pause between; each try is reserved.
TRIES = 3
LONGEST_PAUSE_S = 20.0
# A service that fails so often without one answer would fail for the rest too.
FAILURES_IN_A_ROW = 4
# A token of the models' tokenizers stands for at least one byte, and in text seldom for more than eight.
MOST_BYTES_A_TOKEN = 8

Keep = Callable[[Reply], None]


@dataclass
class AskingResult:
    """
    What became of the requests; each counts once.

    `answered` have a usable answer; `refused` were answered or rejected in a way that the same request would
    meet again (a refusal, cut off, not JSON, not accepted); `failed` may be asked again by a later run;
    `waiting` did not fit the budget or came after everything had to stop; `elsewhere` are being asked by
    another process. `stopped` says why no more was asked. `usd` is what the answers cost.
    """

    answered: int = 0
    refused: int = 0
    failed: int = 0
    waiting: int = 0
    elsewhere: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    nano_usd: int = 0
    stopped: str = ""
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def usd(self) -> float:
        """Dollars that the answers cost."""
        return usd(self.nano_usd)


def ask_all(
    run: Run,
    requests: Sequence[ModelRequest],
    keep: Keep,
    *,
    writer: Writer | None = None,
    clock: Callable[[], datetime] = utc_now,
    sleep: Callable[[float], None] = time.sleep,
) -> AskingResult:
    """
    Ask each request whose answer is not known yet, as far as the budget reaches, and say so in the report.

    `requests` must not hold what the lake has a reply to. `keep` is called with each answer that was charged,
    usable or not (see Reply.stop_reason), and must store it durably: only then is the reservation settled.
    With no language model chosen nothing happens. Money is real, so the day that an attempt counts to is the
    day by `clock`, whatever day the run is looking at.
    """
    asked = AskingResult()
    pending = {request.request_id: request for request in requests}
    if not run.settings.models.is_on or not pending:
        return asked
    try:
        writer = writer or writer_for(run.settings)
    except ModelClosed as error:
        asked.stopped, asked.waiting = str(error), len(pending)
    else:
        asking = _Asking(run, writer, keep, asked, clock, sleep)
        for request in pending.values():
            asking.ask(request)
    for line in _notes(asked):
        run.report.note(line)
    return asked


@dataclass
class _Asking:
    """One round of requests; `failures` counts those in a row."""

    run: Run
    writer: Writer
    keep: Keep
    asked: AskingResult
    clock: Callable[[], datetime]
    sleep: Callable[[float], None]
    failures: int = 0

    def __post_init__(self) -> None:
        self.spending = Spending(self.run.store.home)
        budget = self.run.settings.budget
        self.limits = DailyLimits(round(budget.daily_usd * NANO), budget.daily_requests)

    def ask(self, request: ModelRequest) -> None:
        """Ask one request, a busy service several times; count what became of it."""
        if self.asked.stopped:
            self.asked.waiting += 1
            return
        try:
            self._tries(request)
            self.failures = 0
        except ModelClosed as error:
            self.asked.stopped = str(error)
            self.asked.waiting += 1
        except ModelRefused as error:
            self.asked.refused += 1
            self._count(error)
        except (ModelBusy, AnswerLost) as error:
            self.asked.failed += 1
            self._count(error)

    def _count(self, error: CortexError) -> None:
        self.asked.reasons[error.problem] += 1
        self.failures += 1
        if self.failures >= FAILURES_IN_A_ROW:
            self.asked.stopped = f"{counted(self.failures, 'request')} in a row failed: {error}"

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
                self.sleep(pause)

    def _reserve(self, request: ModelRequest) -> Reserved | None:
        """Reserve the most that the request can cost, or count why it waits."""
        if self.run.model_requests >= self.run.settings.budget.run_requests:
            self._wait("the run's requests are used up")
            return None
        price = self._price(request)
        answer = self._claim(request, price, _most_tokens(request, self.writer))
        if isinstance(answer, Withheld) and answer.reason == "dollars":
            answer = self._claim_counted(request, price, answer)
        if isinstance(answer, Reserved):
            self.run.model_requests += 1
            return answer
        if answer.reason == "under way":
            self.asked.elsewhere += 1
        else:
            self._wait(f"the day's {answer.reason} are used up")
        return None

    def _claim_counted(self, request: ModelRequest, price: Price, withheld: Withheld) -> Reserved | Withheld:
        """Try again with the provider's own count, where the request could fit at all."""
        fewest = _bytes(request) // MOST_BYTES_A_TOKEN
        fewest_nano = price.nano_usd(fewest, request.max_output_tokens) * self.writer.requests_reserved
        if fewest_nano > withheld.left_nano:
            return withheld
        tokens = self.writer.count(request)
        return withheld if tokens is None else self._claim(request, price, _with_margin(tokens))

    def _claim(self, request: ModelRequest, price: Price, input_tokens: int) -> Reserved | Withheld:
        most_nano = price.nano_usd(input_tokens, request.max_output_tokens) * self.writer.requests_reserved
        claim = SpendingClaim(request.request_id, request.purpose, self.writer.name, request.model, most_nano)
        return self.spending.reserve(claim, self.limits, self.clock())

    def _send(self, request: ModelRequest, reservation: Reserved) -> None:
        try:
            reply = self.writer.ask(request, usd(reservation.most_nano // self.writer.requests_reserved))
        except (ModelBusy, ModelClosed, ModelRefused):
            self.spending.release(reservation.attempt_id, self.clock())
            raise
        except AnswerLost:
            self.spending.lose(reservation.attempt_id)
            raise
        self._take(request, reply, reservation)

    def _take(self, request: ModelRequest, reply: Reply, reservation: Reserved) -> None:
        """Keep an answer, then settle what it cost; kept or not, it was charged."""
        nano = self._price(request).nano_usd(reply.input_tokens, reply.output_tokens)
        try:
            self.keep(replace(reply, usd=usd(nano)))
        finally:
            self.spending.settle(
                reservation.attempt_id, nano, reply.input_tokens, reply.output_tokens, self.clock()
            )
        self.asked.input_tokens += reply.input_tokens
        self.asked.output_tokens += reply.output_tokens
        self.asked.nano_usd += nano
        if is_usable(reply):
            self.asked.answered += 1
        else:
            self.asked.refused += 1
            self.asked.reasons[f"the answer is of no use ({reply.stop_reason or 'no reason given'})."] += 1

    def _price(self, request: ModelRequest) -> Price:
        rows = self.run.policy.rows["model_prices"].values()
        return price_of(rows, request.model, self.clock().date())

    def _wait(self, reason: str) -> None:
        self.asked.waiting += 1
        self.asked.reasons[reason] += 1


def is_usable(reply: Reply) -> bool:
    """Return whether the answer came to its end and is a JSON object."""
    if reply.stop_reason not in ("end_turn", "stop_sequence"):
        return False
    try:
        return isinstance(json.loads(reply.text), dict)
    except (ValueError, RecursionError):
        return False


def _bytes(request: ModelRequest) -> int:
    return sum(
        len(part.encode("utf-8", "surrogatepass"))
        for part in (request.system, request.content, request.schema)
    )


def _most_tokens(request: ModelRequest, writer: Writer) -> int:
    """Return a number of tokens that the request cannot have more than."""
    return _bytes(request) + writer.overhead_tokens


def _with_margin(tokens: int) -> int:
    """Return a provider's count with room for what it calls an estimate: two in a hundred."""
    return tokens + tokens // 50 + 1


def _notes(asked: AskingResult) -> list[str]:
    notes = []
    if asked.stopped:
        notes.append(f"The language model was not asked any more: {asked.stopped}")
    if asked.waiting:
        notes.append(f"{counted(asked.waiting, 'request')} to the language model wait for a later run.")
    notes += [
        f"Language model: {counted(count, 'time')}: {reason}" for reason, count in asked.reasons.items()
    ]
    return notes
