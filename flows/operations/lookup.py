"""What the words of a caller mean in a store: a memory by its id, projects by their names."""

import os
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import pyarrow as pa

from cortex.flows.context import Context
from cortex.flows.operations.ids import MIN_ID_CHARS, several, typed_id
from cortex.storage.filesystem.git import state_of
from cortex.storage.projects.projects import Project
from cortex.storage.projects.repository import doubts_of
from cortex.storage.published.catalogue import Catalogue
from cortex.storage.store import Store
from cortex.transforms.errors import NotFound, UnknownProject, UsageError
from cortex.transforms.memory.reality import Doubt
from cortex.transforms.schemas import GLOBAL_SCOPE, Row
from cortex.transforms.views.outcomes import failures
from cortex.transforms.views.review import doubts_left

# A shorter beginning that no id has is a word of a question: 2026, cafe.
SURELY_AN_ID_CHARS = 6
# Claude Code names its session to the programs that it starts.
SESSION_VARIABLE = "CLAUDE_CODE_SESSION_ID"
_SESSION = re.compile(r"[0-9A-Za-z-]{8,64}")
# Of the setting `mcp.projects`.
EVERY_PROJECT = "*"


def session_here() -> str:
    """Return the assistant's session that this process was started by; "" where a person did."""
    session = os.environ.get(SESSION_VARIABLE, "")
    return session if _SESSION.fullmatch(session) else ""


def memory_of(context: Context, store: Store, target: str) -> Row:
    """Return the memory whose id begins with `target`. Raises NotFound; UsageError for several."""
    memory = memory_by_id(context, store, target)
    if memory is None:
        raise NotFound(
            f"Not the id of a memory: '{target}'.",
            f"Give {MIN_ID_CHARS} or more of its first characters; cortex list and recall show ids.",
        )
    return memory


def is_memory_id(target: str) -> bool:
    """Return whether `target` can be the beginning of an id."""
    word = typed_id(target)
    return len(word) >= MIN_ID_CHARS and all(c in "0123456789abcdef" for c in word)


def memory_by_id(context: Context, store: Store, target: str) -> Row | None:
    """
    Return the memory whose id begins with `target`, or None if that is not an id.

    One that was journaled while another run writes is found too: what the tables do not show yet, the lake
    and the journal do. Raises NotFound; UsageError for several.
    """
    if not is_memory_id(target):
        return None
    word, tables = typed_id(target), store.tables
    scopes = filter(context.sees, tables.scopes())
    rows = _begin_with(word, (tables.open(scope, "memories").read() for scope in scopes))
    if not rows:
        # Imported here: only what the tables do not show yet is looked for in the lake, with the stages.
        from cortex.flows.engines.runs import read_only_run

        run = read_only_run(context)
        scopes = filter(context.sees, run.readings.scopes())
        rows = _begin_with(word, (run.readings.memories(scope) for scope in scopes))
    if not rows and (word.isalpha() or len(word) < SURELY_AN_ID_CHARS):  # "facade" is a word too
        return None
    if not rows:
        raise NotFound(f"no memory has an id that begins with '{word}'.", "Find it: cortex recall QUESTION")
    if len(rows) > 1:
        raise several(word, "memories", {name: row["text"] for name, row in rows.items()})
    return next(iter(rows.values()))


def _begin_with(word: str, tables: Iterable[pa.Table]) -> dict[str, Row]:
    import pyarrow.compute as pc  # here: a question needs none of these functions

    matches = (rows.filter(pc.starts_with(rows["memory_id"], word)).to_pylist() for rows in tables)
    return {row["memory_id"]: row for rows in matches for row in rows}


def project_of(context: Context, store: Store, name: str | None) -> str:
    """
    Return the id of the project called `name`, else of the context's folder, which is noted where it is new.

    Raises UnknownProject, and UsageError if the name means several.
    """
    if name is None:
        return store.projects.project_of(str(context.folder), context.now)
    return _named(context, store, name)[0]


