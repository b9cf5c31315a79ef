"""Without an embedding model everything works by words alone (spec promise 4, 10.2)."""

from dataclasses import replace

from cortex.flows.recalling.recall_search import search_store
from cortex.storage.settings.reference import read_policy
from tests.bench import Bench
from tests.transcripts import decisions


def test_a_whole_run_and_a_recall_need_no_model(bench: Bench):
    bench = replace(bench, embedder_of=lambda settings: None)
    decisions("s1").write(bench.projects)
    report = bench.backfill()
    assert bench.run("nightly").rows == report.rows
    assert report.rows["memories"] and not report.rows["vectors"]
    (project,) = bench.store.projects.all()
    (best, *_) = search_store(
        bench.store.tables,
        "why SQLite for the harvest records",
        scopes=[project.project_id],
        policy=read_policy(None),
        embedder=None,
        limit=3,
    )
    assert "SQLite" in best.text and best.evidence[0].lines
