"""What a language model's replies in the lake say: which count, their verdicts, and what gave way to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.run.run import Run
from cortex.storage.lake.lake import Change
from cortex.storage.lake.manifest import ManifestNotes, PromptChoice
from cortex.transforms.errors import UsageError
from cortex.transforms.memory.consolidate import NO_SAME_STATEMENTS, SameStatements
from cortex.transforms.memory.validity import with_valid_time
from cortex.transforms.schemas import EDGES, GLOBAL_SCOPE, REPLIES
from cortex.transforms.views.review import resolved_edges
from cortex.transforms.writer.request import SESSION_PROMPT, version_of

if TYPE_CHECKING:
    from cortex.transforms.writer.project import ProjectAnswer


# -- Which version of the instruction for sessions counts in a project, and which one reads new sessions.

# A choice for all projects is noted under this name; one for a project goes before it.
EVERY_SCOPE = "all"


def shipped_prompts() -> list[str]:
    """Return the versions that come with this release, the newest first."""
    name = SESSION_PROMPT.partition("@")[0]
    return [f"{name}@{number}" for number in range(version_of(SESSION_PROMPT), 0, -1)]


def check_prompt(name: str) -> str:
    """Return `name`. Raises UsageError if no such version comes with this release."""
    shipped = shipped_prompts()
    if name not in shipped:
        raise UsageError(f"There is no version {name}.", f"Name one of: {', '.join(shipped)}.")
    return name


def prompt_in_force(run: Run, project_id: str) -> str:
    """
    Return the version whose facts count of sessions that several have read; empty if none was chosen.

    Then what was read first counts: a second reading is a proposal until a person promotes it.
    """
    choice = _choice(run.store.lake.notes, project_id)
    return choice.chosen if choice else ""


def prompt_to_ask(run: Run, project_id: str) -> str:
    """
    Return the version that reads new sessions of a project: the chosen one.

    One that was released after the choice is used for what is new, since no person has decided against it.
    """
    choice = _choice(run.store.lake.notes, project_id)
    return choice.chosen if choice and choice.newest == SESSION_PROMPT else SESSION_PROMPT


def prompts_to_show(run: Run, prompt: str | None) -> dict[str, str]:
    """Return, by project with replies, what a re-derivation shows: `prompt`, else the one to ask."""
    projects = run.store.lake.manifest.partitions(REPLIES.name) if run.settings.models.uses_replies else ()
    return {project_id: prompt or prompt_to_ask(run, project_id) for project_id in projects}


def with_everywhere(notes: ManifestNotes, prompt: str) -> ManifestNotes:
    """Return the notes once a person has chosen a version for all projects, those to come among them."""
    return replace(notes, prompts={EVERY_SCOPE: PromptChoice(prompt, SESSION_PROMPT)})


def with_chosen(notes: ManifestNotes, projects: Iterable[str], prompt: str) -> ManifestNotes:
    """Return the notes once a person has chosen a version for `projects`."""
    choice = PromptChoice(prompt, SESSION_PROMPT)
    return replace(notes, prompts={**notes.prompts, **dict.fromkeys(projects, choice)})


def _choice(notes: ManifestNotes, project_id: str) -> PromptChoice | None:
    return notes.prompts.get(project_id) or notes.prompts.get(EVERY_SCOPE)


# -- What a language model says of a scope's memories, of pairs and of all, as the lake's replies hold it.

# What is about replies is imported where it is used: if no language model has answered none is loaded.

PROJECT_COLUMNS = ["request_id", "purpose", "known", "text", "asked_at"]


def verdicts_of(run: Run, scope: str) -> Mapping[str, str]:
    """Return the verdict on each pair of a scope that was asked about, by name."""
    lake, parts = run.store.lake, _parts(run, scope)
    if not parts:
        return {}
    from cortex.transforms.writer.pairs import VERDICT_COLUMNS, kept_verdicts

    return kept_verdicts(
        pa.concat_tables(lake.read(REPLIES, part, columns=VERDICT_COLUMNS) for part in parts)
    )


def project_replies(run: Run, scope: str) -> pa.Table:
    """Return the REPLIES of a scope: PROJECT_COLUMNS of them."""
    empty = REPLIES.empty().select(PROJECT_COLUMNS)
    read = (run.store.lake.read(REPLIES, part, columns=PROJECT_COLUMNS) for part in _parts(run, scope))
    return pa.concat_tables([empty, *read])


def answer_about(run: Run, scope: str, until: datetime | None = None) -> ProjectAnswer | None:
    """Return the last answer about all that a project holds, of those until an instant; None if none is."""
    if scope == GLOBAL_SCOPE or not run.settings.models.uses_replies or not _parts(run, scope):
        return None
    from cortex.transforms.writer.project import project_answer

    now = run.now if run.readings.is_past else None
    return project_answer(project_replies(run, scope), until or now)


def with_closings_of(
    run: Run, scope: str, edges: pa.Table, memories: pa.Table, until: datetime | None = None
) -> pa.Table:
    """Return a scope's edges with those to what its sessions, as a model read them, show to be over."""
    parts = sorted({*run.readings.parts(scope)} & {*run.store.lake.manifest.partitions(REPLIES.name)})
    if not parts:
        return edges
    from cortex.transforms.writer.pairs import REPLY_COLUMNS, with_closings

    replies = pa.concat_tables(run.store.lake.read(REPLIES, part, columns=REPLY_COLUMNS) for part in parts)
    if until is not None:
        replies = replies.filter(pc.field("asked_at") <= until)
    return with_closings(edges, memories, replies, run.readings.events(scope))


