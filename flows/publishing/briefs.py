"""
What is published of a project for its next session: brief, archive, notes on branches, doubts of the
repository.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.publishing.passages import passages_in
from cortex.flows.run.model_replies import answer_about
from cortex.flows.run.run import Run
from cortex.storage.lake.manifest import Output
from cortex.storage.projects.repository import branches_at, commits_since, doubts_of, reverts_in
from cortex.storage.published.catalogue import other_inputs
from cortex.storage.published.surface import Surfaces, roots_of
from cortex.transforms import __version__
from cortex.transforms.brief.candidates import believed, eligibility_by_id, latest_sessions, places_in
from cortex.transforms.brief.explanation import (
    NO_ORDER,
    Choice,
    TellingOrder,
    branch_lines,
    branches_by_memory,
    doubt_of,
)
from cortex.transforms.brief.render import (
    NO_LINES,
    ArchiveLine,
    archive_lines,
    asked_until,
    choose,
    lay_out,
    render_archive,
)
from cortex.transforms.documents.marker_block import Unplaceable, file_of
from cortex.transforms.identity import content_id
from cortex.transforms.journal_entries import Confirm, entries_in
from cortex.transforms.masking import SECRET, without_secrets
from cortex.transforms.memory.reality import Doubt, branches_behind
from cortex.transforms.schemas import EDGES, GLOBAL_SCOPE, MEMORIES, OUTCOMES, PASSAGES, values
from cortex.transforms.views.outcomes import failures, outcomes_of
from cortex.transforms.views.review import doubts_left

# -- What a project's repository on this machine says of its memories; of the past it says nothing.


def doubts_about(run: Run, project_id: str, memories: pa.Table) -> list[Doubt]:
    """Return what repository (spec 11.3) and later sessions have against MEMORIES that nobody let stand."""
    paths = () if run.readings.is_past else run.store.projects.paths_of(project_id)
    doubts = {each.memory_id: each for each in doubts_of(paths, memories, run.policy)}
    doubts |= {
        each.memory_id: each for each in failures(outcomes_about(run, project_id, memories).to_pylist())
    }
    ordered = [doubts[name] for name in sorted(doubts)]
    return doubts_left(ordered, run.readings.merged_journal(project_id)) if ordered else []


def outcomes_about(run: Run, project_id: str, memories: pa.Table) -> pa.Table:
    """Return OUTCOMES of the decisions among MEMORIES of a project."""
    if "decision" not in values(memories, "memory_type"):
        return OUTCOMES.empty()
    notes = run.ledger.notes.outputs
    state = content_id(*(notes.get(Output(stage, project_id), "") for stage in ("link", "decay")))
    if run.outcomes.get(project_id, ("", None))[0] != state:
        reverts = [] if run.readings.is_past else reverts_in(run.store.projects.paths_of(project_id))
        edges = run.store.tables.open(project_id, EDGES.name).read()
        events = run.readings.events(project_id)
        run.outcomes[project_id] = (state, outcomes_of(memories, edges, events, reverts, run.policy))
    return run.outcomes[project_id][1]


def repository_line(run: Run, project_id: str) -> str:
    """Return one line on what git has seen since the project's last session; empty for little."""
    sessions = run.readings.sessions().filter(pc.field("project_id") == project_id)
    if run.readings.is_past or not sessions.num_rows:
        return ""
    last = max(values(sessions, "ended_at"))
    count, head = commits_since(run.store.projects.paths_of(project_id), last)
    if count < run.policy.threshold("reality_commits_told"):
        return ""
    return f"{count} commits since the last session noted here ({last:%d %b %y}); HEAD was {head}."


# -- What is published of a project for its next session: the brief and the archive of its older decisions.


@dataclass(frozen=True)
class BriefInputs:
    """What a project's brief is made from; `doubts` are the repository's, by memory_id."""

    project_name: str
    memories: pa.Table
    edges: pa.Table
    sessions: pa.Table
    marks: Mapping[str, str]
    doubts: Mapping[str, str]
    repository: str
    budget_tokens: int
    confirms_until: datetime | None
    is_read_by_model: bool
    order: TellingOrder
    passages: pa.Table


