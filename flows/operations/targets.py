"""What the words of a caller mean in a store: a memory by its id, projects by their names."""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.context import Context
from cortex.flows.operations.ids import LEAST_ID_CHARS, several, typed_id
from cortex.storage.projects import Project
from cortex.storage.store import Store
from cortex.transforms.errors import NotFound, UsageError
from cortex.transforms.schemas import GLOBAL_SCOPE, Row

# A shorter beginning that no id has is a word of a question: 2026, cafe.
SURELY_AN_ID_CHARS = 6


def memory_of(context: Context, store: Store, target: str) -> Row:
    """Return the memory whose id begins with `target`. Raises NotFound; UsageError for several."""
    memory = memory_by_id(context, store, target)
    if memory is None:
        raise NotFound(
            f"Not the id of a memory: '{target}'.",
            f"Give {LEAST_ID_CHARS} or more of its first characters; cortex list and recall show ids.",
        )
    return memory


def is_memory_id(target: str) -> bool:
    """Return whether `target` can be the beginning of an id."""
    word = typed_id(target)
    return len(word) >= LEAST_ID_CHARS and all(c in "0123456789abcdef" for c in word)


def memory_by_id(context: Context, store: Store, target: str) -> Row | None:
    """
    Return the memory whose id begins with `target`, or None where that is not an id.

    One that was journaled while another run writes is found too: what the tables do not show yet, the lake
    and the journal do. Raises NotFound; UsageError for several.
    """
    if not is_memory_id(target):
        return None
    word, tables = typed_id(target), store.tables
    rows = _begin_with(word, (tables.open(scope, "memories").read() for scope in tables.scopes()))
    if not rows:
        # Imported here: only what the tables do not show yet is looked for in the lake, with the stages.
        from cortex.flows.runs import looking

        run = looking(context)
        rows = _begin_with(word, (run.readings.memories(scope) for scope in run.readings.scopes()))
    if not rows and (word.isalpha() or len(word) < SURELY_AN_ID_CHARS):  # "facade" is a word too
        return None
    if not rows:
        raise NotFound(f"no memory has an id that begins with '{word}'.", "Find it: cortex recall QUESTION")
    if len(rows) > 1:
        raise several(word, "memories", {name: row["text"] for name, row in rows.items()})
    return next(iter(rows.values()))


def _begin_with(word: str, tables: Iterable[pa.Table]) -> dict[str, Row]:
    matches = (rows.filter(pc.starts_with(rows["memory_id"], word)).to_pylist() for rows in tables)
    return {row["memory_id"]: row for rows in matches for row in rows}


def project_of(context: Context, store: Store, name: str | None) -> str:
    """
    Return the id of the project called `name`, else of the context's folder, which is noted where it is new.

    Raises UnknownProject, and UsageError where the name means several.
    """
    if name is None:
        return store.projects.project_of(str(context.folder), context.now)
    ids = store.projects.named(name)
    if len(ids) > 1:
        raise UsageError(f"{len(ids)} projects are called '{name}'.", f"Name one by id: {', '.join(ids)}.")
    return ids[0]


def projects_of(context: Context, store: Store, name: str | None) -> list[Project]:
    """Return the projects called `name`, or the folder's, or all where the folder belongs to none."""
    here = store.projects.known(str(context.folder))
    ids = store.projects.named(name) if name else [here] if here else []
    known = store.projects.all()
    if not known:
        if store.staging.list_waiting():
            raise NotFound("nothing was read yet of what is waiting.", "Read it: cortex run")
        raise NotFound("nothing was remembered yet.", "Begin with: cortex backfill")
    return [project for project in known if project.project_id in ids] or known


def scopes_of(context: Context, store: Store, name: str | None, *, all_projects: bool = False) -> list[str]:
    """
    Return the scopes of a question: the projects called `name`, or the folder's, and the global memories.

    Raises UnknownProject for a name the store has never seen. A folder that belongs to no project gives the
    global scope alone.
    """
    if all_projects and name:
        raise UsageError("--project and --all-projects exclude each other.", "Give one of them.")
    if all_projects:
        return sorted({*store.tables.scopes(), GLOBAL_SCOPE})
    if name is not None:
        return [*store.projects.named(name), GLOBAL_SCOPE]
    here = store.projects.known(str(context.folder))
    return [here, GLOBAL_SCOPE] if here else [GLOBAL_SCOPE]
