"""Language models behind one small protocol: the hosted interface, and the person's own Claude Code login."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from cortex.storage.settings.settings import Settings
from cortex.storage.settings.writer_index import WRITER_MODULES
from cortex.transforms.errors import UnknownValue
from cortex.transforms.writer.request import ModelRequest, Reply


class Writer(Protocol):
    """Answers requests one at a time; what it costs is reserved before and settled after by its caller."""

    name: str
    overhead_tokens: int  # input that the provider may add to what the request holds
    requests_reserved: int  # how many requests' price one `ask` may cost at most
    most_requests: int  # how many requests one `ask` may send at most

    def ready(self) -> None:
        """Raise ModelClosed if no request can be answered; sends none, so that none is reserved."""

    def ask(self, request: ModelRequest, most_usd: float) -> Reply:
        """
        Send one request once, and return its answer, without its price; `most_usd` is what one may cost.

        An answer that was charged is returned whatever it is: a refusal, cut off, not JSON; `stop_reason` and
        `text` say so. Raises ModelBusy if nothing was charged and it may be answered soon, AnswerLost
        where it may have been charged, ModelClosed if no request is answered before a person acts or
        (ModelLimited) a limit is reset, ModelRefused where the same request would fail again.
        """

    def count(self, request: ModelRequest) -> int | None:
        """Return how many tokens of input the request has by the provider's count; None if it has none."""


@dataclass(frozen=True)
class Provider:
    """
    One value of `models.writer`; the value PROVIDER of a module in this folder, which `make docs` finds.

    `needs` is what it works with, as the setting's page says it. `build` makes its writer and raises
    ModelClosed, with a next step, if something is missing.
    """

    name: str
    needs: str
    build: Callable[[Settings], Writer]


def provider_of(name: str) -> Provider:
    """Return a provider by its name in the settings. Raises UnknownValue."""
    if name not in WRITER_MODULES:
        raise UnknownValue("language model", name, list(WRITER_MODULES))
    # Imported here: with no language model chosen none of this is loaded.
    provider: Provider = importlib.import_module(WRITER_MODULES[name]).PROVIDER
    return provider


def writer_for(settings: Settings) -> Writer:
    """
    Return the writer that the settings name; nothing is sent and nothing started before the first `ask`.

    Raises ModelClosed, with a next step, if its key, library or command is missing.
    """
    return provider_of(settings.models.writer).build(settings)
