"""What the user chose for the hooks: environment over project over all projects over default."""

from __future__ import annotations

import json
import os

# Written by `cortex config` and by each run: setting → value, and under "projects" the same by project id.
_FILE = "hook_settings.json"

NO = ("false", "no", "off", "0")


class HookSettings:
    """What was chosen for one project; a file that cannot be read is as one that says nothing."""

    def __init__(self, home: str, project_id: str | None) -> None:
        self._all = _read(os.path.join(home, _FILE))
        projects = self._all.get("projects")
        own = projects.get(project_id) if isinstance(projects, dict) else None
        self._own = own if isinstance(own, dict) else {}

    def is_on(self, name: str, default: bool) -> bool:
        """Return whether a setting that is yes or no is on."""
        text = _from_environment(name)
        if text:
            return text.lower() not in NO
        value = self._value(name)
        return value if isinstance(value, bool) else default

    def number(self, name: str, default: int) -> int:
        """Return a setting that is a whole number."""
        text = _from_environment(name)
        if text.isdecimal():
            return int(text)
        value = self._value(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else default

    def words(self, name: str, default: tuple[str, ...]) -> tuple[str, ...]:
        """Return a setting that is a list of words."""
        text = _from_environment(name)
        if text:
            return tuple(word.strip() for word in text.split(",") if word.strip())
        value = self._value(name)
        return tuple(str(word) for word in value) if isinstance(value, list) else default

    def _value(self, name: str) -> object:
        return self._own.get(name, self._all.get(name))


def _from_environment(name: str) -> str:
    return os.environ.get("CORTEX_" + name.replace(".", "_").upper(), "").strip()


def _read(path: str) -> dict[str, object]:
    try:
        with open(path, "rb") as file:
            document = json.loads(file.read())
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
