"""The commands of the section Ingest."""
