"""Without an engine a session is told what the last ones tagged and planned (spec 5.3, 11.1, 13.2)."""

import json
import os
import shutil
import subprocess
import time
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.hooks import basic_brief, transcript_end
from cortex.hooks.echo import PROVENANCE
from cortex.hooks.private import is_below
from cortex.hooks.prose import own_prose, plain
from cortex.hooks.prose.memory_types import BASIC_SECTIONS, MEMORY_TAGS
from cortex.hooks.prose.plain import without_private
from cortex.transforms.extract import prose as tags
from cortex.transforms.extract.language import statements
from cortex.transforms.redaction.redact import redact
from tests.examples import cases
from tests.rows import turn
from tests.unit.transforms.brief.test_render import HOSTILE

SESSION = "0b6f4a52-7d3e-4c1b-9a55-3f1c8e2d7a10"
DAY = "2026-11-02T09:00:00.000Z"


def record(content, *, kind="assistant", **fields):
    told = {"type": kind, "sessionId": SESSION, "timestamp": DAY, "cwd": "/home/ada/kiln"}
    return {**told, "message": {"role": kind, "content": content}, **fields}


def prose(text, **fields):
    return record([{"type": "text", "text": text}], **fields)


def call(tool, given, use_id="t1"):
    return record([{"type": "tool_use", "id": use_id, "name": tool, "input": given}])


def result(text, use_id="t1", *, is_error=False):
    block = {"type": "tool_result", "tool_use_id": use_id, "content": text, "is_error": is_error}
    return record([block], kind="user")


def todo(**statuses):
    return {"todos": [{"content": step, "status": status} for step, status in statuses.items()]}


def write(client, *records, name=SESSION, modified=None):
    lines = [json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in records]
    path = client.write_transcript(name, "".join(line + "\n" for line in lines))
    if modified:
        os.utime(path, (modified, modified))
    return path


def start(client, source="startup", name="new-session", cwd="/home/ada/kiln", **environment):
    transcript = client.folder / "projects" / "-home-ada-kiln" / f"{name}.jsonl"
    ran = client.hook("session-start", client.payload(transcript, source=source, cwd=cwd), **environment)
    assert (ran.returncode, ran.stderr) == (0, b"") and client.log == ""
    return json.loads(ran.stdout)["hookSpecificOutput"]["additionalContext"] if ran.stdout else ""


def facts(text):
    return [line for line in text.split("\n") if line.startswith("- ")]


# What is told


def test_what_the_last_session_tagged_stands_in_the_frame_of_the_real_brief(client):
    write(
        client,
        prose(
            "Done.\n\n[MEMORY: decision] Glazes are fired at 1,240 °C, because the clay bloats above.\n"
            "[MEMORY: rejected] A gas kiln, because of the permit.\n"
            "[MEMORY: gotcha] The pyrometer drifts when wet.\n"
        ),
    )
    assert start(client).split("\n") == [
        "# Notes from earlier sessions: kiln",
        plain.PREAMBLE,
        "",
        "## Decisions",
        "- Rejected: A gas kiln, because of the permit. (2 Nov 26)",
        "- Glazes are fired at 1,240 °C, because the clay bloats above. (2 Nov 26)",
        "",
        "## Gotchas",
        "- The pyrometer drifts when wet. (2 Nov 26)",
        "",
        basic_brief.BASICS,
        plain.CLOSING,
    ]


def test_a_todo_list_is_told_with_its_current_step(client):
    steps = {"Mix the slip": "completed", "Wedge": "completed", "Throw the bowls": "in_progress"}
    ahead = {"Bisque": "pending", "Glaze": "pending", "Fire": "pending"}
    write(
        client,
        call("TodoWrite", todo(**dict.fromkeys(steps, "pending"))),
        call("TodoWrite", todo(**steps, **ahead)),
    )
    assert start(client).split("\n")[3:8] == [
        "## Where this stands",
        "- Task list (2 Nov 26)",
        "  - done: 2 steps, last: Wedge",
        "  - now: Throw the bowls",
        "  - next: Bisque; Glaze; then 1 more",
    ]


def test_a_checklist_in_prose_is_a_plan(client):
    write(client, prose("Now:\n\n- [x] Wedge the clay\n- [ ] Throw the bowls\n- [ ] Fire\n"))
    assert start(client).split("\n")[4:7] == [
        "- Task list (2 Nov 26)",
        "  - done: Wedge the clay",
        "  - next: Throw the bowls; Fire",
    ]


