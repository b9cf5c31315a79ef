"""SQL of the functional core, one query a file."""
