"""`cortex eval brief` compares the briefs of a store with ideal lines."""

from tests.store.cli.test_eval_brief import written


def test_a_line_of_the_brief_itself_is_told_and_a_strange_one_missed(cortex, samples, tmp_path):
    brief = cortex("brief", "--project", "tidepool").out
    own = next(line for line in brief.split("\n") if line.startswith("- "))
    strange = "Violins are tuned in fifths, says the luthier of Cremona."
    ideal = [{"text": own, "weight": 3}, {"text": strange, "weight": 1}]
    labels = written(tmp_path, {"project": "tidepool", "lines": ideal}, {"project": "nobody", "lines": ideal})
    answer = cortex("eval", "brief", "--labels", labels, "--today", "--json")
    totals = answer.json["totals"]
    assert (totals["told_3"], totals["told_1"], totals["projects"]) == (0.5, 0.0, 2)
    listed = cortex("eval", "brief", "--labels", labels, "--today", "--list").out
    assert f"missed, weight 1: {strange}" in listed
