"""The commands of the section Ask."""
