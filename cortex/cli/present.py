"""The context of a command: the settings and clock of this process, the folder it is called in."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime

from cortex.cli.terminal import now
from cortex.flows.context import Context, EmbedderOf
from cortex.flows.models import embedder_in_force
from cortex.storage.settings import Settings, load_settings

# Off where they could not be rebuilt: what is there is then shown as it is.
checks_projections: ContextVar[bool] = ContextVar("checks_projections", default=True)

_EMBEDDER_OF: ContextVar[EmbedderOf] = ContextVar("embedder_of", default=embedder_in_force)


@contextmanager
def embedding_with(embedder_of: EmbedderOf) -> Iterator[None]:
    """Let the commands called in the block use the model that `embedder_of` gives."""
    token = _EMBEDDER_OF.set(embedder_of)
    try:
        yield
    finally:
        _EMBEDDER_OF.reset(token)


def present(settings: Settings | None = None, clock: Callable[[], datetime] = now) -> Context:
    """Return the context of the command that is running."""
    return Context(
        settings or load_settings(),
        _EMBEDDER_OF.get(),
        clock,
        checks_projections=checks_projections.get(),
    )
