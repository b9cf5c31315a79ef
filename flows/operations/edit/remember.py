"""Keeps what a person says on purpose: a fact, a lesson, a changed memory, what a source file does."""

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.context import Context
from cortex.flows.operations.edit.apply import Applied, apply_now, last_word, write_once
from cortex.flows.operations.lookup import memory_of, project_of, session_here
from cortex.flows.stages.order import APPLY
from cortex.hooks.prose.plain import without_private
from cortex.storage.filesystem.git import answer_of
from cortex.storage.settings.reference import word_ranks
from cortex.storage.store import Store
from cortex.transforms.errors import DecisionContradicted, LowQuality, NotFound, UsageError
from cortex.transforms.journal_entries import (
    Confirm,
    Edit,
    Entry,
    Pin,
    Recall,
    Remember,
    Restore,
    Supersede,
    Unpin,
)
from cortex.transforms.memory.fold import file_memory_id, memory_id
from cortex.transforms.memory.link import at_odds_with
from cortex.transforms.memory.quality import Known, flaw_of, flaw_of_lesson, known_as
from cortex.transforms.policy import Policy
from cortex.transforms.redaction.redact import redact
from cortex.transforms.schemas import GLOBAL_SCOPE, MEMORIES, MEMORY_TYPES, SOURCE_TYPES, Row, checked
from cortex.transforms.words.prompt_injection import injection_reason
from cortex.transforms.words.sentences import excerpt

# -- Keeps what a person says on purpose, unless it says nothing or is known.

EXPLICIT = {"status": ["active"], "source_type": ["explicit"]}


@dataclass(frozen=True)
class Remembered:
    """
    The memory that holds a fact now.

    `outcome` is `remembered`, `reinforced` where it was known, or `reworded` where the new words say more;
    `project` is the name of its project; `contradicts` are the texts, by id, of what it is at odds with;
    `redacted` is how many secrets were taken out of the words.
    """

    memory_id: str
    memory_type: str
    project: str
    outcome: str
    applied: Applied
    contradicts: Mapping[str, str]
    redacted: int = 0


def remember(
    context: Context,
    text: str,
    *,
    memory_type: str = "context",
    priority: int = 5,
    is_global: bool = False,
    is_pinned: bool = False,
    project: str | None = None,
    files: Sequence[str] = (),
    by_assistant: bool = False,
) -> Remembered:
    """
    Journal a fact; it is searchable at once if no other run is writing, else after that run.

    What an explicit memory of the scope says already reinforces that one: its words stay, or give way to the
    new ones where these say more. What contradicts it stays too: only a person who is asked puts the new one
    in its place (`supersede`). `priority` (1 to 10) weighs in ranking; `files` are those that the fact
    names as its evidence. What is kept `by_assistant` is believed as its words in a session are, not as a
    person's. Raises LowQuality for what is not a fact.
    """
    checked("memory type", memory_type, MEMORY_TYPES)
    policy = context.policy
    fact = fact_of(text, policy)
    store = context.open_store()
    scope = GLOBAL_SCOPE if is_global else project_of(context, store, project)
    # The words of a person are reworded by a person alone.
    known = None if by_assistant else _known(store, scope, fact, policy)
    contradicts = _contradicted(store, scope, fact, policy) if known is None and not by_assistant else {}
    entry = Remember(
        known.text if known and not known.says_more else fact,
        known.memory_type if known else memory_type,
        GLOBAL_SCOPE if is_global else "project",
        priority=priority,
        pinned=is_pinned,
        files=sorted(set(files)),
        source_type="conversation" if by_assistant else None,
        trust="assistant" if by_assistant else None,
    )
    entry = replace(entry, **_place_of(context, is_elsewhere=is_global or project is not None))
    name = known.memory_id if known else memory_id(scope, memory_type, fact)
    last = last_word(store, entry, scope, name) if known is None else None
    if last != entry:  # killed before the tables had it: repeated, it is one entry
        actor = "assistant" if by_assistant else "user"
        store.journal.write(entry.to_row(scope, recorded_at=context.now, memory_id=name, actor=actor))
    return Remembered(
        memory_id=name,
        memory_type=entry.memory_type,
        outcome="remembered" if known is None else "reworded" if known.says_more else "reinforced",
        applied=apply_now(context, APPLY),
        project=store.projects.label_of(scope),
        contradicts=contradicts,
        redacted=redact(without_private(text))[1],
    )


