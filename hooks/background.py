"""The background run: one detached `cortex run` at a time, at low priority, when a session ends or begins.

Whoever holds the lock on `runs/background.lock` runs; the engine inherits it, so that even when its keeper
is killed no second one starts beside it. A hook writes its ticket first and tries the lock second, the keeper
lets the lock go first and looks for tickets second: no ticket is left behind between the two.
"""

from __future__ import annotations

import fcntl
import json
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeGuard
if TYPE_CHECKING or __package__:
    from cortex.hooks import ticket
    from cortex.hooks.home import home_in
else:
    import ticket
    from home import home_in

# Below the home.
ENGINE, LOCK, MARK, LOG = "engine", "runs/background.lock", "runs/background.json", "runs/background.log"

# Scripts may end a session every second, and a run over one short session takes some seconds of a core.
SECONDS_BETWEEN_STARTS = 30

# After a run that failed or was killed, sessions that end or begin do not start the next one before this.
RETRY_AFTER_SECONDS = 600

# What comes while a run goes on is taken in by one more round. Past these (10 minutes of sessions that end
# all the time, or of a run of the user's own that holds the lease) the next event starts afresh.
MAX_ROUNDS = 20

# A first run over 50 MB of transcripts takes two minutes. One of an hour hangs; killing it loses nothing.
MAX_RUN_SECONDS = 3600

# Against an interactive program at 0, nice 10 gets a tenth of a busy core and all of an idle one.
NICENESS = 10

# Last output of some hundred runs, and their predecessors.
_MAX_LOG_BYTES = 128 * 1024

# Another run (a person's own) held the store's lease: no failure, and the tickets wait for the next round.
EXIT_BUSY = 75
# A run that would hide much of what is shown: sessions were taken in, and a person is to decide.
EXIT_LOSS = 20
EXIT_KILLED = -9  # stands for one that nobody was left to note

# What installers write into the command: `from cortex.cli.main import main`. Others have its name too.
_ENTRY, _MAX_ENTRY_BYTES = b"cortex.cli.main", 4096


def start(home: str, now_seconds: float, *, is_due: bool = False) -> bool:
    """
    Start the keeper where work waits, an engine is installed and no other keeper is; return whether.

    `is_due` says that work waits which has no ticket.
    """
    if not is_due and not has_tickets(home):
        return False
    engine = engine_at(home)
    if not engine:
        return False
    lock = _take_lock(home)
    if lock is None:
        return False
    try:
        if _is_resting(read_mark(home), now_seconds):
            return False
        child = os.fork()
        if child == 0:
            _detach_and_keep(home, engine, lock)
        os.waitpid(child, 0)
    finally:
        os.close(lock)  # the keeper has it too
    return True


def engine_at(home: str) -> str | None:
    """
    Return the path of the `cortex` command: the one that `<home>/engine` names, else the one on the PATH.

    None where a command is named that cannot be started, or none is named and the PATH has none of ours.
    """
    try:
        with open(os.path.join(home, ENGINE), "rb") as file:
            path = os.fsdecode(file.read(4096).split(b"\n", 1)[0])
    except (FileNotFoundError, NotADirectoryError):
        return engine_on_path()
    return path if _is_command(path) else None


def engine_on_path() -> str | None:
    """Return the first `cortex` on the PATH, None where that is another program of this name."""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder, "cortex")
        if _is_command(path):  # a relative folder would be the project's own
            with open(path, "rb") as file:
                return path if _ENTRY in file.read(_MAX_ENTRY_BYTES) else None
    return None


def _is_command(path: str) -> bool:
    return os.path.isabs(path) and "\0" not in path and os.path.isfile(path) and os.access(path, os.X_OK)


def has_tickets(home: str) -> bool:
    """Return whether a ticket waits."""
    try:
        with os.scandir(os.path.join(home, "staging", ticket.NEW)) as entries:
            return any(entry.name.endswith(".json") for entry in entries)
    except FileNotFoundError:
        return False


def read_mark(home: str) -> dict[str, object]:
    """
    Return `started_at`, `ended_at` (seconds since 1970) and `exit_code` of the last run, if known.

    `failures` were before it in a row, the first of them at `failing_since`.
    """
    try:
        with open(os.path.join(home, MARK), "rb") as file:
            fields = json.loads(file.read(4096))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return {}
    return fields if isinstance(fields, dict) else {}


