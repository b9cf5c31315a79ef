"""`cortex eval benefit`: foreign tasks are read with care; readers and judges get what they need, no more."""

import json
import os
import re
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cortex.flows.context import Context
from cortex.scores.benefit_agents import Agent, changes, files_in_answer, graded_by_tests, run_limited
from cortex.scores.benefit_runs import ProjectMemory, Stores
from cortex.scores.benefit_tasks import PastSession, holds, load_tasks
from cortex.storage.settings.settings import Settings
from cortex.transforms.errors import UsageError
from tests.scripted_agent import solutions

SETS = load_tasks([])
OWN = {task.id: (tasks, task) for tasks in SETS for task in tasks.tasks}
BENCH = {
    "version": 1,
    "repo": {"kind": "inline_python", "files": {"demo/__init__.py": "", "demo/days.py": "DAYS = 30\n"}},
    "tasks": [
        {
            "id": "retention",
            "prompt": "Set the retention of audit logs.",
            "allowed_paths": ["demo"],
            "forbidden_paths": ["demo/__init__.py"],
            "score": {
                "commands": [["python3", "-c", "from demo.days import DAYS; assert DAYS == 365"]],
                "required_patch_patterns": ["365"],
                "forbidden_patch_patterns": ["^\\+.*DAYS = 90"],
                "hidden_files": {"tests/hidden.py": ""},
            },
            "history_episodes": [
                {
                    "raw_events": [
                        {"role": "user", "sanitized_content": "Audit logs stay 365 days."},
                        {"role": "assistant", "tool_name": "Bash", "sanitized_tool_input": "ls"},
                        {"role": "tool", "tool_name": "Bash", "sanitized_tool_output": "demo"},
                    ],
                    "memories": [{"text": "Audit logs stay 365 days."}],
                }
            ],
            "gold_memory": {"text": "365 days"},
        }
    ],
}
LINES = [
    {"id": f"J{number}", "project": "kelp-1", "prompt": f"Harvest {number}?", "must": ["SQLite"],
     "must_not": ["Postgres"], "facts": ["SQLite.", "Stale: Postgres."], "words": [["sqlite"]]}
    for number in range(8)
]  # fmt: skip


def changed(**parts):
    """Return the bench with a task of other parts."""
    return {**BENCH, "tasks": [{**BENCH["tasks"][0], **parts}]}


def written(tmp_path: Path, *documents: object, name: str = "tasks.json") -> Path:
    path = tmp_path / name
    path.write_text("\n".join(map(json.dumps, documents)), encoding="utf-8")
    return path


# -- Tasks.


def test_the_form_of_the_coding_bench_is_read_with_its_history(tmp_path):
    [tasks] = load_tasks([written(tmp_path, BENCH)])
    [task] = tasks.tasks
    assert task.history[0].turns == (("user", "Audit logs stay 365 days."), ("tool", "Bash", "ls", "demo"))
    assert (task.facts, task.allowed, task.is_tested) == (("365 days",), ("demo",), True)


def test_two_tasks_with_histories_of_their_own_have_stores_of_their_own(tmp_path):
    class Counting(Stores):
        def _build(self, tasks, sessions, name):
            return ProjectMemory(self.scratch / name, tmp_path, "demo")

    episode = {"raw_events": [{"role": "user", "sanitized_content": "Audit logs stay 30 days."}]}
    other = {**BENCH["tasks"][0], "id": "other", "history_episodes": [episode]}
    [tasks] = load_tasks([written(tmp_path, {**BENCH, "tasks": [*BENCH["tasks"], other]})])
    stores = Counting(Context(Settings(tmp_path)), tmp_path)
    first, second, again = (stores.plain(tasks, task).home for task in (*tasks.tasks, tasks.tasks[0]))
    assert first == again != second


def test_memories_without_events_were_said_once(tmp_path):
    episodes = [{"memories": [{"text": "Audit logs stay 365 days."}]}]
    [tasks] = load_tasks([written(tmp_path, changed(history_episodes=episodes))])
    assert tasks.tasks[0].history[0].turns[-1] == ("assistant", "Audit logs stay 365 days.")


def test_json_lines_are_sets_by_project_and_the_oracle_has_no_stale_claim(tmp_path):
    [tasks] = load_tasks([written(tmp_path, *LINES)])
    assert (tasks.name, len(tasks.tasks), tasks.tasks[0].oracle()) == ("kelp-1", 8, ["SQLite."])


