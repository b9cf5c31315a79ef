"""The commands about single memories: recall, forget."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cortex.cli.present import present
from cortex.cli.related import related_to
from cortex.cli.terminal import age_of, hint, now, print_json, say
from cortex.flows.engines import run_plain
from cortex.flows.models import model_for
from cortex.flows.recall import Found, with_replaced
from cortex.flows.recall import recall as search
from cortex.flows.runs import looking, opened
from cortex.flows.stages.stage import Stage
from cortex.storage.reference import read_policy
from cortex.storage.repository import doubts_of
from cortex.storage.settings import load_settings
from cortex.storage.store import Store
from cortex.transforms.errors import (
    EmptyQuestion,
    LossRefused,
    NotFound,
    StoreBusy,
    StoreNotWritable,
    UsageError,
)
from cortex.transforms.extract.echoes import fingerprints_of
from cortex.transforms.journal_entries import Recall
from cortex.transforms.memory.reality import Doubt
from cortex.transforms.memory.review import doubts_left
from cortex.transforms.schemas import GLOBAL_SCOPE
from cortex.transforms.search.index_text import query_terms

# One row of MEMORIES.
Memory = dict[str, Any]

# Shorter beginnings of an id are too easily a word of a question.
SHORTEST_ID = 6


def open_store() -> Store:
    """Return the store of the command that is running, as `Context.open_store` gives it."""
    return present().open_store()


def scopes_for(store: Store, project: str | None, *, all_projects: bool = False) -> list[str]:
    """
    Return the scopes a question is asked of: the named or present project and the global memories.

    Raises UnknownProject for a name the store has never seen. An unnamed, unseen folder gives the global
    scope alone.
    """
    if all_projects and project:
        raise UsageError("--project and --all-projects exclude each other.", "Give one of them.")
    if all_projects:
        return sorted({*store.tables.scopes(), GLOBAL_SCOPE})
    if project is not None:
        return [*store.projects.named(project), GLOBAL_SCOPE]
    here = store.projects.known(str(Path.cwd()))
    return [here, GLOBAL_SCOPE] if here else [GLOBAL_SCOPE]


def recall(
    question: str,
    *,
    project: str | None,
    all_projects: bool,
    limit: int,
    as_of: str | None = None,
    related: int = 0,
    as_json: bool,
) -> None:
    """
    Search and print; what was found is journaled, which reinforces it at the next run. Memories within
    `related` edges of those found follow them, and are not reinforced.

    A look at an earlier day (`as_of`) reinforces nothing, and the repository of today has no say in it.
    """
    store = open_store()
    if not query_terms(question, read_policy(load_settings().home)):
        raise EmptyQuestion("there is no word to search for.", 'Ask: cortex recall "which database"')
    found = _found(store, question, project=project, all_projects=all_projects, limit=limit, as_of=as_of)
    if as_of is None:
        found = with_replaced(store.tables, found)
    names = {p.project_id: p.name for p in store.projects.all()}
    doubts: dict[str, Doubt] = {}
    if as_of is None:
        _reinforce(store, found)
        doubts = {doubt.memory_id: doubt for doubt in _doubts_about(store, found)}
    near = related_to(found, store.tables, depth=related) if related and as_of is None else []
    if as_json:
        told = [_as_dict(f, rank, names) for rank, f in enumerate(found, start=1)]
        for result in told:
            doubt = doubts.get(str(result["id"]))
            result["doubt"] = doubt.reason if doubt else None
        also = {"related": [asdict(memory) for memory in near]} if related else {}
        return print_json({"results": told, **also})
    if not found:
        where = (
            "any project" if all_projects else f"project '{project}'" if project else "this folder's project"
        )
        hint(
            f"Nothing found in {where}." + ("" if all_projects else " Search everywhere with --all-projects.")
        )
        return None
    for rank, one in enumerate(found, start=1):
        _print_found(rank, one, names)
        if one.id in doubts:
            say(f"    {doubts[one.id].mark}: {doubts[one.id].reason}")
    if near:
        say("Related:")
    for one_near in near:
        say(f"    {one_near.memory_type}  {_shortened(one_near.text, 200)}  [{one_near.memory_id[:12]}]")
    return None


def _found(
    store: Store,
    question: str,
    *,
    project: str | None,
    all_projects: bool,
    limit: int,
    as_of: str | None = None,
) -> list[Found]:
    settings = load_settings()
    if store.is_empty and not store.journal.waiting():
        raise NotFound(f"the store at {settings.home} is empty.", "Fill it: cortex backfill")
    scopes = scopes_for(store, project, all_projects=all_projects)
    tables, at = store.tables, now()
    if as_of is not None:
        from cortex.cli.past import store_as_of

        past = store_as_of(as_of, scopes, searchable=True)
        tables, at = past.store.tables, past.now
    embedder, searched = model_for(question, present(settings), store, tables)
    return search(
        searched,
        question,
        scopes=scopes,
        policy=read_policy(settings.home),
        embedder=embedder,
        limit=limit,
        now=at,
    )


def _doubts_about(store: Store, found: list[Found]) -> Iterator[Doubt]:
    """Yield what the repositories on this machine have against the memories found (spec 11.3)."""
    policy = read_policy(load_settings().home)
    for scope in sorted({one.project_id for one in found if one.kind == "memory"} - {GLOBAL_SCOPE}):
        ids = [one.id for one in found if one.project_id == scope]
        memories = store.tables.open(scope, "memories").read()
        mine = memories.filter(pc.is_in(memories["memory_id"], pa.array(ids, pa.string())))
        doubts = doubts_of(store.projects.paths_of(scope), mine, policy)
        yield from doubts_left(doubts, store.journal.read(scope))


def _reinforce(store: Store, found: list[Found]) -> None:
    """Journal what was recalled and told by it; a store that cannot be written still answers."""
    recalled: dict[str, list[Found]] = {}
    for one in found:
        recalled.setdefault(one.project_id, []).append(one)
    at = now()
    try:
        for scope, shown in recalled.items():
            entry = Recall(
                sorted(one.id for one in shown if one.kind == "memory"),
                sorted({mark for text in _texts_of(shown) for mark in fingerprints_of(text)}),
            )
            store.journal.write(entry.to_row(scope, recorded_at=at, actor="recall"))
    except StoreNotWritable as error:
        hint(f"Not noted as recalled: {error.problem}")


def _texts_of(shown: list[Found]) -> list[str]:
    return [text for one in shown for text in (one.text, *(old.text for old in one.replaces))]


def memory_named(store: Store, target: str) -> Memory:
    """Return the memory whose id begins with `target`. Raises NotFound; UsageError for several."""
    memory = memory_by_id(store, target)
    if memory is None:
        raise NotFound(f"Not the id of a memory: '{target}'.", "Find it: cortex recall QUESTION shows ids.")
    return memory


def is_id(target: str) -> bool:
    """Return whether `target` can be the beginning of an id."""
    word = target.strip().lower()
    return len(word) >= SHORTEST_ID and all(c in "0123456789abcdef" for c in word)


def memory_by_id(store: Store, target: str) -> Memory | None:
    """
    Return the memory whose id begins with `target`, or None where that is not an id.

    One that was journaled while another run writes is found too: what the tables do not show yet, the lake
    and the journal say. Raises NotFound; UsageError for several.
    """
    if not is_id(target):
        return None
    word = target.strip().lower()
    rows = _begin_with(word, (store.tables.open(s, "memories").read() for s in store.tables.scopes()))
    if not rows:
        run = looking(present())
        rows = _begin_with(word, (run.readings.memories(scope) for scope in run.readings.scopes()))
    if not rows and word.isalpha():  # "facade" is a word too
        return None
    if not rows:
        raise NotFound(f"no memory has an id that begins with '{word}'.", "Find it: cortex recall QUESTION")
    if len(rows) > 1:
        raise UsageError(f"{len(rows)} memories have ids that begin with '{word}'.", "Give more of the id.")
    return next(iter(rows.values()))


def _begin_with(word: str, tables: Iterable[pa.Table]) -> dict[str, Memory]:
    found = (rows.filter(pc.starts_with(rows["memory_id"], word)).to_pylist() for rows in tables)
    return {row["memory_id"]: row for rows in found for row in rows}


def own_scope(store: Store, project: str | None) -> str:
    """Return the one project that is named, else this folder's, which is noted where it is new."""
    if project is None:
        return store.projects.project_of(str(Path.cwd()), now())
    scopes = store.projects.named(project)
    if len(scopes) > 1:
        raise UsageError(
            f"{len(scopes)} projects are called '{project}'.", f"Name one by id: {', '.join(scopes)}."
        )
    return scopes[0]


