"""Puts our hooks and status line into the client's settings, and takes them out again."""

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from cortex.transforms.documents.json_text import (
    Json,
    dumped,
    is_same,
    parsed,
    unusable,
)

# What a file contains that is created because there was none.
EMPTY = "{}\n"

# A hook whose script is gone (the package removed, a new Python) must end with 0. Plain `sh GONE` ends with
# 2, which the client takes for "refuse this prompt" and, after an answer, "go on".
_GUARDED = "[ ! -r {launcher} ] || exec sh {launcher} {event}"
_HOOK = re.compile(
    r"\[ ! -r (?P<launcher>.*/hooks/run\.sh'?) \] \|\| exec sh (?P=launcher) (?P<event>[a-z-]+)"
)

# The client's JSON goes to both commands; the lines of the one that was there come first.
_WRAP = 'i=$(cat); o=$(printf %s "$i" | sh -c '
_THEN = """); [ -z "$o" ] || printf '%s\\n' "$o"; """
_OWN_LINE = '[ ! -r {launcher} ] || printf %s "$i" | sh {launcher} statusline'
_OWN_LINE_FORM = re.compile(
    r"\[ ! -r (?P<launcher>.*/hooks/run\.sh'?) \] \|\| printf %s \"\$i\" \| sh (?P=launcher) statusline"
)


def hook_groups(plugin_hooks: Json, launcher: str) -> dict[str, list[Json]]:
    """
    Return event → groups for the settings, from the plugin's hooks.json: one list for both ways.

    The plugin's `sh ${CLAUDE_PLUGIN_ROOT}/run.sh EVENT` becomes a command that starts `launcher` where
    that is still there, and else ends silently with 0.
    """
    return {
        event: [
            {**group, "hooks": [_settings_hook(hook, launcher) for hook in group["hooks"]]}
            for group in groups
        ]
        for event, groups in plugin_hooks["hooks"].items()
    }


def _settings_hook(hook: Json, launcher: str) -> Json:
    rest = {name: value for name, value in hook.items() if name != "args"}
    return {**rest, "command": _GUARDED.format(launcher=shlex.quote(launcher), event=hook["args"][1])}


def has_hooks(settings: Json, groups: Mapping[str, list[Json]] | None = None) -> bool:
    """Return whether hooks of ours are in the settings; with `groups`, whether exactly those are."""
    ours = [
        (event, group.get("matcher"), hook)
        for event, listed in _checked_hooks(settings).items()
        for group in listed
        for hook in _hooks_of(group)
        if _is_our_hook(hook)
    ]
    if groups is None:
        return bool(ours)
    wanted = [
        (event, group.get("matcher"), hook)
        for event, listed in groups.items()
        for group in listed
        for hook in group["hooks"]
    ]
    return sorted(map(_spelt, ours)) == sorted(map(_spelt, wanted))


def with_hooks(settings: Json, groups: Mapping[str, list[Json]]) -> Json:
    """
    Return the settings with `groups` behind the groups of the same event.

    Raises ClientSettingsUnusable if 'hooks' has another form than a map of lists.
    """
    hooks = dict(_checked_hooks(settings))
    for event, added in groups.items():
        hooks[event] = [*hooks.get(event, ()), *added]
    return {**settings, "hooks": hooks}


def without_hooks(settings: Json) -> Json:
    """Return the settings without our hooks, and without the groups and lists that this leaves empty."""
    if not has_hooks(settings):
        return settings
    hooks = {}
    for event, listed in settings["hooks"].items():
        kept = [_without_ours(group) for group in listed if not _is_ours_alone(group)]
        if kept or not any(map(_is_ours_alone, listed)):
            hooks[event] = kept
    rest = {name: value for name, value in settings.items() if name != "hooks" or hooks}
    return {**rest, "hooks": hooks} if hooks else rest


def _checked_hooks(settings: Json) -> Mapping[str, list[Any]]:
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(groups, list) for groups in hooks.values()):
        raise unusable("its 'hooks' is not a map of lists")
    return hooks


