"""The settings: each with its value, where it is from and what it means; a form to change it."""

from dataclasses import replace
from pathlib import Path

from cortex.explorer.actions import is_set_here, written
from cortex.explorer.page import Page, ViewRequest
from cortex.flows.operations.ask import listing
from cortex.flows.operations.care import config
from cortex.flows.operations.care.config import Setting
from cortex.transforms.errors import NotFound


def show_settings(request: ViewRequest) -> Page:
    """Show every setting for all projects, or those of the project in the query; never a secret's value."""
    context, project = request.context, request.word("project") or None
    labels = listing.labels_of(context)
    projects = listing.list_known_projects(context)
    if project and project not in {row["project_id"] for row in projects}:
        raise NotFound(f"no project has the id '{project}'.", "The list on this page has them all.")
    everywhere = replace(context, folder=Path("/"))
    settings = config.list_settings(context.home, project, lambda: everywhere)
    sections: dict[str, list[dict[str, object]]] = {}
    for setting in settings:
        if setting.key.per_project or not project:
            section = setting.key.name.partition(".")[0]
            sections.setdefault(section, []).append(_as_dict(setting, project))
    data = {"project": project, "settings": [row for rows in sections.values() for row in rows]}
    extra = {"sections": sections, "projects": projects, "label": labels.get(project or "", "")}
    return Page("settings.html", "Settings", data, extra)


def _as_dict(setting: Setting, project: str | None) -> dict[str, object]:
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
        "is_in_file": is_set_here(setting, project),
    }
