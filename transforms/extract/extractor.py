"""What extraction depends on: its version and the policy rows it may read, as one fingerprint."""

from cortex.transforms.extract.rows import EXTRACTOR_VERSION
from cortex.transforms.identity import content_id
from cortex.transforms.policy import Policy

# What extraction does not read; a change there makes no event outdated. What is not named here counts, so a
# table added later is noticed too often rather than never.
OTHER_TABLES = frozenset(
    {
        *("calibration", "choice_words", "contrast_words", "declared_names", "edge_types", "filler_words"),
        *("flaws", "memory_types", "prompt_gate", "prompt_words", "query_words", "ranking", "telling_words"),
    }
)
OTHER_THRESHOLDS = (
    *("archive_", "audit_", "brief_", "central_", "clock_", "consolidate_", "embed_", "embedded_"),
    *("frequent_", "half_life_", "immortal_", "junk_", "link_", "loss_", "merge_", "priority_", "prune_"),
    *("rank_", "relation_", "remember_", "told_"),
)


def extractor_fingerprint(policy: Policy) -> str:
    """Return a value that changes whenever the same turns may give other events."""
    parts = [str(EXTRACTOR_VERSION)]
    for stem, table in sorted(policy.tables.items()):
        if stem not in OTHER_TABLES:
            rows = [row for row in table.to_pylist() if stem != "thresholds" or is_read(str(row["name"]))]
            parts += [stem, repr(rows)]
    return content_id(*parts)


def is_read(threshold: str) -> bool:
    """Return whether extraction may read a threshold."""
    return not threshold.startswith(OTHER_THRESHOLDS)
