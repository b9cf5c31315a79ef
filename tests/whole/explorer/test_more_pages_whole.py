"""Timeline, review, runs, costs, health, SQL and settings, each with what its command gives."""

import pytest

from cortex.flows.operations.edit import remember
from cortex.flows.operations.edit import review as review_operation
from cortex.flows.operations.edit.apply import apply_now
from cortex.flows.operations.maintain import cost, doctor
from cortex.flows.stages.order import APPLY
from cortex.transforms.journal_entries import Archive, Merge
from cortex.transforms.views.review import MERGE, Item
from tests.browsing import PROJECT, ticking, words_of
from tests.whole.explorer.test_actions import undo


@pytest.fixture
def dispute(browser):
    """Return the review of a store with two decisions at odds."""
    context = browser.explorer.open_context()
    for text in ("Use npm for the web client.", "Do not use npm for the web client; use pnpm."):
        remember.remember(context, text, memory_type="decision", project=PROJECT)
    review = browser.json("/review")
    return next(item for item in review["items"] if item["kind"] == "contradiction")


def test_accepting_a_contradiction_puts_the_newer_in_place_and_undo_brings_the_older_back(browser, dispute):
    older = dispute["memories"][0]["memory_id"]
    project = browser.json("/review")["project_id"]
    html = browser.do(f"/review/{dispute['id']}/accept", project=project)
    assert "Accepted" in words_of(html)
    assert browser.json(f"/memory/{older}")["memory"]["status"] == "superseded"
    assert dispute["id"] not in {item["id"] for item in browser.json("/review")["items"]}
    undo(browser, html)
    assert browser.json(f"/memory/{older}")["memory"]["status"] == "active"


def test_what_is_kept_as_it_is_does_not_come_up_again(browser, dispute):
    project = browser.json("/review")["project_id"]
    assert "Kept" in words_of(browser.do(f"/review/{dispute['id']}/keep", project=project))
    assert dispute["id"] not in {item["id"] for item in browser.json("/review")["items"]}
    older = browser.json(f"/memory/{dispute['memories'][0]['memory_id']}")["memory"]
    assert older["status"] == "active"


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
    proposed = [review_operation.ProjectReview(project, [item])]
    monkeypatch.setattr(review_operation, "review", lambda context, project: proposed)
    html = browser.do(f"/review/{item.item_id}/accept", project=project.project_id)
    assert {browser.json(f"/memory/{name}")["memory"]["status"] for name in ids} == {"archived"}
    assert browser.send(f"/memory/{ids[0]}/restore").status_code == 400
    assert "Split again" in words_of(undo(browser, html))
    assert {browser.json(f"/memory/{name}")["memory"]["status"] for name in ids} == {"active"}
    assert browser.send(f"/memory/{ids[0]}/split").status_code == 400


def test_what_was_archived_is_shown_again(browser, memory):
    name, context = memory["memory_id"], browser.explorer.open_context()
    assert browser.send(f"/memory/{name}/restore").status_code == 400
    entry = Archive("the file is gone").to_row(memory["project_id"], recorded_at=context.now, memory_id=name)
    context.open_store().journal.write(entry)
    apply_now(context, APPLY)
    assert "Show again" in words_of(browser.page(f"/memory/{name}"))
    browser.do(f"/memory/{name}/restore")
    assert browser.json(f"/memory/{name}")["memory"]["status"] == "active"


def test_a_weak_memory_is_pinned_from_the_review_and_leads_back_to_it(browser):
    review = browser.json("/review")
    weak = review["weak"][0]["memory_id"]
    answer = browser.send(f"/memory/{weak}/pin", project=review["project_id"])
    assert answer.headers["location"].startswith(f"/review?project={review['project_id']}")
    assert weak not in {row["memory_id"] for row in browser.json("/review")["weak"]}


def test_each_thing_to_settle_has_a_key_for_each_answer(browser, dispute):
    html = browser.page("/review")
    assert all(f'data-key="{key}"' in html for key in "axd")


def test_costs_and_health_say_what_their_commands_say(reader):
    context = reader.explorer.open_context()
    assert reader.json("/costs")["total"]["requests"] == cost.read_cost(context).total.requests
    checks = {check["check"] for check in reader.json("/health")["checks"]}
    examination = doctor.examine(context.home, lambda: context)
    assert checks == {check.check for check in examination.checks}


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
