"""Other assistants' transcripts in whole runs: the laws, a chat's project, found by default, swept up."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cortex.flows.engines import runs
from cortex.hooks import ticket
from cortex.transforms.schemas import TURNS
from tests.bench import contents, difference, fixed_state, leftovers
from tests.other_assistants import (
    Codex,
    Copilot,
    Gemini,
    OpenCode,
    OpenCode2,
    codex_decisions,
    gemini_decisions,
    opencode_decisions,
)
from tests.store.flows.test_assistants import (
    packed,
    user_home,  # noqa: F401
    written,
)
from tests.transcripts import KELP, Talk, decisions, lines


def test_sessions_of_five_assistants_fold_into_one_project(bench, user_home):
    report = bench.backfill(*written(user_home))
    assert (report.transcripts, report.quarantined) == (5, [])
    assert [project.paths for project in bench.store.projects.all()] == [(KELP,)]
    gotchas = [text for text in bench.texts() if "tide table" in text]
    assert len(gotchas) == 5
    assert leftovers(bench.home) == []


def test_each_memory_says_in_its_evidence_from_which_assistants_file_it_is(bench, user_home):
    claude, codex, gemini, copilot, opencode = written(user_home)
    bench.backfill(claude, codex, gemini, copilot, opencode)
    by_name = {
        name: {
            each["file"]
            for row in bench.memories()
            if f"table of {name} " in row["text"]
            for each in row["evidence"]
        }
        for name in ("s1", "c1", "g1", "p1", "o1")
    }
    places = (claude, codex, gemini, copilot, opencode)
    names = zip(("s1", "c1", "g1", "p1", "o1"), places, strict=True)
    assert by_name == {name: {str(path)} for name, path in names}
    clients = {row["client_version"].split()[0] for row in contents(bench.home)["turns"]}
    assert clients == {"2.1.330", "codex", "gemini", "copilot", "opencode"}


def test_a_run_opens_each_transcript_once(bench, user_home, monkeypatch):
    paths, opened, open_file = written(user_home), [], ticket.open_regular
    bench.stage(*paths)
    monkeypatch.setattr(ticket, "open_regular", lambda path: opened.append(path) or open_file(path))
    bench.run()
    assert [path for path in opened if path in map(str, paths)] == [*map(str, paths[:-1])]  # the last is rows


@pytest.mark.parametrize("as_lines", [True, False])
def test_read_twice_is_read_once(bench, user_home, as_lines):
    paths = written(user_home, as_lines=as_lines)
    bench.backfill(*paths)
    before = fixed_state(bench.home)
    bench.backfill(*paths)
    for path in paths:
        bench.store.staging.stage(path)
    bench.run()
    assert fixed_state(bench.home) == before


def test_a_rollout_that_grows_gives_what_it_gives_at_once(bench, other, user_home):
    talk = codex_decisions()
    path = talk.write(user_home)
    whole = path.read_bytes()
    for share in (0.2, 0.63, 0.8, 1.0):
        path.write_bytes(whole[: int(len(whole) * share)])
        bench.backfill(path)
    other.backfill(path)
    assert difference(contents(bench.home), contents(other.home)) == {}
    assert leftovers(bench.home) == []


def test_a_rewritten_document_gives_what_it_gives_at_once(bench, other, user_home):
    talk = gemini_decisions()
    path = talk.write(user_home)
    for count in (0, 1, 3, 5, 6):
        path.write_bytes(talk.document(count))
        bench.backfill(path)
    assert bench.store.lake.manifest.cursors[str(path)].read_lines == 6
    other.backfill(path)
    assert difference(contents(bench.home), contents(other.home)) == {}
    assert leftovers(bench.home) == []


@pytest.mark.parametrize("kind", [OpenCode, OpenCode2])
def test_a_session_in_a_database_grows_and_gives_what_it_gives_at_once(bench, other, user_home, kind):
    talk = opencode_decisions(kind=kind)
    for count in (0, 1, 3, 5, 6):
        path = talk.write(user_home, count)
        bench.backfill(path)
    assert bench.store.lake.manifest.cursors[str(path)].read_lines == 6
    other.backfill(path)
    assert difference(contents(bench.home), contents(other.home)) == {}
    assert sum("tide table" in text for text in bench.texts()) == 1
    assert leftovers(bench.home) == []


def test_an_exported_session_gives_what_its_database_gives(bench, other, user_home, tmp_path):
    bench.backfill(opencode_decisions().write(user_home))
    exported = tmp_path / "export.json"
    exported.write_bytes(opencode_decisions().document())
    other.backfill(exported)
    assert bench.texts() == other.texts()


def test_version_2_of_a_session_counts_where_a_database_has_both(bench, user_home):
    OpenCode("o1").user("Sort the imports of the older exporter, all of them.").write(user_home)
    path = opencode_decisions(kind=OpenCode2).write(user_home)
    bench.backfill(path.parent)
    assert not any("older exporter" in row["text"] for row in contents(bench.home)["turns"])
    assert sum("tide table" in text for text in bench.texts()) == 1


def test_a_run_takes_in_what_changed_in_a_database_once_a_backfill_read_it(bench, user_home):
    path = opencode_decisions("o1").write(user_home)
    assert runs.grown(bench.settings) == []
    bench.backfill(path)
    assert runs.grown(bench.settings) == []
    later = opencode_decisions("o2", start=datetime.now(UTC)).write(user_home)
    assert runs.grown(bench.settings) == [later]


def test_a_document_caught_half_written_is_read_when_it_is_whole(bench, other, user_home):
    talk = gemini_decisions()
    path = talk.write(user_home)
    path.write_bytes(talk.document(3))
    bench.backfill(path)
    path.write_bytes(talk.document()[:2500])
    assert [each.reason for each in bench.backfill(path).quarantined] == ["not a transcript: not JSON"]
    path.write_bytes(talk.document())
    bench.backfill(path)
    other.backfill(path)
    assert difference(contents(bench.home), contents(other.home)) == {}
    assert leftovers(bench.home) == []


def test_a_compressed_rollout_gives_what_it_gave_before(bench, other, user_home):
    path = codex_decisions().write(user_home)
    bench.backfill(path)
    said, before = contents(bench.home), bench.store.lake.manifest.cursors
    target = packed(path)
    assert runs.look_for(bench.settings, [user_home]).transcripts == (target,)
    bench.backfill(target)
    assert contents(bench.home) == said
    assert set(bench.store.lake.manifest.cursors) - set(before) == {str(target)}
    assert runs.look_for(bench.settings, [user_home]).transcripts == ()
    other.backfill(target)
    assert other.texts() == bench.texts()
    assert leftovers(other.home) == []


def test_a_chat_that_goes_on_as_lines_after_a_resume_gives_no_second_turn(bench, other, user_home):
    path = gemini_decisions().write(user_home)
    bench.backfill(path)
    resumed = gemini_decisions().user("Which unit are the levels in?").write(user_home, as_lines=True)
    bench.backfill(resumed)
    turns = contents(bench.home)["turns"]
    other.backfill(resumed)
    assert {row["turn_id"] for row in turns} == {row["turn_id"] for row in contents(other.home)["turns"]}
    assert bench.texts() == other.texts()


@pytest.mark.parametrize("names", [("c1", "c2"), ("c2", "c1")])
def test_a_fork_of_a_rollout_gives_no_second_memory_whichever_is_read_first(bench, other, user_home, names):
    parent = codex_decisions("c1")
    fork = parent.forked("c2").assistant("[MEMORY: pattern] Each poller gets a queue of its own.")
    paths = {"c1": parent.write(user_home), "c2": fork.write(user_home)}
    for name in names:
        bench.backfill(paths[name])
    other.backfill(*paths.values())
    assert difference(contents(bench.home), contents(other.home)) == {}
    assert sum("tide table" in text for text in bench.texts()) == 1


def test_a_chat_that_tells_its_project_only_as_a_hash_is_known_by_the_folders_seen(bench, user_home):
    bench.backfill(decisions().write(user_home / ".claude" / "projects"))
    bench.backfill(gemini_decisions().write(user_home))
    assert [project.paths for project in bench.store.projects.all()] == [(KELP,)]


def test_a_chat_is_known_by_the_programs_own_list_of_projects(bench, user_home):
    path = gemini_decisions().write(user_home)
    (user_home / ".gemini" / "projects.json").write_text(json.dumps({"projects": {KELP: "kelp"}}))
    bench.backfill(path)
    assert [project.paths for project in bench.store.projects.all()] == [(KELP,)]


def test_a_chat_of_a_project_that_nobody_knows_is_a_project_by_its_folder(bench, user_home):
    path = gemini_decisions().write(user_home)
    bench.backfill(path)
    assert [project.paths for project in bench.store.projects.all()] == [(str(path.parents[1]),)]


def test_a_run_looks_for_what_grew_only_where_a_backfill_has_read(bench, user_home):
    asked = "Sort the imports of the exporter, and keep those of its tests as they are."
    codex, gemini = Codex().user(asked), Gemini().user(asked)
    path, chat = codex.write(user_home), gemini.write(user_home)
    assert runs.grown(bench.settings) == []
    bench.backfill(path)
    assert runs.grown(bench.settings) == []
    path.write_bytes(lines(codex.assistant("Sorted.").records))
    later = codex_decisions("c9").write(user_home)
    assert sorted(runs.grown(bench.settings)) == sorted([path, later])
    bench.backfill(chat)
    chat.write_bytes(gemini.assistant("Sorted.").document())
    assert chat in runs.grown(bench.settings)


def test_a_file_that_gave_nothing_is_looked_at_again_only_once_it_changes(bench, user_home):
    bench.backfill(codex_decisions("c1").write(user_home))
    broken = codex_decisions("c2").write(user_home)
    broken.write_bytes(b"no transcript")
    later = datetime.fromtimestamp(broken.stat().st_mtime, tz=UTC) + timedelta(hours=1)
    assert runs.grown(bench.settings) == [broken]
    bench.backfill(broken, now=later)
    assert runs.grown(bench.settings) == []


def test_what_was_said_in_an_excluded_folder_is_left_out_of_a_session_that_began_elsewhere(bench, tmp_path):
    (tmp_path / "secret").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    talk = Talk("s1").user("Where are we?").assistant("In the open. " * 20)
    for folder in (tmp_path / "secret" / "deep", tmp_path / "link"):
        talk.cwd = str(folder)
        talk.user("From now on never name the harbour Hidden.").assistant("Hidden it stays.")
    talk.cwd = KELP
    talk.user("And now?").assistant("Back again. " * 20)
    path = talk.write(bench.projects)
    chosen = bench.settings.__class__(home=bench.home, excluded_projects=(str(tmp_path / "secret"),))
    runs.stage_all(chosen, [path])
    runs.execute("ingest", replace(bench.context, settings=chosen))
    texts = bench.store.lake.read(TURNS)["text"].to_pylist()
    assert len(texts) == 4 and not any("idden" in text for text in texts)


@pytest.mark.parametrize("is_told", [False, True])
def test_codex_keeps_an_excluded_folder_out_that_a_session_enters_midway_and_reads_on_in(
    bench, user_home, is_told
):
    talk = Codex("c1").user("Where are we?").assistant("In the open. " * 20)
    talk.moved("/home/dev/secret/deep", is_told=is_told).user("Never name the harbour Hidden.")
    chosen = bench.settings.__class__(home=bench.home, excluded_projects=("/home/dev/secret",))
    for go_on in (
        lambda: talk.run("ls", "Hidden"),
        lambda: talk.assistant("Hidden it stays. " * 20),
        lambda: talk.moved(KELP, is_told=is_told).user("And now?").assistant("Back again. " * 20),
    ):
        go_on()
        runs.stage_all(chosen, [talk.write(user_home)])
        runs.execute("ingest", replace(bench.context, settings=chosen))
    texts = bench.store.lake.read(TURNS)["text"].to_pylist()
    assert len(texts) == 4 and not any("idden" in text for text in texts)


def go_on_in(talk, folder, *, is_resumed=False):
    """Let a session of Copilot go on in another folder, or be resumed there."""
    kind = "session.resume" if is_resumed else "session.context_changed"
    return talk.event(kind, **({"context": {"cwd": folder}} if is_resumed else {"cwd": folder}))


@pytest.mark.parametrize("is_resumed", [False, True])
def test_copilot_keeps_an_excluded_folder_out_that_a_session_enters_midway(bench, user_home, is_resumed):
    talk = Copilot("p1").user("Where are we?").assistant("In the open. " * 20)
    go_on_in(talk, "/home/dev/secret/deep", is_resumed=is_resumed).user("Never name the harbour Hidden.")
    chosen = bench.settings.__class__(home=bench.home, excluded_projects=("/home/dev/secret",))
    for go_on in (
        lambda: talk.run("ls", "Hidden"),
        lambda: talk.assistant("Hidden it stays. " * 20),
        lambda: go_on_in(talk, KELP, is_resumed=is_resumed).user("And now?").assistant("Back again. " * 20),
    ):
        go_on()
        runs.stage_all(chosen, [talk.write(user_home)])
        runs.execute("ingest", replace(bench.context, settings=chosen))
    texts = bench.store.lake.read(TURNS)["text"].to_pylist()
    assert len(texts) == 4 and not any("idden" in text for text in texts)


def test_opencode_keeps_an_excluded_folder_out_in_which_a_session_is_gone_on_with(bench, user_home):
    talk = OpenCode("o1")
    for folder, asks, says in (
        (KELP, "Where are we?", "In the open. " * 20),
        ("/home/dev/secret/deep", "Never name the harbour Hidden.", "Hidden it stays. " * 20),
        (KELP, "And now?", "Back again. " * 20),
    ):
        talk.user(asks)
        prompt = talk.messages[-1]["info"]["id"]
        talk.assistant(says)
        talk.messages[-1]["info"] |= {"parentID": prompt, "path": {"cwd": folder, "root": folder}}
    chosen = bench.settings.__class__(home=bench.home, excluded_projects=("/home/dev/secret",))
    runs.stage_all(chosen, [talk.write(user_home)])
    runs.execute("ingest", replace(bench.context, settings=chosen))
    texts = bench.store.lake.read(TURNS)["text"].to_pylist()
    assert len(texts) == 4 and not any("idden" in text for text in texts)
