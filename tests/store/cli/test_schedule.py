"""`cortex schedule` with fake schedulers on the PATH: what is written, what they are told, what is due."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cortex.flows.context import Context
from cortex.flows.operations.maintain import setup
from cortex.storage.settings.settings import Settings
from tests.bench import words_for_a_model

# Each notes its words; crontab keeps what it is given.
FAKES = {
    "systemctl": '#!/bin/sh\necho "systemctl $*" >>"$0.log"\necho "Mon 2026-11-23 03:34:10 UTC"\n',
    "launchctl": '#!/bin/sh\necho "launchctl $*" >>"$0.log"\n',
    "crontab": '#!/bin/sh\ncase $1 in -l) cat "$0.tab" ;; -r) rm "$0.tab" ;; -) cat >"$0.tab" ;; esac\n',
}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that puts fake schedulers on the PATH, and nothing else but the shell's own tools."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    for tool in ("sh", "cat", "rm"):
        (bin_folder / tool).symlink_to(f"/bin/{tool}")
    monkeypatch.setenv("PATH", str(bin_folder))
    cortex = tmp_path / "tool" / "cortex"
    cortex.parent.mkdir()
    cortex.write_text("#!/bin/sh\n")
    cortex.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(cortex)])

    def equip(*names: str) -> Path:
        for name in names:
            (bin_folder / name).write_text(FAKES[name])
            (bin_folder / name).chmod(0o755)
        return bin_folder

    return equip


def log_of(folder: Path, name: str) -> list[str]:
    path = folder / f"{name}.log"
    return path.read_text().splitlines() if path.exists() else []


def test_systemd_is_taken_where_the_users_manager_answers(cortex, machine, tmp_path):
    tools = machine("systemctl", "launchctl", "crontab")
    answer = cortex("schedule", "install", "--at", "4:05", "--json").json
    assert answer["scheduler"] == "systemd" and answer["installed"]
    units = tmp_path / ".config" / "systemd" / "user"
    assert (
        f'ExecStart="{tmp_path}/tool/cortex" "nightly" "--if-due" "04:05"'
        in (units / "cortex-nightly.service").read_text()
    )
    assert "OnCalendar=*-*-* 04:05:00\nPersistent=true" in (units / "cortex-nightly.timer").read_text()
    assert log_of(tools, "systemctl")[-2:] == [
        "systemctl --user daemon-reload",
        "systemctl --user enable --now cortex-nightly.timer",
    ]
    status = cortex("schedule", "status", "--json").json
    assert status["installed"] == ["systemd"] and status["next_start"].startswith("Mon 2026-11-23")
    assert cortex("schedule", "uninstall", "--json").json == {"removed_from": ["systemd"]}
    assert list(units.iterdir()) == []


def test_without_a_users_manager_launchd_or_cron_does_it(cortex, machine, tmp_path):
    tools = machine("launchctl", "crontab")
    (tools / "systemctl").write_text("#!/bin/sh\nexit 1\n")
    (tools / "systemctl").chmod(0o755)
    assert cortex("schedule", "install", "--json").json["scheduler"] == "launchd"
    agent = tmp_path / "Library" / "LaunchAgents" / "dev.cortex-lake.nightly.plist"
    assert agent.is_file() and log_of(tools, "launchctl")[-1] == f"launchctl load -w {agent}"
    (tools / "launchctl").unlink()
    assert cortex("schedule", "install", "--json").json["scheduler"] == "cron"
    assert not agent.exists()  # never two of them
    assert cortex("schedule", "--json").json["installed"] == ["cron"]


def test_the_crontab_gives_back_what_it_had(cortex, machine):
    tools = machine("crontab")
    (tools / "crontab.tab").write_text("0 1 * * * backup\n")
    cortex("schedule", "install")
    cortex("schedule", "install", "--at", "5:10")
    lines = (tools / "crontab.tab").read_text().splitlines()
    assert lines[0] == "0 1 * * * backup" and len(lines) == 2 and lines[1].startswith("10 * * * * ")
    cortex("schedule", "uninstall")
    assert (tools / "crontab.tab").read_text() == "0 1 * * * backup\n"


def test_a_dry_run_prints_the_files_and_writes_none(cortex, machine, tmp_path):
    machine("systemctl")
    before = set(tmp_path.rglob("*"))
    answer = cortex("schedule", "install", "--dry-run")
    assert "[Timer]" in answer.out and "Nothing has been changed yet." in answer.err
    written = [path for path in tmp_path.rglob("*") if path not in before and path.is_file()]
    assert [path for path in written if "log" not in path.name] == [tmp_path / "cortex-home" / "engine"]


def test_where_nothing_works_the_next_step_is_named(cortex, machine):
    machine()
    answer = cortex("schedule", "install", "--json")
    assert answer.code == 23 and "--if-due" in answer.json["error"]["next_step"]
    assert cortex("schedule", "uninstall", "--json").json == {"removed_from": []}


@pytest.mark.parametrize(
    ("hours_ago", "due"),
    [(None, True), (1, False), (9, False), (9.6, True), (33, True), (80, True)],
)
def test_a_night_is_due_once_its_time_has_passed_without_a_run(home, monkeypatch, hours_ago, due):
    monkeypatch.setenv("TZ", "UTC")
    now = datetime(2026, 11, 22, 13, 0, tzinfo=UTC)  # 9 h 30 after 03:30
    if hours_ago is not None:
        began = now - timedelta(hours=hours_ago)
        report = {"flow": "nightly", "started_at": began.isoformat(), "seconds": 1}
        folder = home / "runs" / "reports"
        folder.mkdir(parents=True)
        (folder / f"{began:%Y%m%dT%H%M%S%f}Z-nightly.json").write_text(json.dumps(report))
        (folder / f"{now:%Y%m%dT%H%M%S%f}Z-ingest.json").write_text(json.dumps({**report, "flow": "ingest"}))
    context = Context(Settings(home=home), words_for_a_model, lambda: now)
    assert setup.is_due(context, "03:30") is due


def test_nightly_does_nothing_where_it_is_not_due(cortex, home, monkeypatch):
    monkeypatch.setattr(setup, "is_due", lambda context, at: False)
    assert cortex("nightly", "--if-due", "03:30", "--json").json == {"due": False}
    assert not (home / "lake").exists()
