"""Nobody but the browser that opened the link may ask, and nothing changes without a form of these pages."""

import http.client
import re
import threading
import time

import pytest

from cortex.explorer.application import ANSWER_HEADERS, AccessGate
from cortex.explorer.server import listen, serve_pages
from cortex.explorer.views import NAVIGATION
from cortex.flows.context import Context
from cortex.storage.settings.settings import load_settings
from tests.browsing import HOST, Browser, explorer_of

PAGES = [address for address, _, _ in NAVIGATION]


def entrant(reader: Browser, tmp_path) -> Browser:
    """Return a browser that has not opened the link yet."""
    return Browser(explorer_of(reader.explorer.open_context().home, tmp_path))


@pytest.mark.parametrize("address", [*PAGES, "/search.json", "/static/style.css", "/no-such-page"])
def test_without_the_link_nothing_is_shown(reader, tmp_path, address):
    answer = entrant(reader, tmp_path).get(address)
    assert answer.status_code == 403 and "cortex explore" in answer.text


def test_the_link_works_once_and_sets_a_cookie_that_scripts_and_other_sites_do_not_get(reader, tmp_path):
    stranger = entrant(reader, tmp_path)
    token = stranger.explorer.gate.link_token
    answer = stranger.get(f"/enter?token={token}")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and "41234" in cookie
    assert "domain" not in cookie and token.lower() not in cookie
    assert stranger.get("/search").status_code == 200
    assert Browser(stranger.explorer).get(f"/enter?token={token}").status_code == 403


@pytest.mark.parametrize("token", ["", "x", "é", "a" * 10_000])
def test_another_token_opens_nothing(reader, tmp_path, token):
    stranger = entrant(reader, tmp_path)
    assert stranger.client.get("/enter", params={"token": token}).status_code == 403
    assert stranger.enter().get("/search").status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "localhost:41234", "127.0.0.1:80", ""])
def test_a_name_that_leads_here_is_not_answered(reader, host):
    assert reader.get("/search", Host=host).status_code == 403
    assert reader.get(f"/enter?token={reader.explorer.gate.link_token}", Host=host).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:3000"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_other_pages_cannot_ask_even_with_the_cookie(reader, headers):
    assert reader.get("/search", **headers).status_code == 403


@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", f"http://localhost:{HOST[-5:]}"])
def test_a_change_needs_the_pages_own_origin(browser, memory, origin):
    form = {"token": browser.explorer.gate.form_token}
    headers = {"Origin": origin} if origin else {}
    answer = browser.client.post(f"/memory/{memory['memory_id']}/pin", data=form, headers=headers)
    assert answer.status_code == 403
    assert not browser.json(f"/memory/{memory['memory_id']}")["memory"]["is_pinned"]


@pytest.mark.parametrize("token", [None, "", "0" * 64])
def test_a_change_needs_the_token_of_a_form(browser, memory, token):
    form = {} if token is None else {"token": token}
    answer = browser.client.post(
        f"/memory/{memory['memory_id']}/pin", data=form, headers={"Origin": browser.explorer.gate.origin}
    )
    assert answer.status_code == 403
    assert not browser.json(f"/memory/{memory['memory_id']}")["memory"]["is_pinned"]


def test_read_only_shows_no_form_and_refuses_every_change(reader):
    memory = reader.json("/search?type=decision")["memories"][0]["memory_id"]
    for address in (f"/memory/{memory}", f"/memory/{memory}/edit", f"/memory/{memory}/forget"):
        assert 'method="post"' not in reader.page(address)
    assert reader.send(f"/memory/{memory}/pin").status_code == 403


@pytest.mark.parametrize("address", [*PAGES, "/no-such-page", "/search?type=nonsense"])
def test_every_answer_has_the_headers_and_no_inline_script_or_style(reader, address):
    answer = reader.get(address)
    assert {name: answer.headers[name] for name in ANSWER_HEADERS} == dict(ANSWER_HEADERS)
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert re.findall(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son[a-z]+=|javascript:", answer.text) == []
    assert re.findall(r'(?:src|href|action)="(?![/#])', answer.text) == []


def test_no_answer_leads_to_a_place_outside(reader):
    for address in (
        "/static/%2e%2e/safety.py",
        "/static/..%2fsafety.py",
        "/memory/..%2f",
        "/%2fevil.example",
    ):
        assert reader.get(address).status_code == 404


def test_a_huge_form_is_not_read(browser, memory):
    assert browser.send(f"/memory/{memory['memory_id']}/edit", text="x" * 100_000).status_code == 403


def test_a_form_that_never_comes_is_answered_and_nobody_waits_for_it(tmp_path):
    listening = listen(Context(load_settings(tmp_path), folder=tmp_path))
    gate, is_up = listening.explorer.gate, threading.Event()
    serving = threading.Thread(target=serve_pages, args=(listening, 30, is_up.set), daemon=True)
    serving.start()
    assert is_up.wait(20)

    def asking(method: str, path: str, **headers: str) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(gate.host, timeout=10)
        connection.request(method, path, headers=headers)
        return connection

    entered = asking("GET", f"/enter?token={gate.link_token}").getresponse()
    headers = {"Cookie": entered.headers["Set-Cookie"].split(";")[0], "Origin": gate.origin}
    began = time.monotonic()
    waiting = asking("POST", "/run", **headers, **{"Content-Length": "9"})
    assert asking("GET", "/static/icon.svg", **headers).getresponse().status == 200
    answer = waiting.getresponse()
    assert (answer.status, answer.headers["Connection"]) == (408, "close")
    assert time.monotonic() - began < 5
    listening.explorer.asked_at = time.monotonic() - 10_000
    serving.join(20)


def test_two_explorers_have_two_cookies_and_two_tokens():
    one, other = AccessGate("127.0.0.1:1"), AccessGate("127.0.0.1:2")
    assert one.cookie_name != other.cookie_name and one.link_token != other.link_token
    assert one.form_token != other.form_token
