"""Claims about the search index: it finds what the tables hold, within the scopes asked for."""

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex.storage.tables.search_index import SearchIndex
from cortex.storage.tables.tables import VECTOR
from tests.rows import memory
from tests.store.storage.test_search_index import (
    KINDS,
    ids,
    index,  # noqa: F401
    put,
    searchable,
)

WORDS = st.lists(st.sampled_from(["tide", "reef", "gauge", "port", "the"]), min_size=1, max_size=6)


SCOPES = st.lists(st.lists(WORDS, max_size=5), min_size=2, max_size=4)


@settings(max_examples=30, deadline=None)
@given(SCOPES, WORDS, st.data())
def test_a_search_gives_rows_of_its_scopes_alone_and_scores_that_no_other_scope_moves(
    texts: list[list[list[str]]], query: list[str], data: st.DataObject
):
    """Whatever is asked: the answer is that of an index that holds nothing but the scopes asked for."""
    asked = data.draw(st.sets(st.integers(0, len(texts) - 1), min_size=1))
    vector = np.array(data.draw(st.lists(st.integers(-3, 3), min_size=4, max_size=4)), np.float32)
    every, alone = SearchIndex(None), SearchIndex(None)
    for scope, said in enumerate(texts):
        rows = [memory(f"m{scope}.{at}", " ".join(words)) for at, words in enumerate(said)]
        table = searchable(*rows, vector=[1, scope, 0, 0])
        put(every, f"s{scope}", table)
        if scope in asked:
            put(alone, f"s{scope}", table)
    scopes = [f"s{scope}" for scope in asked]
    there, here = every.rows(scopes, "memories"), alone.rows(scopes, "memories")
    for found, expected in (
        (there.search_words(" ".join(query), 50), here.search_words(" ".join(query), 50)),
        (there.search_vector(vector, 50), here.search_vector(vector, 50)),
        (there.read(), here.read()),
    ):
        assert {name.split(".")[0] for name in ids(found)} <= {f"m{scope}" for scope in asked}
        assert found.to_pylist() == expected.to_pylist()


CHANGES = st.lists(
    st.dictionaries(st.integers(0, 6), st.tuples(WORDS, st.integers(0, 3)), max_size=6),
    min_size=1,
    max_size=5,
)


def held(index: SearchIndex) -> list[object]:
    """Return all that can be asked of an index of one scope, and what it counts."""
    rows = index.rows(["reef-1"], "memories")
    with index.reading([]) as connection:
        assert connection is not None
        counts = connection.execute("select rows, words from parts").fetchall()
        words = connection.execute("select word, length(entries) from postings order by word").fetchall()
    searched = [rows.search_words(word, 9).to_pylist() for word in ("tide", "reef", "gauge the")]
    return [
        rows.read().to_pylist(),
        *searched,
        rows.search_vector(np.ones(4, np.float32), 9).to_pylist(),
        counts,
        words,
    ]


@settings(max_examples=30, deadline=None)
@given(CHANGES)
def test_an_index_brought_up_to_date_answers_as_one_made_from_nothing(
    changes: list[dict[int, tuple[list[str], int]]],
):
    grown, fresh = SearchIndex(None), SearchIndex(None)
    table = pa.table({})
    for state in changes:
        rows = [
            memory(f"m{key}", " ".join(words), confidence=level / 4) for key, (words, level) in state.items()
        ]
        angles = [level for _, level in state.values()]
        table = searchable(*rows).drop_columns([VECTOR])
        vectors = pa.array([[float(level), 1.0, 0, 0] if level else None for level in angles], KINDS)
        table = table.append_column(VECTOR, vectors)
        put(grown, "reef-1", table)
    put(fresh, "reef-1", table)
    assert held(grown) == held(fresh)
