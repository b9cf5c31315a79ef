"""The plugin starts the memory's tools unless the setting mcp.in_plugin says no."""

import subprocess
from pathlib import Path

import pytest

from cortex.storage.settings.config_file import publish_hook_settings

SCRIPT = Path(__file__).parents[3] / "hooks" / "mcp.sh"


@pytest.fixture
def starts(tmp_path):
    """Return what says whether the script starts the engine, here one that only says that it was called."""
    home = tmp_path / "home"
    home.mkdir()
    engine = tmp_path / "cortex"
    engine.write_text("#!/bin/sh\necho started $1\n")
    engine.chmod(0o755)
    (home / "engine").write_text(f"{engine}\n")

    def run(config="", **environment):
        (home / "config.toml").write_text(config)
        publish_hook_settings(home, {})
        variables = {"CORTEX_HOME": str(home), "PATH": "/usr/bin:/bin", **environment}
        done = subprocess.run(["/bin/sh", SCRIPT], env=variables, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout == "started mcp\n"

    return run


def test_the_tools_start_unless_the_setting_says_no(starts):
    assert starts()
    assert not starts("[mcp]\nin_plugin = false\n")
    assert not starts("[mcp]\nin_plugin = false\n[recall]\nat_prompt = true\n")
    assert starts("[mcp]\nin_plugin = true\n")


def test_the_environment_has_the_last_word(starts):
    assert starts("[mcp]\nin_plugin = false\n", CORTEX_MCP_IN_PLUGIN="true")
    assert not any(starts(CORTEX_MCP_IN_PLUGIN=word) for word in ("false", "off", "NO", "0"))
