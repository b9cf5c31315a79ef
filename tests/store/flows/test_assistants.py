"""Other assistants' transcripts in whole runs: the laws, a chat's project, found by default, swept up."""

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cortex.flows.engines import runs
from cortex.storage.staging.assistant_folders import folders, session_document, sessions_in
from cortex.storage.staging.transcripts import open_transcript
from cortex.transforms.schemas import TURNS
from tests.bench import contents
from tests.examples import examples
from tests.other_assistants import (
    Codex,
    Copilot,
    OpenCode,
    codex_decisions,
    copilot_decisions,
    gemini_decisions,
    opencode_decisions,
)
from tests.transcripts import KELP, Talk, decisions


@pytest.fixture(autouse=True)
def user_home(tmp_path, monkeypatch):
    """Stand in for the person's own home folder, where the assistants keep their files."""
    home = tmp_path / "person"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "COPILOT_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    return home


def written(home, *, as_lines=False):
    """Write one session of each assistant, all of one project; return their paths."""
    claude = decisions().write(home / ".claude" / "projects")
    codex, copilot = codex_decisions().write(home), copilot_decisions().write(home)
    opencode = opencode_decisions().write(home)
    return [claude, codex, gemini_decisions().write(home, as_lines=as_lines, name="kelp"), copilot, opencode]


def packed(path):
    """Compress a rollout as the program does after a week; return the new file in place of the old."""
    target = path.with_name(path.name + ".zst")
    with pa.output_stream(str(target), compression="zstd") as stream:
        stream.write(path.read_bytes())
    path.unlink()
    return target


@given(cuts=st.integers(1, 40), texts=st.lists(st.text("ab", max_size=60), max_size=8))
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60), deadline=None
)
def test_pieces_of_a_compressed_file_are_its_lines_whatever_their_size(tmp_path, cuts, texts):
    data = "\n".join(['{"timestamp":"t","type":"session_meta"}', *texts]).encode()
    path = tmp_path / "a.jsonl"
    path.write_bytes(data)
    with open_transcript(packed(path)) as transcript:
        assert transcript.format == "packed"
        pieces = list(transcript.pieces(piece_bytes=cuts))
    whole = data.split(b"\n")
    lines_read = {}
    for piece in pieces:
        for at, line in enumerate(piece.data.removesuffix(b"\n").split(b"\n") if piece.data else []):
            lines_read[piece.first_line + at] = line
    assert all(whole[number - 1] == line for number, line in lines_read.items())
    assert {number for number, line in enumerate(whole, 1) if line and len(line) < cuts} <= set(lines_read)


def test_an_excluded_project_is_excluded_for_every_assistant(bench, user_home):
    chosen = bench.settings.__class__(home=bench.home, excluded_projects=(KELP,))
    paths = written(user_home)
    runs.stage_all(chosen, paths)
    runs.execute("ingest", replace(bench.context, settings=chosen))
    assert contents(bench.home) == {}


def test_a_folder_that_is_a_link_to_an_excluded_one_is_excluded_too(bench, tmp_path):
    (tmp_path / "secret").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    chosen = bench.settings.__class__(home=bench.home, excluded_projects=(str(tmp_path / "secret"),))
    path = decisions("s1", cwd=str(tmp_path / "link")).write(bench.projects)
    runs.stage_all(chosen, [path])
    runs.execute("ingest", replace(bench.context, settings=chosen))
    assert contents(bench.home) == {}


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


@pytest.mark.parametrize("folder", ["secret", "secret/deep"])
def test_a_session_without_folders_is_excluded_by_the_name_of_the_clients_folder(bench, folder):
    talk = decisions("s1")
    for record in talk.records:
        del record["cwd"]
    path = talk.write(bench.projects.parent / f"-home-dev-{folder.replace('/', '-')}")
    chosen = bench.settings.__class__(home=bench.home, excluded_projects=("/home/dev/secret",))
    runs.stage_all(chosen, [path])
    runs.execute("ingest", replace(bench.context, settings=chosen))
    assert contents(bench.home) == {}


def test_only_chats_are_taken_from_geminis_folder(bench, user_home):
    path = gemini_decisions().write(user_home)
    for name in ("logs.json", "chats/checkpoint-a.json", "tool_output/session-x.json"):
        beside = path.parents[1] / name
        beside.parent.mkdir(exist_ok=True)
        beside.write_text("[]")
    assert runs.look_for(bench.settings, [user_home / ".gemini"]).transcripts == (path,)


def test_a_backfill_counts_by_assistant(bench, user_home):
    paths = written(user_home)
    found = runs.look_for(bench.settings, [user_home])
    *files, session = paths
    sizes = [*(path.stat().st_size for path in files), len(session_document(session))]
    names = ("Claude Code", "Codex CLI", "Gemini CLI", "Copilot CLI", "opencode")
    assert found.by_assistant == {name: (1, size) for name, size in zip(names, sizes, strict=True)}


def test_a_database_that_cannot_be_read_has_no_sessions(user_home):
    database = opencode_decisions().write(user_home).parent
    database.with_name("opencode.db-wal").unlink(missing_ok=True)
    database.write_bytes(b"no database")
    assert sessions_in(database) == []
    with pytest.raises(OSError), open_transcript(database / "ses_1.json"):
        pass


def test_a_session_that_is_gone_from_its_database_is_set_aside(bench, user_home):
    path = opencode_decisions().write(user_home)
    bench.stage(path.with_name("ses_gone.json"))
    assert [each.file for each in bench.run().quarantined] == [str(path.with_name("ses_gone.json"))]


def test_each_assistants_folder_may_be_elsewhere(monkeypatch, tmp_path):
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "x"))
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path / "y"))
    assert folders()["codex"][0] == tmp_path / "x" / "sessions"
    monkeypatch.setenv("COPILOT_HOME", str(tmp_path / "z"))
    assert folders()["copilot"] == [tmp_path / "z" / "session-state"]
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "d"))
    assert folders()["opencode"] == [tmp_path / "d" / "opencode" / "opencode.db"]
    assert folders()["gemini"] == [tmp_path / "y" / ".gemini" / "tmp"]
