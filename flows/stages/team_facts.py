"""The stage team: what the repositories of teams hold is a colleague's word; what went is withdrawn."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.run.run import Run, stage
from cortex.hooks.prose.plain import on_one_line
from cortex.storage.filesystem.git import GitFailed
from cortex.storage.projects.team_files import (
    TeamBranch,
    TeamFile,
    agreed_author,
    branches_state,
    team_branch_at,
    team_files,
)
from cortex.transforms.documents.team_memory import TeamMemory, Unusable, read_team_memory
from cortex.transforms.identity import content_id
from cortex.transforms.journal_entries import TeamFact
from cortex.transforms.memory.fold import memory_id
from cortex.transforms.memory.quality import flaw_of
from cortex.transforms.memory.team import TEAM_ACTOR, forgotten_in, joined_facts, team_changes, team_facts
from cortex.transforms.policy import READERS, Policy
from cortex.transforms.schemas import JOURNAL, Row, values

# -- What the default branch of a repository says as memories of a project, and what of it is set aside.

NOBODY = "a colleague"


@dataclass(frozen=True)
class RefusedFile:
    """A file that is no memory, or one read with a remark (`is_read`); the reason, never its words."""

    path: str
    reason: str
    is_read: bool = False


@dataclass(frozen=True)
class TeamReading:
    """The memories that a branch holds, by memory_id, and what was set aside."""

    facts: dict[str, TeamFact]
    refusals: tuple[RefusedFile, ...]


def read_team(branch: TeamBranch, project_id: str, policy: Policy, now: datetime) -> TeamReading:
    """Return what a branch holds as memories of a project. Raises GitFailed if git does not answer."""
    facts: list[tuple[str, TeamFact]] = []
    aside: list[RefusedFile] = []
    for file in team_files(branch):
        try:
            memory = _usable(file, policy)
        except Unusable as error:
            aside.append(RefusedFile(file.path, str(error)))
            continue
        author, is_agreed = agreed_author(memory.author, file.committers)
        if author and not is_agreed:
            aside.append(
                RefusedFile(file.path, f"it names another author than git, which has {author}", True)
            )
        name = memory_id(project_id, memory.memory_type, memory.statement)
        facts.append((name, _fact(memory, file, author or NOBODY, now)))
    return TeamReading(joined_facts(facts), tuple(aside))


def _usable(file: TeamFile, policy: Policy) -> TeamMemory:
    if file.problem:
        raise Unusable(file.problem)
    memory = read_team_memory(file.content, policy)
    if on_one_line(memory.statement) == "" or (flaw := flaw_of(memory.statement, policy)):
        raise Unusable(flaw if memory.statement else "it has no statement")
    return memory


def _fact(memory: TeamMemory, file: TeamFile, author: str, now: datetime) -> TeamFact:
    is_past = file.changed_at is not None and file.changed_at <= now
    return TeamFact(
        memory.statement,
        memory.memory_type,
        [file.path],
        [author],
        list(memory.files),
        memory.reason or None,
        memory.rejected or None,
        file.changed_at.isoformat() if file.changed_at and is_past else None,
    )


# -- Reads what the teams' repositories hold: what was merged is a colleague's word, what went is withdrawn.

READ_AS = "1"  # another way of reading the files makes every repository be read again
_KINDS = ("team", "withdraw", "forget")


@stage(reads="journal", writes="journal")
def team(run: Run) -> None:
    """
    Journal how the memories that repositories hold differ from those last read from them.

    Of each project the newest clone counts, as its default branch was last fetched. A repository that is gone
    or does not answer changes nothing. What a person forgot here stays forgotten.
    """
    run.store.journal.take_in()
    due = _due(run)
    if not due:
        return
    with run.report.stage("team") as row:
        rows: list[Row] = []
        read: dict[str, str] = {}
        for project_id, (places, state) in due.items():
            changes = _changes(run, project_id, places)
            if changes is not None:
                rows += changes
                read[project_id] = state
        row.rows_out = len(rows)
        if rows:
            run.store.journal.commit(JOURNAL.of(rows))
        stamp_of = _stamps(run)
        stamps = {project_id: stamp_of(project_id, state) for project_id, state in read.items()}
        run.store.lake.note(replace(run.store.lake.notes, team={**run.store.lake.notes.team, **stamps}))


def _due(run: Run) -> dict[str, tuple[list[str], str]]:
    """Return the folders and the branches' state of each project whose repository may have changed."""
    noted, stamp_of, due = run.store.lake.notes.team, _stamps(run), {}
    for project_id, places in run.store.projects.places().items():
        state = branches_state(places)
        if state and noted.get(project_id) != stamp_of(project_id, state):
            due[project_id] = places, state
    return due


def _stamps(run: Run) -> Callable[[str, str], str]:
    """
    Return the function that gives what decides whether a project's repository is read again.

    That is the state of its branches, what is known of it here, and what is refused; the journal is read
    once.
    """
    tables = [stem for stem, readers in READERS.items() if "team" in readers]
    policy = content_id(*(repr(run.policy.rows[stem]) for stem in tables))
    entries = _entries(run.store.journal.read())
    ids: dict[str, list[str]] = {}
    for name, entry_id in zip(values(entries, "project_id"), values(entries, "entry_id"), strict=True):
        ids.setdefault(name, []).append(entry_id)
    return lambda project_id, state: content_id(READ_AS, state, policy, *sorted(ids.get(project_id, ())))


def _changes(run: Run, project_id: str, places: list[str]) -> list[Row] | None:
    """Return the journal's rows about a project; None if its repository does not say."""
    entries = _entries(run.store.journal.read(project_id))
    held = team_facts(entries)
    try:
        branch = team_branch_at(places)
        if branch is None:
            return None if held else []
        reading = read_team(branch, project_id, run.policy, run.now)
    except GitFailed:
        return None
    unread = [each for each in reading.refusals if not each.is_read]
    if unread:
        name = run.store.projects.name_of(run.store.projects.canonical(project_id))
        run.report.note(f"{len(unread)} files of {name}'s team memory are set aside: cortex team status")
    forgotten = forgotten_in(entries)
    facts = {name: fact for name, fact in reading.facts.items() if name not in forgotten}
    return [
        entry.to_row(project_id, recorded_at=run.now, memory_id=name, actor=TEAM_ACTOR)
        for name, entry in team_changes(held, facts).items()
    ]


def _entries(journal: pa.Table) -> pa.Table:
    return journal.filter(pc.is_in(journal["kind"], pa.array(_KINDS)))
