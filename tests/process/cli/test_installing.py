"""Install, uninstall, setup: the client's settings are ours to add to, and the user's to the last byte."""

import json
import subprocess
from pathlib import Path

import pytest

from cortex.storage.machine import background_run as background
from cortex.storage.staging import client_files
from cortex.storage.staging.client_files import launcher, plugin_hooks

MINE = (
    b'{\r\n   "model":"opus",\r\n   "hooks": '
    b'{"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}}'
)


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the client's folder of a user who calls `cortex` by its own name."""
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.setenv("CORTEX_HOME", str(tmp_path / "store"))
    command = tmp_path / "bin" / "cortex"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(command)])
    (tmp_path / ".claude").mkdir()
    return tmp_path / ".claude"


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def commands_of(settings: Path) -> dict[str, list[str]]:
    """Return event → commands of ours."""
    hooks = json.loads(settings.read_bytes())["hooks"]
    return {
        event: [hook["command"] for group in groups for hook in group["hooks"] if "run.sh" in hook["command"]]
        for event, groups in hooks.items()
    }


@pytest.mark.parametrize(
    "content", [None, b"{}", b"{}\n", b"\n{ }", b'{"a": 1}', MINE, MINE.replace(b"\r\n", b"\n")]
)
def test_install_and_uninstall_leave_the_very_bytes(cortex, claude, content):
    settings = claude / "settings.json"
    if content is not None:
        settings.write_bytes(content)
    for words in (["install"], ["statusline", "install"], ["install"], ["statusline", "install"]):
        assert cortex(*words).code == 0
    assert settings.read_bytes() != content
    cortex("uninstall")
    assert (settings.read_bytes() if settings.exists() else None) == content
    assert sorted(path.name for path in claude.iterdir()) == ([] if content is None else ["settings.json"])


def test_every_event_of_the_plugin_is_installed_and_twice_is_once(cortex, claude):
    (claude / "settings.json").write_bytes(MINE)
    cortex("install")
    once = (claude / "settings.json").read_bytes()
    ours = commands_of(claude / "settings.json")
    assert list(ours) == ["Stop", *(event for event in plugin_hooks()["hooks"] if event != "Stop")]
    assert all(len(commands) == 1 and str(launcher()) in commands[0] for commands in ours.values())
    answer = cortex("install", "--json").json
    assert not answer["changed"] and answer["diff"] == ""
    assert (claude / "settings.json").read_bytes() == once


def test_the_engine_is_made_known(cortex, claude, tmp_path):
    cortex("install")
    assert (tmp_path / "store" / "engine").read_text() == f"{tmp_path}/bin/cortex\n"


def test_an_installed_hook_works_as_the_client_calls_it(cortex, claude, tmp_path):
    cortex("install")
    transcript = claude / "projects" / "-x" / "s.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_text('{"type":"user"}\n')
    payload = {"session_id": "s", "transcript_path": str(transcript), "cwd": "/home/ada/kiln"}
    [command] = commands_of(claude / "settings.json")["Stop"]
    ran = subprocess.run(
        ["/bin/sh", "-c", command], input=json.dumps(payload).encode(), capture_output=True, timeout=30
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
    assert len(list((tmp_path / "store" / "staging" / "new").iterdir())) == 1


def test_a_dry_run_shows_the_difference_and_changes_nothing(cortex, claude, tmp_path):
    (claude / "settings.json").write_bytes(MINE)
    answer = cortex("install", "--dry-run")
    assert answer.out.startswith("--- ") and "+" in answer.out and "session-start" in answer.out
    assert "Nothing has been changed yet." in answer.err
    assert (claude / "settings.json").read_bytes() == MINE
    assert not (tmp_path / "store").exists()
    cortex("install")
    after = (claude / "settings.json").read_bytes()
    assert "-" in cortex("uninstall", "--dry-run").out
    assert (claude / "settings.json").read_bytes() == after


@pytest.mark.parametrize("way", [["--dry-run"], ["--dry-run", "--json"]])
def test_the_difference_shows_no_key_of_the_user(cortex, claude, way):
    key = "sk-ant-api03-" + "Ab1" * 24
    (claude / "settings.json").write_text('{"env": {"ANTHROPIC_API_KEY": "' + key + '"}, "model": "opus"}')
    answer = cortex("install", *way)
    assert "session-start" in answer.out and "opus" in answer.out and key[20:] not in answer.out


@pytest.mark.parametrize(
    "command", [["install"], ["uninstall"], ["statusline", "install"], ["statusline", "uninstall"]]
)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b'{"a": 1,}',
        b"// mine\n{}",
        b"\xef\xbb\xbf{}",
        b'{"a": 1, "a": 2}',
        b"\xff{}",
        b"[]",
    ],
)
def test_a_file_that_cannot_be_read_is_left_alone(cortex, claude, tmp_path, command, content):
    (claude / "settings.json").write_bytes(content)
    answer = cortex(*command, "--json")
    assert answer.code == 15 and answer.json["error"]["code"] == "CORTEX_E_CLIENT_SETTINGS"
    assert answer.json["error"]["next_step"]
    assert (claude / "settings.json").read_bytes() == content
    assert names_in(claude) == ["settings.json"] and not (tmp_path / "store").exists()


