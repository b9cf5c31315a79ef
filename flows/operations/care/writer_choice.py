"""Which language model can write here, what that takes, and the choice of one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cortex.flows.context.context import Context
from cortex.flows.operations.care.config import OpenContext, SettingChange, set_setting
from cortex.flows.operations.care.intake import FIRST_SESSIONS
from cortex.flows.operations.care.plan import plan_transcripts, read_plan
from cortex.flows.writers import writer_for
from cortex.flows.writers.claude_login import claude_writer
from cortex.storage.settings.settings import Settings
from cortex.transforms.errors import ModelClosed, ModelUnavailable

# How many short messages a plan gives in five hours, by its makers' own figures ("at least 225" with 5x, 900
# with 20x, 45 with Pro; limits in tokens are not published). A session read by a small model weighs like one.
PLAN_MESSAGES = {"pro": 45, "max_5x": 225, "max_20x": 900}
# Of two providers that can be used, the one without a bill.
BY_PREFERENCE = ("claude", "api")


@dataclass(frozen=True)
class WriterOffer:
    """
    A language model that can write here as things are: its provider, and what reading the sessions takes.

    `plan` is that of the client's login, where it says so. Of `sessions` in all, `first` are read at once in
    about `first_seconds`, and up to `a_day` each day in the background and at night, for `usd` in all at
    list price.
    """

    name: str
    plan: str
    sessions: int
    first: int
    first_seconds: int
    a_day: int
    usd: float
    daily_usd: float

    @property
    def plan_share(self) -> float | None:
        """About what share of one five-hour window the sessions of a day take; None where it is not known."""
        messages = PLAN_MESSAGES.get(self.plan)
        return min(self.sessions, self.a_day) / messages if messages else None


def offered_writer(context: Context, transcripts: Sequence[Path]) -> WriterOffer | None:
    """
    Return the language model that could write, with what it would take to read `transcripts`; None for none.

    Whether Claude Code is logged in is asked of it; nothing is sent.
    """
    usable = ((name, _plan_of(context.settings, name)) for name in BY_PREFERENCE)
    name, plan = next(((name, plan) for name, plan in usable if plan is not None), ("", ""))
    if not name:
        return None
    write = plan_transcripts(context, transcripts)[0] if transcripts else read_plan(context).stages[0]
    usd_each = write.usd / write.sessions if write.sessions else 0.0
    budget = context.settings.budget
    a_day = min(
        budget.daily_requests, int(budget.daily_usd / usd_each) if usd_each else budget.daily_requests
    )
    first = min(FIRST_SESSIONS, write.sessions)
    seconds = round(first * context.policy.threshold("writer_request_seconds"))
    return WriterOffer(name, plan or "", write.sessions, first, seconds, a_day, write.usd, budget.daily_usd)


def usable_writers(settings: Settings) -> list[str]:
    """Return the providers whose key or command is here; whether they answer is not looked at."""
    return [name for name in BY_PREFERENCE if not _missing(settings, name)]


def _plan_of(settings: Settings, name: str) -> str | None:
    """Return the plan of a provider that can be used, "" where it has or names none; None where it cannot."""
    if _missing(settings, name):
        return None
    if name == "api":
        return ""
    try:
        state = claude_writer(settings.models.claude_token, settings.home, settings.models.base_url).state()
    except ModelUnavailable:
        return None
    return state.plan if state.is_logged_in or settings.models.claude_token else None


def choose_writer(home: Path, name: str, open_context: OpenContext) -> SettingChange:
    """Write the choice to config.toml. Raises UsageError for a name that there is not."""
    return set_setting(home, "models.writer", (name,), None, open_context)


def _missing(settings: Settings, name: str) -> str:
    try:
        writer_for(replace(settings, models=replace(settings.models, writer=name)))
    except ModelClosed as error:
        return error.next_step
    return ""
