"""Entry of every hook: `python3 -I -S hook.py EVENT`, the client's JSON on stdin; it always exits 0."""

from __future__ import annotations

import json
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING or __package__:
    from cortex.hooks import ticket
    from cortex.hooks.home import home_in
else:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # -I leaves the script's folder out
    import ticket
    from home import home_in

# A payload carries the assistant's last message; the longest seen had 100 KB.
_MAX_PAYLOAD_BYTES = 16 * 1024 * 1024

# The log is for finding out why nothing was captured: a thousand lines and their predecessors are plenty.
_MAX_LOG_BYTES = 128 * 1024
MAX_LOG_LINE = 300

# Past this a prompt goes on without Cortex; the launcher and Python's start come on top. A client that works
# hard on a full machine stays below: 100,000 rows take a tenth of a second on a quiet one.
MAX_PROMPT_SECONDS = 0.45

# The client waits 5 s for a session's start, which takes a tenth of one: past this a pipe or a disk does not
# answer. What is left of the time is for starting the run.
MAX_START_SECONDS = 2.0

# Grows by one byte with each prompt that went on without Cortex; `doctor` tells their number.
LATE_PROMPTS = "late_prompts"

TICKET_EVENTS = ("stop", "subagent-stop", "pre-compact", "session-end")


def main() -> None:
    """Do what the event asks for; write any problem to Cortex's own log and to nowhere else."""
    os.umask(0o077)  # what is captured is for its owner's eyes only
    event = sys.argv[1] if len(sys.argv) > 1 else ""
    home = home_in(os.environ)
    try:
        if event == ticket.SESSION_START:
            limit_start(home)
            payload = read_payload()
            if not is_left_alone(home, payload):
                session_start(home, payload)
                start_background_run(home)
        elif event == ticket.USER_PROMPT:
            user_prompt_submit(home)
        elif event in TICKET_EVENTS:
            payload = read_payload()
            if is_left_alone(home, payload):
                return
            write_ticket(home, event, payload)
            if event == "stop":
                warn_of_context(home, payload)
            # Writing the summary takes longer than a run: the brief behind it then knows this session.
            if event in ("session-end", "pre-compact"):
                start_background_run(home)
        else:
            raise ValueError("no such event")
    except BaseException as problem:
        log(home, event, problem)


def limit_start(home: str) -> None:
    """End a session's start that takes too long, and start the run all the same."""
    import signal

    def give_up(*_: object) -> None:
        signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
        signal.setitimer(signal.ITIMER_REAL, 1)  # for a disk that does not answer here either
        try:
            log(home, ticket.SESSION_START, TimeoutError(f"not ready after {MAX_START_SECONDS:.0f} s"))
            start_background_run(home)
        finally:
            os._exit(0)

    signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, MAX_START_SECONDS)


def session_start(home: str, payload: dict[str, object]) -> None:
    """Print what the session should know, then look for transcripts that nobody reported."""
    if TYPE_CHECKING or __package__:
        from cortex.hooks import brief, shown, sweep
    else:  # only here: the other events need none of them
        import brief
        import shown
        import sweep
    try:
        if payload.get("source") in brief.SOURCES:
            output = brief.session_start_output(
                home,
                folders_of(payload),
                source=field(payload, "source"),
                transcript=transcript_of(payload, "transcript_path"),
                now_seconds=time.time(),
            )
            if output:
                # Unbuffered: a flush that fails at exit would turn the exit code into 120.
                ticket.write_all(1, output)
            shown.begin(os.path.join(home, "staging"), field(payload, "session_id"), output)
            log_brief(home, payload, output)
        elif payload.get("source") == "resume":
            since = brief.resumed_output(home, folders_of(payload), field(payload, "session_id"))
            if since:
                ticket.write_all(1, since)
                log_brief(home, payload, since)
    except Exception as problem:  # the sweep comes all the same
        log(home, ticket.SESSION_START, problem)
    sweep.sweep(os.path.join(home, "staging"), transcript_of(payload, "transcript_path"), time.time_ns())


def log_brief(home: str, payload: dict[str, object], output: bytes | None) -> None:
    """Note which memories a session was told at its start."""
    if TYPE_CHECKING or __package__:
        from cortex.hooks import brief, shown
    else:
        import brief
        import shown
    project_id, ids, tokens = brief.shown_ids(home, folders_of(payload), output)
    session_id = field(payload, "session_id")
    staging = os.path.join(home, "staging")
    shown.log_shown(staging, ticket.SESSION_START, project_id, session_id, ids, tokens, time.time_ns())


def user_prompt_submit(home: str) -> None:
    """Print what the session should know at this prompt; nothing if that takes too long."""
    import signal  # here its 4 ms are spent by json already

    signal.signal(signal.SIGALRM, lambda *_: give_up(home))
    signal.setitimer(signal.ITIMER_REAL, MAX_PROMPT_SECONDS)
    if TYPE_CHECKING or __package__:
        from cortex.hooks import prompt
    else:
        import prompt
    payload = read_payload()
    text = payload.get("prompt")
    if is_left_alone(home, payload, text if isinstance(text, str) else ""):
        return
    output = prompt.prompt_output(home, payload, folders_of(payload), time.time_ns())
    signal.setitimer(signal.ITIMER_REAL, 0)  # half of an answer would reach the model as it is
    if output:
        ticket.write_all(1, output)


