"""What a stranger put into words, names and paths steers no terminal: every command, field and form."""

import pytest

from tests.process.cli.test_hostile_output import (
    RAW,
    hostile,  # noqa: F401
)
from tests.unit.hooks.test_characters import ORDINARY

COMMANDS = (
    ("recall", "--all-projects", "which store for the gauges?"),
    ("recall", "--all-projects", "--json", "which store for the gauges?"),
    ("sql", "select * from memories"),
    ("sql", "--json", "select * from turns"),
    ("sql", "select * from memories where nothing = '\x1b[31m\u202e'"),
    ("status",),
    ("status", "--json"),
    ("stats", "--all-projects"),
    ("stats",),
    ("projects",),
    ("projects", "--json"),
    ("doctor",),
    ("review", "--project", "\x1b[31mnone\u202e"),
    ("brief", "--project", "\x1b[31mnone\u202e", "--json"),
    ("--\x1b[31m\u202e",),
    ("export", "--format", "markdown"),
    ("export",),
    ("run", "--engine", "plain"),
    ("rebuild", "--check"),
    ("forget", "\x1b[31mnothing of the kind\u202e"),
)


def test_no_raw_control_reaches_a_terminal_from_any_command(cortex, hostile):
    for words in (*COMMANDS, ("brief", "--project", hostile), ("brief", "--project", hostile, "--explain")):
        answer = cortex(*words)
        for printed in (answer.out, answer.err):
            assert not RAW.findall(printed), (words, sorted(set(map(ascii, RAW.findall(printed)))))
        if "--json" in words and answer.code == 0:
            assert answer.json is not None


def test_json_loses_nothing(cortex, hostile):
    texts = [text for (text,) in cortex("sql", "--json", "select text from turns").json["rows"]]
    assert any("\x1b[31mred" in text and "\u202e" in text for text in texts)


@pytest.mark.spread(3)
@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_text_of_any_script_is_printed_as_it_is(cortex, samples, name):
    fact = f"The gauge at the harbour says {ORDINARY[name]} every time."
    assert cortex("remember", "--project", "tidepool", "--type", "gotcha", fact).code == 0
    for words in (
        ("brief", "--project", "tidepool"),
        ("recall", "--project", "tidepool", "harbour gauge says"),
    ):
        assert ORDINARY[name] in " ".join(cortex(*words).out.split())
    rows = cortex("sql", "--json", "select text from memories").json["rows"]
    assert fact in [text for (text,) in rows]
    assert ORDINARY[name] in cortex("export", "--format", "markdown").out
