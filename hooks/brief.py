"""The brief at a session's start: find the project of a folder, wrap its ready-made brief for the client."""

from __future__ import annotations

import json
import os

# The client takes 10,000 characters and cuts what is longer down to 2 KB; the rest is left for its own words.
MAX_CHARACTERS = 9_500
MAX_BYTES = 4 * MAX_CHARACTERS

# A resumed or forked session replays the brief it was given: a second one would only repeat it.
SOURCES = ("startup", "clear", "compact")


def session_start_output(home: str, folders: list[str]) -> bytes | None:
    """Return the JSON that hands the brief over, or None where no brief is published for any of `folders`."""
    published = os.path.join(home, "published")
    project_id = find_project(published, folders)
    text = read_brief(os.path.join(published, project_id, "brief.md")) if project_id else ""
    if not text:
        return None
    inner = {"hookEventName": "SessionStart", "additionalContext": text}
    return json.dumps({"hookSpecificOutput": inner}).encode()


def find_project(published: str, folders: list[str]) -> str | None:
    """
    Return the project id of the first of `folders` that lies in a known project.

    `projects.json` maps folders to project ids. Going up from a folder, the first one in the
    map counts. A repository that is not in the map is a project of its own, also inside
    another; and the user's home is a project only for itself, not for all below it.
    """
    known = _read_map(os.path.join(published, "projects.json"))
    not_above = {os.path.expanduser("~"), "/"}
    for folder in folders:
        here = folder.rstrip("/") or "/"
        while here:
            if here in known and (here == folder or here not in not_above):
                return known[here]
            parent = os.path.dirname(here)
            if parent == here or os.path.exists(os.path.join(here, ".git")):
                break
            here = parent
    return None


def read_brief(path: str) -> str:
    """Return the brief, cut at the end of a line to what the client takes; empty where there is none."""
    try:
        with open(path, "rb") as file:
            text = file.read(MAX_BYTES).decode("utf-8", "replace").strip()
    except FileNotFoundError:
        return ""
    if _client_length(text) <= MAX_CHARACTERS:
        return text
    lines, left = [], MAX_CHARACTERS
    for line in text.split("\n"):
        left -= _client_length(line) + 1
        if left < 0:
            break
        lines.append(line)
    return "\n".join(lines)


def _client_length(text: str) -> int:
    # The client counts UTF-16 units: a character outside the basic plane is two.
    return len(text) + sum(character > "\uffff" for character in text)


def _read_map(path: str) -> dict[str, str]:
    try:
        with open(path, "rb") as file:
            known = json.loads(file.read())
    except FileNotFoundError:
        return {}
    if not isinstance(known, dict):
        raise ValueError("projects.json is not a map")
    # A project id is the name of a folder, never a path that leads elsewhere.
    return {
        folder: project_id
        for folder, project_id in known.items()
        if isinstance(project_id, str) and project_id not in ("", ".", "..") and "/" not in project_id
    }
