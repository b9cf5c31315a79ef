"""Lists, reads and changes settings, encryption at rest among them, and hands the hooks what they need."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from cortex.flows.context import Context
from cortex.flows.engines.runs import opened, run_plain
from cortex.flows.operations.edit.apply import apply_now
from cortex.flows.run.run import Run
from cortex.flows.stages.order import APPLY
from cortex.storage.lake.encryption import EncryptionKey, make_in_keyring, make_key_file
from cortex.storage.settings.config_file import ConfigFile, publish_hook_settings
from cortex.storage.settings.setting_keys import AT_ONCE, KEYS, NEXT_RUN, Key, key_of
from cortex.storage.settings.settings import Chosen, chosen, load_settings, read_config
from cortex.transforms.errors import UsageError
from cortex.transforms.schemas import TURNS

EXCLUDED_PROJECTS, SHARED_PROJECTS = "capture.excluded_projects", "share.projects"

# Gives the context once the settings can be read; a change may be what makes them readable.
OpenContext = Callable[[], Context]


@dataclass(frozen=True)
class Setting:
    """A setting with its value and the value's source."""

    key: Key
    chosen: Chosen


@dataclass(frozen=True)
class SettingChange:
    """
    A setting after a change: `project` is the section that was changed (None: all projects), `acts` when it
    acts.

    `is_changed` is false where a setting to remove was not set; `override` names the variable that has the
    last word over the file; `warnings` say why it does not act yet. `excluded` are projects, as id and label,
    that are no longer read and of which something is remembered still.
    """

    setting: Setting
    project: str | None
    acts: str
    is_changed: bool = True
    override: str | None = None
    warnings: Sequence[str] = ()
    excluded: Sequence[tuple[str, str]] = ()


def list_settings(home: Path, project: str | None, context: OpenContext) -> list[Setting]:
    """Return every setting as it is for all projects and, where one is named, for that project."""
    values, by_project = read_config(home)
    names = _names(project, context()) if by_project or project else []
    return [Setting(key, chosen(key, values, by_project, names)) for key in KEYS]


def get_setting(home: Path, name: str, project: str | None, context: OpenContext) -> Setting:
    """Return one setting. Raises UsageError for an unknown name."""
    key = key_of(name)
    return next(setting for setting in list_settings(home, project, context) if setting.key is key)


def set_setting(
    home: Path, name: str, words: tuple[str, ...], project: str | None, context: OpenContext
) -> SettingChange:
    """
    Write one setting to config.toml, for all projects or for one.

    Raises UsageError for a bad value, UnknownProject for one that is to name a project.
    """
    key = key_of(name)
    value = key.from_words(words, "config set")
    if key.name == SHARED_PROJECTS:
        for word in words:
            if not Path(word).expanduser().is_absolute():
                context().open_store().projects.named(word)
    section = _section_of(key, project, context)
    ConfigFile(home).set(key, value, section)
    in_force = chosen(key, {})
    override = None if in_force.is_default else in_force.source
    acts, warnings = _take_effect(key, home, context)
    setting = Setting(key, Chosen(value, "config.toml"))
    excluded = _excluded(value, context()) if key.name == EXCLUDED_PROJECTS else []
    return SettingChange(setting, section, acts, override=override, warnings=warnings, excluded=excluded)


def unset_setting(home: Path, name: str, project: str | None, context: OpenContext) -> SettingChange:
    """Remove one setting from config.toml; the answer says what is in force for all projects then."""
    key = key_of(name)
    section = _section_of(key, project, context)
    is_changed = ConfigFile(home).unset(key, section)
    acts, warnings = _take_effect(key, home, context) if is_changed else (AT_ONCE, [])
    values, by_project = read_config(home)
    names = _names(None, context()) if by_project else []
    setting = Setting(key, chosen(key, values, by_project, names))
    return SettingChange(setting, section, acts, is_changed, warnings=warnings)


