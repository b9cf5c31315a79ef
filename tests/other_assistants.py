"""Transcripts of other assistants for tests: invented sessions in the shapes of their programs."""

import hashlib
import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from tests.transcripts import KELP, START, Record, lines

INSTRUCTIONS = (
    "# AGENTS.md instructions for /home/dev/kelp\n\n<INSTRUCTIONS>\nKeep it small.\n</INSTRUCTIONS>"
)
ENVIRONMENT = (
    "<environment_context>\n  <cwd>/home/dev/kelp</cwd>\n  <shell>bash</shell>\n</environment_context>"
)


def stamp(at: datetime) -> str:
    """Return an instant as both programs write it."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Codex:
    """One invented rollout that grows by `user`, `assistant`, `call` and `patch`, a minute between two."""

    def __init__(self, name: str = "c1", *, cwd: str = KELP, start: datetime = START, **meta: object) -> None:
        self.session_id = str(uuid5(NAMESPACE_URL, f"rollout {name}"))
        self.start = start
        self.records: list[Record] = []
        self._add(
            "session_meta",
            id=self.session_id,
            timestamp=stamp(start),
            cwd=cwd,
            originator="codex_cli_rs",
            cli_version="0.135.0",
            base_instructions={"text": "You are a coding agent. " * 400},
            git={"commit_hash": "7078dc6", "branch": "main"},
            **{"source": "cli", **meta},
        )
        self.item(type="message", role="developer", content=[{"type": "input_text", "text": "<permissions>"}])
        for text in (INSTRUCTIONS, ENVIRONMENT):
            self.item(type="message", role="user", content=[{"type": "input_text", "text": text}])
        self.moved(cwd)

    def user(self, *texts: str) -> "Codex":
        """Add a prompt, as the item that the model gets and as the event that the screen shows."""
        blocks = [{"type": "input_text", "text": text} for text in texts]
        self.item(type="message", role="user", content=blocks)
        return self._add("event_msg", type="user_message", message="\n".join(texts))

    def assistant(self, text: str) -> "Codex":
        """Add an answer, as item and as event."""
        self._add("event_msg", type="agent_message", message=text)
        return self.item(type="message", role="assistant", content=[{"type": "output_text", "text": text}])

    def call(self, tool: str, output: object, **arguments: object) -> "Codex":
        """Add a function call and what came back."""
        use_id = f"call_{self.session_id[:4]}_{len(self.records)}"
        self.item(type="function_call", name=tool, arguments=json.dumps(arguments), call_id=use_id)
        return self.item(type="function_call_output", call_id=use_id, output=output)

    def run(self, command: str, output: str, code: int = 0) -> "Codex":
        """Add a command with its output, under the header that the program writes."""
        head = f"Chunk ID: 00f63c\nWall time: 0.05 seconds\nProcess exited with code {code}\nOutput:\n"
        return self.call("exec_command", head + output, cmd=command, workdir=KELP)

    def patch(self, text: str, output: str = "Success. Updated the following files:\nM a.py\n") -> "Codex":
        """Add a patch as the free-form tool."""
        use_id = f"call_{self.session_id[:4]}_{len(self.records)}"
        self.item(type="custom_tool_call", status="completed", name="apply_patch", input=text, call_id=use_id)
        told = json.dumps({"output": output, "metadata": {"exit_code": 0, "duration_seconds": 0.1}})
        return self.item(type="custom_tool_call_output", call_id=use_id, output=told)

    def item(self, **payload: object) -> "Codex":
        """Add a response item."""
        return self._add("response_item", **payload)

    def moved(self, folder: str, *, is_told: bool = False) -> "Codex":
        """Go on in another folder, as the program notes for itself, or as it tells its model."""
        if not is_told:
            return self._add("turn_context", cwd=folder, model="gpt-5.5", approval_policy="on-request")
        text = f"<environment_context>\n  <cwd>{folder}</cwd>\n</environment_context>"
        return self.item(type="message", role="user", content=[{"type": "input_text", "text": text}])

    def compacted(self, message: str) -> "Codex":
        """Add a compaction with the messages it keeps."""
        kept = [each["payload"] for each in self.records if each["type"] == "response_item"]
        return self._add("compacted", message=message, replacement_history=kept)

    def forked(self, name: str) -> "Codex":
        """Return a session that begins with this one's lines, written again at a later time."""
        fork = Codex(name, start=self.start + timedelta(days=1), forked_from_id=self.session_id)
        now = stamp(fork.start)
        fork.records = [fork.records[0]] + [{**each, "timestamp": now} for each in self.records]
        return fork

    def write(self, home: Path) -> Path:
        """Write the rollout where the program keeps it below a home folder; return its path."""
        day, name = self.start.strftime("%Y/%m/%d"), self.start.strftime("%Y-%m-%dT%H-%M-%S")
        path = home / ".codex" / "sessions" / day / f"rollout-{name}-{self.session_id}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(lines(self.records))
        return path

    def _add(self, kind: str, **payload: object) -> "Codex":
        said_at = stamp(self.start + timedelta(minutes=len(self.records)))
        self.records.append({"timestamp": said_at, "type": kind, "payload": payload})
        return self


