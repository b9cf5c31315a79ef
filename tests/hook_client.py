"""Runs hooks as the client does: a process of its own, JSON on stdin, an almost empty environment."""

import compileall
import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode

import pytest

from tests.hook_process import run_forked

HOOKS = Path(__file__).parents[1] / "hooks"
# Seconds that the hooks may take here.
PATIENCE = {"basic_brief.py": 60, "hook.py": 2}
SESSION = "0b6f4a52-7d3e-4c1b-9a55-3f1c8e2d7a10"


@dataclass(frozen=True)
class Client:
    """A scratch user: a home, a folder of transcripts, a bare copy of the hooks."""

    folder: Path
    session: str = SESSION

    @property
    def home(self) -> Path:
        return self.folder / "cortex"

    @property
    def staging(self) -> Path:
        return self.home / "staging"

    @property
    def log(self) -> str:
        path = self.home / "runs" / "hooks.log"
        return path.read_text() if path.exists() else ""

    def write_transcript(self, name: str = SESSION, text: str = '{"type":"user"}\n') -> Path:
        path = self.folder / "projects" / "-home-ada-kiln" / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def payload(self, transcript: Path, **fields: object) -> bytes:
        told = {"session_id": SESSION, "transcript_path": str(transcript), "cwd": "/home/ada/kiln", **fields}
        return json.dumps(told).encode()

    def hook(self, event: str, stdin: bytes, **environment: str) -> subprocess.CompletedProcess[bytes]:
        """Run the hook in a process of its own; what its start alone can show is shown by `launch`."""
        hook = self.folder / "hooks" / "hook.py"
        return run_forked(hook, event, stdin=stdin, environment=self.environment(environment))

    def launch(self, event: str, stdin: bytes, **environment: str) -> subprocess.CompletedProcess[bytes]:
        return self.run(["/bin/sh", str(self.folder / "hooks" / "run.sh"), event], stdin, environment)

    def run(
        self, command: list[str], stdin: bytes, environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[bytes]:
        real = self.environment(environment)
        return subprocess.run(command, input=stdin, capture_output=True, env=real, timeout=30)

    def environment(self, chosen: Mapping[str, str]) -> dict[str, str]:
        own = {"HOME": str(self.folder), "CORTEX_HOME": str(self.home), "PATH": "/usr/bin:/bin"}
        return {**own, **chosen}

    @staticmethod
    def is_silent(ran: subprocess.CompletedProcess[bytes]) -> bool:
        """Whether a hook ended as the client wants it: exit 0 and not a byte on either stream."""
        return (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")

    def tickets(self) -> list[dict[str, object]]:
        new = self.staging / "new"
        return [json.loads(path.read_bytes()) for path in sorted(new.iterdir())] if new.exists() else []

    def own_hooks(self) -> Path:
        """Return the folder of the hooks, for this client alone from now on."""
        folder = self.folder / "hooks"
        shared = folder.resolve()
        folder.unlink()
        return Path(shutil.copytree(shared, folder))

    def names(self, folder: str) -> list[str]:
        return sorted(path.name for path in (self.staging / folder).iterdir())

    def publish(self, folder: str, project_id: str, text: str) -> None:
        published = self.home / "published"
        (published / project_id).mkdir(parents=True, exist_ok=True)
        (published / project_id / "brief.md").write_text(text)
        (published / "projects.json").write_text(json.dumps({folder: project_id}))


@pytest.fixture(scope="session")
def compiled_hooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    Return a copy of the hooks that waits for a busy machine; what they wait as shipped is measured elsewhere.

    Its bytecode counts by its source, so that a copy of it may be written to.
    """
    folder = tmp_path_factory.mktemp("compiled") / "hooks"
    shutil.copytree(HOOKS, folder, ignore=shutil.ignore_patterns("__pycache__", "skills", "agents"))
    for name, seconds in PATIENCE.items():
        text, count = re.subn(r"(?m)^(\w*SECONDS = ).*$", rf"\g<1>{seconds}", (folder / name).read_text())
        assert count, f"{name} has another deadline"
        (folder / name).write_text(text)
    compileall.compile_dir(folder, quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    return folder


@pytest.fixture
def client(tmp_path: Path, compiled_hooks: Path) -> Client:
    (tmp_path / "hooks").symlink_to(compiled_hooks)
    return Client(tmp_path)
