"""Every place where a transcript can carry text, as functions from a text to the records that carry it."""

from collections.abc import Callable
from typing import Any

from tests.transcripts import Record, Talk

# A carrier adds its records to a session.
Carrier = Callable[[Talk, str], object]

DECIDED = "We decided to keep the gauge setting in the depot because the boat forgets it: "


def _user(talk: Talk, content: object, **more: object) -> object:
    return talk._add("user", {"role": "user", "content": content}, **more)


def _text(text: str) -> list[Record]:
    return [{"type": "text", "text": text}]


def _call(talk: Talk, tool: str, tool_input: dict[str, Any], output: Any, **more: object) -> object:
    """Add a call and its result; `more` replaces fields of the result's block or record."""
    use_id = talk._id("toolu")
    talk._answer({"type": "tool_use", "id": use_id, "name": tool, "input": tool_input})
    detail = more.pop("detail", {"stdout": "done"})
    block = {"type": "tool_result", "tool_use_id": use_id, "content": output, "is_error": False, **more}
    return talk._add("user", {"role": "user", "content": [block]}, toolUseResult=detail)


def _record(talk: Talk, kind: str, **fields: object) -> object:
    """Add a record without a message."""
    talk._add(kind, {}, **fields)
    del talk.records[-1]["message"]
    return None


def _attachment(talk: Talk, kind: str, **fields: object) -> object:
    return _record(talk, "attachment", attachment={"type": kind, **fields})


def _with(name: str) -> Carrier:
    """Return a carrier that says something harmless and puts the text into a field of the record."""

    def carry(talk: Talk, text: str) -> object:
        talk.user("Go on with the gauges.")
        talk.records[-1][name] = text
        return None

    return carry


def _answer_with(name: str) -> Carrier:
    """Return a carrier that puts the text into a field of an answer's message."""

    def carry(talk: Talk, text: str) -> object:
        talk.assistant("The gauges report once a minute.")
        talk.records[-1]["message"][name] = text
        return None

    return carry


def _tool_use_id(talk: Talk, text: str) -> object:
    talk.call("Bash", "done", command="make")
    talk.records[-2]["message"]["content"][0]["id"] = text
    talk.records[-1]["message"]["content"][0]["tool_use_id"] = text
    return None


def _damaged(talk: Talk, text: str) -> object:
    talk.records.append({"type": "user", "half": text, "broken": True})
    return None


def _sidechain(talk: Talk, text: str) -> object:
    talk.user(f"Look at the depot. {text}").assistant(f"Found: {text}")
    for record in talk.records[-2:]:
        record["isSidechain"] = True
    return None


def _rejected(talk: Talk, text: str) -> object:
    refused = (
        "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a "
        "file edit, the new_string was NOT written to the file)."
    )
    message = f"{refused} To tell you how to proceed, the user said:\n{text}"
    return _call(talk, "Bash", {"command": "make"}, message, is_error=True, detail=f"Error: {message}")


def _answered(talk: Talk, text: str) -> object:
    detail = {"questions": [{"question": "Which?"}], "answers": {"Which?": text}}
    asked = {"questions": [{"question": "Which?", "options": [{"label": text}]}]}
    return _call(talk, "AskUserQuestion", asked, f'User has answered: "Which?"="{text}"', detail=detail)


def _approved(talk: Talk, text: str) -> object:
    plan = f"1. Read the gauge\n2. Use {text}\n"
    message = f"User has approved your plan.\n\n## Approved Plan:\n{plan}"
    return _call(talk, "ExitPlanMode", {"plan": plan}, message, detail={"plan": plan, "isAgent": False})


def _edited(talk: Talk, text: str) -> object:
    given = {"file_path": "/home/dev/kelp/a.py", "old_string": text, "new_string": f"# {text}"}
    detail = {"filePath": "/home/dev/kelp/a.py", "oldString": text, "originalFile": text * 3}
    return _call(talk, "Edit", given, f"The file was updated: {text}", detail=detail)