def brief_inputs(run: Run, project_id: str) -> BriefInputs:
    """Return what a project's tables and its repository say now."""
    rows = _memories_for(run, project_id)
    doubts = doubts_about(run, project_id, rows[0])
    return BriefInputs(
        run.store.projects.name_of(project_id),
        pa.concat_tables(rows),
        run.store.tables.open(project_id, "edges").read(),
        run.readings.sessions(),
        {doubt.memory_id: doubt.mark for doubt in doubts},
        {doubt.memory_id: doubt.reason for doubt in doubts},
        repository_line(run, project_id),
        run.brief_tokens(project_id),
        _confirms_until(run, project_id),
        run.is_read_by_model(project_id),
        _order_of(run, project_id),
        _last_passages(run, project_id),
    )


def _last_passages(run: Run, project_id: str) -> pa.Table:
    """Return the PASSAGES of the last sessions in the lake; none where a language model reads them."""
    if run.is_read_by_model(project_id):
        return PASSAGES.empty()
    sessions = run.readings.sessions().filter(pc.field("project_id") == project_id)
    last = latest_sessions(sessions, int(run.policy.threshold("immortal_full_sessions")))
    return passages_in(run, project_id, run.store.journal.forgotten_turns(), set(last))


def _order_of(run: Run, project_id: str) -> TellingOrder:
    answer = answer_about(run, project_id)
    return TellingOrder(answer.order, answer.seen) if answer else NO_ORDER


def telling_order(run: Run, project_id: str) -> pa.Table:
    """Return the TELLING_ORDER of a project's brief: where a language model would tell each memory."""
    memories, order = pa.concat_tables(_memories_for(run, project_id)), _order_of(run, project_id)
    return places_in(memories, order, run.readings.sessions(), run.policy, project_id)


def _confirms_until(run: Run, project_id: str) -> datetime | None:
    """Return before when the claims were last said that this brief asks about; None if it asks nothing."""
    confirmed = [
        row["recorded_at"] for row, _ in entries_in(run.readings.merged_journal(project_id), Confirm)
    ]
    last = max(confirmed, default=None)
    return asked_until(run.readings.sessions(), project_id, last, run.policy)


def _memories_for(run: Run, project_id: str) -> list[pa.Table]:
    """Return the MEMORIES of the project and the global ones."""
    return [run.store.tables.open(scope, "memories").read() for scope in (project_id, GLOBAL_SCOPE)]


def brief_choices(run: Run, inputs: BriefInputs) -> list[Choice]:
    """Return every candidate for the brief, shown or not, with its reason."""
    choices = choose(
        inputs.memories,
        inputs.edges,
        run.policy,
        project_name=inputs.project_name,
        budget_tokens=inputs.budget_tokens,
        marks=inputs.marks,
        sessions=inputs.sessions,
        repository=inputs.repository,
        confirms_until=inputs.confirms_until,
        is_read_by_model=inputs.is_read_by_model,
        order=inputs.order,
        passages=inputs.passages,
    )
    return without_secrets(choices, project_name=inputs.project_name)


@dataclass(frozen=True)
class Draft:
    """A project's brief with what it was chosen from, so the repository is searched once for all."""

    inputs: BriefInputs
    choices: list[Choice]
    brief: str


def draft_of(run: Run, project_id: str) -> Draft:
    """Return the brief of a project as its tables say it now, and what it was chosen from."""
    inputs = brief_inputs(run, project_id)
    choices = brief_choices(run, inputs)
    run.report.leave_out(project_id, [c for c in choices if c.reason.startswith(SECRET)])
    text = lay_out(choices, project_name=inputs.project_name, is_by_model=inputs.is_read_by_model)
    return Draft(inputs, choices, text)


