"""`cortex cost`, the doctor's line and the choice of a language model: what it costs, before and after."""

from cortex.flows.context import utc_now
from cortex.storage.settings.config_file import ConfigFile
from cortex.storage.settings.setting_keys import key_of
from tests.store.cli.test_cost import run, spend


def test_doctor_says_what_is_on_what_it_costs_and_what_is_left(home, monkeypatch):
    ConfigFile(home).set(key_of("models.writer"), "api")
    assert "models.api_key" in run("doctor")  # a key is missing
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-none")
    spend(home, "a", utc_now())
    shown = " ".join(run("doctor").split())
    assert "$0.1460 of $0.15 and 199 of 200 requests" in shown
    assert "sk-none" not in shown
    ConfigFile(home).set(key_of("models.writer_model"), "some-other-model")
    assert "priced as the most expensive" in " ".join(run("doctor").split())
