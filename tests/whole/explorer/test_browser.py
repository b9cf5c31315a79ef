"""The explorer in a real browser: every page, by keyboard, without scripts, by barriers, under attack."""

import shutil
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cortex.explorer.drawing import ChartBar, bar_chart
from cortex.explorer.server import listen, serve_pages
from cortex.explorer.views import NAVIGATION
from cortex.flows.context import Context
from cortex.flows.operations.edit import remember
from cortex.storage.settings.settings import load_settings
from tests.bench import words_for_a_model
from tests.browsing import PROJECT, Browser, ticking
from tests.planted import plant
from tests.whole.explorer.test_hostile_texts import planted_pages

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
HOSTILE = (
    '<script>window.hit=1</script><img src=x onerror="window.hit=1"> "\'><svg onload=window.hit=1> `</code>'
)
DISPUTE = ("Use npm for the web client.", "Do not use npm for the web client; use pnpm.")
PLACE_OF_FOCUS = (
    "[...document.querySelectorAll('[data-row]')].findIndex((row) => row.contains(document.activeElement))"
)
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


class Site:
    """An explorer that is served, with the context that its operations take."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.listening = listen(context)
        self.base = self.listening.explorer.gate.origin
        is_up = threading.Event()
        self._thread = threading.Thread(target=serve_pages, args=(self.listening, 30, is_up.set), daemon=True)
        self._thread.start()
        assert is_up.wait(20)

    def end(self) -> None:
        """Let it end as after too long without a request."""
        self.listening.explorer.asked_at = time.monotonic() - 10_000
        self._thread.join(20)
        assert not self._thread.is_alive()


@pytest.fixture(scope="module")
def site(sample_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Return a site over a store with the samples and memories that are hostile in each field."""
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine: the pages are not looked at in a browser")
    pytest.importorskip("playwright", reason="playwright is not installed")
    home = tmp_path_factory.mktemp("served") / "home"
    shutil.copytree(sample_store, home)
    context = Context(load_settings(home), words_for_a_model, ticking, home.parent)
    for text in (f"Berths are numbered {HOSTILE} from the north.", *DISPUTE):
        remember.remember(context, text, memory_type="decision", project=PROJECT)
    served = Site(context)
    yield served
    served.end()


