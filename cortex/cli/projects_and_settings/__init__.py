"""The commands of the section Projects and settings."""
