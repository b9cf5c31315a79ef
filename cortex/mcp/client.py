"""What a client may see: the memory of the project it is in, what holds everywhere, and what settings add."""

from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING

from cortex.flows.context import Context
from cortex.flows.operations.targets import scopes_in_reach
from cortex.storage.settings import Settings, load_settings

if TYPE_CHECKING:
    from cortex.flows.embedders import Embedder


@dataclass
class Client:
    """
    The program at the other end, of which a server over stdio has one.

    `base` gives folder, clock and the way to the embedding model, which is loaded once; the settings are read
    with each call, so that a change acts at once.
    """

    base: Context
    name: str = "unknown"
    _embedder: "Embedder | None" = None
    _is_loaded: bool = False
    _lock: Lock = field(default_factory=Lock)

    def context(self) -> Context:
        """Return the context of a call. Raises UsageError for settings that cannot be read."""
        context = replace(self.base, settings=load_settings(self.base.home), embedder_of=self._embedder_of)
        return replace(context, visible=scopes_in_reach(context))

    def _embedder_of(self, settings: Settings) -> "Embedder | None":
        if settings.voyage_api_key:  # whether the service answers changes from call to call
            return self.base.embedder_of(settings)
        with self._lock:
            if not self._is_loaded:
                self._embedder, self._is_loaded = self.base.embedder_of(settings), True
            return self._embedder
