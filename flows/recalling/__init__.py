"""From a question to results."""
