"""Forgets: a memory by its id or its words, a session, or all of a project; what would go is shown first."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pyarrow.compute as pc

from cortex.flows.context import Context
from cortex.flows.engines.runs import read_only_run
from cortex.flows.operations.edit.apply import Applied, apply_now
from cortex.flows.operations.ids import MIN_ID_CHARS, begun_by, typed_id
from cortex.flows.operations.lookup import is_memory_id, is_outside, memory_by_id, scopes_of
from cortex.flows.stages.order import FORGET
from cortex.hooks.evidence.text import PEOPLE_KINDS, search_text
from cortex.storage.copies.backup import OutsideCopy, outside_copies
from cortex.storage.filesystem.place import remote_note
from cortex.storage.store import Store
from cortex.transforms.errors import NotFound, UsageError
from cortex.transforms.journal_entries import Forget, entries_in
from cortex.transforms.memory.forgetting import (
    Phrases,
    pending,
    requested_memories,
    statements_of,
    tombstones_of,
)
from cortex.transforms.memory.merged_projects import own_names
from cortex.transforms.memory.team import TEAM_SOURCE
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import GLOBAL_SCOPE, JOURNAL, TURNS, Row, values
from cortex.transforms.words.ages import copies_of
from cortex.transforms.words.sentences import excerpt

# -- Which memory a person's words name: all of them stand in it, and in no other nearly as many.

# A single word may be in a memory by chance.
_MIN_WORDS = 2
# Another memory that holds more than this share of the words could be meant as well.
NEAR_SHARE = 0.5
NEAREST_LISTED = 5


@dataclass(frozen=True)
class Naming:
    """
    What words name among memories: `exact` hold all of them, `nearest` (best first) at least one.

    `is_clear` says that the words cannot be mistaken: two or more of them, all in one memory, and at most
    half of them in any other.
    """

    exact: tuple[Row, ...]
    nearest: tuple[Row, ...]
    is_clear: bool


def named_by(question: str, memories: Sequence[Row], policy: Policy) -> Naming:
    """Return which of MEMORIES rows the words of `question` name."""
    words = naming_words(question, policy)
    shares = [(_share(words, row["text"]), row["memory_id"], row) for row in memories]
    ordered = sorted(shares, key=lambda item: (-item[0], item[1]))
    exact = tuple(row for share, _, row in ordered if words and share == 1.0)
    rivals = [share for share, _, _ in ordered[1:2]]
    is_clear = len(exact) == 1 and len(words) >= _MIN_WORDS and all(s <= NEAR_SHARE for s in rivals)
    nearest = tuple(row for share, _, row in ordered if share > 0)[:NEAREST_LISTED]
    return Naming(exact, nearest, is_clear)


def naming_words(question: str, policy: Policy) -> set[str]:
    """Return the words of a question that carry its topic, in the singular; none if all are small words."""
    dropped = set(policy.tables["query_words"]["word"].to_pylist())
    return {_singular(word) for word in _words(question) if word not in dropped}


def _share(words: Collection[str], text: str) -> float:
    held = {_singular(word) for word in _words(text)}
    return sum(word in held for word in words) / max(1, len(words))


def _words(text: str) -> list[str]:
    return [
        word for word in re.findall(r"\w+", search_text(text).lower()) if len(word) > 1 or not word.isascii()
    ]


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


# -- Where what is forgotten here still is: copies that an erasure reaches, and those that it does not.

_WORDS = {
    "backup": "the backup {place} of {day}: delete it",
    "export": "the export {place} of {day}: delete it",
    "delta": "the Delta tables {place} of {day}: delete them",  # an earlier version wrote such
}


@dataclass(frozen=True)
class Copies:
    """Copies in words: those that the erasure `reached`, and those `left`, each with how it goes."""

    reached: Sequence[str] = ()
    left: Sequence[str] = ()


def other_copies(context: Context, memory: Row | None = None) -> Copies:
    """
    Return the copies of what was forgotten: a memory, else a session or a project.

    Of copies that this store wrote, those are left out that are no longer there, or older than the memory.
    """
    note = remote_note(context.home)
    reached = [f"the store {context.home}: lake, tables, search index, briefs, what waits in staging"]
    left = copies_of(memory) if memory else []
    if note:
        reached.append(f"the store at {note.uri}, once the run there is done")
        left.append(
            f"versions that the bucket of {note.uri} keeps, and other machines' copies until they run"
        )
    place = context.settings.share.place
    if place and not (memory and memory["source_type"] == TEAM_SOURCE):
        left.append(f"{place}, if it was pushed: withdraw it with cortex push{_versions(context)}")
    since = memory["created_at"] if memory else None
    left += [_in_words(copy) for copy in outside_copies(context.home) if _may_hold(copy, since)]
    return Copies(reached, left)


def _versions(context: Context) -> str:
    if context.settings.share.key_file:
        return (
            "; versions that the bucket keeps open no more once every copy of the key is destroyed "
            "(first another one: cortex team key FILE)"
        )
    return "; versions that the bucket keeps, by its own rules"


def _may_hold(copy: OutsideCopy, since: datetime | None) -> bool:
    is_local = "://" not in copy.place
    if is_local and not Path(copy.place).exists():
        return False
    try:
        return since is None or datetime.fromisoformat(copy.written_at) >= since
    except (ValueError, TypeError):
        return True


def _in_words(copy: OutsideCopy) -> str:
    return _WORDS.get(copy.kind, "{place}").format(place=copy.place, day=copy.written_at[:10])


_COLUMNS = ["memory_id", "project_id", "memory_type", "text", "status", "merged_into", "evidence"]


@dataclass(frozen=True)
class ForgetPlan:
    """
    What forgetting would erase: `memory`, and its words from `others`, which hold them or are its members; of
    them a session's record that tells it again goes as a whole.

    `words` says how the memory was named if that was not by its id. `memory` is None if it was
    forgotten before and a killed command left something to erase.
    """

    memory_id: str
    memory: Row | None
    others: Sequence[Row] = ()
    words: Naming | None = None

    @property
    def needs_consent(self) -> bool:
        """Whether the id alone did not say all that goes."""
        return self.memory is not None and (self.words is not None or bool(self.others))

    def check_words(self, *, count: bool = True) -> None:
        """Raise UsageError, which lists what they may mean, where words name no memory clearly enough."""
        if self.words is not None and not (count and self.words.is_clear):
            raise _unclear(self.words, count)


@dataclass(frozen=True)
class Forgotten:
    """
    A memory that was forgotten, `text` None if it was before; `others` went with it, by id.

    `copies` are those that no erasure here reaches, in words, `reached` those that it does. What `is_typed`
    was told at a command line alone, and no transcript has it.
    """

    memory_id: str
    text: str | None
    others: Sequence[str]
    applied: Applied
    copies: Sequence[str] = ()
    reached: Sequence[str] = ()
    is_typed: bool = False


@dataclass(frozen=True)
class ForgottenSession:
    """A session that was forgotten, the global memories that rested on it alone, by id, and its copies."""

    session_id: str
    applied: Applied
    copies: Copies = field(default_factory=Copies)
    others: Sequence[str] = ()


@dataclass(frozen=True)
class ResetPlan:
    """What forgetting a project would erase: its parts by id, and how many memories and turns they hold."""

    project_ids: Sequence[str]
    memories: int
    turns: int


@dataclass(frozen=True)
class Reset:
    """What forgetting a project erased, the global memories that rested on it alone, by id, and copies."""

    plan: ResetPlan
    applied: Applied
    copies: Copies = field(default_factory=Copies)
    others: Sequence[str] = ()


def plan_forget(context: Context, target: str, *, project: str | None = None) -> ForgetPlan:
    """
    Return what forgetting the memory that `target` names, by its id or by words, would erase.

    Words that only resemble a memory's never name it. Raises NotFound, and UsageError for words that stand in
    several, which list what they may mean.
    """
    store = context.open_store()
    try:
        memory, words = memory_by_id(context, store, target), None
        if memory is None:
            words = _named(context, store, target, project)
            memory = memory_by_id(context, store, words.exact[0]["memory_id"])
    except NotFound:
        memory_id = _forgotten_before(store, target)
        if memory_id is None:
            raise
        return ForgetPlan(memory_id, None)
    assert memory is not None
    return ForgetPlan(memory["memory_id"], memory, _going_with(context, store, memory), words)


def forget(context: Context, target: str | ForgetPlan, *, project: str | None = None) -> Forgotten:
    """
    Forget a memory: a plan that was agreed to, or what `plan_forget` finds for an id or for clear words.

    Its text is erased from every file of the store. Repeated after a kill, it finishes what was begun. Raises
    NotFound and UsageError, which name ids.
    """
    plan = target
    if not isinstance(plan, ForgetPlan):
        plan = plan_forget(context, str(target), project=project)
        plan.check_words()
    if plan.memory is None:
        return Forgotten(plan.memory_id, None, (), apply_now(context, FORGET))
    store = context.open_store()
    if plan.memory_id not in {row["memory_id"] for row in pending(store.journal.read())}:
        _journal(context, store, plan.memory)
    before = _memory_ids(store)
    applied = apply_now(context, FORGET)
    gone = before - _memory_ids(context.open_store())
    others, copies = sorted(gone - {plan.memory_id}), other_copies(context, plan.memory)
    return Forgotten(
        plan.memory_id,
        plan.memory["text"],
        others,
        applied,
        copies.left,
        copies.reached,
        is_typed=not plan.others and _is_typed(plan.memory),
    )


def _is_typed(memory: Row) -> bool:
    """Return whether a person told a memory at a command line, in no session of an assistant."""
    is_told = memory["source_type"] == "explicit" and not memory["session_id"]
    return is_told and not any(place["session_id"] for place in memory["evidence"])


def _going_with(context: Context, store: Store, memory: Row) -> list[Row]:
    """Return the memories that forgetting one touches too: members, records, what holds its words."""
    row = Forget().to_row(memory["project_id"], recorded_at=context.now, memory_id=memory["memory_id"])
    alike = {same["memory_id"] for same in _same_everywhere(store, memory)}
    deleted = alike | requested_memories([row], store.journal.read()).keys()
    query = Phrases.of([memory["text"]])
    rows = [row for row in _rows(store, store.tables.scopes()) if row["memory_id"] != memory["memory_id"]]
    holds = query.patterns_in([row["text"] for row in rows])
    sessions = {place["session_id"] for place in memory["evidence"]}
    statements = statements_of(memory)
    return [
        row
        for row, held in zip(rows, holds, strict=True)
        if held or row["memory_id"] in deleted or _is_record_of(row, sessions, statements)
    ]


def _is_record_of(row: Row, sessions: Collection[str], statements: Collection[str]) -> bool:
    """Return whether a memory is the record of one of some sessions and tells a statement again."""
    is_record = row["memory_type"] == "outcome" and any(
        place["session_id"] in sessions for place in row["evidence"]
    )
    return is_record and any(words in row["text"] for words in statements)


def _where(context: Context, store: Store, project: str | None) -> str:
    """Say in which memories the words were looked for."""
    here = store.projects.known(str(context.folder))
    if project is None and here is None:
        return "of any project"
    name = project or store.projects.label_of(here or "")
    return f"of {name} or for all projects"


def _named(context: Context, store: Store, question: str, project: str | None) -> Naming:
    """Return which memories the words name. Raises NotFound if none holds all of them."""
    if store.is_empty and not store.journal.waiting():
        raise NotFound(f"the store at {store.home} is empty.", "Fill it: cortex backfill")
    scopes = scopes_of(context, store, project, all_projects=is_outside(context, project, all_projects=False))
    rows = [row for row in _rows(store, scopes) if row["status"] != "pruned" and row["merged_into"] is None]
    naming = named_by(question, rows, context.policy)
    if not naming.exact:
        session = _session_saying(store, scopes, naming_words(question, context.policy))
        whole = f" What was said with them goes with its session: cortex forget --session {session}."
        raise NotFound(
            f"no memory {_where(context, store, project)} holds all of these words."
            + _listed("Nearest", naming.nearest),
            "Nothing was forgotten. Name a memory by its id: cortex forget ID; `cortex recall` shows ids."
            + (whole if session else ""),
        )
    return naming


def _session_saying(store: Store, scopes: Sequence[str], words: Collection[str]) -> str:
    """Return the last session in which a person said all of the words, which a brief may quote; else ""."""
    columns = ["kind", "text", "said_at", "session_id"]
    rows = (row for s in scopes for row in store.tables.open(s, "passages").read(columns).to_pylist())
    typed = (row for row in rows if words and row["kind"] in PEOPLE_KINDS and row["said_at"])
    saying = [row for row in typed if _share(words, row["text"]) == 1.0]
    last = max(saying, key=lambda row: (row["said_at"], row["session_id"]), default=None)
    return str(last["session_id"]) if last else ""


def _unclear(naming: Naming, count: bool) -> UsageError:
    first = naming.exact[0]["memory_id"][:12]
    if naming.is_clear:
        problem = "these words name one memory." + _listed("It is", naming.exact)
        return UsageError(problem, f"To forget it: cortex forget {first}, or the same command with --yes.")
    problem = "these words could mean more than one memory." if count else "name the memory that is meant."
    rows = {row["memory_id"]: row for row in (*naming.exact, *naming.nearest)}
    return UsageError(
        problem + _listed("They are in", tuple(rows.values())),
        f"Nothing was forgotten. Give an id, such as: cortex forget {first}",
    )


def _listed(label: str, rows: Sequence[Row]) -> str:
    lines = [f"\n    {row['memory_id'][:12]}  {excerpt(row['text'])}" for row in rows]
    return f" {label}:{''.join(lines)}" if lines else ""


def _journal(context: Context, store: Store, memory: Row) -> None:
    """
    Journal the requests, all or none: for the memory and those that say the same in every project or for it,
    under each name that they have. Projects that were merged may be split again.
    """
    run, rows = read_only_run(context), list[Row]()
    for each in (memory, *_same_everywhere(store, memory)):
        scope, name = each["project_id"], each["memory_id"]
        entry = Forget(turn_ids=_turns_behind(store, each))
        names = own_names(run.readings.events(scope), run.readings.journal(scope), run.policy, scope, name)
        rows += [
            entry.to_row(project_id, recorded_at=context.now, memory_id=own_name)
            for project_id, own_name in (*names, (scope, name))
        ]
    store.journal.write(*{row["entry_id"]: row for row in rows}.values())


def _same_everywhere(store: Store, memory: Row) -> list[Row]:
    """Return the global memory that took a wish's place, and the wishes that it took the place of."""
    is_global = memory["project_id"] == GLOBAL_SCOPE
    whole = memory["memory_id"] if is_global else memory["superseded_by"]
    scopes = store.tables.scopes()
    if whole is None or GLOBAL_SCOPE not in scopes:
        return []
    rows = store.tables.open(GLOBAL_SCOPE, "memories").read(where={"memory_id": [whole]}).to_pylist()
    for scope in scopes if rows else ():
        if scope != GLOBAL_SCOPE:
            table = store.tables.open(scope, "memories")
            rows += table.read(where={"superseded_by": [whole]}).to_pylist()
    return [row for row in rows if row["memory_id"] != memory["memory_id"]]


