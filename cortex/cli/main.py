"""The command `cortex`: what holds for all commands. Their index is cortex/cli/command_index.py."""

import os

import click

from cortex.cli.command_line import CommandLine
from cortex.transforms.version import __version__


@click.group(
    cls=CommandLine, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="cortex")
def main() -> None:
    """Memory for AI coding assistants: keeps what was decided, rejected and learned beyond the session.

    Everything stays on this machine, in CORTEX_HOME (default: ~/.cortex).
    """
    os.umask(0o077)  # as the hooks do: past conversations are for their owner's eyes only
