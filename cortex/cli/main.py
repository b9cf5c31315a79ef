"""The command line: commands by purpose, each imported when it is called, and how errors are reported."""

import importlib
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from cortex.cli.command_index import SECTIONS
from cortex.hooks.prose.characters import displayed, escaped
from cortex.transforms import __version__
from cortex.transforms.errors import CortexError, TablesDamaged, UsageError

# What commands of this name in other memory tools are called here.
CALLED_HERE = {
    "extract": "run",
    "generate": "brief",
    "lifecycle": "nightly",
    "save": "run --session ID",
    "search": "recall",
    "add": "remember",
    "archive": "run",
    "configure": "config",
    "handoff": "brief",
}

# What a shell gives a program that Ctrl-C ended.
STOPPED = 130


class CommandLine(click.Group):
    """The group of all commands: prints an error on one line with its code and exits with its exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, by section; nothing is imported."""
        return [name for commands in SECTIONS.values() for name in commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command and return the command; None for a name that there is not."""
        places = {name: module for commands in SECTIONS.values() for name, (module, _) in commands.items()}
        if cmd_name not in places:
            return None
        module = importlib.import_module(places[cmd_name])
        declared = (value for value in vars(module).values() if isinstance(value, click.Command))
        return next(each for each in declared if each.name == cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command named first; for a name that there is not, say which one may be meant."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(name, self.list_commands(ctx), n=2, cutoff=0.65)
            near = [CALLED_HERE[name]] if name in CALLED_HERE else near
            meant = f" Did you mean {' or '.join(near)}?" if near else ""
            raise click.UsageError(f"There is no command '{name}'.{meant}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in their sections, aligned over all of them."""
        width = max(map(len, self.list_commands(ctx)))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), line) for name, (_, line) in commands.items()])

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:
        """Run the command line; every error that a person can act on becomes its exit code."""
        words = list(sys.argv[1:] if args is None else args)
        options["standalone_mode"] = False
        try:
            return self._call(words, *rest, **options)
        except click.exceptions.NoArgsIsHelpError as error:  # a command without its words: the help alone
            click.echo(error.format_message(), err=True)
            sys.exit(error.exit_code)
        except click.ClickException as error:
            words_of = error.format_message()
            usage = UsageError(words_of[:1].lower() + words_of[1:], f"See: {_help_of(error)}")
            if "--json" in words:
                _print_error(usage)
            click.echo(displayed(f"cortex: {usage} [{usage.code}]", keeps_lines=True), err=True)
            sys.exit(error.exit_code)
        except click.Abort:
            click.echo("Stopped. What was finished is kept; the same command continues from there.", err=True)
            sys.exit(STOPPED)
        except CortexError as error:
            if "--json" in words:
                _print_error(error)
            click.echo(displayed(f"cortex: {error} [{error.code}]", keeps_lines=True), err=True)
            sys.exit(error.exit_code)
        except BrokenPipeError:
            # The reader (head, less) has seen enough.
            sys.stderr.close()
            sys.exit(0)

    def _call(self, words: list[str], *rest: Any, **options: Any) -> Any:
        """Call the command; where tables are missing or damaged, rebuild them and call it again."""
        healed: set[str | None] = set()
        while True:
            try:
                return super().main(list(words), *rest, **options)
            except TablesDamaged as error:
                from cortex.cli.run_answer import heal

                if error.scope in healed:  # it cannot be rebuilt now
                    raise
                healed.add(error.scope)
                options["obj"] = heal(error, options.get("obj"))


def _print_error(error: CortexError) -> None:
    click.echo(escaped(json.dumps(error.as_dict(), ensure_ascii=False)))


def _help_of(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path if context else 'cortex'} --help"


@click.group(
    cls=CommandLine, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="cortex")
def main() -> None:
    """Memory for AI coding assistants: keeps what was decided, rejected and learned beyond the session.

    Everything stays on this machine, in CORTEX_HOME (default: ~/.cortex).
    """
    os.umask(0o077)  # as the hooks do: past conversations are for their owner's eyes only
