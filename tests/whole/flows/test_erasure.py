"""Erasure is real: after it, no file of the store holds the text, in raw bytes or decoded (spec 12)."""

import errno
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from cortex.flows.engines import runs
from cortex.flows.past.rebuilding import compare, rebuild
from cortex.flows.stages import embed, memories, publish
from cortex.hooks import prompt
from cortex.storage.lake import lake
from cortex.storage.remote.store_lease import lease
from cortex.storage.settings.settings import Settings
from cortex.storage.store import Store
from cortex.storage.tables import lance_tables
from cortex.transforms.errors import AuditFailed, StoreNotWritable
from cortex.transforms.schemas import EVENTS, TURNS, VECTORS
from tests.bench import NOW, Bench, contents, difference, here, leftovers
from tests.present import clock_at
from tests.rows import entry
from tests.traces import name_patterns, traces
from tests.transcripts import Talk, decisions, forked
from tests.whole.flows import test_kills

# Whole runs, two seconds each: together too long for the quick suite.

CANARY = "quagsireplum"
# Of copies the one in the first file counts: a fork with this name lies behind the session it began as.
LATER = "f2"
FACT = f"Gauges of the {CANARY} reef report every six minutes because batteries are small."


pytestmark = pytest.mark.usefixtures("in_kelp", "at_noon")


def told_canary(name: str = "s1") -> Talk:
    """Return a session with the canary in one fact, beside others."""
    return decisions(name).user("And the gauges?").assistant(f"[MEMORY: decision] {FACT}").user("Fine.")


def forget(bench: Bench, word: str = CANARY) -> None:
    [memory] = [m for m in bench.memories() if word in m["text"] and m["status"] != "archived"]
    here().forget(memory["memory_id"])


def test_no_byte_of_a_forgotten_fact_is_left_and_the_others_stay(bench):
    told_canary().write(bench.projects)
    bench.begin()
    others = [text for text in bench.texts() if CANARY not in text]
    assert any("lake/turns" in place for place in traces(bench.home, CANARY))
    assert any("passages.lance" in place for place in traces(bench.home, CANARY))
    forget(bench)
    assert traces(bench.home, CANARY) == []
    assert bench.texts() == others
    assert leftovers(bench.home) == []


@pytest.mark.usefixtures("contained_faults")
@pytest.mark.parametrize(
    ("module", "name"),
    [(memories, "_link"), (memories, "_decay"), (publish, "draft_of"), (embed, "_embed")],
)
def test_where_a_stage_fails_the_last_good_version_loses_the_words(bench, monkeypatch, module, name):
    told_canary().write(bench.projects)
    bench.begin()
    others = [text for text in bench.texts() if CANARY not in text]

    def fail(*_, **__):
        raise ValueError("nobody foresaw this")

    with monkeypatch.context() as patched:
        patched.setattr(module, name, fail)
        with pytest.raises(AuditFailed):
            forget(bench)
        assert traces(bench.home, CANARY) == []
    bench.run()
    assert bench.texts() == others
    assert traces(bench.home, CANARY) == leftovers(bench.home) == []


def test_forget_does_not_succeed_while_the_disk_keeps_a_file_of_the_tables(bench, monkeypatch):
    told_canary().write(bench.projects)
    bench.begin()
    remove = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path.suffix == ".lance":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        remove(path, missing_ok)

    with monkeypatch.context() as patched, pytest.raises(StoreNotWritable):
        patched.setattr(lance_tables.lancedb().table.LanceTable, "optimize", lambda *_, **__: None)
        patched.setattr(Path, "unlink", refuse)
        forget(bench)
    bench.run()
    assert traces(bench.home, CANARY) == leftovers(bench.home) == []


