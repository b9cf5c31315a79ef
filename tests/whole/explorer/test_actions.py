"""Each action does what the command does, says so on the next page, and is taken back where it can be."""

import re
from html import unescape

import pytest

from cortex.flows.operations.edit import remember
from tests.browsing import PROJECT, Browser, words_of


def undo(browser: Browser, html: str) -> str:
    """Press the button of the notice and return the page that follows."""
    notice = re.search(r'<div class="notice.*?</form>', html, re.DOTALL)
    assert notice and ">Undo</button>" in notice[0]
    address = re.search(r'action="([^"]+)"', notice[0])[1]
    fields = dict(re.findall(r'name="([^"]+)" value="([^"]*)"', notice[0]))
    return browser.do(address, **{name: unescape(value) for name, value in fields.items()})


def row_of(browser: Browser, memory_id: str) -> dict:
    return browser.json(f"/memory/{memory_id}")["memory"]


def test_pinning_and_taking_it_back(browser, memory):
    name = memory["memory_id"]
    html = browser.do(f"/memory/{name}/pin")
    assert "neither fades" in words_of(html) and row_of(browser, name)["is_pinned"]
    undo(browser, html)
    assert not row_of(browser, name)["is_pinned"]


def test_other_words_and_the_old_ones_again(browser, memory):
    name = memory["memory_id"]
    html = browser.do(f"/memory/{name}/edit", text="Levels are stored in one table per harbour.")
    assert row_of(browser, name)["text"] == "Levels are stored in one table per harbour."
    undo(browser, html)
    assert row_of(browser, name)["text"] == memory["text"]


def test_words_that_are_no_fact_change_nothing(browser, memory):
    answer = browser.send(f"/memory/{memory['memory_id']}/edit", text="  ")
    assert answer.status_code == 400 and "CORTEX_E400" in answer.text
    assert row_of(browser, memory["memory_id"])["text"] == memory["text"]


def test_one_memory_takes_anothers_place_and_gives_it_back(browser, memory):
    name = memory["memory_id"]
    offers = browser.json(f"/memory/{name}/supersede")["offers"]
    new = offers[0]["memory_id"]
    asked = words_of(browser.page(f"/memory/{name}/supersede?new={new}"))
    assert "no longer shown" in asked and "takes its place" in asked
    html = browser.do(f"/memory/{name}/supersede", new=new)
    assert "Replaced by" in words_of(html) and row_of(browser, name)["status"] == "superseded"
    assert name in {each["memory_id"] for each in browser.json(f"/memory/{new}")["replaced"]}
    undo(browser, html)
    assert row_of(browser, name)["status"] == "active"


def test_forgetting_names_the_other_memories_that_hold_its_words(browser, memory):
    longer = f"{memory['text']} It was agreed in spring."
    remember.remember(browser.explorer.open_context(), longer, memory_type="decision", project=PROJECT)
    words = words_of(browser.page(f"/memory/{memory['memory_id']}/forget"))
    assert "in 1 other memory" in words and "agreed in spring" in words


def test_forgetting_shows_what_goes_and_then_it_is_gone_from_every_page_and_file(browser, home):
    context = browser.explorer.open_context()
    word = "quagga"
    text = f"The {word} buoys are read at noon."
    name = remember.remember(context, text, project="tidepool").memory_id
    edited = browser.do(f"/memory/{name}/edit", text=f"The {word} buoys are read at dusk.")
    assert text in unescape(edited), "undo holds the old words"
    asked = browser.page(f"/memory/{name}/forget")
    assert word in asked and "cannot be undone" in words_of(asked)
    fields = dict(re.findall(r'name="(agreed|going)" value="([^"]*)"', asked))
    html = browser.do(f"/memory/{name}/forget", **fields)
    assert "Forgotten" in words_of(html)
    assert browser.get(f"/memory/{name}").status_code == 404
    for address in ("/", "/search", f"/search?q={word}"):
        assert f"{word} buoys" not in browser.page(address)
    assert [n for n in browser.explorer.notices._notices.values() if word in str(n)] == []
    assert [path for path in home.rglob("*") if path.is_file() and word.encode() in path.read_bytes()] == []


def test_what_the_review_kept_as_it_is_comes_up_again_when_that_is_taken_back(browser):
    context = browser.explorer.open_context()
    for text in ("Use npm for the web client.", "Do not use npm for the web client; use pnpm."):
        remember.remember(context, text, memory_type="decision", project=PROJECT)

    def listed():
        return [each["id"] for each in browser.json(f"/review?project={PROJECT}")["items"]]

    [item, *_] = before = listed()
    html = browser.do(f"/review/{item}/keep", project=PROJECT)
    assert listed() == before[1:]
    undo(browser, html)
    assert listed() == before


@pytest.mark.parametrize("fields", [{}, {"agreed": "yes"}, {"agreed": "yes", "going": "0123456789abcdef"}])
def test_nothing_is_forgotten_that_was_not_shown(browser, memory, fields):
    assert browser.send(f"/memory/{memory['memory_id']}/forget", **fields).status_code == 400
    assert row_of(browser, memory["memory_id"])["text"] == memory["text"]


def test_a_deed_that_there_is_not_does_nothing(browser, memory):
    assert browser.send(f"/memory/{memory['memory_id']}/erase").status_code == 404
    assert browser.send("/search").status_code == 404
