"""Team memory by git: memories proposed on a branch, merged or in conflict; decisions in a tracked file."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import pyarrow.compute as pc

from cortex.flows.context import Context
from cortex.flows.engines.runs import read_only_run
from cortex.flows.operations.lookup import memory_of, project_of
from cortex.flows.run.run import Run
from cortex.flows.stages.team_facts import RefusedFile, TeamReading, read_team
from cortex.hooks.prose.plain import on_one_line
from cortex.storage.filesystem.files import write_where_named, writing_to
from cortex.storage.filesystem.git import GitFailed, person_at
from cortex.storage.projects.team_files import (
    PROPOSAL_BRANCH,
    CommitAuthor,
    TeamBranch,
    checked_out_at,
    commit_files,
    is_branch_name,
    proposed_files,
    team_branch_at,
    tip_of,
)
from cortex.storage.store import Store
from cortex.transforms.documents.team_memory import (
    TEAM_FOLDER,
    TeamMemory,
    Unusable,
    author_name,
    check_shareable,
    decision_id,
    decision_line,
    is_path_inside,
    read_team_memory,
    with_decisions,
)
from cortex.transforms.errors import NotFound, UsageError
from cortex.transforms.identity import content_id
from cortex.transforms.journal_entries import TeamFact
from cortex.transforms.memory.fold import memory_id
from cortex.transforms.memory.team import TEAM_SOURCE, forgotten_in, team_facts
from cortex.transforms.schemas import GLOBAL_SCOPE, MEMORY_TYPES, Row, checked
from cortex.transforms.views.review import CONTRADICTION, disputes, unresolved
from cortex.transforms.words.ages import authors_of, speaker_of


@dataclass(frozen=True)
class Proposed:
    """One memory to propose: its file, or why it is left out (`problem`: of a secret its kind alone)."""

    memory_id: str
    text: str
    path: str = ""
    content: bytes = b""
    problem: str = ""


@dataclass(frozen=True)
class TeamProposal:
    """What would be committed to a branch: memories, files to be removed, and what is left out and why."""

    base: TeamBranch
    branch: str
    person: CommitAuthor
    additions: Sequence[Proposed] = ()
    removals: Sequence[str] = ()
    left_out: Sequence[Proposed] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        return not self.additions and not self.removals


@dataclass(frozen=True)
class Committed:
    """The commit that proposes, and the command that a person gives next."""

    commit: str
    branch: str
    next_command: str


@dataclass(frozen=True)
class Conflict:
    """A memory of one's own that a reviewed one contradicts; `rule` says how."""

    own_id: str
    own_text: str
    team_id: str
    team_text: str
    speaker: str
    rule: str


@dataclass(frozen=True)
class TeamStatus:
    """
    What a project's repository holds of its team's memory.

    `merged` are what its default branch holds, by memory_id; `unread` of them the next run reads, and it
    withdraws `leaving`. `proposed` are files of the local branch that are not merged; `forgotten` were
    forgotten here and stay so.
    """

    project_id: str
    branch: TeamBranch | None
    merged: dict[str, TeamFact] = field(default_factory=dict)
    unread: Sequence[str] = ()
    leaving: Sequence[str] = ()
    forgotten: Sequence[str] = ()
    proposed: Sequence[str] = ()
    conflicts: Sequence[Conflict] = ()
    refusals: Sequence[RefusedFile] = ()


def plan_proposal(
    context: Context,
    targets: Sequence[str] = (),
    *,
    project: str | None = None,
    memory_type: str | None = None,
    pinned: bool = False,
    removes: bool = False,
    branch: str = PROPOSAL_BRANCH,
) -> TeamProposal:
    """
    Return what proposing would commit: the memories named, or those of a project in a person's own words.

    `targets` are ids; without any, `memory_type` and `pinned` choose among the project's. `removes` takes the
    files of memories out instead. Raises NotFound if the project has no repository with a branch to start
    from, UsageError if git does not know who proposes or memories are of several projects.
    """
    store = context.open_store()
    named = [memory_of(context, store, target) for target in targets]
    scopes = {row["project_id"] for row in named} - {GLOBAL_SCOPE}
    if len(scopes) > 1:
        raise UsageError("the memories are of several projects.", "Propose those of one project at a time.")
    scope = next(iter(scopes)) if scopes and project is None else project_of(context, store, project)
    rows = named or _chosen(context, store, scope, memory_type, pinned, removes)
    base, reading = _base(context, store, scope)
    _check_branch(base, branch)
    if removes:
        return _removal(base, reading, branch, _person(base), rows)
    return _addition(context, base, reading, branch, rows)


