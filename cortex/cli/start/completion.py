"""The command `completion`: the script by which a shell completes commands, options and projects."""

from __future__ import annotations

import click

from cortex.cli.answer import Answer, command

SHELLS = ("bash", "zsh", "fish")


@command(
    "completion",
    "Print the completion script for bash, zsh or fish.",
    place=90,
    json=False,
    takes_context=False,
)
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> Answer:
    """Print the completion script for a SHELL: bash, zsh or fish.

    \b
    bash  cortex completion bash > ~/.local/share/bash-completion/completions/cortex
    zsh   cortex completion zsh > "${fpath[1]}/_cortex"
    fish  cortex completion fish > ~/.config/fish/completions/cortex.fish

    It takes effect in the next shell.
    """
    from click.shell_completion import get_completion_class

    root = click.get_current_context().find_root().command
    kind = get_completion_class(shell)
    assert kind is not None  # click knows all of SHELLS
    script = kind(root, {}, "cortex", "_CORTEX_COMPLETE")
    return Answer({}, [script.source_template % script.source_vars()])
