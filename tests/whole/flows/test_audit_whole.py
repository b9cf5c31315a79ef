"""Write, audit, publish: what breaks a promise is not shown, the last good version stays, the run says so."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from cortex.flows.publishing import briefs
from cortex.flows.reading import shards
from cortex.flows.run import fingerprints
from cortex.flows.stages import embed, memories
from cortex.storage.published.reports import last_report
from cortex.transforms.errors import AuditFailed
from cortex.transforms.redaction.redact import Redactor
from tests.bench import NOW, contents, difference, leftovers
from tests.store.flows.test_audit import SECRET, _spoilt
from tests.transcripts import Talk, decisions


@pytest.mark.spread(2)
@pytest.mark.parametrize("unseen", ["\u200b", "\u00ad", "\ufe0f", "\u034f", "\U000e0041", "\u202e", "\x08"])
def test_a_secret_split_by_unseen_characters_is_marked_and_the_brief_goes_on(bench, unseen):
    split = unseen.join(SECRET)
    talk = decisions("s1")
    talk.user("And the mirror?").assistant(
        f"[MEMORY: decision] We keep the mirror behind the key {split} because the depot asks for it."
    )
    talk.write(bench.projects)
    bench.backfill()
    brief = bench.store.published.brief(bench.store.tables.scopes()[-1])
    everything = json.dumps([brief, *bench.texts()], ensure_ascii=False).replace(unseen, "")
    assert "[REDACTED:github-token]" in everything and SECRET not in everything
    assert last_report(bench.store.runs)["breaches"] == []


def test_what_an_older_version_stored_is_marked_and_stops_nothing(bench, monkeypatch):
    talk = decisions("s1")
    talk.user("And the mirror?").assistant(
        f"[MEMORY: decision] We keep the mirror behind the key {SECRET} because the depot asks for it."
    )
    talk.write(bench.projects)
    with monkeypatch.context() as patch:
        patch.setattr(Redactor, "redact", lambda self, text: (text, 0))
        patch.setattr(Redactor, "findings", lambda self, text: [])
        bench.backfill()
        assert SECRET in str(bench.memories())
    monkeypatch.setattr(fingerprints, "STAGES_VERSION", "a newer one")
    bench.run()
    assert SECRET not in str(bench.memories()) and "[REDACTED:github-token]" in str(bench.memories())


def test_a_line_that_would_show_a_secret_is_left_out_and_the_others_are_shown(bench, monkeypatch):
    decisions("s1").write(bench.projects)
    real = briefs.choose

    def spoilt(*args, **options):
        first, *rest = real(*args, **options)
        return [replace(first, text=f"{first.text} {SECRET}"), *rest]

    before = bench.backfill()
    assert before.left_out == []
    [scope] = [name for name in bench.store.tables.scopes() if name.startswith("kelp")]
    whole = bench.store.published.brief(scope).splitlines()
    monkeypatch.setattr(briefs, "choose", spoilt)
    report = bench.run(now=NOW + timedelta(days=1))
    shown = bench.store.published.brief(scope).splitlines()
    assert SECRET not in str(shown)
    items = [[line for line in lines if line.startswith("- ")] for lines in (whole, shown)]
    assert len(items[0]) - 1 == len(items[1]) > 0
    assert [line.reason for line in report.left_out] == ["would show a secret: github-token"]
    assert SECRET not in json.dumps(last_report(bench.store.runs))


def test_a_failed_audit_keeps_the_last_good_version_and_the_next_run_goes_on(bench, other, monkeypatch):
    decisions("s1").write(bench.projects)
    bench.begin()
    before = contents(bench.home)
    decisions("s2").write(bench.projects)
    decisions("s3", cwd="/home/dev/reef").write(bench.projects)
    real = shards.extract_events
    with monkeypatch.context() as patch:
        patch.setattr(shards, "extract_events", lambda *given: _spoilt(real(*given)))
        with pytest.raises(AuditFailed, match=r"kelp.*unknown trust") as failed:
            bench.backfill()
    assert failed.value.exit_code == 12
    kelp = [name for name in contents(bench.home) if name.startswith("kelp")]
    assert {name: contents(bench.home)[name] for name in kelp} == {name: before[name] for name in kelp}
    assert bench.texts("reef")  # another project goes on
    told = last_report(bench.store.runs)
    assert {b["reason"] for b in told["breaches"]} == {"unknown trust"}
    bench.run()
    other.backfill()
    assert difference(contents(bench.home), contents(other.home)) == {}
    assert leftovers(bench.home) == []


@pytest.mark.parametrize(
    ("module", "stage", "table"),
    [
        (memories, "memories_violations", "memories"),
        (memories, "edges_violations", "edges"),
        (embed, "passages_violations", "passages"),
    ],
)
def test_a_table_whose_audit_fails_is_not_replaced(bench, monkeypatch, module, stage, table):
    decisions("s1").write(bench.projects)
    bench.begin()
    before = {name: rows for name, rows in contents(bench.home).items() if name.endswith(table)}
    Talk("s2").user("Which clock?").assistant(
        "[MEMORY: decision] Stations keep their clocks in UTC because readings are compared."
    ).write(bench.projects)
    from cortex.transforms.audit import Violation

    with monkeypatch.context() as patch:
        patch.setattr(module, stage, lambda *rows: [Violation(table, "row-1", "made up")])
        with pytest.raises(AuditFailed, match="row-1: made up"):
            bench.backfill()
    assert {name: rows for name, rows in contents(bench.home).items() if name.endswith(table)} == before
    bench.run()
    assert any("UTC" in text for text in bench.texts())
