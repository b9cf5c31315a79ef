"""Without the plugin: hooks and status line through the settings do the same in the real client."""

import shutil
from types import ModuleType
from typing import Any

import pytest

from tests.client.conftest import ENGINE, take_step

OWN = {
    "permissions": {"allow": ["Bash(ls *)"]},
    "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]},
    "statusLine": {"type": "command", "command": "echo mine", "padding": 0},
}
DECIDED = "[MEMORY: decision] Keep the readings in SQLite in WAL mode, because a single writer is enough."


def cortex(harness: ModuleType, client: Any, words: str) -> None:
    harness.do_step(client, {"shell": f"{ENGINE} {words}"})
    assert client.steps[-1]["rc"] == 0, client.steps[-1]


def test_one_session_reaches_the_next_and_the_settings_come_back_to_the_byte(harness: ModuleType):
    turns = {"turns": [DECIDED, "The export is next."]}
    with harness.RealClient(user_settings=OWN, model=turns, files={"README.md": "# Tide gauges\n"}) as client:
        settings = client.home / ".claude" / "settings.json"
        before = settings.read_bytes()
        cortex(harness, client, "install")
        client.run_print("Which database should hold the readings? Please decide and say why.")
        take_step(harness, client, {"until_idle": 90})  # the run that the session's end has started
        client.run_print("Go on with the export of the readings.")
        shown = str(client.seen(client.requests("main")[1])["context"])
        assert "SQLite in WAL mode" in shown and "a single writer is enough" in shown
        cortex(harness, client, "uninstall")
        assert settings.read_bytes() == before
        log = client.home / ".cortex" / "runs" / "hooks.log"
        assert not log.exists(), log.read_text()


@pytest.mark.skipif(shutil.which("tmux") is None, reason="a status line needs a terminal, here tmux")
def test_the_status_line_stands_below_the_users_own(harness: ModuleType):
    with harness.RealClient(user_settings=OWN, model={"turns": ["one", "two"]}) as client:
        cortex(harness, client, "statusline install")
        steps = ["hello", {"wait_for": "mine"}, {"wait_for": r"cortex: .*context \d+ %"}, {"shot": "line"}]
        harness.do_step(client, {"tui": steps, "exit": "/exit"})
        screen = str(client.steps[-1])
        assert screen.index("mine") < screen.index("cortex: ")
        cortex(harness, client, "statusline uninstall")
        assert b"run.sh" not in (client.home / ".claude" / "settings.json").read_bytes()
