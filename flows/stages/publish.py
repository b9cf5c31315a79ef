"""The stages that publish: each project's brief and what goes with it, then what the store has once."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from cortex.flows.publishing.briefs import (
    Draft,
    archive_lines_of,
    archive_note,
    archive_text,
    draft_of,
    drop_merged,
    publish_branches,
    published_lines,
    rendered_from,
    show_briefs,
    shown_everywhere,
    with_rows,
    without_rows,
)
from cortex.flows.publishing.database import publish_database
from cortex.flows.run.model_replies import forget_replaced_by_model
from cortex.flows.run.run import Run, stage
from cortex.flows.run_report import StageReport
from cortex.flows.stages.guard import guard_briefs
from cortex.hooks.echo import fingerprints_of
from cortex.storage.lake.manifest import Output
from cortex.storage.published.catalogue import SHOWN_EVERYWHERE, SHOWN_FROM, shown_from
from cortex.storage.published.published import SNAPSHOTS
from cortex.storage.settings.reference import search_ranks
from cortex.storage.store import DATABASE
from cortex.transforms.audit import archive_violations, brief_violations
from cortex.transforms.brief.explanation import brief_choices_of
from cortex.transforms.brief.render import ArchiveLine
from cortex.transforms.identity import content_id
from cortex.transforms.masking import explanation_document
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import GLOBAL_SCOPE, TURNS
from cortex.transforms.search import search_settings, settings_document

# Drafts that keep the rows they were made from until they are published; of others these are read again.
ROWS_KEPT = 8


@stage(reads="turns events journal memories edges")
def render(run: Run) -> None:
    """Publish the brief, archive and branches of each project whose inputs have changed."""
    with run.report.stage("render") as row:
        projects = [scope for scope in run.readings.scopes() if scope != GLOBAL_SCOPE]
        everywhere = _shown_everywhere(run)
        inputs = {scope: rendered_from(run, scope, everywhere) for scope in projects}
        drafts: dict[str, Draft] = {}
        for scope in projects:
            if not run.ledger.has_made("render", scope, inputs[scope]):
                with run.outcome.isolated(scope, "render"):
                    draft = draft_of(run, scope)
                    drafts[scope] = draft if len(drafts) < ROWS_KEPT else without_rows(draft)
        briefs = {scope: draft.brief for scope, draft in drafts.items()}
        held = guard_briefs(run, briefs, run.store.lake.notes.to_wipe)
        archives = _archives(run, {scope: draft for scope, draft in drafts.items() if scope not in held})
        # Before it is shown: a kill in between must not let a session learn from its own brief.
        shown = {
            scope: fingerprints_of("\n".join([drafts[scope].brief, *_opening_lines(text)])).union(
                *(line.marks for line in lines)
            )
            for scope, (text, lines) in archives.items()
        }
        run.store.shown_lines.show_all(shown, run.now)
        for scope, archive in archives.items():
            with run.outcome.isolated(scope, "render"):
                _publish(run, scope, with_rows(run, scope, drafts[scope]), archive, inputs[scope], row)
        forget_replaced_by_model(run, held)
        if drafts:
            run.progress("brief", len(drafts), len(drafts))


def _shown_everywhere(run: Run) -> str:
    """Return `shown_everywhere`, noted with what it was made of: of the same it is not made again."""
    table = run.fingerprints.aged(GLOBAL_SCOPE, run.day)
    merged = sorted(run.store.projects.merged().items())
    inputs = content_id(table, run.store.lake.fingerprint(TURNS), repr(merged))
    outputs = run.ledger.notes.outputs
    is_made = run.tables_as_left and not run.outcome.damages
    is_made = is_made and run.ledger.has_made("decay", GLOBAL_SCOPE, table)
    if is_made and SHOWN_EVERYWHERE in outputs and outputs.get(SHOWN_FROM) == inputs:
        return outputs[SHOWN_EVERYWHERE]
    everywhere = shown_everywhere(run)
    for output, value in ((SHOWN_EVERYWHERE, everywhere), (SHOWN_FROM, inputs)):
        if run.ledger.notes.outputs.get(output) != value:
            run.ledger.note_output(*output, value)
    return everywhere


def _opening_lines(archive: str) -> list[str]:
    """Return the lines of an archive that are no decision: title and explanation."""
    return [line for line in archive.split("\n") if not line.startswith("- ")]


ArchiveDraft = tuple[str, list[ArchiveLine]]


def _archives(run: Run, drafts: Mapping[str, Draft]) -> dict[str, ArchiveDraft]:
    """Return the archive of each project, and its lines, whose brief and archive pass the audit."""
    archives = {}
    for scope, draft in drafts.items():
        with run.outcome.isolated(scope, "render"):
            lines = archive_lines_of(run, scope, published_lines(run, scope))
            archive = archive_text(run, scope, lines)
            audit = partial(brief_violations, draft.brief, scope, run.policy, run.brief_tokens(scope))
            secrets = partial(archive_violations, archive, scope)
            if run.outcome.passes(scope, 1, audit) and run.outcome.passes(scope, 1, secrets):
                archives[scope] = archive, lines
    return archives


def _publish(
    run: Run, scope: str, draft: Draft, archive: ArchiveDraft, inputs: str, row: StageReport
) -> None:
    published, brief = run.store.published, draft.brief
    row.rows_out += published.publish_brief(scope, brief)
    row.rows_out += published.publish_archive(scope, archive[0])
    choices = brief_choices_of(draft.choices, draft.inputs.doubts)
    note = archive_note(run, *archive)
    published.publish_explanation(scope, {**explanation_document(choices), **note})
    row.rows_out += publish_branches(run, scope, draft)
    row.rows_out += run.store.tables.mark_search(scope, draft.inputs.marks)
    notes = run.ledger.notes
    known = run.store.projects.known_project(scope)
    briefs = {**notes.briefs, scope: shown_from(notes, run.policy, run.settings, known)}
    run.ledger.note_output("render", scope, inputs, replace(notes, briefs=briefs))


# -- What is published once for the whole store, after the briefs; in the report it is part of render.


@stage(reads="journal")
def map_projects(run: Run) -> None:
    """Publish the map by which the hooks find a folder's project, and what the prompt hook searches by."""
    with run.report.stage("render"):
        run.store.published.publish_projects(run.store.projects.paths())
        run.store.published.remove_former()
        run.store.journal.publish_projects()
        run.store.tables.settle_search(settings_document(run.policy), ranks_for(run.policy))


