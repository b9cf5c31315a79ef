"""What direct requests and batches to a language model share: prices, reservations, answers, the outcome."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from cortex.flows.run.run import Run
from cortex.flows.writers import Writer
from cortex.storage.model_calls.received_answers import Arrival, Arrivals
from cortex.storage.model_calls.spending import DailyLimits, Spending, SpendingClaim
from cortex.transforms.redaction.redact import redact
from cortex.transforms.words.ages import counted
from cortex.transforms.writer.prices import NANO, Price, price_of, usd
from cortex.transforms.writer.request import ModelRequest, Reply

# In text a token seldom stands for more bytes than this.
MOST_BYTES_A_TOKEN = 8

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
                reply.output_tokens, len(reply.text.encode("utf-8", "replace")) // MOST_BYTES_A_TOKEN
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
    return request_bytes(request) // MOST_BYTES_A_TOKEN


def most_tokens(request: ModelRequest, writer: Writer) -> int:
    """Return a number of tokens that the request cannot have more than: a token has at least one byte."""
    return request_bytes(request) + writer.overhead_tokens


def with_margin(tokens: int) -> int:
    """Return a provider's count with room for what it calls an estimate: two in a hundred."""
    return tokens + tokens // 50 + 1
