"""`cortex stats`: its table can be read, and says which project is which."""

from cortex.cli.answer import Listing, records, sparkline
from cortex.transforms.words.ages import counted


def test_one_session_is_one_session():
    assert counted(1, "session") == "1 session"
    assert counted(13, "session") == "13 sessions"


def test_a_line_of_bars_shows_shares_of_the_largest():
    assert sparkline([0, 1, 4, 8]) == " ▁▄█"
    assert sparkline([]) == "" and sparkline([0, 0]) == "  "


def test_a_table_that_is_too_wide_goes_as_a_block_a_row():
    text = records(Listing("2 rows", ["id", "words"], [["a1", "one two"], ["b22", "three\nfour"]]))
    assert text == "2 rows\n\nid     a1\nwords  one two\n\nid     b22\nwords  three four\n"
