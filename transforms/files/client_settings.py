"""Puts our hooks and status line into the text of the client's settings, and takes them out again."""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from cortex.transforms.errors import ClientSettingsUnusable
from cortex.transforms.files.json_text import (
    Change,
    Edited,
    Json,
    as_json,
    member_of,
    pair,
    parsed,
    parts_of,
    rendered,
    root_of,
    style_of,
    unusable,
    value_of,
    with_part,
    without_part,
)

# What stands in the file that is made where there was none.
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

    The plugin's `sh ${CLAUDE_PLUGIN_ROOT}/hooks/run.sh EVENT` becomes a command that starts `launcher` where
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
    told = {name: value for name, value in hook.items() if name != "args"}
    return {**told, "command": _GUARDED.format(launcher=shlex.quote(launcher), event=hook["args"][1])}


def has_hooks(text: str, groups: Mapping[str, list[Json]] | None = None) -> bool:
    """Return whether hooks of ours are in the settings; with `groups`, whether exactly those are."""
    found = _our_hooks(parsed(text))
    if groups is None:
        return bool(found)
    wanted = [
        (event, group.get("matcher"), hook)
        for event, many in groups.items()
        for group in many
        for hook in group["hooks"]
    ]
    return sorted(map(_spelt, found)) == sorted(map(_spelt, wanted))


def _spelt(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _our_hooks(settings: Json) -> list[tuple[str, object, object]]:
    return [
        (event, group.get("matcher"), hook)
        for event, groups in _checked_hooks(settings).items()
        for group in groups
        if isinstance(group, dict) and isinstance(group.get("hooks"), list)
        for hook in group["hooks"]
        if _is_our_hook(hook)
    ]


def _is_our_hook(hook: object) -> bool:
    command = hook.get("command") if isinstance(hook, dict) else None
    return isinstance(command, str) and bool(_HOOK.fullmatch(command))


def _checked_hooks(settings: Json) -> Mapping[str, list[Any]]:
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(groups, list) for groups in hooks.values()):
        raise unusable("its 'hooks' is no map of lists")
    return hooks


def with_hooks(text: str, groups: Mapping[str, list[Json]]) -> Edited:
    """
    Return the settings with `groups` added behind what is there; `text` must hold none of ours.

    Raises ClientSettingsUnusable where 'hooks' has another form than a map of lists.
    """
    _checked_hooks(parsed(text))
    style, changes = style_of(text), list[Change]()
    if member_of(text, root_of(text), "hooks") is None:
        return with_part(text, root_of(text), pair("hooks", dict(groups), 1, style), 1, style, changes)
    for event, added in groups.items():
        hooks = member_of(text, root_of(text), "hooks")
        assert hooks is not None
        there = member_of(text, hooks.value, event)
        if there is None:
            text = with_part(text, hooks.value, pair(event, added, 2, style), 2, style, changes).text
            continue
        for group in added:
            text = with_part(text, there.value, rendered(group, 3, style), 3, style, changes).text
    return Edited(text, tuple(changes))


def without_hooks(text: str, changes: Sequence[Change] = ()) -> str:
    """
    Return the settings without our hooks.

    With the `changes` that put them in, the very text from before, also where the user has edited other
    places since; else our entries are cut out, with the lists that this leaves empty.
    """
    _checked_hooks(parsed(text))
    return _taken_back(text, changes, _stripped_of_hooks, has_hooks) or _cut_hooks(text)


def _stripped_of_hooks(settings: Json) -> Json:
    hooks: Json = {}
    for event, groups in _checked_hooks(settings).items():
        kept = [group for group in map(_group_of_others, groups) if group is not None]
        if kept:
            hooks[event] = kept
    return {**{name: value for name, value in settings.items() if name != "hooks"}, "hooks": hooks}


def _group_of_others(group: object) -> object:
    if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
        return group
    others = [hook for hook in group["hooks"] if not _is_our_hook(hook)]
    return {**group, "hooks": others} if others else None


