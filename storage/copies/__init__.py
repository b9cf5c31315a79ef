"""Copies of a whole store: backup, restore, and where words were copied to."""