def test_the_task_tools_give_a_plan_under_the_title_of_the_approved_one(client):
    write(
        client,
        call("ExitPlanMode", {"plan": "# Plan: New kiln shelf\n\nFirst measure."}, "p"),
        result("User has approved your plan", "p"),
        call("TaskCreate", {"subject": "Measure"}, "a"),
        result("Task #7 created successfully: Measure", "a"),
        call("TaskCreate", {"subject": "Saw"}, "b"),
        result("Task #8 created successfully: Saw", "b"),
        call("TaskUpdate", {"taskId": "7", "status": "completed"}, "c"),
        result("Updated task #7 status", "c"),
        call("TaskUpdate", {"taskId": "8", "status": "in_progress"}, "d"),
    )
    assert start(client).split("\n")[4:7] == [
        "- New kiln shelf (2 Nov 26)",
        "  - done: Measure",
        "  - now: Saw",
    ]


@pytest.mark.parametrize(
    "calls",
    [
        [call("TodoWrite", todo(Mix="completed", Throw="completed"))],
        [call("TodoWrite", todo(Mix="in_progress"))],
        [call("TodoWrite", todo(Mix="in_progress", Throw="pending")), result("refused", is_error=True)],
        [call("TodoWrite", {"todos": "none"})],
        [call("TaskUpdate", {"taskId": "1", "status": "completed"})],
        [record([{"type": "text", "text": '{"name": "TodoWrite"}'}])],
        [prose("- [ ] Only one\n- [link](x)")],
        [prose("- [ ] Wedge\n- [ ] Throw"), prose("- [x] Wedge\n- [x] Throw\n- [ ] ")],
    ],
    ids=[
        "all done",
        "one step",
        "refused",
        "malformed",
        "of a list never seen",
        "talked about",
        "one box",
        "all ticked",
    ],
)
def test_what_is_no_living_plan_is_not_told(client, calls):
    write(client, *calls)
    assert start(client) == ""


def test_the_newest_session_comes_first_and_each_fact_once(client):
    now = time.time()
    write(
        client, prose("[MEMORY: decision] Old.\n[MEMORY: decision] Said twice."), name="a", modified=now - 60
    )
    write(client, prose("[MEMORY: decision] said twice.\n[MEMORY: decision] New."), name="b", modified=now)
    assert [line[2:].split(" (")[0] for line in facts(start(client))] == ["New.", "said twice.", "Old."]


def test_only_the_last_sessions_are_read(client):
    for number in range(8):
        write(client, prose(f"[MEMORY: context] Session {number}."), name=f"s{number}", modified=1e9 + number)
    told = "".join(facts(start(client)))
    assert "Session 7." in told and "Session 4." in told and "Session 2." not in told


def test_after_a_compaction_the_session_itself_counts(client):
    write(
        client,
        prose("[MEMORY: decision] Bowls first."),
        call("TodoWrite", todo(Wedge="completed", Throw="in_progress")),
    )
    told = start(client, "compact", name=SESSION)
    assert "- Bowls first." in told and "  - now: Throw" in told


def test_the_same_transcripts_give_the_same_bytes(client):
    for number in range(4):
        write(client, prose(f"[MEMORY: pattern] Habit {number}."), name=f"s{number}", modified=1e9 + number)
    assert start(client) == start(client, name="another") != ""


# Where it is not told, or something else is


def test_the_engines_brief_wins(client):
    write(client, prose("[MEMORY: decision] Tagged."))
    client.publish("/home/ada/kiln", "p1", "The real brief.")
    assert start(client) == "The real brief."


def test_where_the_engine_is_gone_its_brief_is_followed_by_what_came_after(client):
    old = write(client, prose("[MEMORY: decision] Before."), name="old", modified=1e9)
    client.publish("/home/ada/kiln", "p1", "The real brief.")
    manifest = client.home / "runs" / "manifest.json"
    manifest.parent.mkdir()
    manifest.write_text("{}")
    os.utime(manifest, (1.1e9, 1.1e9))
    assert start(client) == "The real brief." and old.exists()
    write(client, prose("[MEMORY: decision] After."))
    told = f"The real brief.\n\n{basic_brief.LATER}\n- After. (2 Nov 26)"
    assert start(client) == told
    (client.home / "engine").write_text("/gone/cortex\n")
    assert start(client) == told
    (client.home / "engine").write_text("/bin/sh\n")
    assert start(client) == "The real brief."


