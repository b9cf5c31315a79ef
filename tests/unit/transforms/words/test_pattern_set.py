"""Patterns looked for in one pass are the ones that `re` finds one by one."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex.transforms.extract.language.phrases import Gate, PatternSet
from tests.examples import examples

PATTERNS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?:because|since)\s+(.{3,20}?)(?:[.;]|$)",
        r"^(?:so|and)\b",
        r"(?<!not )\bfixed\b",  # looks behind, which RE2 does not
        r"\w+_\w+",
        r"don[’']t",
        r"潮位|水位",
        r"\bétat\b",
        r"$",
    )
]
WORDS = ("because ", "since", " the gauge ", "fixed", "not ", "so", "tide_table", "don’t", "DON'T")
SIGNS = ("潮位", "état", "É", ".", ";", "\n", "\v", "\u00a0", "ſince", "—", "…", "_", " ")
PIECES = st.sampled_from([*WORDS, *SIGNS])
TEXTS = st.lists(PIECES, max_size=8).map("".join) | st.text(max_size=30)


@settings(max_examples=examples(300))
@given(TEXTS)
def test_a_set_finds_what_each_pattern_finds(text: str) -> None:
    expected = [at for at, pattern in enumerate(PATTERNS) if pattern.search(text)]
    assert PatternSet(PATTERNS).places_in(text) == expected


@settings(max_examples=examples(300))
@given(TEXTS)
def test_a_gate_is_shut_only_where_nothing_is_found(text: str) -> None:
    assert not any(Gate(pattern).is_shut(text) and pattern.search(text) for pattern in PATTERNS)


@pytest.mark.parametrize("patterns", [[], PATTERNS[2:3]], ids=["no pattern", "none that RE2 reads"])
def test_a_set_of_few_patterns_finds_them_too(patterns: list[re.Pattern[str]]) -> None:
    assert PatternSet(patterns).places_in("it is fixed") == [at for at, _ in enumerate(patterns)]
