"""Encryption at rest: AES-256-GCM over whole files, with a key from a file or from the OS keyring."""

import base64
import binascii
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from cortex.hooks.ticket import sync_file
from cortex.storage.filesystem.files import replacing, writing_to
from cortex.storage.filesystem.place import install_extra
from cortex.storage.settings.settings import load_settings
from cortex.transforms.errors import FileDamaged, KeyUnavailable, NotFound, UsageError

# Ends the names of sealed files, so that a name says what a file has to be, whatever its bytes say.
ENCRYPTED = ".aes"

# Header: magic, format, the key's id, the nonce. Ciphertext and tag (16 bytes) follow.
MAGIC, FORMAT = b"CORTEX\xc5\x1a", b"\x01"
KEY_BYTES, ID_BYTES, NONCE_BYTES, TAG_BYTES = 32, 8, 12, 16
HEADER_BYTES = len(MAGIC) + len(FORMAT) + ID_BYTES + NONCE_BYTES

# The library takes no more in one call. A lake file of that size holds about 20 GB of transcripts.
MAXIMUM_BYTES = 2**31 - 1 - TAG_BYTES

KEYRING_SERVICE = "cortex-lake"


@dataclass(frozen=True)
class EncryptionKey:
    """32 bytes, never shown; `id` is the beginning of their hash and tells keys apart."""

    secret: bytes = field(repr=False)

    @cached_property
    def id(self) -> str:
        """Return 16 hex digits that say nothing of the key."""
        return hashlib.sha256(b"cortex key id" + self.secret).hexdigest()[: ID_BYTES * 2]


def new_key() -> EncryptionKey:
    """Return a key that nobody has."""
    return EncryptionKey(os.urandom(KEY_BYTES))


def encrypted_bytes(key: EncryptionKey, plain: bytes, place: str) -> bytes:
    """
    Return `plain` encrypted, to be read at `place` alone: its path and table are part of what is checked.

    The nonce is new each time: 96 random bits, good for 2**32 files with one key. Raises KeyUnavailable if
    the library is missing.
    """
    if len(plain) > MAXIMUM_BYTES:
        raise UsageError(
            f"{place} has {len(plain):,} bytes, more than can be sealed as one file.",
            "Decrypt the store (cortex decrypt) and encrypt the disk instead.",
        )
    header = MAGIC + FORMAT + bytes.fromhex(key.id) + os.urandom(NONCE_BYTES)
    nonce = header[-NONCE_BYTES:]
    encrypted: bytes = _cipher(key).encrypt(nonce, plain, header + place.encode())
    return header + encrypted


def decrypted_bytes(key: EncryptionKey, encrypted: bytes, place: str) -> bytes:
    """
    Return what was sealed for `place`, whole and as it was.

    Raises FileDamaged if a bit differs or the file was made for another place, KeyUnavailable if it
    was sealed with another key.
    """
    written_with = key_id_of(encrypted, place)
    if written_with != key.id:
        raise _other_key(place, written_with, "the key given", key)
    cipher, header = _cipher(key), encrypted[:HEADER_BYTES]
    from cryptography.exceptions import InvalidTag

    try:
        plain: bytes = cipher.decrypt(
            header[-NONCE_BYTES:], encrypted[HEADER_BYTES:], header + place.encode()
        )
    except InvalidTag as error:
        raise _damaged(place, "differs from what was encrypted") from error
    return plain


def key_id_of(encrypted: bytes, place: str) -> str:
    """Return the id of the key that `encrypted` was written with. Raises FileDamaged without a header."""
    if not is_sealed(encrypted) or len(encrypted) < HEADER_BYTES + TAG_BYTES:
        raise _damaged(place, "has no Cortex header")
    start = len(MAGIC) + len(FORMAT)
    return encrypted[start : start + ID_BYTES].hex()


def is_sealed(content: bytes) -> bool:
    """Return whether `content` begins as a sealed file does."""
    return content.startswith(MAGIC + FORMAT)


class Vault:
    """What seals and opens the files of one store; the key is looked for when it is first needed."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._keys: dict[str, EncryptionKey] = {}

    def encrypted_bytes(self, plain: bytes, place: str, key_id: str) -> bytes:
        """Return `plain` sealed with the store's key. Raises KeyUnavailable."""
        return encrypted_bytes(self.key(key_id), plain, place)

    def decrypted_bytes(self, encrypted: bytes, place: str) -> bytes:
        """Return what was sealed. Raises FileDamaged and KeyUnavailable."""
        return decrypted_bytes(self.key(key_id_of(encrypted, place)), encrypted, place)

    def key(self, key_id: str) -> EncryptionKey:
        """Return the key called `key_id`, from the file that the settings name or the keyring."""
        if key_id not in self._keys:
            self._keys[key_id] = find_key(self._home, key_id)
        return self._keys[key_id]


