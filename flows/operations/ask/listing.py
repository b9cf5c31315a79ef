"""Looks around in what is published: memories by project, one of them whole, sessions and their outcome."""

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from cortex.flows.context import Context
from cortex.flows.operations.ids import MIN_ID_CHARS, several, typed_id
from cortex.storage.published.catalogue import GLOBAL_LABEL, Catalogue
from cortex.transforms.errors import CortexError, NotFound, UsageError
from cortex.transforms.vocabulary import GLOBAL_SCOPE, MEMORY_TYPES, STATUSES, Row, checked
from cortex.transforms.words.ages import STARTED_BY_PROGRAM, counted

if TYPE_CHECKING:
    from cortex.transforms.memory.reality import Doubt

_LISTED = [
    *("memory_id", "project_id", "memory_type", "status", "text", "confidence", "rank", "is_pinned"),
    *("created_at", "updated_at", "session_count"),
]


# What a session without a typed prompt has in its place: `claude -p` and other programs send theirs.
NO_PROMPT = f"({STARTED_BY_PROGRAM})"


@dataclass(frozen=True)
class Listed:
    """
    Rows of a snapshot, newest first; `total` counts those that a limit left out too.

    `labels` are the projects' names by id, `project_ids` the projects asked about, none for all.
    """

    rows: Sequence[Row]
    total: int
    labels: Mapping[str, str]
    project_ids: Sequence[str]


@dataclass(frozen=True)
class Details:
    """
    A memory or a session with all that is known of it, and what belongs to it: relations or memories.

    `doubt` is what stands against a memory, `uses` and `outcomes` are its rows of these tables, newest first.
    """

    kind: str
    row: Row
    labels: Mapping[str, str]
    others: Sequence[Row]
    doubt: "Doubt | None" = None
    uses: Sequence[Row] = ()
    outcomes: Sequence[Row] = ()


def list_memories(
    context: Context,
    project: str | None = None,
    *,
    all_projects: bool = False,
    memory_type: str | None = None,
    faded: bool = False,
    pinned: bool = False,
    limit: int = 20,
) -> Listed:
    """
    Return memories of the projects called `project`, else the folder's with the global ones, else of all.

    `faded` asks for those that no longer count. Raises UnknownProject, UnknownValue, NotFound.
    """
    catalogue = Catalogue(context.home)
    projects = catalogue.projects()
    ids = projects_meant(context, catalogue, projects, project, all_projects)
    where: dict[str, Sequence[str | bool]] = {
        "status": [status for status in STATUSES if (status == "active") is not faded]
    }
    if ids:
        where["project_id"] = [*ids, GLOBAL_SCOPE]
    if memory_type is not None:
        where["memory_type"] = [checked("memory type", memory_type, MEMORY_TYPES)]
    if pinned:
        where["is_pinned"] = [True]
    order = "updated_at desc, memory_id"
    rows = catalogue.read("memories", _LISTED, where, order=order, limit=limit)
    return Listed(rows, catalogue.count("memories", where), _labels(projects), ids)


def list_sessions(
    context: Context, project: str | None = None, *, all_projects: bool = False, limit: int = 20
) -> Listed:
    """Return sessions with their results, newest first, of the same projects as `list_memories`."""
    catalogue = Catalogue(context.home)
    projects = catalogue.projects()
    ids = projects_meant(context, catalogue, projects, project, all_projects)
    where = {"project_id": ids} if ids else {}
    rows = catalogue.read("sessions", (), where, order="ended_at desc nulls last, session_id", limit=limit)
    return Listed(rows, catalogue.count("sessions", where), _labels(projects), ids)


def session_numbers(context: Context, project_ids: Collection[str]) -> dict[str, int]:
    """Return session id → its number within its project; none that is not published yet."""
    try:
        rows = Catalogue(context.home).read_table("sessions", ["project_id", "session_id", "number"])
    except (CortexError, KeyError):  # an older version published no numbers
        return {}
    return {row["session_id"]: row["number"] for row in rows.to_pylist() if row["project_id"] in project_ids}


def numbers_of(context: Context, **where: Sequence[str]) -> dict[str, int]:
    """Return what `session_numbers` does of the sessions that have these values, without Arrow's start."""
    try:
        rows = Catalogue(context.home).read("sessions", ("session_id", "number"), dict(where))
    except CortexError:  # an older version published no numbers
        return {}
    return {row["session_id"]: row["number"] for row in rows}


def last_sessions(context: Context, project: str | None = None) -> Listed:
    """Return the last session of each project asked about; outside of any, of the 5 last worked on."""
    sessions = list_sessions(context, project, limit=1_000_000)
    last: dict[str, Row] = {}
    for row in sessions.rows:
        last.setdefault(row["project_id"], row)
    return Listed(list(last.values())[:5], len(last), sessions.labels, sessions.project_ids)


