"""Settings with our hooks and status line in and out again are, byte for byte, the settings from before."""

import json
import subprocess
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cortex.transforms.errors import ClientSettingsUnusable
from cortex.transforms.files.client_settings import (
    EMPTY,
    has_hooks,
    has_status_line,
    hook_groups,
    with_hooks,
    with_status_line,
    without_hooks,
    without_status_line,
)
from cortex.transforms.files.json_text import parsed

LAUNCHER = "/opt/it's here/cortex/hooks/run.sh"
PLUGIN = {
    "hooks": {
        event: [
            {"matcher": "startup", "hooks": [{"type": "command", "command": "sh", "args": ["${X}", name]}]}
        ]
        for event, name in (
            ("SessionStart", "session-start"),
            ("Stop", "stop"),
            ("UserPromptSubmit", "prompt"),
        )
    }
}
GROUPS = hook_groups(PLUGIN, LAUNCHER)
OWN = {"type": "command", "command": "notify-send done"}

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
LEAVES = st.none() | st.booleans() | NUMBERS | st.text(max_size=8)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
GROUP = st.fixed_dictionaries(
    {"hooks": st.lists(st.just(OWN) | VALUES, max_size=2)}, optional={"matcher": st.text(max_size=4)}
)
HOOKS = st.dictionaries(
    st.sampled_from(["Stop", "SessionStart", "PreToolUse"]), st.lists(GROUP | VALUES, max_size=3), max_size=3
)
STATUS = st.fixed_dictionaries(
    {"type": st.just("command"), "command": st.text(max_size=20)}, optional={"padding": st.just(0)}
)
SETTINGS = st.builds(
    lambda others, ours, is_last_first: dict(sorted({**others, **ours}.items(), reverse=is_last_first)),
    st.dictionaries(
        st.text(max_size=6).filter(lambda key: key not in ("hooks", "statusLine")), VALUES, max_size=4
    ),
    st.fixed_dictionaries({}, optional={"hooks": HOOKS, "statusLine": STATUS}),
    st.booleans(),
)


@st.composite
def laid_out(draw: st.DrawFn) -> str:
    """Return settings as some editor or program would write them."""
    value = draw(SETTINGS)
    indent = draw(st.sampled_from([None, 0, 2, 4, "\t"]))
    separators = draw(st.sampled_from([None, (",", ":"), (" , ", " : ")]))
    text = json.dumps(value, indent=indent, separators=separators, ensure_ascii=draw(st.booleans()))
    assume(not any(0xD800 <= ord(c) < 0xE000 for c in text))
    if text == "{}":
        text = draw(st.sampled_from(["{}", "{ }", "{\n}", "{\n\n  }"]))
    text = draw(st.sampled_from(["", "\n", "  "])) + text + draw(st.sampled_from(["", "\n", "\n\n"]))
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


@given(laid_out())
def test_hooks_in_and_out_leave_the_very_bytes(text: str):
    edited = with_hooks(text, GROUPS)
    assert has_hooks(edited.text, GROUPS)
    assert without_hooks(edited.text, edited.changes) == text


@given(laid_out())
def test_a_status_line_in_and_out_leaves_the_very_bytes(text: str):
    edited = with_status_line(text, LAUNCHER)
    assert has_status_line(edited.text)
    assert without_status_line(edited.text, edited.changes) == text


@given(laid_out(), st.booleans())
def test_both_in_and_out_in_either_order_leave_the_very_bytes(text: str, is_hooks_first: bool):
    hooks = with_hooks(text, GROUPS)
    line = with_status_line(hooks.text, LAUNCHER)
    if is_hooks_first:
        left = without_status_line(without_hooks(line.text, hooks.changes), line.changes)
    else:
        left = without_hooks(without_status_line(line.text, line.changes), hooks.changes)
    assert parsed(left) == parsed(text)
    assert is_hooks_first or left == text


@given(laid_out())
def test_what_is_the_users_stays_whatever_is_forgotten_of_the_change(text: str):
    edited = with_status_line(with_hooks(text, GROUPS).text, LAUNCHER).text
    left = parsed(without_status_line(without_hooks(edited)))
    assert _without_empty_hooks(left) == _without_empty_hooks(parsed(text))


@given(laid_out(), laid_out())
def test_a_file_that_was_written_anew_since_loses_ours_alone(text: str, layout: str):
    edited = with_hooks(text, GROUPS)
    settings = parsed(edited.text)
    settings["added since"] = True
    settings["hooks"]["Stop"].insert(0, {"hooks": [OWN]})
    left = without_hooks(json.dumps(settings, indent=2), edited.changes)
    before = parsed(text)
    before["added since"] = True
    before.setdefault("hooks", {}).setdefault("Stop", []).insert(0, {"hooks": [OWN]})
    assert not has_hooks(left)
    assert _without_empty_hooks(parsed(left)) == _without_empty_hooks(before)


