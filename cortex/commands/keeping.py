"""The commands about memory as a whole: reset, checkpoint, consolidate, backup, restore, export, import."""

import json
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from cortex.commands.memories import apply_now, open_store, scopes_for
from cortex.commands.past import store_as_of
from cortex.commands.terminal import hint, now, print_json, say, size_of
from cortex.errors import NotFound, UsageError
from cortex.flows.engines import run_plain
from cortex.flows.runs import embedder_of, looking, opened
from cortex.flows.stages import CONSOLIDATE, FORGET, TOLD
from cortex.settings import load_settings
from cortex.storage.backup import Backup, restore_backup, write_backup
from cortex.storage.files import write_atomically, writing_to
from cortex.storage.journal import GLOBAL_SCOPE
from cortex.storage.reference import read_policy
from cortex.storage.store import Store
from cortex.transforms.consolidate import propose, to_undo
from cortex.transforms.fold import memory_id
from cortex.transforms.interchange import as_json_text, as_markdown, read_export
from cortex.transforms.journal import entry
from cortex.transforms.redact import redact
from cortex.transforms.schemas import TURNS, VECTORS

# Shorter beginnings of a session's id could mean several.
SHORTEST_SESSION = 6


def forget_session(session: str, *, as_json: bool) -> None:
    """Forget all that one session said, by its id or the beginning of it."""
    store = open_store()
    session_id, scopes = _session(store, session)
    payload: dict[str, object] = {"session_ids": [session_id]}
    for scope in scopes:
        store.journal.write(entry("forget", scope, payload, recorded_at=now()))
    applied = apply_now(FORGET)
    if as_json:
        return print_json({"session": session_id, "forgotten": True, "applied": applied})
    say(f"Forgotten: session {session_id}, its turns, what was learnt from them alone.")
    return hint("The assistant's own transcript of it lies outside Cortex and is still there.")


def _session(store: Store, session: str) -> tuple[str, list[str]]:
    """Return the session's whole id and the projects that hold it."""
    rows = store.lake.read(TURNS, columns=["session_id", "project_id"]).group_by(["session_id", "project_id"])
    known = [
        (row["session_id"], row["project_id"])
        for row in rows.aggregate([]).to_pylist()
        if row["session_id"].startswith(session)
    ]
    names = sorted({name for name, _ in known})
    if not names or len(session) < SHORTEST_SESSION:
        raise NotFound(
            f"no session has an id that begins with '{session}'.",
            "`cortex recall` shows the session of each answer; give at least 6 characters.",
        )
    if len(names) > 1:
        raise UsageError(f"{len(names)} sessions begin with '{session}'.", "Give more of the id.")
    return names[0], sorted({scope for _, scope in known})


def reset(project: str, *, yes: bool, as_json: bool) -> None:
    """Forget everything about a project up to now, after asking."""
    store = open_store()
    scopes = [part for name in store.projects.named(project) for part in store.projects.parts_of(name)]
    turns = sum(store.lake.read(TURNS, scope, columns=["turn_id"]).num_rows for scope in scopes)
    memories = sum(store.tables.open(scope, "memories").count() for scope in scopes)
    if not yes:
        told = f"forgets {memories} memories and {turns} turns of {', '.join(scopes)} for good"
        if not sys.stdin.isatty():
            raise UsageError(f"this {told}.", "If that is meant: the same command with --yes.")
        import click

        if not click.confirm(f"This {told}. Go on?"):
            return say("Nothing forgotten.")
    for scope in scopes:
        store.journal.write(entry("forget", scope, {"everything": True}, recorded_at=now()))
    applied = apply_now(FORGET)
    if as_json:
        return print_json({"projects": scopes, "memories": memories, "turns": turns, "applied": applied})
    say(f"Forgotten: {memories} memories and {turns} turns of {', '.join(scopes)}.")
    return hint("The assistant's own transcripts lie outside Cortex and are still there; backups too.")


def checkpoint(name: str, *, as_json: bool) -> None:
    """Give this moment a name that `consolidate --undo --to NAME` goes back to."""
    store = open_store()
    at = now()
    store.journal.write(entry("checkpoint", GLOBAL_SCOPE, {"name": name}, recorded_at=at))
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
    store, policy, embedder = Store(settings.home), read_policy(settings.home), embedder_of(settings)
    vectors = store.lake.read(VECTORS, embedder.model) if embedder else VECTORS.empty()
    model = embedder.model if embedder else ""
    proposed: list[dict[str, Any]] = []
    for scope in store.tables.scopes():
        memories = store.tables.open(scope, "memories").read()
        texts = dict(zip(memories["memory_id"].to_pylist(), memories["text"].to_pylist(), strict=True))
        undone = looking(settings, now()).journal_in_one(scope)
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
            entry("unmerge", row["project_id"], {}, recorded_at=later, memory_id=row["memory_id"])
        )
    if taken_back:
        apply_now(TOLD)
    if as_json:
        return print_json({"undone": [_merge_as_dict(row) for row in taken_back]})
    return say(f"{len(taken_back)} merges taken back; their members are as they were.")


