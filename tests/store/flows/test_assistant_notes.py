"""Claude Code's own notes are read from their folders into the project they belong to, and not believed."""

import pytest

from cortex.transforms.documents.interchange import MAX_NOTE_CHARS, facts_in, note_in

NOTE = """---
name: nets-are-blue
description: Which nets are used
metadata:
  type: feedback
---
Nets are blue, since red ones frighten the fish. See [[harbour]].
"""
INDEX = "# Memory\n\n- [Nets](nets.md) — which nets are used\n- Boats leave at seven.\n"


def test_a_note_is_its_words_with_the_type_that_its_head_names():
    fact = note_in(NOTE)
    assert fact is not None
    assert fact.text == "Nets are blue, since red ones frighten the fish. See harbour."
    assert (fact.memory_type, fact.trust) == ("pattern", "external")


@pytest.mark.parametrize("text", ["", "---\n---\n", "---\nname: x\n---\n   \n"])
def test_a_note_without_words_is_none(text):
    assert note_in(text) is None
    assert facts_in({"a.md": text}) == ([], 1)


def test_a_note_without_a_head_and_one_whose_head_never_ends_are_read_whole():
    assert note_in("Nets are blue.").text == "Nets are blue."
    assert note_in("---\nname: x\nNets are blue.").text.endswith("Nets are blue.")
    assert len(note_in("Nets.\n" * 5_000).text) <= MAX_NOTE_CHARS


def test_of_the_index_only_what_points_to_no_file_is_a_fact():
    facts, _ = facts_in({"MEMORY.md": INDEX, "nets.md": NOTE})
    assert [each.text.split(".")[0] for each in facts] == [
        "Boats leave at seven",
        "Nets are blue, since red ones frighten the fish",
    ]
