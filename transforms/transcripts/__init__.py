"""Transcripts: what a record of each assistant says, as rows of TURNS."""
