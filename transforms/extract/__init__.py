"""Layers 1 to 3 of extraction; `events` puts them together, and importing it takes a third of a second."""
