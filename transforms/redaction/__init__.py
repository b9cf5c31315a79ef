"""Redaction: secrets and private passages out of text before anything is written."""
