"""An id is typed by its beginning, 4 characters or more, wherever one is asked for; several are listed."""

from cortex.flows.operations import ids, lookup
from cortex.flows.operations.ask import listing
from cortex.transforms.errors import UsageError


def test_several_are_listed_as_far_as_they_must_be_typed():
    texts = {"abcdef01": "Doors are red.", "abcdef02": "Doors are blue.", "abcd9900": "Lamps are lit."}
    error = ids.several("abcd", "memories", texts)
    assert isinstance(error, UsageError)
    lines = str(error).split("\n")
    assert lines[0] == "3 memories have ids that begin with 'abcd':"
    assert lines[1].split() == ["abcd9900", "Lamps", "are", "lit."]
    assert [line.split()[0] for line in lines[1:4]] == ["abcd9900", "abcdef01", "abcdef02"]


def test_of_a_hundred_only_some_are_listed():
    error = str(ids.several("abcd", "memories", {f"abcd{n:04x}": "x" for n in range(100)}))
    assert "100 memories" in error and "… and 92 more" in error and error.count("\n") == 10


def test_one_rule_holds_for_all():
    assert lookup.MIN_ID_CHARS is listing.MIN_ID_CHARS is ids.MIN_ID_CHARS