def without_rows(draft: Draft) -> Draft:
    """Return a draft without the memories and edges that it was made from, which fill the memory."""
    bare = replace(draft.inputs, memories=MEMORIES.empty(), edges=EDGES.empty(), passages=PASSAGES.empty())
    return replace(draft, inputs=bare)


def with_rows(run: Run, project_id: str, draft: Draft) -> Draft:
    """Return a draft with the memories that it was made from, read again if it lacks them."""
    if draft.inputs.memories.num_rows:
        return draft
    memories = pa.concat_tables(_memories_for(run, project_id))
    return replace(draft, inputs=replace(draft.inputs, memories=memories))


def brief_of(run: Run, project_id: str) -> str:
    """Return the brief of a project as its tables say it now."""
    return draft_of(run, project_id).brief


def shown_everywhere(run: Run) -> str:
    """
    Return a fingerprint of what the global memories say in every brief: their rows, and their eligibility.

    Not of what they are made from: that changes with each session of any project, and no brief with it.
    """
    rows = run.store.tables.open(GLOBAL_SCOPE, "memories").read()
    of_each = eligibility_by_id(believed(rows, run.readings.sessions(), run.policy), run.policy)
    since = sorted((name, eligibility.sessions_since) for name, eligibility in of_each.items())
    return content_id(*map(repr, rows.to_pylist()), repr(since))


def rendered_from(run: Run, project_id: str, everywhere: str) -> str:
    """
    Return a fingerprint of all that a project's brief and archive follow from.

    `everywhere` is `shown_everywhere` of the run.
    """
    state, known = run.fingerprints.aged(project_id, run.day), run.store.projects.known_project(project_id)
    return content_id(state, everywhere, *other_inputs(run.settings, known))


def archive_of(run: Run, project_id: str) -> str:
    """Return the project's decisions that no brief has room for any more; empty for none."""
    return archive_text(run, project_id, archive_lines_of(run, project_id, NO_LINES))


def archive_text(run: Run, project_id: str, lines: Iterable[ArchiveLine]) -> str:
    """Return the archive of a project with these lines; empty for none."""
    return render_archive(lines, project_name=run.store.projects.name_of(project_id))


def archive_lines_of(run: Run, project_id: str, known: Mapping[str, ArchiveLine]) -> list[ArchiveLine]:
    """Return the lines of a project's archive; those that are `known` by their key are not worded again."""
    memories = pa.concat_tables(_memories_for(run, project_id))
    return archive_lines(memories, run.policy, sessions=run.readings.sessions(), known=known)


def archive_note(run: Run, text: str, lines: Sequence[ArchiveLine]) -> dict[str, object]:
    """Return what is published of an archive for the next run: key and marks of each line, and no words."""
    listed = "\n".join(" ".join([line.key, *sorted(line.marks)]) for line in lines)
    return {"archive_of": content_id(__version__, run.fingerprints.folded(), text), "archive_lines": listed}


def published_lines(run: Run, project_id: str) -> dict[str, ArchiveLine]:
    """Return by their keys the lines of the published archive, if this version made it by this policy."""
    text, note = run.store.published.archive(project_id), run.store.published.explanation(project_id)
    is_ours = note.get("archive_of") == content_id(__version__, run.fingerprints.folded(), text)
    listed = [line.split(" ") for line in str(note.get("archive_lines")).split("\n")] if is_ours else []
    words = [line for line in text.split("\n") if line.startswith("- ")]
    if len(words) != len(listed):
        return {}
    return {
        key: ArchiveLine(key, line, frozenset(marks))
        for line, (key, *marks) in zip(words, listed, strict=True)
    }


