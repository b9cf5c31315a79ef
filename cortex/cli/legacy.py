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

    The rest of the file stays byte for byte; `cortex uninstall` takes them out again.
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


@main.command(short_help="Search memories and what was said.")
@click.argument("question", nargs=-1, required=True)
@PROJECT
@click.option("--all-projects", is_flag=True, help="Search every project.")
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="Results at most.")
@click.option(
    "--related",
    type=click.IntRange(0, 3),
    default=0,
    metavar="STEPS",
    help="Also memories up to that many links away from those found (1 to 3).",
)
@AS_OF
@JSON
def recall(
    question: tuple[str, ...],
    project: str | None,
    all_projects: bool,
    limit: int,
    related: int,
    as_of: str | None,
    as_json: bool,
) -> None:
    """Search memories and what was said; each answer with its source, age and confidence."""
    from cortex.cli import memories

    memories.recall(
        " ".join(question),
        project=project,
        all_projects=all_projects,
        limit=limit,
        related=related,
        as_of=as_of,
        as_json=as_json,
    )


@main.command()
@click.argument("text", nargs=-1, required=True)
@click.option("--type", "memory_type", default="context", show_default=True, help="Memory type.")
@click.option(
    "--priority", type=click.IntRange(1, 10), default=5, show_default=True, help="Weight in ranking."
)
@click.option("--global", "is_global", is_flag=True, help="Holds for every project.")
@click.option("--pin", is_flag=True, help="Never fade, never merge.")
@PROJECT
@JSON
def remember(
    text: tuple[str, ...],
    memory_type: str,
    priority: int,
    is_global: bool,
    pin: bool,
    project: str | None,
    as_json: bool,
) -> None:
    """Keep a fact in your own words; one that is known is reinforced, and what says nothing is refused."""
    from cortex.cli import remembering

    remembering.remember(
        " ".join(text),
        memory_type=memory_type,
        priority=priority,
        is_global=is_global,
        pin=pin,
        project=project,
        as_json=as_json,
    )


@main.command(short_help="Erase a memory or a session.")
@click.argument("target", nargs=-1)
@PROJECT
@click.option("--session", metavar="ID", help="Forget all that this session said, instead of one memory.")
@click.option("--yes", is_flag=True, help="Forget the best match of a question without asking.")
@JSON
def forget(
    target: tuple[str, ...], project: str | None, session: str | None, yes: bool, as_json: bool
) -> None:
    """Forget a memory by its id (6 characters are enough), or by words that stand in no other.

    Its text is erased from every file of the store, and from the turns it rests on. Words that could mean
    several memories only list them. With --yes words count where two or more stand in one memory and at most
    half of them in any other.
    """
    from cortex.cli import forgetting, keeping

    if bool(target) == bool(session):
        raise UsageError(
            "what to forget is missing or told twice.", "Give an id or a question, or --session."
        )
    if session:
        return keeping.forget_session(session, as_json=as_json)
    return forgetting.forget(" ".join(target), project=project, yes=yes, as_json=as_json)


@main.command(short_help="Put other words in a memory's place.")
@click.argument("memory")
@click.argument("text", nargs=-1, required=True)
@JSON
def edit(memory: str, text: tuple[str, ...], as_json: bool) -> None:
    """Let the MEMORY, named by its id, say TEXT from now on; its age and evidence stay.

    What it said before stays in the journal. To erase words: forget.
    """
    from cortex.cli import curating

    curating.edit(memory, " ".join(text), as_json=as_json)


@main.command(short_help="Keep a memory from fading and merging.")
@click.argument("memory")
@click.option("--off", is_flag=True, help="Let it fade and merge again.")
@JSON
def pin(memory: str, off: bool, as_json: bool) -> None:
    """Keep the MEMORY, named by its id, from fading and from being merged."""
    from cortex.cli import curating

    curating.pin(memory, off=off, as_json=as_json)


@main.command(short_help="Say that one memory took another's place.")
@click.argument("old")
@click.argument("new", required=False)
@click.option("--undo", is_flag=True, help="Show OLD again, as if nothing had taken its place.")
@JSON
def supersede(old: str, new: str | None, undo: bool, as_json: bool) -> None:
    """Say that the memory NEW took the place of OLD, both named by id; OLD is no longer shown."""
    from cortex.cli import curating

    if undo == (new is not None):
        raise UsageError("a replacement has two ids, --undo one.", "cortex supersede OLD NEW, or --undo OLD")
    if new is None:
        return curating.take_back_supersede(old, as_json=as_json)
    return curating.supersede(old, new, as_json=as_json)


@main.command("index-code", short_help="Keep what a source file does, in prose.")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--describe", metavar="TEXT", help="What the file does and why; default: standard input.")
@PROJECT
@JSON
def index_code(path: Path, describe: str | None, project: str | None, as_json: bool) -> None:
    """Keep what the source file PATH does, in prose that is searched, and its code beside it.

    The code is stored, never embedded and never in a brief. Indexed again, a file's words are replaced.
    """
    from cortex.cli import curating

    curating.index_code(path, describe, project=project, as_json=as_json)


