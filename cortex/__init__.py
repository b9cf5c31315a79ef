"""
Memory for AI coding assistants.

`from cortex import Memory` is the Python API (docs/python-api.md); the command line is another face of it.
"""

# Not from `typing`: by `python -m cortex` the present folder may have a file of that name (see __main__.py).
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Memory", "__version__"]


def __getattr__(name: str) -> "Any":
    """Import what is asked for once it is: `import cortex` alone costs nothing."""
    if name == "Memory":
        from cortex.flows.memory import Memory

        return Memory
    if name == "__version__":
        from cortex.transforms import __version__

        return __version__
    raise AttributeError(f"module 'cortex' has no attribute '{name}'")
