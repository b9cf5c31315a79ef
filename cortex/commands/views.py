"""The commands that only look: brief, status, sql, doctor."""

import importlib
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from cortex.commands.memories import open_store
from cortex.commands.terminal import hint, print_json, say, size_of, table
from cortex.errors import CortexError, NotFound, StoreNotWritable, UsageError
from cortex.flows.extract import outdated
from cortex.flows.report import last_report
from cortex.settings import load_settings
from cortex.storage.journal import GLOBAL_SCOPE
from cortex.storage.reference import read_policy

# Kinds of statement that only read; DuckDB takes `pivot` apart into several.
ASKING = {"SELECT", "EXPLAIN", "PRAGMA", "CALL", "SET", "MULTI"}


def brief(project: str | None, *, as_json: bool) -> None:
    """Print the published brief of a project."""
    store = open_store()
    ids = store.projects.named(project) if project else [store.projects.known(str(Path.cwd()))]
    texts = {name: store.published.brief(name) for name in ids if name}
    if as_json:
        return print_json({"briefs": [{"project_id": name, "text": text} for name, text in texts.items()]})
    if not any(texts.values()):
        known = ", ".join(p.name for p in store.projects.all()) or "none yet; run `cortex backfill`"
        hint(
            f"No brief for {project or 'this folder'}: nothing was remembered there. Known projects: {known}."
        )
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
            }
        )
    say(f"Store {settings.home}, {size_of(size)}; {len(waiting)} transcripts wait.")
    if old:
        say(f"{len(old)} projects are of another extractor or policy than today's: cortex rederive")
    if report:
        say(f"Last run: {report['flow']} at {report['started_at']}, {report['seconds']} s.")
    columns = ["project", "memories", "edges", "passages", "id"]
    if rows:
        table("Projects", columns, [[str(cell) for cell in row] for row in rows], numbers=set(columns[1:4]))
    else:
        say("Nothing remembered yet. Begin with: cortex backfill")
    return None


def _size_of_folder(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*") if folder.is_dir() else ():
        with suppress(FileNotFoundError):  # a run may remove it meanwhile
            total += path.stat().st_size if path.is_file() else 0
    return total


def sql(query: str, *, as_json: bool) -> None:
    """Run a query on memory.duckdb, read-only, and print its rows."""
    import duckdb

    path = open_store().published.database_path
    if not path.is_file():
        raise NotFound(f"there is no {path.name} yet.", "Make it: cortex backfill, or cortex run")
    try:
        _check_asks(query)
        with duckdb.connect(str(path), read_only=True) as database:
            database.execute("set TimeZone = 'UTC'")
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


def doctor(*, as_json: bool) -> None:
    """Check what Cortex needs; leave with 1 if something that it cannot do without is missing."""
    checks = [_checked(name, check) for name, check in _CHECKS]
    if as_json:
        print_json({"checks": [{"check": n, "ok": ok, "finding": text} for n, ok, text in checks]})
    else:
        table("Doctor", ["", "check", "finding"], [["ok" if ok else "!!", n, text] for n, ok, text in checks])
    if not all(ok for _, ok, _ in checks):
        sys.exit(1)


def _checked(name: str, check: Callable[[], str]) -> tuple[str, bool, str]:
    try:
        return name, True, check()
    except CortexError as error:
        return name, False, str(error)
    except (ImportError, OSError) as error:
        return name, False, f"{error}. Install cortex-lake again, or check the permissions."


def _python() -> str:
    return f"{sys.version.split()[0]} at {sys.executable}"


def _libraries() -> str:
    names = ("duckdb", "pyarrow", "polars", "lancedb")
    return ", ".join(f"{name} {importlib.import_module(name).__version__}" for name in names)


def _home() -> str:
    home = load_settings().home
    place = next(path for path in (home, *home.parents) if path.exists())
    if not place.is_dir():
        raise StoreNotWritable(f"{place} is a file.", "Set CORTEX_HOME to a folder.")
    if not os.access(place, os.W_OK):
        raise StoreNotWritable(f"{place} cannot be written.", "Set CORTEX_HOME to a folder that can.")
    free = shutil.disk_usage(place).free
    return f"{home}, {size_of(free)} free"


def _model() -> str:
    from cortex.providers import choose

    model = choose(load_settings().voyage_api_key)
    return f"{model.model}, {model.dimensions} dimensions"


def _store() -> str:
    manifest = open_store().lake.manifest
    files, read = len(manifest.files), len(manifest.cursors)
    return f"{manifest.generation} commits, {files} lake files, {read} transcripts read"


def _git() -> str:
    found = shutil.which("git")
    return found or "not found: projects go by their path"


_CHECKS: list[tuple[str, Callable[[], str]]] = [
    ("python", _python),
    ("libraries", _libraries),
    ("home", _home),
    ("store", _store),
    ("embedding model", _model),
    ("git", _git),
]


def _cell(value: object) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
