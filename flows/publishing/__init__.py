"""What a run publishes: briefs, what hooks read, the DuckDB file, files in the user's projects."""