def _place_of(context: Context, *, is_elsewhere: bool) -> dict[str, Any]:
    """
    Return where a fact is told: the folder, what is checked out there, the assistant's session.

    What `is_elsewhere` told (of another project, of all) has no branch: none of theirs is checked out here.
    """
    place = str(context.folder)
    branch = "" if is_elsewhere else answer_of(place, "rev-parse", "--abbrev-ref", "HEAD").strip()
    known = {
        "folder": place,
        "git_branch": "" if branch == "HEAD" else branch,
        "git_commit": answer_of(place, "rev-parse", "HEAD").strip() if branch else "",
        "session_id": session_here(),
    }
    return {name: words for name, words in known.items() if words}


def _contradicted(store: Store, scope: str, fact: str, policy: Policy) -> dict[str, str]:
    memories = store.tables.open(scope, "memories").read(_COMPARED)
    rules = at_odds_with(fact, memories, policy)
    return {name: str(_row_of(name, memories)["text"]) for name in rules}


def fact_of(text: str, policy: Policy) -> str:
    """Return what of `text` may be kept, on one line and redacted. Raises LowQuality, UsageError."""
    _check_text(text)
    fact, _ = redact(without_private(" ".join(text.split())).strip())
    flaw = flaw_of(fact, policy)
    if flaw:
        raise LowQuality(
            f"nothing was kept: {flaw}.",
            'Say what holds in a short sentence: cortex remember "Use pnpm, not npm"',
        )
    return fact


def _known(store: Store, scope: str, fact: str, policy: Policy) -> Known | None:
    columns = ["memory_id", "memory_type", "text", "status", "source_type"]
    return known_as(fact, store.tables.open(scope, "memories").read(columns, EXPLICIT), policy)


# -- Keeps a lesson that passes a quality gate: a fact by itself, new, and not at odds with a decision.

_COLUMNS = ["memory_id", "project_id", "memory_type", "text", "rejected", "status", "source_type"]
_COMPARED = [*_COLUMNS, "trust", "files", "evidence"]
# What was indexed of code follows the code.
_COMPARED_TYPES = tuple(name for name in SOURCE_TYPES if name != "code_index")


@dataclass(frozen=True)
class Learned:
    """
    The memory that holds a lesson now.

    `outcome` is `learned`, `reinforced` where it was known, or `reworded` where the new words say more;
    `text` is the memory's; `project` the name of its project; `contradicts` the ids of decisions that it is
    at odds with and that were accepted.
    """

    memory_id: str
    memory_type: str
    text: str
    project: str
    outcome: str
    contradicts: tuple[str, ...]
    applied: Applied