def test_what_was_forgotten_does_not_come_back_from_the_transcript(client):
    write(client, prose("[MEMORY: decision] Forgotten."))
    client.publish("/home/ada/kiln", "p1", "")
    assert start(client) == ""


def test_an_excluded_project_is_not_read(client):
    write(client, prose("[MEMORY: decision] Secret glaze."))
    client.home.mkdir(exist_ok=True)
    config = client.home / "config.toml"
    config.write_text('[capture]\nexcluded_projects = [\n  "/elsewhere",\n  "/home/ada",\n]\n')
    assert start(client) == ""
    config.write_text('[capture]\nexcluded_projects = ["/home/ada/kil"]\n')
    assert "Secret glaze" in start(client)
    assert start(client, CORTEX_CAPTURE_EXCLUDED_PROJECTS=f"/elsewhere{os.pathsep}/home/ada/kiln") == ""


def test_a_folder_is_excluded_whatever_its_capitals_where_they_do_not_matter(tmp_path, monkeypatch):
    (tmp_path / "secret" / "deep").mkdir(parents=True)
    real = os.stat
    monkeypatch.setattr(os, "stat", lambda path: real(str(path).replace("SECRET", "secret")))
    above = (str(tmp_path / "secret"),)
    assert is_below(str(tmp_path / "SECRET" / "deep"), above)
    assert not is_below(str(tmp_path / "SECRETS"), above)


def test_a_folder_is_excluded_by_whatever_link_leads_there(client, tmp_path):
    (tmp_path / "secret" / "in").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    for named, cwd in (("secret", "link/in"), ("link", "secret/in"), ("link", "link")):
        assert is_below(str(tmp_path / cwd), ("/elsewhere", str(tmp_path / named)))
    assert not is_below(str(tmp_path / "secrets"), (str(tmp_path / "link"),))
    assert not is_below("/a\0b", ("/home",)) and not is_below("/home", ())


