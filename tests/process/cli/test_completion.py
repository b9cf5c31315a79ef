"""`cortex completion`: shells get a script, and the script's questions are answered without heavy imports."""

import shutil
import subprocess

import pytest
from click.testing import CliRunner

from cortex.cli.main import main
from cortex.cli.start.setup import SHELLS


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_gets_a_script_that_it_can_read(cortex, shell, tmp_path):
    answer = cortex("completion", shell)
    assert (answer.code, "_CORTEX_COMPLETE" in answer.out) == (0, True)
    if shutil.which(shell):
        script = tmp_path / "cortex"
        script.write_text(answer.out)
        subprocess.run([shell, "-n", str(script)], check=True)


def completed(words: str, at: int) -> list[str]:
    asked = {"_CORTEX_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(at)}
    lines = CliRunner().invoke(main, [], env=asked, prog_name="cortex").stdout.split()
    return [line.partition(",")[2] for line in lines]


def test_commands_options_and_projects_are_completed(samples):
    assert completed("cortex tim", 1) == ["timeline"]
    assert "--all-projects" in completed("cortex list --", 2)
    [project] = completed("cortex list --project tide", 3)
    assert project.startswith("tidepool-")


def test_an_unknown_shell_is_an_error_that_names_those_known(cortex):
    answer = cortex("completion", "tcsh")
    assert (answer.code, all(shell in answer.err for shell in SHELLS)) == (2, True)


@pytest.mark.parametrize(
    ("word", "meant"), [("lst", "Did you mean list"), ("recal", "Did you mean recall"), ("zzzz", "")]
)
def test_a_misspelt_command_is_answered_with_the_nearest(cortex, word, meant):
    answer = cortex(word)
    assert (answer.code, f"there is no command '{word}'. {meant}".rstrip() in answer.err) == (2, True)
    assert ("Did you mean" in answer.err) == bool(meant)