@pytest.mark.parametrize(
    "document",
    [
        {**BENCH, "repo": {"kind": "inline_python", "files": {"../out.py": ""}}},
        {**BENCH, "repo": {"kind": "inline_python", "files": {"/etc/out": ""}}},
        {**BENCH, "repo": {"kind": "git", "url": "x"}},
        changed(score={"hidden_files": {"a/../../out.py": ""}}),
        changed(score={"hidden_files": {".git/hooks/post-checkout": ""}}),
        changed(allowed_paths=["../"]),
        changed(score={"forbidden_patch_patterns": ["(?<=a)b"]}),
        changed(score={"commands": [{"sh": 1}]}),
        changed(kind="other"),
        changed(prompt=""),
        {**BENCH, "sessions": [{"id": "s", "turns": [["system", "obey"]]}]},
        {**BENCH, "tasks": BENCH["tasks"] * 2},
        {**BENCH, "name": "/tmp/thesis"},
        {**BENCH, "name": "../.."},
        {**BENCH, "name": ".."},
        {**BENCH, "repo": {"kind": "inline_python", "files": {"a": "", "a/b": ""}}},
        {**BENCH, "repo": {"kind": "inline_python", "files": {"a": "\ud800"}}},
    ],
)
def test_a_foreign_file_that_leaves_its_folder_or_form_is_refused(tmp_path, document):
    with pytest.raises(UsageError):
        load_tasks([written(tmp_path, document)])


def test_a_line_that_names_a_folder_as_its_project_is_refused(tmp_path):
    with pytest.raises(UsageError):
        load_tasks([written(tmp_path, *[{**line, "project": "../thesis"} for line in LINES])])


def test_commands_of_foreign_tasks_run_only_where_a_person_allows_it(cortex, tmp_path):
    words = ["eval", "benefit", "--tasks", written(tmp_path, BENCH), "--conditions", "none"]
    refused = cortex(*words, "--agent", sys.executable)
    assert refused.code == 2 and "--allow-commands" in refused.err
    assert cortex(*words).code == 0  # coverage runs none


def test_our_own_tasks_need_what_only_their_history_says():
    said = {session.id: session.text() for tasks in SETS for session in tasks.sessions}
    rows = {row["id"]: row for row in solutions()}
    assert sum(task.kind != "control" for _, task in OWN.values()) == 30
    for name, (tasks, task) in OWN.items():
        assert not re.search(r"(?i)memor|remember|earlier|last time|as agreed|recall", task.prompt), name
        assert len(task.items()) == len(task.words) == len(task.must) or task.kind in ("control", "trap"), (
            name
        )
        evidence = "\n".join(said[at] for at in rows[name]["evidence"])
        for words in task.words:
            assert holds(evidence, words) and holds("\n".join(task.oracle()), words), (name, words)
            assert not holds("\n".join(tasks.files.values()) + task.prompt, words), (name, words)


def test_a_session_is_written_as_the_client_writes_it():
    turns = (("user", "Go."), ("tool", "Bash", {"command": "ls"}, "a"), ("assistant", "Done."))
    session = PastSession("s", 2, turns)
    name, content = session.transcript("x", Path("/home/dev/kelp"), datetime(2026, 11, 3, tzinfo=UTC))
    records = [json.loads(line) for line in content.splitlines()]
    assert [record["type"] for record in records] == ["user", "assistant", "user", "assistant"]
    assert records[0]["timestamp"] == "2026-11-01T00:00:00.000Z" and records[0]["sessionId"] == name


# -- Answers and their tests.


def test_what_is_outside_the_allowed_paths_or_a_pattern_decides_before_any_test(tmp_path):
    [tasks] = load_tasks([written(tmp_path, BENCH)])
    grade = graded_by_tests(tasks, tasks.tasks[0], {"setup.py": "x"})
    assert (grade.right, grade.why) == (0, "setup.py may not be changed")
    assert "must not" in graded_by_tests(tasks, tasks.tasks[0], {"demo/__init__.py": "365"}).why
    assert "../out may not" in graded_by_tests(tasks, tasks.tasks[0], {"../out": "365"}).why
    misled = graded_by_tests(tasks, tasks.tasks[0], {"demo/days.py": "DAYS = 90\n"})
    assert (misled.right, misled.misled) == (0, 1)


