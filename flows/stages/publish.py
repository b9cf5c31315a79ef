"""What is published once for the whole store, after the briefs; in the report it is part of render."""

from cortex.flows.publishing.briefs import drop_merged
from cortex.flows.publishing.database import publish_database
from cortex.flows.publishing.surfaces import show_briefs
from cortex.flows.run.run import Run
from cortex.flows.stages.stage import stage
from cortex.storage.settings.reference import word_ranks
from cortex.storage.store import DATABASE
from cortex.transforms.identity import content_id
from cortex.transforms.policy import Policy
from cortex.transforms.search.settings import search_settings, settings_document


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
    return [(word, rank) for word, rank in word_ranks().items() if rank <= last]


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
        inputs = content_id(*states, *files, *merged, str(run.store.lake.root))
        is_there = run.store.published.database_path.is_file()
        if not (is_there and run.ledger.has_made(*DATABASE, inputs)):
            publish_database(run, scopes, inputs)


@stage()
def sweep_lake(run: Run) -> None:
    """Remove lake files that no longer count, now that no published view reads them."""
    with run.report.stage("render"):
        if not run.outcome.damages:  # the last good views read what a sweep would take
            run.store.lake.sweep()