def learn(
    context: Context,
    text: str,
    *,
    memory_type: str = "context",
    is_global: bool = False,
    anyway: bool = False,
    project: str | None = None,
    files: Sequence[str] = (),
    by_assistant: bool = False,
) -> Learned:
    """
    Journal a lesson as `remember` does a fact, unless it is none; what is known already is reinforced.

    `files` and `by_assistant` are those of `remember`; the assistant rewords nothing that a person said, and
    brings back nothing that a person replaced.

    Raises LowQuality, with the reason, for a question, filler, what is too short, names nothing, leans on
    what is not said, holds a secret or turns an assistant against its person; DecisionContradicted where an
    active decision says otherwise, unless `anyway`: both then stand, and the review lists them.
    """
    checked("memory type", memory_type, MEMORY_TYPES)
    policy = context.policy
    lesson = without_private(" ".join(text.split())).strip()
    if flaw := flaw_of_lesson(lesson, policy, word_ranks()):
        raise LowQuality(
            f"nothing was learned: {flaw}.",
            'Say what holds, of what, and why: cortex learn "Retries in poll.py stop after 3 tries"',
        )
    if refusal := injection_reason(lesson, policy):
        raise LowQuality(
            f"nothing was learned: {refusal}.",
            "A rule that the person wants is kept in their own words: cortex remember",
        )
    store = context.open_store()
    scope = GLOBAL_SCOPE if is_global else project_of(context, store, project)
    memories = _memories(store, scope)
    known = known_as(lesson, memories, policy, _COMPARED_TYPES)
    is_known = known is not None and not known.says_more
    if known is not None and is_known and (by_assistant or not _is_own(known, memories, scope)):
        return _reinforced(context, store, known, _row_of(known.memory_id, memories))
    contradicted = {} if is_known else at_odds_with(lesson, memories, policy)
    if contradicted and not anyway:
        raise _contradiction(contradicted, memories)
    if by_assistant:
        _check_not_replaced(memory_id(scope, memory_type, lesson), memories)
    memory = remember(
        context,
        lesson,
        memory_type=memory_type,
        is_global=is_global,
        project=project,
        files=files,
        by_assistant=by_assistant,
    )
    return Learned(
        memory.memory_id,
        memory.memory_type,
        lesson,
        memory.project,
        "learned" if memory.outcome == "remembered" else memory.outcome,
        tuple(contradicted),
        memory.applied,
    )


def _memories(store: Store, scope: str) -> pa.Table:
    """Return the MEMORIES that a lesson is compared with: those of its scope, and the global ones."""
    scopes = sorted({scope, GLOBAL_SCOPE})
    return pa.concat_tables([store.tables.open(name, "memories").read(_COMPARED) for name in scopes])


def _row_of(memory_id: str, memories: pa.Table) -> Row:
    [row] = memories.filter(pc.field("memory_id") == memory_id).to_pylist()
    return row


def _is_own(known: Known, memories: pa.Table, scope: str) -> bool:
    """Return whether a memory was said on purpose in this scope: `remember` reinforces it by itself."""
    row = _row_of(known.memory_id, memories)
    return bool(row["source_type"] == "explicit" and row["project_id"] == scope)


def _reinforced(context: Context, store: Store, known: Known, row: Row) -> Learned:
    """Journal that a memory which no person worded was said again, or a global one."""
    holder = str(row["project_id"])
    store.journal.write(Recall([known.memory_id], []).to_row(holder, recorded_at=context.now, actor="learn"))
    applied = apply_now(context, APPLY)
    name = store.projects.label_of(holder)
    return Learned(known.memory_id, known.memory_type, known.text, name, "reinforced", (), applied)


def _check_not_replaced(name: str, memories: pa.Table) -> None:
    is_replaced = (pc.field("memory_id") == name) & (pc.field("status") == "superseded")
    if memories.filter(is_replaced).num_rows:
        raise DecisionContradicted(
            f"nothing was learned: a person replaced the memory {name[:12]}, which says the same.",
            "If it holds again, a person brings it back: cortex supersede --undo",
        )


def _contradiction(contradicted: dict[str, str], memories: pa.Table) -> DecisionContradicted:
    name = next(iter(contradicted))
    words = excerpt(str(_row_of(name, memories)["text"]), 160)
    more = f" and {len(contradicted) - 1} more" if len(contradicted) > 1 else ""
    return DecisionContradicted(
        f'nothing was learned: it contradicts the decision {name[:12]}{more}: "{words}".',
        "Keep both for the review with --anyway, or put the new one in its place: cortex supersede",
    )


