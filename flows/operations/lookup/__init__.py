"""What the words of a caller mean in a store, and as of which day."""
