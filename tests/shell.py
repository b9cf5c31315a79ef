"""Calls commands as a shell does: words in; exit code, standard output and error out."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cortex.cli.main import main
from tests.bench import NOW, publishing_once, words_for_a_model
from tests.present import embedding_with, present


@dataclass(frozen=True)
class Answer:
    """What one command gave."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Return standard output as the one JSON value it must be."""
        return json.loads(self.out)


Cortex = Callable[..., Answer]

# Commands that take the bench's instant for the present; the others come after them.
RUNS = ("backfill", "run", "nightly", "doctor")


@pytest.fixture(autouse=True)
def _words_for_a_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with embedding_with(words_for_a_model), publishing_once():
        yield


@pytest.fixture
def cortex() -> Cortex:
    """Return a function that runs one command."""

    def run(*words: object, stdin: str | None = None) -> Answer:
        clock = (lambda: NOW) if words[0] in RUNS else None
        given = [str(word) for word in words]
        result = CliRunner().invoke(main, given, input=stdin, obj=lambda: present(clock=clock))
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout, result.stderr)

    return run
