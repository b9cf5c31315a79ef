"""What leaves a store and what comes in: memories exported and imported, the whole store as one file."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.context import Context
from cortex.flows.engines.runs import opened, read_only_run, run_plain
from cortex.flows.operations.ask.sql import store_as_of
from cortex.flows.operations.edit.apply import WAITING, Applied
from cortex.flows.operations.lookup import project_of, scopes_of
from cortex.flows.run.run import Run
from cortex.flows.stages.order import APPLY, FORGET
from cortex.hooks.prose.characters import escaped, visible
from cortex.hooks.prose.plain import without_private
from cortex.storage.copies.backup import BACKUP_KIND, Backup, note_copy, restore_backup, write_backup
from cortex.storage.copies.swapping import disabled_settings
from cortex.storage.filesystem.files import write_where_named, writing_to
from cortex.storage.filesystem.place import is_copy
from cortex.storage.lake.encryption import own_export_key, read_export_key
from cortex.storage.settings.settings import load_settings
from cortex.storage.staging.assistant_folders import notes_below
from cortex.storage.store import Store
from cortex.transforms.documents.interchange import (
    Export,
    Imported,
    as_json_text,
    as_markdown,
    document_in,
    export_in,
    facts_in,
    is_signed_with,
    moved,
    read_export,
)
from cortex.transforms.errors import NotFound, StoreBusy, UnknownProject, UsageError
from cortex.transforms.journal_entries import (
    ActiveDays,
    Dismiss,
    Fade,
    ImportFact,
    ProjectFolder,
    entries_in,
    entry_of,
    project_entries,
)
from cortex.transforms.memory.fold import import_of, memory_id
from cortex.transforms.policy import Policy
from cortex.transforms.redaction.redact import redact
from cortex.transforms.schemas import GLOBAL_SCOPE, JOURNAL, Row, values
from cortex.transforms.words.prompt_injection import injection_reason

# -- Export and import of a store's memories: what leaves, what enters, and into which project.

OWN = "cortex export"
NOTES_FORM = "Claude Code's notes"
_WORDED_COLUMNS = ("text", "reason", "rejected")


@dataclass(frozen=True)
class ExportedText:
    """
    The text of an export and how many memories it holds.

    `is_signed` is false for JSON that an import would not know again, since the key cannot be written.
    """

    text: str
    memories: int
    is_signed: bool


@dataclass
class ImportResult:
    """
    What an import did: its format, and how many memories came, were known, could not be used.

    `refused` would turn an assistant against its person; `forgotten` were forgotten or pruned here before and
    stay so; `homeless` name a project that this store does not know. `is_own` says whether the file is
    believed as this user's own export, `entries` are what was journaled.
    """

    form: str
    imported: int = 0
    known: int = 0
    unusable: int = 0
    refused: int = 0
    forgotten: int = 0
    homeless: int = 0
    is_own: bool = False
    applied: Applied = WAITING
    entries: list[Row] = field(default_factory=list, repr=False)


def export(
    context: Context,
    file: Path | None = None,
    *,
    form: str = "json",
    project: str | None = None,
    as_of: str | None = None,
) -> ExportedText:
    """
    Return the memories of every project, or of one, as JSON or Markdown; write them to `file` if it is given.

    JSON holds everything and is signed with the user's key, so that an import knows it again. Markdown holds
    text, type and project of the active memories. Raises UsageError if `file` is a folder.
    """
    if file is not None and file.is_dir():
        raise UsageError(f"{file} is a folder.", "Name a file in it.")
    store = context.open_store()
    scopes = scopes_of(context, store, project) if project else store.tables.scopes()
    run = read_only_run(context) if as_of is None else store_as_of(context, as_of, scopes)
    text, count = _text_of(run, scopes, form)
    text = escaped(text) if form == "json" else visible(text, keeps_lines=True)
    if file is not None:
        with writing_to(file.parent):
            write_where_named(file, text.encode())
        if file.is_file():
            note_copy(context.home, "export", str(file.expanduser().absolute()), context.now)
    return ExportedText(text, count, is_signed=form != "json" or read_export_key() is not None)


def _text_of(run: Run, scopes: Sequence[str], form: str) -> tuple[str, int]:
    """Return the memories of `scopes` as JSON or Markdown, and how many; pruned ones have no words."""
    names = {project.project_id: project.name for project in run.store.projects.all()}
    rows: list[Row] = []
    for scope in scopes:
        folded, aged = run.readings.memories(scope), run.readings.aged(scope, run.day).memories
        today = dict(zip(values(aged, "memory_id"), values(aged, "status"), strict=True))
        shown = [row for row in folded.to_pylist() if today[row["memory_id"]] != "pruned"]
        # Ageing is the reader's to repeat; a list for people says what is active today.
        rows += shown if form == "json" else [{**row, "status": today[row["memory_id"]]} for row in shown]
    if form != "json":
        return as_markdown(rows, names), sum(row["status"] == "active" for row in rows)
    ids = {row["memory_id"] for row in rows}
    text = as_json_text(
        rows,
        names,
        run.now,
        notes=_notes(run, scopes),
        settled=_settled(run, scopes),
        worked={scope: values(run.readings.activity(scope), "active_at") for scope in scopes},
        weak={name: at for scope in scopes for name, at in _weak(run, scope).items() if name in ids},
        key=own_export_key(),
    )
    return text, len(rows)


def import_memories(
    context: Context, source: Path | bytes, *, project: str | None = None, is_own: bool = False
) -> ImportResult:
    """
    Journal what a file holds and the store does not; in one commit, or waiting while another run writes.

    An export of this user's, known by its signature or vouched for (`is_own`), is put back as it was, each
    memory in its own project; `project` takes the place of the one project it holds. Anything else is
    external, and memories whose file names no project go to `project`, else to the folder's. A folder is one
    of Claude Code's notes, or holds several: each goes to the project of its transcripts. Raises NotFound for
    a file that cannot be read, UsageError for several projects in an export that should go to one.
    """
    raw = source if isinstance(source, bytes) else b"" if source.is_dir() else _bytes_of(source)
    store = context.open_store()
    named = project_of(context, store, project) if project is not None else None
    run = read_only_run(context)
    document = document_in(raw)
    if isinstance(source, Path) and source.is_dir():
        intake = _take_in_notes(run, source, named, run.now)
    elif document is not None and (is_own or is_signed_with(document, read_export_key())):
        intake = _put_back(run, export_in(document), named, run.now)
    else:
        intake = _take_in(run, raw, lambda: project_of(context, store, None), named, run.now)
    # Also without a new entry: a killed import may have left the tables without what it journaled.
    intake.applied = _record(context, intake.entries)
    return intake


def is_unvouched_export(file: Path) -> bool:
    """Return whether a file is an export of Cortex that this user's key did not sign."""
    if file.is_dir():
        return False
    document = document_in(_bytes_of(file))
    return document is not None and not is_signed_with(document, read_export_key())


