"""
Which shapes of secrets redaction misses: `python -m benchmarks.missed_secrets [--texts]`.

Every shape of `benchmarks.secret_shapes` goes through redaction in each of its carriers. A shape is missed
where any of its secrets can still be read.
"""

import argparse
from collections import defaultdict

from benchmarks.canary_kinds import CANARY
from benchmarks.secret_shapes import texts
from cortex.transforms.redaction.redact import redact


def missed() -> tuple[dict[str, list[str]], int, int]:
    """Return shape → the carriers it is missed in, the number of shapes and of texts."""
    carriers_of: dict[str, list[str]] = defaultdict(list)
    shapes, count = set(), 0
    for shape, carrier, text in texts():
        shapes.add(shape)
        count += 1
        if CANARY.search(redact(text)[0].casefold()):
            carriers_of[shape].append(carrier)
    return dict(carriers_of), len(shapes), count


def main() -> None:
    """Print the shapes that are missed, with their carriers, then the line that counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--texts", action="store_true", help="print each text before and after")
    if parser.parse_args().texts:
        for shape, carrier, text in texts():
            print(f"{shape} | {carrier} | {text!r} | {redact(text)[0]!r}")
    misses, shapes, count = missed()
    for shape, carriers in misses.items():
        print(f"missed: {shape}: {', '.join(carriers)}")
    places = sum(map(len, misses.values()))
    print(f"secrets: shapes={shapes} missed={len(misses)}, texts={count} missed={places}")


if __name__ == "__main__":
    main()