def _forgotten_before(store: Store, target: str) -> str | None:
    """Return the id of a memory that was to be forgotten before, if `target` begins it."""
    word = typed_id(target)
    names = {
        row["memory_id"]
        for row in store.journal.read().to_pylist()
        if row["kind"] == "forget" and row["memory_id"] and row["memory_id"].startswith(word)
    }
    return names.pop() if is_memory_id(target) and len(names) == 1 else None


def _rows(store: Store, scopes: list[str]) -> list[Row]:
    return [
        row for scope in scopes for row in store.tables.open(scope, "memories").read(_COLUMNS).to_pylist()
    ]


def _memory_ids(store: Store, scopes: Sequence[str] | None = None) -> set[str]:
    return {
        name
        for scope in store.tables.scopes()
        if scopes is None or scope in scopes
        for name in values(store.tables.open(scope, "memories").read(["memory_id"]), "memory_id")
    }


def _turns_behind(store: Store, memory: Row) -> list[str]:
    """Return the turns that a memory rests on, sorted: those named, and all on the lines of its evidence."""
    places = {(place["file"], line) for place in memory["evidence"] for line in place["lines"]}
    turns = {place["turn_id"] for place in memory["evidence"]}
    for scope in store.tables.scopes():
        for row in store.tables.open(scope, "passages").read(["turn_id", "file", "line"]).to_pylist():
            if (row["file"], row["line"]) in places:
                turns.add(row["turn_id"])
    return sorted(turns)


