"""The reference pages say what the code says, and every command and link in the docs leads somewhere."""

import re
from pathlib import Path

import click
import pytest

from docs.generate import commands, pages

ROOT = Path(__file__).parents[1]
HAND_WRITTEN = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")


def test_printed_pages_are_as_make_docs_prints_them():
    written = {name: (ROOT / "docs" / name).read_text(encoding="utf-8") for name in pages()}
    stale = [name for name, text in pages().items() if written[name] != text]
    assert stale == [], "run `make docs`"


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_and_option_says_what_it_does(words: tuple[str, ...]):
    command = commands()[words]
    silent = [p.name for p in command.params if isinstance(p, click.Option) and not p.help]
    assert command.help
    assert silent == []


def test_the_cli_page_has_every_command():
    told = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert [words for words in commands() if f"### cortex {' '.join(words)}\n" not in told] == []


def test_the_readme_names_only_commands_that_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?:^|[`$(] ?)(?:\.venv/bin/)?cortex ([a-z]+)", text, re.MULTILINE))
    assert named - {words[0] for words in commands()} == set()


@pytest.mark.parametrize("page", HAND_WRITTEN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_of_a_page_leads_to_a_file(page: Path):
    links = LINK.findall(page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_decisions_are_numbered_without_a_gap():
    numbers = [int(path.name[:4]) for path in DECISIONS]
    assert numbers == list(range(1, len(numbers) + 1))


def test_the_index_of_decisions_has_each_with_its_title():
    titles = [path.read_text(encoding="utf-8").split("\n", 1)[0] for path in DECISIONS]
    expected = [
        f"- {int(path.name[:4])}. [{re.sub(r'^# [0-9]+[.]? ', '', title)}]({path.name})"
        for path, title in zip(DECISIONS, titles, strict=True)
    ]
    index = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    assert [line for line in index.split("\n") if line.startswith("- ")] == expected
