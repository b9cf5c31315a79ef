"""The commands that turn encryption at rest on and off: encrypt, decrypt."""

from pathlib import Path

from cortex.cli.present import present
from cortex.cli.terminal import hint, print_json, say
from cortex.flows.engines import run_plain
from cortex.flows.run import Run
from cortex.flows.runs import opened
from cortex.flows.stages.order import APPLY
from cortex.storage.config_file import ConfigFile
from cortex.storage.encryption import Key, make_in_keyring, make_key_file
from cortex.storage.setting_keys import key_of
from cortex.storage.settings import load_settings
from cortex.transforms.errors import UsageError


def encrypt(key_file: Path | None, *, as_json: bool) -> None:
    """Seal every file of the lake, and all that are written from now on; make the key where there is none."""
    settings = load_settings()
    chosen = key_file.expanduser().absolute() if key_file else settings.encryption_key_file
    with opened("encrypt", present(settings)) as run:
        key = _key_for(run, chosen)
        files = _reseal(run, key)
    where = str(chosen) if chosen else "the OS keyring"
    if as_json:
        return print_json({"encrypted": True, "files": files, "key": key.id, "key_in": where})
    say(f"Encrypted: {files} lake files; key {key.id} in {where}.")
    hint("Keep a copy of the key elsewhere: without it neither the lake nor its backups can be read.")
    return hint("In clear stay tables, briefs and the hooks' index; only an encrypted disk covers these.")


def decrypt(*, as_json: bool) -> None:
    """Write every file of the lake in clear again; the key stays where it is."""
    with opened("decrypt", present()) as run:
        files = _reseal(run, None)
    if as_json:
        return print_json({"encrypted": False, "files": files})
    return say(f"Decrypted: {files} lake files. The key is still there: backups made before need it.")


def _key_for(run: Run, chosen: Path | None) -> Key:
    """Return the key to seal with; a key file is named in the settings before anything is sealed with it."""
    sealed_with = run.store.lake.key_id
    if chosen is None:
        return run.store.lake.vault.key(sealed_with) if sealed_with else make_in_keyring()
    key = make_key_file(chosen, run.store.home)
    if sealed_with not in (None, key.id):
        raise UsageError(
            f"the store is sealed with the key {sealed_with} already, and {chosen} holds {key.id}.",
            "To change the key: cortex decrypt, then cortex encrypt.",
        )
    if run.settings.encryption_key_file != chosen:
        ConfigFile(run.store.home).set(key_of("encryption.key_file"), str(chosen))
    return key


def _reseal(run: Run, key: Key | None) -> int:
    """Rewrite the lake in one commit, publish what reads it, and remove the replaced files."""
    run.store.journal.take_in()
    files = run.store.lake.reseal(key)
    run_plain(APPLY, run)
    return files
