"""Hooks, run as the client does."""

from tests.hook_client import client, compiled_hooks

__all__ = ["client", "compiled_hooks"]
