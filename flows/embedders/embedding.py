"""The embedding model of a run, and the local model that stands in where the hosted one fails."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cortex.flows.embedders import Embedder, local_or_none
from cortex.storage.model_calls.model_failure import ModelFailure, clear_failure, note_failure
from cortex.transforms.errors import ModelUnavailable


@dataclass
class Embedding:
    """Which model embeds in this run, if any, and what is known of the hosted one."""

    embedder: Embedder | None = None
    is_hosted: bool = False  # by the settings; a model that stands in is local
    is_doubted: bool = False  # the hosted model failed before and is asked again
    failure: ModelFailure | None = None  # of the hosted model that the local one stands in for
    linked_with: str | None = None  # the model whose vectors this run's edges were made of, once they were
    lacks_vectors: bool = False  # the model gave no answer: what is missing is filled by the next run

    @property
    def model(self) -> str:
        """The model's name, empty when there is none."""
        return self.embedder.model if self.embedder else ""

    def spare(self) -> Embedder | None:
        """Return the local model where the hosted one is in use; None if there is no other."""
        spare = local_or_none() if self.is_hosted and self.embedder is not None else None
        return spare if spare is not None and spare.model != self.model else None

    def fall_back(self, error: ModelUnavailable, home: Path, now: datetime) -> None:
        """Go on with the local model where the hosted one failed, and note that; else without vectors."""
        spare = self.spare()
        if spare is None:
            self.lacks_vectors = True
            return
        self.failure = ModelFailure(self.model, now, error.problem)
        note_failure(home, self.failure)
        self.embedder = spare

    def trust(self, home: Path) -> None:
        """Note that the model in use answers; of the one that it stands in for that says nothing."""
        if self.is_doubted and self.failure is None:
            clear_failure(home)
            self.is_doubted = False
