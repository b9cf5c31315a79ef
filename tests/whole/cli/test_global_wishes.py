"""A wish that a person has in two projects is proposed for all of them; only a person makes it global."""

import contextlib

import pytest

from cortex.storage.filesystem import files
from cortex.storage.lake import lake
from cortex.storage.settings.reference import read_policy
from cortex.transforms.errors import UsageError
from cortex.transforms.views.review import global_memory, global_proposals
from tests.rows import memories, memory
from tests.traces import traces
from tests.transcripts import Talk

WISH = "Never use npm in this repository, always use pnpm."
POLICY = read_policy(None)


def stated(name: str, folder: str, text: str) -> Talk:
    talk = Talk(name, cwd=folder).user(text).assistant("Understood.")
    return talk.user("Now write the harvest report, please.").assistant("The report is written.")


@pytest.fixture
def twice(bench):
    """Fill a store with the same wish in two projects, and another one in a third."""
    for name, text in (("kelp", WISH), ("reef", WISH), ("cove", "Always run the linter before a commit.")):
        stated(name, f"/home/dev/{name}", text).write(bench.projects)
    bench.begin()
    return bench


def proposed(cortex, *words):
    reviews = cortex("review", *words, "--json").json["projects"]
    return [item for each in reviews for item in each["items"] if item["kind"] == "global"]


def active(cortex, text):
    select = f"select project_id, trust from memories where status = 'active' and text like '%{text}%'"
    return cortex("sql", select, "--json").json["rows"]


def test_the_same_wish_in_two_projects_is_proposed_once_and_accepted_is_one_global_memory(twice, cortex):
    [item] = proposed(cortex)
    assert len(item["memory_ids"]) == 2 and "holds in every project" in item["offer"]
    assert [[i["id"] for i in proposed(cortex, "--project", name)] for name in ("kelp", "reef", "cove")] == [
        [item["id"]], [item["id"]], [],
    ]  # fmt: skip
    assert len(active(cortex, "pnpm")) == 2
    assert "Accepted" in cortex("review", "--accept", item["id"]).out
    assert active(cortex, "pnpm") == [["global", "user"]]
    assert proposed(cortex) == []
    assert all("pnpm" in cortex("brief", "--project", name).out for name in ("kelp", "reef", "cove"))
    [name] = cortex("sql", "select memory_id from memories where project_id = 'global'", "--json").json[
        "rows"
    ]
    shown = cortex("show", name[0], "--json").json["memory"]
    assert len({place["session_id"] for place in shown["evidence"]}) == 2
    for old in item["memory_ids"]:
        assert cortex("show", old, "--json").json["memory"]["superseded_by"] == name[0]
    cortex("rebuild")
    assert active(cortex, "pnpm") == [["global", "user"]]


def test_what_was_declined_is_not_proposed_again_also_where_a_third_project_says_it(twice, cortex):
    [item] = proposed(cortex)
    cortex("review", "--keep", item["id"])
    assert proposed(cortex) == [] and len(active(cortex, "pnpm")) == 2
    stated("dune", "/home/dev/dune", WISH).write(twice.projects)
    twice.backfill()
    assert proposed(cortex) == []
    assert cortex("review", "--reopen", item["id"]).code == 0
    assert len(proposed(cortex)) == 1


def items(*rows):
    return [(item.memory_ids, item.is_by_model) for item in global_proposals(memories(*rows), POLICY)]


def wish(name, project, text=WISH, **chosen):
    row = {"memory_type": "pattern", "trust": "user", "project_id": project, "text": text}
    return memory(name, **{**row, **chosen})


def test_only_a_persons_same_wish_of_several_projects_is_proposed():
    pair = wish("m1", "kelp-1"), wish("m2", "reef-2", "Always use pnpm, never use npm in this repository.")
    assert items(wish("m1", "kelp-1"), wish("m2", "reef-2")) == [(("m1", "m2"), False)]
    assert items(*pair[:1], wish("m2", "kelp-1")) == []
    assert items(wish("m1", "kelp-1"), wish("m2", "reef-2", trust="assistant")) == []
    assert items(wish("m1", "kelp-1"), wish("m2", "reef-2", memory_type="gotcha")) == []
    swapped = wish("m2", "reef-2", "Never use pnpm in this repository, always use npm.")
    assert items(wish("m1", "kelp-1"), swapped) == []
    assert items(wish("m1", "kelp-1"), wish("m2", "reef-2"), wish("m0", "global")) == []


def test_what_a_model_marks_is_proposed_only_if_the_person_said_it():
    marked = {"category": "proposed", "memory_type": "decision"}
    assert items(wish("m1", "kelp-1", **marked)) == [(("m1",), True)]
    assert items(wish("m1", "kelp-1", **marked, **{"trust": "assistant"})) == []
    assert items(wish("m1", "kelp-1", category="proposed", memory_type="gotcha")) == []


