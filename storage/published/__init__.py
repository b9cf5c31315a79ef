"""What others read of a store: briefs, snapshots, the DuckDB file, reports."""