def propose_memories(context: Context, proposal: TeamProposal) -> Committed:
    """
    Commit a proposal to its branch, and say what comes next; nothing is pushed.

    The branch is written as git objects: index and working tree stay as they are, whatever is checked out.
    A branch whose proposals are all merged starts again from its base. Raises UsageError if git refuses.
    """
    base, branch = proposal.base, proposal.branch
    files: dict[str, bytes | None] = {each.path: each.content for each in proposal.additions}
    files |= dict.fromkeys(proposal.removals)
    starts_over = bool(tip_of(base.top, branch)) and not proposed_files(base, branch)
    try:
        commit = commit_files(
            base,
            branch,
            files,
            person=proposal.person,
            message=_message(proposal),
            seconds=int(context.now.timestamp()),
            starts_over=starts_over,
        )
    except GitFailed as error:
        raise UsageError(
            f"git refused to write the branch {branch}.", "See why: git fsck; or name another: --branch NAME"
        ) from error
    return Committed(commit, branch, f"git push -u origin {branch}")


def team_status(context: Context, *, project: str | None = None) -> TeamStatus:
    """Return what is proposed, merged, set aside and in conflict in a project's repository."""
    store = context.open_store()
    scope = project_of(context, store, project)
    run = read_only_run(context, with_model=False)
    conflicts = conflicts_in(run, scope)
    try:
        base, reading = _base(context, store, scope)
    except NotFound:
        return TeamStatus(scope, None, conflicts=conflicts)
    journal = run.readings.merged_journal(scope)
    held = set(team_facts(journal))
    gone = forgotten_in(journal)
    return TeamStatus(
        scope,
        base,
        reading.facts,
        sorted(reading.facts.keys() - held - gone),
        sorted(held - reading.facts.keys()),
        sorted(reading.facts.keys() & gone),
        list(proposed_files(base, PROPOSAL_BRANCH)),
        conflicts,
        reading.refusals,
    )


def _base(context: Context, store: Store, scope: str) -> tuple[TeamBranch, TeamReading]:
    base = team_branch_at(store.projects.paths_of(scope))
    if base is None:
        raise NotFound(
            "this project has no git repository with a default branch on this machine.",
            "Commit something first, or clone it; memories are also shared by: cortex export",
        )
    try:
        return base, read_team(base, scope, context.policy, context.now)
    except GitFailed as error:
        raise NotFound(f"git does not answer in {base.top}.", "See why: git status") from error


def _check_branch(base: TeamBranch, branch: str) -> None:
    if not is_branch_name(branch):
        raise UsageError(
            f"'{branch}' is no name for a branch.", f"Use letters and dashes, such as {PROPOSAL_BRANCH}."
        )
    if base.name in (branch, f"origin/{branch}"):
        raise UsageError(
            f"{branch} is the default branch.", f"Propose on another, such as {PROPOSAL_BRANCH}."
        )
    if checked_out_at(base.top, branch):
        raise UsageError(
            f"the branch {branch} is checked out.", "Switch to another branch first: git switch -"
        )


def _person(base: TeamBranch) -> CommitAuthor:
    name, address = person_at(base.top)
    if not author_name(name) or not address:
        raise UsageError(
            "git does not know who you are.",
            'Say it once: git config --global user.name "Your Name", and user.email',
        )
    return CommitAuthor(name, address)