def test_hooks_of_another_form_are_left_alone(cortex, claude):
    (claude / "settings.json").write_bytes(b'{"hooks": 3}')
    assert cortex("install").code == cortex("uninstall").code == 15
    assert (claude / "settings.json").read_bytes() == b'{"hooks": 3}'


def test_what_the_user_changed_in_between_stays(cortex, claude):
    settings = claude / "settings.json"
    settings.write_bytes(b'{\n  "model": "opus"\n}\n')
    cortex("install")
    told = json.loads(settings.read_bytes())
    told["model"] = "sonnet"
    told["hooks"]["Stop"][0]["hooks"].append({"type": "command", "command": "say done"})
    del told["hooks"]["PreCompact"]
    settings.write_text(json.dumps(told))
    cortex("uninstall")
    mine = {"hooks": [{"type": "command", "command": "say done"}]}
    assert json.loads(settings.read_bytes()) == {"model": "sonnet", "hooks": {"Stop": [mine]}}


def test_without_its_backup_it_is_still_taken_out(cortex, claude):
    settings = claude / "settings.json"
    settings.write_bytes(MINE)
    cortex("install")
    (claude / "settings.json.before-cortex").unlink()
    cortex("uninstall")
    assert json.loads(settings.read_bytes()) == json.loads(MINE)
    assert names_in(claude) == ["settings.json"]


def test_a_moved_installation_is_mended_by_installing_again(cortex, claude, monkeypatch):
    settings = claude / "settings.json"
    settings.write_bytes(MINE)
    monkeypatch.setattr(
        "cortex.flows.operations.maintain.setup.launcher", lambda: Path("/old/cortex/hooks/run.sh")
    )
    cortex("install")
    cortex("statusline", "install")
    monkeypatch.undo()
    monkeypatch.setenv("HOME", str(claude.parent))
    monkeypatch.setenv("CORTEX_HOME", str(claude.parent / "store"))
    cortex("install")
    cortex("statusline", "install")
    assert b"/old/" not in settings.read_bytes()
    assert all(len(commands) == 1 for commands in commands_of(settings).values())
    cortex("uninstall")
    assert settings.read_bytes() == MINE


def test_links_mode_and_the_clients_own_folder_are_respected(cortex, claude, tmp_path, monkeypatch):
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    (dotfiles / "claude.json").write_bytes(MINE)
    (dotfiles / "claude.json").chmod(0o640)
    other = tmp_path / "other"
    other.mkdir()
    (other / "settings.json").symlink_to(dotfiles / "claude.json")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(other))
    cortex("install")
    assert (other / "settings.json").is_symlink() and b"run.sh" in (dotfiles / "claude.json").read_bytes()
    assert (dotfiles / "claude.json").stat().st_mode & 0o777 == 0o640
    assert names_in(dotfiles) == ["claude.json"] and names_in(claude) == []
    cortex("uninstall")
    assert (dotfiles / "claude.json").read_bytes() == MINE


def test_beside_the_plugin_nothing_is_installed(cortex, claude):
    content = b'{"enabledPlugins": {"cortex-lake@cortex-lake": true}}'
    (claude / "settings.json").write_bytes(content)
    answer = cortex("install", "--json")
    assert answer.code == 2 and "plugin" in answer.json["error"]["problem"]
    assert (claude / "settings.json").read_bytes() == content
    (claude / "settings.json").write_bytes(content.replace(b"true", b"false"))
    assert cortex("install").code == 0


