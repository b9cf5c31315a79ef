"""The command `doctor`: how much of Cortex is at work here and why, and a check of each thing it rests on."""

import importlib
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from cortex.cli import installing
from cortex.cli.memories import open_store
from cortex.cli.terminal import age_of, now, print_json, say, size_of, table
from cortex.flows.models import hosted_failure
from cortex.flows.stages.guard import pending_loss
from cortex.hooks import background, health, ticket
from cortex.storage.background_run import background_state
from cortex.storage.client_files import client_folder
from cortex.storage.settings import load_settings, store_home
from cortex.transforms.errors import ClientSettingsUnusable, CortexError, ModelUnavailable, StoreNotWritable

# A fault that hooks wrote down is worth a look for as long as somebody may remember what happened.
LOG_LOOK_DAYS = 7
# Where the launcher keeps the path of the Python that it found, below the home or the plugin's data folder.
PYTHON_MEMO = "python"


class Worth(Exception):
    """What a check found that does no harm yet, with what to do about it."""


@dataclass(frozen=True)
class Tier:
    """How much of Cortex is at work: its name, why it is that one, and the next step up, if there is one."""

    name: str
    why: str
    next: str


@dataclass(frozen=True)
class Check:
    """One check: `ok` is false where something needed is missing, `mark` is ok, `!` (look at it) or `!!`."""

    check: str
    ok: bool
    mark: str
    finding: str


def doctor(*, as_json: bool) -> None:
    """Say the tier and check what it rests on; leave with 1 where something is missing that is needed."""
    tier = tier_of(store_home())
    checks = [_checked(name, check) for name, check in CHECKS]
    if as_json:
        print_json({"tier": asdict(tier), "checks": [asdict(check) for check in checks]})
    else:
        say(f"Tier: {tier.name}. {tier.why}")
        say(f"Next: {tier.next}\n")
        table("Checks", ["", "check", "finding"], [[c.mark, c.check, c.finding] for c in checks])
    if not all(check.ok for check in checks):
        sys.exit(1)


def tier_of(home: Path) -> Tier:
    """Return the tier that is on for the store at `home`."""
    if not _are_hooks_there(home):
        why = "No hook is installed, and none was heard of: nothing is captured by itself."
        return Tier("engine without hooks", why, "`cortex install`, or the plugin.")
    if background.engine_at(str(home)) is None:
        noted = home / background.ENGINE
        why = f"{noted} names a command that is gone." if noted.is_file() else "The hooks know of no engine."
        step = "`cortex run` tells them where this command lies."
        return Tier("hooks alone", f"{why} They capture, and give a basic brief.", step)
    try:
        model = load_settings().voyage_api_key
        _model()
    except ModelUnavailable as error:
        return Tier("engine, words only", error.problem, error.next_step)
    except CortexError as error:
        return Tier("engine", error.problem, error.next_step)
    if model:
        return Tier("engine and hosted embedder", "A key for Voyage AI is set.", "none: this is the highest.")
    step = (
        "nothing is missing. A key in `embed.voyage_api_key` embeds with Voyage AI; prose then leaves here."
    )
    return Tier("engine", "It embeds with the local model; no key is set.", step)


def _are_hooks_there(home: Path) -> bool:
    try:
        there = installing.installed()
    except ClientSettingsUnusable:
        there = {}
    # `claude --plugin-dir` leaves no trace in the settings, but the hooks leave theirs.
    return there.get("plugin") or there.get("hooks") or _last_capture(home) is not None


def _checked(name: str, check: Callable[[], str]) -> Check:
    try:
        return Check(name, True, "ok", check())
    except Worth as found:
        return Check(name, True, "!", str(found))
    except CortexError as error:
        return Check(name, False, "!!", str(error))
    except (ImportError, OSError) as error:
        return Check(name, False, "!!", f"{error}. Install cortex-lake again, or check the permissions.")


# The hooks and their run


def _hooks() -> str:
    captured = _last_capture(store_home())
    heard = f"last heard of {_ago(captured)}" if captured else "not heard of yet"
    try:
        there = installing.installed()
    except ClientSettingsUnusable as error:
        raise Worth(f"{heard}. {error}") from error
    if there["plugin"] and there["hooks"]:
        raise Worth(
            "in the plugin and in the settings: each event counts twice. Take one out: cortex uninstall"
        )
    if there["plugin"] or there["hooks"]:
        return f"{'plugin' if there['plugin'] else 'settings'}; {heard}"
    raise Worth(f"not in {client_folder()}; {heard}. Put them there: cortex install, or install the plugin.")


def _hooks_python() -> str:
    memos = [store_home() / PYTHON_MEMO, *client_folder().glob(f"plugins/data/cortex-lake*/{PYTHON_MEMO}")]
    for memo in memos:
        if memo.is_file():
            found = memo.read_text(errors="replace").split("\n", 1)[0]
            if "\0" not in found and os.access(found, os.X_OK):
                return found
    named = next((path for name in ("python3", "python") if (path := shutil.which(name))), None)
    if named is None:
        raise FileNotFoundError("no python3 on the PATH, so the hooks do nothing")
    return f"{named}, to be tried at the next event"