def _chosen(
    context: Context, store: Store, scope: str, memory_type: str | None, pinned: bool, removes: bool
) -> list[Row]:
    """Return the memories of a project that are proposed without being named: in a person's own words."""
    memories = store.tables.open(scope, "memories").read()
    wanted = pc.field("status") == "active"
    if memory_type is not None:
        wanted &= pc.field("memory_type") == checked("memory type", memory_type, MEMORY_TYPES)
    if pinned:
        wanted &= pc.field("is_pinned")
    if not removes:
        wanted &= (pc.field("trust") == "user") & (pc.field("source_type") != "code_index")
        wanted &= pc.field("memory_type").isin(sorted(context.policy.types_with("is_shared")))
    return list(memories.filter(wanted).sort_by("memory_id").to_pylist())


def _addition(
    context: Context, base: TeamBranch, reading: TeamReading, branch: str, rows: Sequence[Row]
) -> TeamProposal:
    person = _person(base)
    waiting = proposed_files(base, branch)
    additions: list[Proposed] = []
    left_out: list[Proposed] = []
    for row in rows:
        item = _proposed(context, base, person, row)
        name = memory_id(row["project_id"], row["memory_type"], row["text"])
        if not item.problem and name in reading.facts:
            item = Proposed(item.memory_id, item.text, problem="the team has it already")
        elif item.path in waiting:
            item = Proposed(item.memory_id, item.text, problem=f"it is proposed already, on {branch}")
        (left_out if item.problem else additions).append(item)
    return TeamProposal(base, branch, person, additions, (), left_out)


def _proposed(context: Context, base: TeamBranch, person: CommitAuthor, row: Row) -> Proposed:
    """Return a memory as a file, or with the reason why it cannot be one."""
    memory = as_team_memory(context, row, author_name(person.name), [base.top])
    if isinstance(memory, str):
        return Proposed(row["memory_id"], row["text"], problem=memory)
    content = memory.as_text().encode()
    return Proposed(row["memory_id"], row["text"], f"{TEAM_FOLDER}/{memory.file_name}", content)


def as_team_memory(context: Context, row: Row, author: str, tops: Sequence[str]) -> TeamMemory | str:
    """
    Return a row of MEMORIES as colleagues may read it, or why they may not; `tops` are its project's folders.

    Of files only those below such a folder are named, relative to it.
    """
    if problem := _unfit(row):
        return problem
    turns = sorted(place["turn_id"] for place in row["evidence"] if place["session_id"])
    memory = TeamMemory(
        " ".join(row["text"].split()),
        row["memory_type"],
        author,
        " ".join((row["reason"] or "").split()),
        " ".join((row["rejected"] or "").split()),
        tuple(sorted({inside for file in row["files"] if (inside := _inside(tops, file))})),
        f"sha256:{content_id('evidence', *turns)}" if turns else "",
    )
    text = memory.as_text()
    if any(place in text for place in {str(Path.home()), *tops} if len(place) > 1):
        return "it names a folder of this machine"
    try:
        read_team_memory(text.encode(), context.policy)
    except Unusable as error:
        return str(error)
    return memory


def _unfit(row: Row) -> str:
    if row["status"] != "active":
        return f"it is {row['status']}"
    if row["project_id"] == GLOBAL_SCOPE:
        return "it holds in all your projects; remember it in this one first"
    if row["source_type"] == TEAM_SOURCE:
        return "the team has it already"
    if row["trust"] in ("external", "tool"):
        return "nobody here said it"
    return "" if on_one_line(row["text"]) else "it has no words"


def _inside(tops: Sequence[str], file: str) -> str:
    """Return a file's path below one of the folders; empty for one outside of them."""
    below = (top for top in tops if file.startswith(top.rstrip("/") + "/"))
    top = next(below, "")
    path = PurePosixPath(file).relative_to(top).as_posix() if top else file
    return path if is_path_inside(path) else ""


def _removal(
    base: TeamBranch, reading: TeamReading, branch: str, person: CommitAuthor, rows: Sequence[Row]
) -> TeamProposal:
    paths: list[str] = []
    left_out: list[Proposed] = []
    for row in rows:
        fact = reading.facts.get(row["memory_id"])
        if fact is None:
            left_out.append(Proposed(row["memory_id"], row["text"], problem="the team does not have it"))
        else:
            paths += fact.paths
    return TeamProposal(base, branch, person, (), sorted(paths), left_out)


