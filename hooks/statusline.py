"""The status line: `python3 -I -S statusline.py`, the client's JSON on stdin, one line on stdout or nothing.

The client starts it after each event of a session, so it reads four small files and asks nothing else.
"""

from __future__ import annotations

import json
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeGuard
if TYPE_CHECKING or __package__:
    from cortex.hooks import brief, context_use, health, hook_settings, ticket
    from cortex.hooks.home import home_in
else:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # -I leaves the script's folder out
    import brief
    import context_use
    import health
    import hook_settings
    import ticket
    from home import home_in

PARTS = ("health", "memories", "capture", "context")

_MAX_PAYLOAD_BYTES = 1024 * 1024


def main() -> None:
    """Print the line; whatever goes wrong, print nothing."""
    home = home_in(os.environ)
    payload = json.loads(sys.stdin.buffer.read(_MAX_PAYLOAD_BYTES))
    text = line(home, payload, time.time())
    if text:
        ticket.write_all(1, text.encode() + b"\n")


def line(home: str, payload: dict[str, object], now_seconds: float) -> str:
    """
    Return the line for the client's `payload`: what is wrong, memories of the project, last capture, context.

    Empty if nothing is known. Which parts, and from where on the context is worth a warning, is chosen by
    `statusline.show` and `statusline.warn_percent`.
    """
    project_id = brief.find_project(os.path.join(home, "published"), folders_named_in(payload))
    chosen = hook_settings.HookSettings(home, project_id)
    makers = {
        "health": lambda: trouble(home, now_seconds),
        "memories": lambda: memories(home, project_id),
        "capture": lambda: capture_age(home, now_seconds),
        "context": lambda: context(
            payload, chosen.number("statusline.warn_percent", context_use.WARN_PERCENT)
        ),
    }
    parts = [makers[name]() for name in chosen.words("statusline.show", PARTS) if name in makers]
    text = " · ".join(part for part in parts if part)
    return f"cortex: {text}" if text else ""


def folders_named_in(payload: dict[str, object]) -> list[str]:
    """Return the folders that the client's `payload` names, that of the session first."""
    workspace = payload.get("workspace")
    places = workspace if isinstance(workspace, dict) else {}
    named = [payload.get("cwd"), places.get("current_dir"), places.get("project_dir")]
    return [folder for folder in named if isinstance(folder, str) and folder]


def trouble(home: str, now_seconds: float) -> str:
    """Return whether something is wrong, empty if all is well."""
    return "needs you: cortex doctor" if health.warning(home, now_seconds) else ""


def memories(home: str, project_id: str | None) -> str:
    """Return how many memories of the project there are, empty if nobody counted."""
    try:
        with open(os.path.join(home, health.COUNTS), "rb") as file:
            counts = json.loads(file.read())
        count = counts.get(project_id, 0) if project_id else 0
    except (OSError, ValueError, AttributeError):
        return ""
    if not isinstance(count, int):
        return ""
    return f"{count} {'memory' if count == 1 else 'memories'}"


def capture_age(home: str, now_seconds: float) -> str:
    """Return how long ago a hook noted something, or a run took something in."""
    try:
        then = os.stat(os.path.join(home, "staging", ticket.NEW)).st_mtime
    except OSError:
        return "nothing captured yet"
    seconds = max(0.0, now_seconds - then)
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"captured {int(seconds // size)} {unit} ago"
    return "captured just now"


def context(payload: dict[str, object], warn_percent: int) -> str:
    """Return how full the session's context is, from `warn_percent` on with a warning."""
    window = payload.get("context_window")
    fields = window if isinstance(window, dict) else {}
    used, size = fields.get("used_percentage"), fields.get("context_window_size")
    if not _is_number(used) and _is_number(size) and size > 0:
        tokens = context_use.tokens_of(fields.get("current_usage"))
        used = 100 * tokens / size if tokens else None
    if not _is_number(used):
        return ""
    percent = f"context {used:.0f} %"
    return f"{percent} full, /compact soon" if used >= warn_percent else percent


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


if __name__ == "__main__":
    try:
        if not os.environ.get("CORTEX_INTERNAL"):
            main()
    except BaseException:  # noqa: S110 - the client would show it, again and again
        pass
    finally:
        os._exit(0)
