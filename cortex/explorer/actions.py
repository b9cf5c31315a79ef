"""What forms of the explorer do: each calls an operation, says what was done, where to go on, how to undo."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlencode

from cortex.flows.context import Context
from cortex.flows.operations.ask import listing
from cortex.flows.operations.edit import forget, remember, review
from cortex.flows.operations.edit.apply import Applied
from cortex.flows.operations.maintain import config
from cortex.flows.operations.maintain.config import Setting
from cortex.transforms.errors import UsageError

# -- What was done last, to be said on the page that follows, and how to take it back.

# A notice is read on the page that follows an action; a few more, for the way back.
NOTICES_KEPT = 20


@dataclass(frozen=True)
class UndoForm:
    """A form that takes an action back: its address, its fields and what stands on its button."""

    address: str
    fields: Mapping[str, str] = field(default_factory=dict)
    label: str = "Undo"


@dataclass(frozen=True)
class ActionNotice:
    """What was done; `warning` is what a person should know of it, "" for nothing."""

    text: str
    warning: str = ""
    undo: UndoForm | None = None


class Notices:
    """The last notices, by a name that cannot be guessed; kept in memory only."""

    def __init__(self) -> None:
        self._notices: dict[str, ActionNotice] = {}

    def add(self, notice: ActionNotice) -> str:
        """Keep a notice and return its name."""
        name = secrets.token_urlsafe(9)
        self._notices[name] = notice
        while len(self._notices) > NOTICES_KEPT:
            del self._notices[next(iter(self._notices))]
        return name

    def get(self, name: str) -> ActionNotice | None:
        """Return the notice of a name, None if there is none any more."""
        return self._notices.get(name)

    def clear(self) -> None:
        """Drop all notices."""
        self._notices.clear()


FORGET_AGREED = "yes"


@dataclass(frozen=True)
class Done:
    """Where an action leads, and what is said there; `erases` where words were to disappear for good."""

    address: str
    notice: ActionNotice
    erases: bool = False


Action: TypeAlias = Callable[[Context, Mapping[str, str], Mapping[str, str]], Done]


def _pin(context: Context, parts: Mapping[str, str], form: Mapping[str, str]) -> Done:
    change = remember.pin(context, parts["memory"])
    undo = UndoForm(f"/memory/{change.memory_id}/unpin")
    done = _at_memory(change.memory_id, "Pinned: it neither fades nor is merged.", change.applied, undo)
    return replace(done, address=_review_of(form["project"])) if form.get("project") else done


def _unpin(context: Context, parts: Mapping[str, str], form: Mapping[str, str]) -> Done:
    change = remember.unpin(context, parts["memory"])
    undo = UndoForm(f"/memory/{change.memory_id}/pin")
    return _at_memory(change.memory_id, "No longer pinned: it fades as others do.", change.applied, undo)


def _edit(context: Context, parts: Mapping[str, str], form: Mapping[str, str]) -> Done:
    before = listing.show(context, parts["memory"]).row
    change = remember.edit(context, before["memory_id"], form.get("text", ""))
    undo = UndoForm(f"/memory/{change.memory_id}/edit", {"text": before["text"]})
    return _at_memory(change.memory_id, "The words were changed.", change.applied, undo)


def _supersede(context: Context, parts: Mapping[str, str], form: Mapping[str, str]) -> Done:
    replacement = remember.supersede(context, parts["memory"], form.get("new", ""))
    undo = UndoForm(f"/memory/{replacement.old_id}/restore")
    text = "Replaced: the other memory is shown in its place."
    return _at_memory(replacement.old_id, text, replacement.applied, undo)


def _restore(context: Context, parts: Mapping[str, str], form: Mapping[str, str]) -> Done:
    row = listing.show(context, parts["memory"], with_others=False).row
    is_archived = row["status"] == "archived"
    show_again = remember.undo_archive if is_archived else remember.undo_supersede
    change = show_again(context, row["memory_id"])
    return _at_memory(change.memory_id, "Shown again.", change.applied, None)


def _split(context: Context, parts: Mapping[str, str], form: Mapping[str, str]) -> Done:
    merge = review.undo_merge(context, parts["memory"])
    text = f"Split again: the {len(merge.merges[0].members)} memories stand for themselves."
    return Done(f"/memory/{merge.merges[0].members[0]}", ActionNotice(text, merge.applied.warning))


def _forget(context: Context, parts: Mapping[str, str], form: Mapping[str, str]) -> Done:
    plan = forget.plan_forget(context, parts["memory"])
    if form.get("agreed") != FORGET_AGREED or form.get("going") != going(plan):
        raise UsageError(
            "the memories to erase differ from those shown.",
            "Look at it again: it may have changed meanwhile.",
        )
    forgotten = forget.forget(context, plan)
    others = len(forgotten.others)
    text = "Forgotten: its words are erased from every file of the store."
    if others:
        text += f" {others} other{'s' if others > 1 else ''} went with it."
    return Done("/search", ActionNotice(text, forgotten.applied.warning), erases=True)


def _accept(context: Context, parts: Mapping[str, str], form: Mapping[str, str]) -> Done:
    project = form.get("project", "")
    resolution = review.resolve_items(context, accept=[parts["item"]], project=project)
    [item] = resolution.accepted
    merged = item.entry["memory_id"] if item.entry else ""
    undo = UndoForm(f"/memory/{merged}/split" if merged else f"/memory/{item.memory_ids[0]}/restore")
    notice = ActionNotice(f"Accepted: {item.offer}.", resolution.applied.warning, undo)
    return Done(_review_of(project), notice)


def _keep(context: Context, parts: Mapping[str, str], form: Mapping[str, str]) -> Done:
    project = form.get("project", "")
    resolution = review.resolve_items(context, keep=[parts["item"]], project=project)
    undo = UndoForm(f"/review/{resolution.kept[0].item_id}/reopen", {"project": project})
    text = "Kept as it is: it does not come up again."
    return Done(_review_of(project), ActionNotice(text, resolution.applied.warning, undo))


def _reopen(context: Context, parts: Mapping[str, str], form: Mapping[str, str]) -> Done:
    project = form.get("project", "")
    applied = review.reopen(context, parts["item"], project=project)
    return Done(_review_of(project), ActionNotice("It comes up again.", applied.warning))


def _review_of(project: str) -> str:
    return f"/review?{urlencode({'project': project})}"


def _set(context: Context, parts: Mapping[str, str], form: Mapping[str, str]) -> Done:
    name, project = parts["key"], form.get("project") or None
    before = setting_of(context, name, project)
    value = (form.get("value", ""),)
    change = config.set_setting(context.home, name, value, project, lambda: context)
    text = f"{name} was changed{' for this project' if project else ''}, {change.acts}."
    if change.override:
        text += f" {change.override} is set and overrides it."
    return Done(
        _settings_of(project), ActionNotice(text, " ".join(change.warnings), _undo_set(before, project))
    )


def _unset(context: Context, parts: Mapping[str, str], form: Mapping[str, str]) -> Done:
    name, project = parts["key"], form.get("project") or None
    before = setting_of(context, name, project)
    change = config.unset_setting(context.home, name, project, lambda: context)
    where = "as for all projects" if project else "at its default"
    text = f"{name} is {where} again, {change.acts}." if change.is_changed else f"{name} was not set."
    return Done(
        _settings_of(project), ActionNotice(text, " ".join(change.warnings), _undo_set(before, project))
    )


def _settings_of(project: str | None) -> str:
    return f"/settings?{urlencode({'project': project})}" if project else "/settings"


def setting_of(context: Context, name: str, project: str | None) -> Setting:
    """Return a setting for a project, or for all: not for that of the folder the explorer is started in."""
    everywhere = replace(context, folder=Path("/"))
    return config.get_setting(context.home, name, project, lambda: everywhere)


def is_set_here(setting: Setting, project: str | None) -> bool:
    """Return whether config.toml has a value of its own for a project, or for all."""
    source = setting.chosen.source
    return source.startswith("config.toml, project") if project else source == "config.toml"


def _undo_set(before: Setting, project: str | None) -> UndoForm | None:
    """Return the form that sets the former value again; none for a secret, which is shown nowhere."""
    address, fields = f"/settings/{before.key.name}", {"project": project} if project else {}
    if before.key.is_secret:
        return None
    if not is_set_here(before, project):
        return UndoForm(f"{address}/unset", fields)
    return UndoForm(address, {**fields, "value": written(before)})


def written(setting: Setting) -> str:
    """Return a setting's value as a form holds it; of a secret only whether it is set."""
    value = setting.chosen.value
    if setting.key.is_secret:
        return "set" if value else "not set"
    if isinstance(value, tuple):
        return ", ".join(value)
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