def _message(proposal: TeamProposal) -> str:
    added, removed = len(proposal.additions), len(proposal.removals)
    parts = [f"propose {added}" if added else "", f"remove {removed}" if removed else ""]
    subject = f"Team memory: {' and '.join(filter(None, parts))}"
    lines = [f"- {each.text[:200]}" for each in proposal.additions]
    return "\n".join([subject, "", *(" ".join(line.split()) for line in lines), *proposal.removals]) + "\n"


def conflicts_in(run: Run, scope: str) -> list[Conflict]:
    """Return what colleagues' memories of a project contradict of one's own, and nobody has resolved."""
    memories = run.store.tables.open(scope, "memories").read()
    edges = run.store.tables.open(scope, "edges").read()
    items = unresolved(disputes(memories, edges, run.policy), run.readings.merged_journal(scope))
    rows = {row["memory_id"]: row for row in memories.to_pylist()}
    conflicts = []
    for item in items:
        ends = [rows[name] for name in item.memory_ids]
        teams = [row for row in ends if row["source_type"] == TEAM_SOURCE]
        own = [row for row in ends if row["source_type"] != TEAM_SOURCE]
        if item.kind == CONTRADICTION and teams and own:
            conflicts.append(
                Conflict(
                    own[0]["memory_id"],
                    own[0]["text"],
                    teams[0]["memory_id"],
                    teams[0]["text"],
                    speaker_of(teams[0]),
                    item.detail,
                )
            )
    return conflicts


# -- A project's decisions in a file that its repository tracks: written on request.

LARGEST_DECISIONS_BYTES = 4_000_000
_BELIEVED = ("user", "colleague")


@dataclass(frozen=True)
class WrittenDecisions:
    """A file of decisions: how many are in its list now, and those left out with the reason, by memory_id."""

    text: str
    decisions: int
    left_out: dict[str, str]


def write_decisions(
    context: Context, file: Path | None = None, *, project: str | None = None
) -> WrittenDecisions:
    """
    Add a project's active decisions to a file's list, take out those that no longer hold, return its text.

    Decisions are those that a person settled or a team reviewed. What others wrote into the file stays.
    Without a `file` nothing is written. Raises UsageError for what is no file of text.
    """
    store = context.open_store()
    scope = project_of(context, store, project)
    rows = store.tables.open(scope, "memories").read().to_pylist()
    decisions = [row for row in rows if row["memory_type"] == "decision" and row["trust"] in _BELIEVED]
    me = author_name(person_at(str(file.parent if file else context.folder))[0])
    lines: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for row in decisions:
        if row["status"] != "active":
            continue
        line = _line_of(row, me)
        try:
            check_shareable(line, context.policy)
        except Unusable as error:
            left_out[row["memory_id"]] = str(error)
        else:
            lines[decision_id(row["text"])] = line
    gone = {decision_id(row["text"]) for row in decisions if row["status"] == "superseded"} - lines.keys()
    text = with_decisions(_text_of(file) if file and file.exists() else "", lines, gone)
    if file is not None:
        with writing_to(file.parent):
            write_where_named(file, text.encode())
    return WrittenDecisions(text, len(lines), left_out)


def _line_of(row: Row, me: str) -> str:
    authors = authors_of(row) or ([me] if me else ["user"])
    words = (on_one_line(row[name] or "") for name in ("text", "reason", "rejected"))
    statement, *slots = words
    reason, rejected = ("" if slot in statement else slot for slot in slots)
    day = f"{row['created_at']:%Y-%m-%d}"
    return decision_line(statement, day, ", ".join(authors), reason, rejected)


def _text_of(file: Path) -> str:
    try:
        if file.stat().st_size > LARGEST_DECISIONS_BYTES:
            raise UsageError(f"{file} is too large for a list of decisions.", "Name another file.")
        return file.read_bytes().decode("utf-8")
    except OSError as error:
        raise NotFound(f"{file} cannot be read: {error.strerror}.", "Check the path.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not text.", "Name another file.") from error
