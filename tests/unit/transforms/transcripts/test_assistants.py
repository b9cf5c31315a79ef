"""Other assistants' transcripts become the same turns as Claude Code's: who said it, tools, endings, ids."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.transforms.transcripts import assistants
from cortex.transforms.transcripts.assistants import (
    KNOWN_ASSISTANTS,
    Head,
    assistant_of,
    by_name,
    head_of,
    lines_of_document,
)
from cortex.transforms.transcripts.transcript import REASONS, Reading, Source, read_transcript
from tests.examples import cases
from tests.other_assistants import (
    ENVIRONMENT,
    INSTRUCTIONS,
    Codex,
    Copilot,
    Gemini,
    OpenCode,
    codex_decisions,
    copilot_decisions,
    gemini_decisions,
    opencode_decisions,
)
from tests.transcripts import decisions, lines

CHAT = "/home/dev/.gemini/tmp/kelp/chats/session-1.json"


def read(data: bytes, file: str = CHAT, first_line: int = 1, start: bytes | None = None) -> Reading:
    head = head_of(data if start is None else start, file)
    whole = lines_of_document(data, head) if head and head.is_document else data
    source = Source(file, "p1", head=head)
    return read_transcript(whole or b"", source=source, first_line=first_line)


def bytes_of(talk: Codex | Copilot | Gemini | OpenCode) -> bytes:
    return talk.document() if isinstance(talk, Gemini | OpenCode) else lines(talk.records)


def said(talk: Codex | Copilot | Gemini | OpenCode) -> list[tuple[str, str]]:
    data = bytes_of(talk)
    return [(row["kind"], row["text"]) for row in read(data).turns.to_pylist()]


def only(talk: Codex | Copilot | Gemini | OpenCode, kind: str) -> dict[str, object]:
    data = bytes_of(talk)
    (row,) = (row for row in read(data).turns.to_pylist() if row["kind"] == kind)
    return dict(row)


def test_the_first_bytes_tell_whose_a_transcript_is():
    assert assistant_of(lines(codex_decisions().records)) == "codex"
    assert assistant_of(gemini_decisions().document()) == "gemini"
    assert assistant_of(lines(gemini_decisions().records())) == "gemini"
    assert assistant_of(json.dumps(json.loads(gemini_decisions().document())).encode()) == "gemini"
    assert assistant_of(lines(copilot_decisions().records)) == "copilot"
    assert assistant_of(b'{"id":"1","timestamp":"t","type":"session.start","data":{') == "copilot"
    assert assistant_of(opencode_decisions().document()) == "opencode"
    assert assistant_of(b'{"info":{"id":"ses_0","directory":"/home/dev/kelp"},"messages":[]}') == "opencode"
    assert assistant_of(b'{"info":{"id":"1"}}') == "claude"
    assert assistant_of(b'{"type":"user.message","data":{"content":"session.start"}}') == "claude"
    assert assistant_of(lines(decisions().records)) == "claude"
    assert assistant_of(b"") == "claude"


def test_every_module_with_an_adapter_declares_its_assistant():
    folder = Path(assistants.__path__[0])
    adapters = {path.stem for path in folder.glob("*.py") if "def is_own(" in path.read_text()}
    assert list(KNOWN_ASSISTANTS) == ["claude", *sorted(adapters)]
    assert all(each.label and each.variable and each.folders for each in KNOWN_ASSISTANTS.values())


def test_two_assistants_of_one_name_are_refused():
    with pytest.raises(ValueError, match="two assistants have one name"):
        by_name([*KNOWN_ASSISTANTS.values(), KNOWN_ASSISTANTS["codex"]])


def test_a_claude_session_that_quotes_another_assistants_file_stays_claudes():
    quoted = lines(codex_decisions().records[:1]) + gemini_decisions().document()
    talk = decisions().user(quoted.decode())
    assert assistant_of(lines(talk.records[-1:])) == "claude"


def test_a_rollout_says_once_what_was_said_and_none_of_what_the_program_put_in():
    assert [text for kind, text in said(codex_decisions()) if kind in ("prompt", "text")] == [
        "Please add an export of the harvest records to c1.",
        "We decided to keep the harvest records of c1 in SQLite because one writer is enough; "
        "PostgreSQL was rejected, nobody looks after a server.",
        "[MEMORY: gotcha] The tide table of c1 counts hours from local midnight, not UTC.",
    ]


@cases(
    "text",
    [
        INSTRUCTIONS,
        ENVIRONMENT,
        f"{INSTRUCTIONS}\n{ENVIRONMENT}",
        "<user_instructions>\nBe brief.\n</user_instructions>",
        "<turn_aborted>\nThe turn was interrupted.\n</turn_aborted>",
        '<image name=[Image #1] path="/home/dev/a.png">',
        "</image>",
        "/compact",
    ],
)
def test_what_codex_writes_into_a_persons_message_is_not_the_persons(text):
    assert said(Codex().user(text)) == []


def test_an_editors_context_before_a_request_is_left_out():
    asked = "# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nRename it."
    assert said(Codex().user(asked)) == [("prompt", "Rename it.")]


def test_a_command_that_a_person_ran_in_codex_is_theirs():
    ran = "<command>\ngit status\n</command>\n<result>\nclean\n</result>"
    text = f"<user_shell_command>\n{ran}\n</user_shell_command>"
    assert said(Codex().user(text)) == [("shell", "git status")]


@pytest.mark.parametrize("meta", [{"source": "exec"}, {"thread_source": "subagent"}])
def test_what_a_program_asks_codex_is_no_persons_word(meta):
    assert said(Codex(**meta).user("Sort the imports.")) == [("program", "Sort the imports.")]


def test_a_codex_subagent_speaks_in_its_parents_session():
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": "parent-1", "depth": 1}}}
    row = only(Codex("child", source=spawned).assistant("Done."), "text")
    assert (row["session_id"], row["agent_id"]) == ("parent-1", Codex("child").session_id)


def test_a_row_says_from_which_client_branch_and_folder_it_is():
    row = only(Codex().assistant("Done."), "text")
    assert (row["client_version"], row["git_branch"], row["cwd"]) == (
        "codex 0.135.0",
        "main",
        "/home/dev/kelp",
    )
    assert only(Gemini().assistant("Done."), "text")["client_version"] == "gemini"


@cases(
    ("tool", "given", "command"),
    [
        ("shell", {"command": ["bash", "-lc", "pytest -q"]}, "pytest -q"),
        ("shell", {"command": ["git", "commit", "-m", "Add it"]}, "git commit -m 'Add it'"),
        ("shell_command", {"command": "pytest -q", "workdir": "/home/dev"}, "pytest -q"),
        ("exec_command", {"cmd": "pytest -q"}, "pytest -q"),
    ],
)
def test_codex_shells_are_one_tool(tool, given, command):
    row = only(Codex().call(tool, "ok", **given), "tool_call")
    assert (row["tool_name"], row["text"]) == ("Bash", command)


@cases(
    ("output", "status", "text"),
    [
        ("Exit code: 0\nWall time: 0.2 seconds\nOutput:\n3 passed", "ok", "3 passed"),
        ("Exit code: 2\nWall time: 0.2 seconds\nOutput:\n1 failed", "error", "Exit code 2\n1 failed"),
        ("Chunk ID: 1\nProcess exited with code 1\nOutput:\nno", "error", "Exit code 1\nno"),
        ("Chunk ID: 1\nProcess running with session ID 7\nOutput:\nhm", "ok", "hm"),
        ('{"output":"bad","metadata":{"exit_code":3}}', "error", "Exit code 3\nbad"),
        ([{"type": "input_text", "text": "Exit code: 1\nOutput:\nno"}], "error", "Exit code 1\nno"),
        ({"content": "nothing", "success": False}, "error", "nothing"),
        ("exec command rejected by user", "rejected", "exec command rejected by user"),
        ("aborted by user after 2.1s", "cancelled", "aborted by user after 2.1s"),
        (
            "apply_patch verification failed: no such line",
            "error",
            "apply_patch verification failed: no such line",
        ),
        ("plain", "ok", "plain"),
        (None, "ok", ""),
    ],
)
def test_how_a_codex_call_ended_is_read_from_its_output(output, status, text):
    row = only(Codex().call("exec_command", output, cmd="make"), "tool_result")
    assert (row["tool_status"], row["text"]) == (status, text)


def test_a_patch_is_an_edit_of_all_its_files():
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n*** Add File: b.py\n+x\n*** End Patch"
    row = only(Codex().patch(patch), "tool_call")
    assert (row["tool_name"], json.loads(str(row["tool_input"]))["paths"]) == ("MultiEdit", ["a.py", "b.py"])
    heredoc = f"apply_patch <<'EOF'\n{patch}\nEOF"
    assert (
        only(Codex().call("shell", "ok", command=["bash", "-lc", heredoc]), "tool_call")["tool_name"]
        == "MultiEdit"
    )


def test_a_command_within_a_script_is_found_where_it_stands_as_one_string():
    scripted = Codex().item(
        type="custom_tool_call", name="exec", call_id="x",
        input='const r = await tools.exec_command({"cmd":"cargo test \\"a\\"", yield_time_ms: 10});',
    )  # fmt: skip
    assert only(scripted, "tool_call")["text"] == 'cargo test "a"'


def test_an_mcp_servers_tool_is_known_as_a_strangers():
    talk = Codex().item(
        type="function_call", namespace="mcp__tides", name="levels", arguments="{}", call_id="x"
    )
    assert only(talk, "tool_call")["tool_name"] == "mcp__tides__levels"
    assert only(Gemini().call("mcp_tides_levels", "3 m"), "tool_result")["trust"] == "external"


def test_a_rollout_of_before_september_2025_is_read_too():
    old = [
        {
            "id": "old-1",
            "timestamp": "2025-08-20T13:20:47.060Z",
            "instructions": None,
            "git": {"branch": "main"},
        },
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "List the files."}]},
        {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "c1"},
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": '{"output":"a.py","metadata":{"exit_code":0}}',
        },
    ]
    rows = read(lines(old)).turns.to_pylist()
    assert [(row["kind"], row["text"]) for row in rows] == [
        ("prompt", "List the files."),
        ("tool_call", "ls"),
        ("tool_result", "a.py"),
    ]
    assert {row["session_id"] for row in rows} == {"old-1"}


def test_a_fork_writes_its_parents_calls_and_long_messages_again_and_they_stay_the_same_turns():
    parent = codex_decisions()
    fork = parent.forked("c2").assistant("Let us measure the wind instead.")
    own = read(lines(parent.records)).turns
    copied = read(lines(fork.records)).turns
    new = set(copied["turn_id"].to_pylist()) - set(own["turn_id"].to_pylist())
    texts = [row["text"] for row in copied.to_pylist() if row["turn_id"] in new]
    short = "Please add an export of the harvest records to c1."
    assert texts == [short, "Let us measure the wind instead."]


def test_a_compaction_is_a_summary_and_its_kept_messages_are_not_said_again():
    talk = Codex().user("Go on.").compacted("Handing over: the exporter is done.")
    assert said(talk) == [("prompt", "Go on."), ("summary", "Handing over: the exporter is done.")]


def test_a_chat_is_the_same_as_a_document_and_as_lines():
    def told(data: bytes) -> set[tuple[object, ...]]:
        rows = read(data).turns.to_pylist()
        return {
            (row["turn_id"], row["kind"], row["text"], row["tool_status"], row["said_at"]) for row in rows
        }

    talk = gemini_decisions()
    assert told(talk.document()) == told(lines(talk.records()))


@cases(
    ("tool", "args", "name", "text"),
    [
        ("read_file", {"absolute_path": "/a.py"}, "Read", "/a.py"),
        ("write_file", {"file_path": "/a.py", "content": "x"}, "Write", "/a.py"),
        ("replace", {"file_path": "/a.py", "old_string": "a"}, "Edit", "/a.py"),
        ("run_shell_command", {"command": "make"}, "Bash", "make"),
        ("search_file_content", {"pattern": "tide"}, "Grep", "tide"),
    ],
)
def test_geminis_tools_have_the_names_that_the_layers_know(tool, args, name, text):
    row = only(Gemini().call(tool, "ok", **args), "tool_call")
    assert (row["tool_name"], row["text"]) == (name, text)


@cases(
    ("talk", "status", "text"),
    [
        (Gemini().run("make", "done"), "ok", "done"),
        (Gemini().run("make", "1 failed", code=2), "error", "Exit code 2\n1 failed"),
        (Gemini().call("replace", "0 occurrences found", "error"), "error", "0 occurrences found"),
        (
            Gemini().call(
                "replace", "[Operation Cancelled] Reason: User did not allow tool call", "cancelled"
            ),
            "rejected",
            "[Operation Cancelled] Reason: User did not allow tool call",
        ),
        (Gemini().call("replace", "stopped", "cancelled"), "cancelled", "stopped"),
    ],
)
def test_how_a_gemini_call_ended_is_read_from_status_and_exit_code(talk, status, text):
    row = only(talk, "tool_result")
    assert (row["tool_status"], row["text"]) == (status, text)


def test_a_call_that_still_runs_has_no_result_yet():
    assert [kind for kind, _ in said(Gemini().call("replace", "", "executing", file_path="/a"))] == [
        "tool_call"
    ]


def test_a_persons_answer_to_geminis_question_is_a_choice():
    asked = [{"question": "Which store?", "options": [{"label": "SQLite", "description": "one file"}]}]
    talk = Gemini().call("ask_user", '{"answers":{"0":"SQLite"}}', questions=asked)
    assert only(talk, "choice")["text"] == "Which store? → SQLite"


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        (
            "Look at @a.py\n--- Content from referenced files ---\nsecret\n--- End of content ---",
            "Look at @a.py",
        ),
        ("Go on.<hook_context>What was decided before</hook_context>", "Go on."),
    ],
)
def test_what_gemini_adds_to_a_prompt_is_left_out(typed, kept):
    assert said(Gemini().user(typed)) == [("prompt", kept)]


def test_a_prompt_is_what_the_person_saw_where_the_chat_says_so():
    assert said(Gemini().user("expanded", displayContent=[{"text": "typed"}])) == [("prompt", "typed")]


@pytest.mark.parametrize(
    "text", ["This is the Gemini CLI. We are setting up the context for our chat.", "/clear"]
)
def test_what_gemini_writes_into_a_persons_message_is_not_the_persons(text):
    assert said(Gemini().user(text)) == []


def test_a_gemini_subagent_speaks_in_its_parents_session():
    talk = Gemini("child").user("Find it.").assistant("Found.")
    rows = read(
        lines(talk.records()), f"/home/dev/.gemini/tmp/kelp/chats/parent-1/{talk.session_id}.jsonl"
    ).turns
    assert set(rows["session_id"].to_pylist()) == {"parent-1"}
    assert set(rows["agent_id"].to_pylist()) == {talk.session_id}
    assert rows["kind"].to_pylist()[0] == "program"


@pytest.mark.parametrize("make", [Codex, Gemini, Copilot])
def test_private_passages_and_secrets_are_not_kept(make):
    key = "sk-ant-api03-" + "Ab3dE5fG7h" * 9 + "-AAAAAAAA"
    talk = make().user(f"Keep <private>my name</private> out, and {key} too.").assistant(f"Noted {key}.")
    talk.run(f"export KEY={key}", f"{key} <private>hidden</private>")
    data = bytes_of(talk)
    stored = repr(read(data).turns.to_pylist())
    assert key not in stored
    assert "my name" not in stored
    assert "hidden" not in stored


def test_copilots_events_say_what_the_others_say():
    kinds = ("prompt", "text", "tool_call")
    own, codex = (
        [text for kind, text in said(each) if kind in kinds[:2]]
        for each in (copilot_decisions("x"), codex_decisions("x"))
    )
    assert own == codex
    rows = read(lines(copilot_decisions().records)).turns.to_pylist()
    assert [row["tool_name"] for row in rows if row["kind"] == "tool_call"] == ["TodoWrite", "Edit", "Bash"]
    assert {row["cwd"] for row in rows} == {"/home/dev/kelp"}
    assert {(row["git_branch"], row["client_version"]) for row in rows} == {("main", "copilot 1.0.78")}


@cases(
    ("talk", "status", "text"),
    [
        (Copilot().run("pytest -q", "3 passed"), "ok", "3 passed"),
        (Copilot().run("pytest -q", "1 failed", code=1), "error", "Exit code 1\n1 failed"),
        (Copilot().call("view", "a = 1", path="a.py"), "ok", "a = 1"),
        (Copilot().call("view", {"message": "no such file", "code": "failure"}, False), "error",
         "no such file"),
        (Copilot().call("bash", {"message": "The user said no", "code": "denied"}, False), "rejected",
         "The user said no"),
        (Copilot().call("bash", "stopped", False), "error", "stopped"),
    ],
)  # fmt: skip
def test_how_a_copilot_call_ended_is_read_from_success_error_and_exit_code(talk, status, text):
    row = only(talk, "tool_result")
    assert (row["tool_status"], row["text"]) == (status, text)


@cases(
    "talk",
    [
        Copilot().user("/compact"),
        Copilot().user("# Skill: tides\nRead the tables first.", source="skill-tides"),
        Copilot().event("system.message", content="You are a coding agent."),
        Copilot().event("hook.start", content="x"),
        Copilot().event("assistant.reasoning", content="Hm."),
    ],
)
def test_what_copilot_itself_says_is_not_the_persons(talk):
    assert said(talk) == []


def test_what_a_copilot_agent_is_asked_is_a_programs_word_in_the_same_session():
    talk = Copilot().user("List the tide tables.", parentToolCallId="toolu_1")
    row = only(talk, "program")
    assert (row["session_id"], row["agent_id"]) == (talk.session_id, "toolu_1")


def test_an_mcp_server_of_copilot_is_a_stranger():
    talk = Copilot().event(
        "tool.execution_start", toolCallId="1", toolName="tides-levels", mcpServerName="tides",
        mcpToolName="levels", arguments={"at": "noon"},
    )  # fmt: skip
    assert only(talk, "tool_call")["tool_name"] == "mcp__tides__levels"


def test_copilots_summary_of_a_session_is_one():
    assert said(Copilot().event("session.compaction_complete", summaryContent="We chose SQLite.")) == [
        ("summary", "We chose SQLite.")
    ]


@cases("data", [None, "text", ["a"], {"content": 7}, {"content": ["a"]}])
def test_a_copilot_message_in_another_shape_is_set_aside(data):
    records = [*Copilot().records, {"type": "user.message", "data": data, "id": "x", "timestamp": "t"}]
    assert len(read(lines(records)).unread) == 1


def test_opencodes_messages_say_what_the_others_say():
    own, codex = (
        [text for kind, text in said(each) if kind in ("prompt", "text")]
        for each in (opencode_decisions("x"), codex_decisions("x"))
    )
    assert own == codex
    rows = read(opencode_decisions().document()).turns.to_pylist()
    assert [row["tool_name"] for row in rows if row["kind"] == "tool_call"] == ["TodoWrite", "Edit", "Bash"]
    assert {(row["cwd"], row["client_version"]) for row in rows} == {("/home/dev/kelp", "opencode 1.17.3")}
    assert [row["text"] for row in rows if row["kind"] == "thinking"] == ["One writer."]


def test_a_document_in_which_the_folder_has_a_quote_names_it_whole():
    assert head_of(OpenCode(cwd='/home/dev/a "b" \\ c').document(), "").cwd == '/home/dev/a "b" \\ c'


@pytest.mark.parametrize(
    ("talk", "status", "text"),
    [
        (OpenCode().run("pytest -q", "3 passed"), "ok", "3 passed"),
        (OpenCode().run("pytest -q", "1 failed", code=1), "error", "Exit code 1\n1 failed"),
        (OpenCode().call("read", "a = 1", filePath="a.py"), "ok", "a = 1"),
        (OpenCode().call("read", {"status": "error", "error": "no such file"}), "error", "no such file"),
        (OpenCode().call("read", {"status": "error", "error": {"message": "gone"}}), "error", "gone"),
        (OpenCode().call("bash", {"status": "error", "error": "Tool execution aborted"}), "cancelled",
         "Tool execution aborted"),
        (OpenCode().call("bash", {"status": "error", "error": "The user rejected permission to use it."}),
         "rejected", "The user rejected permission to use it."),
        (OpenCode().call("read", {"status": "completed", "content": [{"type": "text", "text": "b = 2"}]}),
         "ok", "b = 2"),
    ],
)  # fmt: skip
def test_how_an_opencode_call_ended_is_read_from_status_error_and_exit_code(talk, status, text):
    row = only(talk, "tool_result")
    assert (row["tool_status"], row["text"]) == (status, text)


def test_an_opencode_call_that_still_runs_has_no_result_yet():
    assert [kind for kind, _ in said(OpenCode().call("bash", {"status": "running"}, command="ls"))] == [
        "tool_call"
    ]


def test_what_opencode_puts_into_a_persons_message_is_not_the_persons():
    assert said(OpenCode().user("Sort the imports.")) == [("prompt", "Sort the imports.")]
    assert said(OpenCode().user("Called the Read tool", synthetic=True)) == []
    assert said(OpenCode().user("/compact")) == []
    assert said(OpenCode().message("synthetic", {"type": "text", "text": "Plan mode"})) == []


def test_an_opencode_subagent_speaks_in_its_parents_session():
    rows = read(OpenCode(parentID="ses_1").user("Look for tides.").document()).turns.to_pylist()
    assert [(row["session_id"], row["kind"]) for row in rows] == [("ses_1", "program")]
    assert rows[0]["agent_id"].startswith("ses_")


def test_an_opencode_tool_that_is_not_its_own_is_a_strangers():
    assert only(OpenCode().call("tides_levels", "2 m"), "tool_call")["tool_name"] == "mcp__tides_levels"
    assert only(OpenCode().call("tides_levels", "2 m"), "tool_result")["trust"] == "external"


def test_opencodes_summary_of_a_session_is_one():
    talk = OpenCode().assistant("Goal: an export.")
    talk.messages[-1]["info"]["summary"] = True
    assert said(talk) == [("summary", "Goal: an export.")]


def test_a_malformed_line_is_set_aside_and_the_rest_read():
    whole = lines(codex_decisions().records)
    broken = whole.replace(b"\n", b'\n{"timestamp":"2026\n{"type":"response_item","payload":7}\n', 1)
    reading = read(broken)
    assert [(each.line, each.reason) for each in reading.unread] == [
        (2, "not JSON"),
        (3, "unknown shape"),
    ]
    assert reading.turns["turn_id"].equals(read(whole).turns["turn_id"])


@cases("data", [b"{", b'{"messages": 1}', b"[1]", gemini_decisions().document()[:900]])
def test_a_document_that_is_no_whole_chat_gives_nothing(data):
    assert lines_of_document(data, Head("gemini")) is None
    assert lines_of_document(data, Head("opencode")) is None


@given(cut=st.integers(0, len(lines(codex_decisions().records))))
def test_a_rollout_read_in_two_parts_gives_the_rows_of_one(cut):
    whole = lines(codex_decisions().records)
    start = lines(codex_decisions().records[:1])
    first = read(whole[:cut], start=start)
    rest = read(whole[first.consumed_bytes :], first_line=1 + first.consumed_lines, start=start)
    assert first.turns.to_pylist() + rest.turns.to_pylist() == read(whole).turns.to_pylist()


@given(count=st.integers(0, 6))
def test_a_document_grown_further_gives_each_turn_of_before_again_at_its_place(count):
    talk = gemini_decisions()
    before = read(talk.document(count)).turns.to_pylist()
    assert read(talk.document()).turns.to_pylist()[: len(before)] == before
    before = read(opencode_decisions().document(count)).turns.to_pylist()
    assert read(opencode_decisions().document()).turns.to_pylist()[: len(before)] == before


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
WORDS = (
    "type", "payload", "role", "content", "call_id", "output", "arguments", "action", "name", "input", "id",
    "data", "toolName", "success", "error", "context", "todos",
    "info", "parts", "state", "time", "text",
    "toolCalls", "args", "result", "status", "thoughts", "displayContent", "timestamp", "summary", "message",
)  # fmt: skip
KINDS = (
    "response_item", "message", "function_call", "function_call_output", "custom_tool_call", "compacted",
    "user.message", "assistant.message", "tool.execution_start", "tool.execution_complete",
    "session.compaction_complete", "update_todo",
    "local_shell_call", "web_search_call", "reasoning", "user", "gemini", "update_plan", "assistant",
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(WORDS), JSON | st.sampled_from(KINDS), max_size=8), st.booleans())
def test_no_record_makes_the_reader_raise(record, is_wrapped):
    wrapped = [{"type": "response_item", "payload": record}, {"type": record.get("type"), "data": record}]
    shaped = wrapped if is_wrapped else [record]
    heads = (lines(Codex().records[:1]), lines(Gemini().records()[:1]), lines(Copilot().records[:1]))
    for head in heads:
        reading = read(lines(shaped), start=head)
        assert {each.reason for each in reading.unread} <= set(REASONS)
    info = {"id": "msg_1", "role": record.get("type"), **record}
    session = {"info": {"id": "ses_1"}, "messages": [record, {"info": info, "parts": [record]}]}
    assert {each.reason for each in read(json.dumps(session).encode()).unread} <= set(REASONS)