def _engine() -> str:
    home = store_home()
    engine = background.engine_at(str(home))
    if engine:
        return engine
    noted = home / background.ENGINE
    if noted.is_file():
        raise StoreNotWritable(f"{noted} names a command that is gone.", "Note this one: cortex run")
    raise Worth("not noted for the hooks yet: cortex run")


def _background() -> str:
    state = background_state(store_home())
    if state.started_at is None:
        return "none yet"
    told = f"{state.outcome}, {_ago(state.ended_at or state.started_at)}"
    if not state.failures or state.is_running:
        return told
    since = f"; {state.failures} in a row since {_ago(state.failing_since)}" if state.failures > 1 else ""
    raise Worth(f"{told}{since}. Its output: {state.log}")


def _waiting() -> str:
    home = store_home()
    if not (home / "staging").is_dir():
        return "nothing waits"
    waiting, aside = open_store().staging.list_waiting(), _count(home / "staging" / ticket.QUARANTINED)
    since = health.stuck_since(str(home))
    oldest = health.oldest_ticket(str(home))
    told = f"{len(waiting)} transcripts wait" + (
        f", the first for {_age(_instant(oldest))}" if oldest else ""
    )
    told += f"; {aside} set aside" if aside else ""
    if since and _instant(since) is not None:
        raise Worth(f"{told}; nothing was taken in since {_ago(_instant(since))}. Try: cortex run")
    return told


def _log() -> str:
    path = store_home() / "runs" / "hooks.log"
    if not path.is_file():
        return "no hook has complained"
    written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    told = f"{path}, {size_of(path.stat().st_size)}, last line {_ago(written)}"
    if (now() - written).days < LOG_LOOK_DAYS:
        raise Worth(told)
    return told


def _last_capture(home: Path) -> datetime | None:
    """Return when a hook last left something: the mark of a session's start, or a ticket."""
    seen, new = (home / "staging" / name for name in (ticket.SEEN, ticket.NEW))
    if not seen.is_dir():  # a backfill writes tickets too, but no such mark
        return None
    times = [folder.stat().st_mtime for folder in (seen, new) if folder.is_dir()]
    return datetime.fromtimestamp(max(times), UTC)


def _count(folder: Path) -> int:
    return sum(path.suffix == ".json" for path in folder.iterdir()) if folder.is_dir() else 0


def _instant(stamp: str) -> datetime | None:
    """
    Return the instant of a ticket's stamp, to the second; None where it is none.

    >>> _instant("20260921T141320123456Z")
    datetime.datetime(2026, 9, 21, 14, 13, 20, tzinfo=datetime.timezone.utc)
    """
    try:
        return datetime.strptime(stamp[:15], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None


def _ago(then: datetime | None) -> str:
    age = _age(then)
    return age if age in ("just now", "age unknown") else f"{age} ago"


def _age(then: datetime | None) -> str:
    return age_of(then, now())


# What the engine rests on


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
    from cortex.flows.embedders import choose

    settings = load_settings()
    model = choose(settings.voyage_api_key)
    if settings.voyage_api_key:
        model.embed(["Does it answer?"], as_query=True)  # a key that fails is worse than none
        if failure := hosted_failure(settings):
            raise Worth(f"{model.model} answers again; the next run takes it up ({failure.reason})")
    return f"{model.model}, {model.dimensions} dimensions"


def _store() -> str:
    manifest = open_store().lake.manifest
    files, read = len(manifest.files), len(manifest.cursors)
    return f"{manifest.generation} commits, {files} lake files, {read} transcripts read"


def _loss() -> str:
    loss = pending_loss(open_store().lake.manifest)
    if loss is None:
        return "nothing shown is about to be hidden"
    raise Worth(
        f"{loss['lost']} of {loss['shown']} {loss['what']} would be hidden by a run, so nothing new is "
        f"published; {loss['why']}. See: cortex rederive. Undo the change, or: cortex run --accept-loss"
    )


def _encryption() -> str:
    lake = open_store().lake
    lake.check_key()
    return f"the lake is sealed with the key {lake.key_id}, which is at hand" if lake.key_id else "off"


def _git() -> str:
    found = shutil.which("git")
    return found or "not found: projects go by their path"


CHECKS: list[tuple[str, Callable[[], str]]] = [
    ("hooks", _hooks),
    ("hooks' python", _hooks_python),
    ("engine", _engine),
    ("background run", _background),
    ("staging", _waiting),
    ("hooks' log", _log),
    ("home", _home),
    ("store", _store),
    ("loss", _loss),
    ("encryption", _encryption),
    ("embedding model", _model),
    ("python", _python),
    ("libraries", _libraries),
    ("git", _git),
]
