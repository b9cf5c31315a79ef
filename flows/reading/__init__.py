"""Transcripts into turns and events: in this process, in further ones, or by workers under Prefect."""
