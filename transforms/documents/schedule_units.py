"""The text of what starts the nightly run: a systemd user timer, a launchd agent, a line for cron."""

import plistlib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cortex.transforms.errors import UsageError

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
