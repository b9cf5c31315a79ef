"""The commands that put Cortex into the client's settings and take it out: install, uninstall, statusline."""

import difflib
import json
import sys
from dataclasses import replace
from pathlib import Path

from cortex.cli.terminal import hint, now, print_json, say, write
from cortex.hooks import statusline
from cortex.storage.background_run import note_engine
from cortex.storage.client_files import (
    HOOKS,
    PLUGIN,
    STATUS_LINE,
    Note,
    Notes,
    SettingsFile,
    client_folder,
    is_plugin_enabled,
    launcher,
    plugin_hooks,
)
from cortex.storage.settings import load_settings, store_home
from cortex.transforms.errors import UsageError
from cortex.transforms.files.client_settings import (
    EMPTY,
    has_hooks,
    has_status_line,
    hook_groups,
    with_hooks,
    with_status_line,
    without_hooks,
    without_status_line,
)
from cortex.transforms.files.json_text import Edited, parsed
from cortex.transforms.redaction.redact import redact

# Lines around a change: enough to find the place.
DIFF_CONTEXT_LINES = 1


def install(*, dry_run: bool, as_json: bool) -> None:
    """Put the plugin's hooks into the user's settings, where the plugin is not on already."""
    file, text, note = _opened()
    if text is not None and is_plugin_enabled(parsed(text)):
        raise UsageError(
            "the plugin is on, and brings the same hooks: every event would count twice.",
            f"Nothing is left to do; or `claude plugin disable {PLUGIN}` first.",
        )
    groups = hook_groups(plugin_hooks(), str(launcher()))
    if text is None or not has_hooks(text, groups):
        before = without_hooks(_or_empty(text), note.changes.get(HOOKS, ()))
        edited = with_hooks(before, groups)
        _apply(file, text, edited, note, HOOKS, dry_run=dry_run, as_json=as_json)
    else:
        _tell(file, text, text, dry_run=dry_run, as_json=as_json)
    if not dry_run:
        _note_engine()
        if not as_json:
            hint("New sessions use them. Take them out again: cortex uninstall")


def uninstall(*, dry_run: bool, as_json: bool) -> None:
    """Take hooks and status line out of the user's settings; all else stays byte for byte."""
    _remove([HOOKS, STATUS_LINE], dry_run=dry_run, as_json=as_json)
    if not dry_run and not as_json:
        hint(f"The memory itself stays in {load_settings().home}.")


def install_status_line(*, dry_run: bool, as_json: bool) -> None:
    """Put the status line into the user's settings; one that is there is shown above ours."""
    file, text, note = _opened()
    before = without_status_line(_or_empty(text), note.changes.get(STATUS_LINE, ()))
    edited = with_status_line(before, str(launcher()))
    if text is not None and has_status_line(text) and parsed(text) == parsed(edited.text):
        return _tell(file, text, text, dry_run=dry_run, as_json=as_json)
    return _apply(file, text, edited, note, STATUS_LINE, dry_run=dry_run, as_json=as_json)


def uninstall_status_line(*, dry_run: bool, as_json: bool) -> None:
    """Take the status line out; one that it was put around stands by itself again."""
    _remove([STATUS_LINE], dry_run=dry_run, as_json=as_json)


def print_status_line() -> None:
    """Print the status line for the client's JSON on standard input, at a terminal for this folder."""
    here: dict[str, object] = {"cwd": str(Path.cwd())}
    try:
        payload = here if sys.stdin.isatty() else json.loads(sys.stdin.buffer.read() or b"{}")
        text = statusline.line(str(store_home()), payload, now().timestamp())
    except (OSError, ValueError, AttributeError):
        return  # the client calls it after each event: silence is the only right answer
    if text:
        say(text)


def installed() -> dict[str, bool]:
    """Return whether hooks, status line and plugin are in the user's settings; all false where unreadable."""
    _, text, _ = _opened()
    settings = parsed(_or_empty(text))
    return {
        "hooks": has_hooks(_or_empty(text)),
        "status_line": has_status_line(_or_empty(text)),
        "plugin": is_plugin_enabled(settings),
    }


def _or_empty(text: str | None) -> str:
    return EMPTY if text is None else text


def _opened() -> tuple[SettingsFile, str | None, Note]:
    file = SettingsFile(client_folder())
    return file, file.read(), Notes(load_settings().home).read(file.path)


def _apply(
    file: SettingsFile,
    text: str | None,
    edited: Edited,
    note: Note,
    part: str,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    if not dry_run:
        # The note first: a kill in between leaves one that names what is not there, which changes nothing.
        others = {name: told for name, told in note.changes.items() if name != part}
        changes = {**others, part: edited.changes}
        kept = Note(changes, is_made=text is None or note.is_made)
        Notes(load_settings().home).write(file.path, kept)
        file.write(edited.text, was=text)
    _tell(file, text, edited.text, dry_run=dry_run, as_json=as_json)


def _remove(parts: list[str], *, dry_run: bool, as_json: bool) -> None:
    file, text, note = _opened()
    if text is None:
        return _tell(file, None, None, dry_run=dry_run, as_json=as_json)
    left: str | None = text
    # The last one in is the first one out: what it was put beside is then as it was found.
    order = list(note.changes)
    for part in sorted(parts, key=lambda part: order.index(part) if part in order else -1, reverse=True):
        take = without_hooks if part == HOOKS else without_status_line
        left = take(_or_empty(left), note.changes.get(part, ()))
    changes = {part: told for part, told in note.changes.items() if part not in parts}
    if note.is_made and not changes and left == EMPTY:
        left = None
    if not dry_run:
        if left != text:
            file.write(left, was=text)
        Notes(load_settings().home).write(file.path, replace(note, changes=changes))
    return _tell(file, text, left, dry_run=dry_run, as_json=as_json)


def _tell(file: SettingsFile, before: str | None, after: str | None, *, dry_run: bool, as_json: bool) -> None:
    diff = _diff(str(file.path), before, after)
    is_changed = before != after
    if as_json:
        told = {"file": str(file.path), "changed": is_changed and not dry_run, "diff": diff}
        return print_json(told)
    if dry_run:
        write(diff)
        return hint("Nothing is changed yet." if is_changed else f"{file.path}: nothing to change.")
    return say(f"{file.path}: {'changed' if is_changed else 'nothing to change'}.")


def _diff(name: str, before: str | None, after: str | None) -> str:
    lines = difflib.unified_diff(
        (before or "").splitlines(keepends=True),
        (after or "").splitlines(keepends=True),
        "/dev/null" if before is None else name,
        "/dev/null" if after is None else name,
        n=DIFF_CONTEXT_LINES,
    )
    told = "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
    # A file on one line is shown whole, with the keys that its `env` may hold.
    return redact(told)[0]


def _note_engine() -> None:
    if note_engine(load_settings().home) is None:
        hint("Where the `cortex` command lies is unknown: the first `cortex run` tells the hooks.")
