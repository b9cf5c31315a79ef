"""The commands by purpose, each imported once it is called, and what becomes of their errors."""

import importlib
import io
import json
import sys
from collections.abc import Sequence
from typing import Any

import click

from cortex.hooks.prose.characters import escaped, visible
from cortex.transforms.errors import CortexError, TablesDamaged, UsageError

# What a shell gives a program that Ctrl-C ended.
STOPPED = 130

COMMAND_SECTIONS: dict[str, dict[str, str]] = {
    "Start": {
        "setup": "See what is there and get started.",
        "demo": "See everything at work on sample sessions; no real data is touched.",
        "install": "Add the hooks to the client's settings.",
        "uninstall": "Remove hooks and status line from the client's settings.",
        "mcp": "Serve the memory to programs that speak MCP.",
        "statusline": "Print one line on memories, capture and context.",
        "schedule": "Let the nightly run start by itself.",
        "doctor": "Check that everything needed is in place.",
        "completion": "Print the completion script for bash, zsh or fish.",
    },
    "Take in": {
        "backfill": "Read old transcripts.",
        "run": "Read what the hooks have staged.",
        "nightly": "Read what is staged, age and merge memories, publish.",
        "index-code": "Keep a description of a source file.",
        "import": "Read memories from a file.",
    },
    "Ask": {
        "recall": "Search memories and past conversations.",
        "reflect": "Say what is open, contradictory or stale; answer with citations.",
        "infer": "Say why something is so: decisions, and what they rejected.",
        "brief": "Print what the assistant is given when a session starts.",
        "today": "Say what the last session did and left open.",
        "list": "List memories, the newest first.",
        "show": "Show one memory or session with all that is known of it.",
        "related": "Show what a memory is linked to, step by step.",
        "timeline": "List sessions with what came of each.",
        "status": "Show what is stored, what is waiting and how the last run went.",
        "explore": "Look at everything in the browser, and mend it.",
        "serve": "Show the history of runs in Prefect's pages.",
        "stats": "Show figures by session and project.",
        "plan": "Show what the language model would be asked, and its price.",
        "audit": "Show what programs did through the MCP server.",
        "cost": "Show what the language model has cost.",
        "report": "Report a month: decisions, corrections, what is open.",
        "sql": "Query turns, events, memories, edges and the journal with DuckDB.",
    },
    "Shape": {
        "remember": "Store a fact in your own words.",
        "learn": "Store a lesson that passes a quality gate.",
        "edit": "Change a memory's text.",
        "pin": "Keep a memory from fading and merging.",
        "confirm": "Say that a memory still holds.",
        "supersede": "Replace one memory by another.",
        "review": "Settle contradictions, stale claims and proposed merges.",
        "consolidate": "Merge memories that say the same, or undo that.",
        "checkpoint": "Name this moment, to return to it.",
        "team": "Share memories with your team by git.",
        "push": "Share memories through a bucket or folder.",
        "pull": "Read what colleagues share there.",
        "forget": "Erase a memory or a session.",
    },
    "Projects and settings": {
        "projects": "List, rename, merge and split projects.",
        "reset": "Erase everything about a project.",
        "config": "Show and change settings.",
    },
    "Keep": {
        "backup": "Write the store to one file.",
        "restore": "Replace the store by a backup.",
        "export": "Write memories as JSON or Markdown.",
        "encrypt": "Encrypt the lake on disk.",
        "decrypt": "Write the lake unencrypted again.",
        "rebuild": "Rebuild the tables from the lake, or check them.",
        "rederive": "Show what today's extractor would make of old sessions.",
        "eval": "Measure Cortex against labels made by hand.",
    },
}

# Where the module is not named after its only command, or stands in the folder of another section.
MODULES = {
    "uninstall": "start.install",
    "nightly": "take_in.run",
    "decrypt": "keep.encrypt",
    "import": "keep.export",
    "index-code": "take_in.index_code",
    "pin": "shape.edit",
    "confirm": "shape.edit",
    "supersede": "shape.edit",
    "checkpoint": "shape.consolidate",
    "restore": "keep.backup",
    "reset": "shape.forget",
    "pull": "shape.push",
}


def module_of(name: str) -> str:
    """
    Return the module of a command: a section's commands stand in a folder of its title.

    >>> module_of("backfill"), module_of("import")
    ('cortex.cli.take_in.backfill', 'cortex.cli.keep.export')
    """
    title = next(title for title, commands in COMMAND_SECTIONS.items() if name in commands)
    folder = title.lower().replace(" ", "_")
    return f"cortex.cli.{MODULES.get(name, f'{folder}.{name}')}"


class CommandLine(click.Group):
    """The group of all commands: prints an error on one line with its code and exits with its exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, by section; nothing is imported."""
        return [name for commands in COMMAND_SECTIONS.values() for name in commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command and return the command; None for a name that there is not."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(module_of(cmd_name))
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
            meant = f" Did you mean {' or '.join(near)}?" if near else ""
            raise click.UsageError(f"There is no command '{name}'.{meant}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in their sections, aligned over all of them."""
        width = max(map(len, self.list_commands(ctx)))
        for title, commands in COMMAND_SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), short_help) for name, short_help in commands.items()])

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:
        """Run the command line; every error that a person can act on becomes its exit code."""
        words = list(sys.argv[1:] if args is None else args)
        options["standalone_mode"] = False
        try:
            return self._call(words, *rest, **options)
        except click.ClickException as error:
            if "--json" in words and isinstance(error, click.UsageError):
                _print_error(UsageError(error.format_message(), f"See: {_help_of(error)}"))
            message = io.StringIO()
            error.show(message)
            click.echo(visible(message.getvalue(), keeps_lines=True), err=True, nl=False)
            sys.exit(error.exit_code)
        except click.Abort:
            click.echo("Stopped. What was finished is kept; the same command continues from there.", err=True)
            sys.exit(STOPPED)
        except CortexError as error:
            if "--json" in words:
                _print_error(error)
            click.echo(visible(f"cortex: {error} [{error.code}]", keeps_lines=True), err=True)
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
                from cortex.cli.healing import heal

                if error.scope in healed:  # it cannot be rebuilt now
                    raise
                healed.add(error.scope)
                options["obj"] = heal(error, options.get("obj"))


def _print_error(error: CortexError) -> None:
    click.echo(escaped(json.dumps(error.as_dict(), ensure_ascii=False)))


def _help_of(error: click.UsageError) -> str:
    return f"{error.ctx.command_path if error.ctx else 'cortex'} --help"