@main.command(short_help="Erase everything about a project.")
@click.option("--project", metavar="NAME", required=True, help="A project's name, id or path.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@JSON
def reset(project: str, yes: bool, as_json: bool) -> None:
    """Erase everything about a project up to now; what it says from now on is kept."""
    from cortex.cli import keeping

    keeping.reset(project, yes=yes, as_json=as_json)


@main.command(short_help="Name a moment to come back to.")
@click.argument("name")
@JSON
def checkpoint(name: str, as_json: bool) -> None:
    """Give this moment a NAME that `consolidate --undo --to NAME` goes back to."""
    from cortex.cli import keeping

    keeping.checkpoint(name, as_json=as_json)


@main.command(short_help="Merge what says the same; take that back.")
@click.option("--dry-run", is_flag=True, help="Only show what would be merged.")
@click.option("--undo", is_flag=True, help="Take the last consolidation back.")
@click.option("--to", "name", metavar="NAME", help="With --undo: all since this checkpoint.")
@JSON
def consolidate(dry_run: bool, undo: bool, name: str | None, as_json: bool) -> None:
    """Merge memories that say the same; the originals stay, archived."""
    from cortex.cli import keeping

    if (dry_run and undo) or (name is not None and not undo):
        raise UsageError("--dry-run and --undo exclude each other; --to needs --undo.", "Give one of them.")
    if undo:
        return keeping.undo(name, as_json=as_json)
    return keeping.propose_merges(as_json=as_json) if dry_run else keeping.consolidate(as_json=as_json)


@main.command(short_help="Write the store into one file.")
@click.argument("file", type=click.Path(path_type=Path))
@JSON
def backup(file: Path, as_json: bool) -> None:
    """Write the whole store into one FILE (tar, zstd), with the hash of each part inside."""
    from cortex.cli import keeping

    keeping.backup(file, as_json=as_json)


@main.command(short_help="Put a backup in the store's place.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--into", type=click.Path(path_type=Path), help="Another folder than the present store's.")
@JSON
def restore(file: Path, into: Path | None, as_json: bool) -> None:
    """Check a backup FILE and put it in the store's place; the present store stays beside it."""
    from cortex.cli import keeping

    keeping.restore(file, into=into, as_json=as_json)


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


@main.command(short_help="Write memories as JSON or Markdown.")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "markdown"]),
    default="json",
    show_default=True,
    help="JSON says all of each memory, Markdown is a list to read.",
)
@PROJECT
@AS_OF
@JSON
def export(file: Path | None, form: str, project: str | None, as_of: str | None, as_json: bool) -> None:
    """
    Write memories to FILE, or to standard output; default: those of every project.

    JSON holds everything, and `cortex import` puts it back as it was. Markdown holds text, type and project
    of the active memories.
    """
    from cortex.cli import exchanging

    exchanging.export(file, form=form, project=project, as_of=as_of, as_json=as_json)


@main.command("import", short_help="Take in memories from a file.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--own", is_flag=True, help="The file is an export of yours from elsewhere: believe it.")
@PROJECT
@JSON
def import_(file: Path, own: bool, project: str | None, as_json: bool) -> None:
    """
    Take in memories of FILE: Cortex's export, a Markdown list, JSON of claude-mem, mem0 and others.

    Your own export, known by its signature, comes back as it was, each memory in its own project. Anything
    else is external: found by recall, never in a brief.
    """
    from cortex.cli import exchanging

    exchanging.import_file(file, project=project, is_own=own, as_json=as_json)


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


@main.command(short_help="Contradictions, stale claims, merge proposals.")
@click.option("--accept", metavar="ID", multiple=True, help="Do what an item offers; several may be given.")
@click.option("--keep", metavar="ID", multiple=True, help="Leave an item as it is and ask no more.")
@click.option("--ask", is_flag=True, help="Ask about one after another.")
@PROJECT
@JSON
def review(
    accept: tuple[str, ...], keep: tuple[str, ...], ask: bool, project: str | None, as_json: bool
) -> None:
    """List what a person may settle: contradictions, stale claims, memories that could be merged.

    Accepted, the newer decision takes the older one's place, the claim is archived, the memories are merged.
    """
    from cortex.cli import reviewing

    if ask and (accept or keep or as_json):
        raise UsageError("--ask stands alone.", "Give --ask, or ids with --accept and --keep.")
    reviewing.review(project, accept=accept, keep=keep, ask=ask, as_json=as_json)


@main.command(short_help="How sessions went: figures by session and project.")
@PROJECT
@JSON
def stats(project: str | None, as_json: bool) -> None:
    """Print figures by session: decisions made twice, rejected ones proposed again, files read again."""
    from cortex.cli import reading

    reading.stats(project, as_json=as_json)


@main.group(invoke_without_command=True, short_help="List, rename, merge and split projects.")
@JSON
@click.pass_context
def projects(context: click.Context, as_json: bool) -> None:
    """List the projects, with what identifies each and where it lies; rename, merge or split them."""
    from cortex.cli import projects as command

    if context.invoked_subcommand is None:
        command.list_projects(as_json=as_json)


@projects.command("rename")
@click.argument("project")
@click.argument("name")
@JSON
def rename_project(project: str, name: str, as_json: bool) -> None:
    """Give PROJECT another NAME; its id stays."""
    from cortex.cli import projects as command

    command.rename(project, name, as_json=as_json)


@projects.command("merge")
@click.argument("project", metavar="FROM")
@click.argument("into", metavar="INTO")
@JSON
def merge_projects(project: str, into: str, as_json: bool) -> None:
    """Make project FROM a part of INTO: its memories, folders and later sessions are INTO's."""
    from cortex.cli import projects as command

    command.merge(project, into, as_json=as_json)


@projects.command("split")
@click.argument("project")
@JSON
def split_project(project: str, as_json: bool) -> None:
    """Take a merge of PROJECT back: what was said in its folders is its own again."""
    from cortex.cli import projects as command

    command.split(project, as_json=as_json)


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