def apply_now(stages: Sequence[Stage]) -> bool:
    """
    Run `stages` now; return whether what was journaled acts.

    Where another run writes it waits for the next one, where a loss waits for a person it waits for that.
    """
    run = None
    try:
        with opened("remember", present()) as run:
            run_plain(stages, run)
    except StoreBusy:
        hint("Another run is writing; this takes effect with the next one.")
        return False
    except LossRefused as error:
        is_in_tables = run is not None and run.outcome.refused is error  # only briefs were held back
        kept = (
            "In effect, but not in every brief yet"
            if is_in_tables
            else "Kept; takes effect once the loss is decided"
        )
        hint(f"{kept}: {error}")
        return is_in_tables
    return True


def _as_dict(found: Found, rank: int, names: dict[str, str]) -> dict[str, object]:
    return {
        "id": found.id,
        "rank": rank,
        "score": round(found.score, 6),
        "kind": found.kind,
        "memory_type": found.memory_type,
        "text": found.text,
        "project": names.get(found.project_id, found.project_id),
        "project_id": found.project_id,
        "confidence": found.confidence,
        "trust": found.trust,
        "status": found.status,
        "created_at": found.created_at.isoformat() if found.created_at else None,
        "evidence": [
            {"session": e.session_id, "file": e.file, "lines": list(e.lines)} for e in found.evidence
        ],
        "code": asdict(found.code) if found.code else None,
        "replaces": [{"id": old.memory_id, "text": old.text} for old in found.replaces],
    }


def _print_found(rank: int, found: Found, names: dict[str, str]) -> None:
    kind = found.memory_type or "said"
    sure = f", sure {found.confidence:.2f}" if found.confidence is not None else ""
    project = names.get(found.project_id, found.project_id)
    say(f"{rank:>2}. {_shortened(found.text, 400)}")
    age = age_of(found.created_at, now())
    say(f"    {kind}, {project}, {age} old{sure}, {found.trust}  [{found.id[:12]}]")
    if found.evidence:
        first = found.evidence[0]
        more = f" and {len(found.evidence) - 1} more" if len(found.evidence) > 1 else ""
        say(f"    session {first.session_id[:8]}, {first.file}:{','.join(map(str, first.lines[:5]))}{more}")
    for old in found.replaces:
        say(f"    in the place of: {_shortened(old.text, 200)}  [{old.memory_id[:12]}]")
    if found.code:
        say(f"    code of {found.code.file}  [{found.code.memory_id[:12]}]")
        for line in found.code.excerpt.splitlines():
            say(f"      | {line}")


def _shortened(text: str, limit: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"