def test_a_project_whose_tables_cannot_be_purged_keeps_no_byte_of_the_others(bench, tmp_path, monkeypatch):
    told_canary().write(bench.projects)
    bench.begin()
    before = bench.store.lake.notes
    bench.store.lake.note(before.due_to_wipe(["barred", *bench.store.tables.scopes()]))
    purge = lance_tables.LanceTables.purge

    def refuse(tables: lance_tables.LanceTables, scope: str) -> None:
        if scope == "barred":
            raise StoreNotWritable("barred", "")
        purge(tables, scope)

    with monkeypatch.context() as patched, pytest.raises(StoreNotWritable, match="barred"):
        patched.setattr(lance_tables.LanceTables, "purge", refuse)
        forget(bench)
    assert traces(bench.home, CANARY) == []
    assert bench.store.lake.notes.to_wipe == ("barred",)


def test_reading_the_transcript_again_brings_nothing_back(bench):
    talk = told_canary()
    path = talk.write(bench.projects)
    bench.begin()
    forget(bench)
    talk.assistant("We go on with the tide table.").write(bench.projects)
    forked(talk.records, "a0").write(bench.projects)
    bench.backfill(now=NOW + timedelta(hours=1))
    path.write_bytes(
        path.read_bytes().replace(b'"2.1.330"', b'"2.1.331"')
    )  # another file: read from its start
    bench.backfill(now=NOW + timedelta(hours=2))
    assert traces(bench.home, CANARY) == []


def test_a_forgotten_commit_is_in_no_record_of_its_session_either(bench):
    talk = Talk().user("Please write the gauge queue of the reef into its own file and commit it.")
    talk.call("Edit", "done", file_path="/home/dev/kelp/queue.py")
    subject = f"Add {CANARY} queue"
    talk.call("Bash", f"[main 1b2c3d1] {subject}\n 1 file changed", command=f"git commit -am '{subject}'")
    talk.assistant("Done.").write(bench.projects)
    decisions("s2").write(bench.projects)
    bench.begin()
    kinds = {m["memory_type"]: m for m in bench.memories() if CANARY in m["text"]}
    assert set(kinds) == {"progress", "outcome"}
    others = [text for text in bench.texts() if CANARY not in text]
    here().forget(kinds["progress"]["memory_id"])
    assert traces(bench.home, CANARY) == []
    assert bench.texts() == others


def test_a_turn_that_other_memories_rest_on_loses_only_the_sentence(bench):
    Talk().user("Go.").assistant(
        f"[MEMORY: decision] {FACT}\n[MEMORY: gotcha] The tide table counts hours from midnight."
    ).write(bench.projects)
    bench.begin()
    assert len(bench.memories()) == 2
    forget(bench)
    assert traces(bench.home, CANARY) == []
    assert bench.texts() == ["The tide table counts hours from midnight."]


def test_the_same_words_elsewhere_go_too(bench):
    told_canary().write(bench.projects)
    Talk("s2", cwd="/home/dev/reef").user(f"In kelp I read: {FACT} Is that so? Tell me.").assistant(
        "Yes."
    ).write(bench.projects)
    bench.begin()
    forget(bench)
    assert traces(bench.home, CANARY) == []
    turns = Store(bench.home).lake.read(TURNS)["text"].to_pylist()
    assert (
        "In kelp I read: [forgotten] Is that so? Tell me." in turns
        or "[forgotten] Is that so? Tell me." in turns
    )


def test_what_a_later_session_replaced_goes_with_what_replaced_it(bench):
    for name, start in (("s1", NOW - timedelta(days=3)), ("s2", NOW - timedelta(days=2))):
        command = f"make check-{CANARY}-{name}"
        Talk(name, start=start).user("Run the checks.").call("Bash", "4 passed", command=command).assistant(
            "All passed."
        ).write(bench.projects)
    bench.begin()
    assert len([text for text in bench.texts() if f"{CANARY}-s2" in text and "Commands" in text]) == 1
    forget_id = next(
        m["memory_id"] for m in bench.memories() if f"{CANARY}-s2" in m["text"] and "Commands" in m["text"]
    )
    here().forget(forget_id)
    events = Store(bench.home).lake.read(EVENTS)["text"].to_pylist()
    assert [text for text in events if "Commands that worked" in text] == []
    assert [text for text in bench.texts() if "Commands that worked" in text] == []