def drop_merged(run: Run) -> None:
    """
    Remove the tables and published files of projects that were merged into another one, or have nothing left.

    Retention may have taken all that a project said. What the stages noted about them is forgotten first:
    split off again, they are rebuilt. Killed in between, the next run finds the folders and goes on.
    """
    merged = run.store.projects.merged()
    held = {*run.store.tables.scopes(), *run.store.published.projects()}
    emptied = {project.project_id for project in run.store.projects.all()} - {*run.readings.scopes()}
    gone = sorted(
        name
        for name in held
        if (merged[name] not in run.outcome.failed if name in merged else name in emptied)
    )
    if not gone:
        return
    with run.store.lake.change() as change:
        change.notes = change.notes.without_projections(gone)
    for name in gone:
        run.store.shown_lines.show(name, (), run.now)  # from now on the other project's brief shows it
        run.store.tables.drop(name)
        run.store.published.drop(name)


# -- What is published with a brief so that it follows the branch of a session (spec 11.3).


def publish_branches(run: Run, project_id: str, draft: Draft) -> bool:
    """Publish on which branches the lines of a brief hold; return whether that differs from the last one."""
    inputs = draft.inputs
    choices = [choice for choice in draft.choices if choice.is_shown]
    shown = {choice.memory_id for choice in choices}
    is_shown = pc.is_in(inputs.memories["memory_id"], pa.array(sorted(filter(None, shown)), pa.string()))
    is_mine = pc.equal(inputs.memories["project_id"], pa.scalar(project_id))
    mine = inputs.memories.select(["memory_id", "project_id", "evidence"])
    rows = mine.filter(pc.and_(is_shown, is_mine)).to_pylist()
    named = {name for row in rows for name in branches_behind(row)}
    tips = branches_at(run.store.projects.paths_of(project_id), named)
    branches = branches_by_memory(rows, tips.within, tips.trunk)
    # What a person let stand in a review is not marked here either.
    left = doubts_left(
        [doubt_of(name, own) for name, own in branches.items()], run.readings.merged_journal(project_id)
    )
    kept = {doubt.memory_id: branches[doubt.memory_id] for doubt in left}
    lines = branch_lines(draft.brief, choices, kept, inputs.marks)
    return run.store.published.publish_branches(project_id, lines, tips)


# -- Briefs in files of the user's projects instead of the hook's: written, kept up to date, taken out.


class Wanted(NamedTuple):
    """A file that is to show a brief: its project's folder, its name there, the brief."""

    root: Path
    name: str
    text: str


def show_briefs(run: Run) -> list[str]:
    """
    Bring the files in line with `brief.surface` and the briefs (spec 11.1); return what could not be done.

    Where a file cannot be written, the hook goes on handing the brief over. Raises StoreNotWritable.
    """
    surfaces = Surfaces(run.store.home)
    wanted, problems = _wanted(run)
    shown: dict[str, str] = {}
    for path in surfaces.files():
        if path not in wanted:
            problems += _problem(path, surfaces, None)
    for path, target in wanted.items():
        problem = _problem(path, surfaces, target)
        problems += problem
        if not problem:
            shown[str(target.root)] = str(path)
    run.store.published.publish_surfaces(shown)
    return problems


def _problem(path: Path, surfaces: Surfaces, wanted: Wanted | None) -> list[str]:
    try:
        if wanted is None:
            surfaces.withdraw(path)
        else:
            surfaces.show(*wanted)
    except Unplaceable as error:
        return [f"{path} was left as it is: {error}"]
    except OSError as error:
        return [f"{path} was left as it is: {error.strerror}"]
    return []


def _wanted(run: Run) -> tuple[dict[Path, Wanted], list[str]]:
    wanted: dict[Path, Wanted] = {}
    problems: list[str] = []
    for project in run.store.projects.all():
        surface = run.settings.of_project(project.project_id, project.paths).brief_surface
        try:
            name = file_of(surface)
        except Unplaceable as error:
            problems.append(str(error))
            continue
        text = run.store.published.brief(project.project_id) if name else ""
        if name and text:
            wanted |= {root / name: Wanted(root, name, text) for root in roots_of(project.paths)}
    return wanted, list(dict.fromkeys(problems))
