"""Turns encryption at rest on and off."""

from dataclasses import dataclass
from pathlib import Path

from cortex.flows.context.context import Context
from cortex.flows.engines.engines import run_plain
from cortex.flows.engines.runs import opened
from cortex.flows.run.run import Run
from cortex.flows.stages.order import APPLY
from cortex.storage.lake.encryption import EncryptionKey, make_in_keyring, make_key_file
from cortex.storage.settings.config_file import ConfigFile
from cortex.storage.settings.setting_keys import key_of
from cortex.transforms.errors import UsageError


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
    from cortex.storage.model_calls.received_answers import Arrivals

    run.store.journal.take_in()
    run.store.calls.take_in()
    arrivals = Arrivals(run.store.lake)
    waiting = arrivals.read()
    files = run.store.lake.reencrypt(key)
    for arrival in waiting:
        arrivals.write(arrival)
    run_plain(APPLY, run)
    return files