# -- Changes one memory that is named by its id: its words, whether it is pinned, what took its place.


@dataclass(frozen=True)
class MemoryChange:
    """A memory that was changed, with its words after the change."""

    memory_id: str
    text: str
    applied: Applied


@dataclass(frozen=True)
class Replacement:
    """A memory that is no longer shown, and the memory in its place."""

    old_id: str
    old_text: str
    new_id: str
    new_text: str
    applied: Applied


def edit(context: Context, memory: str, text: str) -> MemoryChange:
    """Put other words in a memory's place; its id, age and evidence stay. Raises NotFound, LowQuality."""
    store = context.open_store()
    row = memory_of(context, store, memory)
    fact = fact_of(text, context.policy)
    return _change(context, store, {**row, "text": fact}, Edit(fact))


def pin(context: Context, memory: str) -> MemoryChange:
    """Keep a memory from fading and from being merged. Raises NotFound."""
    store = context.open_store()
    return _change(context, store, memory_of(context, store, memory), Pin())


def unpin(context: Context, memory: str) -> MemoryChange:
    """Let a memory fade and be merged as others do. Raises NotFound."""
    store = context.open_store()
    return _change(context, store, memory_of(context, store, memory), Unpin())


def confirm(context: Context, memories: Sequence[str]) -> list[MemoryChange]:
    """
    Say that memories still hold: they count as said again today, and one that faded is shown again.

    Raises NotFound; UsageError, with nothing written, where another memory has taken the place of one.
    """
    store = context.open_store()
    rows = [memory_of(context, store, memory) for memory in memories]
    for row in rows:
        if by := row["superseded_by"] or row["merged_into"]:
            raise UsageError(
                f"{by[:12]} has taken the place of {row['memory_id'][:12]}.",
                f"Confirm that: cortex confirm {by[:12]}",
            )
    for row in rows:
        entry = Confirm().to_row(row["project_id"], recorded_at=context.now, memory_id=row["memory_id"])
        store.journal.write(entry)
    applied = apply_now(context, APPLY)
    return [MemoryChange(row["memory_id"], row["text"], applied) for row in rows]


def supersede(context: Context, old: str, new: str) -> Replacement:
    """
    Put one memory in another's place; the old one is no longer shown.

    Raises NotFound; UsageError for two of different projects, and where the new one was superseded itself.
    """
    store = context.open_store()
    gone, by = memory_of(context, store, old), memory_of(context, store, new)
    if gone["memory_id"] == by["memory_id"]:
        raise UsageError("both ids name the same memory.", "Give the old one, then the new one.")
    if gone["project_id"] != by["project_id"]:
        raise UsageError(
            "the two belong to different projects.", "Forget the old one instead: cortex forget ID"
        )
    if by["status"] == "superseded":
        raise UsageError(
            f"{by['memory_id'][:12]} was superseded itself.",
            f"Give the memory in its place, or undo that: cortex supersede --undo {by['memory_id'][:12]}",
        )
    applied = _change(context, store, gone, Supersede(by["memory_id"])).applied
    return Replacement(gone["memory_id"], gone["text"], by["memory_id"], by["text"], applied)


def unrelated(context: Context, old: str, new: str) -> tuple[str, str] | None:
    """Return the words of two memories that have no word of a topic in common; None for any others."""
    from cortex.flows.operations.edit.forget import naming_words

    store = context.open_store()
    texts = [str(memory_of(context, store, target)["text"]) for target in (old, new)]
    first, second = (naming_words(text, context.policy) for text in texts)
    return None if first & second else (texts[0], texts[1])


def undo_supersede(context: Context, memory: str) -> MemoryChange:
    """Show a superseded memory again. Raises NotFound; UsageError if nothing took its place."""
    store = context.open_store()
    row = memory_of(context, store, memory)
    is_begun = last_word(store, Restore(), row["project_id"], row["memory_id"]) == Restore()
    if row["status"] != "superseded" and not is_begun:
        raise UsageError(f"{row['memory_id'][:12]} was not superseded.", "There is nothing to undo.")
    return _change(context, store, row, Restore())


