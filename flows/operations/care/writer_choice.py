"""Which language model writes: what each choice needs and costs, and what is left of the budget today."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cortex.flows.context.context import Context
from cortex.flows.operations.care.config import OpenContext, SettingChange, set_setting
from cortex.flows.writers import Provider, provider_of
from cortex.storage.model_calls.spending import Spending
from cortex.storage.settings.settings import Settings
from cortex.storage.settings.writer_index import WRITER_MODULES
from cortex.transforms.errors import ModelClosed
from cortex.transforms.writer.prices import NANO, Price, price_of, usd

# The mean of 71 sessions, by estimate. Its facts and outcome record take 2,000.
SESSION_TOKENS, ANSWER_TOKENS = 14_000, 2_000


@dataclass(frozen=True)
class WriterOption:
    """
    One value of `models.writer`.

    `leaves` says what leaves this machine, `costs` what it costs, `missing` what a person has to do first;
    empty if it can be used as it is.
    """

    name: str
    label: str
    leaves: str
    costs: str
    missing: str


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


def writer_options(context: Context) -> list[WriterOption]:
    """Return every choice, with the settings as they are; nothing is sent, nothing started."""
    settings = context.settings
    price = model_price(context)
    each = usd(price.nano_usd(SESSION_TOKENS, ANSWER_TOKENS))
    cost = (
        f"about ${each:.4f} a session of {SESSION_TOKENS:,} tokens with {settings.models.writer_model}; "
        f"at most ${settings.budget.daily_usd:.2f} and {settings.budget.daily_requests} requests a day"
    )
    sent = "redacted transcripts go to the model's service"
    return [
        WriterOption("none", "no language model: rules write", "nothing", "nothing", ""),
        *(
            WriterOption(
                provider.name,
                provider.label,
                sent,
                f"{cost}, {provider.costs}" if provider.costs else cost,
                _missing(settings, provider),
            )
            for provider in map(provider_of, WRITER_MODULES)
        ),
    ]


def choose_writer(home: Path, name: str, open_context: OpenContext) -> SettingChange:
    """Write the choice to config.toml. Raises UsageError for a name that there is not."""
    return set_setting(home, "models.writer", (name,), None, open_context)


def budget_state(settings: Settings, now: datetime) -> BudgetState:
    """Return what is spent and left on the UTC day of `now`; reads the ledger and writes nothing."""
    total, budget = Spending(settings.home).total(now), settings.budget
    return BudgetState(total.spent_nano / NANO, budget.daily_usd, total.requests, budget.daily_requests)


def model_price(context: Context) -> Price:
    """Return the price of the chosen model today."""
    rows: list[Mapping[str, object]] = list(context.policy.rows["model_prices"].values())
    return price_of(rows, context.settings.models.writer_model, context.now.date())


def _missing(settings: Settings, provider: Provider) -> str:
    try:
        provider.build(settings)
    except ModelClosed as error:
        return error.next_step
    return ""
