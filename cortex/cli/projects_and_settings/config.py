"""The command `config`: shows and changes settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cortex.cli.answer import PROJECT_OPTION, Answer, command, current_context, current_home, group

if TYPE_CHECKING:
    from cortex.flows.operations.maintain.config import Setting, SettingChange

NAMED_PROJECT = click.option("--project", metavar="NAME", help="Only for this project (name, id or path).")


@group("config", "Show and change settings.", place=30, takes_context=False)
@PROJECT_OPTION
def config(project: str | None) -> Answer:
    """List every setting with its value and source; get, set or unset one."""
    return _list(project)


@command("list", parent=config, takes_context=False)
@PROJECT_OPTION
def list_all(project: str | None) -> Answer:
    """List every setting with its value, source, unit and meaning."""
    return _list(project)


@command("get", parent=config, takes_context=False)
@click.argument("key")
@PROJECT_OPTION
def get(key: str, project: str | None) -> Answer:
    """Print the value of the setting KEY."""
    from cortex.flows.operations.maintain import config

    setting = config.get_setting(current_home(), key, project, current_context)
    return Answer(_as_dict(setting), [_value(setting)])


@command("set", parent=config, takes_context=False, takes_dashes=True)
@click.argument("key")
@click.argument("value", nargs=-1, required=True)
@NAMED_PROJECT
def set_value(key: str, value: tuple[str, ...], project: str | None) -> Answer:
    """Set KEY to VALUE in config.toml; several values make a list."""
    from cortex.flows.operations.maintain import config

    change = config.set_setting(current_home(), key, value, project, current_context)
    where = f" for {change.project}" if change.project else ""
    line = f"{key} is now {_value(change.setting)}{where}; takes effect {change.acts}."
    hints = [f"{change.override} is set and overrides it."] if change.override else []
    hints += [
        f"What was read from {label} is still stored. To erase it: cortex reset --project {project_id}"
        for project_id, label in change.excluded
    ]
    data = {**_as_dict(change.setting), "acts": change.acts}
    return Answer(
        {**data, "still_remembered": [project_id for project_id, _ in change.excluded]},
        [line],
        hints,
        change.warnings,
    )


@command("unset", parent=config, takes_context=False)
@click.argument("key")
@NAMED_PROJECT
def unset(key: str, project: str | None) -> Answer:
    """Remove the setting KEY from config.toml."""
    from cortex.flows.operations.maintain import config

    change = config.unset_setting(current_home(), key, project, current_context)
    data = {"key": key, "removed": change.is_changed, "acts": change.acts}
    return Answer(data, [_removal(key, change)], warnings=change.warnings)


def _removal(key: str, change: SettingChange) -> str:
    if not change.is_changed:
        return f"{key} was not set{f' for {change.project}' if change.project else ''}."
    source = change.setting.chosen.source
    return f"{key} is now {_value(change.setting)} ({source}); takes effect {change.acts}."


def _list(project: str | None) -> Answer:
    from cortex.flows.operations.maintain import config

    settings = config.list_settings(current_home(), project, current_context)
    lines = [
        line
        for setting in settings
        for line in (
            f"{setting.key.name} = {_value(setting)}    ({setting.chosen.source})",
            f"    {setting.key.meaning} [{setting.key.unit}]",
        )
    ]
    hint = "Change one: cortex config set KEY VALUE [--project NAME], or set CORTEX_SECTION_KEY."
    return Answer({"settings": [_as_dict(setting) for setting in settings]}, lines, [hint])


def _value(setting: Setting) -> str:
    value = setting.chosen.value
    if setting.key.is_secret:
        return "set" if value else "unset"
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _as_dict(setting: Setting) -> dict[str, object]:
    key = setting.key
    return {
        "key": key.name,
        "value": _value(setting) if key.is_secret else setting.chosen.value,
        "from": setting.chosen.source,
        "unit": key.unit,
        "meaning": key.meaning,
        "variable": key.variable,
    }
