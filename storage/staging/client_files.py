"""The settings file of the assistant's client, and what it was before Cortex changed it."""

import json
import os
from pathlib import Path

from cortex.hooks import ticket
from cortex.storage.filesystem.files import replacing
from cortex.transforms.documents.client_settings import Json
from cortex.transforms.errors import ClientSettingsUnusable

# Of what the client enables; the plugin brings the same hooks.
PLUGIN = "cortex-lake"

# Beside the settings, readable by the user alone: it may hold keys, as they do.
BACKUP_NAME = "settings.json.before-cortex"


def client_folder() -> Path:
    """Return the client's own folder: `CLAUDE_CONFIG_DIR`, else `~/.claude`."""
    named = os.environ.get("CLAUDE_CONFIG_DIR")
    return Path(named).expanduser().absolute() if named else Path.home() / ".claude"


def launcher() -> Path:
    """Return the script that starts a hook, where this package is installed."""
    return Path(ticket.__file__).absolute().with_name("run.sh")


def plugin_hooks() -> Json:
    """Return the plugin's own list of hooks."""
    hooks: Json = json.loads(launcher().with_name("hooks.json").read_bytes())
    return hooks


def is_plugin_enabled(settings: Json) -> bool:
    """Return whether the plugin is on in the user's settings."""
    enabled = settings.get("enabledPlugins")
    named = enabled.items() if isinstance(enabled, dict) else ()
    return any(name.split("@")[0] == PLUGIN and bool(state) for name, state in named)


class SettingsFile:
    """
    The client's user settings, `settings.json` in its folder.

    Links are followed; the file that a link names is replaced, with its mode and owner kept.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "settings.json"
        self._backup = folder / BACKUP_NAME

    def read(self) -> str | None:
        """Return the text, every byte of it; None if there is no file. Raises ClientSettingsUnusable."""
        try:
            return self.path.read_bytes().decode("utf-8")
        except FileNotFoundError:
            if self.path.is_symlink():
                raise self._unusable("it is a broken link") from None
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise self._unusable(getattr(error, "strerror", None) or str(error)) from error

    def write(self, text: str | None, *, was: str | None) -> None:
        """
        Replace the text by one rename; None removes the file. `was` is what `read` gave.

        Raises ClientSettingsUnusable if the file has changed since or may not be written.
        """
        if self.read() != was:
            raise self._unusable("another program has just changed it")
        try:
            if text is None:
                self.path.unlink()
                return
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _replace(Path(os.path.realpath(self.path)), text.encode())
        except OSError as error:
            raise self._unusable(error.strerror or str(error)) from error

    def backup(self) -> str | None:
        """Return the text from before Cortex was put in; None if there was no file, or no longer is."""
        try:
            return self._backup.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def keep_backup(self, text: str | None) -> None:
        """Keep the text from before a change; None, that there was no file. Raises ClientSettingsUnusable."""
        try:
            if text is None:
                self._backup.unlink(missing_ok=True)
            else:
                _replace(self._backup, text.encode())
        except OSError as error:
            raise self._unusable(error.strerror or str(error)) from error

    def _unusable(self, problem: str) -> ClientSettingsUnusable:
        return ClientSettingsUnusable(
            f"{self.path} was left as it is: {problem}.", "Correct that and try again."
        )


def _replace(path: Path, content: bytes) -> None:
    with replacing(path) as part:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)  # it may hold keys
        with os.fdopen(descriptor, "wb") as file:
            if path.exists():
                before = path.stat()
                if (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(file.fileno(), before.st_uid, before.st_gid)
                os.fchmod(file.fileno(), before.st_mode & 0o7777)
            file.write(content)
