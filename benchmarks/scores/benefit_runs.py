"""
Puts a task's history into a store through the real hooks, and asks for what a next session is given.

Each store is a throw-away CORTEX_HOME. Sessions end, a run reads them, a session starts, a prompt is sent:
each is a process with the client's own payload, in an environment that has nothing of the person's.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from uuid import uuid4

from cortex.flows.context import Context, utc_now
from cortex.flows.engines.runs import execute
from cortex.flows.operations.maintain.cost import read_cost
from cortex.flows.recalling.recall_search import search_store
from cortex.hooks.background import ENGINE
from cortex.hooks.evidence.search import is_shown
from cortex.hooks.hook import LATE_PROMPTS
from cortex.scores.benefit_tasks import PastSession, Task, TaskSet, holds
from cortex.storage.settings.settings import Settings
from cortex.storage.staging.client_files import launcher
from cortex.storage.store import Store
from cortex.transforms.errors import UsageError
from cortex.transforms.identity import content_id
from cortex.transforms.schemas import GLOBAL_SCOPE, MEMORIES, PASSAGES, TURNS

# What a person would call a file one keeps by hand: four thousand characters, as the field compares with.
BY_HAND_CHARS = 4_000
# A hook has its own deadline; a run over a few short sessions takes some seconds, on a full machine a minute.
HOOK_SECONDS, RUN_SECONDS = 30, 900
# Results looked at for whether the evidence was among the candidates, and those that are given with recall.
CANDIDATES, RECALLED = 20, 5
# Where a fact is lost on its way into a session, in order; the last means that it was given and not followed.
STAGES = ("captured", "extracted", "current", "chosen", "in budget", "obeyed")


class NotAvailable(Exception):
    """A condition that the tasks, or what was named on the command line, have nothing for."""


@dataclass(frozen=True)
class Given:
    """What a next session is given: at its start, and with the message; `is_late` where the hook gave up."""

    start: str = ""
    note: str = ""
    is_late: bool = False

    @property
    def text(self) -> str:
        """All of it, as it stands before the message."""
        return "\n\n".join(part.strip() for part in (self.start, self.note) if part.strip())

    def prompt(self, message: str) -> str:
        """Return what an agent reads: what it is given, then the message."""
        return f"{self.text}\n\n{message}" if self.text else message


@dataclass(frozen=True)
class ProjectMemory:
    """A store with one project's history, and the folder that its sessions were in."""

    home: Path
    folder: Path
    project_id: str

    def given(self, message: str, *, with_start: bool = True, with_note: bool = True) -> Given:
        """Start a session by the hooks and send the message; what is left out is not asked for either."""
        payload = {
            "session_id": str(uuid4()),
            "transcript_path": str(self.home.parent / "projects" / "next.jsonl"),
            "cwd": str(self.folder),
        }
        start = note = ""
        late = self._late()
        if with_start:
            start = self._hook("session-start", {**payload, "source": "startup"})
        if with_note:
            note = self._hook("user-prompt-submit", {**payload, "prompt": message})
        return Given(start, note, self._late() > late)

    def recalled(self, message: str) -> str:
        """Return what `cortex recall MESSAGE` prints of its first results."""
        words = ["recall", "--project", self.project_id, "--limit", str(RECALLED), "--", message]
        return cortex(self.home, *words, can_fail=True)

    def transcripts(self) -> str:
        """Return all that was said in the project, in order."""
        rows = Store(self.home).lake.read(TURNS, self.project_id).to_pylist()
        rows.sort(key=lambda row: (str(row["said_at"]), row["file"], row["line"], row["block"]))
        return "\n\n".join(f"{row['kind']}: {row['text']}" for row in rows)

    def stage_lost(self, task: Task, words: Sequence[str], given: Given, context: Context) -> str:
        """Return the first stage whose texts no longer hold the words, the last where they were given."""
        checks: tuple[Callable[[], str], ...] = (
            lambda: self._texts[0],
            lambda: self._texts[1],
            lambda: self._texts[2],
            lambda: self._candidates(task.prompt, context) + self._published,
            lambda: given.text,
        )
        is_there = (holds(text(), words) for text in checks)
        return next((stage for stage, kept in zip(STAGES, is_there, strict=False) if not kept), STAGES[-1])

    @cached_property
    def _texts(self) -> tuple[str, str, str]:
        """What was captured, what became a memory or passage, and what of that still holds."""
        store = Store(self.home)
        turns, tables = store.lake.read(TURNS, self.project_id, ["text"]).to_pylist(), store.tables
        memories, passages = (
            [
                row
                for scope in (self.project_id, GLOBAL_SCOPE)
                if tables.exists(scope, name)
                for row in tables.open(scope, name).read().to_pylist()
            ]
            for name in (MEMORIES.name, PASSAGES.name)
        )
        valid = [row for row in memories if is_shown(row) and not row["valid_until"]]
        captured, *became = (
            "\n".join(str(row.get(name) or "") for row in rows for name in _TEXTS)
            for rows in (turns, [*passages, *memories], [*passages, *valid])
        )
        return captured, became[0], became[1]

    @cached_property
    def _published(self) -> str:
        path = self.home / "published" / self.project_id / "brief.md"
        return path.read_text(encoding="utf-8") if path.is_file() else ""

    def _candidates(self, message: str, context: Context) -> str:
        results = search_store(
            Store(self.home).tables, message, scopes=[self.project_id, GLOBAL_SCOPE], policy=context.policy,
            embedder=context.embedder(), limit=CANDIDATES,
        )  # fmt: skip
        return "\n".join(text for result in results for text in result.texts)

    def _hook(self, event: str, payload: Mapping[str, object]) -> str:
        return hook(self.home, event, payload)

    def _late(self) -> int:
        path = self.home / "runs" / LATE_PROMPTS
        return path.stat().st_size if path.is_file() else 0


