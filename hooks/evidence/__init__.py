"""What is kept of a project searched and ranked with the standard library alone: hooks and engine use it."""
