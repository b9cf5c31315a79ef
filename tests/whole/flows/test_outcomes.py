"""What came of a decision is known afterwards: reverted, complained about, or held while work went on."""

import os
import subprocess
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest

from cortex.explorer.page import ViewRequest
from cortex.explorer.views.memories import show_memory
from cortex.flows.memory import Memory
from cortex.flows.operations.ask.listing import show
from cortex.flows.operations.ask.reasoning import infer
from cortex.flows.operations.ask.sql import query_tables
from cortex.mcp.tools import reasoning_tools
from cortex.transforms.words.ages import outcome_lines
from tests.bench import NOW
from tests.transcripts import KELP, START, Talk

CHOICE = "Use Redis for the session cache."
COMMIT = "Cache sessions in Redis"
THREE_DAYS, FOUR_DAYS = START + timedelta(days=3), START + timedelta(days=4)
REVERTED = "[reverted 3 days later]"


def edited(talk, file, subject, commit):
    talk.call("Edit", "done", file_path=f"{talk.cwd}/{file}", old_string="a", new_string="b")
    return committed(talk, subject, commit)


def committed(talk, subject, commit):
    return talk.call(
        "Bash", f"[main {commit}] {subject}\n 1 file changed", command=f'git commit -m "{subject}"'
    )


def begin(bench, cwd=KELP, commit="1a2b3c4"):
    talk = Talk("s1", cwd=cwd).user("Where do we keep the sessions of visitors?")
    talk.assistant(f"[MEMORY: decision] {CHOICE}")
    edited(talk, "src/cache.py", COMMIT, commit)
    edited(talk, "README.md", "Correct the name of the harbour", "5d6e7f8")
    bench.stage(talk.write(bench.projects))
    bench.run()
    return talk


def later(bench, at: datetime = THREE_DAYS, name="s2", prompt="Take the last change back, please."):
    return Talk(name, start=at).user(prompt)


def read(bench, talk):
    bench.stage(talk.write(bench.projects))
    bench.run()


def revert(bench, command):
    talk = later(bench).call("Bash", '[main 9f8e7d6] Revert "x"', command=command)
    read(bench, talk)
    return talk


def rows(bench):
    listed = query_tables(bench.context, "select kind, days, text, is_settled from outcomes order by all")
    return [tuple(row) for row in listed.rows]


def chosen(bench):
    [row] = [row for row in bench.memories() if row["text"].startswith("Use Redis")]
    return row


def line_of_brief(bench):
    brief = bench.store.published.brief(chosen(bench)["project_id"])
    [line] = [line for line in brief.splitlines() if "Redis for the session cache" in line]
    return line


@pytest.mark.parametrize(
    "command",
    ["git revert --no-edit 1a2b3c4", 'git commit -m "Revert it" -m "This reverts commit 1a2b3c4."'],
)
def test_a_decision_whose_commit_was_reverted_says_so_everywhere(bench, command):
    begin(bench)
    assert rows(bench) == [] and REVERTED not in line_of_brief(bench)
    revert(bench, command)
    [(kind, days, _, is_settled)] = rows(bench)
    assert (kind, days, is_settled) == ("reverted", 3, False)
    assert REVERTED in line_of_brief(bench)
    details = show(bench.context, chosen(bench)["memory_id"])
    assert outcome_lines(details.outcomes)[0].startswith("reverted 3 days later: ")
    assert details.doubt is not None and details.doubt.mark == REVERTED
    [step] = infer(bench.context, chosen(bench)["memory_id"]).chain
    assert [row["kind"] for row in step.outcomes] == ["reverted"]
    request = ViewRequest(bench.context, "/", {"memory": step.memory_id})
    assert show_memory(request).data["outcomes"] == outcome_lines(step.outcomes)
    listed = reasoning_tools._step(SimpleNamespace(excerpt=400), step)
    assert listed.data["outcomes"] == outcome_lines(step.outcomes)


def test_a_revert_of_another_commit_is_none_of_the_decision(bench):
    begin(bench)
    revert(bench, "git revert --no-edit 5d6e7f8")
    assert rows(bench) == [] and "[" not in line_of_brief(bench)


def test_what_later_sessions_worked_on_held(bench):
    begin(bench)
    read(bench, edited(later(bench, prompt="Go on."), "src/cache.py", "Speed the cache up", "7a7a7a7"))
    assert [row[:2] for row in rows(bench)] == [("held", 3)]
    assert "[" not in line_of_brief(bench)


def test_what_was_brought_back_is_settled(bench):
    begin(bench)
    revert(bench, "git revert --no-edit 1a2b3c4")
    read(bench, edited(later(bench, FOUR_DAYS, "s3", "Put it back."), "src/cache.py", COMMIT, "7a7a7a7"))
    assert [(kind, is_settled) for kind, *_, is_settled in rows(bench)] == [
        ("held", True),
        ("reverted", True),
    ]
    assert "[" not in line_of_brief(bench)


def test_a_complaint_that_nothing_settled_is_marked_until_work_goes_on(bench):
    begin(bench)
    talk = later(bench, prompt="The Redis cache still fails after a restart of the harbour.")
    talk.call("Edit", "done", file_path=f"{KELP}/src/other.py", old_string="a", new_string="b")
    read(bench, talk.assistant("I looked at the other file and changed its first line."))
    assert [row[:2] for row in rows(bench)] == [("complained", 3)]
    assert "[complained about 3 days later]" in line_of_brief(bench)
    read(bench, edited(later(bench, FOUR_DAYS, "s3", "Go on."), "src/cache.py", "Mend a restart", "7a7a7a7"))
    assert "[" not in line_of_brief(bench)


def test_a_run_again_gives_the_same_and_a_forgotten_session_leaves_nothing(bench):
    begin(bench)
    talk = revert(bench, 'git commit -m "Revert it" -m "This reverts commit 1a2b3c4."')
    before, line = rows(bench), line_of_brief(bench)
    bench.run("nightly")
    assert (rows(bench), line_of_brief(bench)) == (before, line)
    Memory.of(bench.context).forget_session(talk.session_id)
    bench.run()
    assert rows(bench) == [] and REVERTED not in line_of_brief(bench)
    files = [path for path in (bench.home / "published").rglob("*") if path.is_file()]
    assert [path for path in files if b"Revert it" in path.read_bytes()] == []


def test_a_revert_that_git_alone_has_seen_counts(bench):
    folder = bench.projects / "kelp"
    folder.mkdir(parents=True)

    def git(*words, at=START):
        stamp = {
            "GIT_AUTHOR_DATE": at.isoformat(),
            "GIT_COMMITTER_DATE": at.isoformat(),
            "HOME": "/nonexistent",
        }
        own = ["-c", "user.name=T", "-c", "user.email=t@example.org"]
        ran = subprocess.run(
            ["git", *own, *words], cwd=folder, check=True, capture_output=True, env={**os.environ, **stamp}
        )
        return ran.stdout.decode().strip()

    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "Begin")
    (folder / "cache.py").write_text("x = 1\n")
    git("add", "cache.py")
    git("commit", "-q", "-m", COMMIT)
    begin(bench, str(folder), git("rev-parse", "--short=7", "HEAD"))
    assert rows(bench) == []
    git("revert", "--no-edit", "HEAD", at=THREE_DAYS)
    bench.run(now=NOW)
    assert [row[:2] for row in rows(bench)] == [("reverted", 3)]
    assert REVERTED in line_of_brief(bench)
    git("revert", "--no-edit", "HEAD", at=FOUR_DAYS)
    bench.run(now=NOW)
    assert REVERTED not in line_of_brief(bench)
