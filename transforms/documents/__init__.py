"""Text of the user's own files and of other tools' exports, as values."""
