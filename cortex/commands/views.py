"""The commands that only look: brief, status, sql."""

import sys
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from cortex.commands.memories import open_store
from cortex.commands.past import sealed, store_as_of
from cortex.commands.terminal import hint, print_json, say, size_of, table
from cortex.errors import NotFound, UsageError
from cortex.flows.background import Background, state_of
from cortex.flows.briefs import archive_of, brief_of
from cortex.flows.extract import outdated
from cortex.flows.report import last_report
from cortex.settings import load_settings
from cortex.storage.journal import GLOBAL_SCOPE
from cortex.storage.published import lend_sealed
from cortex.storage.reference import read_policy

# Kinds of statement that only read; DuckDB takes `pivot` apart into several.
ASKING = {"SELECT", "EXPLAIN", "PRAGMA", "CALL", "SET", "MULTI"}


def brief(project: str | None, *, archive: bool = False, as_of: str | None = None, as_json: bool) -> None:
    """Print the published brief of a project, or the archive of its older decisions; now or as of a day."""
    store = open_store()
    found = store.projects.named(project) if project else [store.projects.known(str(Path.cwd()))]
    ids = [name for name in found if name]
    if as_of is None:
        published = store.published.archive if archive else store.published.brief
        texts = {name: published(name) for name in ids}
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
        sys.stdout.write(text)
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
    old = outdated(store.lake.manifest, read_policy(settings.home))
    size = _size_of_folder(settings.home)
    ran = state_of(settings.home)
    if as_json:
        return print_json(
            {
                "home": str(settings.home),
                "bytes": size,
                "waiting": len(waiting),
                "outdated": old,
                "projects": [
                    dict(zip(("name", "memories", "edges", "passages", "id"), row, strict=True))
                    for row in rows
                ],
                "last_run": report,
                "background": _as_dict(ran),
            }
        )
    say(f"Store {settings.home}, {size_of(size)}; {len(waiting)} transcripts wait.")
    if old:
        say(f"{len(old)} projects are of another extractor or policy than today's: cortex rederive")
    if report:
        say(f"Last run: {report['flow']} at {report['started_at']}, {report['seconds']} s.")
    if ran.started_at:
        say(f"Last background run: {ran.outcome}, begun {ran.started_at:%Y-%m-%d %H:%M} UTC; log {ran.log}")
    columns = ["project", "memories", "edges", "passages", "id"]
    if rows:
        table("Projects", columns, [[str(cell) for cell in row] for row in rows], numbers=set(columns[1:4]))
    else:
        say("Nothing remembered yet. Begin with: cortex backfill")
    return None


def _as_dict(ran: Background) -> dict[str, object]:
    return {**asdict(ran), "outcome": ran.outcome}


def _size_of_folder(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*") if folder.is_dir() else ():
        with suppress(FileNotFoundError):  # a run may remove it meanwhile
            total += path.stat().st_size if path.is_file() else 0
    return total


def sql(query: str, *, as_of: str | None, as_json: bool) -> None:
    """Run a query on memory.duckdb, read-only, or on the tables as of a day, and print its rows."""
    import duckdb

    try:
        _check_asks(query)
        with _database(query, as_of) as database:
            answer = database.sql(query)
            columns = list(answer.columns) if answer else []
            rows = answer.fetchall() if answer else []
    except duckdb.Error as error:
        raise UsageError(
            f"DuckDB says: {error}\n", "The tables: turns, events, memories, edges, journal."
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
    """Return an open connection that reads the store. Raises NotFound where nothing is published."""
    import duckdb

    if as_of is not None:
        return sealed(store_as_of(as_of))
    store = open_store()
    path = store.published.database_path
    if not path.is_file():
        raise NotFound(f"there is no {path.name} yet.", "Make it: cortex backfill, or cortex run")
    database = duckdb.connect(str(path), read_only=True)
    database.execute("set TimeZone = 'UTC'")
    lend_sealed(database, store.lake, query, store.projects.merged())
    return database


def _check_asks(query: str) -> None:
    """Raise UsageError for what could write: `copy` makes files from a read-only database too."""
    import duckdb

    statements = duckdb.extract_statements(query)
    if not statements:
        raise UsageError("the query is empty.", "Try: cortex sql 'select count(*) from memories'")
    for statement in statements:
        if statement.type.name not in ASKING:
            raise UsageError(
                f"'{statement.type.name.lower()}' does not ask, and the store is read-only here.",
                "Begin with select; change memories with remember and forget.",
            )


def _cell(value: object) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
