"""The commands `export`, `import`, `backup`, `restore`, `encrypt` and `decrypt`: the store as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import AS_OF, PROJECT_OPTION, Answer, command, hint, size_of, write_text
from cortex.transforms.words.ages import counted

if TYPE_CHECKING:
    from cortex.flows.context import Context
    from cortex.flows.operations.share.exchange import Restored
    from cortex.storage.copies.backup import Backup


@command("export", "Write memories as JSON or Markdown.", place=30)
@click.argument("file", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "markdown"]),
    default="json",
    show_default=True,
    help="json: complete; markdown: a list to read.",
)
@PROJECT_OPTION
@AS_OF
def export(
    context: Context, file: str | None, form: str, project: str | None, as_of: str | None
) -> Answer | None:
    """
    Write memories to FILE or to standard output, by default those of every project.

    JSON holds everything, and `cortex import` puts it back as it was. Markdown holds text, type and project
    of the active memories.
    """
    from cortex.flows.operations.share import exchange

    path = Path(file) if file is not None else None
    exported = exchange.export(context, path, form=form, project=project, as_of=as_of)
    warnings = []
    if not exported.is_signed:
        warnings.append(
            "Not signed, since the key cannot be written: import it with --own, or it counts as external."
        )
    if path is None:
        for line in warnings:
            hint(line)
        write_text(exported.text)
        return None
    keeps_all = "Markdown keeps text, type and project of active memories. To keep everything: --format json"
    return Answer(
        {"file": str(path), "memories": exported.memories},
        [f"{counted(exported.memories, 'memory')} written to {path}."],
        [keeps_all] if form == "markdown" else [],
        warnings,
    )


@command("backup", "Write the store to one file.", place=10)
@click.argument("file", type=click.Path(path_type=Path))
def backup(context: Context, file: Path) -> Answer:
    """Write the whole store to one FILE (tar, zstd), with the hash of each part inside."""
    from cortex.flows.operations.share import exchange

    written = exchange.backup(context, file)
    return _answer("Written", file, exchange.Restored(written, None, ()))


@command("restore", "Replace the store with a backup.", place=20)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--into", type=click.Path(path_type=Path), help="Restore into this folder instead of replacing the store."
)
def restore(context: Context, file: Path, into: Path | None) -> Answer:
    """Check the backup FILE and replace the store with it; the old store is kept next to it."""
    from cortex.flows.operations.share import exchange

    return _answer("Restored", file, exchange.restore(context, file, into=into))


def _answer(verb: str, file: Path, result: Restored) -> Answer:
    backup: Backup = result.backup
    data = {
        "file": str(file),
        "files": len(backup.files),
        "rows": backup.rows,
        "bytes": backup.bytes,
        "previous_store": str(result.previous) if result.previous else None,
        "set_aside": [str(path) for path in result.quarantined],
    }
    rows = ", ".join(f"{name} {count:,}" for name, count in sorted(backup.rows.items()))
    hints = []
    if result.previous is not None:
        hints.append(f"The previous store is now at {result.previous}. Remove it when everything works.")
    if result.quarantined:
        hints.append(
            "The backup's settings and policy are not applied: the store keeps its own, or the defaults. "
            f"Those of the backup are in {' and '.join(map(str, result.quarantined))}; "
            "read them before you use them."
        )
    size = size_of(backup.bytes)
    return Answer(data, [f"{verb}: {file}, {len(backup.files)} files, {size}; {rows}."], hints)


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
    from cortex.flows.operations.maintain import config

    encrypted = config.encrypt(context, key_file)
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
    from cortex.flows.operations.maintain import config

    if context.open_store().lake.key_id is None:
        return Answer({"encrypted": False, "files": 0}, ["The store is not encrypted: nothing to do."])
    files = config.decrypt(context)
    line = f"Decrypted: {files} lake files. The key is still there: earlier backups need it."
    return Answer({"encrypted": False, "files": files}, [line])
