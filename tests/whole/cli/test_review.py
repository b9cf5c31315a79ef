"""A person settles what a review found: by id, or one after another."""

import pytest

from tests.transcripts import Talk

# Whole runs, some seconds each.

FACTS = (
    "[MEMORY: decision] Gauge readings are cached in SQLite because one writer is enough.",
    "[MEMORY: decision] Gauge readings are cached in Postgres instead of SQLite because two writers came.",
)


@pytest.fixture
def disputed(cortex, bench):
    """A store with two decisions at odds."""
    talk = Talk("s1")
    for fact in FACTS:
        talk.user("And the cache of readings?").assistant(fact)
    talk.write(bench.projects)
    bench.begin()
    return cortex


def items(cortex, kind="contradiction"):
    [project] = cortex("review", "--project", "kelp", "--json").json["projects"]
    return [item for item in project["items"] if item["kind"] == kind]


def statuses(cortex):
    rows = cortex("sql", "select text, status from memories order by text", "--json").json["rows"]
    return {
        ("Postgres" if "Postgres" in text else "SQLite"): status for text, status in rows if "cached" in text
    }


def test_a_reversal_is_listed_with_its_older_decision_first(disputed):
    [item] = items(disputed)
    assert "one writer" in item["texts"][0] and "two writers" in item["texts"][1]
    out = disputed("review", "--project", "kelp").out
    assert "older: Gauge readings are cached in SQLite" in out
    assert f"[{item['id'][:8]}] contradiction" in out


def test_accepted_the_newer_takes_the_older_ones_place(disputed):
    [item] = items(disputed)
    answer = disputed("review", "--accept", item["id"][:8])
    assert answer.code == 0 and "takes the place of" in answer.out
    assert statuses(disputed) == {"SQLite": "superseded", "Postgres": "active"}
    assert items(disputed) == []


def test_kept_both_stay_and_the_review_and_the_brief_ask_no_more(disputed):
    [item] = items(disputed)
    assert "one writer is enough" not in disputed("brief", "--project", "kelp").out
    assert disputed("review", "--keep", item["id"][:8]).code == 0
    assert statuses(disputed) == {"SQLite": "active", "Postgres": "active"}
    assert items(disputed) == []
    assert "contradicted" not in disputed("brief", "--project", "kelp").out
    assert disputed("rebuild", "--check").code == 0


def test_what_was_kept_can_be_opened_again_and_kept_again(disputed):
    [item] = items(disputed)
    kept = disputed("review", "--keep", item["id"][:8])
    assert f"cortex review --reopen {item['id'][:8]}" in kept.out + kept.err
    assert disputed("review", "--reopen", item["id"][:8], "--project", "kelp").code == 0
    assert [each["id"] for each in items(disputed)] == [item["id"]]
    assert "one writer is enough" not in disputed("brief", "--project", "kelp").out
    assert disputed("review", "--reopen", item["id"][:8], "--project", "kelp").code == 5  # nothing is kept
    assert disputed("review", "--keep", item["id"][:8]).code == 0
    assert items(disputed) == []
    assert disputed("rebuild", "--check").code == 0


def test_asked_one_after_another(disputed):
    count = len(disputed("review", "--project", "kelp", "--json").json["projects"][0]["items"])
    assert "Nothing resolved" in disputed("review", "--ask", "--project", "kelp", stdin="quit\n").out
    answer = disputed("review", "--ask", "--project", "kelp", stdin="accept\n" + "skip\n" * count)
    assert "Accepted" in answer.out
    assert statuses(disputed)["SQLite"] == "superseded"


def test_an_unknown_item_is_an_error_with_a_next_step(disputed):
    answer = disputed("review", "--accept", "ffffffff", "--json")
    assert answer.code != 0
    assert "cortex review" in answer.json["error"]["next_step"]


def test_asking_and_ids_exclude_each_other(disputed):
    assert disputed("review", "--ask", "--keep", "ffffffff").code == 2


def test_a_renamed_project_keeps_its_id_and_goes_by_the_new_name(disputed):
    [project] = disputed("projects", "--json").json["projects"]
    answer = disputed("projects", "rename", "kelp", "seaweed", "--json")
    assert answer.json["id"] == project["id"]
    [renamed] = disputed("projects", "--json").json["projects"]
    assert (renamed["name"], renamed["id"]) == ("seaweed", project["id"])
    assert "# Notes from earlier sessions: seaweed" in disputed("brief", "--project", "seaweed").out
    # Its id still begins with the old name, and a beginning is enough to name a project.
    [old] = disputed("brief", "--project", "kelp", "--json").json["briefs"]
    assert old["project_id"] == project["id"]
    assert disputed("brief", "--project", "eelgrass", "--json").code != 0


@pytest.mark.parametrize("name", ["", "  "])
def test_an_empty_new_name_is_refused(disputed, name):
    assert disputed("projects", "rename", "kelp", name).code == 2


def test_projects_are_merged_and_split_by_name(disputed, tmp_path):
    fact = "[MEMORY: decision] Divers go out on Tuesdays because the harbour is free."
    Talk("s2", cwd="/home/dev/reef").user("When?").assistant(fact).write(tmp_path / "projects")
    disputed("backfill", tmp_path / "projects", "--engine", "plain")
    assert disputed("projects", "merge", "reef", "kelp").code == 0
    assert "Divers" in disputed("brief", "--project", "kelp").out
    assert "Divers" in disputed("brief", "--project", "reef").out  # its old name leads to the whole
    [project] = disputed("projects", "--json").json["projects"]
    assert len(project["merged"]) == 1 and "/home/dev/reef" in project["paths"]
    told = disputed("sql", "select distinct project_id from turns", "--json").json["rows"]
    assert told == [[project["id"]]]
    assert disputed("rebuild", "--check").code == 0
    assert disputed("projects", "split", "reef").code == 0
    assert "Divers" not in disputed("brief", "--project", "kelp").out


def test_splitting_what_was_not_merged_names_what_was(disputed):
    answer = disputed("projects", "split", "kelp", "--json")
    assert answer.json["error"]["next_step"] == "Merged projects: none."


def test_a_second_project_of_a_merged_ones_name_is_merged_too(disputed, tmp_path):
    fact = "[MEMORY: decision] Divers go out on Tuesdays because the harbour is free."
    for number, folder in enumerate(["a", "b"]):
        Talk(f"t{number}", cwd=f"/home/dev/{folder}/reef").user("When?").assistant(fact).write(
            tmp_path / "projects"
        )
        disputed("backfill", tmp_path / "projects", "--engine", "plain")
        assert disputed("projects", "merge", "reef", "kelp").code == 0
    [project] = disputed("projects", "--json").json["projects"]
    assert len(project["merged"]) == 2


def test_a_name_that_was_anothers_once_names_the_project_that_has_it_now(disputed, tmp_path):
    fact = "[MEMORY: decision] Divers go out on Tuesdays because the harbour is free."
    for number, folder in enumerate(["a", "b"]):
        Talk(f"t{number}", cwd=f"/home/dev/{folder}/reef").user("When?").assistant(fact).write(
            tmp_path / "projects"
        )
        disputed("backfill", tmp_path / "projects", "--engine", "plain")
        assert disputed("projects", "rename", "reef", "backend").code == 0
    names = [project["name"] for project in disputed("projects", "--json").json["projects"]]
    assert sorted(names) == ["backend", "backend", "kelp"]