def _bytes_of(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise NotFound(f"{file} cannot be read: {error.strerror}.", "Check the path.") from error


def _put_back(run: Run, export: Export, project: str | None, now: datetime) -> ImportResult:
    intake = ImportResult(OWN, unusable=export.unusable, is_own=True)
    names = {row["project_id"] for row in export.memories} - {GLOBAL_SCOPE}
    if project is not None and len(names) > 1:
        raise UsageError(
            f"the export holds {len(names)} projects, and each goes to its own.",
            "Leave out --project, or export one project by itself: cortex export --project NAME",
        )
    if project is None:
        intake.entries += _missing_notes(run.store, export.notes, now)
    # A project merged into another one here takes what it had along.
    to = {name: project or run.store.projects.canonical(name) for name in names}
    known = _Known.of(run)
    fresh: dict[str, list[Row]] = {}
    for row, before in zip(moved(export.memories, to), export.memories, strict=True):
        is_persons = row["trust"] == "user"
        if not is_persons and any(injection_reason(row[name] or "", run.policy) for name in _WORDED_COLUMNS):
            intake.refused += 1
        elif known.takes(row["memory_id"], intake):
            entry = import_of(row)
            intake.entries.append(
                entry.to_row(row["project_id"], recorded_at=now, memory_id=row["memory_id"])
            )
            fresh.setdefault(row["project_id"], []).append(row | {"before": before})
    intake.entries += _as_old_as_there(export, fresh, now)
    journal = set(values(run.store.journal.read(), "entry_id"))
    if project is None:
        intake.entries += [row for row in export.settled if row["entry_id"] not in journal]
    return intake


def _as_old_as_there(export: Export, fresh: dict[str, list[Row]], now: datetime) -> list[Row]:
    """Return the entries by which what came, by its project here, has the age that it had where it was."""
    entries = []
    for scope, rows in fresh.items():
        there = {row["before"]["project_id"] for row in rows}
        instants = sorted({at for name in there for at in export.worked.get(name, ())})
        if instants:
            worked = ActiveDays([at.isoformat() for at in instants])
            entries.append(worked.to_row(scope, recorded_at=now, actor="import"))
        since: dict[datetime, list[str]] = {}
        for row in rows:
            if at := export.weak.get(row["before"]["memory_id"]):
                since.setdefault(at, []).append(row["memory_id"])
        for at, names in since.items():
            entries.append(Fade(sorted(names)).to_row(scope, recorded_at=at, actor="decay"))
    return entries


def _weak(run: Run, scope: str) -> dict[str, datetime]:
    weak = run.readings.weak(scope)
    return dict(zip(values(weak, "memory_id"), values(weak, "weak_since"), strict=True))


def _missing_notes(store: Store, notes: Iterable[tuple[str, Row]], now: datetime) -> list[Row]:
    """Return the entries about projects whose folder, name or merging this store knows nothing of."""
    places, merged = store.projects.paths(), store.projects.merged()
    named = {p.project_id for p in store.projects.all()}
    entries = []
    for project_id, payload in notes:
        is_new = payload["cwd"] not in places if "cwd" in payload else project_id not in named | merged.keys()
        if is_new:
            note = entry_of("project", payload)
            entries.append(note.to_row(project_id, recorded_at=now, actor="import"))
    return entries


def _take_in_notes(run: Run, folder: Path, project: str | None, now: datetime) -> ImportResult:
    """Take in Claude Code's notes; notes of projects that are not known are left out."""
    intake, known = ImportResult(NOTES_FORM), _Known.of(run)
    for name, files in notes_below(folder):
        facts, empty = facts_in(files)
        intake.unusable += empty
        scope = project or _project_of_transcripts(run.store, name)
        for memory in facts:
            _take(memory, scope, known, intake, run.policy, now)
    return intake


def _project_of_transcripts(store: Store, name: str) -> str | None:
    """Return the project whose transcripts are in a folder of this name, also one that has moved since."""
    try:
        ids = store.projects.named(name)
    except (UnknownProject, UsageError):
        return None
    return ids[0] if len(ids) == 1 else None


def _take_in(
    run: Run, raw: bytes, here: Callable[[], str], project: str | None, now: datetime
) -> ImportResult:
    read = read_export(raw)
    places: dict[str | None, str | None] = {}
    intake = ImportResult(read.form, unusable=read.unusable)
    known = _Known.of(run)
    for memory in read.memories:
        if memory.project not in places:
            named = memory.project
            places[named] = project or (_project_here(run.store, named) if named else here())
        _take(memory, places[memory.project], known, intake, run.policy, now)
    return intake


def _take(
    memory: Imported,
    project: str | None,
    known: "_Known",
    intake: ImportResult,
    policy: Policy,
    now: datetime,
) -> None:
    """Take in one memory of somebody else's file, or count why not."""
    scope = GLOBAL_SCOPE if memory.is_global else project
    fact = redact(without_private(memory.text))[0].strip()
    if not fact:
        intake.unusable += 1
    elif memory.memory_id in known.memory_ids:
        # An export of this store, also where words or project were changed since: it is here already.
        intake.known += 1
    elif injection_reason(fact, policy):
        intake.refused += 1
    elif scope is None:
        intake.homeless += 1
    elif known.takes(name := memory_id(scope, memory.memory_type, fact), intake):
        intake.entries.append(_fact(memory, fact).to_row(scope, recorded_at=now, memory_id=name))


def _fact(memory: Imported, text: str) -> ImportFact:
    return ImportFact(
        text,
        memory.memory_type,
        GLOBAL_SCOPE if memory.is_global else "project",
        priority=memory.priority,
        tags=[redact(tag)[0] for tag in memory.tags],
        files=[redact(file)[0] for file in memory.files],
        trust=memory.trust,
        created_at=memory.created_at or None,
    )


def _project_here(store: Store, name: str) -> str | None:
    """Return the project of this store that an id or name means; None for none or several."""
    ids = [p.project_id for p in store.projects.all() if name in (p.project_id, p.name, *p.merged)]
    return ids[0] if len(ids) == 1 else None


@dataclass
class _Known:
    """Which memories a store has, and which it forgot or pruned."""

    memory_ids: set[str]
    gone: set[str]

    @classmethod
    def of(cls, run: Run) -> "_Known":
        known = {
            name
            for scope in run.readings.scopes()
            for name in values(
                run.readings.memories(scope).filter(pc.field("status") != "pruned"), "memory_id"
            )
        }
        entries = run.store.journal.read()
        forgotten = entries.filter(pc.field("kind").isin(pa.array(["forget", "prune"], pa.string())))
        return cls(known, set(values(forgotten, "memory_id")) - known)

    def takes(self, name: str, intake: ImportResult) -> bool:
        """Return whether a memory is new here, and count it in `intake`."""
        if name in self.memory_ids:
            intake.known += 1
        elif name in self.gone:
            intake.forgotten += 1
        else:
            self.memory_ids.add(name)
            intake.imported += 1
            return True
        return False


def _record(context: Context, entries: list[Row]) -> Applied:
    """Commit the entries and make them searchable; while another run writes they wait for the next one."""
    try:
        with opened("import", context) as run:
            run.store.journal.take_in()
            if entries:
                run.store.journal.commit(JOURNAL.of(entries))
            run_plain(APPLY, run)
    except StoreBusy:
        store = Store(context.home)
        for row in entries:
            store.journal.write(row)
        return WAITING
    return Applied(True)


def _notes(run: Run, scopes: Sequence[str]) -> list[tuple[str, Row]]:
    """Return the journal's words about the projects of `scopes`: folders, given names, merges, once each."""
    wanted = {part for scope in scopes if scope != GLOBAL_SCOPE for part in run.readings.parts(scope)}
    notes: dict[tuple[str, str], tuple[str, Row]] = {}
    for row, entry in project_entries(run.store.journal.read()):
        note = (row["project_id"], entry.content)
        if row["project_id"] not in wanted:
            continue
        if isinstance(entry, ProjectFolder):  # a folder stays what it first resolved to
            notes.setdefault(("cwd", entry.cwd), note)
        else:  # of a name and of a merge the last word counts
            notes[min(entry.content), row["project_id"]] = note
    return [note for note in notes.values() if None not in note[1].values()]


def _settled(run: Run, scopes: Sequence[str]) -> list[Row]:
    """Return the entries by which a person left a contradiction or a doubt as it is, under today's ids."""
    return [
        entry.to_row(row["project_id"], recorded_at=row["recorded_at"], actor=row["actor"])
        for scope in scopes
        for row, entry in entries_in(run.readings.merged_journal(scope), Dismiss)
    ]


# -- Writes the store to one file, and puts such a file in the place of the store.


@dataclass(frozen=True)
class Restored:
    """
    A backup that was put in the place of the store.

    `previous` is where the store lies that was there; `quarantined` are settings and policy of the backup,
    which are not put in force.
    """

    backup: Backup
    previous: Path | None
    quarantined: Sequence[Path]


def backup(context: Context, file: Path) -> Backup:
    """Write all of the store that cannot be made from the rest to one file, consistent under the lease."""
    with opened("backup", context) as run:
        run.store.journal.take_in()
        written = write_backup(run.store, file, run.now)
    note_copy(context.home, BACKUP_KIND, str(file.expanduser().absolute()), context.now)
    return written


def _is_export(file: Path) -> bool:
    """Return whether a file is JSON, as exports are; a backup is compressed."""
    try:
        with file.open("rb") as source:
            return source.read(1) == b"{"
    except OSError:
        return False


def restore(context: Context, file: Path, *, into: Path | None = None) -> Restored:
    """
    Check a backup and put it in the place of the store, or of the folder `into`; what was there is kept next
    to it.

    What was forgotten here since the backup is forgotten in it too. Raises UsageError for the copy of a store
    elsewhere.
    """
    home = into.expanduser().absolute() if into else context.home
    if _is_export(file):
        raise UsageError(f"{file} is an export, not a backup.", f"Read it with: cortex import {file}")
    if is_copy(home):
        raise UsageError(
            f"{home} is a copy of a store elsewhere, which other machines may have gone on with.",
            "Restore into a folder of its own: --into FOLDER. How that becomes a store elsewhere: "
            "docs/store-elsewhere.md",
        )
    written, previous = restore_backup(file, home, context.now, context.settings.encryption_key_file)
    with opened("restore", replace(context, settings=load_settings(home))) as run:
        run_plain(FORGET, run)
    return Restored(written, previous, disabled_settings(home))
