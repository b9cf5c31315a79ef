"""Machines on one store elsewhere share the tables; each makes the search index of them itself."""

from cortex.storage.remote.store_copy import refresh
from cortex.storage.tables.search_file import SEARCH_FILE, is_sound, read_index
from tests.store.storage.test_remote_index import (
    index_of,
    machines,  # noqa: F401
    remember,
)


def test_one_reads_while_the_index_follows_and_what_a_killed_writer_left_is_no_harm(machines):
    one, two = machines
    remember(one, "kiln", "glaze")
    refresh(two)
    with read_index(two / "tables" / SEARCH_FILE) as reader:
        reader.execute("begin")
        before = reader.execute("select count(*) from bodies").fetchone()
        remember(one, "kiln", "glaze", "zanzibarkey")
        refresh(two)
        assert reader.execute("select count(*) from bodies").fetchone() == before
    assert index_of(two) == index_of(one) and is_sound(two / "tables" / SEARCH_FILE)
