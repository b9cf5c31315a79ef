"""The tools: their schemas and their answers."""