def find_key(home: Path, key_id: str) -> EncryptionKey:
    """Return the key called `key_id`. Raises KeyUnavailable if it is missing or another is there."""
    named = load_settings(home).encryption_key_file
    key = read_key_file(named) if named else _from_keyring(key_id)
    if key.id != key_id:
        raise _other_key("the store", key_id, str(named or "the keyring"), key)
    return key


def read_key_file(path: Path) -> EncryptionKey:
    """Return the key in `path`: 32 bytes in base64. Raises KeyUnavailable."""
    try:
        secret = base64.b64decode(path.read_bytes().strip(), validate=True)
    except OSError as error:
        raise KeyUnavailable(
            f"the key file {path} cannot be read ({(error.strerror or 'input error').lower()}).",
            "Put it back, or name where it is now: CORTEX_ENCRYPTION_KEY_FILE=PATH, for good "
            "`cortex config set encryption.key_file PATH`.",
        ) from error
    except (binascii.Error, ValueError) as error:
        raise _no_key(path) from error
    if len(secret) != KEY_BYTES:
        raise _no_key(path)
    return EncryptionKey(secret)


def make_key_file(path: Path, home: Path) -> EncryptionKey:
    """
    Write a new key to `path`, readable by its owner alone; one that is there already is read and kept.

    Raises UsageError for a path within the store: who copies the store must not copy the key with it.
    """
    if path.resolve().is_relative_to(home.resolve()):
        raise UsageError(f"{path} is inside the store that it would encrypt.", "Give a path outside of it.")
    if path.exists():
        return read_key_file(path)
    if not path.parent.is_dir():
        raise NotFound(f"there is no folder {path.parent}.", "Create it, or name another path for the key.")
    key = new_key()
    # Whole or not at all: half a key would lock nothing and look like one.
    with writing_to(path.parent), replacing(path.absolute()) as part:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(base64.b64encode(key.secret) + b"\n")
    return key


def make_in_keyring() -> EncryptionKey:
    """Put a new key into the OS keyring. Raises KeyUnavailable if there is none."""
    key = new_key()
    with _keyring("keep the key in a file: cortex encrypt --key-file PATH") as ring:
        ring.set_password(KEYRING_SERVICE, key.id, base64.b64encode(key.secret).decode())
    return key


def _from_keyring(key_id: str) -> EncryptionKey:
    with _keyring("name the key's file: CORTEX_ENCRYPTION_KEY_FILE=PATH") as ring:
        secret = ring.get_password(KEYRING_SERVICE, key_id)
    if not secret:
        raise KeyUnavailable(
            f"the OS keyring does not hold the key {key_id}.",
            "Unlock it, or name a key file: cortex config set encryption.key_file PATH",
        )
    return EncryptionKey(base64.b64decode(secret))


@contextmanager
def _keyring(otherwise: str) -> Iterator[Any]:
    """Give the OS keyring. Raises KeyUnavailable, whose hint ends with what to do `otherwise`."""
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError as missing:
        raise KeyUnavailable(
            "the library 'keyring' is not installed.",
            f"{install_extra('encryption')}, or {otherwise}",
        ) from missing
    try:
        yield keyring
    except (
        KeyringError
    ) as error:  # no keyring on this machine, or locked; its message may quote what it holds
        raise KeyUnavailable(
            f"the OS keyring does not answer ({type(error).__name__}).",
            f"Unlock it, or {otherwise}",
        ) from error


def _cipher(key: EncryptionKey) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as missing:
        raise KeyUnavailable(
            "the library 'cryptography' is not installed.",
            f"{install_extra('encryption')}.",
        ) from missing
    return AESGCM(key.secret)


def _other_key(what: str, written_with: str, holder: str, key: EncryptionKey) -> KeyUnavailable:
    return KeyUnavailable(
        f"{what} is sealed with the key {written_with}, and {holder} holds {key.id}.",
        "Name the file of the right key: cortex config set encryption.key_file PATH",
    )


def _no_key(path: Path) -> KeyUnavailable:
    return KeyUnavailable(
        f"{path} holds no key (32 bytes in base64).", "Name the file that `cortex encrypt` made."
    )


def _damaged(place: str, why: str) -> FileDamaged:
    return FileDamaged(
        f"the file {place} {why}: it was changed, moved or cut.", "Restore the store from a backup."
    )


# -- The key by which a user's own exports are known again: one a user and machine, outside every store.

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
                sync_file(out.fileno())
            os.link(part, path)  # refuses to replace a key that another process wrote meanwhile
        finally:
            part.unlink()
    return read_export_key()
