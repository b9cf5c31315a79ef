"""Kills at every file operation, between stages and at random moments; then the store is compared."""