def failing(mark: dict[str, object], *, is_over: bool) -> tuple[int, float]:
    """
    Return how many runs failed in a row, the last one included, and when the first of them did.

    `is_over` says that the last run is not at work, so that one without an end was killed. A run that found
    the store busy is neither a success nor a failure.
    """
    count, since = (mark.get(name) for name in ("failures", "failing_since"))
    before = count if isinstance(count, int) else 0
    code = mark.get("exit_code", EXIT_KILLED if is_over and mark else EXIT_BUSY)
    if code == 0:
        return 0, 0.0
    first = next((t for t in (since, mark.get("ended_at"), mark.get("started_at")) if _is_number(t)), 0.0)
    return before + (code != EXIT_BUSY), float(first)


def is_running(home: str) -> bool:
    """Return whether a keeper or its engine holds the lock now."""
    try:
        lock = os.open(os.path.join(home, LOCK), os.O_RDWR)
    except OSError:
        return False
    try:
        # Shared and for an instant: who looks does not keep another from looking.
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _is_resting(mark: dict[str, object], now_seconds: float) -> bool:
    # With the lock in hand, a mark without an end is that of a run that was killed.
    if mark.get("exit_code") in (0, EXIT_BUSY):
        return False
    started = mark.get("started_at")
    # A mark from the future (a clock set back) holds nobody up.
    return _is_number(started) and 0 <= now_seconds - started < RETRY_AFTER_SECONDS


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float))


def _take_lock(home: str) -> int | None:
    path = os.path.join(home, LOCK)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    except BaseException:
        os.close(lock)
        raise
    return lock


def _detach_and_keep(home: str, engine: str, lock: int) -> None:
    # Forked twice, in a session of its own: the client, which ends a hook's process tree, cannot find it.
    try:
        os.setsid()
        if os.fork() == 0:
            _redirect(home, lock)
            os.chdir(home)
            os.nice(NICENESS)
            _keep(home, engine, lock)
    except BaseException as problem:
        ticket.write_all(2, f"{ticket.stamp(time.time_ns())} {type(problem).__name__}\n".encode())
    finally:
        os._exit(0)


def _keep(home: str, engine: str, lock: int | None) -> None:
    for _ in range(MAX_ROUNDS):
        _pause(home)
        failures, since = failing(read_mark(home), is_over=True)
        past = {"failures": failures, "failing_since": since} if failures else {}
        _write_mark(home, {**past, "started_at": time.time()})
        code = _run(engine, home, lock)
        _write_mark(home, {**read_mark(home), "ended_at": time.time(), "exit_code": code})
        if lock is not None:
            os.close(lock)  # before looking for tickets, see the top
        if code not in (0, EXIT_BUSY) or not has_tickets(home):
            return
        lock = _take_lock(home)
        if lock is None:
            return


def _pause(home: str) -> None:
    started = read_mark(home).get("started_at")
    if _is_number(started):
        since = time.time() - started
        if 0 <= since < SECONDS_BETWEEN_STARTS:
            time.sleep(SECONDS_BETWEEN_STARTS - since)


def _run(engine: str, home: str, lock: int | None) -> int:
    """Run the engine to its end and return its exit code; negative is the signal that ended it."""
    child = os.fork()
    if child == 0:
        try:
            import signal  # 4 ms, which no session waits for here

            if lock is not None:
                os.set_inheritable(lock, True)
            signal.alarm(MAX_RUN_SECONDS)  # goes on through exec, and ends the engine
            os.execve(engine, [engine, "run", "--engine", "plain"], _environment(home))
        finally:
            os._exit(127)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _environment(home: str) -> dict[str, str]:
    # The client hands its hooks a token for talking to it, and a project may set PYTHONPATH to its own.
    left_out = ("CLAUDE_CODE_", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    if home_in(kept) != home:  # otherwise it stays as it is, a URI too
        kept["CORTEX_HOME"] = home
    return {**kept, "CORTEX_INTERNAL": "1"}


def _redirect(home: str, lock: int) -> None:
    """Give the keeper an empty stdin, the log for its output, and nothing else of the hook's but the lock."""
    path = os.path.join(home, LOG)
    if os.path.exists(path) and os.path.getsize(path) > _MAX_LOG_BYTES:
        os.replace(path, path + ".1")
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    for descriptor in range(3, 256):
        if descriptor != lock:
            try:  # noqa: SIM105
                os.close(descriptor)
            except OSError:
                pass  # not open


def _write_mark(home: str, fields: dict[str, object]) -> None:
    staging, mark = os.path.join(home, "staging"), os.path.join(home, MARK)
    ticket.write_whole(staging, mark, json.dumps(fields).encode(), durable=False)
    word = f"end, exit code {fields['exit_code']}" if "exit_code" in fields else "start"
    ticket.write_all(1, f"{ticket.stamp(time.time_ns())} {word}\n".encode())