_TEXTS = ("text", "reason", "chosen", "rejected")
_HOOK_NAMES = {
    "session-start": "SessionStart",
    "session-end": "SessionEnd",
    "user-prompt-submit": "UserPromptSubmit",
}


def hook(home: Path, event: str, payload: Mapping[str, object]) -> str:
    """Run a hook as the client does; return what it adds to the session, nothing if it takes too long."""
    words = json.dumps({**payload, "hook_event_name": _HOOK_NAMES[event]})
    output = ""
    try:
        output = subprocess.run(
            ["sh", str(launcher()), event], input=words, env=environment(home), capture_output=True,
            text=True, timeout=HOOK_SECONDS, check=False,
        ).stdout  # fmt: skip
        return str(json.loads(output)["hookSpecificOutput"]["additionalContext"]) if output.strip() else ""
    except (subprocess.TimeoutExpired, ValueError, KeyError, TypeError):
        return output


def cortex(home: Path, *words: str, can_fail: bool = False) -> str:
    """Run a command of Cortex over a throw-away store. Raises UsageError with what it complained of."""
    command = [sys.executable, "-m", "cortex", *words]
    try:
        ran = subprocess.run(
            command, env=environment(home), cwd=home.parent, capture_output=True, text=True,
            timeout=RUN_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        problem = f"it took longer than {RUN_SECONDS} s."
    else:
        if not ran.returncode or can_fail:
            return ran.stdout
        problem = ran.stderr.strip()[:300]
    raise UsageError(
        f"`cortex {words[0]}` failed on a store of the tasks: {problem}",
        "Look at what it says; the stores stay with --keep.",
    )


def environment(home: Path) -> dict[str, str]:
    """Return an environment with a store and nothing of the person's but where programs are."""
    # The folder that holds this very package comes first, also where Cortex runs from a checkout.
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
    return {**kept, "HOME": str(home.parent), "CORTEX_HOME": str(home)}


@dataclass
class Stores:
    """The stores of one evaluation, below `scratch`, each made once; `homes` are ready ones, copied first."""

    context: Context
    scratch: Path
    homes: Sequence[Path] = ()
    model_homes: Sequence[Path] = ()
    _built: dict[object, ProjectMemory] = field(default_factory=dict)
    writer_usd: dict[str, float] = field(default_factory=dict)

    def of(self, tasks: TaskSet, sessions: tuple[PastSession, ...], name: str) -> ProjectMemory | None:
        """Return the store that read `sessions` of a project, None where there are none."""
        # By what was said: tasks of a bench have histories of their own, whose sessions share names.
        key = (tasks.name, name, content_id(*(session.text() for session in sessions)))
        if sessions and key not in self._built:
            self._built[key] = self._build(tasks, sessions, f"{tasks.name}-{name}-{len(self._built)}")
        return self._built.get(key)

    def written(self, tasks: TaskSet, task: Task) -> ProjectMemory | None:
        """Return the store in which a language model wrote: a ready one, else by the person's own writer."""
        if self.model_homes:
            return self._ready(tasks, self.model_homes)
        plain = self.of(tasks, tasks.history_of(task), "full")
        if plain is None:
            return None
        key = ("written", plain.home)
        if key not in self._built:
            self._built[key] = self._write(tasks, plain)
        return self._built[key]

    def plain(self, tasks: TaskSet, task: Task) -> ProjectMemory | None:
        """Return the store of a task's whole history, without a language model."""
        if self.homes and not tasks.history_of(task):
            return self._ready(tasks, self.homes)
        return self.of(tasks, tasks.history_of(task), "full")

    def _ready(self, tasks: TaskSet, homes: Sequence[Path]) -> ProjectMemory | None:
        for home in homes:
            known = _project_in(home, tasks.name)
            if known and (home, tasks.name) not in self._built:
                copy = self.scratch / "ready" / content_id(str(home)) / "store"
                if not copy.exists():
                    shutil.copytree(home, copy, symlinks=True)
                self._built[home, tasks.name] = ProjectMemory(copy, *known)
            if known:
                return self._built[home, tasks.name]
        return None

    def _build(self, tasks: TaskSet, sessions: tuple[PastSession, ...], name: str) -> ProjectMemory:
        root = self.scratch / "stores" / name
        home, folder = root / "store", self.scratch / "work" / tasks.name
        home.mkdir(parents=True)
        lay_out(folder, tasks.files)
        # No run of a hook's own meanwhile: one run reads the whole history below.
        (home / ENGINE).write_text("/nowhere\n", encoding="utf-8")
        for session in sessions:
            session_id, content = session.transcript(name, folder, utc_now())
            path = root / ".claude" / "projects" / "history" / f"{session_id}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            payload = {"session_id": session_id, "transcript_path": str(path), "cwd": str(folder)}
            hook(home, "session-end", {**payload, "reason": "prompt_input_exit"})
        (home / ENGINE).unlink()
        cortex(home, "run", "--engine", "plain")
        known = _project_in(home, "", folder)
        if known is None:
            raise UsageError(
                f"the history of '{tasks.name}' left no project.", "Give it sessions with turns."
            )
        return ProjectMemory(home, *known)

    def _write(self, tasks: TaskSet, plain: ProjectMemory) -> ProjectMemory:
        """Let the person's own writer read a copy of a store, as a night does."""
        models, budget = self.context.settings.models, self.context.settings.budget
        if models.writer == "none":
            raise NotAvailable("no writer is configured (models.writer); or name stores with --model-home")
        home = plain.home.parent / "written"
        shutil.copytree(plain.home, home, symlinks=True)
        context = Context(Settings(home, models=models, budget=budget), self.context.embedder_of, utc_now)
        execute("nightly", context, engine="plain")
        cost = read_cost(context).total
        if not cost.requests:
            raise NotAvailable("the writer answered nothing: see `cortex plan`")
        self.writer_usd[tasks.name] = self.writer_usd.get(tasks.name, 0.0) + cost.usd
        return ProjectMemory(home, plain.folder, plain.project_id)


def lay_out(folder: Path, texts: Mapping[str, str]) -> None:
    """Make a folder that holds these files and nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _project_in(home: Path, name: str, folder: Path | None = None) -> tuple[Path, str] | None:
    """Return (folder, project id) of a store's project of that id or name, or of that folder."""
    try:
        projects = json.loads((home / "published" / "projects.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    for path, project_id in sorted(projects.items()):
        if path == str(folder) or name in (project_id, project_id.rpartition("-")[0]):
            return Path(path), project_id
    return None


# -- Conditions: what of all this a session is given.


def given_under(condition: str, stores: Stores, sets: Sequence[TaskSet], tasks: TaskSet, task: Task) -> Given:
    """Return what the session of a task is given under a condition. Raises NotAvailable with the reason."""
    if condition == "none":
        return Given()
    if condition in _FILES:
        text = _FILES[condition](tasks, task)
        if not text.strip():
            raise NotAvailable("the tasks have no text for it")
        return Given(text)
    memory = memory_under(condition, stores, sets, tasks, task)
    if memory is None:
        raise NotAvailable("the tasks have no history for it; name a store with --home or --model-home")
    if condition == "transcripts":
        return Given(memory.transcripts())
    with_start, with_note = condition != "hook", condition != "brief"
    given = memory.given(task.prompt, with_start=with_start, with_note=with_note)
    if condition.endswith("+recall"):
        note = "\n\n".join(part for part in (given.note, memory.recalled(task.prompt)) if part.strip())
        return Given(given.start, note, given.is_late)
    return given


def memory_under(
    condition: str, stores: Stores, sets: Sequence[TaskSet], tasks: TaskSet, task: Task
) -> ProjectMemory | None:
    """Return the store behind a condition, None where there is none."""
    if condition in ("model", "model+recall"):
        return stores.written(tasks, task)
    if condition == "stale":
        return stores.of(tasks, tasks.stale_sessions, "stale")
    if condition == "poisoned":
        history = tasks.history_of(task)
        return stores.of(tasks, (*history, *tasks.poison), "poisoned") if tasks.poison else None
    if condition == "other":
        other = sets[(sets.index(tasks) + 1) % len(sets)]
        memory = stores.plain(other, other.tasks[0]) if other is not tasks else None
        # Another project's memory, and a session in this one's folder.
        own = stores.scratch / "work" / tasks.name
        return ProjectMemory(memory.home, own, memory.project_id) if memory else None
    return stores.plain(tasks, task) if condition in CONDITIONS and condition not in _FILES else None


_FILES: dict[str, Callable[[TaskSet, Task], str]] = {
    "client": lambda tasks, task: tasks.client_memory,
    "by_hand": lambda tasks, task: tasks.by_hand[:BY_HAND_CHARS],
    "oracle": lambda tasks, task: "\n".join(f"- {fact}" for fact in task.oracle()) or "(nothing)",
}
CONDITIONS = {
    "none": "nothing",
    "client": "the client's own memory file",
    "by_hand": "a file written by hand, 4,000 characters",
    "cortex": "brief and prompt hook, no language model",
    "cortex+recall": "… and what `cortex recall` prints for the message",
    "brief": "the brief alone",
    "hook": "the prompt hook alone",
    "model": "brief and prompt hook, facts by a language model",
    "model+recall": "… and what `cortex recall` prints for the message",
    "transcripts": "all earlier sessions, whole",
    "oracle": "the facts of the task",
    "stale": "a memory that stopped before plans were overturned",
    "poisoned": "a memory that has also read a hostile page",
    "other": "the memory of another project",
}
# None of these may leave a session worse off than nothing.
HARMLESS = ("stale", "poisoned", "other")
# Without --conditions: all that costs nothing but time; a writer is asked only where a person names it.
USUAL = tuple(name for name in CONDITIONS if not name.startswith("model"))
