"""The settings: each with its value, where it is from and what it means; a form to change it."""

from cortex.explorer.deeds import written
from cortex.explorer.page import Page, ViewRequest
from cortex.flows import operations
from cortex.flows.operations.config import Setting


def show_settings(request: ViewRequest) -> Page:
    """Show every setting for all projects; a secret's value is never shown."""
    context = request.context
    settings = operations.config.list_settings(context.home, None, lambda: context)
    sections: dict[str, list[dict[str, object]]] = {}
    for setting in settings:
        sections.setdefault(setting.key.name.partition(".")[0], []).append(_as_dict(setting))
    data = {"settings": [row for rows in sections.values() for row in rows]}
    return Page("settings.html", "Settings", data, {"sections": sections})


def _as_dict(setting: Setting) -> dict[str, object]:
    key, value = setting.key, setting.chosen.value
    return {
        "key": key.name,
        "value": written(setting),
        "source": setting.chosen.source,
        "is_default": setting.chosen.is_default,
        "is_secret": key.is_secret,
        "unit": key.unit,
        "meaning": key.meaning,
        "wanted": key.wanted,
        "words": list(key.words) if isinstance(key.default, str) and not key.endings else [],
        "is_switch": isinstance(value, bool),
        "variable": key.variable,
        "is_in_file": setting.chosen.source == "config.toml",
    }
