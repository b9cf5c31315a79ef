"""What the default branch of a repository says as memories of a project, and what of it is set aside."""

from dataclasses import dataclass
from datetime import datetime

from cortex.hooks.prose.plain import on_one_line
from cortex.storage.projects.team_files import (
    TeamBranch,
    TeamFile,
    agreed_author,
    team_files,
)
from cortex.transforms.documents.team_memory import TeamMemory, Unusable, read_team_memory
from cortex.transforms.journal_entries import TeamFact
from cortex.transforms.memory.fold import memory_id
from cortex.transforms.memory.quality import flaw_of
from cortex.transforms.memory.team import joined_facts
from cortex.transforms.policy import Policy

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