def _without_empty_hooks(settings: dict[str, Any]) -> dict[str, Any]:
    """Which containers were empty before is known by the change alone, so those say nothing here."""
    hooks = {event: groups for event, groups in settings.get("hooks", {}).items() if groups}
    rest = {name: value for name, value in settings.items() if name != "hooks"}
    return {**rest, "hooks": hooks} if hooks else rest


def test_an_edit_elsewhere_since_keeps_the_layout_of_the_rest():
    text = '{\n    "model":   "opus",\n    "env": {"A": "1"}\n}'
    edited = with_hooks(text, GROUPS)
    since = edited.text.replace('"opus"', '"sonnet"')
    assert without_hooks(since, edited.changes) == text.replace('"opus"', '"sonnet"')


def test_a_hook_the_user_put_beside_ours_stays_in_its_group():
    edited = with_hooks("{}", {"Stop": GROUPS["Stop"]})
    settings = parsed(edited.text)
    settings["hooks"]["Stop"][0]["hooks"].append(OWN)
    left = parsed(without_hooks(json.dumps(settings), edited.changes))
    assert left == {"hooks": {"Stop": [{"matcher": "startup", "hooks": [OWN]}]}}


def test_the_entries_are_laid_out_as_the_file_is():
    text = with_hooks('{\r\n\t"a": 1\r\n}', {"Stop": [{"matcher": ""}]}).text
    assert text.split("\r\n") == [
        "{",
        '\t"a": 1,',
        '\t"hooks": {',
        '\t\t"Stop": [',
        "\t\t\t{",
        '\t\t\t\t"matcher": ""',
        "\t\t\t}",
        "\t\t]",
        "\t}",
        "}",
    ]
    assert with_hooks('{"a": 1}', {"Stop": []}).text == '{"a": 1, "hooks": {"Stop": []}}'


def test_a_changed_launcher_or_timeout_is_seen():
    text = with_hooks(EMPTY, GROUPS).text
    assert has_hooks(text) and has_hooks(text, GROUPS)
    assert not has_hooks(text, hook_groups(PLUGIN, "/elsewhere/cortex/hooks/run.sh"))
    assert not has_hooks(text, {**GROUPS, "SessionEnd": GROUPS["Stop"]})
    assert not has_hooks(EMPTY)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        '{"a": 1,}',
        '{"a": 1} // mine',
        "/* mine */ {}",
        '\ufeff{"a": 1}',
        '{"a": 1, "a": 2}',
        '{"env": {"A": "1", "A": "2"}}',
        '{"a": NaN}',
        "{'a': 1}",
        '{"a": 1',
        '{"hooks": []}',
        '{"hooks": {"Stop": {}}}',
        "[" * 100_000,
    ],
)
def test_what_is_no_plain_settings_file_is_refused(text: str):
    with pytest.raises(ClientSettingsUnusable):
        with_hooks(text, GROUPS)


@pytest.mark.parametrize("line", ["true", '"x"', '{"type": "static", "text": "x"}'])
def test_a_status_line_of_another_form_is_refused(line: str):
    with pytest.raises(ClientSettingsUnusable):
        with_status_line(f'{{"statusLine": {line}}}', LAUNCHER)


def _shell(command: str, stdin: str = "{}") -> tuple[int, str, str]:
    ran = subprocess.run(["/bin/sh", "-c", command], input=stdin, capture_output=True, text=True, timeout=20)
    return ran.returncode, ran.stdout, ran.stderr


def test_a_hook_whose_script_is_gone_ends_silently_with_0():
    for groups in GROUPS.values():
        assert _shell(groups[0]["hooks"][0]["command"]) == (0, "", "")


@pytest.mark.parametrize(
    "command", ["echo mine", "printf mine", "cat; exit 3", 'case $1 in *) echo "it\'s";; esac # x']
)
def test_both_status_lines_are_shown_and_both_are_given_the_input(tmp_path, command: str):
    folder = tmp_path / "a b" / "hooks"
    folder.mkdir(parents=True)
    launcher = folder / "run.sh"
    launcher.write_text('printf "%s " "$1"; cat')
    edited = with_status_line(
        json.dumps({"statusLine": {"type": "command", "command": command}}), str(launcher)
    )
    code, out, err = _shell(parsed(edited.text)["statusLine"]["command"], '{"x": "\\\\n $HOME"}')
    theirs = _shell(command, '{"x": "\\\\n $HOME"}')[1].rstrip("\n")
    assert (code, err) == (0, "")
    assert out == f'{theirs}\nstatusline {{"x": "\\\\n $HOME"}}'
    launcher.unlink()
    assert _shell(parsed(edited.text)["statusLine"]["command"], '{"x": "\\\\n $HOME"}') == (
        0,
        theirs + "\n",
        "",
    )
