"""The commands that are not declared beside what they do yet."""

from pathlib import Path

import click

from cortex.transforms.errors import UsageError

ENGINE = click.option(
    "--engine",
    type=click.Choice(["prefect", "plain"]),
    default="prefect",
    show_default=True,
    help="Run the stages under Prefect, or one after another without it.",
)
ACCEPT_LOSS = click.option(
    "--accept-loss",
    is_flag=True,
    help="Publish also where much of what was shown would no longer be.",
)
DRY_RUN = click.option("--dry-run", is_flag=True, help="Change nothing; print the difference.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
PROJECT = click.option(
    "--project", metavar="NAME", help="A project's name, id or path; default: this folder's."
)


AS_OF = click.option(
    "--as-of", metavar="DATE", help="As of the end of that day (UTC): what had been said by then."
)


@click.group()
def main() -> None:
    """Hold the commands that are not declared beside what they do yet."""


@main.command(short_help="The whole way on sample sessions; touches no real data.")
@ENGINE
def demo(engine: str) -> None:
    """Show the whole way on sample sessions: backfill, run report, brief, a recall. Touches no real data."""
    from cortex.cli import runs

    runs.demo(engine)


@main.command(short_help="See what is there, begin.")
@click.option("--yes", is_flag=True, help="Do not ask: read the transcripts, put in the hooks.")
@JSON
def setup(yes: bool, as_json: bool) -> None:
    """Show what was found, tell the hooks where `cortex` is, offer to read transcripts and to put in hooks.

    Asks only at a terminal. Elsewhere, without --yes, it says what it would ask.
    """
    from cortex.cli import beginning

    beginning.setup(yes=yes, as_json=as_json)


@main.command(short_help="Put the hooks into the client's settings.")
@DRY_RUN
@JSON
def install(dry_run: bool, as_json: bool) -> None:
    """Put the plugin's hooks into the client's user settings, for those who do without plugins.

    Every other key, their order and the indentation stay; `cortex uninstall` takes them out again.
    """
    from cortex.cli import installing

    installing.install(dry_run=dry_run, as_json=as_json)


@main.command(short_help="Take hooks and status line out of the client's settings.")
@DRY_RUN
@JSON
def uninstall(dry_run: bool, as_json: bool) -> None:
    """Take hooks and status line out of the client's user settings; the memory stays."""
    from cortex.cli import installing

    installing.uninstall(dry_run=dry_run, as_json=as_json)


@main.group(invoke_without_command=True, short_help="One line on memories, capture and context.")
@click.pass_context
def statusline(context: click.Context) -> None:
    """Print the status line for the client's JSON on standard input; put it into the settings."""
    from cortex.cli import installing

    if context.invoked_subcommand is None:
        installing.print_status_line()


@statusline.command("install")
@DRY_RUN
@JSON
def install_status_line(dry_run: bool, as_json: bool) -> None:
    """Put the status line into the client's settings; one that is there is shown above it."""
    from cortex.cli import installing

    installing.install_status_line(dry_run=dry_run, as_json=as_json)


@statusline.command("uninstall")
@DRY_RUN
@JSON
def uninstall_status_line(dry_run: bool, as_json: bool) -> None:
    """Take the status line out; the one it was put around stands by itself again."""
    from cortex.cli import installing

    installing.uninstall_status_line(dry_run=dry_run, as_json=as_json)


@main.group(invoke_without_command=True, short_help="Show and change settings.")
@PROJECT
@JSON
@click.pass_context
def config(context: click.Context, project: str | None, as_json: bool) -> None:
    """List every setting with its value and where that comes from; get, set and unset one."""
    from cortex.cli import configuring

    if context.invoked_subcommand is None:
        configuring.list_all(project, as_json=as_json)


@config.command("list")
@PROJECT
@JSON
def list_settings(project: str | None, as_json: bool) -> None:
    """List every setting with its value, where that comes from, its unit and meaning."""
    from cortex.cli import configuring

    configuring.list_all(project, as_json=as_json)


@config.command("get")
@click.argument("key")
@PROJECT
@JSON
def get_setting(key: str, project: str | None, as_json: bool) -> None:
    """Print the value of the setting KEY."""
    from cortex.cli import configuring

    configuring.get(key, project, as_json=as_json)


@config.command("set")
@click.argument("key")
@click.argument("value", nargs=-1, required=True)
@click.option("--project", metavar="NAME", help="For this project alone: a name, id or path.")
@JSON
def set_setting(key: str, value: tuple[str, ...], project: str | None, as_json: bool) -> None:
    """Give the setting KEY a VALUE in config.toml; several values make a list."""
    from cortex.cli import configuring

    configuring.set_one(key, value, project, as_json=as_json)


@config.command("unset")
@click.argument("key")
@click.option("--project", metavar="NAME", help="Of this project alone: a name, id or path.")
@JSON
def unset_setting(key: str, project: str | None, as_json: bool) -> None:
    """Remove the setting KEY from config.toml."""
    from cortex.cli import configuring

    configuring.unset(key, project, as_json=as_json)


@main.command(short_help="Read old transcripts.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Only say what would be read.")
@ENGINE
@ACCEPT_LOSS
@JSON
def backfill(paths: tuple[Path, ...], dry_run: bool, engine: str, accept_loss: bool, as_json: bool) -> None:
    """
    Read old transcripts below PATHS.

    Default: where Claude Code, Codex CLI and Gemini CLI keep theirs, as far as they are there.
    """
    from cortex.cli import runs

    runs.backfill(paths, dry_run=dry_run, engine=engine, accepts_loss=accept_loss, as_json=as_json)


@main.command()
@ENGINE
@ACCEPT_LOSS
@JSON
def run(engine: str, accept_loss: bool, as_json: bool) -> None:
    """Take in what the hooks have staged."""
    from cortex.cli import runs

    runs.run_flow("ingest", engine=engine, accepts_loss=accept_loss, as_json=as_json)


@main.command(short_help="Take in, age, merge, publish anew.")
@ENGINE
@ACCEPT_LOSS
@JSON
def nightly(engine: str, accept_loss: bool, as_json: bool) -> None:
    """Take in what is staged, age all memories, merge what says the same, publish anew."""
    from cortex.cli import runs

    runs.run_flow("nightly", engine=engine, accepts_loss=accept_loss, as_json=as_json)


@main.command(short_help="Encrypt the lake on disk.")
@click.option(
    "--key-file",
    type=click.Path(path_type=Path),
    help="Keep the key in this file (made if missing) instead of the OS keyring.",
)
@JSON
def encrypt(key_file: Path | None, as_json: bool) -> None:
    """Encrypt what was said, done and told to Cortex (AES-256-GCM), now and from now on.

    Backups made from then on are encrypted too. Tables, briefs and the hooks' index stay in clear, for the
    programs that read them; only an encrypted disk covers these.
    """
    from cortex.cli import encrypting

    encrypting.encrypt(key_file, as_json=as_json)


@main.command(short_help="Write the lake in clear again.")
@JSON
def decrypt(as_json: bool) -> None:
    """Take encryption back: every file of the lake is written in clear again."""
    from cortex.cli import encrypting

    encrypting.decrypt(as_json=as_json)


@main.command(short_help="Print what the assistant is handed at a session's start.")
@click.option("--explain", is_flag=True, help="Say for each line why it is in, and what is left out.")
@click.option("--archive", is_flag=True, help="Print the older decisions that it has no room for.")
@PROJECT
@AS_OF
@JSON
def brief(explain: bool, archive: bool, project: str | None, as_of: str | None, as_json: bool) -> None:
    """Print the brief that the assistant is handed at the start of a session."""
    from cortex.cli import reading, views

    if explain and archive:
        raise UsageError("--explain and --archive exclude each other.", "Give one of them.")
    if explain:
        return reading.explain(project, as_of=as_of, as_json=as_json)
    return views.brief(project, archive=archive, as_of=as_of, as_json=as_json)


@main.command(short_help="How sessions went: figures by session and project.")
@PROJECT
@JSON
def stats(project: str | None, as_json: bool) -> None:
    """Print figures by session: decisions made twice, rejected ones proposed again, files read again."""
    from cortex.cli import reading

    reading.stats(project, as_json=as_json)


@main.command(short_help="What is held, what waits, how the last run went.")
@JSON
def status(as_json: bool) -> None:
    """Say what the store holds, what waits, and how the last run went."""
    from cortex.cli import views

    views.status(as_json=as_json)


@main.command(short_help="Ask DuckDB over turns, events, memories, edges, journal.")
@click.argument("query")
@AS_OF
@JSON
def sql(query: str, as_of: str | None, as_json: bool) -> None:
    """Ask DuckDB over turns, events, memories, edges and journal (read-only)."""
    from cortex.cli import views

    views.sql(query, as_of=as_of, as_json=as_json)


@main.command(short_help="Make the tables anew from the lake, or check them.")
@click.option("--check", is_flag=True, help="Change nothing; list every difference.")
@click.option(
    "--adopt-lake", is_flag=True, help="First make a lost or wrong manifest again from the lake's files."
)
@click.option(
    "--set-aside",
    is_flag=True,
    help="First move damaged and unknown lake files beside the store and go on without them.",
)
@ACCEPT_LOSS
@JSON
def rebuild(check: bool, adopt_lake: bool, set_aside: bool, accept_loss: bool, as_json: bool) -> None:
    """Make tables and briefs anew from the lake and put them in place of the live ones.

    With --check they are only compared, row for row; any difference ends with exit code 12.
    """
    from cortex.cli import upkeep

    upkeep.rebuild(
        check=check,
        adopt_lake=adopt_lake,
        set_aside=set_aside,
        accepts_loss=accept_loss,
        as_json=as_json,
    )


@main.command(short_help="Show what today's extractor would make of old sessions.")
@PROJECT
@click.option("--promote", "take", is_flag=True, help="Put the result in place of what is there.")
@click.option("--drop", is_flag=True, help="Keep what is there and do not mention it again.")
@ACCEPT_LOSS
@JSON
def rederive(project: str | None, take: bool, drop: bool, accept_loss: bool, as_json: bool) -> None:
    """Make events and memories of old sessions as today's extractor and policy would.

    Prints what appears, vanishes and changes and what it costs. Without --project: every project.
    """
    from cortex.cli import upkeep

    upkeep.rederive(project, take=take, drop=drop, accepts_loss=accept_loss, as_json=as_json)


@main.command(short_help="Check that everything needed is there.")
@JSON
def doctor(as_json: bool) -> None:
    """Say how much of Cortex is at work here and why, and check all that it needs, with a next step."""
    from cortex.cli.doctor import doctor as examine

    examine(as_json=as_json)


@main.group("eval")
def evaluation() -> None:
    """Measure Cortex against hand-made labels."""


@evaluation.command("extract")
@click.option(
    "--transcripts",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder the labelled sessions lie below.",
)
@click.option(
    "--labels", type=click.Path(path_type=Path), required=True, help="Labels, one JSON object a line."
)
@JSON
def eval_extract(transcripts: Path, labels: Path, as_json: bool) -> None:
    """Score what extraction keeps: recall, traps hit, duplicates, memories a session."""
    from cortex.cli import evaluation as command

    command.extract(transcripts, labels, as_json=as_json)
