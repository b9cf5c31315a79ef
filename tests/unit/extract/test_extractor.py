"""Extraction is outdated by a change of what it reads, and by no other change of the policy."""

from dataclasses import replace

import pytest

from cortex.storage.settings.reference import read_policy
from cortex.transforms.extract.events import extract_events
from cortex.transforms.extract.language.candidate import extractor_fingerprint
from cortex.transforms.policy import BUILT_IN, READERS, REMARKS, Policy
from tests.examples import HAS_EVERY_CASE, cases
from tests.rows import turn, turns

POLICY = read_policy(None)
# Read before turns become events: what Cortex itself said is left out of them.
READ_BY_THE_FLOW = {"told_echo_days", "writer_persons_words_share", "writer_proved_words_share"}


def changed(stem, key):
    """Return the policy with another value in one row."""
    row = POLICY.rows[stem][key]
    name = next(
        name
        for name in reversed(row)
        if name not in (*REMARKS, "language", *BUILT_IN.get(stem, ())) and row[name] is not None
    )
    cell = row[name]
    other = not cell if isinstance(cell, bool) else cell + 1 if isinstance(cell, float) else f"{cell}x"
    rows = {**POLICY.rows[stem], key: {**row, name: other}}
    return replace(POLICY, rows={**POLICY.rows, stem: rows})


@cases("name", [name for (name,) in POLICY.rows["thresholds"]])
def test_a_threshold_outdates_extraction_where_extraction_reads_it(name):
    is_read = "extract" in POLICY.rows["thresholds"][(name,)]["read_by"].split()
    assert (extractor_fingerprint(changed("thresholds", (name,))) != extractor_fingerprint(POLICY)) == is_read


@pytest.mark.slow
@pytest.mark.parametrize("stem", READERS)
def test_a_table_outdates_extraction_where_extraction_reads_it(stem):
    now = extractor_fingerprint(POLICY)
    keys = [*POLICY.rows[stem]][:: 1 if HAS_EVERY_CASE else 5]
    others = [extractor_fingerprint(changed(stem, key)) for key in keys]
    assert {other != now for other in others} == {"extract" in READERS[stem]}


def test_another_reason_for_a_number_outdates_nothing():
    row = POLICY.rows["thresholds"][("told_echo_days",)]
    rows = {**POLICY.rows["thresholds"], ("told_echo_days",): {**row, "why": "mine"}}
    policy = replace(POLICY, rows={**POLICY.rows, "thresholds": rows})
    assert extractor_fingerprint(policy) == extractor_fingerprint(POLICY)


def test_extraction_reads_exactly_what_the_policy_says_it_reads():
    tables, thresholds = set(), set()

    class Tables(dict):
        def __getitem__(self, name):
            tables.add(name)
            return super().__getitem__(name)

    class Watched(Policy):
        @property
        def tables(self):
            return Tables(POLICY.tables)

        def threshold(self, name):
            thresholds.add(name)
            return super().threshold(name)

        def confidence(self, source):
            tables.add("confidences")
            return super().confidence(source)

        def salience(self, event_type):
            tables.add("event_types")
            return super().salience(event_type)

    rows = turns(
        turn(1, "From now on always answer in short sentences."),
        turn(2, "[MEMORY: decision] Answers stay short.", kind="text", trust="assistant"),
    )
    extract_events(rows, Watched(POLICY.columns, POLICY.fingerprint, POLICY.rows))
    assert tables == {stem for stem, readers in READERS.items() if "extract" in readers}
    declared = POLICY.rows_read_by("extract")["thresholds"]
    assert thresholds == {row["name"] for row in declared} - READ_BY_THE_FLOW
