"""
The process that extracts events in addition to the run's own: sessions come in through one pipe, events go
out through another.
"""

import os
import pickle
import sys
from typing import BinaryIO

from cortex.flows.reading.extraction import extract_or_fault


def answer(requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer one extraction after another, with the policy that comes first, until `requests` ends."""
    policy = pickle.load(requests)
    while True:
        try:
            task = pickle.load(requests)
        except EOFError:  # the run is over, or was killed
            return
        pickle.dump(extract_or_fault(task, policy), replies)
        replies.flush()


def main() -> None:
    """Serve the process that started this one; nothing else may write to its pipe."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    answer(sys.stdin.buffer, replies)


if __name__ == "__main__":
    main()