class Gemini:
    """One invented chat that grows by `user`, `assistant` and `call`; written as one document or as lines."""

    def __init__(self, name: str = "g1", *, cwd: str = KELP, start: datetime = START) -> None:
        self.session_id = str(uuid5(NAMESPACE_URL, f"chat {name}"))
        self.cwd = cwd
        self.start = start
        self.messages: list[Record] = []
        self.hash = hashlib.sha256(cwd.encode()).hexdigest()

    def user(self, text: str, **more: object) -> "Gemini":
        """Add a prompt."""
        return self._add("user", [{"text": text}], **more)

    def assistant(self, text: str, **more: object) -> "Gemini":
        """Add an answer with the tokens that the program counts."""
        return self._add("gemini", text, model="gemini-2.5-pro", tokens={"total": 40}, **more)

    def call(self, tool: str, output: str, status: str = "success", **args: object) -> "Gemini":
        """Add an answer of one call with what came back."""
        key = "output" if status == "success" else "error"
        answered = {"functionResponse": {"id": "1", "name": tool, "response": {key: output}}}
        at = stamp(self.start + timedelta(minutes=len(self.messages), seconds=30))
        done = {"id": f"{tool}-1", "name": tool, "args": args, "status": status, "timestamp": at}
        return self.assistant("", toolCalls=[{**done, "result": [answered]}])

    def run(self, command: str, output: str, code: int = 0) -> "Gemini":
        """Add a shell command; the program calls it a success whatever its exit code."""
        told = f"Command: {command}\nDirectory: (root)\nOutput: {output}\nExit Code: {code}\nSignal: (none)"
        return self.call("run_shell_command", told, command=command, description="Runs it")

    def document(self, count: int | None = None) -> bytes:
        """Return the chat as one document, with only the first `count` messages."""
        said = self.messages[:count]
        until = said[-1]["timestamp"] if said else stamp(self.start)
        whole: Record = {**self._head(), "lastUpdated": until, "messages": said}
        return json.dumps(whole, indent=2, ensure_ascii=False).encode()

    def records(self) -> list[Record]:
        """Return the chat as lines: each message, and again when its tokens are known."""
        told: list[Record] = [{**self._head(), "lastUpdated": stamp(self.start), "kind": "main"}]
        for message in self.messages:
            told += [{key: value for key, value in message.items() if key != "tokens"}]
            told += [message] if "tokens" in message else []
            told += [{"$set": {"lastUpdated": message["timestamp"]}}]
        return told

    def folder(self, home: Path, name: str | None = None) -> Path:
        """Return where the program keeps chats of this project: by its hash, newer versions by a name."""
        return home / ".gemini" / "tmp" / (name or self.hash) / "chats"

    def write(self, home: Path, *, as_lines: bool = False, name: str | None = None) -> Path:
        """Write the chat; a folder by name gets the note of its project beside it."""
        folder = self.folder(home, name)
        folder.mkdir(parents=True, exist_ok=True)
        if name:
            (folder.parent / ".project_root").write_text(self.cwd)
        when = self.start.strftime("%Y-%m-%dT%H-%M")
        path = folder / f"session-{when}-{self.session_id[:8]}.{'jsonl' if as_lines else 'json'}"
        path.write_bytes(lines(self.records()) if as_lines else self.document())
        return path

    def _head(self) -> Record:
        return {"sessionId": self.session_id, "projectHash": self.hash, "startTime": stamp(self.start)}

    def _add(self, kind: str, content: object, **more: Any) -> "Gemini":
        said_at = stamp(self.start + timedelta(minutes=len(self.messages)))
        name = str(uuid5(NAMESPACE_URL, f"{self.session_id} {len(self.messages)}"))
        self.messages.append({"id": name, "timestamp": said_at, "type": kind, "content": content, **more})
        return self


