"""The commands about single memories: recall, remember, forget."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cortex.commands.terminal import age_of, hint, now, print_json, say
from cortex.errors import NotFound, StoreBusy, StoreNotWritable, UsageError
from cortex.flows.engines import Stage, run_plain
from cortex.flows.runs import embedder_of, opened
from cortex.flows.stages import FORGET, TOLD
from cortex.recall import Found
from cortex.recall import recall as search
from cortex.settings import load_settings
from cortex.storage.journal import GLOBAL_SCOPE
from cortex.storage.reference import read_policy
from cortex.storage.repository import doubts_of
from cortex.storage.store import Store
from cortex.transforms.fold import memory_id
from cortex.transforms.journal import entry
from cortex.transforms.reality import Doubt
from cortex.transforms.redact import redact
from cortex.transforms.review import doubts_left
from cortex.transforms.schemas import MEMORY_TYPES, checked, values
from cortex.transforms.told import fingerprints_of
from cortex.transforms.turn_text import without_private

# One row of MEMORIES.
Memory = dict[str, Any]

# Shorter beginnings of an id are too easily a word of a question.
SHORTEST_ID = 6


def open_store() -> Store:
    """Return the store at CORTEX_HOME."""
    return Store(load_settings().home)


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
    as_json: bool,
) -> None:
    """
    Search and print; what was found is journaled, which reinforces it at the next run.

    A look at an earlier day (`as_of`) reinforces nothing, and the repository of today has no say in it.
    """
    store = open_store()
    found = _found(store, question, project=project, all_projects=all_projects, limit=limit, as_of=as_of)
    names = {p.project_id: p.name for p in store.projects.all()}
    doubts: dict[str, Doubt] = {}
    if as_of is None:
        _reinforce(store, found)
        doubts = {doubt.memory_id: doubt for doubt in _doubts_about(store, found)}
    if as_json:
        told = [_as_dict(f, rank, names) for rank, f in enumerate(found, start=1)]
        for result in told:
            doubt = doubts.get(str(result["id"]))
            result["doubt"] = doubt.reason if doubt else None
        return print_json({"results": told})
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
    return None


def remember(
    text: str,
    *,
    memory_type: str,
    priority: int,
    is_global: bool,
    pin: bool,
    project: str | None,
    as_json: bool,
) -> None:
    """Journal a fact; it is searchable at once where no other run is writing, else after that run."""
    checked("memory type", memory_type, MEMORY_TYPES)
    fact, _ = redact(without_private(" ".join(text.split())).strip())
    if not fact:
        raise UsageError("there is nothing to remember.", 'Write: cortex remember "the fact"')
    store = open_store()
    scope = GLOBAL_SCOPE if is_global else own_scope(store, project)
    name = memory_id(scope, memory_type, fact)
    payload: dict[str, object] = {
        "text": fact,
        "memory_type": memory_type,
        "category": "global" if is_global else "project",
        "priority": priority,
        "pinned": pin,
        "tags": [],
        "files": [],
    }
    store.journal.write(entry("remember", scope, payload, recorded_at=now(), memory_id=name))
    applied = apply_now(TOLD)
    if as_json:
        return print_json({"id": name, "project": store.projects.name_of(scope), "searchable": applied})
    say(f"Remembered as {name[:12]} ({memory_type}, {store.projects.name_of(scope)}).")
    return None


def forget(target: str, *, project: str | None, yes: bool, as_json: bool) -> None:
    """Forget one memory: by its id, or the best answer to a question after asking."""
    store = open_store()
    memory = _by_id(store, target) or _by_question(store, target, project, yes)
    if memory is None:
        return say("Nothing forgotten.")
    name, known = memory["memory_id"], _known(store)
    payload: dict[str, object] = {"turn_ids": _turns_behind(store, memory)}
    store.journal.write(entry("forget", memory["project_id"], payload, recorded_at=now(), memory_id=name))
    applied = apply_now(FORGET)
    others = sorted(known - _known(open_store()) - {name})
    if as_json:
        return print_json({"id": name, "forgotten": True, "applied": applied, "went_with_it": others})
    say(f"Forgotten: {name[:12]} {_shortened(memory['text'], 80)}")
    if others:
        say(f"{len(others)} more memories rested on the same words and went with it.")
    return hint("The assistant's own transcript lies outside Cortex and is still there; backups too.")


def _known(store: Store) -> set[str]:
    return {
        name
        for scope in store.tables.scopes()
        for name in values(store.tables.open(scope, "memories").read(["memory_id"]), "memory_id")
    }


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
        from cortex.commands.past import store_as_of

        past = store_as_of(as_of, scopes, searchable=True)
        tables, at = past.store.tables, past.now
    return search(
        tables,
        question,
        scopes=scopes,
        policy=read_policy(settings.home),
        embedder=embedder_of(settings),
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
            told: dict[str, object] = {
                "memory_ids": sorted(one.id for one in shown if one.kind == "memory"),
                "told": sorted({mark for one in shown for mark in fingerprints_of(one.text)}),
            }
            store.journal.write(entry("recall", scope, told, recorded_at=at, actor="recall"))
    except StoreNotWritable as error:
        hint(f"Not noted as recalled: {error.problem}")


def memory_named(store: Store, target: str) -> Memory:
    """Return the memory whose id begins with `target`. Raises NotFound; UsageError for several."""
    memory = _by_id(store, target)
    if memory is None:
        raise NotFound(f"'{target}' is no id of a memory.", "Find it: cortex recall QUESTION shows ids.")
    return memory


def _by_id(store: Store, target: str) -> Memory | None:
    """Return the memory whose id begins with `target`, or None where that is no id."""
    word = target.strip().lower()
    if len(word) < SHORTEST_ID or not all(c in "0123456789abcdef" for c in word):
        return None
    rows: list[Memory] = [
        row
        for scope in store.tables.scopes()
        for row in store.tables.open(scope, "memories").read().to_pylist()
        if row["memory_id"].startswith(word)
    ]
    if not rows and word.isalpha():  # "facade" is a word too
        return None
    if not rows:
        raise NotFound(f"no memory has an id that begins with '{word}'.", "Find it: cortex recall QUESTION")
    if len(rows) > 1:
        raise UsageError(f"{len(rows)} memories have ids that begin with '{word}'.", "Give more of the id.")
    return rows[0]


def _by_question(store: Store, question: str, project: str | None, yes: bool) -> Memory | None:
    """Return the memory that best answers `question`; None when the user, asked, says no."""
    found = _found(store, question, project=project, all_projects=False, limit=20)
    best = next((one for one in found if one.kind == "memory"), None)
    if best is None:
        raise NotFound("no memory answers that.", "Name it by its id; `cortex recall` shows ids.")
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(
                f"the best match is {best.id[:12]}: {_shortened(best.text, 100)}",
                f"To forget it: cortex forget {best.id[:12]}, or the same command with --yes.",
            )
        import click

        if not click.confirm(f"Forget {best.id[:12]}: {_shortened(best.text, 100)}?"):
            return None
    return _by_id(store, best.id)


def _turns_behind(store: Store, memory: Memory) -> list[str]:
    """Return the turns that a memory rests on, sorted: those named, and all on the lines of its evidence."""
    places = {(told["file"], line) for told in memory["evidence"] for line in told["lines"]}
    turns = {told["turn_id"] for told in memory["evidence"]}
    for scope in store.tables.scopes():
        for row in store.tables.open(scope, "passages").read(["turn_id", "file", "line"]).to_pylist():
            if (row["file"], row["line"]) in places:
                turns.add(row["turn_id"])
    return sorted(turns)


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
    """Run `stages` now, or leave it to the next run while another one writes; return whether they ran."""
    try:
        with opened("remember", load_settings(), now(), "plain") as run:
            run_plain(stages, run)
    except StoreBusy:
        hint("Another run is writing; this takes effect with the next one.")
        return False
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
    if found.code:
        say(f"    code of {found.code.file}  [{found.code.memory_id[:12]}]")
        for line in found.code.excerpt.splitlines():
            say(f"      | {line}")


def _shortened(text: str, limit: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"