def give_up(home: str) -> None:
    """Count a prompt that went on without Cortex, and end."""
    try:
        os.makedirs(os.path.join(home, "runs"), mode=0o700, exist_ok=True)
        with open(os.path.join(home, "runs", LATE_PROMPTS), "ab") as file:
            file.write(b".")
    finally:
        os._exit(0)


def is_left_alone(home: str, payload: dict[str, object], prompt: str = "") -> bool:
    """Return whether the session is private; note it where the switch, or its first prompt, says so now."""
    if TYPE_CHECKING or __package__:
        from cortex.hooks import private
    else:
        import private
    name = payload.get("transcript_path")
    if not isinstance(name, str) or not name:
        return private.is_switched_off()
    staging, transcript = os.path.join(home, "staging"), transcript_of(payload, "transcript_path")
    # The client writes the transcript behind the first prompt: at a later one it is there.
    is_asked = private.is_word_in(prompt) and not os.path.exists(transcript)
    if is_asked or private.is_switched_off():
        private.make_private(staging, transcript)
        return True
    return private.is_private(staging, transcript)


def folders_of(payload: dict[str, object]) -> list[str]:
    """Return the folders that tell a session's project: where it stands, then where it began."""
    cwd = os.path.expanduser(field(payload, "cwd"))
    if len(cwd.encode("utf-8", "replace")) > ticket.MAX_PATH_BYTES:
        raise ValueError("'cwd' is longer than a path can be")
    # After a compaction the session may be in another folder than the one it began in.
    return [cwd, os.path.realpath(cwd), os.environ.get("CLAUDE_PROJECT_DIR") or cwd]


def start_background_run(home: str) -> None:
    """Start the run that takes in what waits, where an engine is installed; it outlives the session."""
    if TYPE_CHECKING or __package__:
        from cortex.hooks import background
    else:  # only here: the other events need no 2 ms for it
        import background
    background.start(home, time.time())


def write_ticket(home: str, event: str, payload: dict[str, object]) -> None:
    """Write the ticket of one event; the client's own compaction run is not a subagent and gets none."""
    name, agent_id = "transcript_path", None
    if event == "subagent-stop":
        if payload.get("agent_type", "unknown") in ("", None):
            return
        name, agent_id = "agent_transcript_path", field(payload, "agent_id")
    transcript = transcript_of(payload, name)
    try:
        ticket.drop(
            os.path.join(home, "staging"),
            event,
            transcript,
            session_id=field(payload, "session_id"),
            agent_id=agent_id,
            cwd=field(payload, "cwd") if payload.get("cwd") else None,
        )
    except FileNotFoundError:
        # `claude -p` may write its transcript after Stop: the session's end has it then, or the next sweep.
        # A client that is left without a prompt writes none at all.
        if event == "subagent-stop" or os.path.exists(transcript):
            raise


def warn_of_context(home: str, payload: dict[str, object]) -> None:
    """Tell the person, once a session, that its context fills up."""
    if TYPE_CHECKING or __package__:
        from cortex.hooks import brief, context_use
    else:  # only here: the other events need neither
        import brief
        import context_use
    transcript = transcript_of(payload, "transcript_path")
    if not os.path.exists(transcript):
        return
    project_id = brief.find_project(os.path.join(home, "published"), folders_of(payload))
    output = context_use.context_warning(home, field(payload, "session_id"), transcript, project_id)
    if output:
        ticket.write_all(1, output)


def read_payload() -> dict[str, object]:
    """Return the JSON object on stdin, read to its end."""
    chunks, left = [], _MAX_PAYLOAD_BYTES + 1
    while left > 0:
        chunk = os.read(0, min(left, 1024 * 1024))
        if not chunk:
            break
        chunks.append(chunk)
        left -= len(chunk)
    if left <= 0:
        raise ValueError(f"payload over {_MAX_PAYLOAD_BYTES} bytes")
    payload = json.loads(b"".join(chunks))
    if not isinstance(payload, dict):
        raise ValueError("the payload is not an object")
    return payload


def field(payload: dict[str, object], name: str) -> str:
    """Return a field that must be a text with something in it."""
    value = payload.get(name)
    if not isinstance(value, str) or not value:
        raise ValueError(f"'{name}' is missing")
    return value


def transcript_of(payload: dict[str, object], name: str) -> str:
    """Return the absolute path of the transcript that a field names."""
    path = os.path.expanduser(field(payload, name))
    if not os.path.isabs(path):
        raise ValueError(f"'{name}' is not absolute")
    return os.path.normpath(path)


def log(home: str, event: str, problem: BaseException) -> None:
    """Append one line to `runs/hooks.log`: what went wrong, no word of a transcript or the environment."""
    # Messages of other exceptions might quote what they met.
    detail = f": {problem}" if isinstance(problem, (OSError, ValueError)) else ""
    line = f"{ticket.stamp(time.time_ns())} {event} {type(problem).__name__}{detail}"
    line = " ".join(line.split())[:MAX_LOG_LINE]
    path = os.path.join(home, "runs", "hooks.log")
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        if os.path.exists(path) and os.path.getsize(path) > _MAX_LOG_BYTES:
            os.replace(path, path + ".1")
        with open(path, "a", encoding="utf-8", errors="replace") as file:
            file.write(line + "\n")
    except OSError:
        pass  # nowhere to say it


if __name__ == "__main__":
    try:
        if not os.environ.get("CORTEX_INTERNAL"):
            main()
    finally:
        os._exit(0)  # past any error, and 1 ms faster than winding Python down
