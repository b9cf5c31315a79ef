"""
Where this machine keeps its part of the store: CORTEX_HOME, or the copy of a store that is elsewhere.

Standard library only, Python 3.9: this file also runs inside the assistant.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# A store elsewhere is named by one of these; `file` is for a folder that several machines share.
SCHEMES = ("s3", "file")

# Copies of stores that are elsewhere, below the user's folder; `run.sh` and `mcp.sh` make the same names.
COPIES = ".cortex-remote"


def home_in(environment: Mapping[str, str]) -> str:
    """Return the absolute path of the folder in which this machine works on the store."""
    named = environment.get("CORTEX_HOME") or ""
    if is_elsewhere(named):
        return copy_of(named)
    return os.path.abspath(named or os.path.expanduser("~/.cortex"))


def is_elsewhere(named: str) -> bool:
    """
    Return whether a value of CORTEX_HOME is a URI and not a folder.

    >>> is_elsewhere("s3://bucket/team"), is_elsewhere("/srv/cortex")
    (True, False)
    """
    return named.partition("://")[0] in SCHEMES and "://" in named


def copy_of(uri: str) -> str:
    """
    Return the folder of this machine's copy of the store at `uri`; no part of the URI leads out of it.

    >>> copy_of("s3://bucket/team/a/").rpartition("/")[2]
    's3+bucket+team+a'
    """
    scheme, _, rest = uri.partition("://")
    name = "+".join([scheme, *(part for part in rest.split("/") if part)])
    return os.path.join(os.path.expanduser("~"), COPIES, name)
