"""Functional core: tables in, tables out."""
