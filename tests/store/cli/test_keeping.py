"""The commands that erase, keep and move memory, by their words."""

import json

from click.testing import CliRunner, Result

from cortex.cli.main import main
from tests.examples import cases


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


@cases(
    "words",
    [
        ["forget"],
        ["forget", "abcdef", "--session", "abcdef"],
        ["consolidate", "--dry-run", "--undo"],
        ["consolidate", "--to", "name"],
        ["reset", "--yes"],
        ["backup"],
    ],
)
def test_words_that_say_too_little_or_too_much_are_a_usage_error(words):
    assert run(*words).exit_code == 2


@cases(
    ("words", "code"),
    [
        (["forget", "--session", "0123456789", "--json"], "CORTEX_E_NOT_FOUND"),
        (["reset", "--project", "nowhere", "--json"], "CORTEX_E_UNKNOWN_PROJECT"),
        (["restore", "nothing.tar.zst", "--json"], "CORTEX_E_NOT_FOUND"),
        (["import", "nothing.json", "--json"], "CORTEX_E_NOT_FOUND"),
        (["consolidate", "--undo", "--to", "nothing", "--json"], "CORTEX_E_NOT_FOUND"),
    ],
)
def test_what_is_not_there_is_said_as_json(words, code):
    assert json.loads(run(*words).stdout)["error"]["code"] == code


def test_an_empty_store_exports_no_memories():
    assert json.loads(run("export").stdout)["memories"] == []
