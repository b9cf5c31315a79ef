"""`python -m cortex` is the `cortex` command, and imports nothing from the folder that it is called in."""

import os
import sys

# By `-m` Python looks there first, where a repository's own click.py or mcp.py would run as the user.
# For the same reason not by pathlib: of Python's own modules `os` is there before.
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
if not sys.flags.safe_path and sys.path[0] != _OWN:
    del sys.path[0]

from cortex.cli.main import main  # noqa: E402

if __name__ == "__main__":
    main()