def _excluded(folders: object, context: Context) -> list[tuple[str, str]]:
    """Return the projects, as id and label, all of whose folders are excluded and that hold something."""
    store = context.open_store()
    above = [PurePath(folder) for folder in folders] if isinstance(folders, tuple) else []
    labels = store.projects.labels()
    return [
        (project.project_id, labels[project.project_id])
        for project in store.projects.all()
        if project.paths
        and all(any(PurePath(path).is_relative_to(each) for each in above) for path in project.paths)
        and store.lake.manifest.live(TURNS.name, project.project_id)
    ]


def publish_settings(context: Context) -> None:
    """Hand the hooks what they need to know of the settings; they cannot read TOML."""
    _, by_project = read_config(context.home)
    # Which folder belongs to which project is in the journal, which takes time to read.
    publish_hook_settings(context.home, context.open_store().projects.paths() if by_project else {})


def _take_effect(key: Key, home: Path, context: OpenContext) -> tuple[str, list[str]]:
    """Let a changed setting act, where a command can; return when it does, and why not at once."""
    changed = replace(context(), settings=load_settings(home))
    publish_settings(changed)
    if key.name.startswith("brief.") and not changed.open_store().is_empty:
        applied = apply_now(changed, APPLY)
        return AT_ONCE if applied.is_in_effect else NEXT_RUN, applied.warnings
    return key.acts, []


def _names(project: str | None, context: Context) -> list[str]:
    """Return the id and the folders of the named project, else of this folder's."""
    register = context.open_store().projects
    if project is None:
        here = register.known(str(context.folder))
        return [here, *register.paths_of(here)] if here else [str(context.folder)]
    if Path(project).is_absolute() and not register.known(project):
        return [project]
    return [
        name
        for project_id in register.named(project)
        for name in (project_id, *register.paths_of(project_id))
    ]


def _section_of(key: Key, project: str | None, context: OpenContext) -> str | None:
    if project is None:
        return None
    if not key.per_project:
        raise UsageError(f"{key.name} is one setting for all projects.", "Omit --project.")
    return _names(project, context())[0]


# -- Turns encryption at rest on and off.


@dataclass(frozen=True)
class Encrypted:
    """How many lake files were encrypted, with which key, kept in which file (None: the OS keyring)."""

    files: int
    key_id: str
    key_file: Path | None


def encrypt(context: Context, key_file: Path | None = None) -> Encrypted:
    """
    Encrypt every file of the lake, and all that are written from now on; generate a missing key.

    Raises UsageError if the store is encrypted with another key already.
    """
    path = key_file.expanduser().absolute() if key_file else context.settings.encryption_key_file
    with opened("encrypt", context) as run:
        key = _key_for(run, path)
        files = _rewrite(run, key)
    return Encrypted(files, key.id, path)


def decrypt(context: Context) -> int:
    """Write every file of the lake unencrypted again and return their number; the key stays where it is."""
    with opened("decrypt", context) as run:
        return _rewrite(run, None)


def _key_for(run: Run, path: Path | None) -> EncryptionKey:
    """Return the key to encrypt with; a key file is named in the settings before it is used."""
    key_id = run.store.lake.key_id
    if path is None:
        return run.store.lake.vault.key(key_id) if key_id else make_in_keyring()
    key = make_key_file(path, run.store.home)
    if key_id not in (None, key.id):
        raise UsageError(
            f"the store is already encrypted with the key {key_id}, and {path} holds {key.id}.",
            "To change the key: cortex decrypt, then cortex encrypt.",
        )
    if run.settings.encryption_key_file != path:
        ConfigFile(run.store.home).set(key_of("encryption.key_file"), str(path))
    return key


def _rewrite(run: Run, key: EncryptionKey | None) -> int:
    """Rewrite the lake in one commit, publish what reads it, and remove the replaced files."""
    from cortex.storage.model_calls import Arrivals

    run.store.journal.take_in()
    run.store.calls.take_in()
    arrivals = Arrivals(run.store.lake)
    waiting = arrivals.read()
    files = run.store.lake.reencrypt(key)
    for arrival in waiting:
        arrivals.write(arrival)
    run_plain(APPLY, run)
    return files
