"""What an operation is given: the settings, the embedding model, the clock, the folder it is asked from."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Union

from cortex.storage.settings.settings import Settings, load_settings

if TYPE_CHECKING:
    from cortex.flows.embedders import Embedder
    from cortex.storage.published.catalogue import Catalogue
    from cortex.storage.store import Store
    from cortex.transforms.policy import Policy

# A command that only looks at what is published needs neither store nor model: they are imported where they
# are used, which takes a second.
EmbedderOf = Callable[[Settings], Union["Embedder", None]]


def model_in_force(settings: Settings) -> "Embedder | None":
    """Return the embedding model to use; see `embedders.embedder_in_force`."""
    from cortex.flows import embedders

    return embedders.embedder_in_force(settings)


def utc_now() -> datetime:
    """Return the present instant."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class Context:
    """
    Where and when an operation happens.

    `embedder_of` gives the embedding model for the settings, or None for search by words alone; `clock` gives
    the present instant (UTC); `folder` is the one whose project is meant if none is named; `visible` holds
    the scopes that the caller may see and change, None for all.
    """

    settings: Settings = field(default_factory=load_settings)
    embedder_of: EmbedderOf = model_in_force
    clock: Callable[[], datetime] = utc_now
    folder: Path = field(default_factory=Path.cwd)
    visible: frozenset[str] | None = None
    checks_projections: bool = True  # off if they cannot be rebuilt: what is there is then shown as it is
    # Told what each answer of a language model cost [US dollars], once it is kept.
    note_cost: Callable[[float], object] = lambda usd: None
    # Tables that a query of the caller finds empty.
    hidden_tables: frozenset[str] = frozenset()

    @property
    def home(self) -> Path:
        """The store's folder."""
        return self.settings.home

    def sees(self, scope: str) -> bool:
        """Return whether the caller may see a scope: a project id or `global`."""
        return self.visible is None or scope in self.visible

    @property
    def now(self) -> datetime:
        """The present instant."""
        return self.clock()

    @property
    def policy(self) -> "Policy":
        """The policy in force: the tables of the package, changed by those of the store."""
        from cortex.storage.settings.reference import read_policy

        return read_policy(self.home)

    def embedder(self) -> "Embedder | None":
        """Return the embedding model to use; None if there is none."""
        return self.embedder_of(self.settings)

    def open_catalogue(self) -> "Catalogue":
        """
        Return what is published, for a look around that opens neither lake nor tables.

        Raises as `open_store`, and KeyUnavailable if the lake is sealed and its key is unavailable.
        """
        from cortex.storage.copies.swapping import finish_swap
        from cortex.storage.published.catalogue import Catalogue
        from cortex.storage.tables.search_file import check_projections

        finish_swap(self.home)
        self._bring_in_step()
        catalogue = Catalogue(self.home)
        if not catalogue.is_filled or catalogue.manifest.notes.encrypted_with:
            self.open_store().lake.check_key()
        elif self.checks_projections:
            check_projections(self.home, catalogue.manifest.notes)
        return catalogue

    def open_store(self) -> "Store":
        """
        Return the store; a restore that was killed while it was put in place is finished first.

        Raises LakeUnclear for a lake without its manifest, TablesDamaged if what is made from it is gone.
        """
        from cortex.storage.copies.swapping import finish_swap
        from cortex.storage.store import Store

        finish_swap(self.home)
        self._bring_in_step()
        store = Store(self.home)
        if store.is_empty:
            store.lake.check_belongs()
        if self.checks_projections:
            store.check_projections()
        return store

    def _bring_in_step(self) -> None:
        """Take in what other machines wrote to a store elsewhere, where this folder is a copy of one."""
        from cortex.storage.filesystem.place import is_copy

        if is_copy(self.home):
            from cortex.storage.remote.store_copy import refresh

            refresh(self.home)
