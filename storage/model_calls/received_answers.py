"""
Answers of a language model that have arrived and are not kept yet: one file each, in `runs/arrivals/`.

An answer is paid for when it arrives. It is written here before anything else is done with it, so that a run
killed while it makes facts of it leaves it to the next one. Its words are redacted, and sealed where the lake
is.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from cortex.storage.ground.files import sync_folder, write_atomically, writing_to
from cortex.storage.lake.encryption import is_sealed
from cortex.storage.lake.lake import Lake
from cortex.storage.model_calls.spending import ARRIVALS_PATH, arrival_path
from cortex.transforms.errors import FileDamaged
from cortex.transforms.writer.request import Reply


@dataclass(frozen=True)
class Arrival:
    """An answer that was paid for: its reservation, its price in billionths of a dollar, when it came."""

    attempt_id: int
    nano: int
    arrived_at: datetime
    reply: Reply


class Arrivals:
    """The answers that wait to be kept in `lake`, by request id. Written and removed under the lease."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._folder = lake.home / ARRIVALS_PATH

    def write(self, arrival: Arrival) -> None:
        """Write an answer down, durable. Raises StoreNotWritable and KeyUnavailable."""
        fields = {**asdict(arrival), "arrived_at": arrival.arrived_at.isoformat()}
        content = json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace")
        path = arrival_path(self._lake.home, arrival.reply.request_id)
        if self._lake.key_id:
            content = self._lake.vault.encrypted_bytes(content, _place(path), self._lake.key_id)
        with writing_to(self._lake.home):
            self._folder.mkdir(parents=True, exist_ok=True)
            sync_folder(self._folder.parent)
            write_atomically(path, content)

    def read(self) -> list[Arrival]:
        """
        Return the answers that wait, by request id; one that cannot be read is removed.

        Raises KeyUnavailable for sealed ones.
        """
        return list(self._read())

    def remove(self, request_id: str) -> None:
        """Remove an answer that is kept by now, or that nobody asks for any more."""
        with writing_to(self._lake.home):
            arrival_path(self._lake.home, request_id).unlink(missing_ok=True)

    def _read(self) -> Iterator[Arrival]:
        for path in sorted(self._folder.glob("*.json")):
            try:
                content = path.read_bytes()
                if is_sealed(content):
                    content = self._lake.vault.decrypted_bytes(content, _place(path))
                fields = json.loads(content)
                arrived_at = datetime.fromisoformat(fields.pop("arrived_at"))
                reply = Reply(**fields.pop("reply"))
                if path.stem != reply.request_id:
                    raise ValueError("named as another request")
                yield Arrival(**fields, arrived_at=arrived_at, reply=reply)
            except (FileDamaged, ValueError, TypeError, KeyError, AttributeError):
                path.unlink(missing_ok=True)


def drop_arrivals(home: Path) -> None:
    """Remove every answer that waits: any of them may say what is to be forgotten."""
    with suppress(FileNotFoundError), writing_to(home):
        for path in (home / ARRIVALS_PATH).iterdir():
            path.unlink(missing_ok=True)


def _place(path: Path) -> str:
    return f"{ARRIVALS_PATH}/{path.name}"