def test_a_remembered_fact_goes_with_its_entry_and_its_edits(bench):
    remember(FACT)
    [memory] = bench.memories()
    edited = entry(
        "edit",
        memory["project_id"],
        {"text": f"{FACT} Since May."},
        recorded_at=NOW,
        memory_id=memory["memory_id"],
    )
    bench.store.journal.write(edited)
    forget(bench)
    assert traces(bench.home, CANARY) == []
    assert bench.texts() == []


def test_what_is_remembered_again_after_it_was_forgotten_stays(bench):
    remember(FACT)
    with clock_at(NOW + timedelta(minutes=1)):
        forget(bench)
    with clock_at(NOW + timedelta(minutes=2)):
        remember(FACT)
    bench.run("nightly", NOW + timedelta(days=1))
    assert bench.texts() == [FACT]


def test_a_merged_memory_takes_its_members_along(bench):
    Talk().user("Go.").assistant("[MEMORY: decision] Use SQLite in WAL mode.").write(bench.projects)
    said_again = "[MEMORY: decision] Always use SQLite in WAL mode here."
    Talk("s2").user("Go.").assistant(said_again).write(bench.projects)
    bench.begin()
    bench.run("nightly", NOW + timedelta(days=1))
    assert len(bench.memories()) == 3
    forget(bench, "WAL")
    assert traces(bench.home, "WAL mode") == []
    assert bench.memories() == []


def test_forgetting_a_session_takes_all_it_said_also_from_its_forks(bench):
    talk = told_canary()
    talk.write(bench.projects)
    forked(talk.records, LATER).assistant("[MEMORY: pattern] One queue a poller.").write(bench.projects)
    bench.begin()
    here().forget_session(talk.session_id[:8])
    assert traces(bench.home, CANARY) == []
    assert bench.texts() == ["One queue a poller."]
    talk.assistant(f"More of {CANARY}.").write(bench.projects)
    bench.backfill(now=NOW + timedelta(hours=1))
    assert traces(bench.home, CANARY) == []


def test_resetting_a_project_leaves_the_others(bench, tmp_path):
    told_canary().write(bench.projects)
    decisions("s2", cwd="/home/dev/reef").write(bench.projects)
    bench.begin()
    remember(f"The {CANARY} again.", project="/home/dev/kelp")
    before = bench.memories("reef")
    here().reset("/home/dev/kelp")
    assert traces(bench.home, CANARY, "tide table of s1") == []
    assert bench.memories("reef") == before
    bench.backfill(now=NOW + timedelta(hours=1))
    assert traces(bench.home, CANARY) == []


def test_a_reset_takes_no_vector_of_what_other_projects_say_in_the_same_words_and_all_others(bench):
    told_canary().write(bench.projects)
    decisions("s2", cwd="/home/dev/reef").write(bench.projects)
    bench.begin()

    def hashes(of: str) -> set[str]:
        tables, names = bench.store.tables, ("memories", "passages")
        rows = (tables.open(scope, name).read() for scope in tables.scopes() for name in names)
        return {row["content_hash"] for part in rows for row in part.to_pylist() if of in row["project_id"]}

    def vectors() -> set[str]:
        return set(bench.store.lake.read(VECTORS)["content_hash"].to_pylist())

    before, reef, kelp = vectors(), hashes("reef"), hashes("kelp")
    assert reef & kelp & before
    assert kelp & before > reef & kelp & before
    here().reset("/home/dev/kelp")
    assert vectors() == before - (kelp - reef)
    with runs.opened("rebuild", bench.context) as run:
        assert compare(run).differences == []


