"""Programs of npm that tests run: fetched once into the cache, or the test is skipped with the reason."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from filelock import FileLock

# npm's own `latest` of the suite is older than the requirement sets. All need Node 22, which npm brings.
PACKAGES = (
    "node@22",
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/inspector@2.12",
    "@modelcontextprotocol/sdk@1",
    "oidc-provider@9",
)
FETCH_SECONDS = 280


def node_programs() -> Path:
    """Return the folder of the programs' commands; skip where npm is missing or cannot fetch them."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed: it fetches the conformance suite, the inspector and Node 22")
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cortex-tests" / "mcp-node"
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "fetch.lock"):
        fetched = folder / f"fetched-{len(PACKAGES)}"
        if not fetched.is_file():
            fetch = [
                npm,
                "install",
                "--no-fund",
                "--no-audit",
                "--no-save",
                "--prefix",
                str(folder),
                *PACKAGES,
            ]
            try:
                subprocess.run(fetch, check=True, capture_output=True, text=True, timeout=FETCH_SECONDS)
            except (subprocess.SubprocessError, OSError) as error:
                pytest.skip(f"npm could not fetch {', '.join(PACKAGES)}: {str(error)[:200]}")
            fetched.touch()
    return folder / "node_modules" / ".bin"


def run_node(*words: object, seconds: float = 240, **options: object) -> subprocess.CompletedProcess[str]:
    """Run one of the programs by its name, with the Node that npm brought."""
    commands = node_programs()
    environment = {**os.environ, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"}
    program, *rest = map(str, words)
    return subprocess.run(
        [str(commands / program), *rest],
        capture_output=True,
        text=True,
        timeout=seconds,
        env={**environment, **options.pop("env", {})},
        stdin=subprocess.DEVNULL,
        **options,
    )
