"""The examples in docstrings are run: one that no longer holds misleads whoever reads it."""

import doctest
import importlib
from pathlib import Path

from cortex.transforms.extract.language.phrases import Phrasebook
from cortex.transforms.policy import load_policy
from cortex.transforms.words.slots import SlotParser
from tests.shown import REFERENCE

ROOT = Path(__file__).parents[2]
# As the product's modules import one another; the folders beside `cortex` are linked into it.
PACKAGES = ("cortex/cli", "cortex/explorer", "cortex/mcp", "flows", "hooks", "storage", "transforms")


def test_examples_in_docstrings_hold() -> None:
    policy = load_policy({path.stem: path.read_text(encoding="utf-8") for path in REFERENCE.glob("*.csv")})
    names = {"phrases": Phrasebook.of(policy), "parser": SlotParser.of(policy)}
    failed, tried = [], 0
    for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        if ">>>" not in path.read_text(encoding="utf-8"):
            continue
        below = path.parent if path.name == "__init__.py" else path.with_suffix("")
        name = ".".join(below.relative_to(ROOT).parts)
        module = importlib.import_module(name if name.startswith("cortex.") else f"cortex.{name}")
        results = doctest.testmod(module, extraglobs=names, report=False)
        tried += results.attempted
        failed += [f"{path.relative_to(ROOT)}: {results.failed} failed"] if results.failed else []
    assert failed == []
    assert tried > 150
