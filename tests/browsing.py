"""The explorer as a browser meets it, over a copy of a store with the samples read into it."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from html import unescape
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from cortex.explorer.application import AccessGate, Explorer
from cortex.flows.context import Context
from cortex.storage.settings.settings import load_settings
from tests.bench import NOW, words_for_a_model

# Two deeds at one instant would have no order.
_MILLISECONDS = count()

HOST = "127.0.0.1:41234"
PROJECT = "tidepool"


def ticking() -> datetime:
    """Return the bench's instant, a millisecond later at each call."""
    return NOW + timedelta(milliseconds=next(_MILLISECONDS))


class Browser:
    """A browser that has opened the explorer's link: it keeps the cookie and sends what browsers send."""

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self.client = TestClient(
            explorer.application(), base_url=f"http://{explorer.gate.host}", follow_redirects=False
        )

    def enter(self) -> "Browser":
        """Open the one-time link."""
        answer = self.client.get("/enter", params={"token": self.explorer.gate.link_token})
        assert answer.status_code == 200, answer.text
        return self

    def get(self, address: str, **headers: str) -> Any:
        """Ask for an address."""
        return self.client.get(address, headers=headers)

    def page(self, address: str) -> str:
        """Return a page's HTML; it must be there."""
        answer = self.get(address)
        assert answer.status_code == 200, answer.text[-2000:]
        return str(answer.text)

    def json(self, address: str) -> Any:
        """Return a view's values."""
        path, _, query = address.partition("?")
        answer = self.get(f"{path}.json?{query}")
        assert answer.status_code == 200, answer.text[-2000:]
        return answer.json()

    def send(self, address: str, **fields: str) -> Any:
        """Send a form of these pages and return the answer, a redirect where it was done."""
        form = {"token": self.explorer.gate.form_token, **fields}
        return self.client.post(address, data=form, headers={"Origin": self.explorer.gate.origin})

    def do(self, address: str, **fields: str) -> str:
        """Send a form and return the page that it leads to."""
        answer = self.send(address, **fields)
        assert answer.status_code == 303, answer.text[-2000:]
        return self.page(answer.headers["location"])


def words_of(html: str) -> str:
    """Return what a page says, without its marks."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html.split("<body>")[-1])).split())


def explorer_of(home: Path, folder: Path, *, is_read_only: bool = False) -> Explorer:
    """Return an explorer of a store, at the bench's instant."""

    def context() -> Context:
        settings = replace(load_settings(home), home=home)
        return Context(settings, words_for_a_model, ticking, folder)

    return Explorer(context, AccessGate(HOST), is_read_only)


@pytest.fixture
def reader(sample_store: Path, tmp_path: Path) -> Iterator[Browser]:
    """Return a browser at a store that no test changes."""
    yield Browser(explorer_of(sample_store, tmp_path, is_read_only=True)).enter()


@pytest.fixture
def browser(sample_store: Path, home: Path, tmp_path: Path) -> Iterator[Browser]:
    """Return a browser at the test's own store."""
    shutil.copytree(sample_store, home)
    yield Browser(explorer_of(home, tmp_path)).enter()


@pytest.fixture
def memory(browser: Browser) -> dict[str, Any]:
    """Return a memory of the test's own store: a decision of the sample project."""
    return browser.json("/search?type=decision")["memories"][0]