def going(plan: forget.ForgetPlan) -> str:
    """Return what a plan to forget would erase, as a form carries it: the beginnings of ids."""
    return " ".join(sorted(row["memory_id"][:16] for row in plan.others)) or "alone"


def _at_memory(memory_id: str, text: str, applied: Applied, undo: UndoForm | None) -> Done:
    return Done(f"/memory/{memory_id}", ActionNotice(text, applied.warning, undo))


_MEMORY = r"/memory/(?P<memory>[0-9a-f]{6,64})"
_ITEM = r"/review/(?P<item>[0-9a-f]{6,64})"
_KEY = r"/settings/(?P<key>[a-z_.]+)"

ACTIONS: Mapping[str, Action] = {
    rf"{_MEMORY}/pin": _pin,
    rf"{_MEMORY}/unpin": _unpin,
    rf"{_MEMORY}/edit": _edit,
    rf"{_MEMORY}/supersede": _supersede,
    rf"{_MEMORY}/restore": _restore,
    rf"{_MEMORY}/split": _split,
    rf"{_MEMORY}/forget": _forget,
    rf"{_ITEM}/accept": _accept,
    rf"{_ITEM}/keep": _keep,
    rf"{_ITEM}/reopen": _reopen,
    rf"{_KEY}": _set,
    rf"{_KEY}/unset": _unset,
}
