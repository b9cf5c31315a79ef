"""The commands of the section Keep."""
