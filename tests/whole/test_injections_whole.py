"""Words of pages, files, commands and subagents become no fact, however the assistant repeats them."""

from tests.unit.test_injections import leaking


def test_what_a_tool_brought_in_is_believed_in_no_wrapping_by_no_carrier(tmp_path):
    assert leaking(tmp_path, step=1) == []