def test_a_change_by_another_program_meanwhile_is_not_lost(claude):
    file = client_files.SettingsFile(claude)
    file.path.write_text("{}")
    with pytest.raises(client_files.ClientSettingsUnusable, match="another program"):
        file.write('{"a": 1}', was="{ }")
    assert file.path.read_text() == "{}"


def test_a_kill_before_the_rename_leaves_the_old_file(claude, monkeypatch):
    file = client_files.SettingsFile(claude)
    file.path.write_text("{}")

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", die)
    with pytest.raises(KeyboardInterrupt):
        file.write('{"a": 1}', was="{}")
    assert file.path.read_text() == "{}" and names_in(claude) == ["settings.json"]


def test_only_our_own_text_is_noted(cortex, claude, tmp_path):
    (claude / "settings.json").write_text('{"env": {"ANTHROPIC_API_KEY": "sk-invented"}}')
    cortex("install")
    cortex("statusline", "install")
    noted = [path.read_bytes() for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert not any(b"sk-invented" in content for content in noted)
    assert names_in(claude) == ["settings.json"]


def test_a_layout_that_cannot_be_written_again_is_kept_readable_by_the_user_alone(cortex, claude):
    (claude / "settings.json").write_bytes(MINE)
    cortex("install")
    backup = claude / "settings.json.before-cortex"
    assert backup.read_bytes() == MINE and backup.stat().st_mode & 0o777 == 0o600
    cortex("uninstall")
    assert names_in(claude) == ["settings.json"]


SAID = {
    "type": "user",
    "uuid": "u",
    "sessionId": "s",
    "cwd": "/home/ada/kiln",
    "timestamp": "2026-09-01T10:00:00Z",
    "message": {
        "role": "user",
        "content": "We decided to fire the kiln at cone 6 because cone 10 cracks.",
    },
}

# Does to the settings what the real client does, and notes its words.
ENABLING = '{"enabledPlugins": {"cortex-lake@cortex-lake": ENABLED}}'
CLIENT = f"""#!/bin/sh
echo "$*" >>"$HOME/asked"
[ "$2" != install ] || echo '{ENABLING}' >"$HOME/.claude/settings.json"
exit CODE
"""


@pytest.fixture
def session(claude: Path) -> Path:
    """Return the transcript of a session with a decision in it."""
    folder = claude / "projects" / "-home-ada-kiln"
    folder.mkdir(parents=True)
    (folder / "s.jsonl").write_text(json.dumps(SAID) + "\n")
    return folder / "s.jsonl"


@pytest.fixture
def client(claude: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that puts a client on the PATH, and gives the file in which it notes its words."""
    command = claude.parent / "client" / "claude"
    command.parent.mkdir()

    def put(*, enabled: str = "true", code: int = 0) -> Path:
        command.write_text(CLIENT.replace("ENABLED", enabled).replace("CODE", str(code)))
        command.chmod(0o755)
        monkeypatch.setenv("PATH", f"{command.parent}:/usr/bin:/bin")
        return claude.parent / "asked"

    return put


@pytest.fixture(autouse=True)
def _no_client_and_no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr("cortex.flows.operations.maintain.setup.SCHEDULERS", ())


def test_setup_without_a_terminal_asks_nothing_and_writes_the_engine_alone(cortex, claude, tmp_path):
    (claude / "settings.json").write_bytes(MINE)
    answer = cortex("setup", "--json")
    assert answer.json["hooks"] == "none" and answer.json["sessions"] == 0
    assert list(answer.json["steps"]) == ["hooks"] and "cortex setup" in answer.json["next"][0]
    assert (claude / "settings.json").read_bytes() == MINE
    files = [path.name for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert files == ["engine"]


def test_setup_says_what_waits_before_it_is_read(cortex, claude, session):
    answer = cortex("setup")
    assert "1 to read" in answer.out and "first brief after about 5 s" in answer.out
    assert "Next: read 1 transcript," in answer.out


def test_setup_lets_the_client_install_the_plugin_of_this_package(cortex, claude, client):
    asked = client()
    answer = cortex("setup", "--yes", "--json").json
    assert answer["hooks"] == "plugin" and answer["steps"] == {}
    folder = launcher().resolve().parent
    assert asked.read_text().splitlines() == [
        f"plugin marketplace add {folder}",
        "plugin install cortex-lake@cortex-lake",
    ]
    assert "hooks" not in json.loads((claude / "settings.json").read_bytes())
    cortex("setup", "--yes")
    assert len(asked.read_text().splitlines()) == 2  # what is in place stays


@pytest.mark.parametrize(("enabled", "code"), [("false", 1), ("false", 0)])
def test_where_the_client_does_not_install_it_the_settings_get_the_hooks(
    cortex, claude, client, enabled, code
):
    client(enabled=enabled, code=code)
    answer = cortex("setup", "--yes")
    assert "without the plugin" in answer.err
    assert len(commands_of(claude / "settings.json")) == len(plugin_hooks()["hooks"])


def test_without_the_plugin_the_client_is_asked_to_start_the_tools_once(cortex, claude, client, tmp_path):
    cortex("install")
    asked = client()
    assert list(cortex("setup", "--json").json["steps"]) == ["tools"] and not asked.exists()
    answer = cortex("setup", "--yes")
    engine = tmp_path / "bin" / "cortex"
    assert asked.read_text().splitlines() == [f"mcp add --scope user cortex -- {engine} mcp"]
    assert "Tools: there with the next session." in answer.out
    (tmp_path / ".claude.json").write_text(json.dumps({"mcpServers": {"cortex": {}}}))
    assert cortex("setup", "--json").json["steps"] == {}


def test_a_client_that_does_not_take_the_tools_is_named_with_its_reason(cortex, claude, client):
    cortex("install")
    client(code=3)
    answer = cortex("setup", "--yes")
    assert answer.code == 0 and "`claude mcp add --scope` failed" in answer.err


def test_setup_at_a_terminal_takes_no_for_an_answer(cortex, claude, monkeypatch):
    (claude / "settings.json").write_bytes(MINE)
    monkeypatch.setattr("cortex.cli.start.setup.can_ask", lambda: True)
    assert "add hooks to" in cortex("setup", stdin="n\n").out
    assert (claude / "settings.json").read_bytes() == MINE
    cortex("setup", stdin="each\nn\n")
    assert (claude / "settings.json").read_bytes() == MINE
    cortex("setup", stdin="y\n")
    assert (claude / "settings.json").read_bytes() != MINE


def test_the_writer_that_is_chosen_is_kept(cortex, claude, tmp_path):
    assert cortex("setup", "--writer", "claude", "--json").code == 0
    assert 'writer = "claude"' in (tmp_path / "store" / "config.toml").read_text()
    assert cortex("setup", "--json").json["writer"] == "claude"


def test_setup_goes_on_where_the_settings_cannot_be_read(cortex, claude):
    (claude / "settings.json").write_bytes(b"{,}")
    answer = cortex("setup", "--json")
    assert answer.code == 0 and "not plain JSON" in answer.json["hooks"]


def test_the_engine_is_found_by_hooks(cortex, claude, tmp_path):
    cortex("setup", "--json")
    assert background.background_state(tmp_path / "store").engine == tmp_path / "bin" / "cortex"


def test_uninstall_takes_back_the_plugin_and_says_what_stays(cortex, claude, client, tmp_path):
    asked = client()
    cortex("setup", "--yes")
    asked.write_text("")
    answer = cortex("uninstall")
    assert answer.code == 0 and "Removed: plugin." in answer.out
    assert asked.read_text().splitlines() == [
        "plugin uninstall cortex-lake@cortex-lake",
        "plugin marketplace remove cortex-lake",
    ]
    assert f"rm -r {tmp_path / 'store'}" in answer.err and "This program stays" in answer.err


def test_an_uninstall_that_only_looks_asks_the_client_nothing(cortex, claude, client):
    asked = client()
    cortex("setup", "--yes")
    before = asked.read_text()
    assert "Would remove: plugin." in cortex("uninstall", "--dry-run").out
    assert asked.read_text() == before


def test_a_plugin_that_the_client_does_not_remove_is_named_with_the_command(cortex, claude, client):
    client()
    cortex("setup", "--yes")
    client(code=1)
    answer = cortex("uninstall")
    assert answer.code == 1 and "claude plugin uninstall cortex-lake@cortex-lake" in answer.err


def test_setup_says_why_no_nightly_run_can_be_scheduled_and_what_to_do(cortex, claude):
    answer = cortex("setup")
    assert "neither systemd, launchd nor cron works" in answer.out and "cortex nightly --if-due" in answer.out
