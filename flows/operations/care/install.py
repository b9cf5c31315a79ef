"""Puts Cortex's hooks and status line into the client's user settings, and takes them out again."""

import difflib
from dataclasses import dataclass, replace

from cortex.flows.context.context import Context
from cortex.storage.machine.background_run import note_engine
from cortex.storage.staging.client_files import (
    PLUGIN,
    SettingsFile,
    client_folder,
    is_plugin_enabled,
    launcher,
    plugin_hooks,
)
from cortex.transforms.documents.client_settings import (
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
from cortex.transforms.documents.json_text import (
    Json,
    dumped,
    is_same,
    parsed,
)
from cortex.transforms.errors import UsageError
from cortex.transforms.redaction.redact import redact

# Lines around a change: enough to find the place.
DIFF_CONTEXT_LINES = 1


@dataclass(frozen=True)
class SettingsChange:
    """
    A change of the client's settings: `file`, whether it differs, and how, as a unified diff without secrets.

    With `is_dry_run` nothing was written. `knows_engine` is false if the hooks cannot be given the path of
    the `cortex` command.
    """

    file: str
    is_different: bool
    diff: str
    is_dry_run: bool
    knows_engine: bool = True


@dataclass(frozen=True)
class Installed:
    """What the client's user settings have of Cortex."""

    hooks: bool
    status_line: bool
    plugin: bool


@dataclass(frozen=True)
class _Opened:
    """The client's settings file, its text (None if there is no file) and the settings in it."""

    file: SettingsFile
    text: str | None
    settings: Json


def install(context: Context, *, dry_run: bool) -> SettingsChange:
    """Add the plugin's hooks to the user's settings. Raises UsageError if the plugin is enabled."""
    opened = _open()
    settings = opened.settings
    if is_plugin_enabled(settings):
        raise UsageError(
            "the plugin is enabled and brings the same hooks: every event would count twice.",
            f"Nothing needs to be done, or run `claude plugin disable {PLUGIN}` first.",
        )
    groups = hook_groups(plugin_hooks(), str(launcher()))
    if opened.text is None or not has_hooks(settings, groups):
        settings = with_hooks(without_hooks(settings), groups)
    change = _add(opened, settings, dry_run)
    return change if dry_run else replace(change, knows_engine=note_engine(context.home) is not None)


def uninstall(*, dry_run: bool) -> SettingsChange:
    """Remove hooks and status line from the user's settings; everything else stays."""
    opened = _open()
    return _remove(opened, without_status_line(without_hooks(opened.settings)), dry_run)


def uninstall_hooks() -> SettingsChange:
    """Remove the hooks from the user's settings; the status line stays."""
    opened = _open()
    return _remove(opened, without_hooks(opened.settings), dry_run=False)


def install_status_line(*, dry_run: bool) -> SettingsChange:
    """Add the status line to the user's settings; an existing one is shown above it."""
    opened = _open()
    settings = with_status_line(without_status_line(opened.settings), str(launcher()))
    return _add(opened, settings, dry_run)


def uninstall_status_line(*, dry_run: bool) -> SettingsChange:
    """Remove the status line; the one it was added to is restored."""
    opened = _open()
    return _remove(opened, without_status_line(opened.settings), dry_run)


def installed() -> Installed:
    """Return what the user's settings have of Cortex. Raises ClientSettingsUnusable."""
    settings = _open().settings
    return Installed(has_hooks(settings), has_status_line(settings), is_plugin_enabled(settings))


def _open() -> _Opened:
    file = SettingsFile(client_folder())
    text = file.read()
    return _Opened(file, text, parsed(EMPTY if text is None else text))


def _add(opened: _Opened, settings: Json, dry_run: bool) -> SettingsChange:
    """Write settings that have something of ours; what was there before the first of it is kept."""
    before, file = opened.text, opened.file
    text = EMPTY if before is None else before
    after = text if is_same(settings, opened.settings) else dumped(settings, like=text)
    if not dry_run and after != before:
        if not has_ours(opened.settings):
            file.keep_backup(None if before is None or comes_back(before, after) else before)
        file.write(after, was=before)
    return _change(opened, after, dry_run)


def _remove(opened: _Opened, settings: Json, dry_run: bool) -> SettingsChange:
    """Write settings from which something of ours was taken; a file that Cortex made goes with the last."""
    before, file = opened.text, opened.file
    after = before
    if before is not None and not is_same(settings, opened.settings):
        backup = file.backup()
        after = text_without(settings, before, backup) if settings or backup is not None else None
    if not dry_run:
        if after != before:
            file.write(after, was=before)
        if not has_ours(settings):
            file.keep_backup(None)
    return _change(opened, after, dry_run)


def _change(opened: _Opened, after: str | None, dry_run: bool) -> SettingsChange:
    name = str(opened.file.path)
    return SettingsChange(name, opened.text != after, _diff(name, opened.text, after), dry_run)


def _diff(name: str, before: str | None, after: str | None) -> str:
    lines = difflib.unified_diff(
        (before or "").splitlines(keepends=True),
        (after or "").splitlines(keepends=True),
        "/dev/null" if before is None else name,
        "/dev/null" if after is None else name,
        n=DIFF_CONTEXT_LINES,
    )
    text = "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
    # A file on one line is shown whole, with the keys that its `env` may hold.
    return redact(text)[0]