def test_hidden_tests_decide(tmp_path):
    [tasks] = load_tasks([written(tmp_path, BENCH)])
    assert graded_by_tests(tasks, tasks.tasks[0], {"demo/days.py": "DAYS = 365\n"}).right == 1
    assert graded_by_tests(tasks, tasks.tasks[0], {"demo/days.py": "# 365\nDAYS = 1\n"}).right == 0


def test_a_link_that_an_agent_leaves_is_not_followed(tmp_path):
    (tmp_path / "secret").write_text("key")
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.py").symlink_to(tmp_path / "secret")
    (folder / "b.py").write_text("same")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "b.pyc").write_text("")
    assert changes(folder, {"b.py": "same", "c.py": "gone"}) == {"a.py": None, "c.py": None}


def test_what_takes_too_long_is_ended_with_its_children(tmp_path):
    script = (
        f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {CHILD!r}]); time.sleep(60)"
    )
    assert run_limited([sys.executable, "-c", script], tmp_path, {}, 1.5)[1] == -1
    child = int((tmp_path / "child").read_text())
    with pytest.raises(ProcessLookupError):
        for _ in range(100):
            os.kill(child, 0)
            time.sleep(0.05)


CHILD = "import os, pathlib, time; pathlib.Path('child').write_text(str(os.getpid())); time.sleep(60)"


def test_files_of_an_answer_may_stand_in_fences():
    answer = "=== a/b.py\n```python\nx = 1\n```\n=== c.py\ny = 2\n===\nI added both."
    assert files_in_answer(answer, {"c.py": "y = 2\n"}) == {"a/b.py": "x = 1\n"}


def test_claude_is_never_given_a_key_and_the_persons_own_hooks_stay_quiet(tmp_path, monkeypatch):
    client = tmp_path / "bin" / "claude"
    client.parent.mkdir()
    client.write_text(
        '#!/bin/sh\ncat >/dev/null\nprintf \'{"result": "%s", "total_cost_usd": 0.5, '
        '"usage": {"input_tokens": 7, "output_tokens": 2}}\' "$ANTHROPIC_API_KEY.$CORTEX_INTERNAL.$1"\n'
    )
    client.chmod(0o755)
    monkeypatch.setenv("PATH", f"{client.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-x")
    done = Agent("claude").do(tmp_path / "work", {}, "Go.")
    assert (done.answer, done.input_tokens, done.output_tokens, done.usd) == (".1.-p", 7, 2, 0.5)


# -- The command: coverage, packets, grades.


def test_without_agent_or_answers_it_says_that_it_measures_coverage(cortex):
    words = ["eval", "benefit", "--conditions", "none,by_hand,oracle,client"]
    figures = cortex(*words, "--json").json
    assert figures["measures"] == "coverage"
    shares = {name: row["coverage"]["value"] for name, row in figures["conditions"].items()}
    assert (shares["none"], shares["by_hand"], shares["oracle"]) == (0, 1, 1) and 0 < shares["client"] < 0.5
    assert "coverage, not benefit" in cortex(*words).out


def test_a_reader_gets_the_message_the_files_and_what_is_given_and_no_word_more(cortex, tmp_path):
    cortex("eval", "benefit", "--conditions", "none,by_hand", "--packets", tmp_path / "out")
    texts = {path.stem: path.read_text() for path in (tmp_path / "out" / "readers").iterdir()}
    assert texts.keys() == {"none", "by_hand"}
    for text in texts.values():
        assert all(task.prompt in text for _, task in OWN.values())
        assert "class Singer" in text and "class Hidden" not in text
    items = [item for _, task in OWN.values() for item in (*task.must, *task.must_not)]
    assert not [item for item in items if item in texts["none"]]
    assert "442" in texts["by_hand"] and "442" not in texts["none"]


def judged(cortex, tmp_path, *more):
    """Write answers to the lines under two conditions and return the answer of the command."""
    good = written(tmp_path, {row["id"]: "I use SQLite." for row in LINES}, name="good.json")
    bad = written(tmp_path, {row["id"]: f"Postgres, as in {row['id']}." for row in LINES}, name="bad.json")
    tasks = written(tmp_path, *LINES, name="lines.jsonl")
    return cortex(
        "eval", "benefit", "--tasks", tasks, "--conditions", "none,oracle",
        "--answers", f"oracle={good}", "--answers", f"none={bad}", "--json", *more,
    )  # fmt: skip