class Copilot:
    """One invented session that grows by `user`, `assistant` and `call`, a minute between two events."""

    def __init__(self, name: str = "p1", *, cwd: str = KELP, start: datetime = START) -> None:
        self.session_id = str(uuid5(NAMESPACE_URL, f"events {name}"))
        self.start = start
        self.records: list[Record] = []
        context = {"cwd": cwd, "gitRoot": cwd, "branch": "main", "repository": "sea/kelp"}
        self.event(
            "session.start",
            sessionId=self.session_id,
            version=1,
            producer="copilot-agent",
            copilotVersion="1.0.78",
            startTime=stamp(start),
            context=context,
        )

    def user(self, text: str, **more: object) -> "Copilot":
        """Add a prompt, with what the program makes of it for the model."""
        sent = f"<current_datetime>2026-09-01</current_datetime>\n{text}"
        return self.event("user.message", content=text, transformedContent=sent, attachments=[], **more)

    def assistant(self, text: str, **more: object) -> "Copilot":
        """Add an answer between the events that frame it."""
        self.event("assistant.turn_start", turnId="0")
        self.event("assistant.message", messageId="m", content=text, toolRequests=[], **more)
        return self.event("assistant.turn_end", turnId="0")

    def call(self, tool: str, output: object, success: bool = True, **arguments: object) -> "Copilot":
        """Add a call and what came back."""
        use_id = f"toolu_{self.session_id[:4]}_{len(self.records)}"
        request = {"toolCallId": use_id, "name": tool, "arguments": arguments}
        self.event("assistant.message", messageId="m", content="", toolRequests=[request])
        self.event("tool.execution_start", toolCallId=use_id, toolName=tool, arguments=arguments)
        ended = {"result": {"content": output}} if success else {"error": output}
        return self.event("tool.execution_complete", toolCallId=use_id, success=success, **ended)

    def run(self, command: str, output: str, code: int = 0) -> "Copilot":
        """Add a command with its output, under which the program writes the exit code."""
        return self.call("bash", f"{output}\n<exited with exit code {code}>", command=command)

    def event(self, kind: str, **data: object) -> "Copilot":
        """Add an event."""
        said_at = stamp(self.start + timedelta(minutes=len(self.records)))
        name = str(uuid5(NAMESPACE_URL, f"{self.session_id} {len(self.records)}"))
        parent = self.records[-1]["id"] if self.records else None
        self.records.append(
            {"type": kind, "data": data, "id": name, "timestamp": said_at, "parentId": parent}
        )
        return self

    def write(self, home: Path) -> Path:
        """Write the events where the program keeps them below a home folder; return their path."""
        path = home / ".copilot" / "session-state" / self.session_id / "events.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(lines(self.records))
        return path


