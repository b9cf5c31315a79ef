"""All that one member shares of one project, as one JSON file that this member alone writes."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from cortex.transforms.documents.team_memory import TeamMemory, Unusable, read_team_memory
from cortex.transforms.policy import Policy

SNAPSHOT_FORMAT = "cortex-shared"
LARGEST_SNAPSHOT_BYTES = 32_000_000
MOST_SHARED = 20_000


@dataclass(frozen=True)
class SharedMemory:
    """One memory of a snapshot, and when it was last said there, an ISO instant."""

    memory: TeamMemory
    said_at: str


def snapshot_text(memories: Iterable[SharedMemory]) -> str:
    """Return a snapshot's text: the same memories have the same bytes, whatever their order."""
    rows = sorted((each.memory.as_text(), each.said_at) for each in memories)
    entries = [{"memory": text, "said_at": said_at} for text, said_at in rows]
    document = {"format": SNAPSHOT_FORMAT, "version": 1, "memories": entries}
    return json.dumps(document, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def read_snapshot(content: bytes, policy: Policy) -> tuple[list[SharedMemory], list[str]]:
    """
    Return the memories of a snapshot, and the reasons for which others are set aside.

    Raises Unusable if the whole is none: what its member shares is then not known.
    """
    if len(content) > LARGEST_SNAPSHOT_BYTES:
        raise Unusable("it is too large")
    try:
        document = json.loads(content)
        if document["format"] != SNAPSHOT_FORMAT or document["version"] != 1:
            raise Unusable("it is of another version of Cortex")
        entries = [(str(entry["memory"]), str(entry["said_at"])) for entry in document["memories"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Unusable("it is damaged") from error
    memories: list[SharedMemory] = []
    refused: list[str] = []
    for text, said_at in entries[:MOST_SHARED]:
        try:
            memories.append(SharedMemory(read_team_memory(text.encode("utf-8", "replace"), policy), said_at))
        except Unusable as error:
            refused.append(str(error))
    if len(entries) > MOST_SHARED:
        refused.append(f"more than {MOST_SHARED} memories")
    return memories, refused
