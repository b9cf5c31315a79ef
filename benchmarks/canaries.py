"""
The canary report: `python -m benchmarks.canaries [--kinds N] [--engine plain|prefect] [--control]`.

A made secret of every kind is planted in every place where a transcript can carry text. The transcripts go
through the hooks, a run whose embedder refuses, a whole run with a recorded hosted embedder, a run that
fails over a damaged store, a nightly run, remember, edit, import, recall, brief, export, backup and restore.
Then every file below the homes is searched, also inside what its format packs, and every request that would
have gone out. Nothing may be found. `--control` does the same without redaction, to see that it would be.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest import mock
from zlib import crc32

os.environ.setdefault("LANCEDB_LOG", "error")

from click.testing import CliRunner, Result

from benchmarks.canary_carriers import CARRIERS
from benchmarks.canary_kinds import ALNUM, KINDS, Kind, canary
from benchmarks.canary_search import canaries_below, canaries_in
from benchmarks.invented import WORDS
from cortex.cli.answer import Listing, print_listing
from cortex.cli.main import main as cortex
from cortex.flows import embedders
from cortex.flows.embedders.voyage import DIMENSIONS, VoyageEmbedder
from cortex.transforms.errors import StoreBusy
from cortex.transforms.redaction.redact import Redactor
from tests.present import clock_at, present
from tests.transcripts import START, Talk, lines

NOW = datetime(2026, 11, 1, 10, tzinfo=UTC)
HOOK = Path(__file__).parents[1] / "hooks" / "hook.py"

LATER = embedders.RETRIED_AFTER
BUSY_SECONDS = 120  # how long a command is tried again while the run that a hook has started goes on

# What is between these tags goes whatever it says, so it is no secret by its looks.
PLAIN = Kind("plain words", "the heron called <S> nests there", ALNUM, 14)


# Each of these commands is a run of its own, some seconds long.
SESSIONS_AT_ONCE = 10


# Words of its own before each canary: with fewer, redacted texts say the same as others, and the audit
# stops a run that would make so many duplicates.
WORDS_BEFORE = 8


@dataclass
class Planted:
    """What was planted: number → (carrier, kind), and what left the machine."""

    places: dict[int, tuple[str, str]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def text(self, carrier: str, kind: Kind) -> str:
        """Return a fresh canary of a kind for a carrier, behind some words."""
        number = len(self.places)
        self.places[number] = (carrier, kind.name)
        words = Random(number).sample(WORDS, WORDS_BEFORE)
        return f"{' '.join(words)} {canary(kind, number)}"


@dataclass(frozen=True)
class Report:
    """The outcome: planted canaries, those found in files (number → files) and in requests."""

    planted: dict[int, tuple[str, str]]
    in_files: dict[int, list[str]]
    in_requests: set[int]
    files: int
    requests: int

    def __str__(self) -> str:
        carriers = {carrier for carrier, _ in self.planted.values()}
        kinds = {kind for _, kind in self.planted.values()}
        return (
            f"canaries: planted={len(self.planted)} carriers={len(carriers)} kinds={len(kinds)} "
            f"files={self.files} requests={self.requests} "
            f"found_in_files={len(self.in_files)} found_in_requests={len(self.in_requests)}"
        )


class Trip:
    """One folder with a user's transcripts, homes and what was printed; canaries go through it."""

    def __init__(self, folder: Path, kinds: Sequence[Kind], engine: str) -> None:
        self.folder, self.kinds, self.engine = folder, kinds, engine
        self.home, self.outputs = folder / "home", folder / "outputs"
        self.planted = Planted()

    def go(self) -> Report:
        """Plant, take through everything, search."""
        self.outputs.mkdir(parents=True)
        transcripts = self._write_transcripts()
        with self._at(self.home, NOW):
            self._capture(transcripts)
            with mock.patch.object(embedders, "embedder_for", lambda key: VoyageEmbedder(_refusing)):
                self._done("run", "--engine", "plain")
        with (
            self._at(self.home, NOW + LATER),
            mock.patch.object(embedders, "embedder_for", self._recorded),
            mock.patch.object(embedders, "RETRIED_AFTER", timedelta()),
        ):
            self._done("run", "--engine", "plain")
            self._tell()
            self._say_everything()
        with (
            self._at(self.home, NOW + LATER + timedelta(days=1)),
            mock.patch.object(embedders, "embedder_for", self._recorded),
        ):
            self._capture(transcripts[:1])
            self._done("nightly", "--engine", self.engine)
            self._say_everything()
        self._fail()
        requests = self.planted.requests
        searched = (path for path in self.folder.iterdir() if path.name not in ("projects", "given"))
        hits, files = canaries_below(searched)
        asked = {number for text in requests for number in canaries_in(text.encode())}
        places = self.planted.places  # packed bytes may read like a number that was not planted
        in_files = {number: names for number, names in hits.items() if number in places}
        return Report(places, in_files, asked & places.keys(), files, len(requests))

    @contextmanager
    def _at(self, home: Path, instant: datetime) -> Iterator[None]:
        chosen = {
            "CORTEX_HOME": str(home),
            "HOME": str(self.folder),
            "CLAUDE_CONFIG_DIR": "",
            "VOYAGE_API_KEY": "x",
        }
        with mock.patch.dict(os.environ, chosen), clock_at(instant):
            yield

    def _write_transcripts(self) -> list[Path]:
        """Write a session for every carrier, with a canary of every kind, and one for a subagent."""
        written = []
        for number, (name, carry) in enumerate(CARRIERS.items()):
            # A time of its own: else what one session says like another counts as a copy of it.
            talk = (
                Talk(f"s{number}", start=START + timedelta(days=number))
                .user("How do the gauges report?")
                .assistant("Once a minute, by radio.")
            )
            for kind in (*self.kinds, PLAIN) if "private" in name else self.kinds:
                carry(talk, self.planted.text(name, kind))
            written.append(_write(talk, talk.path_in(self.folder / "projects")))
        return [*written, *self._write_named(), self._write_subagent(written[0])]

    def _write_named(self) -> list[Path]:
        """Write sessions in files, folders and repositories whose names and remotes hold a canary."""
        written = []
        for number, kind in enumerate(kind for kind in self.kinds if _fits_a_name(kind)):
            for at, carrier in enumerate(("file name", "folder name", "remote", "query of a remote")):
                secret = self.planted.text(carrier, kind).split(" ", WORDS_BEFORE)[-1]
                talk = Talk(f"{carrier} {number}", start=START + timedelta(days=100 + at, hours=number))
                talk.user("How do the gauges report?").assistant("Once a minute, by radio, to the depot.")
                path = talk.path_in(self.folder / "projects")
                place = self.folder / "projects" / f"repository {at} {number}"
                if carrier == "file name":
                    path = path.with_name(f"{secret}.jsonl")
                elif carrier == "folder name":
                    place = place / secret
                _set_cwd(talk, place)
                if "remote" in carrier:
                    _make_repository(place, _remote(carrier, secret))
                written.append(_write(talk, path))
        return written

    def _write_subagent(self, of: Path) -> Path:
        talk = Talk("s0", start=START - timedelta(days=1))
        for kind in self.kinds:
            text = self.planted.text("subagent's transcript", kind)
            talk.user(text).assistant(text).call("Bash", text, command=text)
        return _write(talk, of.with_suffix("") / "subagents" / "agent-a1b2c3.jsonl")

    def _capture(self, transcripts: Sequence[Path]) -> None:
        """Let every hook see every transcript once, with canaries in what the client tells it."""
        for number, path in enumerate(transcripts):
            kind = self.kinds[number % len(self.kinds)]
            text = self.planted.text("hook's payload", kind)
            payload = {"session_id": path.stem, "transcript_path": str(path), "cwd": "/home/dev/kelp"}
            payload |= dict.fromkeys(("prompt", "last_assistant_message", "custom_instructions"), text)
            agent = {"agent_id": path.stem, "agent_type": "x", "agent_transcript_path": str(path)}
            event = "subagent-stop" if path.stem.startswith("agent-") else "stop"
            self._hook(event, json.dumps({**payload, **agent}).encode())
        whole = json.dumps({**payload, "source": "startup"}).encode()
        for event in ("session-start", "user-prompt-submit", "pre-compact", "session-end", "no-such-event"):
            self._hook(event, whole)
            self._hook(event, self.planted.text("hook's payload, broken", kind).encode())

    def _hook(self, event: str, payload: bytes) -> None:
        command = [sys.executable, "-I", "-S", str(HOOK), event]
        done = subprocess.run(command, input=payload, capture_output=True, check=False, env=dict(os.environ))
        with (self.outputs / "hooks.txt").open("ab") as file:
            file.write(done.stdout + done.stderr)

    def _tell(self) -> None:
        """Give canaries to every command that takes words."""
        self._cortex(
            "remember", "--type", "decision", "The depot opens at nine.", "--project", "kelp-0f5bd695"
        )
        for start in range(0, len(self.kinds), SESSIONS_AT_ONCE):
            some = self.kinds[start : start + SESSIONS_AT_ONCE]
            wanted = " and ".join(self.planted.text("remember", kind) for kind in some)
            asked = " and ".join(self.planted.text("question of recall", kind) for kind in some)
            self._cortex("remember", "--project", "kelp-0f5bd695", f"The depot wants {wanted}")
            self._cortex("recall", "--project", "kelp-0f5bd695", f"What of {asked}?")
        kind = self.kinds[0]
        self._cortex("edit", self._memory_id(), f"The depot opens late: {self.planted.text('edit', kind)}")
        self._cortex("sql", f"select '{self.planted.text('query of sql', kind)}' from nothing")
        self._cortex("import", "--project", "kelp-0f5bd695", str(self._given()))

    def _memory_id(self) -> str:
        answer = json.loads(
            self._cortex("recall", "--project", "kelp-0f5bd695", "--json", "when does the depot open?")
        )
        return str(answer["results"][0]["id"])

    def _given(self) -> Path:
        """Write a list for import; it lies outside of what is searched."""
        given = self.folder / "given" / "list.md"
        given.parent.mkdir(exist_ok=True)
        texts = [" ".join(self.planted.text("import", kind).split()) for kind in self.kinds]
        given.write_text("".join(f"- The depot wants {text}\n" for text in texts))
        return given

    def _say_everything(self) -> None:
        """Print and write down what the store says in all its ways."""
        self._done("run", "--engine", "plain")
        project = ("--project", "kelp-0f5bd695")
        for words in (
            ("brief", *project), ("brief", "--explain", *project), ("review", *project), ("stats", *project),
            ("status", "--json"), ("doctor",), ("projects",), ("rebuild", "--check"), ("rederive",),
            ("sql", "--json", "select * from turns"), ("sql", "--json", "select * from journal"),
            ("consolidate", "--dry-run"), ("recall", "--limit", "100", *project, "depot gauge setting"),
        ):  # fmt: skip
            self._cortex(*words)
        for words in (
            ("export", str(self.outputs / "export.json")),
            ("export", "--format", "markdown", str(self.outputs / "export.md")),
            ("backup", str(self.outputs / "store.tar.zst")),
            ("restore", str(self.outputs / "store.tar.zst"), "--into", str(self.folder / "again")),
        ):  # fmt: skip
            self._done(*words)

    def _fail(self) -> None:
        """Run over a copy of the store whose lake is damaged, and keep what the failing command says."""
        failing = self.folder / "failing"
        shutil.copytree(self.home, failing)
        for path in (failing / "lake" / "turns").rglob("*.parquet"):
            content = bytearray(path.read_bytes())
            content[len(content) // 2 :: 97] = bytes(len(content[len(content) // 2 :: 97]))
            path.write_bytes(content)
        with self._at(failing, NOW + LATER + timedelta(days=2)):
            for words in (
                ("rebuild",),
                ("recall", "--project", "kelp-0f5bd695", "gauges"),
                ("nightly", "--engine", "plain"),
            ):
                command = [sys.executable, "-m", "cortex", *words]
                done = subprocess.run(command, capture_output=True, check=False, env=dict(os.environ))
                with (failing / "runs" / "background.log").open("ab") as log:
                    log.write(done.stdout + done.stderr)

    def _cortex(self, *words: str) -> str:
        """Run a command in this process, whatever comes of it; keep what it says."""
        result = CliRunner().invoke(cortex, list(words), obj=present)
        self._keep(result)
        return result.stdout

    def _done(self, *words: str) -> None:
        """Run a command that must do its work: what found nothing because nothing was done proves nothing."""
        for _ in range(BUSY_SECONDS):
            result = CliRunner().invoke(cortex, list(words), obj=present)
            if result.exit_code != StoreBusy.exit_code:
                break
            time.sleep(1)  # a hook has started a run
        if result.exit_code:
            raise RuntimeError(f"cortex {' '.join(words)} fails: {result.stderr}") from result.exception
        self._keep(result)

    def _keep(self, result: Result) -> None:
        problem = "" if isinstance(result.exception, SystemExit | None) else repr(result.exception)
        with (self.outputs / "printed.txt").open("a", encoding="utf-8", errors="replace") as file:
            file.write(f"{result.stdout}\n{result.stderr}\n{problem}\n")

    def _recorded(self, key: str | None) -> VoyageEmbedder:
        def request(texts: Sequence[str], **chosen: Any) -> SimpleNamespace:
            self.planted.requests += [*texts, json.dumps(chosen)]
            return SimpleNamespace(embeddings=[_vector(text) for text in texts])

        return VoyageEmbedder(request)


def _fits_a_name(kind: Kind) -> bool:
    """Whether a secret of this kind can stand in the name of a file and in an address."""
    return not set(kind.form) & set("/\n \"'|;:&?#%@")


def _set_cwd(talk: Talk, place: Path) -> None:
    for record in talk.records:
        record["cwd"] = str(place)


def _remote(carrier: str, secret: str) -> str:
    if carrier == "remote":
        return f"https://dev:{secret}@git.internal/dev/kelp.git"
    return f"https://git.internal/dev/kelp.git?private_token={secret}"


def _make_repository(place: Path, remote: str) -> None:
    place.mkdir(parents=True)
    for words in (("init", "-q"), ("config", "remote.origin.url", remote)):
        subprocess.run(
            ["git", "-C", str(place), *words], check=True, env={**os.environ, "GIT_CONFIG_GLOBAL": ""}
        )


def _write(talk: Talk, path: Path) -> Path:
    """Write a session; a record that is to be damaged loses its end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = [
        (lines([record])[:-3] + b"\n" if record.get("broken") else lines([record])) for record in talk.records
    ]
    path.write_bytes(b"".join(written))
    return path


def _vector(text: str) -> list[float]:
    vector = [0.01] * DIMENSIONS
    for word in text.lower().split():
        vector[crc32(word.encode()) % DIMENSIONS] += 1.0
    return vector


def _refusing(texts: Sequence[str], **_: Any) -> None:
    raise RuntimeError(f"refused: {texts}")


@contextmanager
def without_redaction() -> Iterator[None]:
    """Let secrets through, and the audit that would stop them: what is planted must then be found."""

    with (
        mock.patch.object(Redactor, "redact", lambda self, text: (text, 0)),
        mock.patch.object(Redactor, "findings", lambda self, text: []),
    ):
        yield


def print_report(report: Report) -> None:
    """Print carriers with what was planted and found, then the line that counts."""
    planted = Counter(carrier for carrier, _ in report.planted.values())
    in_files = Counter(report.planted[number][0] for number in report.in_files)
    in_requests = Counter(report.planted[number][0] for number in report.in_requests)
    columns = ["carrier", "planted", "in files", "in requests"]
    rows = [[c, str(n), str(in_files[c]), str(in_requests[c])] for c, n in sorted(planted.items())]
    print_listing(Listing("Canaries", columns, rows, numbers=set(columns[1:])))
    for number, files in sorted(report.in_files.items())[:40]:
        print(f"found: {': '.join(report.planted[number])} in {', '.join(files[:4])}")
    for number in sorted(report.in_requests)[:40]:
        print(f"sent: {': '.join(report.planted[number])}")
    print(report)


def main() -> None:
    """Make the report; leave with 1 if a canary was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument(
        "--kinds", type=int, default=len(KINDS), help="plant only every n-th kind, this number"
    )
    parser.add_argument("--engine", choices=("plain", "prefect"), default="plain")
    parser.add_argument("--control", action="store_true", help="without redaction: they must be found")
    chosen = parser.parse_args()
    kinds = KINDS[:: max(1, len(KINDS) // chosen.kinds)]
    with tempfile.TemporaryDirectory(prefix="cortex-canaries-") as folder:
        trip = Trip(Path(folder), kinds, chosen.engine)
        if chosen.control:
            with without_redaction():
                report = trip.go()
        else:
            report = trip.go()
    print_report(report)
    sys.exit(1 if report.in_files or report.in_requests else 0)


if __name__ == "__main__":
    main()
