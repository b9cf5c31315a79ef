"""What search needs of memories: words that were made before are taken where a memory is worded the same."""

from hypothesis import given
from hypothesis import strategies as st

from cortex.flows.stages.embed import searchable
from cortex.transforms.schemas import VECTORS
from tests.rows import memories, memory

worded = st.fixed_dictionaries(
    {
        "text": st.sampled_from(["call loadConfig in app_state.py", "keep it", "端口 is 5173"]),
        "subject": st.sampled_from([None, "", "the portName"]),
        "tags": st.lists(st.sampled_from(["a_b", "c"]), max_size=2),
        "files": st.lists(st.sampled_from(["src/a.py", "b"]), max_size=2),
        "memory_type": st.sampled_from(["decision", "gotcha"]),
    }
)
stores = st.dictionaries(st.sampled_from("abcdef"), worded)


@given(stores, stores)
def test_what_is_searched_by_is_as_if_all_were_worded_again(before, now):
    then, rows = (
        memories(*(memory(name, **row) for name, row in sorted(store.items()))) for store in (before, now)
    )
    fresh = searchable(rows, VECTORS.empty())
    assert searchable(rows, VECTORS.empty(), searchable(then, VECTORS.empty())).equals(fresh)
