"""The file `config.toml`, changed with its comments and order kept; and what hooks need of it, as JSON."""

import json
from collections.abc import Mapping
from pathlib import Path

import tomlkit
from tomlkit.items import Item

from cortex.storage.filesystem.files import replacing_stored, write_stored
from cortex.storage.settings.setting_keys import KEYS, Key
from cortex.storage.settings.settings import PROJECT_SECTION, read_config

# In the home, where hooks look: they run on any Python from 3.9 on, which reads no TOML before 3.11.
HOOK_SETTINGS = "hook_settings.json"


class ConfigFile:
    """The file `<home>/config.toml`."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.path = home / "config.toml"

    def set(self, key: Key, value: object, project: str | None = None) -> None:
        """Write a setting, for one project or for all. Raises UsageError for a file that is not a config."""
        document = self._read()
        table = document
        for name in _sections(key, project):
            if name not in table:
                # Sections that only hold sections get no line of their own.
                table[name] = tomlkit.table(is_super_table=name != key.name.split(".")[0])
            table = table[name]
        plain_value = list(value) if isinstance(value, tuple) else value
        name = key.name.split(".")[1]
        _replace(table, name, tomlkit.item(plain_value))
        self._write(document)

    def unset(self, key: Key, project: str | None = None) -> bool:
        """Remove a setting, and the sections that this leaves empty; return whether it was there."""
        document = self._read()
        above, table = [], document
        for name in _sections(key, project):
            if name not in table:
                return False
            above.append((table, name))
            table = table[name]
        if table.pop(key.name.split(".")[1], None) is None:
            return False
        for outer, name in reversed(above):
            if not outer[name] and not _has_comment(outer[name]):
                outer.remove(name)
        self._write(document)
        return True

    def _read(self) -> tomlkit.TOMLDocument:
        read_config(self._home)  # says what is wrong with it
        try:
            return tomlkit.parse(self.path.read_bytes().decode("utf-8"))
        except FileNotFoundError:
            return tomlkit.document()

    def _write(self, document: tomlkit.TOMLDocument) -> None:
        with replacing_stored(self._home, self.path) as part:
            part.touch(mode=0o600)  # it may hold a key
            part.write_bytes(tomlkit.dumps(document).encode())


def publish_hook_settings(home: Path, ids_of: Mapping[str, str]) -> None:
    """
    Write what hooks need to know of the settings; `ids_of` is folder → project id.

    Only what was chosen: the hooks know the defaults, and ask their own environment first.
    """
    values, by_project = read_config(home)
    names = {key.name for key in KEYS if key.for_hooks}
    document: dict[str, object] = {name: value for name, value in values.items() if name in names}
    projects = {
        ids_of.get(project, project): {name: value for name, value in chosen.items() if name in names}
        for project, chosen in by_project.items()
    }
    if any(projects.values()):
        document["projects"] = {project: chosen for project, chosen in projects.items() if chosen}
    path, content = home / HOOK_SETTINGS, json.dumps(document, ensure_ascii=False, indent=1).encode()
    if path.is_file() and path.read_bytes() == content:
        return
    if document or path.exists():
        write_stored(home, path, content)


def _sections(key: Key, project: str | None) -> list[str]:
    section = key.name.split(".")[0]
    return [section] if project is None else [PROJECT_SECTION, project, section]


def _replace(table: Mapping[str, object], name: str, item: Item) -> None:
    before = table.get(name)
    if isinstance(before, Item):
        item.trivia.comment, item.trivia.comment_ws = before.trivia.comment, before.trivia.comment_ws
    table[name] = item  # type: ignore[index]


def _has_comment(table: object) -> bool:
    return "#" in getattr(table, "as_string", str)()
