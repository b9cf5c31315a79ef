"""Which project a working directory belongs to: its git remote, else root commit, else path (spec 3.1)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import assert_never

from cortex.storage.filesystem.files import stored_name
from cortex.storage.filesystem.git import GitFailed, ask
from cortex.storage.lake.journal import Journal
from cortex.storage.lake.noted_projects import KnownProject
from cortex.transforms.errors import UnknownProject, UsageError
from cortex.transforms.identity import content_id
from cortex.transforms.journal_entries import (
    ProjectEntry,
    ProjectFolder,
    ProjectMerge,
    ProjectName,
    project_entries,
    project_entry,
)

# -- A git remote as one spelling that holds no credentials: what a project's identity is made of.

_SCHEME = re.compile(r"^([a-z+]+)://", re.IGNORECASE)
# `name:key@`, also if the key holds a raw `/`, `?`, `#` or `@`: behind a host's colon come digits alone.
_USER_AND_KEY = re.compile(r"^[^/@:\[]*:(?!\d*(?:[/?#]|$)).*@", re.DOTALL)
_USER = re.compile(r"^[^/]*@")


def normalised_remote(url: str) -> str:
    """
    Return a git remote without scheme, credentials, port and `.git`, lower case, so that all spellings agree.

    Credentials are user and password, the query and the fragment of a URL, and what looks like a token
    anywhere else in it.

    >>> normalised_remote("git@github.com:Some/Repo.git")
    'github.com/some/repo'
    >>> normalised_remote("https://user:key@github.com:443/some/repo.git?private_token=abc")
    'github.com/some/repo'
    """
    # Imported here: a question reads the names of projects, and looks at no remote.
    from cortex.transforms.redaction.redact import redact

    url = url.strip()
    bare, _ = redact(_without_credentials(url))
    bare = re.sub(r"^([^/:]+):(\d+/)?", r"\1/", bare.lower())
    return re.sub(r"(\.git)?/*$", "", bare)


def _without_credentials(url: str) -> str:
    scheme = _SCHEME.match(url)
    if scheme is None:
        # `host:path` has no password; in a path on this machine `?`, `#` and `@` are letters like others.
        is_path = url.startswith(("/", ".", "~")) or ":" not in url
        return url if is_path else re.sub(r"^[^/@]*@", "", without_query(url))
    rest = url[scheme.end() :]
    if scheme[1].lower() == "file":
        return rest
    rest = _USER_AND_KEY.sub("", rest)
    rest = re.split(r"[?#]", rest, maxsplit=1)[0]
    return _USER.sub("", rest)


def without_query(remote: str) -> str:
    """
    Return a remote, or its last part, without a query: earlier versions noted it with the project.

    >>> without_query("gitlab.example/some/repo.git?private_token=abc")
    'gitlab.example/some/repo'
    """
    return re.sub(r"(\.git)?/*\?[^/?]*=.*$", "", remote, flags=re.DOTALL)


# -- Names that tell projects of one name apart.


def distinct_labels(names: Mapping[str, str], places: Mapping[str, str]) -> dict[str, str]:
    """
    Return project id → label: the project's name, where several share it with more of its place before it.

    `names` are by id; `places` too: a remote without its scheme, or a folder. As many parts of the place go
    before the name as it takes to differ; if the places do not differ, the id is the label.

    >>> distinct_labels({"a-1": "cli", "a-2": "cli"}, {"a-1": "host/kelp/cli", "a-2": "host/reef/cli"})
    {'a-1': 'kelp/cli', 'a-2': 'reef/cli'}
    """
    shared: dict[str, list[str]] = {}
    for project_id, name in names.items():
        shared.setdefault(name, []).append(project_id)
    result: dict[str, str] = {}
    for name, ids in shared.items():
        own = [name] if len(ids) == 1 else _distinct(name, [places.get(each, "") for each in ids])
        result.update(zip(ids, own or ids, strict=True))
    return {project_id: result[project_id] for project_id in names}


def _distinct(name: str, places: Sequence[str]) -> list[str]:
    """Return a label for each place, all different; nothing if that cannot be."""
    parts = [[part for part in place.replace("\\", "/").split("/") if part] for place in places]
    above = [each[:-1] if each and each[-1] == name else each for each in parts]
    for depth in range(1, max(map(len, above), default=0) + 1):
        candidates = ["/".join([*each[-depth:], name]) for each in above]
        if len(set(candidates)) == len(candidates):
            return candidates
    return []


# A hung network file system must not hold a run: git answers these questions in milliseconds.
GIT_DEADLINE_SECONDS = 5
# Beginnings of an identity, the surest first.
IDENTITIES = ("git", "root", "path")


@dataclass(frozen=True)
class Project:
    """
    A project: `project_id` names its folder in the store, `paths` are the directories seen, `label` tells it
    from others of its name; see `distinct_labels`.

    `merged` are the projects that a person merged into it; their directories are among `paths`.
    """

    project_id: str
    name: str
    identity: str
    paths: tuple[str, ...]
    merged: tuple[str, ...] = ()
    label: str = ""


@dataclass(frozen=True)
class Offer:
    """Two projects that look like one, and why; whether they are is for a person to say."""

    project_id: str
    into: str
    reason: str


class ProjectRegister:
    """The projects seen so far. What a directory once resolved to stays, also after it is deleted."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._by_path: dict[str, tuple[str, str, str]] = {}
        self._now: dict[str, str] = {}  # identity of a known folder as git tells it today
        self._names: dict[str, str] = {}  # given by a person, the last one counts
        self._roots: dict[str, str] = {}  # the first commit of a project's repository
        self._into: dict[str, str | None] = {}  # what a person merged each into, the last word counts
        for project_id, payload in journal.about_projects():
            self._note(project_id, project_entry(payload))

    def _note(self, project_id: str, entry: ProjectEntry) -> None:
        match entry:
            case ProjectFolder():
                name, identity = without_query(entry.name), without_query(entry.identity)
                self._by_path.setdefault(entry.cwd, (project_id, name, identity))
                root = entry.root or identity.partition("root:")[2]
                if root:
                    self._roots.setdefault(project_id, root)
            case ProjectMerge():
                self._into[project_id] = entry.merged_into
            case ProjectName():
                self._names[project_id] = entry.name
            case _:
                assert_never(entry)

    def origin_of(self, cwd: str, now: datetime) -> str:
        """
        Return the id under which the lake keeps what is said in a working directory, merged or not.

        A new one is noted in the journal.
        """
        folder = _start_of_worktree(cwd)
        place = stored_name(folder)
        if place not in self._by_path:
            identity, name = identify(folder)
            same = self._by_path.get(_origin_folder(folder)) or self._same_repository(identity)
            project_id, name, noted = same or (_id_of(name, identity), name, identity)
            entry = ProjectFolder(place, name, noted, first_commit(folder) or None)
            self._note(project_id, entry)
            self._journal.write(entry.to_row(project_id, recorded_at=now, actor="extract"))
        return self._by_path[place][0]

    def _same_repository(self, identity: str) -> tuple[str, str, str] | None:
        """Return the project, if any, of which a known folder has this identity by now."""
        known = {noted[2]: noted for noted in reversed(self._by_path.values())}
        if identity in known or identity.startswith("path:"):
            return known.get(identity)
        # A repository gets its remote later, or another: its known folder itself says so.
        return next((n for path, n in self._by_path.items() if self._identity_now(path) == identity), None)

    def _identity_now(self, path: str) -> str:
        # Asked once per run: git takes about 5 ms, and a first backfill meets a hundred repositories in turn.
        if path not in self._now:
            self._now[path] = identify(path)[0]
        return self._now[path]

    def project_of(self, cwd: str, now: datetime) -> str:
        """Return the project id of a working directory; a new one is noted in the journal."""
        return self.canonical(self.origin_of(cwd, now))

    def canonical(self, project_id: str) -> str:
        """Return the project that `project_id` was merged into, over all steps; else itself."""
        seen = {project_id}
        while (into := self._into.get(project_id)) and into not in seen:
            seen.add(into)
            project_id = into
        return project_id

    def parts_of(self, project_id: str) -> list[str]:
        """Return a project's id and, sorted, those of the projects merged into it."""
        merged = {name for name in self._into if self.canonical(name) == project_id}
        return [project_id, *sorted(merged - {project_id})]

    def merged(self) -> dict[str, str]:
        """Return, for each merged project, the one it was merged into."""
        canonical = {name: self.canonical(name) for name in sorted(self._into)}
        return {name: into for name, into in canonical.items() if into != name}

    def known(self, cwd: str) -> str | None:
        """Return the project id of `cwd` if the store has seen it, without noting anything."""
        folder = _start_of_worktree(cwd)
        place = stored_name(folder)
        if place in self._by_path:
            return self.canonical(self._by_path[place][0])
        if noted := self._by_path.get(_origin_folder(folder)):
            return self.canonical(noted[0])
        identity, _ = identify(folder)
        for project_id, _, seen in self._by_path.values():
            if seen == identity:
                return self.canonical(project_id)
        above = [path for path in self._by_path if place.startswith(path.rstrip("/") + "/")]
        return self.canonical(self._by_path[max(above, key=len)][0]) if above else None

    def all(self) -> list[Project]:
        """Return the projects, sorted by name and id; a merged one is part of the other."""
        grouped: dict[str, list[str]] = {}
        own: dict[str, tuple[str, str]] = {}
        for path, (project_id, name, identity) in self._by_path.items():
            grouped.setdefault(self.canonical(project_id), []).append(path)
            own.setdefault(project_id, (name, identity))
        projects, places = [], {}
        for key, paths in grouped.items():
            name, identity = own.get(key, (key, "path:"))
            merged = tuple(self.parts_of(key)[1:])
            projects.append(Project(key, self._names.get(key, name), identity, tuple(sorted(paths)), merged))
            kind, _, place = identity.partition(":")
            places[key] = min(paths) if kind == "root" else place
        labels = distinct_labels({project.project_id: project.name for project in projects}, places)
        labelled = (replace(project, label=labels[project.project_id]) for project in projects)
        return sorted(labelled, key=lambda p: (p.name, p.project_id))

    def labels(self) -> dict[str, str]:
        """Return project id → a name that tells it from the others."""
        return {project.project_id: project.label for project in self.all()}

    def label_of(self, project_id: str) -> str:
        """Return what tells a project from the others, the id itself where it has none."""
        return self.labels().get(project_id, project_id)

    def offers(self) -> list[Offer]:
        """
        Return which projects look like one: of one first commit, or of one name if a folder is gone.

        The one known by its remote takes that known by a commit, and this the folder; each is offered once.
        """
        projects = sorted(
            self.all(), key=lambda p: (IDENTITIES.index(p.identity.partition(":")[0]), p.project_id)
        )
        offers: dict[str, Offer] = {}
        for at, project in enumerate(projects):
            for other in projects[at + 1 :]:
                if reason := self._similarity(project, other):
                    offers.setdefault(other.project_id, Offer(other.project_id, project.project_id, reason))
        return list(offers.values())

    def _similarity(self, project: Project, other: Project) -> str:
        root = self._roots.get(project.project_id)
        if root and root == self._roots.get(other.project_id):
            return f"both begin with commit {root[:7]}"
        is_gone = other.identity.startswith("path:") and not any(Path(p).is_dir() for p in other.paths)
        return "its folder is gone, the name is the same" if is_gone and project.name == other.name else ""

    def paths(self) -> dict[str, str]:
        """Return directory → project id, for the hooks."""
        return {path: self.canonical(noted[0]) for path, noted in sorted(self._by_path.items())}

    def places(self) -> dict[str, list[str]]:
        """Return the directories of each project, sorted, a merged one by its own id."""
        places: dict[str, list[str]] = {}
        for path, (project_id, _, _) in sorted(self._by_path.items()):
            places.setdefault(project_id, []).append(path)
        return places

    def paths_of(self, project_id: str) -> tuple[str, ...]:
        """Return the directories of a project, sorted; none for an id never seen."""
        return next((p.paths for p in self.all() if p.project_id == project_id), ())

    def known_project(self, project_id: str) -> KnownProject:
        """Return a project as a catalogue of what is published knows it."""
        return KnownProject(project_id, self.name_of(project_id), self.paths_of(project_id))

    def all_names(self) -> dict[str, set[str]]:
        """Return every name by which `named` finds a project, but for labels, by id."""
        return {each.project_id: _names_of(each) | self._names_of_parts(each) for each in self.all()}

    def name_of(self, project_id: str) -> str:
        """Return a project's name, the id itself where it has none."""
        return next((p.name for p in self.all() if p.project_id == project_id), project_id)

    def named(self, name: str) -> list[str]:
        """
        Return the id of the project that `name` means: an id or the beginning of one, a name, a path.

        A transcript folder's name counts as a path. Several projects may share a name (clones of different
        origin): a label names one of them. Raises UnknownProject with the known names, UsageError for a name
        or the beginning of an id that several have.
        """
        if not name.strip():
            raise UsageError("the project's name is empty.", "Give a name that `cortex status` lists.")
        wanted = name.rstrip("/")
        matches = [p.project_id for p in self.all() if wanted in _names_of(p) | self._names_of_parts(p)]
        if not matches:
            matches = [project_id for project_id, label in self.labels().items() if label == wanted]
        if not matches and "/" in wanted:
            known = self.known(str(Path(wanted).expanduser().absolute()))
            matches = [known] if known else []
        if not matches:
            matches = [p.project_id for p in self.all() if p.project_id.startswith(wanted)]
        if not matches:
            raise UnknownProject(name, set(self.labels().values()))
        if len(matches) > 1:
            raise ambiguous(name, {each: self.labels()[each] for each in matches})
        return matches

    def merged_named(self, name: str) -> list[str]:
        """Return the ids of the merged projects that `name` means: an id or the name it had."""
        return [part for part in self.merged() if name in (part, self._name_of_part(part))]

    def former_names(self, project_id: str) -> set[str]:
        """Return the names that a project has had before the one it has now."""
        entries = [entry for _, entry in project_entries(self._journal.read(project_id))]
        names = {entry.name for entry in entries if not isinstance(entry, ProjectMerge)}
        return names - {self.name_of(project_id), ""}

    def split_named(self, name: str) -> list[str]:
        """Return the ids of the projects that `name` means and that were merged once and split again."""
        split = sorted(part for part, into in self._into.items() if into is None)
        return [part for part in split if name in (part, self._name_of_part(part))]

    def _names_of_parts(self, project: Project) -> set[str]:
        return {*project.merged, *map(self._name_of_part, project.merged)}

    def _name_of_part(self, project_id: str) -> str:
        noted = (name for part, name, _ in self._by_path.values() if part == project_id)
        return self._names.get(project_id) or next(noted, project_id)


