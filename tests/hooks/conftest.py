"""Runs hooks as the client does: a process of its own, JSON on stdin, an almost empty environment."""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

HOOKS = Path(__file__).parents[2] / "hooks"
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
        command = [sys.executable, "-I", "-S", str(self.folder / "hooks" / "hook.py"), event]
        return self.run(command, stdin, environment)

    def launch(self, event: str, stdin: bytes, **environment: str) -> subprocess.CompletedProcess[bytes]:
        return self.run(["/bin/sh", str(self.folder / "hooks" / "run.sh"), event], stdin, environment)

    def run(
        self, command: list[str], stdin: bytes, environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[bytes]:
        real = {
            "HOME": str(self.folder),
            "CORTEX_HOME": str(self.home),
            "PATH": "/usr/bin:/bin",
            **environment,
        }
        return subprocess.run(command, input=stdin, capture_output=True, env=real, timeout=30)

    @staticmethod
    def is_silent(ran: subprocess.CompletedProcess[bytes]) -> bool:
        """Whether a hook ended as the client wants it: exit 0 and not a byte on either stream."""
        return (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")

    def tickets(self) -> list[dict[str, object]]:
        new = self.staging / "new"
        return [json.loads(path.read_bytes()) for path in sorted(new.iterdir())] if new.exists() else []

    def names(self, folder: str) -> list[str]:
        return sorted(path.name for path in (self.staging / folder).iterdir())

    def publish(self, folder: str, project_id: str, text: str) -> None:
        published = self.home / "published"
        (published / project_id).mkdir(parents=True, exist_ok=True)
        (published / project_id / "brief.md").write_text(text)
        (published / "projects.json").write_text(json.dumps({folder: project_id}))


@pytest.fixture
def client(tmp_path: Path) -> Client:
    shutil.copytree(HOOKS, tmp_path / "hooks", ignore=shutil.ignore_patterns("__pycache__"))
    return Client(tmp_path)
