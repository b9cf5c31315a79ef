"""What the real client does with the plugin: each scenario is played, and each of its expectations holds."""

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.client.conftest import SCENARIOS, scenario, take_step

pytestmark = pytest.mark.slow

# Of a scenario file: for the reader, and played by us.
NOT_FOR_THE_CLIENT = ("name", "about", "steps", "expect")


@pytest.mark.parametrize("name", sorted(path.stem for path in SCENARIOS.glob("*.json")))
def test_the_client_plays_the_scenario(harness: ModuleType, plugin: Path, name: str, record_property: Any):
    told = scenario(name)
    options = {key: value for key, value in told.items() if key not in NOT_FOR_THE_CLIENT}
    with harness.RealClient(plugin_dirs=[plugin], **options) as client:
        for step in told["steps"]:
            take_step(harness, client, step)
        failed = [why for held, why in (harness.check(client, each) for each in told["expect"]) if not held]
        for hook in client.plugin_hooks():
            record_property(hook["event"], hook["ms"])
        assert failed == [], client.report()["steps"]


def test_the_plugin_validates_strictly(harness: ModuleType, plugin: Path):
    with harness.RealClient(observe=False) as client:
        told = client.cli(["plugin", "validate", str(plugin), "--strict"])
    assert told["rc"] == 0, told["stdout"]
    assert "Validation passed" in told["stdout"]