def with_answer_of(edges: pa.Table, memories: pa.Table, answer: ProjectAnswer | None) -> pa.Table:
    """Return a scope's edges as the answer about all that it holds says."""
    if answer is None:
        return edges
    from cortex.transforms.writer.project import with_project_answer

    return with_project_answer(edges, memories, answer)


def still_holding(
    run: Run,
    scope: str,
    memories: pa.Table,
    answer: ProjectAnswer | None = None,
    until: datetime | None = None,
) -> pa.Table:
    """Return a scope's MEMORIES without what its sessions, read until an instant, and `answer` ended."""
    edges = with_closings_of(run, scope, EDGES.empty(), memories, until)
    edges = resolved_edges(with_answer_of(edges, memories, answer), run.readings.merged_journal(scope))
    ended = with_valid_time(memories, edges, answer.endings() if answer else {}, run.policy)
    return memories.filter(pc.is_null(ended["valid_until"]))


def with_short_forms_of(run: Run, scope: str, memories: pa.Table) -> pa.Table:
    """Return MEMORIES of a scope with subject, summary and tags that a language model named them by."""
    parts = _parts(run, scope) if scope != GLOBAL_SCOPE else run.store.lake.manifest.partitions(REPLIES.name)
    if not parts or not run.settings.models.uses_replies:
        return memories
    from cortex.transforms.writer.project import SHORT_FORM_COLUMNS, with_short_forms

    read = [run.store.lake.read(REPLIES, part, columns=SHORT_FORM_COLUMNS) for part in sorted(parts)]
    return with_short_forms(memories, pa.concat_tables(read))


def same_statements_in(run: Run, scope: str, memories: pa.Table) -> SameStatements:
    """Return what of a scope says the same, by a language model; takes its MEMORIES."""
    verdicts, answer = verdicts_of(run, scope), answer_about(run, scope)
    if not verdicts and answer is None:
        return NO_SAME_STATEMENTS
    from cortex.transforms.writer.pairs import same_pairs

    same = same_pairs(memories, run.store.tables.open(scope, "edges").read(), verdicts) if verdicts else {}
    pairs, texts = answer.same_statements() if answer else ({}, {})
    return SameStatements(same | pairs, texts)


def _parts(run: Run, scope: str) -> list[str]:
    parts = {GLOBAL_SCOPE} if scope == GLOBAL_SCOPE else set(run.readings.parts(scope))
    return sorted(parts & set(run.store.lake.manifest.partitions(REPLIES.name)))


# -- Counts facts that a language model's answer replaced, so that the guard does not report them as lost.


def note_replaced_by_model(
    run: Run, change: Change, project_id: str, before: pa.Table, after: pa.Table
) -> None:
    """Note, by scope, how many facts of a session its EVENTS `before` show and those `after` do not."""
    makes_memory = pc.invert(pc.is_null(pc.field("memory_type")))
    is_shown = makes_memory & (pc.field("confidence") >= run.policy.threshold("shown_min_confidence"))
    left = set(after.filter(is_shown)["event_id"].to_pylist())
    scope = run.store.projects.canonical(project_id)
    counts = Counter(change.notes.replaced_by_model)
    for row in before.filter(is_shown).select(["event_id", "category"]).to_pylist():
        if row["event_id"] not in left:
            counts[GLOBAL_SCOPE if row["category"] == GLOBAL_SCOPE else scope] += 1
    change.notes = replace(change.notes, replaced_by_model=dict(counts))


def lines_replaced_by_model(notes: Mapping[str, int], scope: str) -> int:
    """Return how many lines a project's brief may lose because a model's answer replaced facts in it or in
    every project."""
    return notes.get(scope, 0) + notes.get(GLOBAL_SCOPE, 0)


def forget_replaced_by_model(run: Run, held: Collection[str]) -> None:
    """Clear the counts of projects with a published brief; those `held` back keep theirs."""
    notes = run.store.lake.notes
    kept = {*held, *run.outcome.failed, *([GLOBAL_SCOPE] if held else [])}
    left = {scope: count for scope, count in notes.replaced_by_model.items() if scope in kept}
    untold = {scope: count for scope, count in notes.untold.items() if scope in kept}
    if left != notes.replaced_by_model or untold != notes.untold:
        run.store.lake.note(replace(notes, replaced_by_model=left, untold=untold))
