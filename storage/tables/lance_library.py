"""
Imports LanceDB without what datasets in a folder never use.

That is a generated HTTP client of several hundred models, for catalogues elsewhere, and a check of overridden
methods that reads bytecode: together 1.3 of the 1.7 s of processor time that importing LanceDB takes (0.40).
"""

import sys
from functools import cache
from typing import Any

from cortex.spared_imports import sparing

# For LanceDB's namespaces; and marks of methods, which Python 3.12 has itself.
SPARED = ("lance_namespace", "lance_namespace_urllib3_client", "overrides")


@cache
def lancedb() -> Any:
    """Return the module `lancedb`, imported at the first call."""
    if "lancedb" in sys.modules:  # somebody imported all of it
        return sys.modules["lancedb"]
    with sparing(*SPARED):
        import lancedb
    return lancedb
