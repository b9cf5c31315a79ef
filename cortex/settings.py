"""Where the store lies and what the user chose: environment over config file over default."""

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

from cortex.errors import UsageError

DEFAULT_BRIEF_TOKENS = 1_000
MAXIMUM_BRIEF_TOKENS = 3_000  # spec 11.2


@dataclass(frozen=True)
class Settings:
    """
    What a run needs to know from outside.

    `home` is the store's folder; `voyage_api_key` turns on hosted embedding; `excluded_projects` are
    working directories that are never stored; `brief_tokens` is the brief's budget (1 to 3,000 tokens);
    `retention_days` is how long what was said is kept, 0 for ever.
    """

    home: Path
    voyage_api_key: str | None = None
    excluded_projects: tuple[str, ...] = ()
    brief_tokens: int = DEFAULT_BRIEF_TOKENS
    retention_days: int = 0

    def __repr__(self) -> str:
        """Show the settings with the key masked."""
        key = "set" if self.voyage_api_key else "unset"
        return f"Settings(home={str(self.home)!r}, voyage_api_key={key}, brief_tokens={self.brief_tokens})"


def store_home() -> Path:
    """Return the store's folder: `CORTEX_HOME`, else `~/.cortex`."""
    named = os.environ.get("CORTEX_HOME")
    return Path(named).expanduser().absolute() if named else Path.home() / ".cortex"


def load_settings(home: Path | None = None) -> Settings:
    """
    Return the settings of the store at `home` (default: `store_home()`).

    Reads `<home>/config.toml`. Raises UsageError when the file is not TOML or a value has the wrong kind.
    """
    home = home or store_home()
    chosen = _read_config(home / "config.toml")
    capture, brief, embed = (_section(chosen, name) for name in ("capture", "brief", "embed"))
    excluded = capture.get("excluded_projects", [])
    tokens = brief.get("tokens", DEFAULT_BRIEF_TOKENS)
    if not isinstance(excluded, list) or not all(isinstance(path, str) for path in excluded):
        raise UsageError(
            "config.toml: capture.excluded_projects is no list of paths.",
            'Write it as ["/path/one", "/path/two"].',
        )
    if not isinstance(tokens, int) or not 1 <= tokens <= MAXIMUM_BRIEF_TOKENS:
        raise UsageError(
            f"config.toml: brief.tokens is {tokens!r}.",
            f"Give a whole number from 1 to {MAXIMUM_BRIEF_TOKENS}.",
        )
    days = _section(chosen, "retention").get("days", 0)
    if not isinstance(days, int) or isinstance(days, bool) or days < 0:
        raise UsageError(
            f"config.toml: retention.days is {days!r}.", "Give a whole number of days; 0 keeps everything."
        )
    key = os.environ.get("VOYAGE_API_KEY") or embed.get("voyage_api_key")
    return Settings(
        home=home,
        voyage_api_key=str(key) if key else None,
        excluded_projects=tuple(excluded),
        brief_tokens=tokens,
        retention_days=days,
    )


def _read_config(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}.", "Mend or remove the file.") from error
    except PermissionError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.", "Check its permissions.") from error


def _section(chosen: dict[str, object], name: str) -> dict[str, object]:
    section = chosen.get(name, {})
    if not isinstance(section, dict):
        raise UsageError(f"config.toml: [{name}] is no section.", f"Write it as [{name}] with keys below.")
    return section
