"""The stage render: each project's brief and what goes with it, published where they have changed."""

from dataclasses import replace
from functools import partial

from cortex.flows.branch_notes import publish_branches
from cortex.flows.briefs import Draft, archive_of, draft_of, rendered_from, shown_everywhere
from cortex.flows.given_way import forget_given_way
from cortex.flows.hook_notes import publish_notes
from cortex.flows.published_briefs import SHOWN_EVERYWHERE, shown_from
from cortex.flows.report import StageReport
from cortex.flows.run import Run
from cortex.flows.stages.guard import guard_briefs
from cortex.flows.stages.stage import stage
from cortex.transforms.audit import archive_violations, brief_violations
from cortex.transforms.brief.explanation import brief_choices_of, explanation_document
from cortex.transforms.extract.echoes import fingerprints_of
from cortex.transforms.schemas import GLOBAL_SCOPE


@stage(reads="turns journal memories edges")
def render(run: Run) -> None:
    """Publish the brief, archive, branches and hook index of each project whose inputs have changed."""
    with run.report.stage("render") as row:
        projects = [scope for scope in run.readings.scopes() if scope != GLOBAL_SCOPE]
        everywhere = shown_everywhere(run)
        if run.ledger.notes.outputs.get(SHOWN_EVERYWHERE) != everywhere:
            run.ledger.note_output(*SHOWN_EVERYWHERE, everywhere)
        inputs = {scope: rendered_from(run, scope, everywhere) for scope in projects}
        drafts: dict[str, Draft] = {}
        for scope in projects:
            if not run.ledger.has_made("render", scope, inputs[scope]):
                with run.outcome.apart(scope, "render"):
                    drafts[scope] = draft_of(run, scope)
        briefs = {scope: draft.brief for scope, draft in drafts.items()}
        held = guard_briefs(run, briefs, run.store.lake.notes.to_wipe)
        for scope, draft in drafts.items():
            if scope not in held:
                with run.outcome.apart(scope, "render"):
                    _publish(run, scope, draft, inputs[scope], row)
        forget_given_way(run, held)
        if drafts:
            run.progress("brief", len(drafts), len(drafts))


def _publish(run: Run, scope: str, draft: Draft, inputs: str, row: StageReport) -> None:
    published, brief, archive = run.store.published, draft.brief, archive_of(run, scope)
    audit = partial(brief_violations, brief, scope, run.policy, run.brief_tokens(scope))
    secrets = partial(archive_violations, archive, scope)
    if not (run.outcome.passes(scope, 1, audit) and run.outcome.passes(scope, 1, secrets)):
        return
    # Before it is shown: a kill in between must not let a session learn from its own brief.
    run.store.shown_lines.show(scope, fingerprints_of(brief) | fingerprints_of(archive), run.now)
    row.rows_out += published.publish_brief(scope, brief)
    row.rows_out += published.publish_archive(scope, archive)
    choices = brief_choices_of(draft.choices, draft.material.doubts)
    published.publish_explanation(scope, explanation_document(choices))
    row.rows_out += publish_branches(run, scope, draft)
    row.rows_out += publish_notes(run, scope, draft)
    notes = run.ledger.notes
    known = run.store.projects.known_project(scope)
    briefs = {**notes.briefs, scope: shown_from(notes, run.policy, run.settings, known)}
    run.ledger.note_output("render", scope, inputs, replace(notes, briefs=briefs))
