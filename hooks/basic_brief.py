"""The brief without an engine: tagged facts and the plan of the last sessions, in the frame of the real one.

Read again at each start from the transcripts themselves, within a hard deadline; nothing is written.
"""

from __future__ import annotations

import os
import re
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING or __package__:
    from typing import Optional

    from cortex.hooks import private, ticket, transcript_end
    from cortex.hooks.prose import plain
    from cortex.hooks.prose.memory_types import BASIC_SECTIONS

    Reports = tuple[list[transcript_end.TaggedFact], Optional[transcript_end.TaskList]]
else:
    import private
    import ticket
    import transcript_end
    from prose import plain
    from prose.memory_types import BASIC_SECTIONS

# The start of a session waits: 100 ms are for interpreter (15), sweep (40 at most) and this.
BASIC_BRIEF_SECONDS = 0.045
_MAX_SESSIONS = 5
_MAX_TICKETS = 60  # 0.1 ms each
# 500 tokens, as the engine's brief has without a language model, at three characters each: the least that
# English prose has.
_MAX_CHARACTERS = 1_500
FACT_CHARACTERS, STEP_CHARACTERS = 300, 120
# The engine rewords a long fact after its beginning; this much of it tells one from another.
OPENING_CHARACTERS = 60

# As in transforms/brief/render.py; a test compares them.
_TITLE = "# Notes from earlier sessions: "
BASICS = (
    "Basic brief: tagged lines and the task list of the last sessions; Cortex's engine has not read them."
)
THIS_SESSION = "## Earlier in this session"
LATER = "## Tagged and planned since, in sessions that Cortex's engine has not read"

# Replaced by every commit.
MANIFEST = "runs/manifest.json"

# In any of the ways to write it, comments within included: better one folder too many than one too few.
_EXCLUDED = re.compile(
    r"^[^#\n]*\bexcluded_projects[\"']?\s*=\s*\[((?:\"[^\"\n]*\"|'[^'\n]*'|#[^\n]*|[^\]\"'#])*)", re.MULTILINE
)
_QUOTED = re.compile(r"\"([^\"\n]*)\"|'([^'\n]*)'")


def basic_brief(home: str, transcript: str, folder: str) -> str:
    """
    Return a brief of what the last sessions of `folder` tagged and planned, empty if that is nothing.

    `transcript` is the session's own: those next to it are of the same folder. The same transcripts give the
    same text. An excluded folder has none.
    """
    root = repository_root(folder)
    lines = _sections(*_reports_of(home, recent_transcripts(home, transcript, root), folder), _MAX_CHARACTERS)
    if not lines:
        return ""
    name = plain.brief_line(os.path.basename(root), STEP_CHARACTERS) or "this folder"
    return "\n".join([_TITLE + name, plain.PREAMBLE, *lines, "", BASICS, plain.CLOSING])


def this_session(home: str, transcript: str, shown: str) -> str:
    """
    Return what the session of `transcript` tagged and planned so far and `shown`, its brief, does not say.

    For the moment after a compaction: the brief was made before, and the summary may have lost it.
    """
    return _beyond(shown, _reports_of(home, [transcript], ""), THIS_SESSION)


def later_sessions(home: str, transcript: str, folder: str, shown: str) -> str:
    """Return what sessions of `folder` tagged and planned after the last commit and `shown` does not say."""
    try:
        since = os.stat(os.path.join(home, MANIFEST)).st_mtime_ns
    except OSError:
        return ""
    later = recent_transcripts(home, transcript, repository_root(folder), since)
    return _beyond(shown, _reports_of(home, later, folder), LATER)


def _reports_of(home: str, paths: list[str], folder: str) -> Reports:
    give_up_at = time.monotonic() + BASIC_BRIEF_SECONDS
    excluded = excluded_folders(home)
    facts: list[transcript_end.TaggedFact] = []
    plan = None
    for path in paths:
        if private.is_below(folder, excluded) or time.monotonic() > give_up_at:
            break
        try:
            its_facts, its_plan = transcript_end.reports_in(path, give_up_at, excluded)
        except (OSError, ValueError):
            continue  # deleted since it was listed, or nothing that can be read
        facts += its_facts
        plan = plan or its_plan
    return facts, plan


def _beyond(shown: str, reports: Reports, heading: str) -> str:
    """Return what is not in `shown` under one heading; empty if that is nothing."""
    facts, plan = reports
    lowered = shown.casefold()
    facts = [fact for fact in facts if _opening(fact.text) not in lowered]
    if plan and all(line in shown for line in _plan_lines(plan)[1:]):
        plan = None
    lines = [line for line in _sections(facts, plan, _MAX_CHARACTERS) if line and not line.startswith("## ")]
    return "\n".join([heading, *lines]) if lines else ""


def _opening(text: str) -> str:
    return plain.brief_line(text, OPENING_CHARACTERS).rstrip("…").casefold()


def recent_transcripts(home: str, transcript: str, root: str, since_ns: int = 0) -> list[str]:
    """
    Return the newest transcripts of sessions in `root` that grew after `since_ns`, at most MAX_SESSIONS.

    Those next to `transcript`, and those that tickets name with a folder of the same root: their original,
    else the kept link.
    """
    by_file: dict[tuple[int, int], tuple[int, str]] = {}
    transcript_folder = os.path.dirname(transcript)
    staging = os.path.join(home, "staging")
    for path in [*_transcripts_in(transcript_folder), *_ticketed(staging, transcript_folder, root)]:
        if private.is_private(staging, path):
            continue
        try:
            status = os.stat(path)
        except OSError:
            continue
        if not stat.S_ISREG(status.st_mode):
            continue  # would take the place of a transcript
        by_file.setdefault((status.st_dev, status.st_ino), (status.st_mtime_ns, path))
    newest = sorted(by_file.values(), reverse=True)[:_MAX_SESSIONS]
    return [path for modified_ns, path in newest if modified_ns > since_ns]


