"""The lake: Parquet files, the manifest that names them, the journal."""
