"""The commands that only look: brief, status, sql."""

from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from cortex.cli.memories import open_store
from cortex.cli.past import store_as_of, tables_of
from cortex.cli.present import present
from cortex.cli.terminal import hint, print_json, say, size_of, table, write
from cortex.flows.briefs import archive_now, archive_of, brief_now, brief_of
from cortex.flows.extract import outdated
from cortex.flows.models import hosted_failure
from cortex.flows.runs import looking
from cortex.flows.stages.guard import pending_loss
from cortex.storage.background_run import Background, background_state
from cortex.storage.published import FROM_THE_LAKE
from cortex.storage.reference import read_policy
from cortex.storage.reports import last_report
from cortex.storage.settings import Settings, load_settings
from cortex.transforms.errors import UsageError
from cortex.transforms.schemas import GLOBAL_SCOPE


def brief(project: str | None, *, archive: bool = False, as_of: str | None = None, as_json: bool) -> None:
    """Print a project's brief, or its archive of older decisions, as a run would make it; or as of a day."""
    store = open_store()
    found = store.projects.named(project) if project else [store.projects.known(str(Path.cwd()))]
    ids = [name for name in found if name]
    if as_of is None:
        run, show = looking(present(), with_model=False), archive_now if archive else brief_now
        texts = {name: show(run, name) for name in ids}
    else:
        past, made = store_as_of(as_of, ids), archive_of if archive else brief_of
        texts = {name: made(past, name) for name in ids}
    if as_json:
        return print_json({"briefs": [{"project_id": name, "text": text} for name, text in texts.items()]})
    if not any(texts.values()):
        known = ", ".join(p.name for p in store.projects.all()) or "none yet; run `cortex backfill`"
        what = "older decisions" if archive else "brief"
        why = "" if archive and ids else f": nothing was remembered there. Known projects: {known}"
        hint(f"No {what} for {project or 'this folder'}{why}.")
    for text in texts.values():
        write(text)
    return None


def status(*, as_json: bool) -> None:
    """Print what the store holds, what waits, how the last run went."""
    settings = load_settings()
    store = open_store()
    waiting = store.staging.list_waiting()
    rows = []
    scopes = {project.project_id: project.name for project in store.projects.all()}
    for scope, name in {**scopes, GLOBAL_SCOPE: "(global)"}.items():
        counted = [store.tables.open(scope, table).count() for table in ("memories", "edges", "passages")]
        if scope != GLOBAL_SCOPE or any(counted):
            rows.append([name, *counted, scope])
    report = last_report(store.runs)
    loss = pending_loss(store.lake.manifest)
    old = outdated(store.lake.manifest, read_policy(settings.home))
    size = _size_of_folder(settings.home)
    ran = background_state(settings.home)
    if as_json:
        return print_json(
            {
                "home": str(settings.home),
                "bytes": size,
                "waiting": len(waiting),
                "outdated": old,
                "pending_loss": loss,
                "projects": [
                    dict(zip(("name", "memories", "edges", "passages", "id"), row, strict=True))
                    for row in rows
                ],
                "last_run": report,
                "background": _as_dict(ran),
                "embedding": _failure_as_dict(settings),
            }
        )
    say(f"Store {settings.home}, {size_of(size)}; {len(waiting)} transcripts wait.")
    if old:
        say(f"{len(old)} projects are of another extractor or policy than today's: cortex rederive")
    if loss:
        say(
            f"The last run would have hidden {loss['lost']} of {loss['shown']} {loss['what']}, so it "
            f"published nothing; {loss['why']}. See: cortex rederive. "
            "Undo the change, or let it pass: cortex run --accept-loss"
        )
    if report:
        say(f"Last run: {report['flow']} at {report['started_at']}, {report['seconds']} s.")
    failure = hosted_failure(settings)
    if failure:
        say(
            f"{failure.model} has not answered since {failure.failed_at:%Y-%m-%d %H:%M} UTC: {failure.reason}"
        )
        say("The local model and its vectors stand in; a later run asks again.")
    if ran.started_at:
        say(f"Last background run: {ran.outcome}, begun {ran.started_at:%Y-%m-%d %H:%M} UTC; log {ran.log}")
    columns = ["project", "memories", "edges", "passages", "id"]
    if rows:
        table("Projects", columns, [[str(cell) for cell in row] for row in rows], numbers=set(columns[1:4]))
    else:
        say("Nothing remembered yet. Begin with: cortex backfill")
    return None


def _failure_as_dict(settings: Settings) -> dict[str, str] | None:
    failure = hosted_failure(settings)
    if failure is None:
        return None
    since = failure.failed_at.isoformat()
    return {"model": failure.model, "failing_since": since, "reason": failure.reason}


def _as_dict(ran: Background) -> dict[str, object]:
    return {**asdict(ran), "outcome": ran.outcome}


def _size_of_folder(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*") if folder.is_dir() else ():
        with suppress(FileNotFoundError):  # a run may remove it meanwhile
            total += path.stat().st_size if path.is_file() else 0
    return total


def sql(query: str, *, as_of: str | None, as_json: bool) -> None:
    """Run a query on the store's tables, as they are or as of a day, and print its rows."""
    import duckdb

    from cortex.storage.sealed_sql import check_reads

    try:
        check_reads(query)
        with _database(query, as_of) as database:
            answer = database.sql(query)
            columns = [] if answer is None else list(answer.columns)  # one without rows is false
            rows = [] if answer is None else answer.fetchall()
    except duckdb.PermissionException as error:
        raise UsageError(
            "A query sees the tables of the store, no other file and no network.",
            "The tables: turns, events, memories, edges, metrics, journal. Files: any DuckDB client.",
        ) from error
    except duckdb.Error as error:
        if as_of is None and not isinstance(error, duckdb.ProgrammingError):  # the words are sound
            open_store().lake.check_readable(FROM_THE_LAKE)
        raise UsageError(
            f"DuckDB says: {error}\n", "The tables: turns, events, memories, edges, metrics, journal."
        ) from error
    if as_json:
        return print_json({"columns": columns, "rows": [list(row) for row in rows]})
    table(
        f"{len(rows)} row{'' if len(rows) == 1 else 's'}",
        columns,
        [[_cell(value) for value in row] for row in rows],
    )
    return None


def _database(query: str, as_of: str | None) -> Any:
    """Return a sealed connection that sees the store. Raises NotFound where nothing is published."""
    from cortex.storage.sealed_sql import database_of, database_of_store

    if as_of is not None:
        return database_of(tables_of(store_as_of(as_of)))
    store = open_store()
    return database_of_store(store.published, store.lake, query, store.projects.merged())


def _cell(value: object) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