def repository_root(folder: str) -> str:
    """Return the repository that `folder` is in, for a worktree the main one; else `folder` itself."""
    here = folder
    while True:
        mark = os.path.join(here, ".git")
        if os.path.isdir(mark):
            return here
        if os.path.isfile(mark):
            return _main_worktree(mark) or here
        parent = os.path.dirname(here)
        if parent == here:
            return folder
        here = parent


def excluded_folders(home: str) -> tuple[str, ...]:
    """Return `capture.excluded_projects`; Python has no reader of TOML before 3.11."""
    named = os.environ.get("CORTEX_CAPTURE_EXCLUDED_PROJECTS")
    if named:
        return tuple(folder for folder in named.split(os.pathsep) if folder)
    try:
        with open(os.path.join(home, "config.toml"), encoding="utf-8", errors="replace") as file:
            setting = _EXCLUDED.search(file.read(256 * 1024))
    except OSError:
        return ()
    return tuple(double or single for double, single in _QUOTED.findall(setting[1])) if setting else ()


def _transcripts_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            names = [e.name for e in entries if e.name.endswith(".jsonl") and not e.name.startswith("agent-")]
    except OSError:
        return []
    return [os.path.join(folder, name) for name in names]


def _ticketed(staging: str, transcript_folder: str, root: str) -> list[str]:
    """Return what waiting tickets name, newest ticket first: transcripts of folder `transcript_folder` or of
    `root`."""
    folder = os.path.join(staging, ticket.NEW)
    try:
        names = sorted((name for name in os.listdir(folder) if name.endswith(".json")), reverse=True)
    except OSError:
        return []
    paths = []
    for name in names[:_MAX_TICKETS]:
        try:
            with open(os.path.join(folder, name), "rb") as file:
                fields = ticket.parse(file.read(ticket.MAX_TICKET_BYTES))
        except (OSError, ValueError):
            continue
        path, cwd = str(fields["transcript_path"]), fields.get("cwd")
        is_ours = os.path.dirname(path) == transcript_folder or (
            isinstance(cwd, str) and repository_root(cwd) == root
        )
        if is_ours and not fields.get("agent_id"):
            kept = ticket.link_path(staging, ticket.key_in_name(name))
            paths.append(path if os.path.exists(path) else kept)
    return paths


def _main_worktree(mark: str) -> str:
    """Return the repository whose worktree the file `mark` (.git) is in, empty if it names none."""
    try:
        with open(mark, encoding="utf-8", errors="replace") as file:
            text = file.read(4096).strip()
    except OSError:
        return ""
    path, separator, _ = text.rpartition("/.git/worktrees/")
    return path[len("gitdir: ") :] if separator and path.startswith("gitdir: ") else ""


def _sections(
    facts: list[transcript_end.TaggedFact], plan: transcript_end.TaskList | None, budget: int
) -> list[str]:
    """Return the lines under their headings, as many as fit into `budget` characters; each fact once."""
    lines: list[str] = []
    seen: set[str] = set()
    for heading, most, kinds in BASIC_SECTIONS:
        items = [_plan_lines(plan)] if plan and kinds == ("plan",) else []
        for fact in facts:
            words, line = _fact_line(fact) if fact.kind in kinds else ("", "")
            if line and words not in seen:
                seen.add(words)
                items.append([line])
        head = ["", f"## {heading}"]
        for item in [item for item in items if item][:most]:
            budget -= sum(len(line) + 1 for line in head + item)
            if budget < 0:
                return lines
            lines += head + item
            head = []
    return lines


def _fact_line(fact: transcript_end.TaggedFact) -> tuple[str, str]:
    """Return the fact's words and its line, both empty if nothing may be shown."""
    text = plain.brief_line(fact.text, FACT_CHARACTERS)
    if not text or not fact.day:
        return "", ""
    # Without the word the thing rejected would read as the thing chosen.
    lead = "Rejected: " if fact.kind == "rejected" and "reject" not in text.lower() else ""
    return text.casefold(), f"- {lead}{text} ({fact.day})"


def _plan_lines(plan: transcript_end.TaskList) -> list[str]:
    """Return the plan as the real brief words it: title, last step done, steps at hand, the next two."""
    done, now, ahead = (
        [step for step in map(_step, plan.steps_that_are(status)) if step]
        for status in ("completed", "in_progress", "pending")
    )
    title = _step(plan.title)
    if not plan.day or not title or not now + ahead:
        return []
    lines = [f"- {title} ({plan.day})"]
    if done:
        count = f"{len(done)} steps, last: " if len(done) > 1 else ""
        lines.append(f"  - done: {count}{done[-1]}")
    for label, steps in (("now", now), ("next", ahead)):
        if steps:
            more = f"; then {len(steps) - 2} more" if len(steps) > 2 else ""
            lines.append(f"  - {label}: {'; '.join(steps[:2])}{more}")
    return lines


def _step(text: str) -> str:
    return plain.brief_line(text, STEP_CHARACTERS).rstrip(".")