@pytest.fixture(scope="module")
def chromium(site: Site) -> Iterator[Any]:
    """Return a running browser to which evil.example is this machine."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as player:
        rules = "--host-resolver-rules=MAP evil.example 127.0.0.1"
        browser = player.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", rules])
        yield browser
        browser.close()


@pytest.fixture
def page(site: Site, chromium: Any) -> Iterator[Any]:
    """Return a page that may look at the site; what it asks elsewhere and complains of fails the test."""
    yield from opened(site, chromium)


@pytest.fixture
def plain_page(site: Site, chromium: Any) -> Iterator[Any]:
    """Return such a page without JavaScript."""
    yield from opened(site, chromium, java_script_enabled=False)


def opened(site: Site, chromium: Any, **options: Any) -> Iterator[Any]:
    """Yield a page with the cookie of the site, in a session of its own."""
    session = chromium.new_context(base_url=site.base, **options)
    gate = site.listening.explorer.gate
    cookie = {"name": gate.cookie_name, "value": gate._session, "url": site.base, "sameSite": "Strict"}
    session.add_cookies([{**cookie, "httpOnly": True}])
    page, asked, complaints = session.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    assert [url for url in asked if not url.startswith(f"{site.base}/")] == []
    assert complaints == []
    session.close()


def memory_of(site: Site, words: str) -> str:
    """Return the id of the memory whose text has these words."""
    rows = site.context.open_catalogue().read("memories", ("memory_id", "text"))
    return next(row["memory_id"] for row in rows if words in row["text"])


def addresses(site: Site) -> list[str]:
    """Return an address of each kind of page."""
    name = memory_of(site, "Berths are numbered")
    session = site.context.open_catalogue().read("sessions", ("session_id",), limit=1)[0]["session_id"]
    memory = [f"/memory/{name}{way}" for way in ("", "/edit", "/forget", "/supersede")]
    return [
        *(address for address, _, _ in NAVIGATION),
        *memory,
        f"/session/{session}",
        f"/graph?memory={memory_of(site, 'Do not use npm')}",
        "/search?q=sqlite&type=decision",
        "/sql?q=select+memory_type,text+from+memories",
        "/sql?q=selekt",
        "/no-such-page",
    ]


@pytest.mark.parametrize("look", ["light", "dark", "narrow", "zoomed"])
def test_no_page_has_a_barrier_or_needs_to_be_moved_sideways(site, chromium, look):
    from axe_playwright_python.sync_playwright import Axe

    barriers: dict[str, Any] = {}
    options = {"color_scheme": "dark" if look == "dark" else "light", "bypass_csp": True}
    if look == "narrow":
        options["viewport"] = {"width": 320, "height": 800}
    if look == "zoomed":  # a window of 1280 x 800 at 200 %
        options |= {"viewport": {"width": 640, "height": 400}, "device_scale_factor": 2}
    for page in opened(site, chromium, **options):
        for address in addresses(site)[:-1]:
            page.goto(address)
            result = Axe().run(page, options={"runOnly": {"type": "tag", "values": WCAG}})
            broken = [(v["id"], v["nodes"][0]["html"][:160]) for v in result.response["violations"]]
            width = page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            if broken or width > 0:
                barriers[address] = (broken, width)
    assert barriers == {}


@pytest.mark.parametrize("width", [320, 640, 1280])
def test_the_words_below_a_chart_keep_apart_and_within_its_card(site, chromium, width):
    bars = [ChartBar(f"2025-{month:02}", month) for month in range(1, 16)]
    for page in opened(site, chromium, viewport={"width": width, "height": 400}):
        page.goto("/timeline")
        page.evaluate(
            "html => document.querySelector('.card').innerHTML = html", str(bar_chart(bars, "bars"))
        )
        boxes = page.evaluate(
            """[...document.querySelector(".card").querySelectorAll("text[text-anchor=middle]")]
              .map((each) => each.getBoundingClientRect()).filter((box) => box.width)
              .map((box) => [box.left, box.right])"""
        )
        assert len(boxes) >= 4
        assert all(right < left for (_, right), (left, _) in pairwise(boxes))
        card = page.locator(".card").first.bounding_box()
        assert boxes[-1][1] <= card["x"] + card["width"]


def test_nothing_hostile_acts_on_any_page(site, page):
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    for address in addresses(site)[:-1]:
        page.goto(address)
        assert page.evaluate("window.hit") is None, address
        assert page.evaluate("document.cookie") == ""
        assert page.locator("main script, main img, main iframe, main [onload], main [onerror]").count() == 0


@pytest.fixture(scope="module")
def planted_site(sample_store: Path, site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Return a site over a store with a hostile text in every field."""
    home = tmp_path_factory.mktemp("planted") / "home"
    shutil.copytree(sample_store, home)
    plant(Context(load_settings(home), words_for_a_model, ticking, home.parent))
    served = Site(Context(load_settings(home), words_for_a_model, ticking, home.parent))
    yield served
    served.end()


@pytest.mark.parametrize("width", [320, 1200])
def test_a_hostile_text_in_every_field_neither_acts_nor_breaks_the_layout(planted_site, chromium, width):
    reader = Browser(planted_site.listening.explorer)
    reader.client.cookies.set(reader.explorer.gate.cookie_name, reader.explorer.gate._session)
    problems = {}
    for page in opened(planted_site, chromium, viewport={"width": width, "height": 800}):
        page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        for address in planted_pages(reader):
            page.goto(address)
            page.evaluate(
                "document.querySelectorAll('details').forEach((element) => { element.open = true; })"
            )
            moved = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            if page.evaluate("window.hit") is not None or page.evaluate(moved) > 0:
                problems[address] = page.evaluate(moved)
            assert page.url == planted_site.base + address.replace(" ", "%20") or "/sql" in address
    assert problems == {}


