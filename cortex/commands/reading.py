"""The commands that explain: a brief line by line, what is in dispute, how sessions went, projects."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from cortex.commands.memories import open_store
from cortex.commands.terminal import hint, now, print_json, say, table
from cortex.errors import NotFound, UsageError
from cortex.settings import load_settings
from cortex.storage.journal import GLOBAL_SCOPE
from cortex.storage.lake import each_key_once
from cortex.storage.projects import Project
from cortex.storage.reference import read_policy
from cortex.storage.repository import doubts_of
from cortex.storage.store import Store
from cortex.transforms.consolidate import propose
from cortex.transforms.framing import first_sentences, on_one_line
from cortex.transforms.journal import entry
from cortex.transforms.metrics import COLUMNS, session_metrics
from cortex.transforms.policy import Policy
from cortex.transforms.reality import Doubt
from cortex.transforms.render import Choice, choose
from cortex.transforms.schemas import EVENTS, TURNS, VECTORS
from cortex.transforms.tokens import upper_bound

LEFT_OUT_SHOWN = 10
TEXT_CHARS = 110
# Heads of METRICS' columns, in their order: short, so that eight stand on a line of 80 characters.
HEADINGS = (
    "prompts", "edits", "to edit", "reread", "fixes", "decided", "twice", "again"
)  # fmt: skip


def explain(project: str | None, *, as_json: bool) -> None:
    """Print for each line of a brief why it is in, and for the next ten why they are out."""
    store, policy, settings = open_store(), read_policy(load_settings().home), load_settings()
    told = []
    for one in _projects(store, project):
        memories = _shown_memories(store, one.project_id)
        doubts = _doubts(store, one.project_id, policy)
        choices = choose(
            memories,
            store.tables.open(one.project_id, "edges").read(),
            policy,
            project_name=one.name,
            budget_tokens=settings.brief_tokens,
            marks={doubt.memory_id: doubt.mark for doubt in doubts},
        )
        told.append((one, choices, {doubt.memory_id: doubt.reason for doubt in doubts}))
    if as_json:
        return print_json({"briefs": [_explained(*each) for each in told]})
    for each in told:
        _print_explained(*each)
    return None


def _explained(project: Project, choices: list[Choice], doubts: dict[str, str]) -> dict[str, object]:
    def as_dict(choice: Choice) -> dict[str, object]:
        return {
            "section": choice.section,
            "memory_id": choice.memory_id or None,
            "text": choice.text,
            "reason": choice.reason,
            "rank": round(choice.rank, 4),
            "doubt": doubts.get(choice.memory_id),
        }

    return {
        "project_id": project.project_id,
        "project": project.name,
        "shown": [as_dict(choice) for choice in choices if choice.is_shown],
        "left_out": [as_dict(choice) for choice in _next_out(choices)],
    }


def _next_out(choices: list[Choice]) -> list[Choice]:
    """Return the best of what was left out."""
    out = [choice for choice in choices if not choice.is_shown]
    return sorted(out, key=lambda choice: (-choice.rank, choice.memory_id))[:LEFT_OUT_SHOWN]


def _print_explained(project: Project, choices: list[Choice], doubts: dict[str, str]) -> None:
    say(f"{project.name}: {sum(choice.is_shown for choice in choices)} of {len(choices)} candidates are in.")
    section = ""
    for choice in choices:
        if not choice.is_shown:
            continue
        if choice.section != section:
            section = choice.section
            say(f"\n{section}")
        doubt = doubts.get(choice.memory_id)
        say(f"  {choice.memory_id[:6] or '-':<6}  {_shortened(choice.text)}")
        say(f"          in: {choice.reason}" + (f"; {doubt}" if doubt else ""))
    out = _next_out(choices)
    if out:
        say("\nLeft out, the best first")
    for choice in out:
        say(f"  {choice.memory_id[:6]}  {_shortened(choice.text)}")
        say(f"          out: {choice.reason} (rank {choice.rank:.2f})")


def review(project: str | None, *, as_json: bool) -> None:
    """List what a person may settle: contradictions, stale claims, memories that could be merged."""
    store, policy = open_store(), read_policy(load_settings().home)
    found = {one.name: _review_of(store, one.project_id, policy) for one in _projects(store, project)}
    if as_json:
        return print_json({"projects": found})
    for name, lists in found.items():
        say(f"{name}: " + (", ".join(f"{len(rows)} {what}" for what, rows in lists.items())))
        for what, rows in lists.items():
            for row in rows:
                say(f"  {what.rstrip('s'):<14} " + "  |  ".join(_shortened(text) for text in row.values()))
    if any(any(lists.values()) for lists in found.values()):
        hint("Settle one with: cortex forget ID. Nothing is superseded but by a person.")
    return None


def _review_of(store: Store, scope: str, policy: Policy) -> dict[str, list[dict[str, str]]]:
    memories = store.tables.open(scope, "memories").read()
    rows = memories.select(["memory_id", "text", "memory_type", "status"]).to_pylist()
    decisions = {
        row["memory_id"]: f"[{row['memory_id'][:6]}] {on_one_line(row['text'])}"
        for row in rows
        if row["status"] == "active"
    }
    is_decision = {row["memory_id"] for row in rows if row["memory_type"] == "decision"}
    edges = store.tables.open(scope, "edges").read().to_pylist()
    disputed = [
        {"one": decisions[edge["source_id"]], "other": decisions[edge["target_id"]]}
        for edge in edges
        if edge["edge_type"] == "contradicts" and {edge["source_id"], edge["target_id"]} <= is_decision
        if {edge["source_id"], edge["target_id"]} <= decisions.keys()
    ]
    stale = [
        {"claim": decisions[doubt.memory_id], "reason": doubt.reason}
        for doubt in _doubts(store, scope, policy)
        if doubt.memory_id in decisions
    ]
    return {
        "contradictions": disputed,
        "stale claims": stale,
        "merge proposals": _merges(store, memories, policy, decisions),
    }


def _merges(store: Store, memories: pa.Table, policy: Policy, texts: dict[str, str]) -> list[dict[str, str]]:
    """Return the merges that the next consolidation would make."""
    models = store.lake.manifest.partitions("vectors")
    model = next(iter(models), "")
    vectors = store.lake.read(VECTORS, model) if model else VECTORS.empty()
    proposed = propose(memories, vectors, policy, model, now()).to_pylist() if model else []
    return [
        {str(number): texts.get(name, name[:6]) for number, name in enumerate(told["members"], start=1)}
        for told in (json.loads(row["payload"]) for row in proposed)
    ]


def stats(project: str | None, *, as_json: bool) -> None:
    """Print how sessions went, by project: briefs, decisions made twice, files read again, corrections."""
    store, policy = open_store(), read_policy(load_settings().home)
    told = []
    for one in _projects(store, project):
        sessions = _sessions(store, one.project_id, policy)
        told.append((one, upper_bound(store.published.brief(one.project_id)), sessions.to_pylist()))
    if as_json:
        return print_json(
            {
                "projects": [
                    {
                        "project_id": one.project_id,
                        "project": one.name,
                        "brief_tokens": brief_tokens,
                        "sessions": sessions,
                    }
                    for one, brief_tokens, sessions in told
                ]
            }
        )
    for one, brief_tokens, went in told:
        rows = [_stats_row(session) for session in went]
        title = f"{one.name}: {len(rows)} sessions, brief of {brief_tokens} tokens"
        table(title, ["session", "day", *HEADINGS], rows, numbers=set(HEADINGS))
    return None


def _sessions(store: Store, project_id: str, policy: Policy) -> pa.Table:
    turns = each_key_once(TURNS, store.lake.read(TURNS, project_id))
    return session_metrics(turns, store.lake.read(EVENTS, project_id), policy)


def _stats_row(session: dict[str, Any]) -> list[str]:
    begun = session["began_at"]
    told = [session[name] for name in COLUMNS]
    return [
        str(session["session_id"])[:6],
        f"{begun:%y-%m-%d}" if begun else "",
        *("" if value is None else f"{value:.0f}" for value in told),
    ]


def list_projects(*, as_json: bool) -> None:
    """Print the projects with what identifies each and where it lies."""
    projects = open_store().projects.all()
    if as_json:
        return print_json(
            {
                "projects": [
                    {"id": p.project_id, "name": p.name, "identity": p.identity, "paths": list(p.paths)}
                    for p in projects
                ]
            }
        )
    rows = [[p.name, p.project_id, p.identity, ", ".join(p.paths)] for p in projects]
    table("Projects", ["name", "id", "identity", "folders"], rows)
    return None


def rename_project(project: str, name: str, *, as_json: bool) -> None:
    """Give a project another name; its id stays."""
    store = open_store()
    if not name.strip():
        raise UsageError("the new name is empty.", "Write: cortex projects rename PROJECT NAME")
    project_id = _one(store, project)
    store.journal.write(entry("project", project_id, {"name": name.strip()}, recorded_at=now()))
    if as_json:
        return print_json({"id": project_id, "name": name.strip()})
    say(f"{project_id} is called {name.strip()} now.")
    return None


def _doubts(store: Store, project_id: str, policy: Policy) -> list[Doubt]:
    memories = store.tables.open(project_id, "memories").read()
    return doubts_of(store.projects.paths_of(project_id), memories, policy)


def _shown_memories(store: Store, project_id: str) -> pa.Table:
    return pa.concat_tables(
        store.tables.open(scope, "memories").read() for scope in (project_id, GLOBAL_SCOPE)
    )


def _projects(store: Store, project: str | None) -> list[Project]:
    """Return the named projects, or this folder's, or all where this folder is none."""
    here = store.projects.known(str(Path.cwd()))
    ids = store.projects.named(project) if project else [here] if here else []
    known = store.projects.all()
    if not known:
        raise NotFound("nothing was remembered yet.", "Begin with: cortex backfill")
    return [one for one in known if one.project_id in ids] or known


def _one(store: Store, project: str) -> str:
    ids = store.projects.named(project)
    if len(ids) > 1:
        raise UsageError(f"{len(ids)} projects are called '{project}'.", f"Name one by id: {', '.join(ids)}.")
    return ids[0]


def _shortened(text: str) -> str:
    line = on_one_line(text.split("\n", 1)[0])
    return line if len(line) <= TEXT_CHARS else first_sentences(line, count=1, chars=TEXT_CHARS)
