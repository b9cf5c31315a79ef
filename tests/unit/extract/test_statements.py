"""Markdown becomes passages that stand alone."""

from cortex.storage.settings.reference import read_policy
from cortex.transforms.extract.language.phrases import Phrasebook
from cortex.transforms.extract.language.statements import (
    STATEMENT_CHARS,
    passages,
    plain,
    prose_blocks,
)
from cortex.transforms.words.sentences import PROSE, latin_length, sentences

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
        ("The tide gauge has two modes", "live"),
        ("The tide gauge has two modes", "replay of recorded files"),
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


def test_a_paragraph_is_cut_between_sentences_and_never_inside_one() -> None:
    said = [f"Sentence number {n} says a little about the tide gauge of the harbour." for n in range(60)]
    units = texts(" ".join(said))
    assert max(map(latin_length, units)) <= STATEMENT_CHARS
    assert " ".join(units) == " ".join(said)
    assert all(unit.endswith(".") for unit in units)


def test_a_reason_stays_with_what_it_is_given_for() -> None:
    fact = "The tide curve is drawn on the server, where the stored levels of the whole month lie anyway."
    reason = "This keeps the page under forty kilobytes, which the harbour's old tablets still load quickly."
    other = (
        "Readings of the gauge arrive every ten minutes and are stored with the clock of the gauge itself."
    )
    more = "Missing readings are filled from the neighbour upstream when both gauges agree on the day before."
    units = texts(f"{fact} {reason} {other} {more}")
    assert any(fact in unit and reason in unit for unit in units)


def test_a_bold_beginning_names_what_is_spoken_of() -> None:
    assert texts("- **Loader** \u2014 reads the levels of a day") == ["Loader: reads the levels of a day"]


def test_a_full_stop_of_japanese_needs_no_space() -> None:
    first = "潮位は一か月分をまとめて読み込むため、日ごとのファイルではなく一つの表に保存する。"
    units = texts((first + "曲線は港のページでだけ描画し、他のページでは数値だけを表示することにした。") * 5)
    assert all(unit.endswith("。") and latin_length(unit) <= STATEMENT_CHARS for unit in units)
