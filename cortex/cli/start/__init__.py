"""The commands of the section Start."""
