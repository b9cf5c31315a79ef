"""The commands that put Cortex into the client's settings and take it out: install, uninstall, statusline."""

import difflib
import json
import sys
from pathlib import Path

from cortex.cli.terminal import hint, now, print_json, say, write
from cortex.hooks import statusline
from cortex.storage.background_run import note_engine
from cortex.storage.client_files import (
    PLUGIN,
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
    comes_back,
    has_hooks,
    has_ours,
    has_status_line,
    hook_groups,
    text_without,
    with_hooks,
    with_status_line,
    without_hooks,
    without_status_line,
)
from cortex.transforms.files.json_text import Json, dumped, is_same, parsed
from cortex.transforms.redaction.redact import redact

# Lines around a change: enough to find the place.
DIFF_CONTEXT_LINES = 1


def install(*, dry_run: bool, as_json: bool) -> None:
    """Put the plugin's hooks into the user's settings, where the plugin is not on already."""
    file, text, settings = _opened()
    if is_plugin_enabled(settings):
        raise UsageError(
            "the plugin is on, and brings the same hooks: every event would count twice.",
            f"Nothing is left to do; or `claude plugin disable {PLUGIN}` first.",
        )
    groups = hook_groups(plugin_hooks(), str(launcher()))
    if text is None or not has_hooks(settings, groups):
        settings = with_hooks(without_hooks(settings), groups)
    _add(file, text, settings, dry_run=dry_run, as_json=as_json)
    if not dry_run:
        _note_engine()
        if not as_json:
            hint("New sessions use them. Take them out again: cortex uninstall")


def uninstall(*, dry_run: bool, as_json: bool) -> None:
    """Take hooks and status line out of the user's settings; all else stays."""
    file, text, settings = _opened()
    _remove(file, text, without_status_line(without_hooks(settings)), dry_run=dry_run, as_json=as_json)
    if not dry_run and not as_json:
        hint(f"The memory itself stays in {load_settings().home}.")


def install_status_line(*, dry_run: bool, as_json: bool) -> None:
    """Put the status line into the user's settings; one that is there is shown above ours."""
    file, text, settings = _opened()
    settings = with_status_line(without_status_line(settings), str(launcher()))
    _add(file, text, settings, dry_run=dry_run, as_json=as_json)


def uninstall_status_line(*, dry_run: bool, as_json: bool) -> None:
    """Take the status line out; one that it was put around stands by itself again."""
    file, text, settings = _opened()
    _remove(file, text, without_status_line(settings), dry_run=dry_run, as_json=as_json)


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
    _, _, settings = _opened()
    return {
        "hooks": has_hooks(settings),
        "status_line": has_status_line(settings),
        "plugin": is_plugin_enabled(settings),
    }


def _opened() -> tuple[SettingsFile, str | None, Json]:
    """Return the client's settings file, its text (None where there is none) and its settings."""
    file = SettingsFile(client_folder())
    text = file.read()
    return file, text, parsed(EMPTY if text is None else text)


def _add(file: SettingsFile, before: str | None, settings: Json, *, dry_run: bool, as_json: bool) -> None:
    """Write settings that have something of ours; what was there before the first of it is kept."""
    text = EMPTY if before is None else before
    after = text if is_same(settings, parsed(text)) else dumped(settings, like=text)
    if not dry_run and after != before:
        if not has_ours(parsed(text)):
            file.keep_backup(None if before is None or comes_back(before, after) else before)
        file.write(after, was=before)
    _tell(file, before, after, dry_run=dry_run, as_json=as_json)


def _remove(file: SettingsFile, before: str | None, settings: Json, *, dry_run: bool, as_json: bool) -> None:
    """Write settings from which something of ours was taken; a file that Cortex made goes with the last."""
    after = before
    if before is not None and not is_same(settings, parsed(before)):
        backup = file.backup()
        after = text_without(settings, before, backup) if settings or backup is not None else None
    if not dry_run:
        if after != before:
            file.write(after, was=before)
        if not has_ours(settings):
            file.keep_backup(None)
    _tell(file, before, after, dry_run=dry_run, as_json=as_json)


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
