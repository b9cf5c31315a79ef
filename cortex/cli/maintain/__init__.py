"""The commands of the section Maintain."""
