"""Language models behind one small protocol: the hosted interface, and the person's own Claude Code login."""

from typing import Protocol

from cortex.storage.settings.settings import Settings
from cortex.transforms.errors import UnknownValue
from cortex.transforms.writer.request import ModelRequest, Reply

# The settings' names of the providers, and what people are shown.
PROVIDERS = {"api": "the hosted interface", "claude": "your Claude Code login"}


class Writer(Protocol):
    """Answers requests one at a time; what it costs is reserved before and settled after by its caller."""

    name: str
    overhead_tokens: int  # input that the provider may add to what the request holds
    requests_reserved: int  # how many requests' price one `ask` may cost at most
    most_requests: int  # how many requests one `ask` may send at most

    def ready(self) -> None:
        """Raise ModelClosed where no request can be answered; sends none, so that none is reserved."""

    def ask(self, request: ModelRequest, most_usd: float) -> Reply:
        """
        Send one request once, and return its answer, without its price; `most_usd` is what one may cost.

        An answer that was charged is returned whatever it is: a refusal, cut off, not JSON; `stop_reason` and
        `text` say so. Raises ModelBusy where nothing was charged and it may be answered soon, AnswerLost
        where it may have been charged, ModelClosed where no request is answered before a person acts or
        (ModelLimited) a limit is reset, ModelRefused where the same request would fail again.
        """

    def count(self, request: ModelRequest) -> int | None:
        """Return how many tokens of input the request has by the provider's count; None where it has none."""


def writer_for(settings: Settings) -> Writer:
    """
    Return the provider that the settings name; nothing is sent and nothing started before the first `ask`.

    Raises ModelClosed, with a next step, where its key, library or command is missing.
    """
    # Imported here: with no language model chosen none of this is loaded.
    if settings.models.writer == "api":
        from cortex.flows.writers.anthropic_api import api_writer

        return api_writer(settings.models.api_key, settings.models.base_url)
    if settings.models.writer == "claude":
        from cortex.flows.writers.claude_login import claude_writer

        return claude_writer(settings.models.claude_token, settings.home, settings.models.base_url)
    raise UnknownValue("language model", settings.models.writer, list(PROVIDERS))