def test_a_memory_is_pinned_and_the_pin_taken_back_without_scripts(site, plain_page):
    name = memory_of(site, DISPUTE[1])
    plain_page.goto(f"/memory/{name}")
    plain_page.get_by_role("button", name="Pin", exact=True).click()
    assert "Pinned" in plain_page.get_by_role("status").inner_text()
    plain_page.get_by_role("button", name="Undo").click()
    plain_page.get_by_role("button", name="Pin", exact=True).wait_for()


def test_words_are_changed_and_changed_back_without_scripts(site, plain_page):
    name = memory_of(site, DISPUTE[0])
    plain_page.goto(f"/memory/{name}/edit")
    plain_page.get_by_role("textbox", name="The fact").fill("Use yarn here.")
    plain_page.get_by_role("button", name="Save").click()
    plain_page.get_by_role("heading", name="Use yarn here.").wait_for()
    plain_page.get_by_role("button", name="Undo").click()
    plain_page.get_by_role("heading", name=DISPUTE[0]).wait_for()


def test_a_memory_is_forgotten_after_it_was_shown_what_goes_without_scripts(site, plain_page):
    text = "The lighthouse keeper counts the seals."
    name = remember.remember(site.context, text, project=PROJECT).memory_id
    plain_page.goto("/search")
    plain_page.get_by_role("searchbox").fill("lighthouse keeper seals")
    plain_page.get_by_role("button", name="Search").click()
    plain_page.get_by_role("link", name=text).click()
    plain_page.get_by_role("link", name="Forget").click()
    assert text in plain_page.inner_text("main")
    plain_page.get_by_role("button", name="Forget it").click()
    assert "Forgotten" in plain_page.get_by_role("status").first.inner_text()
    assert site.context.open_catalogue().count("memories", {"memory_id": [name]}) == 0


