"""Scores against dense labels, on made tables where every figure is known."""

import numpy as np

from cortex.scores.extraction_scores import ShownFact, Similarities, evaluate_dense

LABEL = {
    "session": "buoys/s1.jsonl",
    "id": "s1#1",
    "grade": 3,
    "type": "decision",
    "text": "Tides are kept in SQLite",
    "quote": "then let us keep tides in SQLite",
    "lines": [10],
    "found_in": "sentence",
    "until": None,
}
OVERTURNED = {**LABEL, "id": "s1#2", "until": 40}
MINOR = {**LABEL, "id": "s1#3", "grade": 1, "text": "The gauge is grey", "quote": "grey", "lines": [30]}


def fact(text="SQLite keeps the tides", line=10, session="buoys/s1.jsonl", confidence=0.8) -> ShownFact:
    return ShownFact(session, text, frozenset([line]), confidence)


def scores_of(facts, labels, cosine=0.0):
    cosines = np.full((len(facts), len(labels)), cosine, np.float32)
    return evaluate_dense(facts, labels, Similarities(cosines, np.zeros_like(cosines)))


def test_near_its_lines_a_fact_needs_less_similarity() -> None:
    near, far = fact(line=11), fact(line=12)
    assert scores_of([near], [LABEL], cosine=0.5).recall([0]) == 1.0
    assert scores_of([far], [LABEL], cosine=0.5).recall([0]) == 0.0
    assert scores_of([far], [LABEL], cosine=0.71).recall([0]) == 1.0


def test_the_words_of_the_quote_tell_without_a_model() -> None:
    repeated = fact("Then let us keep tides in SQLite, not in files")
    assert scores_of([repeated], [LABEL]).grades == [3]


def test_a_fact_of_another_session_meets_nothing() -> None:
    assert scores_of([fact(session="buoys/s2.jsonl")], [LABEL], cosine=1.0).grades == [0]


def test_what_no_label_covers_is_noise_and_a_minor_fact_is_harmless() -> None:
    figures = scores_of([fact(line=30)], [MINOR], cosine=0.5).as_dict()
    assert (figures["worth"], figures["harmless"], figures["noise"]) == (0.0, 1.0, 0.0)
    figures = scores_of([fact(line=90)], [MINOR], cosine=0.5).as_dict()
    assert (figures["harmless"], figures["noise"]) == (0.0, 1.0)


def test_an_overturned_label_is_an_error_when_met_and_none_when_missed() -> None:
    met = scores_of([fact()], [OVERTURNED], cosine=0.9).as_dict()
    missed = scores_of([fact(line=90)], [OVERTURNED], cosine=0.1).as_dict()
    assert (met["overturned_shown"], missed["overturned_shown"]) == (1.0, 0.0)
    assert met["valid_labels"] == missed["valid_labels"] == 0


def test_a_label_that_holds_counts_before_an_overturned_one() -> None:
    evaluation = scores_of([fact()], [OVERTURNED, LABEL], cosine=0.9)
    assert [evaluation.labels[at]["id"] for at in evaluation.met[0]] == ["s1#1", "s1#2"]


def test_stated_and_found_are_given_by_band() -> None:
    facts = [fact(confidence=0.82), fact(line=90, confidence=0.88)]
    assert scores_of(facts, [LABEL], cosine=0.5).calibration() == [
        {"from": 0.8, "facts": 2, "stated": 0.85, "found": 0.5}
    ]


def test_noise_misses_and_overturned_ones_are_listed_with_their_lines() -> None:
    listed = scores_of([fact(), fact(line=90)], [OVERTURNED, MINOR, LABEL | {"lines": [70]}], cosine=0.5)
    assert [(row["kind"], row["lines"]) for row in listed.listed()] == [
        ("noise", [90]),
        ("missed", [70]),
        ("overturned", [10]),
    ]