def _merges(store: Store) -> list[dict[str, Any]]:
    return [row for row in store.journal.read().to_pylist() if row["kind"] == "merge"]


def _merge_as_dict(row: dict[str, Any]) -> dict[str, Any]:
    told = json.loads(row["payload"])
    return {
        "id": row["memory_id"],
        "project_id": row["project_id"],
        "members": told["members"],
        "text": told["text"],
    }


def _print_merge(row: dict[str, Any]) -> None:
    told = _merge_as_dict(row)
    say(f"{told['project_id']}: {len(told['members'])} became one: {told['text']}  [{told['id'][:12]}]")


def backup(file: Path, *, as_json: bool) -> None:
    """Write the whole truth of the store into one file, consistent under the lease."""
    settings = load_settings()
    with opened("backup", settings, now(), "plain") as run:
        run.store.journal.take_in()
        made = write_backup(run.store, file, now())
    _print_backup("Written", file, made, as_json)


def restore(file: Path, *, into: Path | None, as_json: bool) -> None:
    """Check a backup and put it in the place of the store; what was there stays beside it."""
    home = into.expanduser().absolute() if into else load_settings().home
    made, previous = restore_backup(file, home, now())
    with opened("restore", load_settings(home), now(), "plain") as run:
        run_plain(FORGET, run)
    _print_backup("Restored", file, made, as_json, previous)


def _print_backup(done: str, file: Path, made: Backup, as_json: bool, previous: Path | None = None) -> None:
    if as_json:
        told = {"file": str(file), "files": len(made.files), "rows": made.rows, "bytes": made.bytes}
        return print_json({**told, "previous_store": str(previous) if previous else None})
    held = ", ".join(f"{name} {count:,}" for name, count in sorted(made.rows.items()))
    say(f"{done}: {file}, {len(made.files)} files, {size_of(made.bytes)}; {held}.")
    if previous is not None:
        hint(f"The store that was there lies at {previous}. Remove it once all is well.")
    return None


def export(
    file: Path | None, *, form: str, project: str | None, as_of: str | None = None, as_json: bool
) -> None:
    """Write memories as JSON or Markdown, to a file or to standard output; superseded ones are marked."""
    store = open_store()
    scopes = scopes_for(store, project) if project else store.tables.scopes()
    names = {p.project_id: p.name for p in store.projects.all()}
    tables = store.tables if as_of is None else store_as_of(as_of, scopes).store.tables
    rows = [row for scope in scopes for row in tables.open(scope, "memories").read().to_pylist()]
    rows = [row for row in rows if row["status"] != "pruned"]
    text = as_json_text(rows, names, now()) if form == "json" else as_markdown(rows, names)
    if file is None:
        sys.stdout.write(text)
        return None
    with writing_to(file.parent):
        write_atomically(file.absolute(), text.encode())
    if as_json:
        return print_json({"file": str(file), "memories": len(rows)})
    return say(f"{len(rows)} memories written to {file}.")


def import_file(file: Path, *, project: str | None, as_json: bool) -> None:
    """Journal the memories of a file: Cortex's own export, a Markdown list, or another tool's JSON."""
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise NotFound(f"{file} cannot be read: {error.strerror}.", "Check the path.") from error
    read = read_export(raw)
    store = open_store()
    scope = _scope_for(store, project)
    known = {row["memory_id"] for s in store.tables.scopes() for row in _ids(store, s)}
    at, written = now(), 0
    for one in read.memories:
        fact, _ = redact(" ".join(one.text.split()))
        target = GLOBAL_SCOPE if one.is_global else scope
        name = memory_id(target, one.memory_type, fact)
        if not fact or name in known:
            continue
        known.add(name)
        told = {**one.payload(), "text": fact, "category": "global" if one.is_global else "project"}
        store.journal.write(entry("import", target, told, recorded_at=at, memory_id=name))
        written += 1
    applied = apply_now(TOLD) if written else True
    known_already = len(read.memories) - written
    if as_json:
        told = {"format": read.form, "imported": written, "known": known_already, "unusable": read.unusable}
        return print_json({**told, "applied": applied})
    return say(f"{read.form}: {written} imported, {known_already} known already, {read.unusable} unusable.")


def _ids(store: Store, scope: str) -> list[dict[str, Any]]:
    return store.tables.open(scope, "memories").read(["memory_id"]).to_pylist()


def _scope_for(store: Store, project: str | None) -> str:
    if project is None:
        return store.projects.project_of(str(Path.cwd()), now())
    scopes = store.projects.named(project)
    if len(scopes) > 1:
        raise UsageError(f"{len(scopes)} projects are called '{project}'.", f"Name one: {', '.join(scopes)}.")
    return scopes[0]
