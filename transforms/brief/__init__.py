"""Brief: which memories a new session is given, and how they read."""

# The file of the decisions that no longer fit into a brief (spec 8.4).
ARCHIVE_NAME = "decisions-archive.md"

# Why each candidate is in a project's brief or not, published with the brief.
EXPLANATION_NAME = "choices.json"
