"""The command `setup`: what was found, the engine made known to the hooks, two offers, what to do next."""

import sys
from contextlib import nullcontext, redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path

from cortex.cli import installing
from cortex.cli.configuring import publish
from cortex.cli.runs import EXPECTED_BYTES_PER_SECOND, backfill, transcript_folders
from cortex.cli.terminal import print_json, say, size_of
from cortex.flows.runs import Backfill, look_for
from cortex.storage.background_run import note_engine
from cortex.storage.client_files import client_folder
from cortex.storage.settings import load_settings
from cortex.transforms.errors import ClientSettingsUnusable, NotFound, NothingUsable

_HOOKS_OFFER = "Put the hooks into {}/settings.json (not needed with the plugin)?"

NOTHING = Backfill((), 0, 0)


@dataclass(frozen=True)
class Found:
    """What setup found; `hooks` is `plugin`, `settings`, `both`, `none`, or why it cannot be told."""

    home: Path
    client: Path
    engine: Path | None
    sessions: int
    bytes: int
    read_before: int
    hooks: str
    status_line: bool

    @property
    def minutes(self) -> int:
        """Return how long reading what waits takes, rounded up."""
        return -(-self.bytes // (EXPECTED_BYTES_PER_SECOND * 60))


def setup(*, yes: bool, as_json: bool) -> None:
    """
    Show what is there, make the engine known, offer a backfill and the hooks.

    Asks only at a terminal; else, and without `yes`, nothing is written but what hooks need: the engine's
    place and their settings.
    """
    found = _look()
    publish()
    if as_json and not yes:
        return print_json({**_as_dict(found), "next": _next_steps(found)})
    if not as_json:
        _print(found)
    # What reading and installing say of themselves does not belong into the one JSON object.
    with redirect_stdout(sys.stderr) if as_json else nullcontext():
        _offer(found, yes)
    now_there = _look()
    if as_json:
        return print_json({**_as_dict(now_there), "next": _next_steps(now_there)})
    for step in _next_steps(now_there):
        say(f"Next: {step}")
    return None


def _offer(found: Found, yes: bool) -> None:
    # Reading comes last: it takes minutes, and may end with an error.
    if found.hooks == "none" and _wanted(_HOOKS_OFFER.format(found.client), yes):
        installing.install(dry_run=False, as_json=False)
    if found.sessions and _wanted(f"Read these transcripts now, some {found.minutes} min?", yes):
        backfill((), dry_run=False, engine="plain", as_json=False)


def _look() -> Found:
    settings = load_settings()
    try:
        waiting = look_for(settings, transcript_folders())
    except (NotFound, NothingUsable):
        waiting = NOTHING
    hooks, has_status_line = _hooks()
    return Found(
        home=settings.home,
        client=client_folder(),
        engine=note_engine(settings.home),
        sessions=len(waiting.transcripts),
        bytes=waiting.waiting_bytes,
        read_before=waiting.read_before,
        hooks=hooks,
        status_line=has_status_line,
    )


def _hooks() -> tuple[str, bool]:
    try:
        there = installing.installed()
    except ClientSettingsUnusable as error:
        return error.problem, False
    ways = [way for way, part in (("plugin", "plugin"), ("settings", "hooks")) if there[part]]
    return " and ".join(ways) or "none", there["status_line"]


def _print(found: Found) -> None:
    waiting = f"{found.sessions} to read, {size_of(found.bytes)}, some {found.minutes} min"
    say(f"Store        {found.home}")
    say(f"Client       {found.client}{'' if found.client.is_dir() else ' (not there)'}")
    say(f"Transcripts  {waiting if found.sessions else 'none to read'}; {found.read_before} read before")
    say(f"Engine       {found.engine or 'its place is unknown: call `cortex` by its own name'}")
    say(f"Hooks        {found.hooks}")
    say(f"Status line  {'ours' if found.status_line else 'not ours'}")


def _wanted(question: str, yes: bool) -> bool:
    if yes or not _is_asked():
        return yes
    import click

    return click.confirm(question, default=True)


def _is_asked() -> bool:
    return sys.stdin.isatty()


def _next_steps(found: Found) -> list[str]:
    steps = []
    if found.sessions:
        steps.append("cortex backfill reads the transcripts.")
    if found.hooks == "none":
        steps.append("cortex install puts the hooks into the settings; or install the plugin.")
    if found.hooks == "plugin and settings":
        steps.append("cortex uninstall: the plugin brings the same hooks, and each event counts twice.")
    if not found.status_line:
        steps.append("cortex statusline install shows memories and context below the prompt.")
    return steps or ["start a session of the assistant; it begins with the brief."]


def _as_dict(found: Found) -> dict[str, object]:
    told = {name: str(v) if isinstance(v, Path) else v for name, v in asdict(found).items()}
    return {**told, "minutes": found.minutes}
