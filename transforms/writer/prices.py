"""What tokens cost: dated prices by model and length of prompt, in whole nano-dollars for exact sums."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from cortex.transforms.errors import NotFound

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
    where the table has no price for that day.
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
