"""What the real client does with the plugin: each scenario is played, and each of its expectations holds."""

import json
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.client.conftest import SCENARIOS, scenario, take_step

# Of a scenario file: for the reader, and played by us.
NOT_FOR_THE_CLIENT = ("name", "about", "steps", "expect")

NO_OP = {"type": "command", "command": "true"}


@pytest.mark.parametrize("name", sorted(path.stem for path in SCENARIOS.glob("*.json")))
def test_the_client_plays_the_scenario(harness: ModuleType, plugin: Path, name: str):
    told = scenario(name)
    options = {key: value for key, value in told.items() if key not in NOT_FOR_THE_CLIENT}
    with harness.RealClient(plugin_dirs=[plugin], **options) as client:
        for step in told["steps"]:
            take_step(harness, client, step)
        failed = [why for held, why in (harness.check(client, each) for each in told["expect"]) if not held]
        for hook in client.plugin_hooks():
            print(hook["event"], hook["payload"].get("source", ""), hook["ms"], "ms")  # shown by pytest -rP
        logs = {path.name: path.read_text() for path in (client.home / ".cortex" / "runs").glob("*.log")}
        assert failed == [], logs
        assert "hooks.log" not in logs, logs


def test_the_plugin_validates_strictly(harness: ModuleType, plugin: Path):
    with harness.RealClient(observe=False) as client:
        told = client.cli(["plugin", "validate", str(plugin), "--strict"])
    assert told["rc"] == 0, told["stdout"]
    assert "Validation passed" in told["stdout"]


def test_installing_and_uninstalling_leave_the_users_files_as_they_were(harness: ModuleType, plugin: Path):
    own = {"permissions": {"allow": ["Bash(ls *)"]}, "hooks": {"Stop": [{"hooks": [NO_OP]}]}}
    files = {"README.md": "# Tide gauges\n", "CLAUDE.md": "Use tabs.\n"}
    turns = {"turns": ["one", "two", "three"]}
    with harness.RealClient(user_settings=own, files=files, model=turns, observe=False) as client:
        settings = client.home / ".claude" / "settings.json"
        before = json.loads(settings.read_bytes())
        _plugin(client, "marketplace", "add", str(plugin))
        _plugin(client, "install", "cortex-lake@cortex-lake")
        assert "cortex-lake:recall" in _commands_of_a_session(client)
        _plugin(client, "disable", "cortex-lake@cortex-lake")
        assert "cortex-lake:recall" not in _commands_of_a_session(client)
        _plugin(client, "enable", "cortex-lake@cortex-lake")
        _plugin(client, "update", "cortex-lake@cortex-lake")
        assert "cortex-lake:recall" in _commands_of_a_session(client)
        waiting = list((client.home / ".cortex" / "staging" / "new").iterdir())
        _plugin(client, "uninstall", "cortex-lake@cortex-lake")
        _plugin(client, "marketplace", "remove", "cortex-lake")
        # The client itself leaves these two empty maps behind.
        after = json.loads(settings.read_bytes())
        assert [after.pop(name) for name in ("enabledPlugins", "extraKnownMarketplaces")] == [{}, {}]
        assert after == before
        assert waiting and all(path.exists() for path in waiting)  # no memory goes with the plugin
        assert _git_status(client) == ""
        assert {name: (client.project / name).read_text() for name in files} == files


def _plugin(client: Any, *words: str) -> None:
    told = client.cli(["plugin", *words])
    assert told["rc"] == 0, told["stdout"] + told["stderr"]


def _commands_of_a_session(client: Any) -> list[str]:
    told = client.run_print("hello")
    assert not told["init"].get("plugin_errors")
    return list(told["init"]["slash_commands"])


def _git_status(client: Any) -> str:
    asked = ["git", "status", "--porcelain", "--ignored"]
    return subprocess.run(asked, cwd=client.project, capture_output=True, text=True, check=True).stdout
