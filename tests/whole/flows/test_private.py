"""A backfill leaves private sessions alone: those that the hooks noted, or whose first prompt says so."""

import json

from cortex.transforms.schemas import TURNS
from tests.transcripts import Talk, decisions


def sessions_of(bench) -> set[str]:
    return set(bench.store.lake.read(TURNS)["session_id"].to_pylist())


def test_a_session_that_the_hooks_noted_is_not_read_nor_are_its_subagents(bench):
    path = decisions("s1").write(bench.projects)
    other = decisions("s2")
    other.write(bench.projects)
    agent = path.with_suffix("") / "subagents" / "agent-a1.jsonl"
    agent.parent.mkdir(parents=True)
    agent.write_bytes(path.read_bytes())
    bench.store.staging.make_private(path)
    bench.backfill()
    assert sessions_of(bench) == {other.session_id}


def test_the_word_in_the_first_prompt_keeps_the_whole_session_out(bench):
    talk = Talk("s1").user("#private: What is this lump?").assistant("[MEMORY: decision] Ask a doctor.")
    path = talk.write(bench.projects)
    agent = path.with_suffix("") / "subagents" / "agent-a1.jsonl"
    agent.parent.mkdir(parents=True)
    agent.write_bytes(decisions("s1").write(bench.projects / "x").read_bytes())
    (bench.projects / "x").rename(bench.projects.with_name("aside"))
    other = decisions("s2")
    other.write(bench.projects)
    bench.backfill()
    talk.user("Thank you, that helps a lot.").write(bench.projects)
    bench.backfill()  # it stays private as it grows
    assert sessions_of(bench) == {other.session_id}
    assert "doctor" not in json.dumps([row["text"] for row in bench.store.lake.read(TURNS).to_pylist()])


def test_the_word_in_what_a_first_command_is_given_keeps_the_session_out_too(bench):
    command = "<command-message>look</command-message>\n<command-name>/look</command-name>\n<command-args>"
    first = Talk("s1").user(f"{command}#private at this lump</command-args>")
    first.assistant("[MEMORY: decision] Ask a doctor.").write(bench.projects)
    talk = Talk("s2").user(f"{command}opus</command-args>").user("#private: What is this lump?")
    talk.assistant("[MEMORY: decision] Ask a doctor.").write(bench.projects)
    other = decisions("s3")
    other.write(bench.projects)
    bench.backfill()
    assert sessions_of(bench) == {other.session_id}


def test_the_word_in_a_later_prompt_is_only_a_word(bench):
    talk = Talk("s1").user("What does this do?").assistant("It reads.").user("And #private in Ruby?")
    talk.write(bench.projects)
    bench.backfill()
    assert sessions_of(bench) == {talk.session_id}
