"""Markdown becomes passages that stand alone."""

from cortex.storage.reference import read_policy
from cortex.transforms.extract.phrases import Phrasebook
from cortex.transforms.extract.sentences import LONGEST_CHARS, passages, plain, prose_blocks
from cortex.transforms.words.sentences import PROSE, sentences

PHRASES = Phrasebook.of(read_policy(None))


def texts(markdown: str) -> list[str]:
    return [passage.text for passage in passages(markdown, PHRASES)]


def test_code_fences_quotes_and_rules_are_no_prose() -> None:
    assert texts("We use SQLite.\n\n```sql\nselect 'use MySQL';\n```\n> use Redis\n\n---") == [
        "We use SQLite."
    ]


def test_an_unclosed_fence_swallows_the_rest() -> None:
    assert texts("Before the code.\n```\nuse MySQL\nuse Redis") == ["Before the code."]


def test_a_list_item_keeps_its_sub_items_and_its_heading() -> None:
    found = prose_blocks("## Fixed\n- **Parser**: two bugs\n  - tabs\n  - empty lines\n- Writer")
    assert [(block.heading, block.text) for block in found] == [
        ("Fixed", "**Parser**: two bugs; tabs; empty lines"),
        ("Fixed", "Writer"),
    ]


def test_a_lead_in_names_its_list() -> None:
    found = passages("The tide gauge has two modes:\n\n- live\n- replay of recorded files", PHRASES)
    assert [(passage.heading, passage.text) for passage in found] == [
        ("The tide gauge has two modes", "live; replay of recorded files")
    ]


def test_table_rows_are_passages_without_header() -> None:
    assert texts("| flag | meaning |\n|---|---|\n| --dry | writes nothing |") == ["--dry: writes nothing"]


def test_announcements_are_dropped_from_a_paragraph() -> None:
    assert texts("The cache holds stale tides. Let me check the loader.") == ["The cache holds stale tides."]


def test_a_full_stop_inside_a_name_ends_no_sentence() -> None:
    assert sentences("Edit main.py, e.g. Loader. Then run it.", PROSE) == [
        "Edit main.py, e.g. Loader.",
        "Then run it.",
    ]


def test_links_and_emphasis_leave_only_words() -> None:
    assert plain("**Use** [the `gauge`](https://tide.example/a(b)) ✅") == "Use the `gauge`"


def test_no_passage_is_longer_than_the_longest_memory_unless_one_sentence_is() -> None:
    many = " ".join(f"Sentence number {n} says a little about the tide gauge." for n in range(60))
    assert max(map(len, texts(many))) <= LONGEST_CHARS
