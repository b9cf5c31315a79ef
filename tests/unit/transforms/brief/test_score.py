"""How a brief is compared with the lines that a careful colleague would tell."""

from cortex.hooks.prose.plain import CLOSING, PREAMBLE
from cortex.scores.brief_scores import IdealLine, facts_of, score_brief, totals

BRIEF = f"""# Notes from earlier sessions: reef
{PREAMBLE}

## Decisions
- Readings are stored in UTC because gauges report local time. (user, 14 Sep 26)
- The dashboard is read at six in the morning. (15 Sep 26)
  - open: the backfill of last year is not run

{CLOSING}
"""
UTC = IdealLine("Readings are stored in UTC, because gauges differ.", 3)
PUMP = IdealLine("The pump station answers only on its second port.", 3)
BACKFILL = IdealLine("Open: the backfill of last year.", 2)


def test_a_line_of_which_most_words_stand_in_a_line_is_told():
    score = score_brief("reef", BRIEF, [UTC, PUMP, BACKFILL], None)
    assert score.covered == (UTC, BACKFILL) and score.missed == (PUMP,)
    assert score.unmatched == ("The dashboard is read at six in the morning.",)


def test_a_line_that_the_model_finds_similar_is_told_whatever_its_words():
    def cosines(texts, lines):
        return [[0.7 if "port" in text and "six" in line else 0.1 for line in lines] for text in texts]

    assert score_brief("reef", BRIEF, [PUMP], cosines).covered == (PUMP,)


def test_the_frame_headings_and_who_said_it_when_are_no_facts():
    assert facts_of(BRIEF)[:1] == ["Readings are stored in UTC because gauges report local time."]
    assert len(facts_of(BRIEF)) == 3


def test_totals_count_lines_by_weight_over_all_projects():
    scores = [score_brief("reef", BRIEF, [UTC, PUMP], None), score_brief("kelp", "", [BACKFILL], None)]
    result = totals(scores)
    assert (result["told_3"], result["ideal_lines_2"], result["told_2"]) == (0.5, 1, 0.0)
    assert (result["lines"], result["lines_that_match_none"]) == (3, 2)
    assert totals([])["tokens_per_brief"] == 0.0
