"""Staging: what hooks left is claimed, taken over after a kill, dropped only when committed (spec 4.3)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cortex.hooks import ticket
from cortex.storage.lake.manifest import Cursor
from cortex.storage.staging.assistant_folders import find_transcripts
from cortex.storage.staging.staging import Claim, Staging
from cortex.transforms.errors import NotFound, StoreNotWritable, UsageError


@pytest.fixture
def staging(tmp_path):
    return Staging(tmp_path / "cortex")


def transcript_at(tmp_path, name="s1.jsonl", text='{"type":"user"}\n'):
    path = tmp_path / "projects" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def names(staging, folder):
    path = staging.root / folder
    return sorted(one.name for one in path.iterdir()) if path.exists() else []


def everything(staging):
    return sorted(path.name for path in staging.root.rglob("*") if path.is_file())


def test_what_is_staged_is_claimed(staging, tmp_path):
    transcript = transcript_at(tmp_path)
    assert staging.stage(transcript, session_id="s1", cwd="/home/ada/kiln")
    [waiting] = names(staging, "new")
    [claim] = staging.claim()
    assert claim == Claim(
        tickets=(staging.root / "claimed" / waiting,),
        transcript=transcript,
        staged=next((staging.root / "transcripts").iterdir()),
        session_id="s1",
        agent_id=None,
        cwd="/home/ada/kiln",
    )
    assert names(staging, "new") == []
    assert claim.readable() == transcript


def test_tickets_of_one_transcript_are_one_claim_with_the_last_word_of_each(staging, tmp_path):
    transcript = transcript_at(tmp_path)
    staging.stage(transcript, event="stop", cwd="/first")
    staging.stage(transcript, event="session-end", cwd="/last")
    staging.stage(transcript, event="sweep")
    [claim] = staging.claim()
    assert len(claim.tickets) == 3
    assert claim.cwd == "/last"


def test_a_transcript_that_was_replaced_is_one_claim_and_both_copies_go(staging, tmp_path):
    transcript = transcript_at(tmp_path)
    staging.stage(transcript)
    other = transcript_at(tmp_path, "other.jsonl", "{}\n")
    other.replace(transcript)
    staging.stage(transcript)
    assert len(names(staging, "transcripts")) == 2
    [claim] = staging.claim()
    assert claim.staged is not None and claim.staged.read_text() == "{}\n"
    staging.release([claim])
    assert everything(staging) == []


def test_a_subagent_is_known_by_its_path(staging, tmp_path):
    staging.stage(transcript_at(tmp_path, "s1/subagents/agent-a7.jsonl"))
    [claim] = staging.claim()
    assert (claim.session_id, claim.agent_id) == ("s1", "a7")


def test_claims_come_in_the_order_of_the_first_report(staging, tmp_path):
    for name in ("b", "a", "c", "b"):
        staging.stage(transcript_at(tmp_path, f"{name}.jsonl"))
    assert [claim.transcript.stem for claim in staging.claim()] == ["b", "a", "c"]


def test_the_next_run_takes_over_what_a_killed_run_had_claimed(staging, tmp_path):
    staging.stage(transcript_at(tmp_path))
    killed = staging.claim()
    assert staging.claim() == killed
    staging.stage(transcript_at(tmp_path))
    [claim] = Staging(tmp_path / "cortex").claim()
    assert len(claim.tickets) == 2


def test_release_leaves_nothing_behind(staging, tmp_path):
    for number in range(3):
        staging.stage(transcript_at(tmp_path, f"s{number}.jsonl"))
    staging.release(staging.claim())
    assert everything(staging) == []
    assert staging.claim() == []


def test_release_twice_is_release_once(staging, tmp_path):
    staging.stage(transcript_at(tmp_path))
    claims = staging.claim()
    staging.release(claims)
    staging.release(claims)
    assert everything(staging) == []


def test_release_keeps_what_a_new_ticket_waits_for(staging, tmp_path):
    transcript = transcript_at(tmp_path)
    staging.stage(transcript)
    claims = staging.claim()
    staging.stage(transcript)
    staging.release(claims)
    transcript.unlink()
    [claim] = staging.claim()
    assert claim.readable() == claim.staged != None  # noqa: E711


def test_a_ticket_that_comes_while_its_link_is_removed_gets_it_again(staging, tmp_path, monkeypatch):
    transcript = transcript_at(tmp_path)
    staging.stage(transcript)
    claims = staging.claim()
    unlink = Path.unlink

    def unlink_with_a_hook_just_before(path, missing_ok=False):
        if path.parent.name == "transcripts":
            monkeypatch.undo()
            staging.stage(transcript)
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink_with_a_hook_just_before)
    staging.release(claims)
    assert len(names(staging, "new")) == len(names(staging, "transcripts")) == 1


def test_a_link_that_goes_while_a_hook_looks_at_it_is_made_again(staging, tmp_path, monkeypatch):
    path = transcript_at(tmp_path)
    staging.stage(path)
    link, attempts = os.link, []

    def link_after_release(source, target):
        attempts.append(target)
        if len(attempts) > 1:
            return link(source, target)
        try:
            link(source, target)
        finally:  # the run lets go of its link after the hook has met it and before the hook looks what it is
            Path(target).unlink()

    monkeypatch.setattr(os, "link", link_after_release)
    key = ticket.key_for(str(path), path.stat().st_ino)
    ticket.keep(str(staging.root), str(path), key, copy_limit_bytes=None)
    assert len(attempts) == 2 and path.samefile(attempts[0])


def test_a_transcript_deleted_after_staging_is_read_through_the_link(staging, tmp_path):
    transcript = transcript_at(tmp_path, text="what was said\n")
    staging.stage(transcript)
    transcript.unlink()
    [claim] = staging.claim()
    assert claim.transcript == transcript
    assert claim.readable() == claim.staged
    assert claim.staged.read_text() == "what was said\n"


def test_the_link_follows_a_transcript_that_grows(staging, tmp_path):
    transcript = transcript_at(tmp_path)
    staging.stage(transcript)
    with transcript.open("a") as file:
        file.write("more\n")
    transcript.unlink()
    [claim] = staging.claim()
    assert claim.readable().read_text().endswith("more\n")


def test_with_original_and_link_gone_there_is_nothing_to_read(staging, tmp_path):
    transcript = transcript_at(tmp_path)
    staging.stage(transcript)
    transcript.unlink()
    next((staging.root / "transcripts").iterdir()).unlink()
    [claim] = staging.claim()
    assert (claim.staged, claim.readable()) == (None, None)
    staging.release([claim])
    assert everything(staging) == []


def test_without_hard_links_the_whole_transcript_is_copied(staging, tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(ticket, "COPY_LIMIT_BYTES", 10)
    monkeypatch.setattr(ticket, "COPY_CHUNK_BYTES", 7)
    transcript = transcript_at(tmp_path, text="x" * 1_000)
    staging.stage(transcript)
    transcript.unlink()
    [claim] = staging.claim()
    assert claim.readable().read_text() == "x" * 1_000


def test_a_file_that_is_gone_is_not_staged(staging, tmp_path):
    assert not staging.stage(tmp_path / "gone.jsonl")
    assert not staging.stage(tmp_path)
    assert everything(staging) == []


def test_an_empty_file_is_staged_like_any_other(staging, tmp_path):
    assert staging.stage(transcript_at(tmp_path, text=""))
    assert len(staging.claim()) == 1


def test_a_relative_path_is_staged_as_an_absolute_one(staging, tmp_path, monkeypatch):
    transcript = transcript_at(tmp_path)
    monkeypatch.chdir(transcript.parent)
    staging.stage(Path("../projects/s1.jsonl"))
    assert staging.claim()[0].transcript == transcript


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff" * 9, b'{"version": 1}', b"x" * 100_000])
def test_a_malformed_ticket_is_set_aside_and_the_rest_goes_on(staging, tmp_path, content):
    staging.stage(transcript_at(tmp_path))
    (staging.root / "new" / "broken.json").write_bytes(content)
    (staging.root / "new" / "folder.json").mkdir()
    assert len(staging.claim()) == 1
    assert names(staging, "set_aside") == ["broken.json", "broken.reason", "folder.json", "folder.reason"]
    told = json.loads((staging.root / "set_aside" / "broken.reason").read_text())
    assert told["reason"].startswith("malformed ticket") and told["file"].endswith("broken.json")


def test_what_a_malformed_ticket_left_behind_is_read_and_goes_with_its_reason(staging, tmp_path):
    staging.stage(transcript_at(tmp_path))
    [path] = (staging.root / "new").iterdir()
    path.write_bytes(b"{")
    assert staging.claim() == [] and names(staging, "transcripts")
    staging.sweep_links({})
    [claim] = staging.claim()
    assert claim.readable().read_text() == '{"type":"user"}\n'
    staging.release([claim])
    assert everything(staging) == []


def test_what_is_set_aside_says_its_file_and_reason_and_is_kept(staging, tmp_path):
    transcript = transcript_at(tmp_path, text="secret words")
    staging.stage(transcript)
    staging.stage(transcript)
    [claim] = staging.claim()
    staging.quarantine(claim, "no line of it is JSON")
    assert (names(staging, "new"), names(staging, "claimed")) == ([], [])
    [told] = [json.loads(path.read_text()) for path in (staging.root / "set_aside").glob("*.reason")]
    assert (told["file"], told["reason"]) == (str(transcript), "no line of it is JSON")
    assert len(names(staging, "set_aside")) == 3
    assert staging.list_quarantined() == [(told["file"], told["reason"])]
    assert len(names(staging, "transcripts")) == 1
    assert staging.claim() == []


def test_of_a_file_that_is_no_transcript_nothing_is_kept(staging, tmp_path):
    staging.stage(transcript_at(tmp_path, text="root:$6$salt$hash"))
    [claim] = staging.claim()
    staging.quarantine(claim, "not JSON", is_kept=False)
    assert names(staging, "transcripts") == [] and len(names(staging, "set_aside")) == 2


def test_set_aside_again_and_again_does_not_grow(staging, tmp_path):
    for _ in range(5):
        staging.stage(transcript_at(tmp_path))
        staging.quarantine(staging.claim()[0], "still not JSON")
    assert len(names(staging, "set_aside")) == 2


def test_what_was_set_aside_is_forgotten_once_the_transcript_is_committed(staging, tmp_path):
    transcript = transcript_at(tmp_path, text="")
    staging.stage(transcript)
    staging.quarantine(staging.claim()[0], "empty")
    with transcript.open("a") as file:
        file.write("{}\n")
    staging.stage(transcript)
    staging.release(staging.claim())
    assert everything(staging) == []


def test_listing_what_waits_touches_nothing(staging, tmp_path):
    staging.stage(transcript_at(tmp_path, "a.jsonl"))
    staging.claim()
    staging.stage(transcript_at(tmp_path, "b.jsonl"))
    (staging.root / "new" / "broken.json").write_text("{")
    before = everything(staging)
    assert [claim.transcript.stem for claim in staging.list_waiting()] == ["a", "b"]
    assert everything(staging) == before and len(names(staging, "new")) == 2


def test_a_store_without_staging_has_nothing_waiting(staging):
    assert (staging.list_waiting(), staging.leftovers(), staging.sweep_links({})) == ([], [], 0)
    assert not staging.root.exists()


def test_a_kept_transcript_that_was_read_and_that_no_ticket_names_is_swept(staging, tmp_path):
    staging.stage(transcript_at(tmp_path, "waits.jsonl"))
    orphan = without_ticket(staging, transcript_at(tmp_path, "orphan.jsonl"))
    assert staging.sweep_links({str(orphan): read_to(orphan.stat().st_size)}) == 1
    [kept] = names(staging, "transcripts")
    assert kept.removesuffix(".jsonl") == ticket.key_in_name(names(staging, "new")[0])


def test_a_kept_transcript_that_was_not_read_to_its_end_waits_again_under_its_name(staging, tmp_path):
    orphan = without_ticket(staging, transcript_at(tmp_path, "orphan.jsonl"))
    content = orphan.read_bytes()
    orphan.unlink()  # the client's own clean-up
    assert staging.sweep_links({str(orphan): read_to(len(content) - 1)}) == 0
    [claim] = staging.claim()
    assert (claim.transcript, claim.readable().read_bytes()) == (orphan, content)
    staging.release([claim])
    assert everything(staging) == []


def test_a_kept_transcript_of_which_nothing_is_known_is_staged_and_never_deleted_unread(staging, tmp_path):
    orphan = without_ticket(staging, transcript_at(tmp_path, "orphan.jsonl"))
    content = orphan.read_bytes()
    assert staging.sweep_links({}) == 0
    [claim] = staging.claim()
    assert claim.readable().read_bytes() == content
    staging.release([claim])
    assert everything(staging) == []


def without_ticket(staging, transcript):
    """Stage a transcript and lose its ticket; return its path."""
    waiting = set(names(staging, "new"))
    staging.stage(transcript)
    for name in set(names(staging, "new")) - waiting:
        (staging.root / "new" / name).unlink()
    return transcript


def read_to(size):
    return Cursor(size, 1, "head", 1, "kelp-1", None)


def test_a_ticket_that_comes_while_links_are_swept_gets_its_link_again(staging, tmp_path, monkeypatch):
    path = transcript_at(tmp_path)
    staging.stage(path)
    for found in (staging.root / "new").iterdir():
        found.unlink()
    seen = staging.leftovers()
    staging.stage(path)  # finds the old link still there
    monkeypatch.setattr(staging, "leftovers", lambda: seen)
    staging.sweep_links({str(path): read_to(path.stat().st_size)})
    assert [claim.staged.read_bytes() for claim in staging.list_waiting()] == [path.read_bytes()]


def test_a_home_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "cortex").write_text("a file where the home should be")
    staging = Staging(tmp_path / "cortex")
    with pytest.raises(StoreNotWritable, match="cannot be"):
        staging.stage(transcript_at(tmp_path))
    with pytest.raises(StoreNotWritable):
        staging.claim()


def test_claims_are_complete_while_hooks_keep_adding(staging, tmp_path):
    transcripts = [transcript_at(tmp_path, f"s{number}.jsonl") for number in range(4)]
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import ticket\n"
        "for _ in range(50):\n"
        "    for path in sys.argv[3:]: ticket.drop(sys.argv[2], 'stop', path, durable=False)"
    )
    hooks = str(Path(ticket.__file__).parent)
    command = [sys.executable, "-I", "-S", "-c", script, hooks, str(staging.root), *map(str, transcripts)]
    adding = [subprocess.Popen(command) for _ in range(2)]
    taken = 0
    while any(process.poll() is None for process in adding):
        claims = staging.claim()
        taken += sum(len(claim.tickets) for claim in claims)
        staging.release(claims)
    claims = staging.claim()
    taken += sum(len(claim.tickets) for claim in claims)
    staging.release(claims)
    # Two tickets of one transcript in the same microsecond share a name: none is missed by that.
    assert [process.returncode for process in adding] == [0, 0] and 390 <= taken <= 400
    # A hook may keep a transcript when its ticket was taken and dropped already: that is swept.
    staging.sweep_links({})
    staging.release(staging.claim())
    assert everything(staging) == []


def test_transcripts_are_found_in_every_subfolder(tmp_path):
    wanted = [
        transcript_at(tmp_path, name) for name in ("a/s2.jsonl", "a/s2/subagents/agent-x.jsonl", "b/s1.jsonl")
    ]
    transcript_at(tmp_path, "history.jsonl")
    transcript_at(tmp_path, "a/s2/subagents/agent-x.meta.json")
    transcript_at(tmp_path, "a/memory/MEMORY.md")
    assert find_transcripts(tmp_path / "projects") == sorted(wanted)


def test_a_named_file_is_taken_whatever_its_ending(tmp_path):
    path = transcript_at(tmp_path, "saved.txt")
    assert find_transcripts(path) == [path]


def test_a_folder_without_transcripts_gives_none(tmp_path):
    assert find_transcripts(tmp_path) == []


def test_a_missing_path_is_an_error_with_a_next_step(tmp_path):
    with pytest.raises(NotFound, match="Check the spelling"):
        find_transcripts(tmp_path / "missing")


def test_what_is_neither_file_nor_folder_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="neither"):
        find_transcripts(tmp_path / "pipe")
