"""What a language model has cost: by day, purpose, model and project, and for each memory that was kept."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from cortex.flows.context.context import Context, utc_now
from cortex.storage.model_calls.spending import (
    LOST,
    OPEN,
    Attempt,
    Spending,
)
from cortex.storage.settings.settings import Settings
from cortex.transforms.schemas import EVENTS, REPLIES
from cortex.transforms.writer.prices import NANO, Price, price_of, usd
from cortex.transforms.writer.written import LAYER_PREFIX

UNKNOWN_PROJECT = "not kept"  # an answer that never arrived, or whose session was forgotten


@dataclass(frozen=True)
class BudgetState:
    """What the UTC day has cost so far, reservations included, beside its caps."""

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
    the language model wrote and the checks let pass; `usd_per_fact` is None where there are none.
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
    """Return what is in the ledger; zeros where nothing was ever asked."""
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
        row["request_id"]: store.projects.name_of(store.projects.canonical(row["project_id"]))
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