def forget_session(context: Context, session: str) -> ForgottenSession:
    """
    Forget all that one session said, by its id or the beginning of it.

    Repeated after a kill, it finishes what was begun. Raises NotFound; UsageError for several.
    """
    store = context.open_store()
    session_id, scopes = _session(store, session)
    for scope in sorted(scopes - _scopes_pending(store, session_id)):
        entry = Forget(session_ids=[session_id])
        store.journal.write(entry.to_row(scope, recorded_at=context.now))
    applied, others = _with_global(context, store)
    return ForgottenSession(session_id, applied, other_copies(context), others)


def _session(store: Store, session: str) -> tuple[str, set[str]]:
    """Return the session's whole id and the projects that hold it; none for one forgotten before."""
    rows = store.lake.read(TURNS, columns=["session_id", "project_id"]).group_by(["session_id", "project_id"])
    known: dict[str, set[str]] = {name: set() for name in store.journal.forgotten_sessions()}
    for row in rows.aggregate([]).to_pylist():
        known.setdefault(row["session_id"], set()).add(row["project_id"])
    missing = NotFound(
        f"no session has an id that begins with '{session}'.",
        f"`cortex timeline` lists sessions; give at least {MIN_ID_CHARS} characters.",
    )
    texts = {name: ", ".join(sorted(scopes)) for name, scopes in known.items()}
    name = begun_by(session, texts, "sessions", missing)
    return name, known[name]


