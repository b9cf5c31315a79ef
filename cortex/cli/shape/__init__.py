"""The commands of the section Shape."""
