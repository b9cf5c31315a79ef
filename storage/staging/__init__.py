"""Transcripts before a run reads them: tickets, each assistant's folders, the client's files."""