def _scopes_pending(store: Store, session_id: str) -> set[str]:
    """Return the projects in which a session is to be forgotten already."""
    entries = entries_in(JOURNAL.of(pending(store.journal.read())), Forget)
    return {row["project_id"] for row, entry in entries if session_id in (entry.session_ids or ())}


def plan_reset(context: Context, project: str) -> ResetPlan:
    """Return what forgetting everything about a project would erase."""
    store = context.open_store()
    scopes = [part for name in store.projects.named(project) for part in store.projects.parts_of(name)]
    turns = sum(store.lake.read(TURNS, scope, columns=["turn_id"]).num_rows for scope in scopes)
    return ResetPlan(scopes, sum(store.tables.open(s, "memories").count() for s in scopes), turns)


def reset(context: Context, project: str | ResetPlan) -> Reset:
    """Forget everything about a project up to now; repeated after a kill, it finishes what was begun."""
    plan = project if isinstance(project, ResetPlan) else plan_reset(context, project)
    store = context.open_store()
    for scope in plan.project_ids:
        if not _is_reset(store, scope):
            store.journal.write(Forget(everything=True).to_row(scope, recorded_at=context.now))
    applied, others = _with_global(context, store)
    return Reset(plan, applied, other_copies(context), others)


def _with_global(context: Context, store: Store) -> tuple[Applied, list[str]]:
    """Erase what is to be forgotten; return also the ids of the global memories that went with it."""
    before = _memory_ids(store, [GLOBAL_SCOPE])
    applied = apply_now(context, FORGET)
    return applied, sorted(before - _memory_ids(context.open_store(), [GLOBAL_SCOPE]))


def _is_reset(store: Store, scope: str) -> bool:
    """Return whether a project is to be reset already, and nothing came in since."""
    until = tombstones_of(store.journal.read(scope)).projects.get(scope)
    if until is None:
        return False
    spoken_at = store.lake.read(TURNS, scope, columns=["said_at"])["said_at"]
    journal = store.journal.read(scope).to_pylist()
    is_newer = any(row["recorded_at"] > until for row in journal if row["kind"] not in ("forget", "project"))
    return not is_newer and not (len(spoken_at) and (pc.max(spoken_at).as_py() or until) > until)
