"""
Stale claims that the reality checks catch, and true ones they wrong: `python -m benchmarks.reality`.

Repositories made by scripted commits, whose truth is known; then the history of a real one (default: this
checkout), each of whose commits is taken at its word: the files and names it had, asked again today.
"""

import argparse
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cortex.storage.projects.repository import doubts_of, snapshot_of
from cortex.storage.settings.reference import read_policy
from cortex.transforms.memory.reality import Questions, rewritten_share
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import MEMORIES

FIRST_DAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
REPOSITORIES = 10
COMMITS_MOST = 150  # of a real history, evenly spread: each costs one git call
NAMES_PER_FILE = 3
SHARES = (0.25, 0.5, 0.75, 0.9)
_DEFINED = re.compile(r"^(?:class|def) ([A-Za-z]\w*_\w+|[A-Z]\w+[a-z]\w*)", re.MULTILINE)

Row = dict[str, Any]


@dataclass(frozen=True)
class Claim:
    """One claim about a repository: its case, its words, when it was said, whether it is stale by now."""

    case: str
    text: str
    said_at: datetime
    is_stale: bool
    branch: str = "main"
    memory_type: str = "decision"


@dataclass
class Score:
    """Of one case: claims, stale ones, those caught, true ones doubted."""

    claims: int = 0
    stale: int = 0
    caught: int = 0
    false_alarms: int = 0


class Scripted:
    """A repository whose commits lie a day apart."""

    def __init__(self, folder: Path) -> None:
        """Begin an empty one."""
        self.folder, self.day = folder, 0
        folder.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")

    @property
    def now(self) -> datetime:
        """The instant of the next commit."""
        return FIRST_DAY + timedelta(days=self.day)

    def git(self, *words: str) -> None:
        """Run git as of the present day of the script."""
        at = self.now.isoformat()
        identity = ["-c", "user.name=b", "-c", "user.email=b@example.org"]
        variables = {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at, "HOME": str(self.folder)}
        subprocess.run(
            ["git", *identity, *words],
            cwd=self.folder,
            check=True,
            capture_output=True,
            env={**os.environ, **variables},
        )

    def commit(self, files: dict[str, str | None]) -> None:
        """Commit texts by path; None removes the file. A day goes by."""
        for name, text in files.items():
            path = self.folder / name
            if text is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", f"day {self.day}")
        self.day += 1


def body(name: str, lines: int = 20) -> str:
    """Return a module that defines `name` and has some lines."""
    return f"def {name}():\n" + "".join(f"    step_{at} = {at}\n" for at in range(lines))