def ranks_for(policy: Policy) -> list[tuple[str, int]]:
    """Return the words that have a weight of their own in a question, each with its place by frequency."""
    last = int(search_settings(policy).numbers["common_words"])
    return [(word, rank) for word, rank in search_ranks().items() if rank <= last]


@stage(reads="journal")
def surface(run: Run) -> None:
    """Bring files of the user's projects that show a brief in line with it."""
    with run.report.stage("render") as row:
        row.note = "; ".join(show_briefs(run))


@stage(reads="journal")
def drop_moved(run: Run) -> None:
    """Remove the tables and published files of projects that were merged into another one."""
    with run.report.stage("render"):
        drop_merged(run)


@stage(reads="turns events journal calls memories edges passages")
def database(run: Run) -> None:
    """Publish the DuckDB file and the counts of each scope, where anything they show has changed."""
    with run.report.stage("render"):
        scopes = run.readings.scopes()
        states = [run.fingerprints.aged(scope, run.day) for scope in scopes]
        files, merged = sorted(run.store.lake.manifest.files), run.store.projects.merged()
        # The views name the lake's files by their paths: in a store that was moved they are written again.
        tables = [f"{table.name} {table.version}" for table in SNAPSHOTS]
        # What came of decisions follows from the repositories, as the briefs do.
        notes = run.ledger.notes.outputs
        briefs = [notes.get(Output("render", scope), "") for scope in scopes]
        inputs = content_id(*states, *files, *merged, str(run.store.lake.root), *tables, *briefs)
        is_there = run.store.published.database_path.is_file()
        if not (is_there and run.ledger.has_made(*DATABASE, inputs)):
            publish_database(run, scopes, inputs)


@stage(reads="turns events journal calls memories edges passages")
def first_database(run: Run) -> None:
    """Publish what `database` does where nothing is, for those who look while prose is embedded."""
    if DATABASE not in run.ledger.notes.outputs:
        database(run)


@stage()
def sweep_lake(run: Run) -> None:
    """Remove lake files that no longer count, now that no published view reads them."""
    with run.report.stage("render"):
        if not run.outcome.damages:  # the last good views read what a sweep would take
            run.store.lake.sweep()
