"""A run writes where its command lies; the hooks find it, and the state of the background run can be told."""

import json
import sys
from datetime import UTC, datetime

from cortex.hooks import background
from cortex.storage.machine.background_run import Background, background_state, note_engine


def command(folder, name="cortex"):
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_command_that_was_called_is_noted_for_the_hooks(tmp_path, home, monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(command(tmp_path)), "run"])
    assert note_engine(home) == tmp_path / "cortex"
    assert background.engine_at(str(home)) == str(tmp_path / "cortex")


def test_a_run_by_python_notes_the_command_beside_it(tmp_path, home, monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "__main__.py"), "run"])
    monkeypatch.setattr(sys, "executable", str(command(tmp_path).with_name("python")))
    assert note_engine(home) == tmp_path / "cortex"


def test_where_no_command_is_installed_nothing_is_noted(tmp_path, home, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["-c"])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert note_engine(home) is None and not home.exists()


def test_the_same_command_is_not_written_again(tmp_path, home, monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(command(tmp_path))])
    note_engine(home)
    written = (home / "engine").stat()
    note_engine(home)
    assert (home / "engine").stat().st_ino == written.st_ino


def test_a_command_that_is_gone_is_no_engine(tmp_path, home, monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(command(tmp_path))])
    note_engine(home)
    (tmp_path / "cortex").unlink()
    assert background_state(home).engine is None


def test_the_state_tells_how_the_last_run_went(home):
    (home / "runs").mkdir(parents=True)
    mark = {"started_at": 1_790_000_000, "ended_at": 1_790_000_003, "exit_code": -9}
    (home / "runs" / "background.json").write_text(json.dumps(mark))
    started, ended = (datetime(2026, 9, 21, 14, 13, second, tzinfo=UTC) for second in (20, 23))
    told = background_state(home)
    assert (told.engine, told.started_at, told.ended_at, told.exit_code) == (None, started, ended, -9)
    assert (told.outcome, told.failures, told.failing_since) == ("failed with exit code -9", 1, ended)


def test_a_store_without_a_run_has_an_empty_state(home):
    log = home / "runs" / "background.log"
    assert background_state(home) == Background(None, None, None, None, False, 0, None, log)
    assert not home.exists()
