"""The commands that carry memories out of a store and into one: export and import."""

from pathlib import Path

from cortex.cli.memories import open_store, own_scope, scopes_for
from cortex.cli.past import store_as_of
from cortex.cli.present import present
from cortex.cli.terminal import hint, print_json, say, write
from cortex.flows.exchange import ImportResult, export_text, import_memories
from cortex.flows.runs import looking
from cortex.hooks.characters import escaped, visible
from cortex.storage.export_key import read_export_key
from cortex.storage.files import write_where_named, writing_to
from cortex.transforms.errors import NotFound, UsageError


def export(
    file: Path | None, *, form: str, project: str | None, as_of: str | None = None, as_json: bool
) -> None:
    """Write memories as JSON, which an import puts back as they are, or as Markdown, to read and edit."""
    if file is not None and file.is_dir():
        raise UsageError(f"{file} is a folder.", "Name a file in it.")
    store = open_store()
    scopes = scopes_for(store, project) if project else store.tables.scopes()
    run = looking(present()) if as_of is None else store_as_of(as_of, scopes)
    text, count = export_text(run, scopes, form)
    text = escaped(text) if form == "json" else visible(text, keeps_lines=True)
    if form == "json" and read_export_key() is None:
        hint("Not signed, since the key cannot be written: import it with --own, or it counts as external.")
    if file is None:
        write(text)
        return None
    with writing_to(file.parent):
        write_where_named(file, text.encode())
    if as_json:
        return print_json({"file": str(file), "memories": count})
    say(f"{count} memories written to {file}.")
    if form == "markdown":
        hint("Markdown keeps text, type and project of active memories. To keep everything: --format json")
    return None


def import_file(file: Path, *, project: str | None, is_own: bool = False, as_json: bool) -> None:
    """Take in the memories of a file: Cortex's own export, a Markdown list, or another tool's JSON."""
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise NotFound(f"{file} cannot be read: {error.strerror}.", "Check the path.") from error
    store = open_store()
    named = own_scope(store, project) if project is not None else None
    result = import_memories(present(), raw, lambda: own_scope(store, None), project=named, is_own=is_own)
    return print_json(_as_dict(result)) if as_json else _print(result, file)


def _as_dict(result: ImportResult) -> dict[str, object]:
    return {
        "format": result.form,
        "own_export": result.is_own,
        "imported": result.imported,
        "known": result.known,
        "forgotten_before": result.forgotten,
        "unknown_project": result.homeless,
        "unusable": result.unusable,
        "applied": result.applied,
    }


def _print(result: ImportResult, file: Path) -> None:
    counts = [
        f"{result.imported} imported",
        f"{result.known} known already",
        f"{result.unusable} unusable",
    ]
    if result.forgotten:
        counts.append(f"{result.forgotten} forgotten or pruned here before, not brought back")
    say(f"{result.form}: {', '.join(counts)}.")
    if result.homeless:
        hint(
            f"{result.homeless} memories belong to projects that this store does not know and were left out."
            f" To take them in: cortex import {file} --project NAME"
        )
    if not result.applied:
        hint("Another run is writing; this takes effect with the next one.")
    if result.imported and not result.is_own:
        hint("What the file says counts as external: recall finds it, no brief shows it.")
        if result.form == "cortex":
            hint("It is not signed with this user's key. If it is your own export: the same with --own")
