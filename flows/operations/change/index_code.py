"""Keeps what a source file does: a description that is searched, and its code."""

from dataclasses import dataclass
from pathlib import Path

from cortex.flows.context.context import Context
from cortex.flows.operations.change.apply import Applied, apply_now
from cortex.flows.operations.change.repetition import write_once
from cortex.flows.operations.lookup.targets import project_of
from cortex.flows.stages.order import APPLY
from cortex.hooks.prose.plain import without_private
from cortex.storage.store import Store
from cortex.transforms.errors import NotFound, UsageError
from cortex.transforms.journal_entries import Remember
from cortex.transforms.memory.fold import file_memory_id
from cortex.transforms.redaction.redact import redact

# A memory is found by its id and read in one piece; source files of this repository have 40 kB at most.
MAXIMUM_CODE_BYTES = 200_000


@dataclass(frozen=True)
class IndexedCode:
    """A source file that was indexed, by its name in the project, and its two memories."""

    file: str
    code_id: str
    description_id: str
    applied: Applied


def index_code(context: Context, path: Path, description: str, *, project: str | None = None) -> IndexedCode:
    """
    Keep the description of a source file, which is searched, and its code, which is never embedded.

    A file indexed again takes the place of what was kept of it. Raises NotFound for a file that cannot be
    read, UsageError for one that is not UTF-8 text, is empty or larger than 200 kB.
    """
    prose, code = _clean(" ".join(description.split())), _clean(_code_of(path))
    store = context.open_store()
    scope = project_of(context, store, project)
    name = _name_in_project(context, store, scope, path)
    if not prose:
        raise UsageError("the description is empty.", "Say in a few sentences what the file does and why.")
    ids: dict[str, str] = {}
    for memory_type, text, trust in (
        ("code", code, "tool"),
        ("code_description", f"{name}: {prose}", "assistant"),
    ):
        ids[memory_type] = file_memory_id(scope, memory_type, name)
        entry = Remember(text, memory_type, "project", source_type="code_index", trust=trust, files=[name])
        write_once(context, store, entry, scope, ids[memory_type])
    return IndexedCode(name, ids["code"], ids["code_description"], apply_now(context, APPLY))


def _code_of(path: Path) -> str:
    try:
        content = path.read_bytes()
        text = content.decode("utf-8")
    except OSError as error:
        raise NotFound(f"{path} cannot be read: {error.strerror}.", "Check the path.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"Not UTF-8 text: {path}.", "Only source code can be indexed.") from error
    if len(content) > MAXIMUM_CODE_BYTES:
        raise UsageError(
            f"{path} has {len(content):,} bytes, more than {MAXIMUM_CODE_BYTES:,}.",
            "Index its parts instead.",
        )
    if not text.strip():
        raise UsageError(f"{path} is empty.", "There is nothing to index.")
    return text


def _name_in_project(context: Context, store: Store, scope: str, path: Path) -> str:
    """Return the path from the top of its repository on, else from a folder of the project, else whole."""
    place = path.resolve()
    tops = [folder for folder in place.parents if (folder / ".git").exists()]
    if not tops:
        # From the shortest: a session in a subfolder makes that a folder of the project too.
        folders = [*map(Path, store.projects.paths_of(scope)), context.folder]
        folders.sort(key=lambda folder: len(folder.parts))
        tops = [folder for folder in folders if place.is_relative_to(folder)]
    return str(place.relative_to(tops[0]) if tops else place)


def _clean(text: str) -> str:
    return redact(without_private(text))[0].strip()
