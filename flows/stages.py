"""The stages behind extract: embed, link, decay, consolidate, render; each reads, transforms, commits."""

from dataclasses import replace
from functools import partial

import pyarrow as pa

from cortex.flows.branch_notes import publish_branches
from cortex.flows.briefs import Draft, archive_of, brief_made_from, draft_of, drop_merged, shown_from
from cortex.flows.database import publish_database
from cortex.flows.embed import embed, embed_spare, searchable
from cortex.flows.erase import erase, wipe
from cortex.flows.extract import extract
from cortex.flows.guard import guard, guard_briefs, settle
from cortex.flows.hook_notes import publish_notes
from cortex.flows.retire import retire
from cortex.flows.run import Run
from cortex.flows.surfaces import show_briefs
from cortex.storage.notes import Output
from cortex.transforms.audit import (
    TEXTS,
    Breach,
    archive_breaches,
    brief_breaches,
    edges_breaches,
    memories_breaches,
)
from cortex.transforms.extract.echoes import fingerprints_of
from cortex.transforms.identity import content_id
from cortex.transforms.memory.consolidate import propose, wanted
from cortex.transforms.memory.link import link as links_between
from cortex.transforms.memory.review import settled_edges
from cortex.transforms.schemas import EVENTS, GLOBAL_SCOPE, values


def link(run: Run) -> None:
    """Compare the memories of each scope with their neighbours and keep the edges."""
    with run.report.stage("link") as row:
        for scope in run.scopes():
            with run.apart(scope, "link"):
                made_from = content_id(run.inputs(scope), run.model)
                if run.has_made("link", scope, made_from):
                    continue
                memories = run.memories(scope)
                edges = links_between(memories, run.vectors(), run.policy, run.model)
                edges = settled_edges(edges, run.journal_in_one(scope))
                if not run.passes(scope, edges.num_rows, partial(edges_breaches, edges, memories)):
                    continue
                row.rows_in += memories.num_rows
                row.rows_out += run.store.tables.replace(scope, "edges", edges)
                run.made("link", scope, made_from)


def decay(run: Run) -> None:
    """Age the memories of each scope to today, rank them, and keep them."""
    with run.report.stage("decay") as row:
        for scope in run.scopes():
            with run.apart(scope, "decay"):
                if run.has_made("decay", scope, run.aged_inputs(scope, run.day)):
                    continue
                aged = run.aged(scope)
                memories = aged.memories
                if not run.passes(
                    scope, memories.num_rows, partial(_memories_breaches, run, scope, memories)
                ):
                    continue
                row.rows_in += memories.num_rows
                row.rows_out += run.store.tables.replace(
                    scope, "memories", searchable(memories, run.vectors())
                )
                run.note_findings(scope, aged)
                run.note(replace(run.notes, makers={**run.notes.makers, scope: run.makers(scope)}))
                run.made("decay", scope, run.aged_inputs(scope, run.day))
        settle(run)


def _memories_breaches(run: Run, scope: str, memories: pa.Table) -> list[Breach]:
    """Return what is wrong with memories about to be shown."""
    live = run.store.tables.open(scope, "memories").read(["memory_id", *TEXTS["memories"]])
    return memories_breaches(memories, live, scope, run.policy)


def consolidate(run: Run) -> None:
    """Merge what says the same, where enough has come together since the last time (spec 9.1)."""
    _consolidate(run, forced=False)


def consolidate_all(run: Run) -> None:
    """Merge what says the same in every scope."""
    _consolidate(run, forced=True)