def undo_archive(context: Context, memory: str) -> MemoryChange:
    """Show an archived memory again. Raises NotFound; UsageError for one that is shown, or was merged."""
    store = context.open_store()
    row = memory_of(context, store, memory)
    if row["status"] != "archived":
        raise UsageError(f"{row['memory_id'][:12]} is not archived.", "There is nothing to undo.")
    if row["merged_into"]:
        problem = f"{row['memory_id'][:12]} was merged into {row['merged_into'][:12]}."
        raise UsageError(problem, "Undo the merge instead: cortex consolidate --undo")
    return _change(context, store, row, Restore())


def _change(context: Context, store: Store, row: Row, entry: Entry) -> MemoryChange:
    write_once(context, store, entry, row["project_id"], row["memory_id"])
    return MemoryChange(row["memory_id"], row["text"], apply_now(context, APPLY))


# -- Keeps what a source file does: a description that is searched, and its code.

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
    return index_files(context, {path: description}, project=project)[0]


def index_files(
    context: Context, described: Mapping[Path, str], *, project: str | None = None
) -> list[IndexedCode]:
    """Index several files as `index_code` does one, all of them or none. Raises as it does."""
    for path, prose in described.items():
        _check_text(str(path))
        _check_text(prose)
        if "\0" in str(path):
            raise UsageError(f"not a path: {str(path)!a}.", "Give the path of a source file.")
        _check_in_its_repository(path)
    cleaned = {
        path: (_clean(_code_of(path)), _clean(" ".join(prose.split()))) for path, prose in described.items()
    }
    store = context.open_store()
    scope = project_of(context, store, project)
    for path, (_, prose) in cleaned.items():
        if not prose:
            problem = f"the description of {path} is empty."
            raise UsageError(problem, "Say in a few sentences what the file does and why.")
    kept: list[tuple[str, dict[str, str]]] = []
    for path, (code, prose) in cleaned.items():
        name, ids = _name_in_project(context, store, scope, path), dict[str, str]()
        for memory_type, text, trust in (
            ("code", code, "tool"),
            ("code_description", f"{name}: {prose}", "assistant"),
        ):
            ids[memory_type] = file_memory_id(scope, memory_type, name)
            entry = Remember(
                text, memory_type, "project", source_type="code_index", trust=trust, files=[name]
            )
            write_once(context, store, entry, scope, ids[memory_type])
        kept.append((name, ids))
    applied = apply_now(context, APPLY)
    return [IndexedCode(name, ids["code"], ids["code_description"], applied) for name, ids in kept]


def files_to_describe(
    context: Context, patterns: Sequence[str] = (), *, project: str | None = None
) -> list[tuple[str, str]]:
    """
    Return (path, state) of files whose description is missing, or is of other code: what to index next.

    `changed` and `gone` are files that were indexed; `new` those that match a pattern, a folder or a glob
    from the context's folder, and were not. In a repository only files that a commit holds are new. Paths
    are relative to the context's folder. Raises UsageError for a pattern that cannot be read, NotFound for
    one that no file matches.
    """
    store = context.open_store()
    scope = project_of(context, store, project)
    rows = store.tables.open(scope, MEMORIES.name).read(where={"memory_type": ["code"]}).to_pylist()
    known = {row["files"][0]: row["text"] for row in rows if row["status"] == "active" and row["files"]}
    here = context.folder.resolve()
    top = _top_of(context, store, scope, here / "any") or here
    states = {top / name: _state_of(top / name, text) for name, text in known.items()}
    committed = answer_of(str(top), "ls-tree", "-r", "--name-only", "-z", "HEAD").split("\0")
    tracked = frozenset(top / name for name in committed if name)
    for pattern in patterns:
        matches = _matching(here, pattern)
        if not matches:
            raise NotFound(f"no file matches '{pattern}'.", "Check the path.")
        for path in matches:
            if path not in states and (path in tracked or not tracked) and not _is_unfit(path):
                states[path] = "new"
    return sorted((os.path.relpath(path, here), state) for path, state in states.items() if state)


