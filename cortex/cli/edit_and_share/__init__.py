"""The commands of the section Edit and share."""
