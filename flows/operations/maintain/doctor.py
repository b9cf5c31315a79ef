"""How much of Cortex is at work here and why, and a check of each thing that it rests on."""

import importlib
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.filesize import decimal

from cortex.flows.context import utc_now
from cortex.flows.operations.maintain.config import OpenContext
from cortex.flows.operations.maintain.setup import installed
from cortex.flows.stages.guard import pending_loss
from cortex.hooks import background, health
from cortex.storage.filesystem.place import is_copy
from cortex.storage.lake.lake import LAKE_TABLES
from cortex.storage.machine.background_run import (
    background_state,
    hooks_log,
    hooks_python,
    last_capture,
    late_prompts,
    noted_engine,
)
from cortex.storage.model_failure import WRITER, hosted_failure, read_failure
from cortex.storage.staging.client_files import client_folder
from cortex.transforms.errors import ClientSettingsUnusable, CortexError, ModelUnavailable, StoreNotWritable
from cortex.transforms.words.ages import age_of, ago, counted

# A fault that hooks wrote down is worth a look for as long as somebody may remember what happened.
LOG_LOOK_DAYS = 7

REASONS_SHOWN = 2


class Notice(Exception):
    """What a check noticed that does no harm yet, with what to do about it."""


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


@dataclass(frozen=True)
class Examination:
    """The tier, and a check of each thing that it rests on."""

    tier: Tier
    checks: list[Check]

    @property
    def is_sound(self) -> bool:
        """Return whether nothing that is needed is missing."""
        return all(check.ok for check in self.checks)


@dataclass(frozen=True)
class DoctorTarget:
    """What is checked: the store's folder, and its context, which cannot be opened if a setting is broken."""

    home: Path
    open_context: OpenContext
    asks_models: bool = True

    @property
    def now(self) -> datetime:
        """Return the present instant, by the context's clock if there is one."""
        try:
            return self.open_context().now
        except CortexError:
            return utc_now()


def examine(home: Path, open_context: OpenContext, *, asks_models: bool = True) -> Examination:
    """
    Return how much of Cortex is at work for the store at `home`, and what is missing.

    Unless `asks_models` nothing is sent: whether a hosted model answers is not looked at.
    """
    target = DoctorTarget(home, open_context, asks_models)
    return Examination(_tier(target), [_checked(name, check, target) for name, check in CHECKS])


def _tier(target: DoctorTarget) -> Tier:
    home = target.home
    if not _has_hooks(home):
        why = "No hook is installed and none has reported: nothing is captured automatically."
        return Tier("engine without hooks", why, "cortex setup")
    if background.engine_at(str(home)) is None:
        noted = noted_engine(home)
        why = f"{noted} names a command that is gone." if noted else "The hooks know of no engine."
        step = "`cortex run` tells them where this command is."
        return Tier("hooks alone", f"{why} They capture, and give a basic brief.", step)
    try:
        has_key = bool(target.open_context().settings.voyage_api_key)
        _model(target)
    except Notice as notice:
        if not has_key:
            return Tier("engine, words only", f"The local model is {notice}", "nothing to do.")
    except ModelUnavailable as error:
        return Tier("engine, words only", error.problem, error.next_step)
    except CortexError as error:
        return Tier("engine", error.problem, error.next_step)
    if has_key:
        return Tier("engine and hosted embedder", "Voyage AI embeds: a key for it is set.", "nothing to do.")
    step = (
        "nothing to do. Optional: with a key in `embed.voyage_api_key` Voyage AI embeds, and sees the prose."
    )
    return Tier("engine", "Everything works offline, with the local model.", step)


def _has_hooks(home: Path) -> bool:
    try:
        there = installed()
    except ClientSettingsUnusable:
        return last_capture(home) is not None
    # `claude --plugin-dir` leaves no trace in the settings, but the hooks leave theirs.
    return there.plugin or there.hooks or last_capture(home) is not None


def _checked(name: str, check: Callable[[DoctorTarget], str], target: DoctorTarget) -> Check:
    try:
        return Check(name, True, "ok", check(target))
    except Notice as notice:
        return Check(name, True, "!", str(notice))
    except CortexError as error:
        return Check(name, False, "!!", str(error))
    except (ImportError, OSError) as error:
        return Check(name, False, "!!", f"{error}. Install cortex-lake again, or check the permissions.")


# The hooks and their run