def test_the_global_memory_is_of_the_type_of_the_words_that_it_takes():
    short = wish("m1", "kelp-1", memory_type="decision", category="proposed")
    long = wish("m2", "reef-2", f"{WISH} Everywhere.", memory_type="pattern")
    rows = memories(short, long).to_pylist()
    assert global_memory(rows, long["text"]).memory_type == "pattern"
    with pytest.raises(UsageError, match="changed since"):
        global_memory(rows, "Never use yarn.")


def accepted(cortex):
    """Accept what is proposed; return the item and the id of the global memory."""
    [item] = proposed(cortex)
    cortex("review", "--accept", item["id"])
    [[name]] = cortex("sql", "select memory_id from memories where project_id = 'global'", "--json").json[
        "rows"
    ]
    return item, name


def sessions_of(cortex, name):
    return [place["session_id"] for place in cortex("show", name, "--json").json["memory"]["evidence"]]


def test_a_global_memory_goes_with_the_last_session_that_it_rests_on(twice, cortex):
    _, name = accepted(cortex)
    first, second = sessions_of(cortex, name)
    gone = cortex("forget", "--session", first, "--json").json
    assert gone["went_with_it"] == [] and sessions_of(cortex, name) == [second]
    assert active(cortex, "pnpm") == [["global", "user"]]
    gone = cortex("forget", "--session", second)
    assert f"global memory {name[:12]}" in gone.out
    assert traces(twice.home, "always use pnpm") == []
    cortex("rebuild")
    assert active(cortex, "pnpm") == []


def test_a_global_memory_goes_with_the_last_project_that_it_rests_on(twice, cortex):
    _, name = accepted(cortex)
    cortex("reset", "--project", "kelp", "--yes")
    assert active(cortex, "pnpm") == [["global", "user"]] and len(sessions_of(cortex, name)) == 1
    gone = cortex("reset", "--project", "reef", "--yes", "--json").json
    assert gone["went_with_it"] == [name] and traces(twice.home, "always use pnpm") == []


def test_words_that_only_a_forgotten_session_said_go_and_the_other_project_keeps_its_own(bench, cortex):
    longer = "Never use npm in this repository, always use pnpm with the frozen lockfile."
    for name, text in (("kelp", WISH), ("reef", longer)):
        stated(name, f"/home/dev/{name}", text).write(bench.projects)
    bench.backfill()
    _, name = accepted(cortex)
    [[session]] = cortex(
        "sql", "select distinct session_id from turns where text like '%frozen%'", "--json"
    ).json["rows"]
    assert cortex("forget", "--session", session, "--json").json["went_with_it"] == [name]
    assert traces(bench.home, "frozen lockfile") == []
    assert [project[:4] for project, _ in active(cortex, "pnpm")] == ["kelp"]


@pytest.mark.parametrize("member", [0, 1])
def test_who_forgets_a_projects_wish_forgets_the_global_memory_of_the_same_words(twice, cortex, member):
    item, name = accepted(cortex)
    gone = cortex("forget", item["memory_ids"][member], "--yes", "--json").json
    assert name in gone["went_with_it"] and traces(twice.home, "always use pnpm") == []
    assert active(cortex, "[forgotten]") == [] and active(cortex, "pnpm") == []
    assert all("[forgotten]" not in cortex("brief", "--project", p).out for p in ("kelp", "reef", "cove"))


def test_no_memory_is_left_that_says_nothing_but_that_something_was_forgotten(twice, cortex):
    cortex("remember", WISH, "--global")
    [[name]] = cortex(
        "sql", "select memory_id from memories where project_id like 'kelp%' and text like '%pnpm%'", "--json"
    ).json["rows"]
    cortex("forget", name, "--yes")
    assert active(cortex, "[forgotten]") == [] and traces(twice.home, "always use pnpm") == []


class Killed(BaseException):
    """Stands for a kill."""


@pytest.mark.spread(2)
@pytest.mark.parametrize("writes", [0, 1, 2, 3])
def test_an_acceptance_that_is_killed_is_whole_or_still_proposed(twice, cortex, monkeypatch, writes):
    [item] = proposed(cortex)
    left = iter(range(writes))

    def write_stored(*place_and_content):
        if next(left, None) is None:
            raise Killed
        files.write_stored(*place_and_content)

    with monkeypatch.context() as patch:
        patch.setattr(lake, "write_stored", write_stored)
        with contextlib.suppress(Killed):
            cortex("review", "--accept", item["id"])
    twice.backfill()
    is_global = active(cortex, "pnpm") == [["global", "user"]]
    assert is_global is (writes > 0) and len(proposed(cortex)) == (not is_global)
