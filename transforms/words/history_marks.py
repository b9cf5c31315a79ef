"""What a memory says of its own standing: its session went past it, or it was only proposed."""

CHANGED_SINCE = " (since changed)"
PROPOSED = "Proposed: "
