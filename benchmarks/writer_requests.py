"""
Writes the requests that ask a language model about each session of a folder of transcripts, one file each.

    python -m benchmarks.writer_requests --transcripts DIR --out DIR [--model NAME] [--sessions NAMES]

Each file is named after its request (`<request_id>.json`) and holds all that is sent: system, content, schema
and the most output tokens, besides the session's name as labels have it. An answer belongs to the request
with exactly these words: record it as `<request_id>.json` with `{"request_id": …, "session": …, "text": …}`,
where `text` is the answer's JSON as text.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from cortex.storage.settings.reference import read_policy, read_prompt
from cortex.transforms.schemas import TURNS
from cortex.transforms.transcripts.transcript import Source, read_transcript
from cortex.transforms.writer.rendering import estimated_tokens
from cortex.transforms.writer.request import SESSION_PROMPT
from cortex.transforms.writer.session import SessionRequest, session_requests

MODEL = "claude-haiku-5-5"


def main() -> None:
    """Write the files and print one line for each session."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--transcripts", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--sessions", help="only these, separated by commas, as labels name them")
    chosen = parser.parse_args()
    names = set(chosen.sessions.split(",")) if chosen.sessions else None
    chosen.out.mkdir(parents=True, exist_ok=True)
    for name, asked in requests_below(chosen.transcripts, chosen.model, names):
        request = asked.request
        row = {
            "request_id": request.request_id,
            "session": name,
            "model": request.model,
            "prompt": request.prompt,
            "system": request.system,
            "content": request.content,
            "schema": json.loads(request.schema),
            "max_output_tokens": request.max_output_tokens,
        }
        path = chosen.out / f"{request.request_id}.json"
        path.write_text(json.dumps(row, ensure_ascii=False, indent=1), encoding="utf-8")
        print(f"{name}  {request.request_id}  about {estimated_tokens(request.content)} tokens")


def requests_below(
    transcripts: Path, model: str, names: set[str] | None = None
) -> Iterator[tuple[str, SessionRequest]]:
    """Yield the name of each session below a folder, or of those named, with its request, in order."""
    policy, prompt = read_policy(None), read_prompt(SESSION_PROMPT)
    for path in sorted(transcripts.rglob("*.jsonl")):
        name = path.relative_to(transcripts).as_posix()
        if (names is None or name in names) and "/subagents/" not in name:
            for asked in session_requests(turns_of(path, transcripts), (), policy, model, prompt):
                yield name, asked


def turns_of(path: Path, transcripts: Path) -> pa.Table:
    """Return the TURNS of one transcript as one session, named as labels name it."""
    name = path.relative_to(transcripts).as_posix()
    source = Source(name, project_id=name.split("/", 1)[0], session_id=None, agent_id=None)
    turns = read_transcript(path.read_bytes(), source=source, final=True).turns
    position = TURNS.arrow.get_field_index("session_id")
    return turns.set_column(position, TURNS.arrow.field("session_id"), pa.array([name] * len(turns)))


if __name__ == "__main__":
    main()
