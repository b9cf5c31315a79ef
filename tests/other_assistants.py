"""Transcripts of other assistants for tests: invented sessions in the shapes of their programs."""

import hashlib
import json
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
        self._add("turn_context", cwd=cwd, model="gpt-5.5", approval_policy="on-request")

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


def steps(last: str) -> list[dict[str, str]]:
    """Return a plan of two steps, the first done."""
    return [
        {"step": "Write the CSV exporter", "status": "completed"},
        {"step": "Cover the exporter with tests", "status": last},
    ]
