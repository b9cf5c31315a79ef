"""Nobody but the browser that opened the link may ask, and nothing changes without a form of these pages."""

from cortex.flows.operations.maintain.config import encrypt
from tests.store.explorer.test_safety import PAGES


def test_looking_writes_nothing(browser, memory, home):
    def state() -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in sorted(home.rglob("*")) if p.is_file()}

    before, name = state(), memory["memory_id"]
    for address in (*PAGES, "/search?q=sqlite", f"/memory/{name}", f"/memory/{name}/forget"):
        browser.page(address)
    for address in (f"/memory/{name}/pin", f"/memory/{name}/restore"):
        assert browser.get(address).status_code == 404
    assert state() == before


def test_a_sealed_store_without_its_key_shows_what_needs_none_and_names_the_key(browser, tmp_path):
    key = tmp_path / "key"
    encrypt(browser.explorer.open_context(), key)
    assert browser.get("/search").status_code == 200 and browser.get("/").status_code == 200
    key.rename(tmp_path / "elsewhere")
    for address in ("/settings", "/health", "/runs"):
        assert browser.get(address).status_code == 200, address
    for address in ("/search", "/", "/graph", "/sql?q=select text from memories"):
        answer = browser.get(address)
        assert str(key) in answer.text and "Traceback" not in answer.text, address
        assert browser.explorer.gate.form_token not in answer.text.split("</header>")[0]
