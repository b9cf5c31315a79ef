"""How fast redaction goes, in MB a CPU second, over the transcripts in a folder, or over invented text."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import process_time

import orjson

from cortex.transforms.redaction.redact import default_redactor

INVENTED = (
    "The reader keeps one row a turn. In `src/reader.py` the parser now counts 120 tokens per call.\n"
    "def parse(line: str, *, token: str | None = None) -> Row:\n    return Row(line, key=hash(line))\n"
    "commit 3f786850e387550fdab836ed7e6dc881de23001b, request req_011CXabcd, total_tokens: 18234\n"
) * 40


def strings(value: object) -> Iterator[str]:
    """Yield each string value inside a JSON value, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def texts_of(folder: Path) -> list[str]:
    """Return every string in the transcripts below `folder`, ids too; broken lines are left out."""
    texts: list[str] = []
    for file in sorted(folder.rglob("*.jsonl")):
        for line in file.read_bytes().splitlines():
            with suppress(orjson.JSONDecodeError):
                texts += strings(orjson.loads(line))
    return texts


def main() -> None:
    """Print build time, then the best of three passes: MB of UTF-8 a CPU second, and what was found."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "shared/data/transcripts"
    texts = texts_of(folder) if folder.is_dir() else [INVENTED] * 500
    size_mb = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) / 1e6
    begun = process_time()
    redactor = default_redactor()
    redactor.redact("")
    print(f"redaction: compiled in {process_time() - begun:.2f} s, {len(texts):,} texts, {size_mb:.1f} MB")
    seconds, count = [], 0
    for _ in range(3):
        begun = process_time()
        count = sum(redactor.redact(text)[1] for text in texts)
        seconds.append(process_time() - begun)
    print(f"redaction: {size_mb / min(seconds):.0f} MB a CPU second, {count} marks set")


if __name__ == "__main__":
    main()
