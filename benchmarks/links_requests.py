"""
Writes the requests about pairs of what a language model wrote of labelled sessions, one file each.

    python -m benchmarks.links_requests --transcripts DIR --labels FILE --replies DIR --out DIR [--model NAME]

`--replies` holds recorded answers about sessions (see writer_requests.py): their checked facts become
memories, a project each folder, linked by the local embedding model as in a store. Each file is named after
its request (`<request_id>.json`) and holds all that is sent, besides the project and the pairs' memories.
An answer belongs to the request with exactly these words: record it as `<request_id>.json` with
`{"request_id": …, "project": …, "text": …}`, where `text` is the answer's JSON.
`--transcripts` and `--labels` may be given several times, in pairs.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.writer_quality import POLICY, read_corpus, written_events
from benchmarks.writer_requests import MODEL
from cortex.flows.embedders import local_or_none
from cortex.storage.settings.reference import read_prompt
from cortex.transforms.masking import masked
from cortex.transforms.memory.fold import fold
from cortex.transforms.memory.link import edges_between
from cortex.transforms.schemas import JOURNAL, MEMORIES, VECTORS, values
from cortex.transforms.search import embedded_text
from cortex.transforms.writer.pairs import LINKS_PROMPT, PairsRequest, pairs_requests, pairs_to_ask
from cortex.transforms.writer.rendering import estimated_tokens


def main() -> None:
    """Write the files and print one line for each request."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--transcripts", type=Path, action="append", required=True)
    parser.add_argument("--labels", type=Path, action="append", required=True)
    parser.add_argument("--replies", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", default=MODEL)
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    pairs = list(zip(chosen.transcripts, chosen.labels, strict=True))
    for asked in links_requests(pairs, chosen.replies, chosen.model):
        request = asked.request
        row = {
            "request_id": request.request_id,
            "project": asked.scope,
            "model": request.model,
            "prompt": request.prompt,
            "system": request.system,
            "content": request.content,
            "schema": json.loads(request.schema),
            "max_output_tokens": request.max_output_tokens,
        }
        path = chosen.out / f"{request.request_id}.json"
        path.write_text(json.dumps(row, ensure_ascii=False, indent=1), encoding="utf-8")
        tokens = estimated_tokens(request.content)
        print(f"{asked.scope}  {request.request_id}  {len(asked.pairs)} pairs, about {tokens} tokens")


def links_requests(
    folders: Sequence[tuple[Path, Path]], replies: Path, model: str = MODEL
) -> list[PairsRequest]:
    """
    Return the requests about pairs of the facts in recorded answers, by project.

    `folders` are folders of transcripts with the file of their dense labels.
    """
    corpora = [read_corpus(transcripts, labels, replies, model) for transcripts, labels in folders]
    events = pa.concat_tables([written_events(corpus) for corpus in corpora])
    requests = []
    for project in sorted(set(values(events, "project_id"))):
        mine = events.filter(pc.field("project_id") == project)
        memories = masked(fold(mine, JOURNAL.empty(), POLICY), MEMORIES)
        vectors, embedder = _vectors(memories)
        edges = edges_between(memories, vectors, POLICY, embedder)
        pairs = pairs_to_ask(memories, edges, (), POLICY)
        requests += pairs_requests(project, pairs, POLICY, model, read_prompt(LINKS_PROMPT))
    return requests


def _vectors(memories: pa.Table) -> tuple[pa.Table, str]:
    """Return VECTORS of memories by the local model, and its name."""
    embedder = local_or_none()
    assert embedder is not None, "the local embedding model is not installed"
    texts = {row["content_hash"]: embedded_text(row) for row in memories.to_pylist()}
    names = sorted(name for name in texts if texts[name])
    vectors = embedder.embed([texts[name] for name in names])
    rows = [
        {"model": embedder.model, "content_hash": name, "vector": vector}
        for name, vector in zip(names, vectors, strict=True)
    ]
    return VECTORS.of(rows), embedder.model


if __name__ == "__main__":
    main()
