"""Reads the policy tables: those that come with the package, and the user's own rows on top."""

import json
from functools import cache, lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from cortex.hooks.evidence.question import SESSION_STEM
from cortex.transforms.errors import NotFound
from cortex.transforms.policy import Policy, load_policy
from cortex.transforms.writer.request import Prompt

# Ordered by frequency in English; the local model's own.
_VOCABULARY = "reference/bert-base-uncased-vocab.txt"
# How common words are in sessions with coding assistants, by their stems.
_SESSION_WORDS = "reference/session-words.txt"


def read_policy(home: Path | None) -> Policy:
    """
    Return the policy of the package, with rows of `<home>/policy/*.csv` replacing those of the same key.

    Raises what `load_policy` raises, and NotFound for a file that is not UTF-8 text.
    """
    packaged = resources.files("cortex.data").joinpath("reference")
    texts = {
        entry.name.removesuffix(".csv"): entry.read_text(encoding="utf-8")
        for entry in packaged.iterdir()
        if entry.name.endswith(".csv")
    }
    folder = home / "policy" if home is not None else None
    if folder is None or not folder.is_dir():
        return _policy_of(tuple(texts.items()))
    return load_policy(texts, {path.stem: _text(path) for path in sorted(folder.glob("*.csv"))})


@lru_cache(maxsize=2)
def _policy_of(texts: tuple[tuple[str, str], ...]) -> Policy:
    # Kept: an operation asks several times, and parsing all tables took 50 ms each time.
    return load_policy(dict(texts))


def prompt_folder() -> Traversable:
    """Return the folder of the prompts that come with the package, two files each."""
    return resources.files("cortex.data").joinpath("reference", "prompts")


@cache
def read_prompt(name: str) -> Prompt:
    """Return the prompt `name`, such as `session@1`, that comes with the package."""
    folder = prompt_folder()
    stem = name.replace("@", "-")
    schema = json.loads(folder.joinpath(f"{stem}.schema.json").read_text(encoding="utf-8"))
    system = folder.joinpath(f"{stem}.md").read_text(encoding="utf-8")
    return Prompt(name, system, json.dumps(schema, sort_keys=True, separators=(",", ":")))


@cache
def common_words() -> tuple[str, ...]:
    """Return the whole English words of the local model's vocabulary, the most frequent first."""
    return tuple(line for line in _lines(_VOCABULARY) if len(line) > 1 and line.isalpha())


@cache
def word_ranks() -> dict[str, int]:
    """Return the place of each of `common_words`, from 1."""
    return {word: rank for rank, word in enumerate(common_words(), start=1)}


@cache
def search_ranks() -> dict[str, int]:
    """Return `word_ranks`, and behind SESSION_STEM the place of stems that many projects' sessions have."""
    stems = (line.split() for line in _lines(_SESSION_WORDS) if line and line[0] != "#")
    return {**word_ranks(), **{SESSION_STEM + stem: int(rank) for stem, rank in stems}}


def _lines(name: str) -> list[str]:
    return resources.files("cortex.data").joinpath(name).read_text(encoding="utf-8").split("\n")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NotFound(
            f"{path} cannot be read as text ({error}).", "Save it as UTF-8 or remove it."
        ) from error