def test_where_the_file_system_numbers_no_folder_only_names_tell_them_apart(tmp_path, monkeypatch):
    for name in ("secret", "work"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(os, "stat", lambda path: SimpleNamespace(st_dev=5, st_ino=0))
    assert is_below(str(tmp_path / "secret" / "deep"), (str(tmp_path / "secret"),))
    assert not is_below(str(tmp_path / "work"), (str(tmp_path / "secret"),))


@pytest.mark.parametrize(
    "written",
    [
        '[capture]\nexcluded_projects = ["/a[b]c", "/home/ada"]',
        'capture.excluded_projects = ["/home/ada"]',
        'capture = { excluded_projects = ["/home/ada"] }',
        '[capture]\n"excluded_projects" = ["/home/ada"]',
        '[capture]\nexcluded_projects = [ # not [these]\n  "/home/ada",\n]',
    ],
)
def test_an_exclusion_holds_however_it_is_written(client, written):
    write(client, prose("[MEMORY: decision] Secret glaze."))
    client.home.mkdir(exist_ok=True)
    (client.home / "config.toml").write_text(written)
    assert tomllib.loads(written)["capture"]["excluded_projects"][-1] == "/home/ada"
    assert start(client) == ""


def test_words_of_an_excluded_folder_within_are_left_out(client):
    write(
        client,
        prose("[MEMORY: decision] Open."),
        prose("[MEMORY: decision] Shut.", cwd="/home/ada/kiln/vault"),
    )
    client.home.mkdir(exist_ok=True)
    (client.home / "config.toml").write_text("[capture]\nexcluded_projects = ['/home/ada/kiln/vault']")
    assert [line[:7] for line in facts(start(client))] == ["- Open."]


def test_a_transcript_that_the_client_deleted_is_read_from_staging(client):
    transcript = write(client, prose("[MEMORY: decision] Kept."))
    client.hook("stop", client.payload(transcript))
    transcript.unlink()
    assert "- Kept." in start(client)


def test_a_subfolder_and_a_worktree_share_what_was_said_in_their_repository(client):
    repository, worktree = client.folder / "work" / "kiln", client.folder / "work" / "kiln-glaze"
    (repository / ".git" / "worktrees" / "glaze").mkdir(parents=True)
    (repository / "src").mkdir()
    worktree.mkdir()
    (worktree / ".git").write_text(f"gitdir: {repository}/.git/worktrees/glaze\n")
    transcript = write(client, prose("[MEMORY: decision] Shared."))
    client.hook("stop", client.payload(transcript, cwd=str(repository)))
    for cwd in (repository / "src", worktree):
        missing = client.folder / "projects" / "-other" / "s.jsonl"
        ran = client.hook("session-start", client.payload(missing, source="startup", cwd=str(cwd)))
        assert b"- Shared." in ran.stdout and b"sessions: kiln\\n" in ran.stdout


@pytest.mark.parametrize(
    "one",
    [
        prose("[MEMORY: decision] No.", isSidechain=True),
        prose("[MEMORY: decision] No.", isApiErrorMessage=True),
        record([{"type": "text", "text": "[MEMORY: decision] No."}], kind="user"),
        record([{"type": "thinking", "thinking": "[MEMORY: decision] No."}]),
        result("[MEMORY: decision] No.\n"),
        {"type": "attachment", "attachment": {"type": "hook_success", "stdout": "[MEMORY: decision] No."}},
        prose("<private>\n[MEMORY: decision] No.\n</private>"),
        prose("As told: the line `[MEMORY: decision] No.` keeps it."),
        prose("[MEMORY: decision] No, it was told. (2 Nov 26)"),
        prose("[MEMORY: invented] No."),
        prose("[MEMORY: decision] ...\n[MEMORY: plan] <text>"),
    ],
)
def test_only_the_assistants_own_tags_count(client, one):
    write(client, one)
    assert start(client) == ""


# What it holds against


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_stays_on_its_line(client, hostile):
    flat = hostile.replace("\n", " ")
    write(
        client,
        prose(f"[MEMORY: decision] {flat}"),
        call(
            "TodoWrite",
            {
                "todos": [
                    {"content": hostile, "status": "in_progress"},
                    {"content": "Throw", "status": "pending"},
                ]
            },
        ),
    )
    told = start(client)
    frame = {"", plain.PREAMBLE, plain.CLOSING, basic_brief.BASICS, "# Notes from earlier sessions: kiln"}
    for line in told.split("\n"):
        assert line in frame | {"## Where this stands", "## Decisions"} or line.startswith(("- ", "  - ")), (
            line
        )
    assert "<" not in told.replace("<private>", "") and "[MEMORY: decision]" not in told


SECRETS = [
    "The key is ghp_a8Zq3LmN0pQrStUvWxYz1234567890abcdef.",
    "Deploy with AKIAQ7RZT2LM4XV9PKWD today.",
    "password: korrekt-horse-7",
    'Set api_key="9f8e7d6c5b4a".',
    "postgres://ada:kiln7@db.example:5432/glaze",
    "Use sk-ant-api03-Qm8vT2xLr5Kp9Zs4Wn7Yb3Hd6Fg1Jc0.",
    "Authorization: Bearer mF9aB3cD7eF1gH5iJ",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_a_line_with_a_plain_secret_is_dropped_whole(client, secret):
    write(client, prose(f"[MEMORY: context] {secret}\n[MEMORY: context] Harmless."))
    assert [line[:12] for line in facts(start(client))] == ["- Harmless. "]
    assert redact(secret)[1], "the engine marks it too"


def test_words_about_secrets_are_no_secrets():
    for text in (
        "Tokens expire after 30 minutes; the secret is rotated by hand.",
        "Pin commit 3f786850e387550fdab836ed7e6dc881de23001b, the next one breaks the build.",
        "Passwords are hashed with argon2.",
    ):
        assert plain.brief_line(text, 300) == text


def test_a_long_fact_is_cut_and_a_long_day_stays_within_its_room(client):
    lines = [f"[MEMORY: {kind}] Fact {n} " + "word " * 200 for n in range(2) for kind in MEMORY_TAGS]
    write(client, prose("\n".join(lines)))
    told = start(client)
    assert len(told) < 3_600 and all(len(line) < 340 for line in told.split("\n"))


@pytest.mark.parametrize(
    "text",
    [
        "not json\n",
        '{"type":"assistant","message":7}\n',
        "[1]\n",
        '{"type":"assistant"',
        "\n\n",
        '{"a":' * 2000,
        '{"type":"assistant","message":{"content":[{"type":"tool_use","name":"TodoWrite","input":null}]}}\n',
    ],
)
def test_a_broken_transcript_is_passed_over(client, text):
    client.write_transcript("broken", f"{text}[MEMORY: x\n")
    write(client, prose("[MEMORY: decision] Whole."), modified=1e9)
    assert "- Whole." in start(client)


def test_a_line_still_being_written_is_not_read_in_halves(client):
    path = write(client, prose("[MEMORY: decision] Whole."))
    with path.open("a") as file:
        file.write(json.dumps(prose("[MEMORY: decision] Half."))[:-9])
    assert [line[:8] for line in facts(start(client))] == ["- Whole."]


def test_of_a_huge_transcript_the_end_is_read(client):
    filler = prose("x" * 100_000)
    records = [prose("[MEMORY: decision] Early."), *[filler] * 15, prose("[MEMORY: decision] Late.")]
    write(client, *records)
    assert [line[:7] for line in facts(start(client))] == ["- Late."]


LONG = 20_000


@pytest.mark.parametrize(
    "text",
    [
        "[MEMORY: gotcha] " + "a" * LONG,
        "[MEMORY: gotcha] " + "[" * LONG,
        "[MEMORY: gotcha] " + "." * LONG + "x",
        "[MEMORY: gotcha] " + "-" * LONG + ">",
        "[MEMORY: gotcha] " + "!" * LONG + "[",
        "- [ ] one\n- [ ] " + "a" * LONG,
        "- [ ] one" + "\n" * LONG + "x",
    ],
    ids=["letters", "brackets", "dots", "dashes", "marks", "step", "empty lines"],
)
def test_no_line_holds_a_session_up(client, monkeypatch, text):
    monkeypatch.setattr(basic_brief, "BASIC_BRIEF_SECONDS", 60)
    path = write(client, prose("[MEMORY: decision] Early."), prose(text))
    began = time.process_time()
    told = basic_brief.basic_brief(str(client.home), str(path), "/home/ada/kiln")
    assert time.process_time() - began < 0.2
    assert "- Early." in told


def test_past_its_time_it_reads_no_session(client, monkeypatch):
    path = write(client, prose("[MEMORY: decision] Late."))
    monkeypatch.setattr(basic_brief, "BASIC_BRIEF_SECONDS", -1)
    assert basic_brief.basic_brief(str(client.home), str(path), "/home/ada/kiln") == ""
    monkeypatch.setattr(basic_brief, "BASIC_BRIEF_SECONDS", 60)
    assert "Late." in basic_brief.basic_brief(str(client.home), str(path), "/home/ada/kiln")


def test_past_its_time_it_tells_what_it_has(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps(prose("[MEMORY: decision] Late.")) + "\n")
    assert transcript_end.reports_in(str(path), time.monotonic() - 1)[0] == []
    assert [fact.text for fact in transcript_end.reports_in(str(path), time.monotonic() + 60)[0]] == ["Late."]


def test_no_word_of_it_is_written(client):
    write(client, prose("[MEMORY: decision] Told."))
    assert start(client)
    written = [path.read_bytes() for path in client.home.rglob("*") if path.is_file()]
    assert written and not any(b"Told" in content for content in written)


def python_of(version):
    """Return the path of a Python that works: one on the path, or one that pyenv keeps."""
    kept = Path.home().glob(f".pyenv/versions/{version}*/bin/python{version}")
    for found in (shutil.which(f"python{version}"), *map(str, kept)):
        if found and subprocess.run([found, "-c", ""], capture_output=True).returncode == 0:
            return found
    return None


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.12", "3.13"])
def test_it_runs_on_other_pythons(client, version):
    python = python_of(version)
    if not python:
        pytest.skip(f"no python{version} here")
    write(
        client, prose("[MEMORY: decision] Told."), call("TodoWrite", todo(Wedge="completed", Throw="pending"))
    )
    payload = client.payload(client.folder / "projects" / "-home-ada-kiln" / "new.jsonl", source="startup")
    hook = [python, "-I", "-S", str(client.folder / "hooks" / "hook.py"), "session-start"]
    ran = client.run(hook, payload, dict(os.environ))
    assert (ran.returncode, ran.stderr) == (0, b"") and client.log == ""
    assert b"- Told." in ran.stdout and b"  - next: Throw" in ran.stdout


# The same words as the engine's


@cases("text", [*HOSTILE, "plain", "`a` and `b", "1. 2) # x", "a < b <c", "!![x] [ memory : y]"])
def test_a_line_made_twice_stays_the_same(text):
    line = plain.on_one_line(text)
    assert plain.on_one_line(line) == line


@given(st.text(alphabet=st.sampled_from('a`~"#<>![]()-|*. \n\t\u2028\u202e\u200b\x00é1MEMORY:memory/')))
def test_a_line_of_anything_made_twice_stays_the_same(text):
    line = plain.on_one_line(text)
    assert plain.on_one_line(line) == line and "\n" not in line and "<!--" not in line


TAGGED = st.lists(
    st.sampled_from(
        [
            "[MEMORY: decision] Use it.",
            "- **[MEMORY: Plan]** go",
            "```",
            "~~~",
            "  [memory:gotcha] x",
            "[MEMORY: a] ...",
            "see [MEMORY: b] c",
            "<private>",
            "</private>",
            "[MEMORY: type] text",
            "plain",
            "[MEMORY: error] **b** [l](u)",
        ]
    )
)


@given(TAGGED)
def test_both_find_the_same_tags(lines):
    text = "\n".join(lines)
    found = [(kind, plain.brief_line(told, 400)) for kind, told in transcript_end.shown_tags(text)]
    engines = own_prose.tags_in(without_private(text))
    assert found == [(kind, plain.on_one_line(statements.plain(words))) for kind, words in engines]
    turns = [turn(1, without_private(text), kind="text", agent_id=None)]
    made = [row for row in tags.tag_candidates(turns) if row.source == "tag" and row.step_status is None]
    assert [plain.on_one_line(row.text.removeprefix("Plan: ")) for row in made] == [
        line for kind, line in found if kind in MEMORY_TAGS
    ]


def test_both_name_alike():
    assert {kind for _, _, kinds in BASIC_SECTIONS for kind in kinds} == set(MEMORY_TAGS)
    assert statements.plain("**Use** [it](x)") == plain.brief_line("**Use** [it](x)", 99) == "Use it"


def test_the_engine_knows_a_basic_line_for_its_own_words(client):
    write(
        client, prose("[MEMORY: decision] Told."), call("TodoWrite", todo(Wedge="completed", Throw="pending"))
    )
    assert all(PROVENANCE.search(line) for line in facts(start(client)))


# After a compaction, beside the engine's brief


def test_after_a_compaction_the_brief_is_followed_by_what_the_session_said_since(client):
    steps = todo(Wedge="completed", Throw="in_progress", Glaze="pending")
    write(
        client, prose("[MEMORY: decision] Bowls first, because the shelf is low."), call("TodoWrite", steps)
    )
    client.publish("/home/ada/kiln", "p1", "The real brief.")
    assert start(client, "compact", name=SESSION).split("\n") == [
        "The real brief.",
        "",
        "## Earlier in this session",
        "- Task list (2 Nov 26)",
        "  - done: Wedge",
        "  - now: Throw",
        "  - next: Glaze",
        "- Bowls first, because the shelf is low. (2 Nov 26)",
    ]
    assert start(client, "startup", name=SESSION) == "The real brief."


def test_what_the_brief_says_already_is_not_said_again(client):
    write(client, prose("[MEMORY: decision] Bowls first, because the shelf is low."))
    client.publish("/home/ada/kiln", "p1", "- bowls first, because the shelf is low. (2 Nov 26)")
    assert "Earlier in this session" not in start(client, "compact", name=SESSION)


def test_a_plan_that_the_brief_tells_as_it_stands_is_not_told_twice(client):
    write(client, call("TodoWrite", todo(Wedge="completed", Throw="in_progress")))
    client.publish("/home/ada/kiln", "p1", "- Bowls (2 Nov 26)\n  - done: Wedge\n  - now: Throw")
    assert "Earlier in this session" not in start(client, "compact", name=SESSION)
    client.publish("/home/ada/kiln", "p1", "- Bowls (2 Nov 26)\n  - now: Wedge")
    assert "  - now: Throw" in start(client, "compact", name=SESSION)


def test_a_long_brief_leaves_room_for_what_the_session_said(client):
    write(client, prose("[MEMORY: decision] Bowls first."))
    client.publish("/home/ada/kiln", "p1", ("x" * 99 + "\n") * 100)
    told = start(client, "compact", name=SESSION)
    assert len(told) <= 9_500 and told.endswith("- Bowls first. (2 Nov 26)")


def test_a_private_session_is_not_in_it(client):
    path = write(client, prose("[MEMORY: decision] Fire the kiln at cone 6."))
    assert "cone 6" in start(client)
    client.hook("session-end", client.payload(path), CORTEX_OFF="1")
    assert start(client, name="another-session") == ""
