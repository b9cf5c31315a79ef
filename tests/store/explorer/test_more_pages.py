"""Timeline, review, runs, costs, health, SQL and settings, each with what its command gives."""

from io import BytesIO

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from cortex.flows import operations
from cortex.flows.embedders import voyage
from cortex.flows.operations.apply import apply_now
from cortex.flows.stages.order import APPLY
from cortex.transforms.journal_entries import Archive, Merge
from cortex.transforms.memory.review import MERGE, Item
from tests.browsing import PROJECT, ticking, words_of
from tests.whole.explorer.test_deeds import undo


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


@pytest.fixture
def dispute(browser):
    """Return the review of a store with two decisions at odds."""
    context = browser.explorer.open_context()
    for text in ("Use npm for the web client.", "Do not use npm for the web client; use pnpm."):
        operations.remember.remember(context, text, memory_type="decision", project=PROJECT)
    review = browser.json("/review")
    return next(item for item in review["items"] if item["kind"] == "contradiction")


@pytest.mark.slow
def test_accepting_a_contradiction_puts_the_newer_in_place_and_undo_brings_the_older_back(browser, dispute):
    older = dispute["memories"][0]["memory_id"]
    project = browser.json("/review")["project_id"]
    html = browser.do(f"/review/{dispute['id']}/accept", project=project)
    assert "Accepted" in words_of(html)
    assert browser.json(f"/memory/{older}")["memory"]["status"] == "superseded"
    assert dispute["id"] not in {item["id"] for item in browser.json("/review")["items"]}
    undo(browser, html)
    assert browser.json(f"/memory/{older}")["memory"]["status"] == "active"


@pytest.mark.slow
def test_what_is_kept_as_it_is_does_not_come_up_again(browser, dispute):
    project = browser.json("/review")["project_id"]
    assert "Kept" in words_of(browser.do(f"/review/{dispute['id']}/keep", project=project))
    assert dispute["id"] not in {item["id"] for item in browser.json("/review")["items"]}
    older = browser.json(f"/memory/{dispute['memories'][0]['memory_id']}")["memory"]
    assert older["status"] == "active"


@pytest.mark.slow
def test_memories_that_say_the_same_are_merged_and_split_again(browser, monkeypatch):
    rows = browser.json("/search?type=decision")["memories"][:2]
    ids, texts = [row["memory_id"] for row in rows], [row["text"] for row in rows]
    project = next(
        p for p in browser.explorer.open_context().open_store().projects.all() if p.name == PROJECT
    )
    entry = Merge(ids, "Both of them.", "decision").to_row(
        project.project_id, recorded_at=ticking(), memory_id="abcd" * 8
    )
    item = Item(MERGE, project.project_id, tuple(ids), tuple(texts), "2 become one", "Both of them.", entry)
    proposed = [operations.review.ProjectReview(project, [item])]
    monkeypatch.setattr(operations.review, "review", lambda context, project: proposed)
    html = browser.do(f"/review/{item.item_id}/accept", project=project.project_id)
    assert {browser.json(f"/memory/{name}")["memory"]["status"] for name in ids} == {"archived"}
    assert browser.send(f"/memory/{ids[0]}/restore").status_code == 400
    assert "Split again" in words_of(undo(browser, html))
    assert {browser.json(f"/memory/{name}")["memory"]["status"] for name in ids} == {"active"}
    assert browser.send(f"/memory/{ids[0]}/split").status_code == 400


@pytest.mark.slow
def test_what_was_archived_is_shown_again(browser, memory):
    name, context = memory["memory_id"], browser.explorer.open_context()
    assert browser.send(f"/memory/{name}/restore").status_code == 400
    entry = Archive("the file is gone").to_row(memory["project_id"], recorded_at=context.now, memory_id=name)
    context.open_store().journal.write(entry)
    apply_now(context, APPLY)
    assert "Show again" in words_of(browser.page(f"/memory/{name}"))
    browser.do(f"/memory/{name}/restore")
    assert browser.json(f"/memory/{name}")["memory"]["status"] == "active"


