"""The commands that shape single memories: edit, pin, supersede, index-code."""

import sys
from pathlib import Path

from cortex.cli.memories import Memory, apply_now, memory_named, open_store, own_scope
from cortex.cli.remembering import fact_of
from cortex.cli.repeating import last_word, write_once
from cortex.cli.terminal import print_json, say
from cortex.flows.stages.order import APPLY
from cortex.hooks.plain import without_private
from cortex.storage.reference import read_policy
from cortex.storage.settings import load_settings
from cortex.storage.store import Store
from cortex.transforms.errors import NotFound, UsageError
from cortex.transforms.journal_entries import Edit, Entry, Pin, Remember, Restore, Supersede, Unpin
from cortex.transforms.memory.fold import file_memory_id
from cortex.transforms.redaction.redact import redact

# A memory is found by its id and read in one piece; source files of this repository have 40 kB at most.
MAXIMUM_CODE_BYTES = 200_000

SHOWN_CHARS = 80


def edit(target: str, text: str, *, as_json: bool) -> None:
    """Put other words in a memory's place; its id, age and evidence stay."""
    store = open_store()
    memory = memory_named(store, target)
    fact = fact_of(text, read_policy(load_settings().home))
    applied = _journal(store, memory, Edit(fact))
    if as_json:
        return print_json({"id": memory["memory_id"], "text": fact, "applied": applied})
    return say(f"{memory['memory_id'][:12]} now says: {_short(fact)}")


def pin(target: str, *, off: bool, as_json: bool) -> None:
    """Keep a memory from fading and merging, or let it again."""
    store = open_store()
    memory = memory_named(store, target)
    applied = _journal(store, memory, Unpin() if off else Pin())
    if as_json:
        return print_json({"id": memory["memory_id"], "pinned": not off, "applied": applied})
    state = "fades again as others do" if off else "neither fades nor is merged"
    return say(f"{memory['memory_id'][:12]} {state}: {_short(memory['text'])}")


def supersede(old: str, new: str, *, as_json: bool) -> None:
    """Say that one memory has taken another's place; the old one is no longer shown."""
    store = open_store()
    gone, by = memory_named(store, old), memory_named(store, new)
    if gone["memory_id"] == by["memory_id"]:
        raise UsageError("both ids name the same memory.", "Give the old one, then the new one.")
    if gone["project_id"] != by["project_id"]:
        raise UsageError("the two are of different projects.", "Forget the old one instead: cortex forget ID")
    if by["status"] == "superseded":
        raise UsageError(
            f"{by['memory_id'][:12]} was superseded itself.",
            f"Give what took its place, or take that back: cortex supersede --undo {by['memory_id'][:12]}",
        )
    applied = _journal(store, gone, Supersede(by["memory_id"]))
    if as_json:
        told = {"id": gone["memory_id"], "superseded_by": by["memory_id"]}
        return print_json({**told, "applied": applied})
    say(f"No longer shown: {gone['memory_id'][:12]} {_short(gone['text'])}")
    return say(f"In its place:    {by['memory_id'][:12]} {_short(by['text'])}")


def take_back_supersede(target: str, *, as_json: bool) -> None:
    """Show a superseded memory again, as if nothing had taken its place."""
    store = open_store()
    memory = memory_named(store, target)
    is_begun = last_word(store, Restore(), memory["project_id"], memory["memory_id"]) == Restore()
    if memory["status"] != "superseded" and not is_begun:
        raise UsageError(f"{memory['memory_id'][:12]} was not superseded.", "There is nothing to take back.")
    applied = _journal(store, memory, Restore())
    if as_json:
        return print_json({"id": memory["memory_id"], "superseded_by": None, "applied": applied})
    return say(f"Shown again: {memory['memory_id'][:12]} {_short(memory['text'])}")


def index_code(path: Path, description: str | None, *, project: str | None, as_json: bool) -> None:
    """
    Keep what a source file does, in prose to be searched, and its code, which is stored and never embedded.

    A file indexed again takes the place of what was kept of it.
    """
    prose, code = _clean(" ".join(_described(description).split())), _clean(_code_of(path))
    store = open_store()
    scope = own_scope(store, project)
    name = _name_in_project(store, scope, path)
    if not prose:
        raise UsageError("the description is empty.", "Say in a few sentences what the file does and why.")
    ids = {}
    for memory_type, text, trust in (
        ("code", code, "tool"),
        ("code_description", f"{name}: {prose}", "assistant"),
    ):
        ids[memory_type] = file_memory_id(scope, memory_type, name)
        entry = Remember(text, memory_type, "project", source_type="code_index", trust=trust, files=[name])
        write_once(store, entry, scope, ids[memory_type])
    applied = apply_now(APPLY)
    if as_json:
        return print_json({"file": name, **ids, "searchable": applied})
    return say(f"Indexed {name}: prose {ids['code_description'][:12]}, code {ids['code'][:12]}.")


def _described(description: str | None) -> str:
    if description is not None:
        return description
    if sys.stdin.isatty():
        raise UsageError(
            "the description is missing.", "Give --describe TEXT, or the text on standard input."
        )
    return sys.stdin.read()


def _code_of(path: Path) -> str:
    try:
        content = path.read_bytes()
        text = content.decode("utf-8")
    except OSError as error:
        raise NotFound(f"{path} cannot be read: {error.strerror}.", "Check the path.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is no UTF-8 text.", "Only source code can be indexed.") from error
    if len(content) > MAXIMUM_CODE_BYTES:
        raise UsageError(
            f"{path} has {len(content):,} bytes, more than {MAXIMUM_CODE_BYTES:,}.",
            "Index its parts instead.",
        )
    if not text.strip():
        raise UsageError(f"{path} is empty.", "There is nothing to index.")
    return text


def _name_in_project(store: Store, scope: str, path: Path) -> str:
    """Return the path from the top of its repository on, else from a folder of the project, else whole."""
    place = path.resolve()
    tops = [folder for folder in place.parents if (folder / ".git").exists()]
    if not tops:
        # From the shortest: a session in a subfolder makes that a folder of the project too.
        folders = [*map(Path, store.projects.paths_of(scope)), Path.cwd()]
        folders.sort(key=lambda folder: len(folder.parts))
        tops = [folder for folder in folders if place.is_relative_to(folder)]
    return str(place.relative_to(tops[0]) if tops else place)


def _clean(text: str) -> str:
    return redact(without_private(text))[0].strip()


def _journal(store: Store, memory: Memory, entry: Entry) -> bool:
    write_once(store, entry, memory["project_id"], memory["memory_id"])
    return apply_now(APPLY)


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= SHOWN_CHARS else flat[: SHOWN_CHARS - 1].rstrip() + "…"
