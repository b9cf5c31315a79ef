"""Where the store lies and what the user chose: environment over project over config file over default."""

import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from cortex.storage.filesystem.place import store_home
from cortex.storage.settings.setting_keys import BY_NAME, KEYS, Key, key_of
from cortex.transforms.errors import UsageError

# `[project."<id or folder>".brief]`: the sections that hold for one project.
PROJECT_SECTION = "project"

_NOT_IN_PATHS = re.compile(r"[\x00-\x1f\x7f?\\]")

# The names that the providers' own tools use.
ALSO_READ = {
    "embed.voyage_api_key": "VOYAGE_API_KEY",
    "models.api_key": "ANTHROPIC_API_KEY",
    "models.claude_token": "CLAUDE_CODE_OAUTH_TOKEN",
}


def _same(value: Any) -> Any:
    return value


def _none_if_empty(text: str) -> str | None:
    return text or None


def _path(text: str) -> Path | None:
    return Path(text).expanduser() if text else None


def _setting(name: str, read: Callable[[Any], Any] = _same) -> Any:
    """Return a field that holds the setting `name`; `read` turns its value into the field's type."""
    key = BY_NAME[name]
    return field(default=read(key.default), repr=not key.is_secret, metadata={"key": key, "read": read})


@dataclass(frozen=True)
class ModelSettings:
    """
    The language model: `writer` is none, api or claude, `writer_model` its name.

    `base_url` is None for Anthropic's own endpoint. With `replays` the answers that the store holds count,
    and nothing is asked.
    """

    writer: str = _setting("models.writer")
    writer_model: str = _setting("models.writer_model")
    api_key: str | None = _setting("models.api_key", _none_if_empty)
    claude_token: str | None = _setting("models.claude_token", _none_if_empty)
    base_url: str | None = _setting("models.base_url", _none_if_empty)
    replays: bool = _setting("models.replay")

    @property
    def uses_replies(self) -> bool:
        """Return whether what a language model wrote counts, asked for now or recorded."""
        return self.is_on or self.replays

    @property
    def is_on(self) -> bool:
        """Return whether a person chose a language model."""
        return self.writer != "none"


@dataclass(frozen=True)
class ModelBudget:
    """What a language model may cost: dollars and requests per UTC day, requests per run."""

    daily_usd: float = _setting("budget.daily_usd")
    daily_requests: int = _setting("budget.daily_requests")
    run_requests: int = _setting("budget.run_requests")


@dataclass(frozen=True)
class ClientLimits:
    """
    What an MCP client may do.

    `projects` are folders of projects that it may see besides its own ("*" for all); `calls_per_minute` is
    the most calls within any 60 seconds; with `in_plugin` the plugin starts the server. Over HTTP: `issuer`
    is the identity provider whose tokens count, `keys_url` where its keys are if it does not say so itself,
    `resource_url` the address that tokens are made for, and `http_projects` what callers see, FOLDER for all
    of them or SUBJECT=FOLDER for one.
    """

    projects: tuple[str, ...] = _setting("mcp.projects")
    calls_per_minute: int = _setting("mcp.calls_per_minute")
    in_plugin: bool = _setting("mcp.in_plugin")
    issuer: str = _setting("mcp.issuer")
    keys_url: str = _setting("mcp.keys_url")
    resource_url: str = _setting("mcp.resource_url")
    http_projects: tuple[str, ...] = _setting("mcp.http_projects")
    http_roles: tuple[str, ...] = _setting("mcp.http_roles")


@dataclass(frozen=True)
class ShareSettings:
    """
    What is pushed to colleagues: `place` is the URI of a bucket or folder, `projects` are folders, `key_file`
    holds the team's key, None if pushed memories are not encrypted.
    """

    place: str = _setting("share.place")
    projects: tuple[str, ...] = _setting("share.projects")
    key_file: Path | None = _setting("share.key_file", _path)  # noqa: RUF009


@dataclass(frozen=True)
class WorkerSettings:
    """
    What works in addition to a run with Prefect: `runner` is none, threads, dask or ray.

    `workers` are started on this machine, 0 means one for each core; `cluster` instead is the address of a
    Dask or Ray cluster that runs already.
    """

    runner: str = _setting("run.runner")
    workers: int = _setting("run.workers")
    cluster: str = _setting("run.cluster")


