"""The commands about memory as a whole: reset, checkpoint, consolidate, backup, restore, export, import."""

import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from cortex.cli.memories import apply_now, open_store
from cortex.cli.present import present
from cortex.cli.terminal import hint, now, print_json, say, size_of
from cortex.flows.engines import run_plain
from cortex.flows.runs import looking, opened
from cortex.flows.stages.order import APPLY, CONSOLIDATE, FORGET
from cortex.storage.backup import Backup, write_backup
from cortex.storage.reference import read_policy
from cortex.storage.restore import restore_backup
from cortex.storage.settings import load_settings
from cortex.storage.store import Store
from cortex.storage.swapping import set_aside
from cortex.transforms.errors import NotFound, UsageError
from cortex.transforms.journal_entries import Checkpoint, Forget, Merge, Unmerge, entries_in, from_row
from cortex.transforms.memory.consolidate import propose, to_undo
from cortex.transforms.memory.forgetting import pending, tombstones_of
from cortex.transforms.schemas import GLOBAL_SCOPE, JOURNAL, TURNS, VECTORS

# Shorter beginnings of a session's id could mean several.
SHORTEST_SESSION = 6


def forget_session(session: str, *, as_json: bool) -> None:
    """
    Forget all that one session said, by its id or the beginning of it.

    Said again after a kill, it finishes what was begun.
    """
    store = open_store()
    session_id, scopes = _session(store, session)
    wanted = _pending(store, session_id)
    for scope in sorted(scopes - wanted):
        wish = Forget(session_ids=[session_id])
        store.journal.write(wish.to_row(scope, recorded_at=now()))
    applied = apply_now(FORGET)
    if as_json:
        return print_json({"session": session_id, "forgotten": True, "applied": applied})
    say(f"Forgotten: session {session_id}, its turns, and what was learnt from them alone.")
    return hint("The assistant's own transcript of it is stored outside Cortex and is still there.")


def _session(store: Store, session: str) -> tuple[str, set[str]]:
    """Return the session's whole id and the projects that hold it; none for one forgotten before."""
    rows = store.lake.read(TURNS, columns=["session_id", "project_id"]).group_by(["session_id", "project_id"])
    known: dict[str, set[str]] = {name: set() for name in store.journal.forgotten_sessions()}
    for row in rows.aggregate([]).to_pylist():
        known.setdefault(row["session_id"], set()).add(row["project_id"])
    names = sorted(name for name in known if name.startswith(session))
    if not names or len(session) < SHORTEST_SESSION:
        raise NotFound(
            f"no session has an id that begins with '{session}'.",
            "`cortex recall` shows the session of each answer; give at least 6 characters.",
        )
    if len(names) > 1:
        raise UsageError(f"{len(names)} sessions begin with '{session}'.", "Give more of the id.")
    return names[0], known[names[0]]


def _pending(store: Store, session_id: str) -> set[str]:
    """Return the projects in which a session is to be forgotten already, by a wish that waits."""
    wishes = entries_in(JOURNAL.of(pending(store.journal.read())), Forget)
    return {row["project_id"] for row, wish in wishes if session_id in (wish.session_ids or ())}


def reset(project: str, *, yes: bool, as_json: bool) -> None:
    """Forget everything about a project up to now, after asking; given again, finish what was begun."""
    store = open_store()
    scopes = [part for name in store.projects.named(project) for part in store.projects.parts_of(name)]
    turns = sum(store.lake.read(TURNS, scope, columns=["turn_id"]).num_rows for scope in scopes)
    memories = sum(store.tables.open(scope, "memories").count() for scope in scopes)
    if not yes:
        loss = f"forgets {memories} memories and {turns} turns of {', '.join(scopes)} for good"
        if not sys.stdin.isatty():
            raise UsageError(f"this {loss}.", "If that is meant: the same command with --yes.")
        import click

        if not click.confirm(f"This {loss}. Go on?"):
            return say("Nothing forgotten.")
    for scope in scopes:
        if not _is_reset(store, scope):
            store.journal.write(Forget(everything=True).to_row(scope, recorded_at=now()))
    applied = apply_now(FORGET)
    if as_json:
        return print_json({"projects": scopes, "memories": memories, "turns": turns, "applied": applied})
    say(f"Forgotten: {memories} memories and {turns} turns of {', '.join(scopes)}.")
    return hint("The assistant's own transcripts are stored outside Cortex and are still there; backups too.")


def _is_reset(store: Store, scope: str) -> bool:
    """Return whether a project is to be reset already, and nothing came in since."""
    until = tombstones_of(store.journal.read(scope)).projects.get(scope)
    if until is None:
        return False
    said = store.lake.read(TURNS, scope, columns=["said_at"])["said_at"]
    journal = store.journal.read(scope).to_pylist()
    is_newer = any(row["recorded_at"] > until for row in journal if row["kind"] not in ("forget", "project"))
    return not is_newer and not (len(said) and (pc.max(said).as_py() or until) > until)


