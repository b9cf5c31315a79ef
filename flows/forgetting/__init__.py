"""What erasing leaves of calls and replies, and what goes by its age."""