def _cut_hooks(text: str) -> str:
    while (place := next(iter(_places_of_ours(text)), None)) is not None:
        text = without_part(text, *place)
    return text


def _places_of_ours(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start of the container, start of the value in it) of what to cut for each hook of ours."""
    hooks = member_of(text, root_of(text), "hooks")
    for event in parts_of(text, hooks.value) if hooks else []:
        for group in parts_of(text, event.value):
            inner = member_of(text, group.value, "hooks") if text[group.value] == "{" else None
            for one in parts_of(text, inner.value) if inner and text[inner.value] == "[" else []:
                if hooks and inner and _is_our_hook(value_of(text, one)):
                    # With its last hook goes the group, with the last group the event, with that `hooks`.
                    levels = [(inner, one), (event, group), (hooks, event)]
                    fuller = [(c.value, p.value) for c, p in levels if len(parts_of(text, c.value)) > 1]
                    yield fuller[0] if fuller else (root_of(text), hooks.value)


def has_status_line(text: str) -> bool:
    """Return whether the status line is ours, alone or around another."""
    return _our_status_line(parsed(text)) is not None


def with_status_line(text: str, launcher: str) -> Edited:
    """
    Return the settings with our status line, `text` holding none of ours; another's is shown above it.

    Raises ClientSettingsUnusable where 'statusLine' is no command.
    """
    own = _OWN_LINE.format(launcher=shlex.quote(launcher))
    there = member_of(text, root_of(text), "statusLine") if "statusLine" in parsed(text) else None
    style, changes = style_of(text), list[Change]()
    if there is None:
        line = {
            "type": "command",
            "command": _GUARDED.format(launcher=shlex.quote(launcher), event="statusline"),
        }
        return with_part(text, root_of(text), pair("statusLine", line, 1, style), 1, style, changes)
    told = value_of(text, there)
    if not isinstance(told, dict) or not isinstance(told.get("command"), str):
        raise unusable("its 'statusLine' is no command")
    command = member_of(text, there.value, "command")
    assert command is not None
    put = as_json(_WRAP + shlex.quote(told["command"]) + _THEN + own)
    change = Change(was=text[command.value : command.end], put=put)
    return Edited(text[: command.value] + put + text[command.end :], (change,))


def without_status_line(text: str, changes: Sequence[Change] = ()) -> str:
    """Return the settings without our status line; the one it was put around stands by itself again."""
    return _taken_back(text, changes, _stripped_of_status_line, has_status_line) or _cut_status_line(text)


def _our_status_line(settings: Json) -> list[str] | None:
    """Return the command that ours was put around, in a list, empty where there was none; None: not ours."""
    told = settings.get("statusLine")
    command = told.get("command") if isinstance(told, dict) else None
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


def _stripped_of_status_line(settings: Json) -> Json:
    inner = _our_status_line(settings)
    if inner is None:
        return settings
    if not inner:
        return {name: value for name, value in settings.items() if name != "statusLine"}
    return {**settings, "statusLine": {**settings["statusLine"], "command": inner[0]}}


def _cut_status_line(text: str) -> str:
    inner = _our_status_line(parsed(text))
    there = member_of(text, root_of(text), "statusLine")
    if inner is None or there is None:
        return text
    command = member_of(text, there.value, "command")
    if not inner or command is None:
        return without_part(text, root_of(text), there.value)
    return text[: command.value] + as_json(inner[0]) + text[command.end :]


def _taken_back(
    text: str, changes: Sequence[Change], stripped: Callable[[Json], Json], has_ours: Callable[[str], bool]
) -> str | None:
    """Return `text` with each change undone where it still stands; None unless that removes ours alone."""
    before = text
    for change in reversed(changes):
        if before.count(change.put) != 1:
            return None
        before = before.replace(change.put, change.was)
    try:
        is_same = stripped(parsed(before)) == stripped(parsed(text))
        return before if is_same and not has_ours(before) else None
    except ClientSettingsUnusable:  # the user took a part of ours, and with it a comma
        return None