def memories_of_session(context: Context, session_id: str) -> list[Row]:
    """Return the memories that rest on a session, in the order they were first said."""
    return Catalogue(context.home).memories_resting_on(session_id)


def memories_named(context: Context, memory_ids: Sequence[str]) -> dict[str, Row]:
    """Return id → memory as it is published; ids of none are left out."""
    if not memory_ids:
        return {}
    rows = Catalogue(context.home).read("memories", (), {"memory_id": memory_ids})
    return {row["memory_id"]: row for row in rows}


def labels_of(context: Context) -> dict[str, str]:
    """Return the names of projects by id, the global scope's too."""
    return _labels(Catalogue(context.home).projects())


def list_known_projects(context: Context) -> list[Row]:
    """Return PROJECTS as they were last published, the one worked on last first."""
    rows = Catalogue(context.home).projects()
    return sorted(rows, key=lambda row: (-_seconds(row), row["label"]))


def show(context: Context, target: str, *, with_others: bool = True, project: str | None = None) -> Details:
    """
    Return the memory or session whose id begins with `target`; what belongs to it is left out on request.

    A number of fewer digits than an id is that of a session of the project called `project`, else of the
    folder's. Raises NotFound, and UsageError for several, which lists them.
    """
    word = typed_id(target)
    if word.isdecimal() and len(word) < MIN_ID_CHARS:
        word = _session_numbered(context, int(word), project)
    if len(word) < MIN_ID_CHARS:
        raise UsageError(f"'{target}' is too short for an id.", f"Give at least {MIN_ID_CHARS} characters.")
    catalogue = Catalogue(context.home)
    labels = _labels(catalogue.projects())
    matches = [
        (kind, name)
        for kind, snapshot, key in (
            ("memory", "memories", "memory_id"),
            ("session", "sessions", "session_id"),
        )
        for name in catalogue.ids_that_begin(snapshot, key, word)
    ]
    if not matches:
        raise NotFound(
            f"no memory or session has an id that begins with '{word}'.",
            "Find it: cortex list, cortex timeline, cortex recall QUESTION",
        )
    if len(set(matches)) > 1:
        raise several(word, "memories or sessions", _texts_of(catalogue, set(matches)))
    kind, name = matches[0]
    if kind == "session":
        row = catalogue.read("sessions", (), {"session_id": [name]}, order="project_id")[0]
        return Details(kind, row, labels, memories_of_session(context, name) if with_others else ())
    [row] = catalogue.read("memories", (), {"memory_id": [name]})
    uses, outcomes = catalogue.uses_of(name), catalogue.outcomes_of([name])
    if not with_others:
        return Details(kind, row, labels, (), uses=uses, outcomes=outcomes)
    others = related(catalogue, name, catalogue.edges_at(name))
    # Only what the last run found doubtful is looked at again: asking a repository takes long.
    is_doubted = catalogue.is_doubted(row["project_id"], name)
    doubt = doubt_about(context, row) if is_doubted else None
    return Details(kind, row, labels, others, doubt, uses, outcomes)


def _session_numbered(context: Context, number: int, project: str | None) -> str:
    """Return the id of the session of this number. Raises UsageError where no project is meant, NotFound."""
    catalogue = Catalogue(context.home)
    projects = catalogue.projects()
    ids = projects_meant(context, catalogue, projects, project, False)
    if not ids:
        raise UsageError(
            f"{number} is the number of a session in each project, and this folder belongs to none.",
            "Name one: cortex show NUMBER --project NAME. Or give 4 or more characters of an id.",
        )
    numbers = numbers_of(context, project_id=ids)
    for session_id, other in numbers.items():
        if other == number:
            return session_id
    label = _labels(projects).get(ids[0], ids[0])
    highest = max(numbers.values(), default=0)
    raise NotFound(
        f"{label} has no session {number}; its sessions are numbered 1 to {highest}."
        if highest
        else f"{label} has no session with a number yet.",
        "List them: cortex timeline",
    )


def doubt_about(context: Context, memory: Row) -> "Doubt | None":
    """Return what the repository of its project says against one memory."""
    # Imported here: asking a repository needs Arrow, and most looks ask none.
    from cortex.flows.operations.lookup import doubts_on

    name = memory["memory_id"]
    return doubts_on(context, context.open_store(), {memory["project_id"]: [name]}).get(name)


@dataclass(frozen=True)
class ProfitAndLoss:
    """
    What came of a memory: sessions that were shown it, used it, cited it, and corrected what it names.

    `briefs`, `prompts` and `recalled` are how often it was told; `contradicted` counts what stands against it
    or took its place.
    """

    sessions: int
    briefs: int
    prompts: int
    used: int
    cited: int
    recalled: int
    corrected: int
    contradicted: int
    last_used_at: datetime | None