def _hooks_of(group: object) -> list[object]:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    return hooks if isinstance(hooks, list) else []


def _is_our_hook(hook: object) -> bool:
    command = hook.get("command") if isinstance(hook, dict) else None
    return isinstance(command, str) and bool(_HOOK.fullmatch(command))


def _is_ours_alone(group: object) -> bool:
    hooks = _hooks_of(group)
    return bool(hooks) and all(map(_is_our_hook, hooks))


def _without_ours(group: Any) -> Any:
    hooks = _hooks_of(group)
    others = [hook for hook in hooks if not _is_our_hook(hook)]
    return group if len(others) == len(hooks) else {**group, "hooks": others}


def _spelt(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def has_status_line(settings: Json) -> bool:
    """Return whether the status line is ours, alone or around another."""
    return _wrapped_command(settings) is not None


def with_status_line(settings: Json, launcher: str) -> Json:
    """
    Return the settings with our status line, `settings` having none of ours; another's is shown above it.

    Raises ClientSettingsUnusable if 'statusLine' is not a command.
    """
    quoted = shlex.quote(launcher)
    if "statusLine" not in settings:
        alone = {"type": "command", "command": _GUARDED.format(launcher=quoted, event="statusline")}
        return {**settings, "statusLine": alone}
    line = settings["statusLine"]
    if not isinstance(line, dict) or not isinstance(line.get("command"), str):
        raise unusable("its 'statusLine' is not a command")
    both = _WRAP + shlex.quote(line["command"]) + _THEN + _OWN_LINE.format(launcher=quoted)
    return {**settings, "statusLine": {**line, "command": both}}


def without_status_line(settings: Json) -> Json:
    """Return the settings without our status line; the one it was put around stands by itself again."""
    wrapped = _wrapped_command(settings)
    if wrapped is None:
        return settings
    if not wrapped:
        return {name: value for name, value in settings.items() if name != "statusLine"}
    return {**settings, "statusLine": {**settings["statusLine"], "command": wrapped[0]}}


def _wrapped_command(settings: Json) -> list[str] | None:
    """Return the command that ours was put around, in a list, empty if there was none; None: not ours."""
    line = settings.get("statusLine")
    command = line.get("command") if isinstance(line, dict) else None
    if not isinstance(command, str):
        return None
    alone = _HOOK.fullmatch(command)
    if alone:
        return [] if alone["event"] == "statusline" else None
    at = command.rfind(_THEN)
    if not command.startswith(_WRAP) or not _OWN_LINE_FORM.fullmatch(command[at + len(_THEN) :]):
        return None
    try:
        return shlex.split(command[len(_WRAP) : at])
    except ValueError:
        return None


def has_ours(settings: Json) -> bool:
    """Return whether anything of ours is in the settings."""
    return has_hooks(settings) or has_status_line(settings)


def comes_back(before: str, after: str) -> bool:
    """Return whether taking ours out of the text `after` gives the bytes of `before` with no backup."""
    rest = without_status_line(without_hooks(parsed(after)))
    return bool(rest) and dumped(rest, like=after) == before


def text_without(settings: Json, text: str, backup: str | None) -> str:
    """
    Return the text of `settings`, from which something of ours was taken.

    That is the `backup` where it says the same, so that a file nobody else changed is again what it was, byte
    for byte; else it is laid out like `text`, the file as it is now.
    """
    if backup is not None and is_same(_without_empty_hooks(settings), _without_empty_hooks(parsed(backup))):
        return backup
    return dumped(settings, like=text)


def _without_empty_hooks(settings: Json) -> Json:
    """Return the settings without empty lists of hooks: whether those were there is not kept."""
    hooks = {event: groups for event, groups in settings.get("hooks", {}).items() if groups}
    rest = {name: value for name, value in settings.items() if name != "hooks"}
    return {**rest, "hooks": hooks} if hooks else rest
