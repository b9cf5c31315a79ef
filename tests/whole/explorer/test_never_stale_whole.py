"""Answers are kept for speed, and never longer than they hold: an action, a run or a commit counts at
once."""

import re

from cortex.flows.operations.edit import remember
from tests.browsing import PROJECT

WORD = "quagga"


def pages(browser, name: str, project: str) -> list[str]:
    """Return the pages that may show a memory."""
    own = [
        f"/memory/{name}",
        f"/graph?memory={name}",
        "/graph?tag=quagga",
        "/sql?q=select text from memories",
    ]
    lists = [
        f"/search?q={WORD}",
        "/search",
        "/search?type=decision",
        f"/review?project={project}",
        "/timeline",
    ]
    return ["/", f"/brief/{project}", *own, *lists]


def test_what_was_forgotten_is_gone_from_every_page_and_answer_at_once(browser, home):
    context = browser.explorer.open_context()
    text = f"The {WORD} buoys are read at noon."
    name = remember.remember(context, text, memory_type="decision", project=PROJECT).memory_id
    project = browser.json("/")["project_id"]
    addresses = pages(browser, name, project)
    before = [address for address in addresses if WORD in browser.get(address).text.replace(f"q={WORD}", "")]
    assert {"/", f"/memory/{name}", "/search"} <= set(before)
    form = dict(re.findall(r'name="(agreed|going)" value="([^"]*)"', browser.page(f"/memory/{name}/forget")))
    browser.do(f"/memory/{name}/forget", **form)
    for address in addresses:
        for way in (address, re.sub(r"(^[^?]*)", r"\1.json", address)):
            assert f"{WORD} buoys" not in browser.get(way).text, way
    assert WORD not in repr(browser.explorer.answers)
    assert [path for path in home.rglob("*") if path.is_file() and WORD.encode() in path.read_bytes()] == []


def test_what_another_process_did_is_seen_at_once(browser):
    first = (
        browser.json("/search")["total"],
        browser.json("/")["candidates"],
        browser.json("/review")["items"],
    )
    texts = ("Use npm for the web client.", "Do not use npm for the web client; use pnpm.")
    for text in texts:
        remember.remember(browser.explorer.open_context(), text, memory_type="decision", project=PROJECT)
    second = (
        browser.json("/search")["total"],
        browser.json("/")["candidates"],
        browser.json("/review")["items"],
    )
    assert second[0] == first[0] + 2 and second[1] > first[1] and second[2] > first[2]
    assert texts[1] in browser.json("/")["text"]