def projects_of(context: Context, store: Store, name: str | None) -> list[Project]:
    """Return the projects called `name`, or the folder's, or all where the folder belongs to none."""
    here = store.projects.known(str(context.folder))
    ids = _named(context, store, name) if name else [here] if here else []
    known = [project for project in store.projects.all() if context.sees(project.project_id)]
    if not known:
        if store.staging.list_waiting():
            raise NotFound("transcripts are waiting, and none has been read yet.", "Read it: cortex run")
        raise NotFound("nothing has been remembered yet.", "Begin with: cortex backfill")
    return [project for project in known if project.project_id in ids] or known


def scopes_of(context: Context, store: Store, name: str | None, *, all_projects: bool = False) -> list[str]:
    """
    Return the scopes of a question: the projects called `name`, or the folder's, and the global memories.

    Raises UnknownProject for a name the store has never seen. A folder that belongs to no project gives the
    global scope alone.
    """
    if all_projects and name:
        raise UsageError("--project and --all-projects cannot be combined.", "Give one of them.")
    if all_projects:
        return sorted({*filter(context.sees, store.tables.scopes()), GLOBAL_SCOPE})
    if name is not None:
        return [*_named(context, store, name), GLOBAL_SCOPE]
    here = store.projects.known(str(context.folder))
    return [here, GLOBAL_SCOPE] if here else [GLOBAL_SCOPE]


def is_outside(context: Context, name: str | None, *, all_projects: bool) -> bool:
    """Return whether neither a name nor the folder says which project is meant."""
    if name is not None or all_projects:
        return False
    return context.open_store().projects.known(str(context.folder)) is None


def scopes_in_reach(context: Context) -> frozenset[str] | None:
    """
    Return the scopes that a program in the context's folder may see: its project, what is global, and the
    projects of the setting `mcp.projects`; None for all.
    """
    folders = context.settings.mcp.projects
    if EVERY_PROJECT in folders:
        return None
    register = context.open_store().projects
    places = [context.folder, *(Path(folder).expanduser() for folder in folders)]
    known = (register.known(str(place)) for place in places)
    return frozenset({GLOBAL_SCOPE, *(project_id for project_id in known if project_id)})


def _named(context: Context, store: Store, name: str) -> list[str]:
    """Return the ids of the projects called `name`; a caller who may not see them does not hear of them."""
    if context.visible is None:
        return store.projects.named(name)
    labels = {key: label for key, label in store.projects.labels().items() if context.sees(key)}
    try:
        ids = [key for key in store.projects.named(name) if context.sees(key)]
    except (UnknownProject, UsageError):
        ids = []
    if not ids:
        raise UnknownProject(name, labels.values())
    return ids


# -- What an answer about a project follows from: as long as it is the same, so is the answer.


def state_of_project(context: Context, project_id: str) -> object:
    """
    Return what changes with the store, its settings and policy, the project's repository, and the day.

    The store's part is the manifest's file and the names of the journal's entries that wait: every run and
    every action changes one of them.
    """
    catalogue = context.open_catalogue()
    folders = [path for project in catalogue.project_called(project_id) for path in project.paths]
    return (
        catalogue.state,
        context.settings,
        context.policy.fingerprint,
        state_of(folders),
        context.now.date(),
    )


def doubts_on(context: Context, store: Store, ids: Mapping[str, Collection[str]]) -> dict[str, Doubt]:
    """Return what repositories here and later sessions say against memories, by id; `ids` are by scope."""
    matches: dict[str, Doubt] = {}
    catalogue = Catalogue(context.home)
    for scope in sorted(ids.keys() - {GLOBAL_SCOPE}):
        rows = store.tables.open_index([scope], "memories").read(where={"memory_id": ids[scope]})
        if rows.num_rows and (doubts := doubts_of(store.projects.paths_of(scope), rows, context.policy)):
            matches |= {each.memory_id: each for each in doubts_left(doubts, store.journal.read(scope))}
        # What the last run held against a decision has a mark; most answers have none.
        marked = [name for name in ids[scope] if catalogue.is_doubted(scope, name)]
        if marked and (failed := failures(catalogue.outcomes_of(marked))):
            matches |= {each.memory_id: each for each in doubts_left(failed, store.journal.read(scope))}
    return matches
