"""What is said of a lake that cannot be read as it is: damaged files, unknown ones, other columns."""

import pyarrow as pa

from cortex.storage.lake.manifest import LakeFile
from cortex.transforms.errors import FileDamaged, LakeUnclear, SchemaMismatch
from cortex.transforms.schemas import VECTORS, Table

# An error message of more names is not read.
UNKNOWN_NAMED = 3


def unclear(unknown: list[str], *, has_manifest: bool) -> LakeUnclear:
    """Return the error that names lake files that the manifest never named."""
    shown = ", ".join(unknown[:UNKNOWN_NAMED]) + (", …" if len(unknown) > UNKNOWN_NAMED else "")
    why = "it may be an older one or that of another store" if has_manifest else "it is missing"
    return LakeUnclear(
        f"runs/manifest.json does not name {len(unknown)} files of the lake ({shown}): {why}. "
        "Nothing was changed.",
        "Restore the manifest that belongs to them (cortex restore FILE), or rebuild it: "
        "cortex rebuild --adopt-lake. To continue without them: cortex rebuild --set-aside",
    )


def damaged(file: LakeFile, why: str) -> FileDamaged:
    """Return the error that names a lake file and what was in it."""
    what = "vectors" if file.table == VECTORS.name else f"the {file.table} of project {file.partition}"
    return FileDamaged(
        f"the lake file {file.path} {why}. It holds {file.rows} rows: {what}.",
        "Copy the file from another copy of the store, or restore a backup (cortex restore FILE). "
        "To continue without it: cortex rebuild --set-aside",
    )


def mismatch(table: Table, schema: pa.Schema) -> SchemaMismatch:
    """Return the error that names the columns of a file that `table` does not have."""
    missing = sorted(set(table.arrow.names) - set(schema.names))
    unexpected = sorted(set(schema.names) - set(table.arrow.names))
    return SchemaMismatch(
        f"table '{table.name}' has another layout: missing {missing}, unexpected {unexpected}.",
        "Install the version of Cortex that wrote it, or run `cortex rebuild` when the lake is intact.",
    )
