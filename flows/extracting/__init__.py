"""Waiting transcripts into turns and events."""
