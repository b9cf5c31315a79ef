"""One request to a language model: its versioned prompt, its reply, what it used and what that costs."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from cortex.transforms.errors import AnswerLost, NotFound
from cortex.transforms.identity import content_id

# -- A prompt of a language model as a versioned file: its instruction and the schema of the answer.

# The newest version of the instruction for sessions; the older ones stay beside it.
SESSION_PROMPT = "session@2"


@dataclass(frozen=True)
class Prompt:
    """
    What a request of one purpose always says.

    `name` is the file's name and version (`session@1`). Its text never changes: replies are known by the hash
    of what was asked, and a better instruction is a new version. `schema` is canonical JSON.
    """

    name: str
    system: str
    schema: str

    @property
    def purpose(self) -> str:
        """What the prompt is for: its name without the version."""
        return self.name.partition("@")[0]


def version_of(name: str) -> int:
    """
    Return the version of a prompt, 0 for a name without one.

    >>> version_of("session@12")
    12
    """
    version = name.rpartition("@")[2]
    return int(version) if version.isascii() and version.isdigit() else 0


# -- What tokens cost: dated prices by model and length of prompt, in whole nano-dollars for exact sums.

# A price of $.10 for a million tokens is 100 nano-dollars a token, half of it in a batch.
NANO = 1_000_000_000
_PER_MILLION = NANO // 1_000_000

# A model may be named with the day of its release: claude-haiku-5-5-20261001.
_RELEASE = re.compile(r"-\d{8}$")


@dataclass(frozen=True)
class PriceTier:
    """Prices in dollars per million tokens for prompts of at most `up_to_tokens` (None: of any length)."""

    up_to_tokens: int | None
    input_usd: float
    output_usd: float
    batch_factor: float


@dataclass(frozen=True)
class Price:
    """The tiers of one model on one day, short prompts first; `is_known` is false for a stand-in."""

    model: str
    tiers: tuple[PriceTier, ...]
    is_known: bool = True

    def nano_usd(self, input_tokens: int, output_tokens: int, *, in_batch: bool = False) -> int:
        """
        Return what a request costs in billionths of a dollar, rounded up.

        The length of the prompt decides which tier holds for all of its tokens, in and out.
        """
        tier = self._tier(input_tokens)
        factor = tier.batch_factor if in_batch else 1.0
        cost = (input_tokens * tier.input_usd + output_tokens * tier.output_usd) * factor * _PER_MILLION
        return math.ceil(round(cost, 6))  # the sum of floats may be off by far less than that

    def _tier(self, input_tokens: int) -> PriceTier:
        for tier in self.tiers:
            if tier.up_to_tokens is None or input_tokens <= tier.up_to_tokens:
                return tier
        return self.tiers[-1]


def price_of(rows: Iterable[Mapping[str, object]], model: str, on: date) -> Price:
    """
    Return the price of `model` on a day by the rows of model_prices.csv.

    Of each model the newest price that had begun by then holds. A model that is not listed counts as the
    dearest that is: a budget may then be spent more slowly than it could be, never faster. Raises NotFound
    if the table has no price for that day.
    """
    prices = _in_force(rows, on)
    if not prices:
        raise NotFound(f"model_prices.csv has no price for {on}.", "Add a row that begins earlier.")
    for name in (model, _RELEASE.sub("", model)):
        if name in prices:
            return Price(model, prices[name])
    dearest = max(prices.values(), key=lambda tiers: (tiers[-1].input_usd, tiers[-1].output_usd))
    return Price(model, dearest, is_known=False)


def _in_force(rows: Iterable[Mapping[str, object]], on: date) -> dict[str, tuple[PriceTier, ...]]:
    begun: dict[str, dict[str, list[PriceTier]]] = {}
    for row in rows:
        valid_from = str(row["valid_from"])
        if date.fromisoformat(valid_from) <= on:
            begun.setdefault(str(row["model"]), {}).setdefault(valid_from, []).append(_tier(row))
    return {
        model: tuple(sorted(by_day[max(by_day)], key=lambda tier: tier.up_to_tokens or float("inf")))
        for model, by_day in begun.items()
    }


def _tier(row: Mapping[str, object]) -> PriceTier:
    up_to = str(row["up_to_tokens"] or "").strip()
    return PriceTier(
        int(up_to) if up_to else None,
        float(str(row["input_usd"])),
        float(str(row["output_usd"])),
        float(str(row["batch_factor"])),
    )


def usd(nano: int) -> float:
    """
    Return billionths of a dollar as dollars.

    >>> usd(4_250_000)
    0.00425
    """
    return nano / NANO


# -- One request to a language model and its reply: values, so that the same request is never paid twice.


@dataclass(frozen=True)
class ModelRequest:
    """
    What a language model is asked, whoever answers.

    `purpose` says what for (`session`, `links`, …); `prompt` is the prompt file and its version
    (`session@1`); `schema` is the JSON schema of the answer as canonical JSON text. `max_output_tokens`
    bounds what the answer may cost.
    """

    purpose: str
    model: str
    prompt: str
    system: str
    content: str
    schema: str
    max_output_tokens: int

    @property
    def request_id(self) -> str:
        """The hash of everything that is sent: replies are kept, replayed and paid for under it."""
        return content_id(
            "model request",
            self.purpose,
            self.model,
            self.prompt,
            self.system,
            self.content,
            self.schema,
            str(self.max_output_tokens),
        )


@dataclass(frozen=True)
class Reply:
    """
    What came back: the answer as JSON text, why it ended, what it used.

    Tokens are those the provider counted; `usd` is their price. `provider` is `api`, `claude` or `recorded`;
    `requests` is how many were sent for it, where the provider asks again by itself.
    """

    request_id: str
    provider: str
    model: str
    text: str
    stop_reason: str
    input_tokens: int
    output_tokens: int
    usd: float
    provider_request_id: str | None = None
    requests: int = 1


# -- What a provider says that a request has used, believed within bounds.

# The longest context has 1,000,000 tokens, and a client asks again up to three times by itself. More is no
# count of tokens, and would be no number for the ledger either.
MAX_TOKENS = 10_000_000
_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def used_tokens(usage: object) -> tuple[int, int]:
    """
    Return the tokens of input, cached ones among them, and of output.

    Raises AnswerLost for what cannot be: the request then counts as what was reserved for it.

    >>> used_tokens({"input_tokens": 7, "cache_read_input_tokens": 5, "output_tokens": 2})
    (12, 2)
    """
    if not isinstance(usage, Mapping):
        raise _impossible()
    return sum(_count(usage, name) for name in _INPUT), _count(usage, "output_tokens")


def _count(usage: Mapping[str, Any], name: str) -> int:
    count = usage.get(name)
    if count is None:
        return 0
    if type(count) is not int or not 0 <= count <= MAX_TOKENS:
        raise _impossible()
    return count


def _impossible() -> AnswerLost:
    return AnswerLost("the service says of an answer that it used what cannot be.", "A later run asks again.")
