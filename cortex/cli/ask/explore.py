"""The commands `explore` and `serve`: the store, and the history of its runs, as pages in the browser."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cortex.cli.answer import Answer, command, hint, size_of

if TYPE_CHECKING:
    from cortex.flows.context import Context


IDLE_MINUTES = 30


@command("explore", "Browse and edit the store in your web browser.", place=110, json=False)
@click.option("--port", default=0, type=click.IntRange(0, 65_535), help="Port. Default: any free port.")
@click.option("--no-browser", is_flag=True, help="Print the link without opening a browser.")
@click.option("--read-only", is_flag=True, help="Allow no changes.")
@click.option(
    "--idle-minutes",
    default=IDLE_MINUTES,
    show_default=True,
    type=click.IntRange(1, 1440),
    help="Stop after this long without a request.",
)
@click.option(
    "--export",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write the pages as files to DIR instead of serving them.",
)
def explore(
    context: Context, port: int, no_browser: bool, read_only: bool, idle_minutes: int, export: Path | None
) -> Answer:
    """Browse and edit the store in your web browser, until Ctrl-C. Only this machine can connect.

    Shows what the assistant is told, and what is remembered and why, with its evidence. The link works once.
    Nothing keeps running after it ends.
    """
    if export is not None:
        return _exported(context, export)
    import webbrowser

    from cortex.explorer.server import listen, serve_pages

    context.open_store()  # an error is better said here than on a page
    listening = listen(context, port, is_read_only=read_only)

    def is_up() -> None:
        hint(f"The explorer of {context.home}: {listening.address}")
        hint(f"The link works once. Ctrl-C ends it, and so do {idle_minutes} minutes without a request.")
        if not no_browser:
            webbrowser.open(listening.address)

    with suppress(KeyboardInterrupt):
        serve_pages(listening, idle_minutes, is_up)
    return Answer({}, ["The explorer has ended."])


def _exported(context: Context, folder: Path) -> Answer:
    from cortex.explorer.server import export_pages

    written = export_pages(context, folder)
    line = f"{written.pages:,} pages, {size_of(written.bytes)}: {folder / 'index.html'}"
    cut = ["There are more pages than an export writes; the explorer itself shows all."]
    return Answer({}, [line], cut if written.is_cut else [])


@command("serve", "Serve the flows with Prefect, and its page of past runs.", place=120, json=False)
@click.option("--port", default=4200, show_default=True, type=click.IntRange(1, 65_535), help="Port.")
@click.option("--cron", default="30 3 * * *", show_default=True, help="Start of the nightly run, in UTC.")
def serve(context: Context, port: int, cron: str) -> Answer:
    """Serve the flows with Prefect, and its page of past runs, on this machine alone, until Ctrl-C.

    While it runs, all runs go through this server and appear on its page, and the nightly run is started on
    time. Nothing keeps running after it ends.
    """

    from cortex.flows.operations.maintain import serve

    def tell(address: str) -> None:
        hint(f"Prefect's pages over the runs of {context.home}: {address} (ready in about 10 s; Ctrl-C ends)")

    return Answer({}, exit_code=serve.serve(context, port, tell, cron))