def identify(place: str) -> tuple[str, str]:
    """
    Return (identity, name) of a directory.

    The identity is `git:<normalised remote>`, `root:<first commit>` or `path:<path>`; the name is the
    repository's or the directory's last part. A directory that no longer exists goes by its path. Neither
    holds a secret, though the remote or the path do.
    """
    identity, name = _identify(place)
    return stored_name(identity), stored_name(name)


def _identify(place: str) -> tuple[str, str]:
    if Path(place).is_dir():
        remote = _git(place, "config", "--get", "remote.origin.url")
        normalised = normalised_remote(remote)
        name = PurePosixPath(normalised).name
        if name not in ("", ".."):  # a remote of `.` would make all repositories that have it one project
            return f"git:{normalised}", name
        top = _git(place, "rev-parse", "--show-toplevel")
        root = first_commit(place)
        if top and root:
            return f"root:{root}", PurePosixPath(top).name
        place = top or str(Path(place).resolve())
    return f"path:{place}", PurePosixPath(place.replace("\\", "/")).name or place


def _origin_folder(place: str) -> str:
    """Return the folder on this machine that the repository at `place` was cloned from; empty for none."""
    origin = _git(place, "config", "--get", "remote.origin.url") if Path(place).is_dir() else ""
    return stored_name(origin.removeprefix("file://").rstrip("/")) if "/" in origin[:8] else ""


