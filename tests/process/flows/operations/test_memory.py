"""The Python API: values for every operation, and nothing printed."""

import inspect
import subprocess
import sys
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest

from cortex import Memory
from cortex.flows.operations.ask import recall
from cortex.storage.remote.store_lease import lease
from cortex.transforms.errors import CortexError, NotFound
from tests.bench import NOW, words_for_a_model

PAGE = Path(__file__).parents[4] / "docs" / "python-api.md"
FACTS = ("Levels are stored as millimetres.", "Stations have names in lower case.")


@pytest.fixture
def memory(home, tmp_path) -> Memory:
    seconds = count()  # a person needs some time: of two entries of one instant either may come first
    return Memory(
        home,
        embedder_of=words_for_a_model,
        clock=lambda: NOW + timedelta(seconds=next(seconds)),
        folder=tmp_path / "kelp",
    )


def test_the_page_names_every_method():
    page = PAGE.read_text()
    methods = [name for name, _ in inspect.getmembers(Memory, inspect.isfunction) if not name.startswith("_")]
    assert [name for name in methods if f"`{name}`" not in page] == []


def test_importing_the_package_alone_imports_nothing_else():
    program = "import sys, cortex; print([name for name in sys.modules if name.startswith('cortex.')])"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_a_method_has_the_arguments_and_the_words_of_its_operation(memory):
    assert str(inspect.signature(memory.remember)).startswith("(text: str, *, memory_type")
    assert Memory.recall.__doc__ == recall.recall.__doc__


def test_what_waits_for_another_run_says_so(memory, home):
    with lease(home):
        applied = memory.remember(FACTS[0]).applied
    assert not applied.is_in_effect and "Another run is writing" in applied.warning


def test_what_is_refused_is_raised(memory):
    with pytest.raises(NotFound):
        memory.edit("0123456789ab", FACTS[0])
    with pytest.raises(CortexError) as refused:
        memory.remember("ok")
    assert refused.value.next_step