def test_what_is_past_its_days_goes_and_what_is_pinned_stays(bench):
    told_canary().write(bench.projects)
    bench.begin()
    [pinned] = [m for m in bench.memories() if "tide table" in m["text"]]
    bench.store.journal.write(
        entry("pin", pinned["project_id"], {}, recorded_at=NOW, memory_id=pinned["memory_id"])
    )
    settings = Settings(home=bench.home, retention_days=90)
    runs.execute("nightly", replace(bench.at(NOW + timedelta(days=1)), settings=settings))
    assert traces(bench.home, CANARY) != []
    runs.execute("nightly", replace(bench.at(NOW + timedelta(days=60)), settings=settings))
    assert traces(bench.home, CANARY) == []
    assert bench.texts() == [pinned["text"]]


def test_a_set_aside_transcript_that_holds_the_fact_goes_too(bench, tmp_path):
    told_canary().write(bench.projects)
    bad = bench.projects / "bad.jsonl"
    bad.write_text(f"not a transcript\n{FACT}\n")
    bench.begin()
    # Set aside without a link: what is no transcript is somebody's other file.
    assert not any("staging/transcripts" in place for place in traces(bench.home, CANARY))
    forget(bench)
    assert traces(bench.home, CANARY) == []


def test_a_reset_project_leaves_no_transcript_that_was_set_aside(bench):
    told_canary().write(bench.projects)
    bad = bench.projects / "bad.jsonl"
    bad.write_text(f"not a transcript, of the {CANARY}\n")
    bench.stage()
    bench.store.staging.stage(bad, cwd="/home/dev/kelp")
    bench.run()
    assert not any("staging/transcripts" in place for place in traces(bench.home, CANARY))
    here().reset("/home/dev/kelp")
    assert traces(bench.home, CANARY) == []


def test_the_reason_for_which_it_was_archived_or_kept_goes_too(bench):
    told_canary().write(bench.projects)
    bench.begin()
    [memory] = [m for m in bench.memories() if CANARY in m["text"]]
    scope, name, reason = memory["project_id"], memory["memory_id"], f"`read_{CANARY}` is gone"
    kept = {"item": "stale", "memory_ids": [name], "reason": reason}
    bench.store.journal.write(entry("dismiss", scope, kept, recorded_at=NOW))
    bench.store.journal.write(entry("archive", scope, {"reason": reason}, recorded_at=NOW, memory_id=name))
    here().forget(name)
    assert traces(bench.home, CANARY) == []


def test_while_another_run_writes_the_wish_waits_and_the_next_run_grants_it(bench):
    told_canary().write(bench.projects)
    bench.begin()
    with lease(bench.home):
        forget(bench)
    assert traces(bench.home, CANARY) != []
    bench.run()
    assert traces(bench.home, CANARY) == []


# Killed by the system when the tables are written and the log is not merged into the file yet.
PUBLISHING = (
    "import os, signal, sys; from pathlib import Path; from tests.bench import Bench;"
    " from cortex.storage.published import published;"
    " published.comments = lambda **_: os.kill(os.getpid(), signal.SIGKILL);"
    " Bench(Path(sys.argv[1]), Path(sys.argv[2])).backfill()"
)


def test_killed_while_publishing_the_words_are_in_no_file_after_forgetting(bench, other):
    told_canary().write(bench.projects)
    killed = subprocess.run(
        [sys.executable, "-c", PUBLISHING, str(bench.home), str(bench.projects)],
        cwd=Path(__file__).parents[3],
        check=False,
    )
    left = [place for place in traces(bench.home, CANARY) if place.endswith(".wal")]
    assert (killed.returncode, len(left)) == (-signal.SIGKILL, 1)
    bench.run()
    forget(bench)
    bench.run()
    other.begin()
    other.run()
    assert traces(bench.home, CANARY) == []
    new = name_patterns(bench.home) - name_patterns(other.home)
    assert new == {"lake/settled/project=kelp-N/N.parquet"}  # that the session was read, which erasing notes


def test_the_search_sees_the_words_wherever_they_lie_before(bench):
    told_canary().write(bench.projects)
    bench.begin()
    places = " ".join(traces(bench.home, CANARY))
    for place in (
        "lake/events",
        "lake/turns",
        "memories.lance/data",
        "published/memories.parquet",
        "published/memory.duckdb",
        "brief.md",
        "search.sqlite",
    ):
        assert place in places