def first_commit(place: str) -> str:
    """Return the first commit of the repository at `place`; empty if there is none."""
    commits = _git(place, "rev-list", "--max-parents=0", "HEAD") if Path(place).is_dir() else ""
    return min(commits.split(), default="")


def ambiguous(name: str, labels: Mapping[str, str]) -> UsageError:
    """Return the error that `name` means several projects, which `labels` tell apart by id."""
    listed = ", ".join(f"{label} [{project_id}]" for project_id, label in sorted(labels.items()))
    return UsageError(
        f"'{name}' means {len(labels)} projects: {listed}.", "Name one of them, by its id where names agree."
    )


def _names_of(project: Project) -> set[str]:
    slugs = {re.sub(r"[^A-Za-z0-9]", "-", path) for path in project.paths}
    return {project.project_id, project.name, *project.paths, *slugs}


def _start_of_worktree(cwd: str) -> str:
    # The client makes worktrees for subagents below .claude/worktrees/<name> of the project itself.
    return re.sub(r"/\.claude/worktrees/[^/]+.*$", "", cwd).rstrip("/") or "/"


def _id_of(name: str, identity: str) -> str:
    return f"{_slug(name)}-{content_id('project', identity)[:8]}"


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "project"


def _git(place: str, *question: str) -> str:
    try:
        return ask(place, *question, seconds=GIT_DEADLINE_SECONDS)
    except GitFailed:
        return ""
