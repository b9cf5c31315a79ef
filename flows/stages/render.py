"""The stage render: each project's brief and what goes with it, published where they have changed."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from cortex.flows.context.run_report import StageReport
from cortex.flows.publishing.branch_notes import publish_branches
from cortex.flows.publishing.briefs import (
    Draft,
    archive_of,
    draft_of,
    rendered_from,
    shown_everywhere,
    with_rows,
    without_rows,
)
from cortex.flows.run.given_way import forget_given_way
from cortex.flows.run.published_briefs import SHOWN_EVERYWHERE, SHOWN_FROM, shown_from
from cortex.flows.run.run import Run
from cortex.flows.stages.guard import guard_briefs
from cortex.flows.stages.stage import stage
from cortex.hooks.echo import fingerprints_of
from cortex.transforms.audit import archive_violations, brief_violations
from cortex.transforms.brief.explanation import brief_choices_of, explanation_document
from cortex.transforms.identity import content_id
from cortex.transforms.schemas import GLOBAL_SCOPE, TURNS

# Drafts that keep the rows they were made from until they are published; of others these are read again.
ROWS_KEPT = 8


@stage(reads="turns journal memories edges")
def render(run: Run) -> None:
    """Publish the brief, archive and branches of each project whose inputs have changed."""
    with run.report.stage("render") as row:
        projects = [scope for scope in run.readings.scopes() if scope != GLOBAL_SCOPE]
        everywhere = _shown_everywhere(run)
        inputs = {scope: rendered_from(run, scope, everywhere) for scope in projects}
        drafts: dict[str, Draft] = {}
        for scope in projects:
            if not run.ledger.has_made("render", scope, inputs[scope]):
                with run.outcome.apart(scope, "render"):
                    draft = draft_of(run, scope)
                    drafts[scope] = draft if len(drafts) < ROWS_KEPT else without_rows(draft)
        briefs = {scope: draft.brief for scope, draft in drafts.items()}
        held = guard_briefs(run, briefs, run.store.lake.notes.to_wipe)
        archives = _archives(run, {scope: draft for scope, draft in drafts.items() if scope not in held})
        # Before it is shown: a kill in between must not let a session learn from its own brief.
        shown = {s: fingerprints_of(drafts[s].brief) | fingerprints_of(text) for s, text in archives.items()}
        run.store.shown_lines.show_all(shown, run.now)
        for scope, archive in archives.items():
            with run.outcome.apart(scope, "render"):
                _publish(run, scope, with_rows(run, scope, drafts[scope]), archive, inputs[scope], row)
        forget_given_way(run, held)
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


def _archives(run: Run, drafts: Mapping[str, Draft]) -> dict[str, str]:
    """Return the archive of each project whose brief and archive pass the audit."""
    archives = {}
    for scope, draft in drafts.items():
        with run.outcome.apart(scope, "render"):
            archive = archive_of(run, scope)
            audit = partial(brief_violations, draft.brief, scope, run.policy, run.brief_tokens(scope))
            secrets = partial(archive_violations, archive, scope)
            if run.outcome.passes(scope, 1, audit) and run.outcome.passes(scope, 1, secrets):
                archives[scope] = archive
    return archives


def _publish(run: Run, scope: str, draft: Draft, archive: str, inputs: str, row: StageReport) -> None:
    published, brief = run.store.published, draft.brief
    row.rows_out += published.publish_brief(scope, brief)
    row.rows_out += published.publish_archive(scope, archive)
    choices = brief_choices_of(draft.choices, draft.material.doubts)
    published.publish_explanation(scope, explanation_document(choices))
    row.rows_out += publish_branches(run, scope, draft)
    row.rows_out += run.store.tables.mark_search(scope, draft.material.marks)
    notes = run.ledger.notes
    known = run.store.projects.known_project(scope)
    briefs = {**notes.briefs, scope: shown_from(notes, run.policy, run.settings, known)}
    run.ledger.note_output("render", scope, inputs, replace(notes, briefs=briefs))
