"""What extraction depends on: its version and the policy rows it reads, as one fingerprint."""

from cortex.transforms.identity import content_id
from cortex.transforms.policy import Policy

# Raise it when the same turns give other events than before: stored events are then extracted again.
EXTRACTOR_VERSION = 7


def extractor_fingerprint(policy: Policy) -> str:
    """Return a value that changes whenever the same turns may give other events."""
    return content_id(str(EXTRACTOR_VERSION), policy.derived(_rows_read))


def _rows_read(policy: Policy) -> str:
    return repr(policy.rows_read_by("extract"))