def _consolidate(run: Run, forced: bool) -> None:
    merged = 0
    with run.report.stage("consolidate") as row:
        for scope in run.scopes():
            with run.apart(scope, "consolidate"):
                made_from = content_id(run.inputs(scope), run.model)
                if run.has_made("consolidate", scope, made_from):
                    continue
                memories = run.store.tables.open(scope, "memories").read()
                if not forced and not wanted(memories, _extractions_since(run, scope), run.policy):
                    continue
                told = run.journal_in_one(scope)
                merges = propose(memories, run.vectors(), run.policy, run.model, run.now, undone=told)
                row.rows_in += memories.num_rows
                row.rows_out += merges.num_rows
                merged += merges.num_rows
                # One commit: a kill in between would let the next run merge what was merged just now.
                entries = values(merges, "entry_id")
                made_from = content_id(run.inputs(scope, also=entries), run.model)
                notes = run.notes.with_made(Output("consolidate", scope), made_from)
                sessions = {**notes.consolidated_sessions, scope: _sessions(run, scope)}
                run.store.journal.commit(merges, replace(notes, consolidated_sessions=sessions))
        row.note = f"{merged} merges"
    if merged:
        for stage in (embed, link, decay):
            stage(run)


def render(run: Run) -> None:
    """Publish each project's brief and hook index, the hooks' project map and the DuckDB file."""
    with run.report.stage("render") as row:
        run.join_small_files()
        published, scopes = run.store.published, run.scopes()
        state = {scope: run.aged_inputs(scope, run.day) for scope in scopes}
        projects = [scope for scope in scopes if scope != GLOBAL_SCOPE]
        made_from = {scope: brief_made_from(run, scope) for scope in projects}
        due = [scope for scope in projects if not run.has_made("render", scope, made_from[scope])]
        drafts: dict[str, Draft] = {}
        for scope in due:
            with run.apart(scope, "render"):
                drafts[scope] = draft_of(run, scope)
        briefs = {scope: draft.brief for scope, draft in drafts.items()}
        held = guard_briefs(run, briefs, run.notes.to_wipe)
        for scope, draft in drafts.items():
            if scope in held:
                continue
            with run.apart(scope, "render"):
                brief = draft.brief
                archive = archive_of(run, scope)
                audit = partial(brief_breaches, brief, scope, run.policy, run.brief_tokens(scope))
                secrets = partial(archive_breaches, archive, scope)
                if not (run.passes(scope, 1, audit) and run.passes(scope, 1, secrets)):
                    continue
                told = fingerprints_of(brief) | fingerprints_of(archive)
                run.store.telling.tell(scope, told, run.now)  # before: told is told
                row.rows_out += published.publish_brief(scope, brief)
                row.rows_out += published.publish_archive(scope, archive)
                row.rows_out += publish_branches(run, scope, draft)
                row.rows_out += publish_notes(run, scope, draft)
                noted = replace(run.notes, briefs={**run.notes.briefs, scope: shown_from(run, scope)})
                run.made("render", scope, made_from[scope], noted)
        published.publish_projects(run.store.projects.paths())
        row.note = "; ".join(show_briefs(run))
        drop_merged(run)
        merged = run.store.projects.merged()
        everything = content_id(*state.values(), *sorted(run.store.lake.manifest.files), *merged)
        if not (published.database_path.is_file() and run.has_made("publish", "all", everything)):
            publish_database(run, scopes, everything)
        if not run.damages:  # the last good views read what a sweep would take
            run.store.lake.sweep()


def _extractions_since(run: Run, scope: str) -> int:
    return _sessions(run, scope) - run.notes.consolidated_sessions.get(scope, 0)


def _sessions(run: Run, scope: str) -> int:
    parts = [run.store.lake.read(EVENTS, part, columns=["session_id"]) for part in run.parts(scope)]
    return len({name for rows in parts for name in values(rows, "session_id")})


# What makes tables and published files from the lake.
PROJECTED_BY = (embed, link, decay, render)
INGEST = (erase, extract, guard, embed, link, decay, consolidate, render, wipe, embed_spare)
NIGHTLY = (retire, erase, extract, guard, embed, link, decay, consolidate_all, render, wipe, embed_spare)
# After a person told something: what waits in staging stays there.
TOLD = (erase, guard, embed, link, decay, render, wipe)
# After a person wanted something forgotten: kept transcripts that wait hold it too, until they are read.
FORGET = (erase, extract, guard, embed, link, decay, render, wipe)
CONSOLIDATE = (erase, guard, embed, link, decay, consolidate_all, render, wipe)
