"""The settings file of the assistant's client, and a note of what was put into it, to take it back."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from cortex.hooks import ticket
from cortex.storage.files import replacing, write_atomically, writing_to
from cortex.transforms.errors import ClientSettingsUnusable
from cortex.transforms.files.json_text import Change, Json

# Of what the client enables; the plugin brings the same hooks.
PLUGIN = "cortex-lake"

# Below the home.
NOTES_PATH = "client_settings.json"

HOOKS, STATUS_LINE = "hooks", "status_line"


def client_folder() -> Path:
    """Return the client's own folder: `CLAUDE_CONFIG_DIR`, else `~/.claude`."""
    named = os.environ.get("CLAUDE_CONFIG_DIR")
    return Path(named).expanduser().absolute() if named else Path.home() / ".claude"


def launcher() -> Path:
    """Return the script that starts a hook, where this package is installed."""
    return Path(ticket.__file__).absolute().with_name("run.sh")


def plugin_hooks() -> Json:
    """Return the plugin's own list of hooks."""
    told: Json = json.loads(launcher().with_name("hooks.json").read_bytes())
    return told


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

    def read(self) -> str | None:
        """Return the text, every byte of it; None where there is no file. Raises ClientSettingsUnusable."""
        try:
            return self.path.read_bytes().decode("utf-8")
        except FileNotFoundError:
            if self.path.is_symlink():
                raise self._unusable("it is a link to nothing") from None
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise self._unusable(getattr(error, "strerror", None) or str(error)) from error

    def write(self, text: str | None, *, was: str | None) -> None:
        """
        Replace the text by one rename; None removes the file. `was` is what `read` gave.

        Raises ClientSettingsUnusable where the file has changed since or may not be written.
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

    def _unusable(self, problem: str) -> ClientSettingsUnusable:
        return ClientSettingsUnusable(
            f"{self.path} was left as it is: {problem}.", "Mend that and try again."
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


@dataclass
class Note:
    """
    What was put into one settings file.

    `changes` is by part (`hooks`, `status_line`); `is_made` says that there was no file before.
    """

    changes: dict[str, tuple[Change, ...]] = field(default_factory=dict)
    is_made: bool = False


class Notes:
    """The notes of every settings file, in `<home>/client_settings.json`; they hold our own text alone."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._path = home / NOTES_PATH

    def read(self, settings: Path) -> Note:
        """Return the note of a settings file; an empty one where there is none or it cannot be read."""
        told = self._all().get(str(settings), {})
        try:
            changes = {
                part: tuple(Change(was, put) for was, put in listed)
                for part, listed in told.get("changes", {}).items()
            }
            return Note(changes, bool(told.get("is_made")))
        except (ValueError, TypeError, AttributeError):
            return Note()

    def write(self, settings: Path, note: Note) -> None:
        """Keep a note; one without changes is dropped."""
        told = self._all()
        told.pop(str(settings), None)
        if note.changes:
            changes = {part: [[c.was, c.put] for c in listed] for part, listed in note.changes.items()}
            told[str(settings)] = {"changes": changes, "is_made": note.is_made}
        with writing_to(self._home):
            if told:
                self._home.mkdir(parents=True, exist_ok=True)
                write_atomically(self._path, json.dumps(told, ensure_ascii=False, indent=1).encode())
            else:
                self._path.unlink(missing_ok=True)

    def _all(self) -> Json:
        try:
            told = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        return told if isinstance(told, dict) else {}
