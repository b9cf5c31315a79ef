"""A setting acts at once or says when it will, and `cortex brief` prints what holds now."""

import pytest

from cortex.storage.remote.store_lease import lease


def test_while_another_run_writes_a_setting_says_that_it_waits(cortex, samples):
    with lease(samples):
        answer = cortex("config", "set", "brief.tokens", "300", "--json")
    assert answer.code == 0 and answer.json["acts"] == "with the next run"


@pytest.mark.parametrize(
    "words, acts",
    [
        (["retention.days", "90"], "with the next nightly run"),
        (["capture.min_chars", "80"], "with the next run"),
        (["recall.at_prompt", "false"], "at once"),
    ],
)
def test_a_setting_says_when_it_acts(cortex, home, words, acts):
    assert cortex("config", "set", *words).out == f"{words[0]} is now {words[1]}; takes effect {acts}.\n"


def test_status_says_what_goes_by_its_age(cortex, home):
    assert cortex("status", "--json").json["retention"] == []
    cortex("config", "set", "retention.days", "400")
    cortex("config", "set", "retention.types", "gotcha=90", "progress=30", "--project", "/home/ada/kiln")
    assert cortex("status", "--json").json["retention"] == [
        "every project: everything after 400 days",
        "/home/ada/kiln: everything after 400 days, gotcha after 90 days, progress after 30 days",
    ]
    assert "Erased by age: every project: everything after 400 days" in cortex("status").out
