"""
Draws the explorer's pages: `python -m docs.screenshots` writes docs/explorer/*.jpg.

The pages are of the sample sessions, the day after the last of them, in Debian's chromium. Needs playwright.
"""

import re
import shutil
import sys
import tempfile
import threading
from pathlib import Path

from playwright.sync_api import sync_playwright

from cortex.cli.start.setup import DEMO_DAY
from cortex.explorer.server import listen, serve_pages
from cortex.flows.context import Context
from cortex.flows.engines import runs
from cortex.flows.operations.maintain import status
from cortex.storage.settings.settings import load_settings

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "explorer"
QUALITY = 62
# Health says where things are: of the machine that draws, no folder belongs into a picture.
WITHOUT_PLACES = """(folders) => {
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode())
    for (const folder of folders) walk.currentNode.data = walk.currentNode.data.replaceAll(folder, "~");
}"""
VIEWPORTS = {"light": (1200, 760), "dark": (1200, 760), "narrow": (360, 720)}
# File name → page; "MEMORY" is a decision with relations, "SESSION" one that it rests on, "RUN" the last run.
PAGES = {
    "brief": "/",
    "search": "/search?q=why+sqlite",
    "memory": "/memory/MEMORY",
    "edit": "/memory/MEMORY/edit",
    "replace": "/memory/MEMORY/supersede",
    "forget": "/memory/MEMORY/forget",
    "timeline": "/timeline?in=2026-10",
    "session": "/session/SESSION",
    "graph": "/graph?memory=MEMORY",
    "review": "/review",
    "runs": "/runs",
    "run": "/runs/RUN",
    "costs": "/costs",
    "health": "/health",
    "sql": "/sql?q=select+memory_type,+count(*)+as+memories+from+memories+group+by+all+order+by+all",
    "settings": "/settings",
}


def main() -> None:
    """Read the samples into a scratch store, serve it, and write the pictures."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("There is no chromium on this machine.")
    with tempfile.TemporaryDirectory(prefix="cortex-screenshots-") as scratch:
        home = Path(scratch) / "store"
        context = Context(load_settings(home), clock=lambda: DEMO_DAY, folder=Path(scratch))
        # Pages name the files of transcripts; no place of this machine belongs into a picture.
        copied = shutil.copytree(ROOT / "data" / "samples" / "projects", Path(scratch) / "projects")
        samples = runs.look_for(context.settings, [copied]).transcripts
        runs.stage_all(context.settings, samples)
        runs.execute("backfill", context)
        _draw(context, chromium)


def _draw(context: Context, chromium: str) -> None:
    listening, is_up = listen(context), threading.Event()
    threading.Thread(target=serve_pages, args=(listening, 30, is_up.set), daemon=True).start()
    is_up.wait(20)
    names = _names_in(context)
    base = listening.explorer.gate.origin
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(listening.address)
        page.wait_for_url(f"{base}/")
        for look, (width, height) in VIEWPORTS.items():
            page.set_viewport_size({"width": width, "height": height})
            page.emulate_media(color_scheme="dark" if look == "dark" else "light")
            for name, address in PAGES.items():
                page.goto(base + re.sub("[A-Z]{3,}", lambda match: names[match[0]], address))
                page.evaluate(WITHOUT_PLACES, [str(context.home.parent), str(Path.home())])
                page.screenshot(path=FOLDER / f"{name}-{look}.jpg", type="jpeg", quality=QUALITY)
        browser.close()


def _names_in(context: Context) -> dict[str, str]:
    """Return what the pages are about: a decision with evidence and relations, its session, the last run."""
    catalogue = context.open_catalogue()
    edges = catalogue.read("edges", ("source_id",), order="strength desc, edge_id")
    ids = [row["source_id"] for row in edges]
    decisions = catalogue.read("memories", (), {"memory_id": ids, "memory_type": ["decision"]})
    memory = min((row for row in decisions if row["evidence"]), key=lambda row: ids.index(row["memory_id"]))
    return {
        "MEMORY": memory["memory_id"],
        "SESSION": memory["evidence"][0]["session_id"],
        "RUN": next(iter(status.list_reports(context))),
    }


if __name__ == "__main__":
    main()
