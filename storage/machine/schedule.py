"""Who starts the nightly run on this machine: systemd's user manager, launchd or cron, and its files."""

import os
import plistlib
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from cortex.storage.filesystem.files import writing_to
from cortex.transforms.errors import ScheduleUnavailable, UsageError

# -- The text of what starts the nightly run: a systemd user timer, a launchd agent, a line for cron.

# At the end of our line in a crontab; everything else there is the user's.
CRON_MARK = "# cortex nightly"
LAUNCHD_LABEL = "dev.cortex-lake.nightly"
NICE = 10
# Many machines wake at the same minute; the run itself is in no hurry.
RANDOM_DELAY_MINUTES = 10
_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


@dataclass(frozen=True)
class Nightly:
    """What is to run each night: a command with its words, what its environment adds, and when."""

    command: Sequence[str]
    hour: int
    minute: int
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def at(self) -> str:
        """Return the local time, as 03:30."""
        return f"{self.hour:02}:{self.minute:02}"


def time_of_day(text: str) -> tuple[int, int]:
    """
    Return hour and minute. Raises UsageError.

    >>> time_of_day("3:30")
    (3, 30)
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise UsageError(f"Not a time of day: {text!r}.", "Give hours and minutes, such as 03:30.")
    return int(match[1]), int(match[2])


def systemd_service(nightly: Nightly) -> str:
    """Return the unit that runs once, at low priority."""
    lines = [
        "[Unit]",
        "Description=Cortex: read what is waiting, age and merge memories, publish briefs",
        "",
        "[Service]",
        "Type=oneshot",
        f"ExecStart={' '.join(_systemd_word(word).replace('$', '$$') for word in nightly.command)}",
        *(f"Environment={_systemd_word(f'{n}={v}')}" for n, v in sorted(nightly.environment.items())),
        f"Nice={NICE}",
        "IOSchedulingClass=idle",
    ]
    return "\n".join(lines) + "\n"


def systemd_timer(nightly: Nightly) -> str:
    """Return the unit that starts the service each night; a night that was slept through comes after it."""
    lines = [
        "[Unit]",
        "Description=Cortex: nightly run",
        "",
        "[Timer]",
        f"OnCalendar=*-*-* {nightly.at}:00",
        "Persistent=true",
        f"RandomizedDelaySec={RANDOM_DELAY_MINUTES}m",
        "",
        "[Install]",
        "WantedBy=timers.target",
    ]
    return "\n".join(lines) + "\n"


def launchd_agent(nightly: Nightly) -> bytes:
    """Return the property list of an agent that runs at its time, and at login where a night was missed."""
    return plistlib.dumps(
        {
            "Label": LAUNCHD_LABEL,
            "ProgramArguments": list(nightly.command),
            "EnvironmentVariables": dict(nightly.environment),
            "StartCalendarInterval": {"Hour": nightly.hour, "Minute": nightly.minute},
            "RunAtLoad": True,
            "LowPriorityIO": True,
            "Nice": NICE,
            "ProcessType": "Background",
        }
    )


def cron_line(nightly: Nightly) -> str:
    """
    Return a line that asks once an hour, from its time on, whether the night's run is still to be done.

    cron itself does not catch up: a machine that sleeps at night would never run it. Its mail would come each
    night; what a run did is in its report.
    """
    settings = [f"{name}={shlex.quote(value)}" for name, value in sorted(nightly.environment.items())]
    words = ["nice", "-n", str(NICE), *map(shlex.quote, nightly.command)]
    line = f"{' '.join([*settings, *words])} >/dev/null 2>&1"
    return f"{nightly.minute} * * * * {line.replace('%', chr(92) + '%')} {CRON_MARK}"


def crontab_with(crontab: str, line: str) -> str:
    """Return the crontab with our line in the place of an earlier one, else at its end."""
    return "".join(f"{kept}\n" for kept in [*crontab_without(crontab).splitlines(), line])


def crontab_without(crontab: str) -> str:
    """Return the crontab without our line; every other byte stays."""
    kept = [line for line in crontab.splitlines(keepends=True) if not line.rstrip("\n").endswith(CRON_MARK)]
    return "".join(kept)


def _systemd_word(word: str) -> str:
    r"""
    Return a word as systemd reads it: quoted, with its own specifiers doubled.

    >>> _systemd_word("/home/ada/50% done")
    '"/home/ada/50%% done"'
    """
    quoted = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{quoted}"'


UNIT = "cortex-nightly"
# What a scheduler answers within; one that hangs is not there.
SCHEDULER_SECONDS = 15


class Scheduler(Protocol):
    """One way of starting a command each night."""

    name: str

    def is_available(self) -> bool:
        """Return whether it works here and now."""

    def is_installed(self) -> bool:
        """Return whether it starts the nightly run."""

    def files(self, nightly: Nightly) -> dict[str, str]:
        """Return what would be written, by place."""

    def install(self, nightly: Nightly) -> None:
        """Start it each night from now on. Raises ScheduleUnavailable."""

    def uninstall(self) -> None:
        """Take it out again. Raises ScheduleUnavailable."""

    def next_start(self) -> str | None:
        """Return when it starts next, as the scheduler says it; None if that is not known."""


class Systemd:
    """A timer of the user's own systemd."""

    name = "systemd"

    def is_available(self) -> bool:
        """Return whether the user's manager answers: in a container or over su there is none."""
        return _answer(["systemctl", "--user", "show-environment"]) is not None

    def is_installed(self) -> bool:
        """Return whether the timer's file is there."""
        return self._timer.is_file()

    def files(self, nightly: Nightly) -> dict[str, str]:
        """Return the two units by path."""
        return {str(self._service): systemd_service(nightly), str(self._timer): systemd_timer(nightly)}

    def install(self, nightly: Nightly) -> None:
        """Write the units and start the timer."""
        for path, text in self.files(nightly).items():
            _write(Path(path), text.encode())
        _require(["systemctl", "--user", "daemon-reload"])
        _require(["systemctl", "--user", "enable", "--now", f"{UNIT}.timer"])

    def uninstall(self) -> None:
        """Stop the timer and remove the units."""
        _answer(["systemctl", "--user", "disable", "--now", f"{UNIT}.timer"])
        for path in (self._timer, self._service):
            path.unlink(missing_ok=True)
        _answer(["systemctl", "--user", "daemon-reload"])

    def next_start(self) -> str | None:
        """Return the instant that systemd names."""
        command = ["systemctl", "--user", "show", f"{UNIT}.timer", "--value", "-p", "NextElapseUSecRealtime"]
        return (_answer(command) or "").strip() or None

    @property
    def _folder(self) -> Path:
        named = os.environ.get("XDG_CONFIG_HOME")
        return (Path(named) if named else Path.home() / ".config") / "systemd" / "user"

    @property
    def _service(self) -> Path:
        return self._folder / f"{UNIT}.service"

    @property
    def _timer(self) -> Path:
        return self._folder / f"{UNIT}.timer"


