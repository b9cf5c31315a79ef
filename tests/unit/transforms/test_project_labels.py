"""Claims about project labels: short where that is enough, never the same twice."""

from hypothesis import given
from hypothesis import strategies as st

from cortex.storage.projects.projects import distinct_labels

PLACES = st.lists(st.sampled_from(["a", "b", "cli", ""]), max_size=4).map("/".join)


def test_a_name_of_its_own_is_its_label():
    assert distinct_labels({"reef-1": "reef", "kelp-1": "kelp"}, {"reef-1": "/x/reef"}) == {
        "reef-1": "reef",
        "kelp-1": "kelp",
    }


def test_three_projects_of_one_name_go_by_as_much_of_their_place_as_it_takes():
    places = {"c-1": "/srv/ana/code/cli", "c-2": "/srv/ben/code/cli", "c-3": "/srv/ben/play/cli"}
    assert distinct_labels(dict.fromkeys(places, "cli"), places) == {
        "c-1": "ana/code/cli",
        "c-2": "ben/code/cli",
        "c-3": "ben/play/cli",
    }


def test_projects_that_no_place_tells_apart_go_by_their_ids():
    assert distinct_labels({"c-1": "cli", "c-2": "cli"}, {"c-1": "/x/cli", "c-2": "/x/cli"}) == {
        "c-1": "c-1",
        "c-2": "c-2",
    }


@given(st.dictionaries(st.sampled_from(["c-1", "c-2", "c-3", "d-1"]), PLACES))
def test_no_two_projects_of_one_name_have_one_label(places):
    names = {project_id: project_id[0] for project_id in places}
    for first in "cd":
        own = [
            label
            for project_id, label in distinct_labels(names, places).items()
            if names[project_id] == first
        ]
        assert len(set(own)) == len(own)
