"""The key by which a user's own exports are known again: one a user and machine, outside every store."""

import os
from contextlib import suppress
from pathlib import Path

KEY_BYTES = 32


def export_key_path() -> Path:
    """Return where the key is stored: the user's configuration folder, since an export outlives its store."""
    folder = os.environ.get("XDG_CONFIG_HOME")
    return (Path(folder) if folder else Path.home() / ".config") / "cortex" / "export.key"


def read_export_key() -> bytes | None:
    """Return the key; None if there is none or it may not be read."""
    try:
        key = bytes.fromhex(export_key_path().read_text(encoding="ascii").strip())
    except (OSError, ValueError):
        return None
    return key if len(key) == KEY_BYTES else None


def own_export_key() -> bytes | None:
    """Return the key, made on first use and readable by its user alone; None if it cannot be written."""
    path = export_key_path()
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(file, "w", encoding="ascii") as out:
                out.write(os.urandom(KEY_BYTES).hex() + "\n")
                out.flush()
                os.fsync(out.fileno())
            os.link(part, path)  # refuses to replace a key that another process wrote meanwhile
        finally:
            part.unlink()
    return read_export_key()
