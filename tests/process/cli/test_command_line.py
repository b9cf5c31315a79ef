"""The command line as a whole: commands by purpose, imported once they are called."""

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from cortex import cli
from cortex.cli.answer import Answer, Listing, command, group
from cortex.cli.command_index import SECTIONS
from cortex.cli.main import CommandLine, main
from cortex.flows.context import Context
from cortex.storage.settings.settings import Settings
from cortex.transforms.errors import AuditFailed
from tests.examples import cases
from tests.process.cli.test_commands import HEAVY

NAMES = [name for commands in SECTIONS.values() for name in commands]


@cases("name", NAMES)
def test_every_command_of_the_help_is_there_under_its_name(name: str):
    found = main.get_command(click.Context(main), name)
    assert found is not None and found.name == name


def test_no_command_stands_in_two_sections():
    assert len(set(NAMES)) == len(NAMES)


def test_every_command_of_a_section_is_listed_or_stands_below_one_that_is():
    folders = [Path(cli.__path__[0]) / folder for folder in cli.SECTION_FOLDERS]
    modules = [
        importlib.import_module(f"cortex.cli.{folder.name}.{path.stem}")
        for folder in folders
        for path in folder.glob("*.py")
    ]
    declared = {
        value for each in modules for value in vars(each).values() if isinstance(value, click.Command)
    }
    listed = [main.get_command(click.Context(main), name) for name in NAMES]
    below = [each for top in listed if isinstance(top, click.Group) for each in top.commands.values()]
    assert declared - {*listed, *below} == set()


def test_two_commands_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("cortex.cli.answer.LISTED", {})
    command("dive", "Go down.")(lambda context: None)
    with pytest.raises(ValueError, match="both declare the command 'dive'"):
        group("dive", "Go down too.")(test_two_commands_of_one_name_are_refused)


def test_the_help_names_every_command_and_imports_none():
    program = "import sys; from cortex.cli.main import main; main(['--help']); print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert [name for name in NAMES if f"\n  {name} " not in shown] == []
    assert [title for title in SECTIONS if f"\n{title}:\n" not in shown] == []
    loaded = {name.split(".")[1] for name in shown.splitlines()[-1].split() if name.startswith("cortex.")}
    assert loaded == {"cli", "hooks", "transforms"}


def test_a_commands_help_imports_nothing_of_what_it_does():
    program = (
        "import click, sys\n"
        "from cortex.cli.main import main\n"
        "for name in main.list_commands(click.Context(main)):\n"
        "    main.get_command(click.Context(main), name)\n"
        "print(*sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    loaded = set(shown.split())
    assert loaded & set(HEAVY) == set()
    assert {module for commands in SECTIONS.values() for module, _ in commands.values()} <= loaded


@pytest.fixture
def answering(tmp_path: Path) -> Callable[..., Result]:
    """Return a function that prints an answer as a command of the command line does."""

    def call(answer: object, *words: str) -> Result:
        group = CommandLine("cortex")
        declared = command("probe")(lambda context: answer)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(group, "get_command", lambda context, name: declared)
            return CliRunner().invoke(group, ["probe", *words], obj=Context(Settings(tmp_path)))

    return call


TABLE = Listing("All", ["memory"], [["a"]])
ANSWER = Answer(
    {"ids": ["a"]},
    ["1 memory.", TABLE],
    ["Show it."],
    ["It is old."],
    exit_code=3,
)


def test_an_answer_is_printed_for_people_with_hints_beside_it(answering):
    result = answering(ANSWER)
    assert result.stdout.split() == ["1", "memory.", "All", "memory", "a"]
    assert (result.stderr, result.exit_code) == ("It is old.\nShow it.\n", 3)


def test_an_answer_is_one_json_object_for_programs(answering):
    result = answering(ANSWER, "--json")
    assert json.loads(result.stdout) == {"ids": ["a"]}
    assert (result.stderr, result.exit_code) == ("It is old.\n", 3)


def test_of_several_answers_people_see_each_and_programs_the_last(answering):
    def answers():
        yield Answer({"part": 1}, ["First."])
        yield Answer({"part": 2}, ["Second."])

    assert answering(answers()).stdout == "First.\nSecond.\n"
    assert json.loads(answering(answers(), "--json").stdout) == {"part": 2}


def test_an_answer_with_an_error_is_printed_before_the_error(answering):
    error = AuditFailed("it differs.", "Rebuild it.")
    people = answering(Answer({"rows": 1}, ["1 row."], error=error))
    program = answering(Answer({"rows": 1}, ["1 row."], error=error), "--json")
    assert (people.stdout, people.exit_code, program.exit_code) == ("1 row.\n", 12, 12)
    assert people.stderr == program.stderr == "cortex: it differs. Rebuild it. [CORTEX_E_AUDIT]\n"
    assert json.loads(program.stdout) == {"rows": 1, **error.as_dict()}
