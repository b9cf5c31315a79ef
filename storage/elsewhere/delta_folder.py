"""Delta tables outside the store: a copy of what is published, one partition a project."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cortex.transforms.errors import StoreNotWritable, UsageError, install_extra
from cortex.transforms.identity import content_id
from cortex.transforms.schemas import Table

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

PARTITION = "project_id"
# In each commit's metadata, so that what was written and what it was made from are one transaction.
_STATE = "cortex.state"
# Statistics of no other column: Delta's log would keep the first characters of texts after they are erased.
_CONFIGURATION = {"delta.dataSkippingStatsColumns": PARTITION}


@dataclass(frozen=True)
class DeltaState:
    """
    What a Delta table was made from.

    `store` is the store's id, `columns` the digest of its schema, `partitions` the digest of each project's
    rows, `erasures` that of what had been forgotten when older versions were last removed.
    """

    store: str
    columns: str
    partitions: Mapping[str, str] = field(default_factory=dict)
    erasures: str = ""


class DeltaFolder:
    """The Delta tables below a folder or an `s3://` prefix, each named after the table that it shows."""

    def __init__(self, place: str) -> None:
        """Take the place. Raises UsageError without the library, or for a place of another form."""
        try:
            import deltalake
        except ImportError as missing:
            raise UsageError(
                "exporting to Delta needs the library 'deltalake', which is not installed.",
                f"{install_extra('delta')}.",
            ) from missing
        self._library = deltalake
        self.place = _checked(place)

    def state(self, table: Table) -> DeltaState | None:
        """
        Return what a table was made from; None if there is none.

        After a commit of another program the digests are unknown, and so is the store. Raises UsageError for
        a Delta table that Cortex did not make.
        """
        with self._reaching():
            delta = self._open(table)
            if delta is None:
                return None
            if delta.metadata().name != _name(table):
                raise UsageError(
                    f"{self._uri(table)} is a Delta table that Cortex did not make; it was left as it is.",
                    "Name an empty folder, or one that Cortex exported to before.",
                )
            noted = next(iter(delta.history(1)), {}).get(_STATE)
            return DeltaState(**json.loads(noted)) if noted else DeltaState("", "")

    def partitions(self, table: Table) -> set[str]:
        """Return the projects of which the table has rows."""
        with self._reaching():
            delta = self._open(table)
            return {each[PARTITION] for each in delta.partitions()} if delta else set()

    def write(
        self,
        table: Table,
        batches: Iterator[pa.RecordBatch],
        changed: Collection[str] | None,
        state: DeltaState,
    ) -> None:
        """Replace the partitions that `changed`, all of them where it is None, by `batches`: one commit."""
        schema = _commented(table)
        rows = pa.RecordBatchReader.from_batches(schema, (batch.cast(schema) for batch in batches))
        with self._reaching():
            delta = self._open(table) or self._library.DeltaTable.create(
                self._uri(table),
                schema,
                partition_by=[PARTITION],
                name=_name(table),
                configuration=_CONFIGURATION,
                storage_options=_options(self.place),
                commit_properties=self._note(DeltaState(state.store, state.columns)),
            )
            chosen: dict[str, Any] = (
                {"schema_mode": "overwrite"} if changed is None else {"predicate": _predicate(changed)}
            )
            self._library.write_deltalake(
                delta, rows, mode="overwrite", commit_properties=self._note(state), **chosen
            )

    def purge(self, table: Table, state: DeltaState) -> None:
        """Remove the files of all older versions of a table: what was erased is then nowhere in it."""
        with self._reaching():
            delta = self._open(table)
            if delta is not None:
                delta.vacuum(
                    0,
                    dry_run=False,
                    enforce_retention_duration=False,
                    full=True,
                    commit_properties=self._note(state),
                )

    def _open(self, table: Table) -> DeltaTable | None:
        uri, options = self._uri(table), _options(self.place)
        if not self._library.DeltaTable.is_deltatable(uri, options):
            return None
        return self._library.DeltaTable(uri, storage_options=options)

    def _uri(self, table: Table) -> str:
        return f"{self.place}/{table.name}"

    def _note(self, state: DeltaState) -> CommitProperties:
        return self._library.CommitProperties(custom_metadata={_STATE: json.dumps(vars(state))})

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        from deltalake.exceptions import DeltaError

        try:
            yield
        except (DeltaError, OSError) as error:
            reason = " ".join(str(error).split())[:300] or type(error).__name__
            raise StoreNotWritable(
                f"the Delta tables at {self.place} cannot be written ({reason.rstrip('. ')}).",
                "What was committed there is kept. Check the place and its permissions, then run it again.",
            ) from error


def columns_digest(table: Table) -> str:
    """Return what tells a table's columns from those of another version."""
    return content_id("columns", *(str(each) for each in _commented(table)))[:16]


def _commented(table: Table) -> pa.Schema:
    """Return the schema with each meaning where tools that read Delta show it."""
    return pa.schema([each.with_metadata({"comment": table.meaning(each.name)}) for each in table.arrow])


def _checked(place: str) -> str:
    if place.startswith("s3://"):
        return place.rstrip("/")
    folder = Path(place).expanduser().absolute()
    if "://" in place or (folder.exists() and not folder.is_dir()):
        raise UsageError(f"{place} is not a place for Delta tables.", "Name a folder, or s3://BUCKET/PREFIX.")
    return str(folder)


def _options(place: str) -> dict[str, str] | None:
    """Return how to reach the place; credentials, region and endpoint come from AWS's own variables."""
    if not place.startswith("s3://"):
        return None
    import os

    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    return {"aws_region": region} | (
        {"aws_endpoint": endpoint, "allow_http": str(endpoint.startswith("http://")).lower()}
        if endpoint
        else {}
    )


def _name(table: Table) -> str:
    return f"cortex_{table.name}"


def _predicate(names: Collection[str]) -> str:
    quoted = ("'" + name.replace("'", "''") + "'" for name in sorted(names))
    return f"{PARTITION} IN ({', '.join(quoted)})"
