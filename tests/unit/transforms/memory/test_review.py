"""A decision that reverses an older one is found; what a person settled is not asked again."""

from datetime import timedelta

from cortex.storage.settings.reference import read_policy
from cortex.transforms.memory.consolidate import propose
from cortex.transforms.memory.link import edges_between
from cortex.transforms.memory.reality import Doubt
from cortex.transforms.schemas import EDGES, JOURNAL, VECTORS
from cortex.transforms.views.review import (
    dismissal,
    disputes,
    doubts_left,
    merges,
    resolved_edges,
    stale_claims,
    unresolved,
)
from tests.examples import cases
from tests.rows import START, memories, memory

POLICY = read_policy(None)
MODEL = "all-MiniLM-L6-v2"


def relation(old, new):
    """Return what links two decisions that mean much the same."""
    rows = (memory("a", old, content_hash="a"), memory("b", new, content_hash="b"))
    vectors = VECTORS.of(
        [{"model": MODEL, "content_hash": name, "vector": [1.0, 0.0]} for name in ("a", "b")]
    )
    [edge] = edges_between(memories(*rows), vectors, POLICY, MODEL).to_pylist()
    return edge["edge_type"]


@cases(
    ("old", "new"),
    [
        ("We use SQLite for the cache.", "We use Postgres for the cache instead of SQLite."),
        ("Harvest records are kept in SQLite.", "We moved the harvest records from SQLite to Postgres."),
        ("Deploy the service with Docker.", "We dropped Docker; the service is deployed by systemd."),
        ("The web server is nginx.", "Replace nginx with Caddy as the web server: it renews certificates."),
        ("Tests run on every push.", "We stopped running tests on every push; they run nightly."),
        ("We decided against a message queue.", "Add a message queue for ingest because volumes tripled."),
        ("Levels are stored as floats.", "Levels are whole millimetres now, no longer as floats."),
        ("Enable caching of tiles in the proxy.", "Disable caching of tiles in the proxy."),
        ("Retry failed uploads three times.", "Do not retry failed uploads."),
        ("Logs are kept for 7 days.", "Logs are kept for 30 days."),
        ("Chose Redis over Memcached for the cache", "The cache uses Memcached, not Redis"),
        ("We now switch from REST to GraphQL", "The public API is REST, not GraphQL"),
        ("Rejected Celery: too heavy for one worker", "Chose Celery for background jobs"),
        ("Tabs over spaces", "Spaces over tabs"),
        ("Indent with tabs.", "Indent with spaces."),
        ("The export service is written in Kotlin.", "The export service is written in Scala."),
        ("The export service is written in Kotlin.", "We write the export service in Java."),
        ("Use pnpm, not npm, in the frontend", "Use npm in the frontend"),
        ("Use pnpm", "Use npm in the frontend"),
    ],
)
def test_a_decision_that_reverses_another_contradicts_it_whichever_came_first(old, new):
    assert relation(old, new) == relation(new, old) == "contradicts"


@cases(
    ("one", "other"),
    [
        ("We use SQLite for the cache.", "The cache in SQLite is opened in WAL mode."),
        ("s1 writes levels as whole millimetres.", "s2 writes levels as whole millimetres."),
        ("Deploy the service with Docker.", "The Docker image of the service is built from Alpine."),
        ("Logs are kept for 7 days.", "Backups of the tables are kept for 30 days."),
        ("The web server is nginx.", "nginx serves static files with gzip."),
        ("Move the buttons from the header to the footer.", "The header shows the name of the station."),
        ("Use Postgres instead of SQLite.", "The import reads SQLite files of older releases."),
        (
            "Poll every agency each ten minutes instead of six, because it throttles clients.",
            "We chose a service over cron: cron would open 61 connections every six minutes.",
        ),
        (
            "Chose Jinja over Mako for the report component in layer 3",
            "Chose Jinja over Mako for the report component in layer 4",
        ),
        ("Step 3 of the import writes the index.", "Step 4 of the import writes the index."),
        ("We now switch from REST to GraphQL", "The public API switches from REST to GraphQL"),
        ("The export service is written in Kotlin.", "The import service is written in Scala."),
        ("Use Redis for the session cache.", "Use Memcached for the page cache."),
        ("Chose Postgres for the orders.", "Chose Redis for the cache."),
        ("Chose FastAPI over Flask for the API.", "Chose FastAPI over Django for the API."),
        ("Rejected Celery for the mailer: too heavy.", "Chose RabbitMQ over Celery for the mailer."),
        ("Do not use mocks in the core.", "Use mocks in the adapters."),
        ("Levels of each gauge by harbour - NO ALARM:", "Levels of each gauge by harbour - ALARM:"),
        ("Compara los grupos de alarma y no alarma", "Alarma por grupos en una tabla"),
    ],
)
def test_decisions_that_go_together_do_not(one, other):
    assert relation(one, other) != "contradicts"


def journal(*items):
    return JOURNAL.of([dismissal(item).to_row(item.project_id, recorded_at=START) for item in items])


def at_odds():
    rows = memories(
        memory("new", "Use Postgres.", updated_at=START + timedelta(days=1)), memory("old", "Use SQLite.")
    )
    edge = {"edge_id": "e", "project_id": "reef-1", "source_id": "new", "target_id": "old"}
    return rows, EDGES.of([edge | {"edge_type": "contradicts", "strength": 0.9, "rule": "number"}])


def test_of_two_decisions_at_odds_the_newer_is_offered_in_the_place_of_the_older():
    [item] = disputes(*at_odds(), POLICY)
    assert item.memory_ids == ("old", "new")
    assert item.texts == ("Use SQLite.", "Use Postgres.")


def test_what_is_superseded_or_no_decision_is_not_in_dispute():
    rows, edges = at_odds()
    for chosen in ({"status": "superseded"}, {"memory_type": "architecture"}):
        changed = memories(*(row | (chosen if row["memory_id"] == "old" else {}) for row in rows.to_pylist()))
        assert disputes(changed, edges, POLICY) == []


def test_a_dismissed_dispute_does_not_come_back_and_its_edge_is_a_relation():
    rows, edges = at_odds()
    [item] = disputes(rows, edges, POLICY)
    told = journal(item)
    assert unresolved([item], told) == []
    [edge] = resolved_edges(edges, told).to_pylist()
    assert (edge["edge_type"], edge["rule"]) == ("relates_to", "person")
    assert resolved_edges(edges, JOURNAL.empty()).equals(edges)


def test_a_dismissed_doubt_does_not_come_back_for_the_same_reason():
    gone, other = Doubt("old", "[possibly outdated]", "file a.py is gone"), Doubt("old", "x", "`f` is gone")
    [item] = stale_claims(at_odds()[0], [gone])
    assert doubts_left([gone, other], journal(item)) == [other]


def test_a_dismissed_merge_is_not_proposed_again():
    text = "Harvest records stay in SQLite because one writer is enough"
    rows = memories(memory("a", text), memory("b", f"{text}."))
    proposed = propose(rows, VECTORS.empty(), POLICY, MODEL, START)
    [item] = merges(rows, proposed)
    assert item.memory_ids == ("a", "b")
    assert propose(rows, VECTORS.empty(), POLICY, MODEL, START, undone=journal(item)).num_rows == 0