def profit_and_loss(memory: Row, uses: Sequence[Row], others: Sequence[Row]) -> ProfitAndLoss:
    """Return what came of a row of MEMORIES with its USES and its relations, as `related` gives them."""
    against = {other["memory_id"] for other in others if other["edge_type"] == "contradicts"}
    against |= {memory[name] for name in ("superseded_by", "closed_by") if memory[name]}
    used = [row["used_at"] for row in uses if row["used_at"]]
    return ProfitAndLoss(
        len(uses),
        sum(row["briefs"] for row in uses),
        sum(row["prompts"] for row in uses),
        len(used),
        sum(row["is_cited"] for row in uses),
        memory["access_count"],
        sum(row["is_corrected"] for row in uses),
        len(against),
        max(used, default=None),
    )


def _texts_of(catalogue: Catalogue, matches: Set[tuple[str, str]]) -> dict[str, str]:
    """Return what each match says, by its id: a memory its text, a session what it was for."""
    ids = {kind: sorted(name for each, name in matches if each == kind) for kind in ("memory", "session")}
    texts: dict[str, str] = {}
    if ids["memory"]:
        rows = catalogue.read("memories", ["memory_id", "text"], {"memory_id": ids["memory"]})
        texts |= {row["memory_id"]: row["text"] for row in rows}
    if ids["session"]:
        columns = ["session_id", "goal", "first_prompt"]
        for row in catalogue.read("sessions", columns, {"session_id": ids["session"]}):
            texts[row["session_id"]] = f"session: {row['goal'] or row['first_prompt'] or NO_PROMPT}"
    return texts


def related(catalogue: Catalogue, memory_id: str, edges: Sequence[Row]) -> list[Row]:
    """Return the other ends of a memory's edges with their texts, the strongest first."""
    rows = sorted(edges, key=lambda row: (-row["strength"], row["edge_id"]))
    ends = sorted({row[end] for row in rows for end in ("source_id", "target_id")})
    others = catalogue.read("memories", ["memory_id", "text"], {"memory_id": ends}) if ends else []
    texts = {row["memory_id"]: row["text"] for row in others}
    related: dict[str, Row] = {}
    for row in rows:
        is_source = row["source_id"] == memory_id
        other = row["target_id"] if is_source else row["source_id"]
        if other in texts:
            related.setdefault(
                other,
                {
                    "edge_type": row["edge_type"],
                    "strength": row["strength"],
                    "is_source": is_source,
                    "memory_id": other,
                    "text": texts[other],
                },
            )
    return list(related.values())


def waiting(context: Context) -> int:
    """Return how many transcripts are staged and not read yet."""
    return Catalogue(context.home).waiting()


def why_nothing(context: Context, project_id: str) -> str:
    """Say why nothing is shown of a project that is known: its memories faded, wait, or there are none."""
    catalogue = Catalogue(context.home)
    if not catalogue.is_filled:
        return (
            "nothing has been read yet: cortex run"
            if catalogue.waiting()
            else "nothing has been read yet: cortex backfill"
        )
    rows = [row for row in catalogue.projects() if row["project_id"] == project_id]
    faded = sum(row["faded"] for row in rows)
    if faded:
        verb = "memory has" if faded == 1 else "memories have"
        return f"its {faded} {verb} faded: cortex list --faded shows them"
    if waiting := catalogue.waiting():
        return f"{counted(waiting, 'transcript')} waiting: cortex run"
    return "its sessions contain nothing to keep"


def projects_meant(
    context: Context, catalogue: Catalogue, projects: Sequence[Row], name: str | None, all_projects: bool
) -> list[str]:
    """
    Return the ids of the projects called `name`, else the folder's; none if all are meant.

    `projects` are the rows of the snapshot. Raises UnknownProject; UsageError for a name and `all_projects`.
    """
    if all_projects and name:
        raise UsageError("--project and --all-projects cannot be combined.", "Give one of them.")
    if all_projects:
        return []
    if name is None:
        here = catalogue.project_at(context.folder) or _clone_at(context)
        return [here] if here else []
    wanted = name.rstrip("/")
    ids = [
        row["project_id"]
        for row in projects
        if wanted in (row["project_id"], row["name"], row["label"], *row["folders"])
    ]
    if len(ids) > 1:
        # Imported here: most looks name no project, and need no register of them.
        from cortex.storage.projects.projects import ambiguous

        raise ambiguous(
            name, {row["project_id"]: row["label"] for row in projects if row["project_id"] in ids}
        )
    return ids or context.open_store().projects.named(name)


def _clone_at(context: Context) -> str | None:
    """Return the project of a repository in a folder never seen, by what git says of it."""
    is_repository = any((folder / ".git").exists() for folder in (context.folder, *context.folder.parents))
    return context.open_store().projects.known(str(context.folder)) if is_repository else None


def _labels(projects: Sequence[Row]) -> dict[str, str]:
    return {GLOBAL_SCOPE: GLOBAL_LABEL, **{row["project_id"]: row["label"] for row in projects}}


def _seconds(row: Row) -> float:
    return row["last_worked_at"].timestamp() if row["last_worked_at"] else 0.0