def scripted(folder: Path, number: int) -> list[Claim]:
    """Make one repository and return claims of every case, with the truth about each."""
    history, n = Scripted(folder), number
    manifest = '[project]\ndependencies = ["flask", "numpy", "redis"]\n'
    kept = {f"src/kept{n}.py": body(f"kept_name_{n}"), f"src/grown{n}.py": body(f"grown_name_{n}")}
    history.commit(
        {
            "pyproject.toml": manifest,
            **kept,
            f"src/retries{n}.py": body(f"polling_{n}"),
            f"src/levels{n}.py": body(f"tide_level_{n}"),
            f"src/turns{n}.py": body(f"old_way_{n}"),
            f"src/gauges{n}.py": body(f"station_of_{n}") + body(f"gauge_of_{n}"),
        }
    )
    said_at = history.now + timedelta(hours=1)
    history.day += 2
    history.git("switch", "-q", "-c", f"try/unmerged{n}")
    history.commit({f"src/trial{n}.py": body(f"trial_name_{n}")})
    history.git("switch", "-q", "main")
    history.git("switch", "-q", "-c", f"try/merged{n}")
    history.commit({f"src/taken{n}.py": body(f"taken_name_{n}")})
    history.git("switch", "-q", "main")
    history.git("merge", "-q", "--no-ff", "-m", "take it", f"try/merged{n}")
    history.commit({f"src/retries{n}.py": None})
    history.git("mv", f"src/levels{n}.py", f"src/new_name{n}.py")
    history.commit({})
    history.commit({f"src/turns{n}.py": body(f"new_way_{n}").replace("step", "stage")})
    history.commit({f"src/gauges{n}.py": "", f"src/stations{n}.py": body(f"station_of_{n}")})
    history.commit({f"src/grown{n}.py": body(f"grown_name_{n}", 200)})
    history.commit({"pyproject.toml": manifest.replace(', "redis"', "")})

    def claim(case: str, text: str, is_stale: bool, **chosen: Any) -> Claim:
        return Claim(case, text, said_at, is_stale, **chosen)

    return [
        claim("file removed", f"Retries live in src/retries{n}.py.", True),
        claim("file renamed", f"Retries live in src/levels{n}.py.", True),
        claim("file kept", f"Retries live in src/kept{n}.py.", False),
        claim("file never there", f"Retries live in src/elsewhere{n}.py.", False),
        claim("says itself that it went", f"We removed src/retries{n}.py; its retries were wrong.", False),
        claim("name removed", f"`gauge_of_{n}` polls all gauges.", True),
        claim("name moved to another file", f"`station_of_{n}` polls all gauges.", False),
        claim("name kept", f"`kept_name_{n}` polls all gauges.", False),
        claim("name never there", f"`foreign_name_{n}` polls all gauges.", False),
        claim("dependency dropped", "Sessions are kept in redis for an hour.", True),
        claim("dependency kept", "Requests are served by flask.", False),
        claim("choice not taken", "We chose FastAPI over Flask because it validates.", True),
        claim("choice not taken, German", "Wir nehmen FastAPI statt Flask.", True),
        claim("choice not taken, French", "On prend FastAPI plutôt que Flask.", True),
        claim("choice not taken, Spanish", "Usamos FastAPI en lugar de Flask.", True),
        claim("choice taken", "We chose Flask over Django.", False),
        claim("choice taken, rejected gone", "We keep sessions in numpy files instead of redis.", False),
        claim("the same in German", "Sitzungen liegen in numpy-Dateien statt redis.", False),
        claim("choice dropped later", "Sessions are in redis rather than mongodb.", True),
        claim("branch unmerged", "Tides are cached.", True, branch=f"try/unmerged{n}"),
        claim("branch merged", "Tides are cached.", False, branch=f"try/merged{n}"),
        claim("file rewritten", f"src/turns{n}.py polls by turns.", True, memory_type="architecture"),
        claim("file grown", f"src/grown{n}.py polls by turns.", False, memory_type="architecture"),
    ]


def rows_of(claims: Iterable[Claim]) -> list[Row]:
    """Return MEMORIES rows of claims; a row's id is the claim's position."""
    return [
        {
            "memory_id": f"{at:06d}", "memory_type": claim.memory_type, "text": claim.text, "project_id": "p",
            "category": "project", "files": [], "tags": [], "status": "active", "trust": "assistant",
            "source_type": "conversation", "is_pinned": False, "priority": 5, "initial_confidence": 0.9,
            "confidence": 0.9, "salience": 0.9, "access_count": 0, "created_at": claim.said_at,
            "updated_at": claim.said_at, "centrality": 0.0, "rank": 0.5, "session_count": 1,
            "content_hash": "", "evidence": [{
                "turn_id": "t", "session_id": "s", "file": "f", "lines": [1], "layer": "layer2:en",
                "said_at": claim.said_at, "git_branch": claim.branch,
            }],
        }
        for at, claim in enumerate(claims)
    ]  # fmt: skip


def scored(place: Path, claims: list[Claim], policy: Policy) -> dict[str, Score]:
    """Ask the repository about all claims at once, and count by case."""
    doubted = {doubt.memory_id for doubt in doubts_of([str(place)], MEMORIES.of(rows_of(claims)), policy)}
    scores: dict[str, Score] = {}
    for at, claim in enumerate(claims):
        score = scores.setdefault(claim.case, Score())
        is_doubted = f"{at:06d}" in doubted
        score.claims += 1
        score.stale += claim.is_stale
        score.caught += claim.is_stale and is_doubted
        score.false_alarms += is_doubted and not claim.is_stale
    return scores