def _hooks(target: DoctorTarget) -> str:
    captured = last_capture(target.home)
    report = f"last heard of {ago(captured, target.now)}" if captured else "not heard of yet"
    try:
        there = installed()
    except ClientSettingsUnusable as error:
        raise Notice(f"{report}. {error}") from error
    if there.plugin and there.hooks:
        raise ClientSettingsUnusable(
            "in the plugin and in the settings: each event counts twice.",
            "Remove those in the settings: cortex setup",
        )
    if there.plugin or there.hooks:
        return f"{'plugin' if there.plugin else 'settings'}; {report}"
    raise Notice(f"not in {client_folder()}; {report}. Add them: cortex setup")


def _hooks_python(target: DoctorTarget) -> str:
    if noted := hooks_python(target.home):
        return noted
    command = shutil.which("python3") or shutil.which("python")
    if command is None:
        raise FileNotFoundError("no python3 on the PATH, so the hooks do nothing")
    return f"{command} found; runs with your next session"


def _engine(target: DoctorTarget) -> str:
    engine = background.engine_at(str(target.home))
    if engine:
        return engine
    if noted := noted_engine(target.home):
        raise StoreNotWritable(f"{noted} names a command that is gone.", "Note this one: cortex run")
    raise Notice("not noted for the hooks yet: cortex run")


def _background(target: DoctorTarget) -> str:
    state = background_state(target.home)
    if state.started_at is None:
        return "none yet"
    outcome = f"{state.outcome}, {ago(state.ended_at or state.started_at, target.now)}"
    if not state.failures or state.is_running:
        return outcome
    since = f"; {state.failures} in a row since {ago(state.failing_since, target.now)}"
    raise Notice(f"{outcome}{since if state.failures > 1 else ''}. Its output: {state.log}")


def _waiting(target: DoctorTarget) -> str:
    home, now = target.home, target.now
    if not home.is_dir():
        return "nothing is waiting"
    staging = target.open_context().open_store().staging
    waiting, quarantined = len(staging.list_waiting()), staging.count_quarantined()
    since = health.stuck_since(str(home))
    oldest = health.oldest_ticket(str(home))
    finding = f"{counted(waiting, 'transcript')} waiting"
    finding += f", the first for {age_of(_instant(oldest), now)}" if oldest else ""
    finding += f"; {quarantined} set aside" if quarantined else ""
    for file, reason in staging.list_quarantined()[:REASONS_SHOWN]:
        finding += f"; {file}: {reason}"
    if since and _instant(since) is not None:
        raise Notice(f"{finding}; nothing was taken in since {ago(_instant(since), now)}. Try: cortex run")
    return finding


def _log(target: DoctorTarget) -> str:
    log, now = hooks_log(target.home), target.now
    if log is None:
        return "no hook has complained"
    finding = f"{log.path}, {decimal(log.size_bytes)}, last line {ago(log.written_at, now)}"
    if (now - log.written_at).days < LOG_LOOK_DAYS:
        raise Notice(finding)
    return finding


def _late(target: DoctorTarget) -> str:
    late = late_prompts(target.home)
    if late is None:
        return "no message went without evidence because looking took too long"
    count, last = late
    last_age = ago(last, target.now)
    messages = counted(count, "message")
    finding = f"{messages} went without evidence because looking took too long; the last {last_age}"
    if (target.now - last).days < LOG_LOOK_DAYS:
        raise Notice(f"{finding}. If the machine was not busy, try: cortex config set recall.at_prompt off")
    return finding