class OpenCode:
    """One invented session that grows by `user`, `assistant`, `call` and `run`: rows, or a document."""

    def __init__(self, name: str = "o1", *, cwd: str = KELP, start: datetime = START, **about: Any) -> None:
        self.session_id = "ses_" + uuid5(NAMESPACE_URL, f"opencode {name}").hex
        self.about = {"directory": cwd, "version": "1.17.3", **about}
        self.start = start
        self.messages: list[Record] = []

    def user(self, text: str, **more: object) -> "OpenCode":
        """Add a prompt, with what the program adds for the model."""
        added = {"type": "text", "text": "<system-reminder>Plan mode</system-reminder>", "synthetic": True}
        return self.message("user", {"type": "text", "text": text, **more}, added)

    def assistant(self, text: str, thought: str = "") -> "OpenCode":
        """Add an answer between the parts that frame it."""
        thoughts = [{"type": "reasoning", "text": thought, "time": {"start": 1}}] if thought else []
        frame = {"type": "step-start", "snapshot": "7078dc6"}, {"type": "step-finish", "reason": "stop"}
        return self.message("assistant", frame[0], *thoughts, {"type": "text", "text": text}, frame[1])

    def call(self, tool: str, state: Record | str, **given: object) -> "OpenCode":
        """Add a call with its state, or with what came back."""
        state = {"status": "completed", "output": state, "metadata": {}} if isinstance(state, str) else state
        part = {"type": "tool", "callID": f"call_{len(self.messages)}", "tool": tool}
        return self.message("assistant", {**part, "state": {**state, "input": given}})

    def run(self, command: str, output: str, code: int = 0) -> "OpenCode":
        """Add a command with its output."""
        state = {"status": "completed", "output": output, "metadata": {"exit": code}}
        return self.call("bash", state, command=command, description="Runs it")

    def message(self, role: str, *parts: Record) -> "OpenCode":
        """Add a message of these parts."""
        at = int((self.start + timedelta(minutes=len(self.messages))).timestamp() * 1000)
        name = f"msg_{self.session_id[4:10]}{len(self.messages):04}"
        info = {"id": name, "role": role, "time": {"created": at}, "agent": "build"}
        self.messages.append({"info": info, "parts": list(parts)})
        return self

    def document(self, count: int | None = None) -> bytes:
        """Return the session as `opencode export` prints it, with only the first `count` messages."""
        info = {"id": self.session_id, **self.about}
        return json.dumps({"info": info, "messages": self.messages[:count]}, indent=2).encode()

    def write(self, home: Path, count: int | None = None) -> Path:
        """Write the session into the program's database below a home folder; return where it is in there."""
        path = home / ".local" / "share" / "opencode" / "opencode.db"
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("pragma journal_mode = wal")
            connection.executescript(self.SCHEMA)
            self._insert(connection, self.messages[:count])
        return path / f"{self.session_id}.json"

    SCHEMA = """
        create table if not exists session (id text primary key, project_id text, parent_id text,
            directory text, title text, version text, time_created integer, time_updated integer);
        create table if not exists message (id text primary key, session_id text, time_created integer,
            time_updated integer, data text);
        create table if not exists part (id text primary key, message_id text, session_id text,
            time_created integer, time_updated integer, data text);
    """

    def _insert(self, connection: sqlite3.Connection, messages: list[Record]) -> None:
        about = self.about.get("parentID"), self.about["directory"], self.about["version"]
        row = (self.session_id, "p", about[0], about[1], "Invented", about[2], 1, 1)
        connection.execute("insert or replace into session values (?, ?, ?, ?, ?, ?, ?, ?)", row)
        for each in messages:
            name, at = each["info"]["id"], each["info"]["time"]["created"]
            info = {key: value for key, value in each["info"].items() if key != "id"}
            values = (name, self.session_id, at, at, json.dumps(info))
            connection.execute("insert or replace into message values (?, ?, ?, ?, ?)", values)
            for place, part in enumerate(each["parts"]):
                values = (f"prt_{name}{place:03}", name, self.session_id, at, at, json.dumps(part))
                connection.execute("insert or replace into part values (?, ?, ?, ?, ?, ?)", values)


class OpenCode2(OpenCode):
    """The same in the tables of version 2."""

    SCHEMA = (
        OpenCode.SCHEMA
        + """
        create table if not exists session_v2 (id text primary key, project_id text, parent_id text,
            directory text, title text, version text, time_created integer, time_updated integer);
        create table if not exists session_message (id text primary key, session_id text, type text,
            seq integer, time_created integer, time_updated integer, data text);
    """
    )

    def _insert(self, connection: sqlite3.Connection, messages: list[Record]) -> None:
        row = (self.session_id, "p", None, self.about["directory"], None, "2.0.25", 1, 1)
        connection.execute("insert or replace into session_v2 values (?, ?, ?, ?, ?, ?, ?, ?)", row)
        for seq, each in enumerate(messages):
            name, kind, time = each["info"]["id"], each["info"]["role"], each["info"]["time"]
            content = [self._newer(part) for part in each["parts"] if not part["type"].startswith("step-")]
            words = {"text": content[0]["text"]} if kind == "user" else {"content": content}
            data = json.dumps({"time": time, **words})
            values = (name, self.session_id, kind, seq, time["created"], time["created"], data)
            connection.execute("insert or replace into session_message values (?, ?, ?, ?, ?, ?, ?)", values)

    @staticmethod
    def _newer(part: Record) -> Record:
        if part["type"] != "tool":
            return part
        state = {key: value for key, value in part["state"].items() if key != "output"}
        state["content"] = [{"type": "text", "text": part["state"].get("output", "")}]
        return {"type": "tool", "id": part["callID"], "name": part["tool"], "state": state}


