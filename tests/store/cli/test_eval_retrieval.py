"""`cortex eval retrieval` measures recall on a data set of one's own, beside plain rankings."""

import json

import pytest

TIDES = [
    {"id": "a", "text": "Tide gauges report in UTC.", "session": "s1", "time": "2026-03-01", "role": "user"},
    {
        "id": "b",
        "text": "Understood, gauges stay in UTC.",
        "session": "s1",
        "time": None,
        "role": "assistant",
    },
    {"id": "c", "text": "Coral polyps grow at night.", "session": "s2", "time": 1772000000, "role": "Mara"},
    {"id": "d", "text": "Paint the boat before June.", "session": "s3", "time": "2026-03-02T10:00:00Z"},
]
ASKED = [
    {"id": "q1", "text": "Which gauges report in UTC?", "evidence": ["a", "b"], "category": "fact"},
    {"id": "q2", "text": "What did Mara tell about coral polyps?", "evidence": ["c"], "category": "speaker"},
    {"id": "q3", "text": "xylophone parachute octopus", "evidence": []},
]


@pytest.fixture
def measured(cortex, tmp_path):
    def run(corpus=TIDES, queries=ASKED, *options):
        for name, rows in (("c", corpus), ("q", queries)):
            lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
            (tmp_path / name).write_text("\n".join(lines))
        return cortex("eval", "retrieval", "--corpus", tmp_path / "c", "--queries", tmp_path / "q", *options)

    return run


def test_each_ranking_has_the_same_measures_by_category_with_intervals(measured):
    answer = measured(TIDES, ASKED, "--json").json
    assert list(answer["rankings"]) == ["cortex", "bm25", "vectors", "hybrid"]
    for figures in answer["rankings"].values():
        assert list(figures["by_category"]) == ["fact", "speaker"]
        for name in ("recall_any@1", "recall_share@5", "recall_all@10", "recall_any@20", "mrr", "ndcg@10"):
            share = figures["overall"][name]
            assert 0 <= share["low"] <= share["value"] <= share["high"] <= 1
        assert 0 < figures["p50_ms"] <= figures["p95_ms"]
    overall = answer["rankings"]["cortex"]["overall"]
    assert (overall["queries"], overall["recall_all@5"]["value"], overall["recall_any@1"]["value"]) == (
        2,
        1,
        1,
    )
    assert (
        answer["corpus"]["rows"] == 4 and answer["corpus"]["bytes"] > 0 < answer["corpus"]["rows_per_second"]
    )


def test_a_query_that_nothing_answers_counts_apart(measured):
    by_words = measured(TIDES, ASKED, "--no-model", "--json").json["rankings"]
    assert by_words["cortex"]["answered_falsely"]["value"] == 0
    by_meaning = measured(TIDES, ASKED, "--json").json["rankings"]
    assert by_meaning["vectors"]["answered_falsely"]["value"] == 1


def test_without_a_model_words_alone_are_measured(measured):
    answer = measured(TIDES, ASKED, "--no-model", "--json").json
    assert (answer["model"], list(answer["rankings"])) == (None, ["cortex", "bm25"])


def test_a_query_of_a_project_is_asked_in_that_project_alone(measured):
    corpus = [{**TIDES[0], "project": "reef"}, {**TIDES[0], "id": "x", "project": "../harbour"}]
    asked = {"id": "q", "text": "Where do tide gauges report?", "evidence": ["x"]}
    within = measured(corpus, [{**asked, "project": "../harbour"}], "--json").json
    assert within["rankings"]["cortex"]["overall"]["recall_any@1"]["value"] == 1
    assert within["corpus"]["projects"] == 2


def test_people_read_a_table_of_rankings(measured):
    out = measured().out
    assert all(word in out for word in ("cortex", "bm25", "hybrid", "recall_any@5", "4 rows", "a second"))


@pytest.mark.parametrize(
    ("corpus", "queries", "problem"),
    [
        (["[1]"], ASKED, "c line 1: a row must be a JSON object"),
        ([TIDES[0], "{"], ASKED, "c line 2 is not JSON"),
        ([{**TIDES[0], "text": 4}], ASKED, "c line 1: 'text' must be text"),
        ([{**TIDES[0], "time": "yesterday"}], ASKED, "'time' must be"),
        ([{**TIDES[0], "session": ""}], ASKED, "'session' must be text and not empty"),
        ([*TIDES, TIDES[0]], ASKED, "the id 'a' twice"),
        ([], ASKED, "holds no rows"),
        (TIDES, [], "holds no queries"),
        (TIDES, [{"id": "q", "text": "gauges"}], "q line 1: 'evidence' must be a list"),
        (TIDES, [{"id": "q", "text": "gauges", "evidence": ["zz"]}], "evidence 'zz' of query 'q'"),
        (TIDES, [ASKED[0], ASKED[0]], "the id 'q1' twice"),
    ],
)
def test_a_bad_row_is_named_with_its_file_and_line(measured, corpus, queries, problem):
    answer = measured(corpus, queries, "--json")
    assert answer.code == 2 and answer.json["error"]["code"] == "CORTEX_E_USAGE"
    assert problem in answer.json["error"]["problem"]


def test_a_missing_file_says_so(cortex, tmp_path):
    answer = cortex("eval", "retrieval", "--corpus", tmp_path / "no", "--queries", tmp_path / "no")
    assert answer.code == 5 and "there is no file" in answer.err
