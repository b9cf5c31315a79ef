"""The plugin as it lies in the repository: one version, skills that call what exists, no words for shells."""

import json
import re
from pathlib import Path

import click
import pytest

import cortex
from cortex.cli.main import main
from tests.examples import cases

ROOT = Path(__file__).parents[3]
PLUGIN = ROOT / "hooks"
SKILLS = sorted((PLUGIN / "skills").glob("*/SKILL.md"))
AGENTS = sorted((PLUGIN / "agents").glob("*.md"))
MANIFEST = json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text(encoding="utf-8"))
# Of the checkout, and of the installed package, whose `hooks` is all of the plugin.
MARKETPLACES = {
    place: json.loads((place / ".claude-plugin" / "marketplace.json").read_text(encoding="utf-8"))
    for place in (ROOT, PLUGIN)
}

# What the client copies at an install; the checkout with its environment has 1.2 GB.
LARGEST_PLUGIN_BYTES = 400_000

# The client shows a model no more of a description than this.
MAX_DESCRIPTION_LENGTH = 1_024


def front_matter(skill: Path) -> dict[str, str]:
    _, head, _ = skill.read_text(encoding="utf-8").split("---\n", 2)
    return dict(line.split(": ", 1) for line in head.splitlines())


def test_the_plugin_has_the_version_of_the_package():
    assert MANIFEST["version"] == cortex.__version__


@pytest.mark.parametrize("place", MARKETPLACES, ids=["checkout", "package"])
def test_a_marketplace_offers_the_folder_of_the_hooks_as_the_plugin(place: Path):
    [offered] = MARKETPLACES[place]["plugins"]
    assert offered["name"] == MANIFEST["name"]
    assert (place / offered["source"]).resolve() == PLUGIN


def test_both_marketplaces_say_the_same_but_for_the_place():
    checkout, package = MARKETPLACES.values()
    [[there], [here]] = checkout.pop("plugins"), package.pop("plugins")
    assert checkout == package
    assert {**there, "source": ""} == {**here, "source": ""}


def test_the_plugin_is_small_and_has_no_link_that_leads_out_of_it():
    # The client copies the folder; a link that leads out of it is refused as a path that escapes.
    files = [path for path in PLUGIN.rglob("*") if "__pycache__" not in path.parts]
    assert not any(path.is_symlink() for path in files)
    assert sum(path.stat().st_size for path in files if path.is_file()) <= LARGEST_PLUGIN_BYTES


def test_the_manifest_names_the_hooks_beside_it():
    assert (PLUGIN / MANIFEST["hooks"]).name == "hooks.json" and (PLUGIN / MANIFEST["hooks"]).is_file()


def named(path: Path) -> str:
    return path.parent.name if path.name == "SKILL.md" else path.stem


@cases("skill", SKILLS + AGENTS)
def test_a_skill_or_agent_is_named_as_its_place_and_says_when_to_use_it(skill: Path):
    told = front_matter(skill)
    assert told["name"] == named(skill)
    assert len(told["description"]) <= MAX_DESCRIPTION_LENGTH and re.search(
        r"\b[Uu]se it|when", told["description"]
    )


@cases("skill", SKILLS + AGENTS)
def test_a_skill_calls_only_commands_and_options_that_exist(skill: Path):
    text = skill.read_text(encoding="utf-8")
    calls = re.findall(r"(?:^\s*|`)cortex ([a-z][^`\n]*)", text, re.MULTILINE)
    assert calls
    for call in calls:
        words = call.split(" -- ")[0].split()
        command: click.Command = main
        root = click.Context(main)
        while isinstance(command, click.Group) and words and words[0] in command.list_commands(root):
            command = command.get_command(root, words.pop(0)) or main
        assert command is not main
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known


def test_the_descriptions_cost_little():
    # They stand in every session's context, at some four characters a token.
    told = [front_matter(skill)["description"] for skill in SKILLS + AGENTS]
    assert sum(map(len, told)) <= 2_600 and max(map(len, told)) <= 320


@cases("skill", SKILLS)
def test_what_is_allowed_beforehand_only_reads_or_adds(skill: Path):
    allowed = re.findall(r"Bash\(cortex ([^)]*) \*\)", front_matter(skill).get("allowed-tools", ""))
    assert set(allowed) <= {
        "recall", "remember", "status", "doctor", "index-code", "pin", "config list", "config get",
        "run --session",
    }  # fmt: skip


@cases("skill", SKILLS)
def test_a_skill_that_only_looks_asks_for_no_permission(skill: Path):
    # A group of commands without one of them does something too: `cortex config --json` is no `config list`.
    text = skill.read_text(encoding="utf-8")
    allowed = re.findall(r"Bash\((cortex [^)]*) \*\)", front_matter(skill).get("allowed-tools", ""))
    for line in re.findall(r"^ *(cortex .*--json)$", text, re.MULTILINE) if allowed else ():
        assert line.startswith(tuple(allowed))


@cases("skill", SKILLS + AGENTS)
def test_a_skill_hands_words_to_the_command_and_never_to_a_shell(skill: Path):
    text = skill.read_text(encoding="utf-8")
    assert "!`" not in text  # the client would run it, with the user's words in it
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    assert not any("$ARGUMENTS" in block for block in blocks)
    assert re.findall(r"<<\S+", text) == re.findall(
        r"<<'[A-Z_]+'", text
    )  # a quoted mark: nothing is expanded


def test_what_cannot_be_undone_is_not_allowed_beforehand():
    assert "allowed-tools" not in front_matter(PLUGIN / "skills" / "forget" / "SKILL.md")
