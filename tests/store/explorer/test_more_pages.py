"""Timeline, review, runs, costs, health, SQL and settings, each with what its command gives."""

import time
from dataclasses import replace
from io import BytesIO

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from cortex.flows.embedders import voyage
from cortex.flows.operations.ask import sql
from cortex.flows.operations.edit import review
from cortex.flows.operations.maintain import config, doctor
from cortex.transforms.views.review import Item
from tests.browsing import words_of


def test_a_timeline_that_is_followed_loads_itself_again_and_keeps_nothing_running(reader):
    reload = '<meta http-equiv="refresh" content="15">'
    assert reload not in reader.page("/timeline")
    reader.explorer.asked_at = before = time.monotonic() - 600
    followed = reader.page("/timeline?live=1")
    assert reload in followed and ">Stop</a>" in followed
    assert reader.explorer.asked_at == before
    reader.page("/timeline")
    assert reader.explorer.asked_at > before


def test_the_review_shows_twenty_things_at_most_and_says_how_many_there_are(reader, monkeypatch):
    items = [Item("stale", "tidepool", (f"m{n}",), ("Said.",), "it is archived") for n in range(31)]
    [real] = review.review(reader.explorer.open_context(), project="tidepool")
    monkeypatch.setattr(review, "review", lambda *_, **__: [replace(real, items=items)])
    page = reader.json("/review?project=tidepool")
    assert (page["total"], len(page["items"])) == (31, 20)
    assert "31 things to settle, the first 20 here" in words_of(reader.page("/review?project=tidepool"))


def test_the_timeline_leads_from_all_time_to_a_day(reader):
    whole = reader.json("/timeline")
    assert whole["total"] == sum(each["sessions"] for each in whole["strip"]) > 0
    month = next(each for each in whole["strip"] if each["sessions"])
    closer = reader.json(f"/timeline?in={month['period']}")
    assert closer["total"] == month["sessions"]
    day = next(each for each in closer["strip"] if each["sessions"])
    assert len(day["period"]) == 10 and f"in={day['period']}" in reader.page(
        f"/timeline?in={month['period']}"
    )
    sessions = reader.json(f"/timeline?in={day['period']}")["sessions"]
    assert len(sessions) == day["sessions"] and all(s["ended_at"][:10] == day["period"] for s in sessions)


def test_a_strip_shows_pauses_too(reader):
    periods = [each["period"] for each in reader.json("/timeline?in=2026-10")["strip"]]
    days = [int(period[-2:]) for period in periods]
    assert days == list(range(days[0], days[-1] + 1))


@pytest.mark.parametrize("period", ["lately", "2026-13", "26", "2026-02-30", "2026-1"])
def test_what_is_no_stretch_of_time_is_said(reader, period):
    assert reader.get(f"/timeline?in={period}").status_code == 400


def test_a_run_has_its_stages_and_its_rows(reader):
    home = reader.explorer.open_context().home
    reports = home / "runs" / "reports"
    runs = reader.json("/runs")["runs"]
    assert {run["name"] for run in runs} == {path.stem for path in reports.glob("*.json")}
    if runs:
        text = words_of(reader.page(f"/runs/{runs[0]['name']}"))
        assert all(stage["stage"] in text for stage in runs[0]["stages"])
    assert reader.get("/runs/20200101T000000000000Z-none").status_code == 404


def test_health_sends_nothing_to_a_hosted_model(browser, monkeypatch):
    asked: list[object] = []
    monkeypatch.setattr(
        voyage, "connect", lambda key: voyage.VoyageEmbedder(lambda *texts, **_: asked.append(texts))
    )
    monkeypatch.setenv("CORTEX_EMBED_VOYAGE_API_KEY", "pa-not-a-key-but-secret")
    context = browser.explorer.open_context()
    assert context.settings.voyage_api_key
    checks = {check["check"]: check for check in browser.json("/health")["checks"]}
    assert asked == [] and checks["embedding model"]["ok"]
    assert "not asked" in checks["embedding model"]["finding"]
    assert "cortex doctor" in words_of(browser.page("/health")) and asked == []
    doctor.examine(context.home, lambda: context)
    assert asked, "the command does ask"


QUERY = "select memory_id, text, files from memories order by memory_id"


def test_a_query_gives_rows_on_the_page_and_in_files(reader):
    data = reader.json(f"/sql?q={QUERY}")
    assert data["columns"] == ["memory_id", "text", "files"] and data["rows"]
    rows = sql.query_tables(reader.explorer.open_context(), QUERY).rows
    parquet = reader.get(f"/sql/rows.parquet?q={QUERY}")
    assert "attachment" in parquet.headers["content-disposition"]
    assert pq.read_table(BytesIO(parquet.content)).num_rows == len(rows)
    csv = reader.get(f"/sql/rows.csv?q={QUERY}")
    assert pa_csv.read_csv(BytesIO(csv.content)).num_rows == len(rows)


@pytest.mark.parametrize(
    "query",
    [
        "drop table memories",
        "insert into memories select * from memories",
        "select * from '/etc/passwd'",
        "copy memories to '/tmp/x.csv'",
        "with x as (select 1) copy x to '/tmp/x.csv'",
        "attach 'x.db'",
        "select * from no_such_table",
        "select 1; select 2; drop table memories",
        "selekt",
    ],
)
def test_what_does_more_than_read_is_refused_on_the_page(reader, query):
    data = reader.json(f"/sql?q={query}")
    assert data["problem"] and data["rows"] == []
    assert 'role="alert"' in reader.page(f"/sql?q={query}")


def test_a_query_without_end_is_stopped(reader, monkeypatch):
    monkeypatch.setattr("cortex.explorer.views.health.SECONDS", 0.2)
    data = reader.json("/sql?q=select count(*) from range(100000000000) as a, range(100000) as b")
    assert "stopped after 0.2 seconds" in data["problem"]


def test_a_query_with_more_rows_says_so(reader):
    data = reader.json("/sql?q=select * from range(1000)")
    assert len(data["rows"]) == 100 and data["is_cut"]


def test_a_secret_is_shown_nowhere_and_is_no_field(browser):
    config.set_setting(
        browser.explorer.open_context().home,
        "embed.voyage_api_key",
        ("pa-not-a-key-but-secret",),
        None,
        browser.explorer.open_context,
    )
    for address in ("/settings", "/settings.json", "/health"):
        assert "pa-not-a-key" not in browser.get(address).text
    assert 'action="/settings/embed.voyage_api_key"' not in browser.page("/settings")