def _matching(here: Path, pattern: str) -> list[Path]:
    try:
        matches = (here / pattern).rglob("*") if (here / pattern).is_dir() else here.glob(pattern)
        return [path.resolve() for path in matches if path.is_file()]
    except (ValueError, NotImplementedError) as error:
        raise UsageError(
            f"Not a pattern of files: '{pattern}'.", "Give a folder, or e.g. 'src/*.py'."
        ) from error


def _state_of(path: Path, indexed: str) -> str:
    """Return whether an indexed file is `changed` or `gone`, empty for neither."""
    if not path.is_file():
        return "gone"
    return "changed" if _is_unfit(path) or _clean(_code_of(path)) != indexed else ""


def _is_unfit(path: Path) -> bool:
    """Return whether a file cannot be indexed: no text, empty, or too large."""
    try:
        return not _code_of(path)
    except (NotFound, UsageError):
        return True


def _code_of(path: Path) -> str:
    try:
        # A pipe or a device of a repository is neither waited for nor read.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise UsageError(f"{path} is not a file.", "Only source code can be indexed.")
            # What the system makes up, as below /proc, has no size.
            content = file.read(MAXIMUM_CODE_BYTES + 1) if status.st_size else b""
            text = content.decode("utf-8") if len(content) <= MAXIMUM_CODE_BYTES else ""
    except IsADirectoryError as error:
        raise UsageError(
            f"{path} is a folder.",
            f"Name a file. To list those that lack words: cortex index-code --changed {path}",
        ) from error
    except OSError as error:
        raise NotFound(f"{path} cannot be read: {error.strerror}.", "Check the path.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"Not UTF-8 text: {path}.", "Only source code can be indexed.") from error
    if len(content) > MAXIMUM_CODE_BYTES:
        raise UsageError(
            f"{path} has {status.st_size:,} bytes, more than {MAXIMUM_CODE_BYTES:,}.",
            "Index its parts instead.",
        )
    if not text.strip():
        raise UsageError(f"{path} is empty.", "There is nothing to index.")
    return text


def _check_in_its_repository(path: Path) -> None:
    """Raise UsageError for a link by which a repository offers a file of the person's that is none of its."""
    top = next((folder for folder in path.absolute().parents if (folder / ".git").exists()), None)
    if top and not path.resolve().is_relative_to(top.resolve()):
        raise UsageError(f"{path} leads out of its repository.", "Give the path of the file itself.")


def _name_in_project(context: Context, store: Store, scope: str, path: Path) -> str:
    """Return the path from the top of its repository on, else from a folder of the project, else whole."""
    place = path.resolve()
    top = _top_of(context, store, scope, place)
    return str(place.relative_to(top) if top else place)


def _top_of(context: Context, store: Store, scope: str, place: Path) -> Path | None:
    """Return the folder from which on a file of a project is named."""
    tops = [folder for folder in place.parents if (folder / ".git").exists()]
    if not tops:
        # From the shortest: a session in a subfolder makes that a folder of the project too.
        folders = [*map(Path, store.projects.paths_of(scope)), context.folder]
        folders.sort(key=lambda folder: len(folder.parts))
        tops = [folder for folder in folders if place.is_relative_to(folder)]
    return tops[0] if tops else None


def _check_text(text: str) -> None:
    """Raise UsageError for halves of characters, which no file can hold."""
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise UsageError(f"not text that can be kept: {text[:80]!a}.", "Give it as UTF-8 text.")


def _clean(text: str) -> str:
    return redact(without_private(text))[0].strip()