def checkpoint(name: str, *, as_json: bool) -> None:
    """Give this moment a name that `consolidate --undo --to NAME` goes back to."""
    store = open_store()
    at = now()
    store.journal.write(Checkpoint(name).to_row(GLOBAL_SCOPE, recorded_at=at))
    if as_json:
        return print_json({"checkpoint": name, "at": at.isoformat()})
    return say(f"Checkpoint '{name}'. Back to it: cortex consolidate --undo --to '{name}'")


def consolidate(*, as_json: bool) -> None:
    """Merge what says the same in every scope."""
    before = {row["memory_id"] for row in _merges(open_store())}
    apply_now(CONSOLIDATE)
    made = [row for row in _merges(open_store()) if row["memory_id"] not in before]
    if as_json:
        return print_json({"merged": [_merge_as_dict(row) for row in made]})
    for row in made:
        _print_merge(row)
    return say(f"{len(made)} merges." + (" Take them back: cortex consolidate --undo" if made else ""))


def propose_merges(*, as_json: bool) -> None:
    """Show what a consolidation would merge, and change nothing."""
    settings = load_settings()
    store, policy, embedder = Store(settings.home), read_policy(settings.home), present(settings).embedder()
    vectors = store.lake.read(VECTORS, embedder.model) if embedder else VECTORS.empty()
    model = embedder.model if embedder else ""
    proposed: list[dict[str, Any]] = []
    for scope in store.tables.scopes():
        memories = store.tables.open(scope, "memories").read()
        texts = dict(zip(memories["memory_id"].to_pylist(), memories["text"].to_pylist(), strict=True))
        undone = looking(present(settings)).readings.journal_in_one(scope)
        for row in propose(memories, vectors, policy, model, now(), undone=undone).to_pylist():
            told = _merge_as_dict(row)
            proposed.append({**told, "texts": [texts[name] for name in told["members"]]})
    if as_json:
        return print_json({"proposals": proposed})
    for told in proposed:
        say(f"{told['project_id']}: {len(told['members'])} become one: {told['text']}")
        for text in told["texts"]:
            say(f"    - {text}")
    return say(f"{len(proposed)} merges proposed; nothing is changed.")


def undo(name: str | None, *, as_json: bool) -> None:
    """Take back the last consolidation, or all since a checkpoint, by entries of the journal."""
    store = open_store()
    taken_back = to_undo(store.journal.read(), name)
    at = now()
    for position, row in enumerate(taken_back):
        # One microsecond apart: a merge of merges is taken back before what it merged.
        later = at + timedelta(microseconds=position)
        store.journal.write(
            Unmerge().to_row(row["project_id"], recorded_at=later, memory_id=row["memory_id"])
        )
    if taken_back:
        apply_now(APPLY)
    if as_json:
        return print_json({"undone": [_merge_as_dict(row) for row in taken_back]})
    return say(f"{len(taken_back)} merges taken back; their members are as they were.")


def _merges(store: Store) -> list[dict[str, Any]]:
    return [row for row in store.journal.read().to_pylist() if row["kind"] == "merge"]


def _merge_as_dict(row: dict[str, Any]) -> dict[str, Any]:
    merge = from_row(row)
    assert isinstance(merge, Merge)
    return {
        "id": row["memory_id"],
        "project_id": row["project_id"],
        "members": merge.members,
        "text": merge.text,
    }


def _print_merge(row: dict[str, Any]) -> None:
    told = _merge_as_dict(row)
    say(f"{told['project_id']}: {len(told['members'])} became one: {told['text']}  [{told['id'][:12]}]")


def backup(file: Path, *, as_json: bool) -> None:
    """Write the whole truth of the store into one file, consistent under the lease."""
    settings = load_settings()
    with opened("backup", present(settings)) as run:
        run.store.journal.take_in()
        made = write_backup(run.store, file, now())
    _print_backup("Written", file, made, as_json)


def restore(file: Path, *, into: Path | None, as_json: bool) -> None:
    """Check a backup and put it in the place of the store; what was there stays beside it."""
    own = load_settings()
    home = into.expanduser().absolute() if into else own.home
    made, previous = restore_backup(file, home, now(), own.encryption_key_file)
    with opened("restore", present(load_settings(home))) as run:
        run_plain(FORGET, run)
    _print_backup("Restored", file, made, as_json, previous, set_aside(home))


def _print_backup(
    done: str,
    file: Path,
    made: Backup,
    as_json: bool,
    previous: Path | None = None,
    aside: Sequence[Path] = (),
) -> None:
    if as_json:
        told = {"file": str(file), "files": len(made.files), "rows": made.rows, "bytes": made.bytes}
        paths = {"previous_store": str(previous) if previous else None, "set_aside": list(map(str, aside))}
        return print_json({**told, **paths})
    held = ", ".join(f"{name} {count:,}" for name, count in sorted(made.rows.items()))
    say(f"{done}: {file}, {len(made.files)} files, {size_of(made.bytes)}; {held}.")
    if previous is not None:
        hint(f"The store that was there lies at {previous}. Remove it once all is well.")
    if aside:
        hint(
            "Settings and policy of a backup are not put in force: the store keeps its own, or the defaults. "
            f"Those of the backup lie at {' and '.join(map(str, aside))}; read them before you use them."
        )
    return None
