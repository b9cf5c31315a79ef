"""`list`, `show`, `timeline` and `today`: looking around without a question, from published files alone."""

from pathlib import Path


def test_what_was_replaced_is_listed_among_the_faded(cortex, samples):
    old, new = cortex("list", "--project", "tidepool", "--limit", "2", "--json").json["memories"]
    assert cortex("supersede", old["memory_id"], new["memory_id"]).code == 0
    [row] = cortex("list", "--project", "tidepool", "--faded", "--json").json["memories"]
    assert (row["memory_id"], row["status"]) == (old["memory_id"], "superseded")
    [counts] = [p for p in cortex("status", "--json").json["projects"] if p["name"] == "tidepool"]
    assert (counts["faded"], counts["sessions"] > 0) == (1, True)


def test_an_excluded_project_that_is_remembered_offers_its_reset(cortex, samples):
    [known] = cortex("projects", "--json").json["projects"]
    above = str(Path(known["paths"][0]).parent)
    answer = cortex("config", "set", "capture.excluded_projects", above)
    assert f"cortex reset --project {known['id']}" in answer.err
    again = cortex("config", "set", "capture.excluded_projects", above, "--json")
    assert again.json["still_remembered"] == [known["id"]]
    assert cortex("reset", "--project", known["id"], "--yes").code == 0
    assert "reset" not in cortex("config", "set", "capture.excluded_projects", above).err
    assert "reset" not in cortex("config", "set", "capture.excluded_projects", f"{above}/other").err
