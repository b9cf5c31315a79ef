"""Two projects merged by a person are one in every projection, and apart again when that is taken back."""

import json
from datetime import timedelta

import pytest

from cortex.flows.engines import runs
from cortex.flows.past.rebuilding import compare
from cortex.storage.remote.store_lease import lease
from cortex.transforms.errors import UsageError
from tests.bench import NOW, Bench, contents, difference, here, leftovers
from tests.present import clock_at
from tests.rows import entry
from tests.traces import traces
from tests.transcripts import Talk, decisions

# Whole runs, two seconds each: together too long for the quick suite.

REEF = "/home/dev/reef"
SHARED = "[MEMORY: decision] Readings are kept in UTC because the buoys cross two zones."
OWN = "[MEMORY: decision] Divers go out on Tuesdays because the harbour is free then."


@pytest.fixture(autouse=True)
def _clock(monkeypatch):
    with clock_at(NOW):
        yield


@pytest.fixture
def two(bench) -> Bench:
    """Return a store of the projects kelp and reef, which share one fact."""
    decisions("s1").user("And zones?").assistant(SHARED).write(bench.projects)
    reef = decisions("s2", cwd=REEF).user("And zones?").assistant(SHARED)
    reef.user("And divers?").assistant(OWN).write(bench.projects)
    bench.begin()
    return bench


def ids(bench: Bench) -> dict[str, str]:
    return {project.name: project.project_id for project in bench.store.projects.all()}


def is_clean(bench: Bench) -> bool:
    with runs.opened("rebuild", bench.context) as run:
        return not compare(run).differences


def active(bench: Bench, project: str = "kelp") -> list[str]:
    return sorted(row["text"] for row in bench.memories(project) if row["status"] == "active")


def merge(bench: Bench, gone: str = "reef", kept: str = "kelp") -> None:
    here().merge_projects(gone, kept)


def split(project: str) -> None:
    with clock_at(NOW + timedelta(minutes=1)):
        here().split_project(project)


def test_merged_the_memories_of_both_are_one_projects_and_a_shared_fact_is_one_memory(two):
    before = set(active(two)) | set(active(two, "reef"))
    merge(two)
    assert set(active(two)) == before
    assert len(active(two)) == len(before)
    [shared] = [row for row in two.memories() if "two zones" in row["text"]]
    assert shared["session_count"] == 2
    assert len(shared["evidence"]) == 2
    assert is_clean(two)


def test_the_merged_projects_tables_and_published_files_go_and_its_folder_leads_to_the_other(two):
    kelp, reef = ids(two)["kelp"], ids(two)["reef"]
    merge(two)
    published = two.home / "published"
    assert json.loads((published / "projects.json").read_text())[REEF] == kelp
    assert not (published / reef).exists()
    assert not (two.home / "tables" / reef).exists()
    brief = two.store.published.brief(kelp)
    assert "s1" in brief and "Divers" in brief
    assert leftovers(two.home) == []


def test_what_is_said_later_in_the_merged_projects_folder_is_the_others(two):
    merge(two)
    Talk("s3", cwd=REEF).user("Go on?").assistant(
        "[MEMORY: gotcha] The reef buoy sends twice after a storm because its clock resets."
    ).write(two.projects)
    two.backfill()
    assert any("sends twice" in text for text in active(two))
    assert active(two, "reef") == []
    assert is_clean(two)


def test_a_transcript_that_grows_over_a_merge_says_nothing_twice(two):
    talk = decisions("s4", cwd=REEF)
    talk.write(two.projects)
    two.backfill()
    merge(two)
    talk.user("More?").assistant("[MEMORY: decision] s4 keeps its logs for a week because disks are small.")
    talk.write(two.projects)
    two.backfill()
    passages = two.store.tables.open(ids(two)["kelp"], "passages").read()["passage_id"].to_pylist()
    assert len(passages) == len(set(passages))
    assert sum("s4 writes levels" in text for text in active(two)) == 1
    assert any("logs for a week" in text for text in active(two))


def test_a_split_gives_back_what_was_there(two):
    before = contents(two.home)
    merge(two)
    split("reef")
    after = contents(two.home)
    before.pop("journal"), after.pop("journal")
    assert difference(before, after) == {}
    assert is_clean(two)


def test_what_a_person_did_to_memories_before_the_merge_holds_after_it(two):
    [gotcha] = [row for row in two.memories("reef") if row["memory_type"] == "gotcha"]
    [other] = [row for row in two.memories("reef") if "millimetres" in row["text"]]
    here().remember("Buoys are painted on Fridays.", is_pinned=True, project="reef")
    told = {"text": "Never trust the tide table of s2."}
    for kind, row, payload in (("edit", gotcha, told), ("pin", other, {})):
        two.store.journal.write(
            entry(kind, row["project_id"], payload, recorded_at=NOW, memory_id=row["memory_id"])
        )
    merge(two)
    rows = {row["text"]: row for row in two.memories()}
    assert "Never trust the tide table of s2." in rows
    assert [row["is_pinned"] for text, row in rows.items() if "s2 writes levels" in text] == [True]
    assert rows["Buoys are painted on Fridays."]["is_pinned"]
    assert is_clean(two)


