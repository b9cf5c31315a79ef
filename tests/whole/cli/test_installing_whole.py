"""Install, uninstall, setup: the client's settings are ours to add to, and the user's to the last byte."""

import json
import os

from cortex.flows.context import Context
from cortex.flows.operations.maintain import intake
from tests.process.cli.test_installing import (  # noqa: F401
    SAID,
    _no_client_and_no_scheduler,
    claude,
    commands_of,
    session,
)


def test_setup_with_yes_reads_installs_and_ends_with_a_real_brief(cortex, claude, session):
    answer = cortex("setup", "--yes")
    assert answer.code == 0 and "cone 6" in answer.out and "(1 session)" in answer.out, answer.err
    assert answer.out.index("cone 6") < answer.out.index("Read: ") < answer.out.index("Next: start `claude`")
    assert commands_of(claude / "settings.json")
    again = cortex("setup", "--json").json
    assert (again["hooks"], again["read_before"], again["steps"]) == ("settings", 1, {})


def test_setup_for_programs_is_one_json_object(cortex, claude, session):
    answer = cortex("setup", "--yes", "--json").json
    assert answer["first_brief"]["project"] == "kiln" and answer["first_brief"]["sessions"] == 1
    assert answer["hooks"] == "settings" and answer["writer"] == "none"


def test_where_both_have_the_hooks_those_of_the_settings_go_and_the_status_line_stays(cortex, claude):
    cortex("install")
    cortex("statusline", "install")
    settings = json.loads((claude / "settings.json").read_bytes())
    settings["enabledPlugins"] = {"cortex-lake@cortex-lake": True}
    (claude / "settings.json").write_text(json.dumps(settings))
    [check] = [c for c in cortex("doctor", "--json").json["checks"] if c["check"] == "hooks"]
    assert not check["ok"] and "counts twice" in check["finding"] and "cortex setup" in check["finding"]
    answer = cortex("setup", "--yes", "--json").json
    assert answer["hooks"] == "plugin" and answer["status_line"]
    after = json.loads((claude / "settings.json").read_bytes())
    assert "hooks" not in after and "run.sh" in after["statusLine"]["command"]


def test_setup_asks_once_where_no_model_can_write(cortex, claude, session, monkeypatch):
    monkeypatch.setattr("cortex.cli.start.setup.can_ask", lambda: True)
    answer = cortex("setup", stdin="\n")
    assert answer.code == 0 and "cone 6" in answer.out and "written by rules" in answer.out
    assert answer.out.count("Let it write?") == 0 and answer.out.count("Go ahead?") == 1


def test_setup_shows_the_project_last_spoken_in_not_that_of_the_file_last_touched(cortex, claude, session):
    """A backup put back, or copied from another machine, gives every file another time."""
    later = claude / "projects" / "-home-ada-loom" / "t.jsonl"
    later.parent.mkdir(parents=True)
    record = {**SAID, "uuid": "v", "sessionId": "t", "timestamp": "2026-09-02T10:00:00Z"}
    later.write_text(json.dumps(record).replace("kiln", "loom").replace("cone 6", "linen") + "\n")
    for path, at in ((session, 1_788_400_000), (later, 1_000_000_000)):
        os.utime(path, (at, at))
    assert cortex("setup", "--yes", "--json").json["first_brief"]["project"] == "loom"
    newest = intake._newest_of(Context(folder=claude), [claude / "projects"])
    assert newest.folder == "/home/ada/loom"  # so does what a model reads first
