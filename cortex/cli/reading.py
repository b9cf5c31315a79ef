"""The commands that explain: a brief line by line, how sessions went."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from cortex.cli.memories import open_store
from cortex.cli.past import store_as_of
from cortex.cli.present import present
from cortex.cli.terminal import print_json, say, table
from cortex.flows.briefs import choices_of, material_of
from cortex.flows.runs import looking
from cortex.hooks.plain import on_one_line
from cortex.storage.lake import each_key_once
from cortex.storage.projects import Project
from cortex.storage.reference import read_policy
from cortex.storage.settings import load_settings
from cortex.storage.store import Store
from cortex.transforms.brief.render import Choice
from cortex.transforms.errors import NotFound
from cortex.transforms.memory.metrics import COLUMNS, session_metrics
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EVENTS, TURNS
from cortex.transforms.words.sentences import first_sentences
from cortex.transforms.words.tokens import upper_bound

LEFT_OUT_SHOWN = 10
TEXT_CHARS = 110
# Heads of METRICS' columns, in their order: short, so that eight stand on a line of 80 characters.
HEADINGS = (
    "prompts", "edits", "to edit", "reread", "fixes", "chose", "twice", "again"
)  # fmt: skip


def explain(project: str | None, *, as_of: str | None, as_json: bool) -> None:
    """Print for each line of a brief why it is in, and for the next ten why they are out."""
    told = []
    meant = projects_meant(open_store(), project)
    ids = [one.project_id for one in meant]
    run = looking(present()) if as_of is None else store_as_of(as_of, ids)
    for one in meant:
        material = material_of(run, one.project_id)
        told.append((one, choices_of(run, material), dict(material.doubts)))
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
        say(f"  {choice.memory_id[:6] or '-':<6}  {shortened(choice.text)}")
        say(f"          in: {choice.reason}" + (f"; {doubt}" if doubt else ""))
    out = _next_out(choices)
    if out:
        say("\nLeft out, the best first")
    for choice in out:
        say(f"  {choice.memory_id[:6]}  {shortened(choice.text)}")
        say(f"          out: {choice.reason} (rank {choice.rank:.2f})")


def stats(project: str | None, *, as_json: bool) -> None:
    """Print how sessions went, by project: briefs, decisions made twice, files read again, corrections."""
    store, policy = open_store(), read_policy(load_settings().home)
    told = []
    for one in projects_meant(store, project):
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
    names = [one.name for one, _, _ in told]
    for one, brief_tokens, went in told:
        rows = [_stats_row(session) for session in went]
        name = one.name if names.count(one.name) == 1 else one.project_id
        title = f"{name}: {counted(len(rows), 'session')}, brief of {brief_tokens} tokens"
        table(title, ["id", "day", *HEADINGS], rows, numbers=set(HEADINGS))
    return None


def counted(count: int, noun: str) -> str:
    """
    Return a number of things in words.

    >>> counted(1, "session"), counted(3, "session")
    ('1 session', '3 sessions')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


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


def projects_meant(store: Store, project: str | None) -> list[Project]:
    """Return the named projects, or this folder's, or all where this folder is none."""
    here = store.projects.known(str(Path.cwd()))
    ids = store.projects.named(project) if project else [here] if here else []
    known = store.projects.all()
    if not known:
        raise NotFound("nothing was remembered yet.", "Begin with: cortex backfill")
    return [one for one in known if one.project_id in ids] or known


def shortened(text: str) -> str:
    """Return the first line of a text, cut at a sentence end."""
    line = on_one_line(text.split("\n", 1)[0])
    return line if len(line) <= TEXT_CHARS else first_sentences(line, count=1, chars=TEXT_CHARS)
