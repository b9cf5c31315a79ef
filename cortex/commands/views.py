"""The commands that only look: brief, status, sql, doctor."""

import importlib
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from cortex.commands.memories import open_store
from cortex.commands.terminal import hint, print_json, say, size_of, table
from cortex.errors import CortexError, NotFound, UsageError
from cortex.flows.report import last_report
from cortex.settings import load_settings


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
    for project in store.projects.all():
        counted = [
            store.tables.open(project.project_id, name).count() for name in ("memories", "edges", "passages")
        ]
        rows.append([project.name, *counted, project.project_id])
    report = last_report(store.runs)
    size = (
        sum(path.stat().st_size for path in settings.home.rglob("*") if path.is_file())
        if settings.home.is_dir()
        else 0
    )
    if as_json:
        return print_json(
            {
                "home": str(settings.home),
                "bytes": size,
                "waiting": len(waiting),
                "projects": [
                    dict(zip(("name", "memories", "edges", "passages", "id"), row, strict=True))
                    for row in rows
                ],
                "last_run": report,
            }
        )
    say(f"Store {settings.home}, {size_of(size)}; {len(waiting)} transcripts wait.")
    if report:
        say(f"Last run: {report['flow']} at {report['started_at']}, {report['seconds']} s.")
    columns = ["project", "memories", "edges", "passages", "id"]
    if rows:
        table("Projects", columns, [[str(cell) for cell in row] for row in rows], numbers=set(columns[1:4]))
    else:
        say("Nothing remembered yet. Begin with: cortex backfill")
    return None


def sql(query: str, *, as_json: bool) -> None:
    """Run a query on memory.duckdb, read-only, and print its rows."""
    import duckdb

    path = open_store().published.database_path
    if not path.is_file():
        raise NotFound(f"there is no {path.name} yet.", "Make it: cortex backfill, or cortex run")
    with duckdb.connect(str(path), read_only=True) as database:
        database.execute("set TimeZone = 'UTC'")
        try:
            answer = database.sql(query)
        except duckdb.Error as error:
            raise UsageError(
                f"DuckDB says: {error}", "The tables: turns, events, memories, edges, journal."
            ) from error
        if answer is None:
            return None
        columns, rows = list(answer.columns), answer.fetchall()
    if as_json:
        return print_json({"columns": columns, "rows": [list(row) for row in rows]})
    table(f"{len(rows)} rows", columns, [[_cell(value) for value in row] for row in rows])
    return None


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
    place = home if home.is_dir() else home.parent
    if not os.access(place, os.W_OK):
        raise NotFound(f"{place} cannot be written.", "Set CORTEX_HOME to a folder that can.")
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
    return f"{value:.4g}" if isinstance(value, float) else str(value)