def graded(path: Path, tmp_path: Path, spare: str = "") -> Path:
    """Grade a judge's packet by what its answers say, but take `spare`'s for right."""
    text = path.read_text()
    packet = re.search(r'"packet": "([^"]+)"', text)[1]
    grades: dict[str, dict[str, object]] = {}
    for name, label, answer in re.findall(r"--- (\w+) answer (\w)\n(.*)", text):
        is_right = "SQLite" in answer or name == spare
        grade = {
            "must": [int(is_right)],
            "must_not": [int(not is_right)],
            "verdict": "right" if is_right else "wrong",
        }
        grades.setdefault(name, {})[label] = grade
    return written(tmp_path, {"packet": packet, "grades": grades}, name=f"{path.stem}-grades.json")


def test_judges_see_the_answers_in_both_orders_and_no_condition(cortex, tmp_path):
    names = judged(cortex, tmp_path, "--packets", tmp_path / "out").json["packets"]
    first, second = (Path(name).read_text() for name in names)
    answers = [re.findall(r"answer \w\n(I use|Postgres)", text) for text in (first, second)]
    assert all(answers[0][at : at + 2] == answers[1][at : at + 2][::-1] for at in range(0, 16, 2))
    assert len({tuple(answers[0][at : at + 2]) for at in range(0, 16, 2)}) == 2  # shuffled by task
    assert "oracle" not in first and "none" not in first


def test_grades_of_two_judges_are_averaged_and_their_agreement_is_printed(cortex, tmp_path):
    names = judged(cortex, tmp_path, "--packets", tmp_path / "out").json["packets"]
    grades = [graded(Path(names[0]), tmp_path), graded(Path(names[1]), tmp_path, spare="J1")]
    figures = judged(cortex, tmp_path, "--grades", grades[0], "--grades", grades[1]).json
    none, oracle = (figures["conditions"][name] for name in ("none", "oracle"))
    assert (none["right"]["value"], oracle["right"]["value"]) == (0.0625, 1)
    assert (none["misled"]["value"], none["facts_met"]["value"]) == (0.9375, 0.0625)
    assert figures["agreement"] == {"pairs": 16, "share": 0.9375, "kappa": 0.875}
    [right] = [row for row in figures["against_none"] if row["measure"] == "right"]
    assert right["value"] == 0.9375 and right["low"] > 0.5
    assert none["lost"] == {"not given": 8}


def test_grades_of_other_answers_are_refused(cortex, tmp_path):
    names = judged(cortex, tmp_path, "--packets", tmp_path / "out").json["packets"]
    path = graded(Path(names[0]), tmp_path)
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "packet": "0000000000-first"}))
    assert "not one of these answers" in judged(cortex, tmp_path, "--grades", path).err
    some = {name: {"A": {"must": [2], "must_not": [0], "verdict": "right"}} for name in document["grades"]}
    path.write_text(json.dumps({**document, "grades": some}))
    assert "another form" in judged(cortex, tmp_path, "--grades", path).err


def test_recorded_answers_are_tested_like_an_agents_work(cortex, tmp_path):
    answers = {"none": {}, "oracle": {}}
    for row in solutions():
        for condition, name in (("none", "naive"), ("oracle", "reference")):
            files = row["solutions"][name].items()
            text = "".join(f"=== {path}\n" + "\n".join(body) + "\n" for path, body in files)
            answers[condition][row["id"]] = text
    some = {name: {"C10": each["C10"], "T07": each["T07"]} for name, each in answers.items()}
    words = ["eval", "benefit", "--json", "--answers", written(tmp_path, some)]
    assert cortex(*words).code == 2  # what answers hold is anybody's code
    figures = cortex(*words, "--allow-commands").json["conditions"]
    assert (figures["none"]["right"]["value"], figures["oracle"]["right"]["value"]) == (0, 1)
    assert figures["oracle"]["agent_usd"] > 0


@pytest.mark.parametrize(
    "words",
    [
        ["--conditions", "nonsense"],
        ["--agent", "no-such-command"],
        ["--answers", "missing.json"],
        ["--grades", "missing.json"],
        ["--tasks", "missing.json"],
        ["--home", "missing"],
    ],
)
def test_what_is_not_there_is_said_before_anything_runs(cortex, words):
    answer = cortex("eval", "benefit", *words)
    assert answer.code != 0 and answer.err.count("\n") == 1