@dataclass(frozen=True)
class Settings:
    """
    What a run needs to know from outside.

    `home` is the store's folder; `voyage_api_key` turns on hosted embedding, `embeds_locally` the local
    model; `excluded_projects` are working directories that are never stored; a transcript with fewer than
    `min_chars` characters waits until it has more; `brief_tokens` is the brief's budget (1 to 3,000 tokens;
    0: as the policy has it); `brief_surface` is where it stands, `hook` or a file of the project
    (cortex.transforms.documents.marker_block.file_of); `retention_days` is how long what was said is kept, 0
    for ever, `retention_types` the same for memories of a type, as texts "type=days"; `redacts_personal_data`
    takes e-mail addresses and phone numbers for secrets; `encryption_key_file` holds the key of an encrypted
    store, None means the OS keyring; `engine` runs the stages (auto, prefect or plain), `workers` their
    shards; `mcp` is what an MCP client may do; `share` what is pushed to colleagues; `models` says which
    language model writes, and `budget` what it may cost; `by_project` is what the file says of single
    projects, by id or folder.
    """

    home: Path
    voyage_api_key: str | None = _setting("embed.voyage_api_key", _none_if_empty)
    embeds_locally: bool = _setting("embed.local")
    excluded_projects: tuple[str, ...] = _setting("capture.excluded_projects")
    min_chars: int = _setting("capture.min_chars")
    brief_tokens: int = _setting("brief.tokens")
    brief_surface: str = _setting("brief.surface")
    retention_days: int = _setting("retention.days")
    retention_types: tuple[str, ...] = _setting("retention.types")
    redacts_personal_data: bool = _setting("redact.personal_data")
    encryption_key_file: Path | None = _setting("encryption.key_file", _path)  # noqa: RUF009
    engine: str = _setting("run.engine")
    workers: WorkerSettings = WorkerSettings()
    mcp: ClientLimits = ClientLimits()
    share: ShareSettings = ShareSettings()
    models: ModelSettings = ModelSettings()
    budget: ModelBudget = ModelBudget()
    by_project: Mapping[str, Mapping[str, object]] = field(default_factory=dict)

    def of_project(self, project_id: str, folders: Sequence[str]) -> "Settings":
        """Return the settings that hold for a project, by its id or one of its folders."""
        names = [project_id, *folders]
        may_differ = (each for each in fields(self) if each.metadata and each.metadata["key"].per_project)
        own = {each.name: chosen(each.metadata["key"], {}, self.by_project, names) for each in may_differ}
        values: dict[str, Any] = {name: each.value for name, each in own.items() if not each.is_default}
        return replace(self, **values)

    def __repr__(self) -> str:
        """Show the settings with the key masked."""
        key = "set" if self.voyage_api_key else "unset"
        return f"Settings(home={str(self.home)!r}, voyage_api_key={key}, brief_tokens={self.brief_tokens})"


@dataclass(frozen=True)
class Chosen:
    """A setting's value and where it comes from."""

    value: Any
    source: str

    @property
    def is_default(self) -> bool:
        """Return whether nobody chose it."""
        return self.source == "default"


def _check_path(home: Path) -> None:
    """Raise UsageError for a path that the vector store (control characters) or DuckDB cannot open."""
    if match := _NOT_IN_PATHS.search(str(home)):
        raise UsageError(
            f"The store's path has the character {match[0]!r}, which its tables do not allow: {str(home)!r}.",
            "Set CORTEX_HOME to another folder, or rename this one.",
        )


def load_settings(home: Path | None = None) -> Settings:
    """
    Return the settings of the store at `home` (default: `store_home()`).

    Reads `<home>/config.toml`. Raises UsageError when the file is not TOML, names a setting that there is
    not, or a value has the wrong kind.
    """
    home = home or store_home()
    _check_path(home)
    values, by_project = read_config(home)
    chosen_values = {key.name: chosen(key, values).value for key in KEYS}
    settings: Settings = _chosen_fields(Settings(home, by_project=by_project), chosen_values)
    return settings


def _chosen_fields(settings: Any, values: Mapping[str, Any]) -> Any:
    """Return a dataclass of settings with `values` (by setting) in its fields and those of its sections."""
    own: dict[str, Any] = {}
    for each in fields(settings):
        if each.metadata:
            own[each.name] = each.metadata["read"](values[each.metadata["key"].name])
        elif is_dataclass(section := getattr(settings, each.name)):
            own[each.name] = _chosen_fields(section, values)
    return replace(settings, **own)


def chosen(
    key: Key,
    values: Mapping[str, object],
    by_project: Mapping[str, Mapping[str, object]] | None = None,
    names: Sequence[str] = (),
) -> Chosen:
    """
    Return the value of `key`: environment over the project's sections over the file's own over the default.

    `values` and `by_project` are what `read_config` gives, `names` the project's id and folders. Raises
    UsageError for a variable whose value has the wrong kind.
    """
    for variable in (key.variable, ALSO_READ.get(key.name, "")):
        if variable and os.environ.get(variable):
            return Chosen(key.from_variable(os.environ[variable], variable), variable)
    for name in names:
        if key.name in (by_project or {}).get(name, {}):
            return Chosen((by_project or {})[name][key.name], f'config.toml, project "{name}"')
    if key.name in values:
        return Chosen(values[key.name], "config.toml")
    return Chosen(key.default, "default")


def read_config(home: Path) -> tuple[dict[str, object], dict[str, dict[str, object]]]:
    """
    Return what `<home>/config.toml` says: setting → value, and project → setting → value.

    Raises UsageError as `load_settings` does.
    """
    document = _read_toml(home / "config.toml")
    projects = _section(document.pop(PROJECT_SECTION, {}), PROJECT_SECTION)
    return _checked(document, "config.toml"), {
        name: _checked(_section(document, name), f'config.toml, project "{name}"', per_project=True)
        for name, document in projects.items()
    }


def _checked(document: Mapping[str, object], where: str, *, per_project: bool = False) -> dict[str, object]:
    values: dict[str, object] = {}
    for section, members in document.items():
        for name, value in _section(members, section).items():
            key = key_of(f"{section}.{name}", where)
            if per_project and not key.per_project:
                raise UsageError(
                    f"{where}: {key.name} holds for all projects.", "Move it out of the section."
                )
            values[key.name] = key.checked(value, where)
    return values


def _read_toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}.", "Correct or remove the file.") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.", "Check its permissions.") from error


def _section(value: object, name: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise UsageError(f"config.toml: [{name}] is not a section.", f"Write it as [{name}] with keys below.")
    return value
