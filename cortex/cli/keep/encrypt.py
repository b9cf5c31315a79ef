"""The commands `encrypt` and `decrypt`: encryption at rest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command

if TYPE_CHECKING:
    from cortex.flows.context.context import Context


@command("encrypt", "Encrypt the lake on disk.", place=40)
@click.option(
    "--key-file",
    type=click.Path(path_type=Path),
    help="Keep the key in this file (created if missing) instead of the OS keyring.",
)
def encrypt(context: Context, key_file: Path | None) -> Answer:
    """Encrypt conversations, events and journal on disk (AES-256-GCM), now and from now on.

    Later backups are encrypted too. Tables, briefs and the hooks' index stay unencrypted for the programs
    that read them; to protect these, encrypt the disk.
    """
    from cortex.flows.operations.care import encrypt

    encrypted = encrypt.encrypt(context, key_file)
    place = str(encrypted.key_file) if encrypted.key_file else "the OS keyring"
    return Answer(
        {"encrypted": True, "files": encrypted.files, "key": encrypted.key_id, "key_in": place},
        [f"Encrypted: {encrypted.files} lake files; key {encrypted.key_id} in {place}."],
        [
            "Keep a copy of the key elsewhere: without it neither the lake nor its backups can be read.",
            "Tables, briefs and the hooks' index stay unencrypted; only an encrypted disk covers these.",
        ],
    )


@command("decrypt", "Write the lake unencrypted again.", place=50)
def decrypt(context: Context) -> Answer:
    """Turn encryption off: write every file of the lake unencrypted."""
    from cortex.flows.operations.care import encrypt

    files = encrypt.decrypt(context)
    line = f"Decrypted: {files} lake files. The key is still there: earlier backups need it."
    return Answer({"encrypted": False, "files": files}, [line])