def test_what_a_session_was_shown_of_it_leaves_nothing_either(bench):
    told_canary().write(bench.projects)
    bench.backfill()
    payload = {"prompt": f"How often do the gauges of the {CANARY} reef report?", "session_id": "later"}
    shown = prompt.prompt_output(str(bench.home), payload, ["/home/dev/kelp"], time.time_ns())
    assert shown and CANARY in shown.decode()
    forget(bench)
    assert traces(bench.home, CANARY) == []
    payload["session_id"] = "another"
    assert prompt.prompt_output(str(bench.home), payload, ["/home/dev/kelp"], time.time_ns()) is None


def test_a_project_that_is_reset_keeps_nothing_in_the_search_index_nor_in_the_hook_index_of_earlier_versions(
    bench,
):
    told_canary().write(bench.projects)
    bench.begin()
    [brief] = bench.home.glob("published/kelp-*/brief.md")
    former = brief.with_name("hook-index.sqlite")
    former.write_text(FACT)
    with sqlite3.connect(bench.home / "tables" / "search.sqlite") as index:
        scopes = "select coalesce(sum(rows), 0) from parts where scope like 'kelp-%'"
        assert index.execute(scopes).fetchone() > (0,)
        here().reset("/home/dev/kelp")
    with sqlite3.connect(bench.home / "tables" / "search.sqlite") as index:
        assert index.execute(scopes).fetchone() == (0,)
    assert not former.exists()


def test_an_erasure_leaves_nothing_for_a_second_run_to_do(bench):
    told_canary().write(bench.projects)
    bench.begin()
    forget(bench)
    before = contents(bench.home)
    generation = bench.store.lake.manifest.generation
    bench.run(now=NOW)
    assert difference(before, contents(bench.home)) == {}
    assert bench.store.lake.manifest.generation - generation <= 1  # the day's ageing


def remember(text: str, project: str | None = None) -> None:
    here().remember(text, memory_type="decision", project=project)


def test_the_journal_says_that_something_was_forgotten_and_not_what(bench):
    remember(FACT)
    forget(bench)
    told = [row for row in bench.store.journal.read().to_pylist() if row["kind"] == "forget"]
    assert told and CANARY not in json.dumps(told, default=str)


@pytest.mark.parametrize("way", ["session", "project"])
def test_tables_made_again_after_an_erasure_equal_the_live_ones(bench, way):
    talk = told_canary()
    talk.write(bench.projects)
    decisions("s2").write(bench.projects)
    bench.begin()
    if way == "session":
        here().forget_session(talk.session_id)
    else:
        here().reset("/home/dev/kelp")
    with runs.opened("rebuild", bench.context) as run:
        assert compare(run).differences == []
        rebuild(run)
    assert traces(bench.home, CANARY) == []


PLACES = {
    "a lake file": (lake.Lake, "write_file"),
    "the manifest": (lake, "write_manifest"),
    "the tables' older versions": (lance_tables.LanceTables, "purge"),
    "unnamed files": (lake.Lake, "sweep"),
}


# What lies on disk after a write lies there before the next one.
@pytest.mark.spread(4)
@pytest.mark.parametrize(("number", "moment"), [(1, "before"), (2, "before"), (3, "before"), (3, "after")])
@pytest.mark.parametrize("place", PLACES)
def test_killed_around_a_write_the_next_run_erases_to_the_end(bench, monkeypatch, place, number, moment):
    told_canary().write(bench.projects)
    bench.begin()
    with lease(bench.home):
        forget(bench)
    with monkeypatch.context() as patch:
        test_kills._die_at(patch, *PLACES[place], number, moment)
        try:
            bench.run()
        except test_kills.Killed:
            pass
        else:
            pytest.skip(f"{place} is not written {number} times")
    bench.run()
    assert traces(bench.home, CANARY) == []
    assert leftovers(bench.home) == []
