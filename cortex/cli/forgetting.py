"""The command `forget`: what would go is shown first, and words alone never pick a weak match."""

import sys
from typing import Any

from cortex.cli.memories import Memory, apply_now, is_id, memory_by_id, open_store, scopes_for
from cortex.cli.present import present
from cortex.cli.reading import shortened
from cortex.cli.terminal import hint, now, print_json, say
from cortex.flows.runs import looking
from cortex.flows.stages.order import FORGET
from cortex.storage.reference import read_policy
from cortex.storage.settings import load_settings
from cortex.storage.store import Store
from cortex.transforms.errors import NotFound, UsageError
from cortex.transforms.journal_entries import Forget
from cortex.transforms.memory.forgetting import Sought, doomed_by, pending
from cortex.transforms.memory.joined import own_names
from cortex.transforms.schemas import values
from cortex.transforms.search.naming import Naming, named_by

COLUMNS = ["memory_id", "project_id", "memory_type", "text", "status", "merged_into"]
BY_ID = "`cortex recall` shows ids."


def forget(target: str, *, project: str | None, yes: bool, as_json: bool) -> None:
    """
    Forget one memory: named by its id, or by words that stand in no other.

    Words are never enough to pick a memory that only resembles them: what they may mean is listed. Said again
    after a kill, the command finishes what was begun. Raises NotFound and UsageError, which name ids.
    """
    store = open_store()
    try:
        memory = memory_by_id(store, target) or _by_words(store, target, project, yes)
    except NotFound:
        begun = _begun(store, target)
        if begun is None:
            raise
        return _finish(begun, as_json)
    others = going_with(store, memory)
    if not _agreed(memory, others, is_named=is_id(target), yes=yes):
        return say("Nothing forgotten.")
    if memory["memory_id"] not in {row["memory_id"] for row in pending(store.journal.read())}:
        _journal(store, memory)
    known = _known(store)
    applied = apply_now(FORGET)
    return _print(memory, known - _known(open_store()), applied, as_json)


def going_with(store: Store, memory: Memory) -> list[Memory]:
    """Return the memories that forgetting one touches too: its members, and those that hold its words."""
    wish = Forget().to_row(memory["project_id"], recorded_at=now(), memory_id=memory["memory_id"])
    doomed = doomed_by([wish], store.journal.read())
    sought = Sought.of([memory["text"]])
    rows = [row for row in _rows(store, store.tables.scopes()) if row["memory_id"] != memory["memory_id"]]
    holds = sought.patterns_in([row["text"] for row in rows])
    return [row for row, held in zip(rows, holds, strict=True) if held or row["memory_id"] in doomed]


def _by_words(store: Store, question: str, project: str | None, yes: bool) -> Memory:
    """Return the memory that the words name; with `yes` only where they cannot be mistaken."""
    if store.is_empty and not store.journal.waiting():
        raise NotFound(f"the store at {store.home} is empty.", "Fill it: cortex backfill")
    rows = [
        row
        for row in _rows(store, scopes_for(store, project))
        if row["status"] != "pruned" and row["merged_into"] is None
    ]
    naming = named_by(question, rows, read_policy(load_settings().home))
    if not naming.exact:
        raise NotFound(
            "no memory holds all of these words." + _listed("Nearest", naming.nearest),
            f"Nothing was forgotten. Name one by its id: cortex forget ID; {BY_ID}",
        )
    is_asked = sys.stdin.isatty() and not yes and len(naming.exact) == 1
    if not (is_asked or (yes and naming.is_clear)):
        raise _unclear(naming, yes)
    memory = memory_by_id(store, naming.exact[0]["memory_id"])
    assert memory is not None
    return memory


