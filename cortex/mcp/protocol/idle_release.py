"""What a server spends and gives back: the import of the protocol, memory and models while nobody calls."""

import ctypes
import gc
import math
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from cortex.flows.context import Context, EmbedderOf
from cortex.storage.settings.settings import Settings

if TYPE_CHECKING:
    from cortex.flows.embedders import Embedder


# -- Imports the protocol's package at less cost: most of the time to start goes into it.


@contextmanager
def quick_imports() -> Iterator[None]:
    """
    Import in the block without looking for garbage; models of pydantic are built when they are first used.

    The package describes three generations of the protocol in about 400 models, of which a session uses
    a few; what a model accepts does not depend on when it is built. Call it before the package is imported.
    """
    from pydantic import BaseModel

    usual = BaseModel.model_config
    was_enabled = gc.isenabled()
    gc.disable()
    BaseModel.model_config = {**usual, "defer_build": True}
    try:
        yield
    finally:
        BaseModel.model_config = usual
        gc.freeze()  # what was imported stays: looking through it again and again finds nothing
        if was_enabled:
            gc.enable()


# -- What a server gives back while nobody calls: memory that was freed, later the embedding model.

# After the first, memory that is free anyway goes back to the system (a third of what a search took); after
# the second, the model too: it takes .3 s to load again.
QUIET_SECONDS, IDLE_SECONDS = 1.0, 120.0


@dataclass
class SharedModel:
    """The embedding model, loaded by the first call of any client that needs it."""

    embedder_of: EmbedderOf
    _embedder: "Embedder | None" = None
    _is_loaded: bool = False
    _lock: Lock = field(default_factory=Lock)

    def __call__(self, settings: Settings) -> "Embedder | None":
        """Return the model in force for the settings, None if there is none."""
        if settings.voyage_api_key:  # a hosted model holds no memory, and its key may change
            return self.embedder_of(settings)
        with self._lock:
            if not self._is_loaded:
                self._embedder, self._is_loaded = self.embedder_of(settings), True
            return self._embedder

    def release(self) -> None:
        """Let go of the model; a call that is using it keeps it until it is done."""
        with self._lock:
            self._embedder, self._is_loaded = None, False


def release_model(context: Context) -> None:
    """Let go of the model that a context shares among clients."""
    if isinstance(context.embedder_of, SharedModel):
        context.embedder_of.release()


@dataclass
class IdleTimer:
    """Waits for pauses between calls: `release` is called once nobody has called for IDLE_SECONDS."""

    release: Callable[[], None]
    quiet_s: float = QUIET_SECONDS
    idle_s: float = IDLE_SECONDS
    _called: anyio.Event = field(default_factory=anyio.Event)

    def note_call(self) -> None:
        """Say that a call has ended."""
        self._called.set()

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Watch while the block runs."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch)
            yield
            group.cancel_scope.cancel()

    async def _watch(self) -> None:
        wait_s = math.inf
        while True:
            with anyio.move_on_after(wait_s) as pause:
                await self._called.wait()
            if not pause.cancelled_caught:
                self._called, wait_s = anyio.Event(), self.quiet_s
            elif wait_s == self.quiet_s:
                wait_s = self.idle_s
                await anyio.to_thread.run_sync(trim_heap)
            else:
                wait_s = math.inf
                self.release()
                await anyio.to_thread.run_sync(trim_heap)


def trim_heap() -> None:
    """Give freed memory back to the system, where the C library keeps it and can (glibc)."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
