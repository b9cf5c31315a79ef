"""The embedding model of a run, and what it gave no vectors for."""

from dataclasses import dataclass, field

from cortex.flows.embedders import Embedder

# Joins the model in fingerprints of what was made while vectors were missing: with them it is made again.
INCOMPLETE = ", incomplete"


@dataclass
class Embedding:
    """Which model embeds in this run, if any, and the scopes of which memories lack its vectors."""

    embedder: Embedder | None = None
    is_asked: bool = True  # off in a look at what there is: nothing is embedded then
    incomplete: set[str] = field(default_factory=set)
    is_unanswered: bool = False  # the model gave no answer: words alone find what has no vector

    @property
    def model(self) -> str:
        """The model's name, empty when there is none."""
        return self.embedder.model if self.embedder else ""

    @property
    def asked(self) -> Embedder | None:
        """The model to ask for vectors; None where nothing is embedded."""
        return self.embedder if self.is_asked else None

    def basis(self, scope: str) -> str:
        """Return what a scope's edges and memories follow from: the model, and whether vectors lack."""
        return self.model + (INCOMPLETE if scope in self.incomplete else "")
