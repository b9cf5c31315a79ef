"""The reference pages say what the code says, and every command and link in the docs leads somewhere."""

import re
from pathlib import Path

import click

from docs.generate import commands, pages
from docs.modules import MODULES

ROOT = Path(__file__).parents[2]
HAND_WRITTEN = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")


def test_printed_pages_are_as_make_docs_prints_them():
    written = {name: (ROOT / "docs" / name).read_text(encoding="utf-8") for name in pages()}
    stale = [name for name, text in pages().items() if written[name] != text]
    assert stale == [], "run `make docs`"


def test_printed_modules_are_as_make_docs_prints_them():
    stale = [name for name, text in MODULES.items() if (ROOT / name).read_text(encoding="utf-8") != text()]
    assert stale == [], "run `make docs`"


def test_every_command_and_option_says_what_it_does():
    every = commands()
    assert [words for words, command in every.items() if not command.help] == []
    options = [(words, p) for words in every for p in every[words].params if isinstance(p, click.Option)]
    assert [(words, option.name) for words, option in options if not option.help] == []


def test_the_cli_page_has_every_command():
    told = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert [words for words in commands() if f"### cortex {' '.join(words)}\n" not in told] == []


def test_the_readme_names_only_commands_that_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?:^|[`$(] ?)(?:\.venv/bin/)?cortex ([a-z]+)", text, re.MULTILINE))
    assert named - {words[0] for words in commands()} == set()


def test_every_link_of_a_page_leads_to_a_file():
    links = [(page, link) for page in HAND_WRITTEN for link in LINK.findall(page.read_text(encoding="utf-8"))]
    assert len(links) > 100
    broken = [(page.relative_to(ROOT), link) for page, link in links if not (page.parent / link).exists()]
    assert broken == []


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


def test_every_file_that_architecture_names_exists():
    rooms = r"cortex|flows|storage|transforms|hooks|data|benchmarks|tests|docs"
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    names = re.findall(rf"`((?:{rooms})/[\w./-]*)`", page)
    assert [name for name in names if not (ROOT / name).exists()] == []
