"""The commands of the section Take in."""
