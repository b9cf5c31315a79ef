"""
Memory for AI coding assistants.

`from cortex import Memory` is the Python API (docs/python-api.md); the command line is another face of it.
"""

from typing import Any

__all__ = ["Memory", "__version__"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import the API once it is asked for: `import cortex` alone costs nothing."""
    if name == "Memory":
        from cortex.flows.memory import Memory

        return Memory
    raise AttributeError(f"module 'cortex' has no attribute '{name}'")