def history(place: Path) -> Iterator[tuple[str, datetime]]:
    """Yield commits of HEAD's history, oldest first, evenly spread."""
    lines = _git(place, "log", "--reverse", "--format=%H %ct", "HEAD").splitlines()
    step = max(1, len(lines) // COMMITS_MOST)
    for line in lines[::step]:
        name, seconds = line.split()
        yield name, datetime.fromtimestamp(int(seconds), UTC)


def claims_of_history(place: Path) -> list[Claim]:
    """Return what each commit could have been told of: every Python file and some names it defined."""
    now = _names_by_file(place, "HEAD")
    words = set(re.findall(r"\w+", _git(place, "grep", "-h", "-I", "-e", "", "HEAD")))
    parts = [path.split("/") for path in _files(place, "HEAD")]
    ends = {"/".join(path[at:]) for path in parts for at in range(len(path))}
    claims = []
    for commit, at in history(place):
        for path, names in _names_by_file(place, commit).items():
            claims.append(Claim("history: files", f"Retries live in {path}.", at, path not in ends))
            for name in names[:NAMES_PER_FILE]:
                claims.append(Claim("history: names", f"`{name}` polls all gauges.", at, name not in words))
            if len(names) >= NAMES_PER_FILE and path in now:
                gone = sum(name not in now[path] for name in names) / len(names)
                text = f"{path} polls by turns."
                claims.append(
                    Claim("history: descriptions", text, at, gone > 0.5, memory_type="architecture")
                )
    return claims


def shares_of_history(place: Path, claims: list[Claim]) -> dict[float, Score]:
    """Return, for each share of rewritten lines, what a limit there would catch of the descriptions."""
    mine = [claim for claim in claims if claim.case == "history: descriptions"]
    paths = frozenset(claim.text.split()[0] for claim in mine)
    snapshot = snapshot_of(str(place), Questions(frozenset(), frozenset(), frozenset(), paths))
    assert snapshot is not None
    scores = {limit: Score() for limit in SHARES}
    for claim in mine:
        edits = snapshot.edits.get(claim.text.split()[0], ())
        share, _ = rewritten_share(edits, claim.said_at + timedelta(days=1))
        for limit, score in scores.items():
            score.claims += 1
            score.stale += claim.is_stale
            score.caught += claim.is_stale and share >= limit
            score.false_alarms += not claim.is_stale and share >= limit
    return scores


def _names_by_file(place: Path, commit: str) -> dict[str, list[str]]:
    output = _git(place, "grep", "-I", "-E", r"^(class|def) [A-Za-z]", commit, "--", "*.py")
    by_file: dict[str, list[str]] = {}
    for line in output.splitlines():
        _, path, text = line.split(":", 2)
        if name := _DEFINED.match(text):
            by_file.setdefault(path, []).append(name[1])
    return by_file


def _files(place: Path, commit: str) -> list[str]:
    return _git(place, "ls-tree", "-r", "--name-only", "--full-tree", commit).splitlines()


def _git(place: Path, *words: str) -> str:
    return subprocess.run(
        ["git", "-C", str(place), *words], capture_output=True, text=True, check=False
    ).stdout


def _timed(work: Callable[[], dict[str, Score]]) -> dict[str, Score]:
    begun = time.perf_counter()
    result = work()
    print_table(result)
    claims = sum(score.claims for score in result.values())
    print(f"{claims} claims in {time.perf_counter() - begun:.1f} s\n")
    return result


def print_table(scores: dict[Any, Score], head: str = "case") -> None:
    """Print one line a case."""
    print(f"{head:<28}{'claims':>8}{'stale':>8}{'caught':>8}{'wronged':>9}")
    for name, score in scores.items():
        print(f"{name!s:<28}{score.claims:>8}{score.stale:>8}{score.caught:>8}{score.false_alarms:>9}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", nargs="?", type=Path, default=Path(__file__).parents[1])
    place, policy = parser.parse_args().repository, read_policy(None)
    with tempfile.TemporaryDirectory() as folder:
        total: dict[str, Score] = {}
        for number in range(REPOSITORIES):
            script = Path(folder) / str(number)
            for case, score in scored(script, scripted(script, number), policy).items():
                known = total.setdefault(case, Score())
                for name in vars(score):
                    setattr(known, name, getattr(known, name) + getattr(score, name))
    print(f"{REPOSITORIES} scripted repositories")
    print_table(total)
    claims = claims_of_history(place)
    print(f"\nThe history of {place.resolve().name}")
    _timed(lambda: scored(place, claims, policy))
    print("Descriptions of which most names left their file, by the share of its lines removed since")
    print_table(shares_of_history(place, claims), "limit")


if __name__ == "__main__":
    main()