def codex_decisions(name: str = "c1", **chosen: Any) -> Codex:
    """Return a short session with a decision, its reason, a flagged gotcha, a plan, a check and a patch."""
    return (
        Codex(name, **chosen)
        .user(f"Please add an export of the harvest records to {name}.")
        .assistant(
            f"We decided to keep the harvest records of {name} in SQLite because one writer is enough; "
            "PostgreSQL was rejected, nobody looks after a server."
        )
        .call("update_plan", "Plan updated", plan=steps("in_progress"))
        .patch("*** Begin Patch\n*** Update File: kelp/export.py\n@@\n-a\n+b\n*** End Patch")
        .run("pytest -q", "3 passed")
        .call("update_plan", "Plan updated", plan=steps("completed"))
        .assistant(f"[MEMORY: gotcha] The tide table of {name} counts hours from local midnight, not UTC.")
    )


def gemini_decisions(name: str = "g1", **chosen: Any) -> Gemini:
    """Return a chat that says what `codex_decisions` says."""
    todos = [{"description": each["step"], "status": each["status"]} for each in steps("completed")]
    return (
        Gemini(name, **chosen)
        .user(f"Please add an export of the harvest records to {name}.")
        .assistant(
            f"We decided to keep the harvest records of {name} in SQLite because one writer is enough; "
            "PostgreSQL was rejected, nobody looks after a server.",
            thoughts=[{"subject": "Storage", "description": "One writer."}],
        )
        .call("write_todos", "Updated", todos=todos)
        .call("replace", "Done", file_path="/home/dev/kelp/export.py", old_string="a", new_string="b")
        .run("pytest -q", "3 passed")
        .assistant(f"[MEMORY: gotcha] The tide table of {name} counts hours from local midnight, not UTC.")
    )


def copilot_decisions(name: str = "p1", **chosen: Any) -> Copilot:
    """Return a session that says what `codex_decisions` says."""
    checklist = "- [x] Write the CSV exporter\n- [x] Cover the exporter with tests"
    return (
        Copilot(name, **chosen)
        .user(f"Please add an export of the harvest records to {name}.")
        .assistant(
            f"We decided to keep the harvest records of {name} in SQLite because one writer is enough; "
            "PostgreSQL was rejected, nobody looks after a server."
        )
        .call("update_todo", "Updated", todos=checklist)
        .call("edit", "File updated", path="/home/dev/kelp/export.py", old_str="a", new_str="b")
        .run("pytest -q", "3 passed")
        .assistant(f"[MEMORY: gotcha] The tide table of {name} counts hours from local midnight, not UTC.")
    )


def opencode_decisions(name: str = "o1", kind: type[OpenCode] = OpenCode, **chosen: Any) -> OpenCode:
    """Return a session that says what `codex_decisions` says."""
    todos = [{"content": each["step"], "status": each["status"]} for each in steps("completed")]
    return (
        kind(name, **chosen)
        .user(f"Please add an export of the harvest records to {name}.")
        .assistant(
            f"We decided to keep the harvest records of {name} in SQLite because one writer is enough; "
            "PostgreSQL was rejected, nobody looks after a server.",
            thought="One writer.",
        )
        .call("todowrite", "Updated", todos=todos)
        .call("edit", "Done", filePath="/home/dev/kelp/export.py", oldString="a", newString="b")
        .run("pytest -q", "3 passed")
        .assistant(f"[MEMORY: gotcha] The tide table of {name} counts hours from local midnight, not UTC.")
    )


def steps(last: str) -> list[dict[str, str]]:
    """Return a plan of two steps, the first done."""
    return [
        {"step": "Write the CSV exporter", "status": "completed"},
        {"step": "Cover the exporter with tests", "status": last},
    ]
