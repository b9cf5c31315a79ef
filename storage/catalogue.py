"""What is published of the store as tables, read without opening it: for commands that only look around.

A look takes a third of a second so. Opening the store takes one more: lake, vector store, policy.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from cortex.hooks import brief
from cortex.transforms.errors import NotFound, TablesDamaged

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

_MANIFEST = "runs/manifest.json"

# How what holds in every project is called where projects are listed.
GLOBAL_LABEL = "(global)"


class Catalogue:
    """The snapshots in `<home>/published/`, as the last run left them."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._root = home / "published"

    @property
    def is_filled(self) -> bool:
        """Whether anything was ever committed to the store."""
        return (self._home / _MANIFEST).is_file()

    def read(self, name: str, columns: "Sequence[str]" = ()) -> "pa.Table":
        """
        Return the rows of a snapshot, all columns or those named.

        Raises NotFound for an empty store, TablesDamaged where the snapshot is missing or cannot be read.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self._root / f"{name}.parquet"
        try:
            with pq.ParquetFile(path) as file:
                return file.read(list(columns) or None)
        except FileNotFoundError as error:
            if not self.is_filled:
                raise NotFound("nothing was remembered yet.", "Begin with: cortex backfill") from error
            raise TablesDamaged(f"The published file {path} is gone.") from error
        except (pa.ArrowException, OSError) as error:
            raise TablesDamaged(f"The published file {path} cannot be read.") from error

    def project_at(self, folder: Path) -> str | None:
        """Return the id of the project whose folder this is, or one above it; None for one never seen."""
        try:
            return brief.find_project(str(self._root), [str(folder)])
        except ValueError as error:
            raise TablesDamaged("The published map of projects cannot be read.") from error

    def project_ids(self) -> list[str]:
        """Return the ids of the projects with a known folder, sorted; none where that cannot be read."""
        try:
            known = json.loads((self._root / "projects.json").read_bytes())
            return sorted(set(known.values()))
        except (OSError, ValueError, AttributeError, TypeError):
            return []

    def waiting(self) -> int:
        """Return how many transcripts are staged and not read yet."""
        from cortex.storage.staging import Staging

        return len(Staging(self._home).list_waiting())
