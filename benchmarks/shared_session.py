"""
What one session sends to a shared store: `python -m benchmarks.shared_session [MEMORIES PROJECTS]`.

A store of made memories (10,000 in 10 projects, with vectors of 384 made numbers) lies in a folder that
machines share. One machine reads 16 short sessions, each in a run of its own, in which a person decides
something; another brings its copy in step before and after. Printed as JSON: the bytes that the first machine
wrote a session, by folder, and the processor seconds of the other.
"""

import hashlib
import json
import os
import resource
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks import invented, nightly, two_writers
from cortex.flows.context import Context
from cortex.flows.engines import runs
from cortex.storage.filesystem.place import begin_copy
from cortex.storage.remote.bucket import FolderBucket
from cortex.storage.remote.store_copy import refresh
from cortex.storage.remote.store_lease import lease
from cortex.storage.settings.settings import Settings
from cortex.storage.store import Store
from cortex.transforms.schemas import EVENTS

# As many as the lake lets gather before it makes one file of a partition.
SESSIONS = 16


class RandomEmbedder:
    """Gives each text numbers of its own, which mean nothing, at no cost; by the name of the local model."""

    model = "all-MiniLM-L6-v2"
    dimensions = invented.DIMENSIONS

    def embed(self, texts: Sequence[str], *, as_query: bool = False) -> NDArray[np.float32]:
        """Return one unit-length row per text."""
        rows = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
            row[:] = np.random.default_rng(seed).standard_normal(self.dimensions)
        unit: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit


def measure(scratch: Path, memories: int, projects: int) -> dict[str, object]:
    """Return what was sent, and what the other machine needed."""
    writer, reader = scratch / "writer", scratch / "reader"
    for home in (writer, reader):
        begin_copy(home, (scratch / "shared").as_uri())
    context = Context(Settings(home=writer), lambda settings: RandomEmbedder(), lambda: invented.NOW)
    for number in range(projects):
        _say(context, scratch, f"{number:03}", number)
    known = [scope for scope in Store(writer).tables.scopes() if scope != "global"]
    with lease(writer), Store(writer).lake.change() as change:
        for seed, name in enumerate(known):
            change.append(EVENTS, name, nightly.events(name, seed, memories // projects))
    runs.execute("nightly", context)
    figures: dict[str, object] = {"first copy, processor s": _seconds(reader)}
    figures["memories"] = sum(Store(writer).tables.open(name, "memories").count() for name in known)
    sent: Counter[str] = Counter()
    real = FolderBucket.put

    def put(bucket: FolderBucket, name: str, content: bytes | Path) -> None:
        kind = "search index" if "search." in name else name.partition("/")[0]
        sent[kind] += content.stat().st_size if isinstance(content, Path) else len(content)
        real(bucket, name, content)

    with patch.object(FolderBucket, "put", put):
        for number in range(SESSIONS):
            _say(context, scratch, f"more{number:03}", number % projects)
    parts = {kind: count // SESSIONS for kind, count in sent.items()}
    figures["bytes a session sends"] = {**parts, "in all": sum(parts.values())}
    figures["another machine follows all of them, processor s"] = _seconds(reader)
    _say(context, scratch, "last", 0)
    figures["another machine follows one, processor s"] = _seconds(reader)
    index = writer / "tables" / "search.sqlite"
    return {**figures, "search index, bytes": index.stat().st_size}


def _say(context: Context, scratch: Path, name: str, project: int) -> None:
    """Let a person decide something in a project, and read it."""
    path = two_writers.write_session(scratch / "projects", name, f"/home/dev/kelp{project}")
    runs.stage_all(context.settings, [path])
    runs.execute("ingest", context)


def _seconds(home: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_SELF)
    refresh(home)
    after = resource.getrusage(resource.RUSAGE_SELF)
    return round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2)


def main() -> None:
    """Print the figures."""
    memories, projects = (int(text) for text in (sys.argv[1:] or ("10000", "10")))
    with tempfile.TemporaryDirectory(prefix="cortex-session-") as scratch:
        os.environ["HOME"] = scratch
        print(json.dumps(measure(Path(scratch), memories, projects), indent=1))


if __name__ == "__main__":
    main()
