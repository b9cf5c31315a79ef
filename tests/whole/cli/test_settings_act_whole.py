"""A setting acts at once or says when it will, and `cortex brief` prints what holds now."""

from cortex.hooks.tokens import tokens_in


def test_a_budget_set_now_is_that_of_the_brief_handed_over_next(cortex, samples):
    published = next((samples / "published").glob("tidepool-*/brief.md"))
    before = published.read_text()
    answer = cortex("config", "set", "brief.tokens", "300")
    assert answer.out == "brief.tokens is now 300; takes effect at once.\n"
    after = published.read_text()
    assert tokens_in(after) <= 300 < tokens_in(before)
    assert cortex("config", "unset", "brief.tokens").out.endswith("; takes effect at once.\n")
    assert tokens_in(published.read_text()) > 300


def test_brief_prints_what_a_run_would_publish_now(cortex, samples, monkeypatch):
    published = cortex("brief", "--project", "tidepool").out
    monkeypatch.setenv("CORTEX_BRIEF_TOKENS", "300")
    shown = cortex("brief", "--project", "tidepool").out
    assert tokens_in(shown) <= 300 < tokens_in(published)
    assert next((samples / "published").glob("tidepool-*/brief.md")).read_text() == published
    cortex("run", "--engine", "plain")
    assert next((samples / "published").glob("tidepool-*/brief.md")).read_text() == shown
