"""Which project a working directory belongs to: its git remote, else root commit, else path (spec 3.1)."""

import json
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath

from cortex.errors import UnknownProject, UsageError
from cortex.storage.journal import Journal
from cortex.transforms.identity import content_id
from cortex.transforms.journal import entry
from cortex.transforms.schemas import values

# A hung network file system must not hold a run: git answers these questions in milliseconds.
GIT_TIMEOUT_SECONDS = 5


@dataclass(frozen=True)
class Project:
    """A project: `project_id` names its folder in the store, `paths` are the directories seen."""

    project_id: str
    name: str
    identity: str
    paths: tuple[str, ...]


class ProjectBook:
    """The projects seen so far. What a directory once resolved to stays, also after it is deleted."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._by_path: dict[str, tuple[str, str, str]] = {}
        self._names: dict[str, str] = {}  # given by a person, the last one counts
        rows = journal.read()
        for kind, project_id, payload in zip(
            values(rows, "kind"), values(rows, "project_id"), values(rows, "payload"), strict=True
        ):
            if kind != "project":
                continue
            told = json.loads(payload)
            if "cwd" in told:
                self._by_path.setdefault(told["cwd"], (project_id, told["name"], told["identity"]))
            else:
                self._names[project_id] = told["name"]

    def project_of(self, cwd: str, now: datetime) -> str:
        """Return the project id of a working directory; a new one is noted in the journal."""
        place = _start_of_worktree(cwd)
        if place not in self._by_path:
            identity, name = identify(place)
            project_id = f"{_slug(name)}-{content_id('project', identity)[:8]}"
            self._by_path[place] = (project_id, name, identity)
            payload: dict[str, object] = {"cwd": place, "name": name, "identity": identity}
            self._journal.write(entry("project", project_id, payload, recorded_at=now, actor="extract"))
        return self._by_path[place][0]

    def known(self, cwd: str) -> str | None:
        """Return the project id of `cwd` if the store has seen it, without noting anything."""
        place = _start_of_worktree(cwd)
        if place in self._by_path:
            return self._by_path[place][0]
        identity, _ = identify(place)
        for project_id, _, seen in self._by_path.values():
            if seen == identity:
                return project_id
        above = [path for path in self._by_path if place.startswith(path.rstrip("/") + "/")]
        return self._by_path[max(above, key=len)][0] if above else None

    def all(self) -> list[Project]:
        """Return the projects, sorted by name and id."""
        grouped: dict[str, tuple[str, str, list[str]]] = {}
        for path, (project_id, name, identity) in self._by_path.items():
            grouped.setdefault(project_id, (name, identity, []))[2].append(path)
        projects = [
            Project(key, self._names.get(key, name), identity, tuple(sorted(paths)))
            for key, (name, identity, paths) in grouped.items()
        ]
        return sorted(projects, key=lambda p: (p.name, p.project_id))

    def paths(self) -> dict[str, str]:
        """Return directory → project id, for the hooks."""
        return {path: project_id for path, (project_id, _, _) in sorted(self._by_path.items())}

    def paths_of(self, project_id: str) -> tuple[str, ...]:
        """Return the directories of a project, sorted; none for an id never seen."""
        return next((p.paths for p in self.all() if p.project_id == project_id), ())

    def name_of(self, project_id: str) -> str:
        """Return a project's name, the id itself where it has none."""
        return next((p.name for p in self.all() if p.project_id == project_id), project_id)

    def named(self, name: str) -> list[str]:
        """
        Return the ids of the projects that `name` means: an id, a name, a path, a transcript folder's name.

        Several projects may share a name (clones of different origin); all of them are meant.
        Raises UnknownProject with the known names.
        """
        if not name.strip():
            raise UsageError("the project's name is empty.", "Give a name that `cortex status` lists.")
        wanted = name.rstrip("/")
        found = [p.project_id for p in self.all() if wanted in _names_of(p)]
        if not found and "/" in wanted:
            known = self.known(str(Path(wanted).expanduser().absolute()))
            found = [known] if known else []
        if not found:
            raise UnknownProject(name, {p.name for p in self.all()})
        return found


def identify(place: str) -> tuple[str, str]:
    """
    Return (identity, name) of a directory.

    The identity is `git:<normalised remote>`, `root:<first commit>` or `path:<path>`; the name is the
    repository's or the directory's last part. A directory that no longer exists goes by its path.
    """
    if Path(place).is_dir():
        remote = _git(place, "config", "--get", "remote.origin.url")
        if remote:
            normalised = normalised_remote(remote)
            return f"git:{normalised}", PurePosixPath(normalised).name
        top = _git(place, "rev-parse", "--show-toplevel")
        commits = _git(place, "rev-list", "--max-parents=0", "HEAD")
        if top and commits:
            return f"root:{sorted(commits.split())[0]}", PurePosixPath(top).name
        place = top or str(Path(place).resolve())
    return f"path:{place}", PurePosixPath(place.replace("\\", "/")).name or place


def normalised_remote(url: str) -> str:
    """
    Return a git remote without scheme, user, port and `.git`, lower case, so that all spellings agree.

    >>> normalised_remote("git@github.com:Some/Repo.git")
    'github.com/some/repo'
    >>> normalised_remote("https://user:key@github.com:443/some/repo/")
    'github.com/some/repo'
    """
    bare = re.sub(r"^[a-z+]+://", "", url.strip().lower())
    bare = re.sub(r"^[^/@]*@", "", bare)
    bare = re.sub(r"^([^/:]+):(\d+/)?", r"\1/", bare)
    return re.sub(r"(\.git)?/*$", "", bare)


def folder_names(transcripts: Iterable[str]) -> set[str]:
    """Return the names of the folders that hold the given transcripts."""
    return {PurePosixPath(path).parent.name for path in transcripts}


def _names_of(project: Project) -> set[str]:
    slugs = {re.sub(r"[^A-Za-z0-9]", "-", path) for path in project.paths}
    return {project.project_id, project.name, *project.paths, *slugs}


def _start_of_worktree(cwd: str) -> str:
    # The client makes worktrees for subagents below .claude/worktrees/<name> of the project itself.
    return re.sub(r"/\.claude/worktrees/[^/]+.*$", "", cwd).rstrip("/") or "/"


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "project"


def _git(place: str, *arguments: str) -> str:
    try:
        answer = subprocess.run(
            ["git", "-C", place, *arguments],
            capture_output=True,
            text=True,
            timeout=GIT_TIMEOUT_SECONDS,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""
