"""Settings with our hooks and status line in and out again are the settings from before."""

import json
import subprocess
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cortex.transforms.documents.client_settings import (
    EMPTY,
    Json,
    dumped,
    has_hooks,
    has_status_line,
    hook_groups,
    is_same,
    parsed,
    text_without,
    with_hooks,
    with_status_line,
    without_hooks,
    without_status_line,
)
from cortex.transforms.errors import ClientSettingsUnusable
from tests.examples import cases

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


def installed(text: str) -> Json:
    return with_status_line(with_hooks(parsed(text), GROUPS), LAUNCHER)


def uninstalled(settings: Json) -> Json:
    return without_status_line(without_hooks(settings))


@given(laid_out())
def test_in_and_out_again_with_the_backup_leaves_the_very_bytes(text: str):
    settings = installed(text)
    assert has_hooks(settings, GROUPS) and has_status_line(settings)
    written = dumped(settings, like=text)
    assert parsed(written) == settings
    assert text_without(uninstalled(parsed(written)), written, text) == text


@given(laid_out())
def test_either_can_go_first(text: str):
    hooks = with_hooks(parsed(text), GROUPS)
    both = installed(text)
    assert without_status_line(both) == hooks
    assert without_hooks(without_status_line(both)) == without_status_line(without_hooks(both))


@given(laid_out())
def test_without_the_backup_every_other_key_stays_in_its_place(text: str):
    left = uninstalled(parsed(dumped(installed(text), like=text)))
    assert is_same(_without_empty_hooks(left), _without_empty_hooks(parsed(text)))


@given(laid_out(), laid_out())
def test_a_file_that_was_rewritten_since_loses_ours_alone(text: str, layout: str):
    settings = with_hooks(parsed(text), GROUPS)
    settings["added since"] = True
    settings["hooks"]["Stop"].insert(0, {"hooks": [OWN]})
    left = without_hooks(settings)
    before = parsed(text)
    before["added since"] = True
    before.setdefault("hooks", {}).setdefault("Stop", []).insert(0, {"hooks": [OWN]})
    assert not has_hooks(left)
    assert _without_empty_hooks(left) == _without_empty_hooks(before)
    assert parsed(text_without(left, layout, text)) == left


@given(SETTINGS, st.sampled_from([None, 2, 4, "\t"]), st.booleans(), st.sampled_from(["\n", "\r\n"]))
def test_a_file_as_json_writes_it_comes_back_byte_for_byte(
    value: Json, indent: Any, is_compact: bool, line_end: str
):
    separators = (",", ":") if is_compact and indent is None else None
    text = json.dumps(value, indent=indent, separators=separators) + "\n"
    text = text.replace("\n", line_end)
    assume(value)
    assert dumped(parsed(text), like=text) == text


@given(laid_out())
def test_a_file_laid_out_by_hand_keeps_every_value_its_edges_and_line_ends(text: str):
    written = dumped(parsed(text), like=text)
    assert is_same(parsed(written), parsed(text))
    assert ("\r\n" in written) <= ("\r\n" in text)
    edge = len(text) - len(text.lstrip())
    assert written.startswith(text[:edge]) and written.endswith(text[len(text.rstrip()) :])


def _without_empty_hooks(settings: dict[str, Any]) -> dict[str, Any]:
    """Which containers were empty before is known by the change alone, so those say nothing here."""
    hooks = {event: groups for event, groups in settings.get("hooks", {}).items() if groups}
    rest = {name: value for name, value in settings.items() if name != "hooks"}
    return {**rest, "hooks": hooks} if hooks else rest


def test_an_edit_elsewhere_since_is_kept():
    text = '{\n    "model":   "opus",\n    "env": {"A": "1"}\n}'
    since = installed(text.replace("opus", "sonnet"))
    left = text_without(uninstalled(since), dumped(since, like=text), text)
    assert left == '{\n    "model": "sonnet",\n    "env": {\n        "A": "1"\n    }\n}'


def test_a_number_changed_into_true_is_an_edit():
    since = installed('{"a": 1}') | {"a": True}
    assert text_without(uninstalled(since), dumped(since, like='{"a": 1}'), '{"a": 1}') == '{"a": true}'


def test_a_hook_the_user_put_beside_ours_stays_in_its_group():
    settings = with_hooks({}, {"Stop": GROUPS["Stop"]})
    settings = parsed(json.dumps(settings))
    settings["hooks"]["Stop"][0]["hooks"].append(OWN)
    assert without_hooks(settings) == {"hooks": {"Stop": [{"matcher": "startup", "hooks": [OWN]}]}}


def test_the_entries_are_laid_out_as_the_file_is():
    layout = '{\r\n\t"a": 1\r\n}'
    text = dumped(with_hooks(parsed(layout), {"Stop": [{"matcher": ""}]}), like=layout)
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
    assert dumped({"a": 1, "hooks": {"Stop": []}}, like='{"a": 1}') == '{"a": 1, "hooks": {"Stop": []}}'


def test_a_changed_launcher_or_timeout_is_seen():
    settings = with_hooks(parsed(EMPTY), GROUPS)
    assert has_hooks(settings) and has_hooks(settings, GROUPS)
    assert not has_hooks(settings, hook_groups(PLUGIN, "/elsewhere/cortex/hooks/run.sh"))
    assert not has_hooks(settings, {**GROUPS, "SessionEnd": GROUPS["Stop"]})
    assert not has_hooks(parsed(EMPTY))


@cases(
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
        '{"a": 1e999}',
        "{'a': 1}",
        '{"a": 1',
        '{"hooks": []}',
        '{"hooks": {"Stop": {}}}',
        "[" * 100_000,
    ],
)
def test_what_is_no_plain_settings_file_is_refused(text: str):
    with pytest.raises(ClientSettingsUnusable):
        with_hooks(parsed(text), GROUPS)


@pytest.mark.parametrize("line", ["true", '"x"', '{"type": "static", "text": "x"}'])
def test_a_status_line_of_another_form_is_refused(line: str):
    with pytest.raises(ClientSettingsUnusable):
        with_status_line(parsed(f'{{"statusLine": {line}}}'), LAUNCHER)


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
    settings = with_status_line({"statusLine": {"type": "command", "command": command}}, str(launcher))
    line = settings["statusLine"]["command"]
    code, out, err = _shell(line, '{"x": "\\\\n $HOME"}')
    theirs = _shell(command, '{"x": "\\\\n $HOME"}')[1].rstrip("\n")
    assert (code, err) == (0, "")
    assert out == f'{theirs}\nstatusline {{"x": "\\\\n $HOME"}}'
    launcher.unlink()
    assert _shell(line, '{"x": "\\\\n $HOME"}') == (
        0,
        theirs + "\n",
        "",
    )
