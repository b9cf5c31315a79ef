"""What Cortex does for a caller: one function an operation, given a context, that returns a value."""
