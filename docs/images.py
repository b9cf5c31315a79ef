"""
Draws what commands print as SVG: `python -m docs.images` writes docs/images/.

Each command runs on a terminal of 80 columns, on the sample sessions, the day after the last of them.
"""

import fcntl
import os
import pty
import struct
import sys
import tempfile
import termios
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from cortex.cli.main import main as command_line
from cortex.cli.start.setup import DEMO_DAY, DEMO_PROJECT, DEMO_QUESTION
from cortex.flows.context import Context
from cortex.storage.settings.settings import load_settings

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 80

# A longer output is cut: it is a picture, not the page.
MAX_LINES = 30

# File name → command.
IMAGES = {
    "today": ["today"],
    "list": ["list", "--project", DEMO_PROJECT, "--limit", "6"],
    "timeline": ["timeline", "--project", DEMO_PROJECT],
    "stats": ["stats", "--project", DEMO_PROJECT],
    "status": ["status"],
    "recall": ["recall", "--project", DEMO_PROJECT, "--limit", "2", DEMO_QUESTION],
    "brief": ["brief", "--project", DEMO_PROJECT],
    "explain": ["brief", "--explain", "--project", DEMO_PROJECT],
    "reflect": ["reflect", "--project", DEMO_PROJECT],
    "infer": ["infer", "SQLite", "--project", DEMO_PROJECT],
}

# As rich's own, without the fonts that it would fetch from a server.
FORMAT = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: monospace; font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def output_of(words: list[str], home: Path) -> str:
    """Return what a command prints on a terminal, with its colours."""
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, WIDTH, 0, 0))
        os.environ.update(TERM="xterm-256color", COLUMNS=str(WIDTH))
        os.chdir(home.parent)
        context = replace(Context(load_settings(home)), clock=lambda: DEMO_DAY, folder=home.parent)
        command_line(words, obj=context)
        sys.stdout.flush()
        os._exit(0)
    parts = []
    while True:
        try:
            part = os.read(terminal, 65_536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        parts.append(part)
    os.waitpid(child, 0)
    return b"".join(parts).decode().replace("\r\n", "\n")


def image_of(name: str, words: list[str], text: str) -> str:
    """Return a terminal with a command and its output as SVG; the same text gives the same bytes."""
    shown = " ".join(f'"{word}"' if " " in word else word for word in words)
    lines = Text.from_ansi(f"$ cortex {shown}\n{text}".rstrip())
    with Path(os.devnull).open("w") as nowhere:
        console = Console(width=WIDTH, record=True, file=nowhere, force_terminal=True)
        wrapped = lines.wrap(console, WIDTH)
        console.print(*wrapped[:MAX_LINES], *(["…"] if len(wrapped) > MAX_LINES else []), sep="\n")
        image = console.export_svg(title=f"cortex {words[0]}", code_format=FORMAT, unique_id=f"cortex-{name}")
    return "\n".join(line.rstrip() for line in image.splitlines()) + "\n"


def main() -> None:
    """Read the samples into a scratch store, and write the images that differ."""
    with tempfile.TemporaryDirectory(prefix="cortex-images-") as scratch:
        home = Path(scratch) / "store"
        output_of(["backfill", str(ROOT / "data" / "samples" / "projects"), "--engine", "plain"], home)
        for name, words in IMAGES.items():
            path = ROOT / "docs" / "images" / f"{name}.svg"
            path.parent.mkdir(exist_ok=True)
            text = output_of(words, home).replace(str(home), "~/.cortex")
            image = image_of(name, words, text.replace(f"{ROOT}/data/samples", "~/.claude"))
            if not path.is_file() or path.read_text(encoding="utf-8") != image:
                path.write_text(image, encoding="utf-8")
                print(f"wrote docs/images/{name}.svg")


if __name__ == "__main__":
    main()