class Launchd:
    """An agent of macOS."""

    name = "launchd"

    def is_available(self) -> bool:
        """Return whether launchd runs this machine."""
        return shutil.which("launchctl") is not None

    def is_installed(self) -> bool:
        """Return whether the agent's file is there."""
        return self._agent.is_file()

    def files(self, nightly: Nightly) -> dict[str, str]:
        """Return the property list by path."""
        return {str(self._agent): launchd_agent(nightly).decode()}

    def install(self, nightly: Nightly) -> None:
        """Write the agent and load it, in the place of an earlier one."""
        _answer(["launchctl", "unload", str(self._agent)])
        _write(self._agent, launchd_agent(nightly))
        _require(["launchctl", "load", "-w", str(self._agent)])

    def uninstall(self) -> None:
        """Unload the agent and remove it."""
        _answer(["launchctl", "unload", "-w", str(self._agent)])
        self._agent.unlink(missing_ok=True)

    def next_start(self) -> str | None:
        """Return None: launchd does not say."""
        return None

    @property
    def _agent(self) -> Path:
        return Path.home() / "Library" / "LaunchAgents" / f"{LAUNCHD_LABEL}.plist"


class Cron:
    """A line in the user's crontab."""

    name = "cron"

    def is_available(self) -> bool:
        """Return whether there is a crontab to write."""
        return shutil.which("crontab") is not None

    def is_installed(self) -> bool:
        """Return whether our line is in it."""
        return CRON_MARK in self._crontab()

    def files(self, nightly: Nightly) -> dict[str, str]:
        """Return the line."""
        return {"crontab": cron_line(nightly) + "\n"}

    def install(self, nightly: Nightly) -> None:
        """Put the line in, in the place of an earlier one."""
        _require(["crontab", "-"], crontab_with(self._crontab(), cron_line(nightly)))

    def uninstall(self) -> None:
        """Take the line out; a crontab that held nothing else goes with it."""
        rest = crontab_without(self._crontab())
        _require(["crontab", "-"], rest) if rest.strip() else _answer(["crontab", "-r"])

    def next_start(self) -> str | None:
        """Return None: it asks once an hour."""
        return None

    def _crontab(self) -> str:
        return _answer(["crontab", "-l"]) or ""


SCHEDULERS: tuple[Scheduler, ...] = (Systemd(), Launchd(), Cron())


def _write(path: Path, content: bytes) -> None:
    with writing_to(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _answer(command: Sequence[str], stdin: str = "") -> str | None:
    """Return what a command prints; None if it is missing, hangs or fails."""
    try:
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=SCHEDULER_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _require(command: Sequence[str], stdin: str = "") -> None:
    if _answer(command, stdin) is None:
        raise ScheduleUnavailable(
            f"`{' '.join(command)}` failed.", "Run it yourself to see why, or take another: --with cron"
        )
