"""The command `config`: what is chosen and by whom; set and unset a setting."""

from pathlib import Path

from cortex.cli.memories import apply_now, open_store
from cortex.cli.terminal import hint, print_json, say
from cortex.flows.stages.order import APPLY
from cortex.storage.config_file import ConfigFile, publish_hook_settings
from cortex.storage.setting_keys import AT_ONCE, KEYS, NEXT_RUN, Key, key_of
from cortex.storage.settings import Chosen, chosen, read_config, store_home
from cortex.transforms.errors import UsageError


def list_all(project: str | None, *, as_json: bool) -> None:
    """Print every setting with its value, where that comes from, its unit and meaning."""
    values = _values(project)
    if as_json:
        return print_json({"settings": [_as_dict(key, told) for key, told in values]})
    for key, told in values:
        say(f"{key.name} = {_shown(key, told)}    ({told.source})")
        say(f"    {key.meaning} [{key.unit}]")
    hint("Change one: cortex config set KEY VALUE [--project NAME], or by CORTEX_SECTION_KEY.")
    return None


def get(name: str, project: str | None, *, as_json: bool) -> None:
    """Print the value of one setting."""
    key = key_of(name)
    [told] = [told for each, told in _values(project) if each is key]
    return print_json(_as_dict(key, told)) if as_json else say(_shown(key, told))


def set_one(name: str, words: tuple[str, ...], project: str | None, *, as_json: bool) -> None:
    """Write one setting into config.toml, for all projects or for one."""
    key = key_of(name)
    value = key.from_words(words, "config set")
    section = _section_of(key, project)
    ConfigFile(store_home()).set(key, value, section)
    acts = _take_effect(key)
    told = Chosen(value, "config.toml")
    if as_json:
        return print_json({**_as_dict(key, told), "acts": acts})
    where = f" for {section}" if section else ""
    say(f"{name} is {_shown(key, told)}{where}, {acts}.")
    in_force = chosen(key, {})
    if not in_force.is_default:
        hint(f"{in_force.source} is set, and has the last word.")
    return None


def unset(name: str, project: str | None, *, as_json: bool) -> None:
    """Remove one setting from config.toml."""
    key = key_of(name)
    section = _section_of(key, project)
    was_there = ConfigFile(store_home()).unset(key, section)
    acts = _take_effect(key) if was_there else AT_ONCE
    if as_json:
        return print_json({"key": name, "removed": was_there, "acts": acts})
    if not was_there:
        return say(f"{name} was not set{f' for {section}' if section else ''}.")
    told = chosen(key, *_all_of(None))
    return say(f"{name} is {_shown(key, told)} ({told.source}), {acts}.")


def _take_effect(key: Key) -> str:
    """Let a changed setting act, where a command can; return when it does."""
    publish()
    if key.name.startswith("brief.") and not open_store().is_empty:
        return AT_ONCE if apply_now(APPLY) else NEXT_RUN
    return key.acts


def publish() -> None:
    """Hand the hooks what they need to know of the settings; they read no TOML."""
    home = store_home()
    _, by_project = read_config(home)
    # Who is whose folder is told by the journal, which takes time to read.
    publish_hook_settings(home, open_store().projects.paths() if by_project else {})


def _values(project: str | None) -> list[tuple[Key, Chosen]]:
    values, by_project, names = _all_of(project)
    return [(key, chosen(key, values, by_project, names)) for key in KEYS]


def _all_of(
    project: str | None,
) -> tuple[dict[str, object], dict[str, dict[str, object]], list[str]]:
    values, by_project = read_config(store_home())
    return values, by_project, _names(project) if by_project or project else []


def _names(project: str | None) -> list[str]:
    """Return the id and the folders of the named project, else of this folder's."""
    book = open_store().projects
    if project is None:
        here = book.known(str(Path.cwd()))
        return [here, *book.paths_of(here)] if here else [str(Path.cwd())]
    if Path(project).is_absolute() and not book.known(project):
        return [project]
    return [name for one in book.named(project) for name in (one, *book.paths_of(one))]


def _section_of(key: Key, project: str | None) -> str | None:
    if project is None:
        return None
    if not key.per_project:
        raise UsageError(f"{key.name} holds for all projects.", "Leave --project out.")
    return _names(project)[0]


def _shown(key: Key, told: Chosen) -> str:
    if key.is_secret:
        return "set" if told.value else "unset"
    if isinstance(told.value, tuple):
        return ", ".join(told.value) or "none"
    return str(told.value).lower() if isinstance(told.value, bool) else str(told.value)


def _as_dict(key: Key, told: Chosen) -> dict[str, object]:
    return {
        "key": key.name,
        "value": _shown(key, told) if key.is_secret else told.value,
        "from": told.source,
        "unit": key.unit,
        "meaning": key.meaning,
        "variable": key.variable,
    }
