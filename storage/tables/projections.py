"""Whether what runs noted as made is there: a look at folders, which opens no table."""

from pathlib import Path

from cortex.storage.lake.notes import REPLACED_BY, ManifestNotes, Output
from cortex.storage.tables.search_file import SEARCH_FILE, has_part, parts_in
from cortex.transforms.errors import TablesDamaged

# Stages whose output is a table of each scope, and that table.
TABLE_OF = {"embed": "passages", "link": "edges", "decay": "memories"}

# The published database and its counts, made of all scopes.
DATABASE = Output("publish", "all")

DATABASE_FILE = "published/memory.duckdb"


def has_dataset(tables: Path, scope: str, name: str) -> bool:
    """Return whether a scope has a dataset; one without rows may never have been written."""
    # A folder without a version is what a kill or a full disk left of the first write.
    return any((tables / scope / f"{name}.lance" / "_versions").glob("*.manifest"))


def published_brief(home: Path, project_id: str) -> str:
    """Return the published brief of a project; empty when there is none."""
    try:
        return (home / "published" / project_id / "brief.md").read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError):  # damaged from outside: the next run makes it again
        return ""


def is_output_there(home: Path, output: Output) -> bool:
    """Return whether what a stage made for a scope is on disk."""
    if output.stage in TABLE_OF:
        tables, name = home / "tables", TABLE_OF[output.stage]
        return has_dataset(tables, output.scope, name) and has_part(tables / SEARCH_FILE, output.scope, name)
    return output.stage != "render" or bool(published_brief(home, output.scope))


def _is_there(home: Path, output: Output, indexed: set[tuple[str, str]]) -> bool:
    if output.stage not in TABLE_OF:
        return is_output_there(home, output)
    name = TABLE_OF[output.stage]
    return has_dataset(home / "tables", output.scope, name) and (output.scope, name) in indexed


def has_output(home: Path, notes: ManifestNotes, output: Output) -> bool:
    """Return whether what a stage noted as made is there, or was nothing to begin with."""
    inputs = notes.outputs.get(output)
    return is_output_there(home, output) or (inputs is not None and notes.empty.get(output) == inputs)


def check_projections(home: Path, notes: ManifestNotes) -> None:
    """Raise TablesDamaged where tables or published files are gone that a run noted as made."""
    # One look for all: of 1,000 projects each by itself would take a second.
    indexed = parts_in(home / "tables" / SEARCH_FILE)
    gone = sorted(
        output.scope
        for output, inputs in notes.outputs.items()
        if output.stage in REPLACED_BY
        and notes.empty.get(output) != inputs
        and not _is_there(home, output, indexed)
    )
    if gone:
        raise TablesDamaged(f"Tables or published files of {', '.join(dict.fromkeys(gone))} are gone.")
    if DATABASE in notes.outputs and not (home / DATABASE_FILE).is_file():
        raise TablesDamaged(f"{home / DATABASE_FILE} is gone.")