def test_forgetting_after_a_merge_erases_what_the_merged_project_was_told(two):
    word = "quagsireplum"
    here().remember(f"The {word} buoy needs a new anchor each spring.", project="reef")
    merge(two)
    [memory] = [row for row in two.memories() if word in row["text"]]
    here().forget(memory["memory_id"])
    assert traces(two.home, word) == []
    split("reef")
    assert not [row for row in two.memories("reef") if word in row["text"]]


def test_forgotten_while_merged_it_stays_so_in_the_part_that_is_split_off(two):
    merge(two)
    [memory] = [row for row in two.memories() if "Divers" in row["text"]]
    here().forget(memory["memory_id"])
    split("reef")
    again = Talk("s7", cwd=REEF, start=NOW).user("And divers?").assistant(OWN)
    again.write(two.projects)
    two.backfill(now=NOW + timedelta(hours=1))
    assert not [row for row in two.memories("reef") if "Divers" in row["text"]]


def test_forgotten_while_merged_and_split_before_any_run_it_goes(two):
    merge(two)
    [memory] = [row for row in two.memories() if "Divers" in row["text"]]
    with lease(two.home):
        here().forget(memory["memory_id"])
        split("reef")
    two.run()
    assert traces(two.home, "Divers go out") == []


def test_the_store_is_the_same_whether_merged_before_or_after_the_sessions_came(two, other):
    merge(two)
    decisions("s5", cwd=REEF, start=NOW).write(two.projects)
    two.backfill()
    expected = contents(two.home)
    decisions("s5", cwd=REEF, start=NOW).path_in(two.projects).unlink()
    other.begin()
    decisions("s5", cwd=REEF, start=NOW).write(two.projects)
    other.backfill()
    for row in two.store.journal.read().to_pylist():
        if "merged_into" in row["payload"]:
            other.store.journal.write({**row})
    other.run()
    made = contents(other.home)
    assert difference(expected, made) == {}


def test_reset_of_the_whole_forgets_its_parts(two):
    merge(two)
    here().reset("kelp")
    assert active(two) == []
    assert traces(two.home, "two zones") == []


def test_merging_in_a_circle_or_into_itself_is_refused(two):
    merge(two)
    for gone, kept in (("kelp", "reef"), ("kelp", "kelp")):
        with pytest.raises(UsageError, match="are the same project"):
            merge(two, gone, kept)


@pytest.mark.parametrize("place", ["tables", "published"])
def test_killed_while_the_merged_projects_files_go_the_next_run_goes_on(two, monkeypatch, place):
    reef = ids(two)["reef"]

    def die(self, name):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(getattr(two.store, place)), "drop", die)
        with pytest.raises(KeyboardInterrupt):
            merge(two)
    two.run()
    assert not (two.home / "published" / reef).exists()
    assert not (two.home / "tables" / reef).exists()
    assert is_clean(two)
    split("reef")
    assert any("s2 writes levels" in text for text in active(two, "reef"))


def test_a_told_fact_forgotten_after_a_merge_stays_so_in_a_backup_from_before_it(two, tmp_path):
    remember("The quagsireplum buoy needs a new anchor.", "reef")
    here().backup(tmp_path / "before.tar.zst")
    merge(two)
    [memory] = [row for row in two.memories() if "quagsireplum" in row["text"]]
    here().forget(memory["memory_id"])
    here().restore(tmp_path / "before.tar.zst")
    assert traces(two.home, "quagsireplum") == []


def test_a_file_indexed_again_after_a_merge_takes_the_place_of_what_was_kept(two, tmp_path):
    code = tmp_path / "pump.py"
    code.write_text("def pump(): ...\n")
    here().index_code(code, "Pumps water in turns.", project="reef")
    merge(two)
    with clock_at(NOW + timedelta(minutes=1)):
        here().index_code(code, "Pumps water by level.", project="kelp")
    assert [text for text in active(two) if "Pumps water" in text] == [f"{code}: Pumps water by level."]
    assert is_clean(two)


def test_after_a_merge_the_merged_project_is_told_nothing_any_more(two):
    reef = ids(two)["reef"]
    assert any(spans[-1][1] is None for spans in two.store.shown_lines.spans(reef).values())
    merge(two)
    assert all(spans[-1][1] is not None for spans in two.store.shown_lines.spans(reef).values())


def remember(text: str, project: str) -> None:
    here().remember(text, project=project)
