"""The text of what starts the nightly run, to the byte, and that the user's own crontab stays."""

import plistlib
import shutil
import subprocess
from pathlib import Path

import pytest

from cortex.storage.machine.schedule import (
    Nightly,
    cron_line,
    crontab_with,
    crontab_without,
    launchd_agent,
    systemd_service,
    systemd_timer,
    time_of_day,
)
from cortex.transforms.errors import UsageError
from tests.examples import cases

GOLDEN = Path(__file__).parents[3] / "golden" / "schedule"
NIGHTLY = Nightly(
    ("/home/ada/my tools/cortex", "nightly", "--if-due", "03:30"),
    hour=3,
    minute=30,
    environment={"CORTEX_HOME": "/home/ada/100% notes"},
)


@cases(
    ("name", "text"),
    [
        ("cortex-nightly.service", systemd_service(NIGHTLY)),
        ("cortex-nightly.timer", systemd_timer(NIGHTLY)),
        ("dev.cortex-lake.nightly.plist", launchd_agent(NIGHTLY).decode()),
        ("crontab", cron_line(NIGHTLY) + "\n"),
    ],
)
def test_the_text_is_the_golden_one(name: str, text: str):
    assert text == (GOLDEN / name).read_text(encoding="utf-8")


def test_launchd_reads_back_what_was_meant():
    agent = plistlib.loads(launchd_agent(NIGHTLY))
    assert agent["ProgramArguments"] == list(NIGHTLY.command)
    assert agent["StartCalendarInterval"] == {"Hour": 3, "Minute": 30} and agent["RunAtLoad"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_finds_no_fault_with_the_units(tmp_path: Path):
    command = tmp_path / "cortex"
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    nightly = Nightly((str(command), "nightly"), 3, 30, {"CORTEX_HOME": '/home/ada/"100% $notes"'})
    (tmp_path / "cortex-nightly.service").write_text(systemd_service(nightly))
    (tmp_path / "cortex-nightly.timer").write_text(systemd_timer(nightly))
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *map(str, sorted(tmp_path.glob("cortex-nightly.*")))],
        capture_output=True,
        text=True,
    )
    faults = [line for line in verified.stderr.splitlines() if "cortex-nightly" in line]
    assert faults == []


def test_the_shell_that_cron_starts_sees_the_words_that_were_meant(tmp_path: Path):
    witness = tmp_path / "it's 100%"
    line = cron_line(Nightly(("touch", str(witness)), 3, 30, {"A": "b c"}))
    *_, command = line.split(" ", 5)
    subprocess.run(["sh", "-c", command.replace("\\%", "%")], check=True)  # cron takes the backslashes away
    assert witness.exists()


@pytest.mark.parametrize("crontab", ["", "MAILTO=ada\n", "0 1 * * * backup # nightly\n\n# mine\n"])
def test_the_users_own_lines_stay(crontab: str):
    line = cron_line(NIGHTLY)
    once = crontab_with(crontab, line)
    assert once.startswith(crontab) and once.count(line) == 1
    assert crontab_with(once, line) == once
    assert crontab_without(once) == crontab


def test_a_crontab_without_a_last_line_break_keeps_its_last_line():
    assert crontab_with("0 1 * * * backup", "x # cortex nightly") == "0 1 * * * backup\nx # cortex nightly\n"


@cases("text", ["24:00", "3", "3:5", "03:30:00", "noon", "03:30\n"])
def test_what_is_no_time_of_day_is_refused(text: str):
    with pytest.raises(UsageError, match="Not a time of day"):
        time_of_day(text)
