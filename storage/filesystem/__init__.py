"""What every room of storage stands on: kill-safe files, git, where the store is, its lock."""