@pytest.mark.slow
def test_a_weak_memory_is_pinned_from_the_review_and_leads_back_to_it(browser):
    review = browser.json("/review")
    weak = review["weak"][0]["memory_id"]
    answer = browser.send(f"/memory/{weak}/pin", project=review["project_id"])
    assert answer.headers["location"].startswith(f"/review?project={review['project_id']}")
    assert weak not in {row["memory_id"] for row in browser.json("/review")["weak"]}


@pytest.mark.slow
def test_each_thing_to_settle_has_a_key_for_each_answer(browser, dispute):
    html = browser.page("/review")
    assert all(f'data-key="{key}"' in html for key in "axd")


def test_a_run_has_its_stages_and_its_rows(reader):
    home = reader.explorer.open_context().home
    reports = home / "runs" / "reports"
    runs = reader.json("/runs")["runs"]
    assert {run["name"] for run in runs} == {path.stem for path in reports.glob("*.json")}
    if runs:
        text = words_of(reader.page(f"/runs/{runs[0]['name']}"))
        assert all(stage["stage"] in text for stage in runs[0]["stages"])
    assert reader.get("/runs/20200101T000000000000Z-none").status_code == 404


@pytest.mark.slow
def test_costs_and_health_say_what_their_commands_say(reader):
    context = reader.explorer.open_context()
    assert reader.json("/costs")["total"]["requests"] == operations.cost.read_cost(context).total.requests
    checks = {check["check"] for check in reader.json("/health")["checks"]}
    examination = operations.doctor.examine(context.home, lambda: context)
    assert checks == {check.check for check in examination.checks}


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
    operations.doctor.examine(context.home, lambda: context)
    assert asked, "the command does ask"


QUERY = "select memory_id, text, files from memories order by memory_id"


def test_a_query_gives_rows_on_the_page_and_in_files(reader):
    data = reader.json(f"/sql?q={QUERY}")
    assert data["columns"] == ["memory_id", "text", "files"] and data["rows"]
    rows = operations.sql.query_tables(reader.explorer.open_context(), QUERY).rows
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
    monkeypatch.setattr("cortex.explorer.views.sql.SECONDS", 0.2)
    data = reader.json("/sql?q=select count(*) from range(100000000000) as a, range(100000) as b")
    assert "stopped after 0.2 seconds" in data["problem"]


def test_a_query_with_more_rows_says_so(reader):
    data = reader.json("/sql?q=select * from range(1000)")
    assert len(data["rows"]) == 100 and data["is_cut"]


@pytest.mark.slow
def test_a_setting_is_changed_and_taken_back(browser):
    def value() -> str:
        return next(s["value"] for s in browser.json("/settings")["settings"] if s["key"] == "brief.tokens")

    before = value()
    html = browser.do("/settings/brief.tokens", value="700")
    assert value() == "700"
    undo(browser, html)
    assert value() == before
    assert browser.send("/settings/brief.tokens", value="many").status_code == 400
    assert browser.send("/settings/no.such", value="1").status_code == 400


def test_a_setting_of_one_project_leaves_the_others_and_is_taken_back(browser):
    project = browser.json("/review")["project_id"]

    def value(address: str) -> str:
        rows = browser.json(address)["settings"]
        return next(row["value"] for row in rows if row["key"] == "brief.tokens")

    own, before = f"/settings?project={project}", value("/settings")
    html = browser.do("/settings/brief.tokens", value="700", project=project)
    assert value(own) == "700" and value("/settings") == before
    html = undo(browser, html)
    assert value(own) == before and "700" not in browser.page(own)
    assert "models" not in {row["key"].split(".")[0] for row in browser.json(own)["settings"]}
    assert browser.send("/settings/models.writer", value="none", project=project).status_code == 400
    assert browser.get("/settings?project=nowhere").status_code == 404


def test_a_secret_is_shown_nowhere_and_is_no_field(browser):
    operations.config.set_setting(
        browser.explorer.open_context().home,
        "embed.voyage_api_key",
        ("pa-not-a-key-but-secret",),
        None,
        browser.explorer.open_context,
    )
    for address in ("/settings", "/settings.json", "/health"):
        assert "pa-not-a-key" not in browser.get(address).text
    assert 'action="/settings/embed.voyage_api_key"' not in browser.page("/settings")
