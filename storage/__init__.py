"""Bytes at rest: staging, lake, tables, published files."""
