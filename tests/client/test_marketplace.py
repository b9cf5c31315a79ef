"""The plugin from a used checkout, of which the client takes the folder of the hooks alone, and by git."""

import json
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.client.conftest import ROOT

# The client's own state and the plugin with its bytecode; the checkout has a thousand times as much.
MAX_COPIED_BYTES = 1_000_000


@pytest.mark.parametrize("place", [ROOT, ROOT / "hooks"], ids=["checkout", "package"])
def test_the_plugin_from_a_used_checkout_is_small_and_captures(harness: ModuleType, place: Path):
    with harness.RealClient(model={"turns": ["one"]}) as client:
        added = client.cli(["plugin", "marketplace", "add", "./"], cwd=place)
        assert added["rc"] == 0, added["stdout"] + added["stderr"]
        installed = client.cli(["plugin", "install", "cortex-lake@cortex-lake"])
        assert installed["rc"] == 0, installed["stdout"] + installed["stderr"]
        [plugin] = json.loads(client.cli(["plugin", "list", "--json"])["stdout"])
        assert not plugin.get("errors")
        copied = client.home / ".claude" / "plugins"
        assert _bytes_below(copied) < MAX_COPIED_BYTES
        session: Any = client.run_print("hello")
        assert not session["init"].get("plugin_errors")
        assert "cortex-lake:recall" in session["init"]["slash_commands"]
        assert list((client.home / ".cortex" / "staging" / "new").iterdir())


def test_the_plugin_from_a_git_remote_by_owner_and_repository(harness: ModuleType, tmp_path: Path):
    with harness.RealClient(model={"turns": ["one"]}) as client:
        remote = tmp_path / "remotes" / "someone" / "cortex.git"
        subprocess.run(["git", "clone", "--quiet", "--bare", str(ROOT), str(remote)], check=True)
        # git takes the address of the host for this folder, whichever way the client asks.
        addresses = ("https://github.com/", "git@github.com:", "ssh://git@github.com/")
        instead = "".join(f"\tinsteadOf = {address}\n" for address in addresses)
        settings = f'[url "{remote.parents[1].as_uri()}/"]\n{instead}[protocol "file"]\n\tallow = always\n'
        (client.home / ".gitconfig").write_text(settings)
        added = client.cli(["plugin", "marketplace", "add", "someone/cortex"])
        assert added["rc"] == 0, added["stdout"] + added["stderr"]
        installed = client.cli(["plugin", "install", "cortex-lake@cortex-lake"])
        assert installed["rc"] == 0, installed["stdout"] + installed["stderr"]
        session: Any = client.run_print("hello")
        assert not session["init"].get("plugin_errors")
        assert "cortex-lake:recall" in session["init"]["slash_commands"]
        assert list((client.home / ".cortex" / "staging" / "new").iterdir())


def _bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