def _wrote(talk: Talk, text: str) -> object:
    return _call(talk, "Write", {"file_path": "/home/dev/kelp/.env", "content": text}, "File created")


def _failed(talk: Talk, text: str) -> object:
    _call(talk, "Bash", {"command": "make deploy"}, f"Exit code 1\nError: refused: {text}", is_error=True)
    return _call(talk, "Bash", {"command": f"make deploy # {text}"}, "deployed")


def _huge(talk: Talk, text: str) -> object:
    """Put the text where a long output is cut: around the ends of what is kept."""
    filler = "the tide is at two metres. " * 2_000
    for place in (1_990, 2_000 - len(text) // 2, 2_000):
        talk.call("Bash", f"{filler[:place]} {text} {filler}", command="cat log")
        talk.call("Bash", f"{filler} {text} {filler[: 1_000 - len(text) // 2]}", command="cat log")
    return talk.user(f"{filler[:19_990]} {text} {filler}")


CARRIERS: dict[str, Carrier] = {
    "prompt": lambda talk, text: talk.user(f"Use this: {text}"),
    "prompt in blocks": lambda talk, text: _user(talk, [*_text("Use this:"), *_text(text)]),
    "answer": lambda talk, text: talk.assistant(f"It is {text}"),
    "decision": lambda talk, text: talk.assistant(DECIDED + text),
    "self-report": lambda talk, text: talk.assistant(f"[MEMORY: gotcha] The depot wants {text}"),
    "thinking": lambda talk, text: talk._answer({"type": "thinking", "thinking": f"Perhaps {text}"}),
    "tool input": lambda talk, text: _call(talk, "Bash", {"command": f"echo {text}"}, "done"),
    "tool input, name of a field": lambda talk, text: _call(
        talk, "mcp__depot__put", {text: 1, "a": {text: "b"}}, "done"
    ),
    "tool input, nested": lambda talk, text: _call(
        talk, "mcp__depot__put", {"a": [{"b": [text, 1]}]}, "done"
    ),
    "tool name": lambda talk, text: _call(talk, text, {"a": "b"}, "done"),
    "file name read": lambda talk, text: _call(talk, "Read", {"file_path": f"/home/dev/kelp/{text}"}, "1→x"),
    "file names found": lambda talk, text: _call(
        talk, "Glob", {"pattern": text}, f"/home/dev/{text}", detail={"filenames": [text]}
    ),
    "tool result": lambda talk, text: _call(talk, "Bash", {"command": "env"}, f"A=1\n{text}\nB=2"),
    "tool result in blocks": lambda talk, text: _call(
        talk, "mcp__depot__get", {}, _text(text), detail=_text(text)
    ),
    "tool result, structured": lambda talk, text: _call(
        talk, "Bash", {"command": "env"}, "done", detail={"stdout": text, "stderr": text}
    ),
    "long output, cut": _huge,
    "edited file": _edited,
    "written file": _wrote,
    "failed and mended command": _failed,
    "web page": lambda talk, text: _call(
        talk, "WebFetch", {"url": f"https://a.example/?q={text}"}, text, detail={"url": text, "result": text}
    ),
    "todo list": lambda talk, text: _call(
        talk, "TodoWrite", {"todos": [{"content": text, "status": "pending", "activeForm": text}]}, "done"
    ),
    "task": lambda talk, text: _call(talk, "TaskCreate", {"subject": text, "description": text}, "done"),
    "subagent's prompt": lambda talk, text: _call(talk, "Agent", {"prompt": text, "description": text}, text),
    "rejection": _rejected,
    "choice": _answered,
    "plan": _approved,
    "plan handed over": lambda talk, text: _user(
        talk, f"Implement the following plan:\n1. {text}", planContent=f"1. {text}"
    ),
    "slash command": lambda talk, text: talk.user(
        f"<command-name>/deploy</command-name><command-args>{text}</command-args>"
    ),
    "slash command's output": lambda talk, text: talk.user(
        f"<local-command-stdout>{text}</local-command-stdout>"
    ),
    "shell by the user": lambda talk, text: talk.user(f"<bash-input>echo {text}</bash-input>"),
    "shell's output": lambda talk, text: talk.user(f"<bash-stdout>{text}</bash-stdout>"),
    "note for the memory file": lambda talk, text: talk.user(
        f"<user-memory-input>{text}</user-memory-input>"
    ),
    "task notification": lambda talk, text: talk.user(f"<task-notification>{text}</task-notification>"),
    "reminder": lambda talk, text: talk.user(f"Go on. <system-reminder>{text}</system-reminder>"),
    "editor's selection": lambda talk, text: talk.user(f"<ide_selection>{text}</ide_selection> Go on."),
    "client text": lambda talk, text: _user(talk, text, isMeta=True),
    "private passage": lambda talk, text: talk.user(f"Go on. <private>{text}</private> Thanks."),
    "private passage left open": lambda talk, text: talk.user(f"Go on. <private>{text}"),
    "queued prompt": lambda talk, text: _attachment(
        talk, "queued_command", commandMode="prompt", prompt=f"And use {text}"
    ),
    "hook output": lambda talk, text: _attachment(talk, "hook_success", stdout=text, command=text),
    "context added by a hook": lambda talk, text: _attachment(
        talk, "hook_additional_context", content=[text]
    ),
    "file mentioned": lambda talk, text: _attachment(talk, "file", content={"text": text}, filename=text),
    "file changed outside": lambda talk, text: _attachment(
        talk, "edited_text_file", snippet=text, filename=text
    ),
    "memory file": lambda talk, text: _attachment(talk, "nested_memory", content=text, path=text),
    "diagnostics": lambda talk, text: _attachment(
        talk, "diagnostics", files=[{"uri": text, "message": text}]
    ),
    "compaction summary": lambda talk, text: _user(
        talk, f"This session is being continued from a previous conversation. {text}", isCompactSummary=True
    ),
    "summary of another session": lambda talk, text: _record(talk, "summary", summary=text, leafUuid="x"),
    "recap": lambda talk, text: _record(talk, "system", subtype="away_summary", content=f"You said {text}"),
    "command as a system record": lambda talk, text: _record(
        talk,
        "system",
        subtype="local_command",
        content=f"<command-name>/a</command-name><command-args>{text}</command-args>",
    ),
    "stop hook's summary": lambda talk, text: _record(
        talk, "system", subtype="stop_hook_summary", hookErrors=[text], hookInfos=[{"command": text}]
    ),
    "API error": lambda talk, text: _record(talk, "system", subtype="api_error", error={"message": text}),
    "title": lambda talk, text: _record(talk, "custom-title", customTitle=text),
    "last prompt": lambda talk, text: _record(talk, "last-prompt", lastPrompt=text),
    "queue": lambda talk, text: _record(talk, "queue-operation", operation="enqueue", content=text),
    "progress": lambda talk, text: _record(
        talk, "progress", data={"type": "agent_progress", "message": {"message": {"content": _text(text)}}}
    ),
    "file backups": lambda talk, text: _record(
        talk, "file-history-snapshot", snapshot={"trackedFileBackups": {text: {"backup": text}}}
    ),
    "subagent in the main file": _sidechain,
    "branch name": _with("gitBranch"),
    "session id": _with("sessionId"),
    "working directory": _with("cwd"),
    "record id": _with("uuid"),
    "id of the record before": _with("parentUuid"),
    "agent id": _with("agentId"),
    "instant": _with("timestamp"),
    "message id": _answer_with("id"),
    "model": _answer_with("model"),
    "tool use id": _tool_use_id,
    "client's version": _with("version"),
    "unknown field": _with("somethingNew"),
    "unknown record": lambda talk, text: _record(talk, "something-new", content=text),
    "damaged line": _damaged,
}