def _instant(stamp: str) -> datetime | None:
    """
    Return the instant of a ticket's stamp, to the second; None if it is not one.

    >>> _instant("20260921T141320123456Z")
    datetime.datetime(2026, 9, 21, 14, 13, 20, tzinfo=datetime.timezone.utc)
    """
    try:
        return datetime.strptime(stamp[:15], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None


# What the engine rests on


def _python(target: DoctorTarget) -> str:
    return f"{sys.version.split()[0]} at {sys.executable}"


def _libraries(target: DoctorTarget) -> str:
    names = ("duckdb", "pyarrow", "polars", "lancedb")
    return ", ".join(f"{name} {importlib.import_module(name).__version__}" for name in names)


def _home(target: DoctorTarget) -> str:
    home = target.open_context().home
    place = next(path for path in (home, *home.parents) if path.exists())
    if not place.is_dir():
        raise StoreNotWritable(f"{place} is a file.", "Set CORTEX_HOME to a folder.")
    if not os.access(place, os.W_OK):
        raise StoreNotWritable(f"{place} is not writable.", "Set CORTEX_HOME to a writable folder.")
    free = f"{home}, {decimal(shutil.disk_usage(place).free)} free"
    if is_copy(home):
        from cortex.storage.remote.store_copy import checked_remote_uri

        return f"{free}; a copy of {checked_remote_uri(home)}, which answers"
    return free


def _model(target: DoctorTarget) -> str:
    from cortex.flows.embedders import embedder_for

    settings = target.open_context().settings
    if not (settings.embeds_locally or settings.voyage_api_key):
        raise Notice("off: search goes by words. On: cortex config set embed.local true")
    model = embedder_for(settings.voyage_api_key)
    if settings.voyage_api_key and not target.asks_models:
        finding = f"{model.model}, not asked; whether it answers: cortex doctor"
        if failure := hosted_failure(settings):
            raise Notice(f"{finding} (at the last run: {failure.reason})")
        return finding
    if settings.voyage_api_key:
        model.embed(["Does it answer?"], as_query=True)  # a key that fails is worse than none
        if failure := hosted_failure(settings):
            raise Notice(
                f"{model.model} answers again, and is used ten minutes after it failed ({failure.reason})"
            )
    else:
        model.embed(["Does it answer?"], as_query=True)  # its file is read and checked with that
    return f"{model.model}, {model.dimensions} dimensions"


def _writer(target: DoctorTarget) -> str:
    context = target.open_context()
    models = context.settings.models
    if not models.is_on:
        return "none: rules alone write. See: cortex config set models.writer"
    # Imported here: a check of what is switched off costs nothing.
    from cortex.flows.operations.maintain.cost import budget_state, model_price
    from cortex.flows.operations.maintain.status import read_writing
    from cortex.flows.writers import writer_for

    writer = writer_for(context.settings)
    if target.asks_models:
        writer.ready()
    if failure := read_failure(target.home, WRITER):
        since = ago(failure.failed_at, target.now)
        raise Notice(f"{models.writer} has answered nothing since {since}: {failure.reason}")
    price, state = model_price(context), budget_state(context.settings, utc_now())
    tier = price.tiers[0]
    writing = read_writing(context)
    finding = (
        f"{models.writer} writes, {writing.read} of {counted(writing.sessions, 'session')} read; "
        f"{models.writer_model} at ${tier.input_usd:g} in and ${tier.output_usd:g} out a "
        f"million tokens; ${state.left_usd:.4f} of ${state.daily_usd:g} and {state.left_requests} of "
        f"{state.daily_requests} requests are left today"
    )
    if not price.is_known:
        raise Notice(
            f"{finding}. The model is not in model_prices.csv: it is priced as the most expensive one there"
        )
    return finding


def _store(target: DoctorTarget) -> str:
    manifest = target.open_context().open_store().lake.manifest
    files, transcripts = len(manifest.files), len(manifest.cursors)
    read = f"{counted(transcripts, 'transcript')} read"
    return f"{counted(manifest.generation, 'commit')}, {counted(files, 'lake file')}, {read}"


def _lake(target: DoctorTarget) -> str:
    lake = target.open_context().open_store().lake
    lake.check_readable(LAKE_TABLES.values())
    return f"{counted(len(lake.manifest.files), 'file')}, each as it was written"


def _loss(target: DoctorTarget) -> str:
    loss = pending_loss(target.open_context().open_store().lake.manifest)
    if loss is None:
        return "the last run hid nothing that was shown"
    raise Notice(
        f"{loss['lost']} of {loss['shown']} {loss['what']} would be hidden by a run, so nothing new is "
        f"published; {loss['why']}. See: cortex rederive. Undo the change, or: cortex run --accept-loss"
    )


def _encryption(target: DoctorTarget) -> str:
    lake = target.open_context().open_store().lake
    lake.check_key()
    return f"on, with the key {lake.key_id}, which is available" if lake.key_id else "off"


def _git(target: DoctorTarget) -> str:
    return shutil.which("git") or "not found: projects are told apart by their paths"


CHECKS: list[tuple[str, Callable[[DoctorTarget], str]]] = [
    ("hooks", _hooks),
    ("hooks' python", _hooks_python),
    ("engine", _engine),
    ("background run", _background),
    ("staging", _waiting),
    ("hooks' log", _log),
    ("prompts", _late),
    ("home", _home),
    ("store", _store),
    ("lake", _lake),
    ("loss", _loss),
    ("encryption", _encryption),
    ("embedding model", _model),
    ("language model", _writer),
    ("python", _python),
    ("libraries", _libraries),
    ("git", _git),
]
