"""The client's settings, a JSON file that a person also edits: our hooks and status line in and out."""

import json
import math
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from cortex.transforms.errors import ClientSettingsUnusable

# -- A JSON file that a person also edits: read it strictly, write it back laid out as it was.

Json = dict[str, Any]


def parsed(text: str) -> Json:
    """
    Return the object that `text` holds.

    Raises ClientSettingsUnusable for what would not come back as it was: comments, trailing commas, a byte
    order mark, the same key twice, numbers that are none.
    """
    try:
        value = json.loads(
            text, object_pairs_hook=_each_key_once, parse_constant=_refuse, parse_float=_finite
        )
    except (ValueError, RecursionError) as error:
        raise unusable(f"it is not plain JSON: {error}") from error
    if not isinstance(value, dict):
        raise unusable("it holds no JSON object")
    return value


def dumped(value: Json, like: str) -> str:
    r"""
    Return `value` as JSON with the indentation, line ends, separators and edges of the text `like`.

    A text that `json.dumps` could have written comes back byte for byte; another one is laid out evenly.

    >>> dumped({"a": 1, "b": [2]}, like='{\n\t"a": 1\n}\n')
    '{\n\t"a": 1,\n\t"b": [\n\t\t2\n\t]\n}\n'
    >>> dumped({"a": 1, "b": [2]}, like='{"a":1}')
    '{"a":1,"b":[2]}'
    """
    body = like.strip()
    before, _, after = like.partition(body)
    is_compact = body == _written(parsed(like), None, like, is_compact=True) != "{}"
    text = _written(value, _indent_of(body), like, is_compact=is_compact)
    return before + (text.replace("\n", "\r\n") if "\r\n" in like else text) + after


def is_same(value: Json, other: Json) -> bool:
    """Return whether two objects hold the same in the same order; 1, 1.0 and true are three things."""
    return json.dumps(value) == json.dumps(other)


def _indent_of(body: str) -> str | None:
    """Return one step of indentation; None for JSON on one line, two spaces for an empty object."""
    if re.fullmatch(r"\{\s*\}", body):
        return "  "
    indented = re.search(r"\n([ \t]+)\S", body)
    return indented[1] if indented else "" if "\n" in body else None


def _written(value: Json, indent: str | None, like: str, *, is_compact: bool) -> str:
    separators = (",", ":") if is_compact else None
    text = json.dumps(value, indent=indent, separators=separators, ensure_ascii=like.isascii())
    if any(0xD800 <= ord(character) < 0xE000 for character in text):  # no file can hold half a pair
        return json.dumps(value, indent=indent, separators=separators)
    return text


def _each_key_once(pairs: Iterable[tuple[str, Any]]) -> Json:
    listed = list(pairs)
    value = dict(listed)
    if len(value) < len(listed):
        twice = next(key for number, (key, _) in enumerate(listed) if key in dict(listed[:number]))
        raise ValueError(f"the key '{twice}' is there twice")
    return value


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refuse(digits)


def unusable(problem: str) -> ClientSettingsUnusable:
    """Return the error that says what keeps the file from being edited."""
    return ClientSettingsUnusable(
        f"the client's settings file was left as it is: {problem}.", "Correct the file and try again."
    )


# -- Puts our hooks and status line into the client's settings, and takes them out again.

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
