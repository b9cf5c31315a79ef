"""What redaction replaces in real sessions, to read by eye: `python -m benchmarks.false_marks FOLDER...`."""

import sys
from pathlib import Path

from benchmarks.redaction import texts_of
from cortex.transforms.redaction.redact import default_redactor

SIDE_BYTES = 60


def main() -> None:
    """Print each span that would be replaced once, with its kind and what stands around it."""
    texts = {text for folder in sys.argv[1:] for text in texts_of(Path(folder))}
    seen: dict[tuple[str, bytes], str] = {}
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        for finding in default_redactor().findings(text):
            start, end = max(0, finding.start - SIDE_BYTES), finding.end + SIDE_BYTES
            around = (data[start : finding.start], data[finding.start : finding.end], data[finding.end : end])
            before, value, after = (part.decode("utf-8", "replace") for part in around)
            seen.setdefault((finding.kind, data[finding.start : finding.end]), f"{before}⟦{value}⟧{after}")
    for (kind, _), line in sorted(seen.items()):
        print(f"{kind}: {line!r}")
    print(f"marks: texts={len(texts)} replaced={len(seen)}")


if __name__ == "__main__":
    main()
