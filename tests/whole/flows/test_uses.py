"""What sessions did with the memories that they were shown is counted, and changes no memory by itself."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from cortex.flows.engines import runs
from cortex.flows.memory import Memory
from cortex.flows.operations.ask.listing import profit_and_loss, show
from cortex.flows.operations.ask.recall import recall
from cortex.flows.operations.ask.sql import query_tables
from cortex.flows.operations.maintain.audit import read_calls
from cortex.flows.publishing import database
from cortex.hooks import shown
from cortex.transforms.schemas import CALLS
from tests.bench import NOW
from tests.traces import traces
from tests.transcripts import Talk, decisions

LATER = NOW + timedelta(hours=1)


def tide(bench):
    [row] = [row for row in bench.memories() if row["text"].startswith("The function tide_table")]
    return row


def log(bench, session, ids, tool="session-start", at=LATER):
    staging, scope = str(bench.home / "staging"), tide(bench)["project_id"]
    shown.log_shown(staging, tool, scope, session, ids, 40, int(at.timestamp() * 1_000_000_000))


def begin(bench):
    talk = decisions("s1").assistant("[MEMORY: gotcha] The function tide_table counts hours from midnight.")
    talk.write(bench.projects)
    bench.begin()


def next_session(bench, name="s2", prompt="Fix the harvest page."):
    talk = Talk(name, start=LATER).user(f"{prompt} Its hours are off by one since the clocks went back.")
    talk.call("Edit", "done", file_path="/home/dev/kelp/x.py", old_string="a", new_string="tide_table(hour)")
    log(bench, talk.session_id, [tide(bench)["memory_id"]])
    bench.stage(talk.write(bench.projects))
    bench.run(now=LATER + timedelta(hours=1))
    return talk


def use_of(bench):
    details = show(bench.context, tide(bench)["memory_id"])
    return profit_and_loss(details.row, details.uses, details.others)


def test_a_memory_that_a_session_worked_by_is_counted_as_used(bench):
    begin(bench)
    next_session(bench)
    use = use_of(bench)
    assert (use.sessions, use.briefs, use.prompts, use.used, use.last_used_at) == (
        1,
        1,
        0,
        1,
        LATER + timedelta(minutes=1),
    )
    rows = query_tables(bench.context, "select used_name from uses").rows
    assert [tuple(row) for row in rows] == [("tide_table",)]


def test_what_the_person_asked_for_by_name_is_no_use(bench):
    begin(bench)
    next_session(bench, prompt="Call tide_table on the harvest page.")
    assert (use_of(bench).sessions, use_of(bench).used) == (1, 0)


def test_showing_is_no_call_of_a_tool(bench):
    begin(bench)
    next_session(bench)
    assert read_calls(bench.context) == []


def test_a_session_that_went_on_is_counted_again_and_no_other(bench, monkeypatch):
    begin(bench)
    next_session(bench)
    counted = []
    real = database.session_uses

    def noting(showings, *rest):
        counted.append(sorted(set(showings["session_id"].to_pylist())))
        return real(showings, *rest)

    monkeypatch.setattr(database, "session_uses", noting)
    other = next_session(bench, "s3", "Fix the tide page.")
    assert counted == [[other.session_id]] and use_of(bench).sessions == 2
    other.assistant(f"As {tide(bench)['memory_id'][:8]} says.").write(bench.projects)
    bench.stage()
    bench.run(now=LATER + timedelta(hours=2))
    assert counted[1:] == [[other.session_id]] and use_of(bench).cited == 1


def test_of_a_forgotten_memory_no_use_and_no_name_is_left(bench):
    begin(bench)
    next_session(bench)
    Memory.of(bench.context).forget(tide(bench)["memory_id"])
    bench.run(now=LATER + timedelta(hours=2))
    assert query_tables(bench.context, "select count(*) from uses").rows[0][0] == 0


def test_of_a_forgotten_session_no_file_says_what_it_was_shown(bench):
    begin(bench)
    session_id = next_session(bench).session_id
    other = next_session(bench, "s3", "Fix the tide page.").session_id
    assert any("lake/calls" in place for place in traces(bench.home, session_id))
    Memory.of(bench.context).forget_session(session_id)
    places = traces(bench.home, session_id)
    # Which transcript was read stays noted, by its path, and that the session is forgotten.
    assert [place for place in places if not place.startswith(("lake/journal/", "runs/manifest"))] == []
    assert shown_to(bench) == {other: [tide(bench)["memory_id"]]}


def test_of_a_forgotten_memory_no_session_was_shown_its_id_and_the_others_stay(bench):
    begin(bench)
    [*others, last] = [row["memory_id"] for row in bench.memories()]
    log(bench, "s2", [*others, last])
    log(bench, "s3", [last])
    bench.run(now=LATER)
    Memory.of(bench.context).forget(last)
    assert shown_to(bench) == {"s2": others}
    rows = query_tables(bench.context, "select memory_id from uses order by 1").rows
    assert [row[0] for row in rows] == sorted(others)


def shown_to(bench):
    calls = bench.store.lake.read(CALLS).to_pylist()
    return {session: ids for session, ids, _ in map(shown.shown_in, calls)}


def edit(bench):
    Memory.of(bench.context).edit(tide(bench)["memory_id"], "The function tide_table calls harvest_page().")


def replace_global(bench):
    [row] = bench.memories("global")
    Memory.of(bench.context).edit(row["memory_id"], "Call harvest_page() by its name.")


@pytest.mark.parametrize("change", [edit, replace_global])
def test_uses_counted_again_in_part_are_those_counted_from_the_start(bench, change):
    begin(bench)
    Memory.of(bench.context).remember("Answer in metric units.", is_global=True)
    bench.run(now=LATER)
    [everywhere] = bench.memories("global")
    talk = Talk("s2", start=LATER).user("Fix the page: its hours are off by one since the clocks went back.")
    log(bench, talk.session_id, [everywhere["memory_id"], tide(bench)["memory_id"]])
    talk.call("Edit", "done", file_path="/home/dev/kelp/x.py", old_string="a", new_string="harvest_page()")
    bench.stage(talk.write(bench.projects))
    bench.run(now=LATER + timedelta(hours=1))
    change(bench)
    bench.run(now=LATER + timedelta(hours=2))
    uses = query_tables(bench.context, "select memory_id, used_name from uses").rows
    assert [row[1] for row in uses].count("harvest_page") == 1
    run = runs.read_only_run(bench.at(LATER + timedelta(hours=2)))
    fresh = database.derived_tables(run)["uses"].to_pylist()
    assert sorted(tuple(row) for row in uses) == sorted((row["memory_id"], row["used_name"]) for row in fresh)


def test_what_is_shown_however_often_and_never_used_sinks_no_memory_and_no_line_of_the_brief(bench):
    """A ban that is obeyed leaves no trace: what was not used is counted, and not held against it."""
    begin(bench)
    Memory.of(bench.context).remember("Never write to the archive of kelp.")
    bench.run(now=LATER)
    memories, brief = bench.memories(), bench.store.published.brief(tide(bench)["project_id"])
    for number in range(25):
        log(
            bench,
            f"quiet-{number}",
            [row["memory_id"] for row in memories],
            at=LATER + timedelta(seconds=number),
        )
    bench.run("nightly", now=LATER)
    assert (use_of(bench).sessions, use_of(bench).used) == (25, 0)
    assert bench.memories() == memories
    assert bench.store.published.brief(tide(bench)["project_id"]) == brief


def test_what_a_session_asked_for_is_counted_where_it_was_told(bench, monkeypatch):
    begin(bench)
    folder = bench.store.projects.all()[0].paths[0]
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "session-that-asks")
    asking = replace(bench.at(LATER), folder=Path(folder))
    assert recall(asking, "Which function counts the hours of the tide?").matches
    monkeypatch.delenv("CLAUDE_CODE_SESSION_ID")
    recall(asking, "Which function counts the hours from midnight?")  # a person at a terminal
    bench.run(now=LATER)
    rows = query_tables(bench.context, "select distinct session_id, recalls, briefs from uses").rows
    assert [tuple(row) for row in rows] == [("session-that-asks", 1, 0)]
