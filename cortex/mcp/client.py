"""The program at the other end: what it may see, how often it may call, and the note of each call."""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from os import getpid
from threading import Lock
from time import perf_counter, time_ns
from typing import TYPE_CHECKING, Any, TypeVar

from cortex.flows.context import Context
from cortex.mcp.asking import ChoiceNeeded
from cortex.mcp.limiter import WINDOW_SECONDS, SlidingWindow
from cortex.storage.settings import Settings, load_settings
from cortex.transforms.errors import CortexError, InternalError, RateLimited

if TYPE_CHECKING:
    from cortex.flows.embedders import Embedder

Performed = TypeVar("Performed")
_log = logging.getLogger(__name__)


@dataclass
class Client:
    """
    The program at the other end, of which a server over stdio has one.

    `base` gives folder, clock and the way to the embedding model, which is loaded once; the settings are read
    with each call, so that a change acts at once.
    """

    base: Context
    transport: str = "stdio"
    window: SlidingWindow = field(default_factory=SlidingWindow)
    _server: str = field(default_factory=lambda: f"{getpid()}-{time_ns()}")
    _numbers: "count[int]" = field(default_factory=count)
    _refused_at: float | None = None
    _embedder: "Embedder | None" = None
    _is_loaded: bool = False
    _lock: Lock = field(default_factory=Lock)

    def context(self) -> Context:
        """Return the context of a call. Raises UsageError for settings that cannot be read."""
        # Imported here, as below: it brings the tables, which nothing needs before the first call.
        from cortex.flows.operations.targets import scopes_in_reach

        context = replace(self.base, settings=load_settings(self.base.home), embedder_of=self._embedder_of)
        return replace(context, visible=scopes_in_reach(context))

    def perform(
        self, caller: str, tool: str, arguments: Mapping[str, Any], work: Callable[[Context], Performed]
    ) -> Performed:
        """
        Do the work of a call if the rate limit has room for it, and note it in the audit log.

        Raises RateLimited, and what the work raises; InternalError for what nobody foresaw.
        """
        began, context, outcome = perf_counter(), self.context(), "ok"
        called_at = context.now
        try:
            self.window.admit(context.settings.mcp.calls_per_minute)
            return work(context)
        except ChoiceNeeded:
            outcome = "asked"
            raise
        except CortexError as error:
            outcome = error.code
            raise
        except Exception as error:
            outcome = InternalError.code
            _log.exception("the tool %r crashed", tool)
            raise InternalError(
                f"the call failed ({type(error).__name__}).", "Check the store: cortex doctor"
            ) from error
        finally:
            if outcome != RateLimited.code or self._is_first_refusal():
                self._note(context, caller, tool, arguments, called_at, outcome, perf_counter() - began)

    def _note(
        self, context: Context, caller: str, tool: str, arguments: Mapping[str, Any], *came: Any
    ) -> None:
        from cortex.flows.operations.audit import CalledTool, note_call

        number = next(self._numbers)
        call = CalledTool(self._server, number, caller, self.transport, tool, arguments, *came)
        # A store that cannot be written is still read.
        with suppress(CortexError):
            note_call(context, call)

    def _is_first_refusal(self) -> bool:
        """Return whether no refusal was noted within a minute: a client gone wild must not fill the disk."""
        with self._lock:
            now = self.window.clock()
            is_first = self._refused_at is None or now - self._refused_at >= WINDOW_SECONDS
            if is_first:
                self._refused_at = now
            return is_first

    def _embedder_of(self, settings: Settings) -> "Embedder | None":
        if settings.voyage_api_key:  # whether the service answers changes from call to call
            return self.base.embedder_of(settings)
        with self._lock:
            if not self._is_loaded:
                self._embedder, self._is_loaded = self.base.embedder_of(settings), True
            return self._embedder