def test_by_keyboard_alone_a_search_leads_to_a_memory(site, page):
    page.goto("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("/")
    page.keyboard.type("npm")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=npm")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("j")
    first = page.evaluate("document.activeElement.getAttribute('href')")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.getAttribute('href')") != first
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{first}")


def test_by_keyboard_alone_an_item_of_the_review_is_settled(site, page):
    project = next(p.project_id for p in site.context.open_store().projects.all() if p.name == PROJECT)
    page.goto(f"/review?project={project}")
    before = page.locator("[data-key=x]").count()
    assert before
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.get_by_text("Kept as it is").wait_for()
    assert page.locator("[data-key=x]").count() == before - 1


def has_visible_focus(page: Any) -> bool:
    """Return whether the element with the focus shows it and stands within the window."""
    return bool(
        page.evaluate(
            """() => {
              const element = document.activeElement, box = element.getBoundingClientRect();
              const style = getComputedStyle(element);
              return element !== document.body && element.matches(":focus-visible")
                && style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2
                && box.bottom > 0 && box.top < innerHeight;
            }"""
        )
    )


def go_to(page: Any, words: str) -> None:
    """Press j until the row with these words has the focus, which is visible at each step."""
    for _ in range(page.locator("[data-row]").count() + 1):
        page.keyboard.press("j")
        assert has_visible_focus(page)
        if page.evaluate("document.activeElement.closest('[data-row]').textContent").find(words) >= 0:
            return
    pytest.fail(f"no row with {words}")


def status_of(site: Site, text: str) -> str:
    """Return the status of the memory with this text."""
    rows = site.context.open_catalogue().read("memories", ("text", "status"))
    return next(row["status"] for row in rows if row["text"] == text)


def undo_by_keyboard(page: Any) -> None:
    """Reach the notice's Undo from the top of the page by Tab alone, and press it."""
    page.evaluate("document.activeElement.blur()")
    for _ in range(60):
        page.keyboard.press("Tab")
        assert has_visible_focus(page)
        if page.evaluate("document.activeElement.textContent.trim()") == "Undo":
            page.keyboard.press("Enter")
            page.wait_for_load_state()
            return
    pytest.fail("Undo is not reached")


def test_by_keyboard_alone_the_review_is_walked_settled_and_taken_back(site, page):
    pairs = [
        ("Use cron for the tide reports.", "Do not use cron for the tide reports; use systemd."),
        ("Use Redis for the gauge cache.", "Do not use Redis for the gauge cache; use memcached."),
    ]
    for text in (text for pair in pairs for text in pair):
        remember.remember(site.context, text, memory_type="decision", project=PROJECT)
    (older, newer), (_, kept) = pairs
    project = next(p.project_id for p in site.context.open_store().projects.all() if p.name == PROJECT)
    address = f"/review?project={project}"
    page.goto(address)
    rows = page.locator("[data-row]")
    seen = []
    for _ in range(rows.count()):
        page.keyboard.press("j")
        assert has_visible_focus(page)
        seen.append(page.evaluate(PLACE_OF_FOCUS))
    assert seen == list(range(rows.count())) and len(seen) > 2
    page.keyboard.press("k")
    assert has_visible_focus(page) and page.evaluate(PLACE_OF_FOCUS) == len(seen) - 2
    page.goto(address)
    go_to(page, newer)
    page.keyboard.press("a")
    page.get_by_text("Accepted:").wait_for()
    assert page.locator("[data-row]", has_text=newer).count() == 0
    assert status_of(site, older) != "active"
    undo_by_keyboard(page)
    page.get_by_text("Accepted:").wait_for(state="detached")
    assert status_of(site, older) == "active"
    page.goto(address)
    go_to(page, kept)
    page.keyboard.press("d")
    page.get_by_text("Forget this for good?").wait_for()
    assert page.get_by_text("And its words in").count() == 1
    page.goto(address)
    go_to(page, kept)
    page.keyboard.press("x")
    page.get_by_text("Kept as it is").wait_for()
    assert page.locator("[data-row]", has_text=kept).count() == 0
    page.goto(address)
    weak = page.locator("[data-row]", has=page.get_by_role("button", name="Pin:")).first
    words = weak.locator("a.statement").inner_text()[:50]
    go_to(page, words)
    page.keyboard.press("x")
    page.get_by_text("Pinned").first.wait_for()
    undo_by_keyboard(page)
    page.get_by_text("No longer pinned").wait_for()


def test_a_name_that_leads_to_this_machine_is_refused(site, chromium):
    session = chromium.new_context()
    answer = session.new_page().goto(f"http://evil.example:{site.base.rpartition(':')[2]}/search")
    assert answer.status == 403 and "alone" in answer.text()
    session.close()


class Attack(BaseHTTPRequestHandler):
    """A page of another port that sends a form to the explorer as soon as it is opened."""

    target = ""

    def do_GET(self) -> None:
        """Answer with the page."""
        form = f'<form method="post" action="{self.target}"><input name="token" value="x"></form>'
        body = f"{form}<script>document.forms[0].submit()</script>".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Say nothing."""


def test_a_form_of_another_page_changes_nothing(site, chromium):
    name = memory_of(site, DISPUTE[1])
    Attack.target = f"{site.base}/memory/{name}/pin"
    server = HTTPServer(("127.0.0.1", 0), Attack)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    session = chromium.new_context()
    gate = site.listening.explorer.gate
    session.add_cookies([{"name": gate.cookie_name, "value": gate._session, "url": site.base}])
    page = session.new_page()
    with page.expect_response(lambda response: response.url == Attack.target) as answer:
        page.goto(f"http://127.0.0.1:{server.server_port}/")
    assert answer.value.status == 403
    [row] = site.context.open_catalogue().read("memories", ("is_pinned",), {"memory_id": [name]})
    assert not row["is_pinned"]
    session.close()
    server.shutdown()
    server.server_close()


def test_the_link_opens_the_brief_and_works_once(site, chromium):
    session = chromium.new_context()
    page = session.new_page()
    page.goto(site.listening.address)
    page.wait_for_url(f"{site.base}/")
    assert page.get_by_role("heading", name="What the assistant is told").is_visible()
    assert session.new_page().goto(site.listening.address).status == 403
    session.close()