def _unclear(naming: Naming, yes: bool) -> UsageError:
    first = naming.exact[0]["memory_id"][:12]
    if naming.is_clear:
        problem = "these words name one memory." + _listed("It is", naming.exact)
        return UsageError(problem, f"To forget it: cortex forget {first}, or the same command with --yes.")
    problem = "these words could mean more than one memory." if yes else "name the memory that is meant."
    rows = dict.fromkeys(row["memory_id"] for row in (*naming.exact, *naming.nearest))
    known = {row["memory_id"]: row for row in (*naming.exact, *naming.nearest)}
    return UsageError(
        problem + _listed("They stand in", tuple(known[name] for name in rows)),
        f"Nothing was forgotten. Give an id, such as: cortex forget {first}",
    )


def _listed(label: str, rows: tuple[Memory, ...]) -> str:
    lines = [f"\n    {row['memory_id'][:12]}  {shortened(row['text'])}" for row in rows]
    return f" {label}:{''.join(lines)}" if lines else ""


def _agreed(memory: Memory, others: list[Memory], *, is_named: bool, yes: bool) -> bool:
    """Show what would go; ask where a person can answer and the id alone does not say it all."""
    if yes or not sys.stdin.isatty() or (is_named and not others):
        return True
    import click

    say(f"This goes for good: {memory['memory_id'][:12]}  {shortened(memory['text'])}")
    for row in others:
        say(f"  and its words in: {row['memory_id'][:12]}  {shortened(row['text'])}")
    return click.confirm("Forget it?")


def _journal(store: Store, memory: Memory) -> None:
    """Journal the wish under each name that the memory has: projects that were merged may be split again."""
    run, scope, name = looking(present()), memory["project_id"], memory["memory_id"]
    wish = Forget(turn_ids=_turns_behind(store, memory))
    names = own_names(run.readings.events(scope), run.readings.journal(scope), run.policy, scope, name)
    for project_id, own in (
        *names,
        (scope, name),
    ):  # the name that was given last: it says that all are noted
        store.journal.write(wish.to_row(project_id, recorded_at=now(), memory_id=own))


def _begun(store: Store, target: str) -> str | None:
    """Return the id of a memory that was to be forgotten before, if `target` begins one."""
    word = target.strip().lower()
    names = {
        row["memory_id"]
        for row in store.journal.read().to_pylist()
        if row["kind"] == "forget" and row["memory_id"] and row["memory_id"].startswith(word)
    }
    return names.pop() if is_id(target) and len(names) == 1 else None


def _finish(name: str, as_json: bool) -> None:
    applied = apply_now(FORGET)
    if as_json:
        return print_json({"id": name, "forgotten": True, "applied": applied, "went_with_it": []})
    return say(f"Forgotten already: {name[:12]}. What was left to erase is erased now.")


def _print(memory: Memory, gone: set[str], applied: bool, as_json: bool) -> None:
    name = memory["memory_id"]
    others = sorted(gone - {name})
    if as_json:
        return print_json({"id": name, "forgotten": True, "applied": applied, "went_with_it": others})
    say(f"Forgotten: {name[:12]} {shortened(memory['text'])}")
    if others:
        say(f"With it, for the same words: {', '.join(other[:12] for other in others)}.")
    return hint("The assistant's own transcript is stored outside Cortex and is still there; backups too.")


def _rows(store: Store, scopes: list[str]) -> list[dict[str, Any]]:
    return [row for scope in scopes for row in store.tables.open(scope, "memories").read(COLUMNS).to_pylist()]


def _known(store: Store) -> set[str]:
    return {
        name
        for scope in store.tables.scopes()
        for name in values(store.tables.open(scope, "memories").read(["memory_id"]), "memory_id")
    }


def _turns_behind(store: Store, memory: Memory) -> list[str]:
    """Return the turns that a memory rests on, sorted: those named, and all on the lines of its evidence."""
    places = {(place["file"], line) for place in memory["evidence"] for line in place["lines"]}
    turns = {place["turn_id"] for place in memory["evidence"]}
    for scope in store.tables.scopes():
        for row in store.tables.open(scope, "passages").read(["turn_id", "file", "line"]).to_pylist():
            if (row["file"], row["line"]) in places:
                turns.add(row["turn_id"])
    return sorted(turns)
