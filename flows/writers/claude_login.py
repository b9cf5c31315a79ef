"""
The person's own Claude Code: `claude -p`, one process at a time, in folders that hold nothing else.

The client sees no file of the person's: home, settings, temporary files and working directory are empty
folders that are removed afterwards. It uses the person's own login if there is one: a variable tells it
where it keeps that, and the client alone reads and renews it. Otherwise it is logged in by the token that
`claude setup-token` makes.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import IO, Any

from cortex.flows.writers import Provider
from cortex.storage.machine.client_program import Scratch, scratch
from cortex.storage.staging.client_files import client_folder
from cortex.transforms.errors import AnswerLost, ModelBusy, ModelClosed, ModelLimited, ModelRefused, StoreBusy
from cortex.transforms.writer.request import ModelRequest, Reply, used_tokens

# The client starts within 4 s on a slow machine and writes twelve facts in 20 to 30 s.
CLIENT_ANSWER_S = 90.0
# What the client adds (its environment, the schema as a tool): 650 tokens, at four characters each.
CLIENT_OVERHEAD_TOKENS = 3_000
# Where the model does not answer by the schema the client asks again until --max-budget-usd is passed, so the
# reservation covers that and the request that passes it.
REQUESTS_RESERVED = 2
# An answer that is cut off was asked for four times, by the client itself. What it has sent if nothing was
# answered it does not say, so that counts as so many.
MAX_REQUESTS = 4
# A service that is overloaded is so for longer than a run waits.
BUSY_S = 300.0
# It says whether somebody is logged in within 2 s, without the network.
STATUS_S = 30.0
# Twelve facts have about 10 KB, and what the client says of the answer 2 KB. Its complaints have a line.
MAX_OUTPUT_BYTES, MAX_ERROR_BYTES = 1_000_000, 64_000

# Older clients lack --safe-mode or --no-session-persistence.
NEEDED = "2.1.330"
# Handed on: where programs and certificates are, and the way out of the network.
KEPT_VARIABLES = (
    *("PATH", "LANG", "LC_ALL", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy"),
    *("no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
)
# Nothing but the one request: no update, no report, no thinking, no second try, no instructions from disk.
OWN_VARIABLES = {
    "CORTEX_INTERNAL": "1",
    "TZ": "UTC",  # the client says in local time when a limit is reset
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_MAX_RETRIES": "0",
    "CLAUDE_CODE_DISABLE_REFUSAL_RETRY": "1",
    "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
    "CLAUDE_CODE_DISABLE_THINKING": "1",
    "MAX_THINKING_TOKENS": "0",
    "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
    "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
}

# A transcript may name files as a prompt would (@path), and the client then sends what is in them (seen).
# These rules, --restricted and each of the two variables above prevent it alone.
NOTHING_READ = '{"permissions":{"deny":["Read","Read(//**)"]}}'
# The client takes /words, !words and #words at the beginning for commands.
COMMAND_SIGNS = ("/", "!", "#", "@")

_OFF = "Or: cortex config set models.writer none"
_TOKEN = "`claude setup-token`, then: cortex config set models.claude_token TOKEN"
_LOG_IN = f"Run `claude auth login`; or {_TOKEN}. {_OFF}"
_LATER = "A later run asks again."

# Where the client looks for its login, apart from its settings: not in its makers' documentation, in clients
# since about 2.1.144.
LOGIN_PLACE = "CLAUDE_SECURESTORAGE_CONFIG_DIR"

# What is said of a plan that is used up comes as an answer: "You've hit your weekly limit · resets Nov 27,
# 5:32am (UTC)".
_LIMIT = re.compile(
    r"\byou['’]ve (?:hit|reached) your\b(?P<kind>[^·.\n]{0,60}?)\blimit|out of usage credits", re.I
)
_KINDS = ("5-hour", "session", "weekly", "monthly spend")
_RESET = re.compile(
    r"resets (?:(?P<month>[A-Z][a-z]{2}) (?P<day>\d{1,2}), )?(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?"
    r"(?P<half>am|pm) \(UTC\)"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True)
class LoginState:
    """Whether the client is logged in by itself, and to which plan (`pro`, `max_5x`), where it says so."""

    is_logged_in: bool
    plan: str = ""


class ClaudeLogin:
    """`claude -p` behind the Writer protocol."""

    name = "claude"
    overhead_tokens = CLIENT_OVERHEAD_TOKENS
    requests_reserved = REQUESTS_RESERVED
    most_requests = MAX_REQUESTS

    def __init__(self, command: str, token: str | None, home: Path, base_url: str | None = None) -> None:
        self._command, self._token, self._home, self._base_url = command, token, home, base_url
        self._uses_own: bool | None = None

    def ask(self, request: ModelRequest, most_usd: float) -> Reply:
        """Start the client for one request and end it, at most CLIENT_ANSWER_S. See Writer."""
        self.ready()
        variables = {**self._login(), "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(request.max_output_tokens)}
        output, errors = self._run(
            _arguments(request, most_usd), variables, _prompt(request), CLIENT_ANSWER_S
        )
        result = _result(output, errors)
        if self._uses_own and self._token and _is_logged_out(result):
            self._uses_own = False
            raise ModelBusy("Claude Code's own login was refused; the token is tried.", _LATER, 0.0)
        return _reply(request.request_id, request.model, result, _now())

    def count(self, request: ModelRequest) -> int | None:
        """Return None: the client counts nothing beforehand."""
        return None

    def ready(self) -> None:
        """Find out, once, which login there is: the person's own, else the token. See Writer."""
        if self._uses_own is not None:
            return
        is_logged_in = self.state().is_logged_in
        if not is_logged_in and not self._token:
            raise ModelClosed("Claude Code is not logged in, and Cortex has no token of yours.", _LOG_IN)
        self._uses_own = is_logged_in

    def state(self) -> LoginState:
        """Return whether the client is logged in by itself; it is started for that, and asks no model."""
        try:
            output, _ = self._run(["auth", "status", "--json"], _own_login(), "", STATUS_S)
            status = json.loads(output)
            plan = re.sub(r"[^\w-]", "", str(status.get("planTier") or status.get("subscriptionType") or ""))
            return LoginState(status.get("loggedIn") is True, plan[:20])
        except (AnswerLost, ValueError, AttributeError, RecursionError):  # too old to say, or something else
            return LoginState(False)

    def _login(self) -> dict[str, str]:
        return _own_login() if self._uses_own else {"CLAUDE_CODE_OAUTH_TOKEN": self._token or ""}

    def _run(
        self, arguments: Sequence[str], variables: Mapping[str, str], words: str, seconds: float
    ) -> tuple[bytes, bytes]:
        """Return what the client prints and complains of. Raises ModelBusy, ModelClosed and AnswerLost."""
        try:
            with scratch(self._home) as folders:
                return self._run_in(folders, arguments, variables, words, seconds)
        except StoreBusy as error:
            raise ModelBusy(error.problem, error.next_step, BUSY_S) from error

    def _run_in(
        self,
        folders: Scratch,
        arguments: Sequence[str],
        variables: Mapping[str, str],
        words: str,
        seconds: float,
    ) -> tuple[bytes, bytes]:
        try:
            process = subprocess.Popen(
                [self._command, *arguments],
                env={**self._environment(folders), **variables},
                cwd=folders.work,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise ModelClosed(f"`claude` cannot be started ({error.strerror}).", _OFF) from error
        return _spoken(process, words.encode("utf-8", "replace"), seconds)

    def _environment(self, folders: Scratch) -> dict[str, str]:
        kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        own = {
            "HOME": str(folders.home),
            "CLAUDE_CONFIG_DIR": str(folders.config),
            "TMPDIR": str(folders.tmp),
        }
        if self._base_url:
            own["ANTHROPIC_BASE_URL"] = self._base_url
        return {**kept, **OWN_VARIABLES, **own}


def claude_writer(token: str | None, home: Path, base_url: str | None = None) -> ClaudeLogin:
    """Return the provider; nothing is started before the first `ask`. Raises ModelClosed."""
    command = shutil.which("claude")
    if command is None:
        raise ModelClosed("`models.writer` is claude, but there is no `claude` on the PATH.", _OFF)
    return ClaudeLogin(command, token, home, base_url)


def _now() -> datetime:
    return datetime.now(UTC)


def _own_login() -> dict[str, str]:
    """Return the variables by which the client finds the login that it keeps for the person."""
    if sys.platform == "darwin":  # in the keychain, which is found through the home; not tried
        return {LOGIN_PLACE: os.environ.get("CLAUDE_CONFIG_DIR", ""), "HOME": str(Path.home())}
    return {LOGIN_PLACE: str(client_folder().absolute())}


def _arguments(request: ModelRequest, most_usd: float) -> list[str]:
    # The text that is asked goes to standard input: a command line can be seen by others, and has an end.
    return [
        *("-p", "--output-format", "json", "--model", request.model),
        *("--system-prompt", request.system, "--json-schema", request.schema),
        *("--max-budget-usd", f"{most_usd:.6f}"),
        *("--tools", "", "--setting-sources", "", "--strict-mcp-config", "--disable-slash-commands"),
        *("--safe-mode", "--restricted", "--settings", NOTHING_READ),
        *("--no-chrome", "--no-session-persistence"),
    ]


def _prompt(request: ModelRequest) -> str:
    """Return what goes to standard input: the text that is asked, never taken for a command."""
    is_command = request.content.lstrip().startswith(COMMAND_SIGNS)
    return f"The text:\n{request.content}" if is_command else request.content


class _ProgramOutput(Thread):
    """Reads a pipe to its end and keeps the first bytes; more than `most` of an answer is not listened to."""

    def __init__(self, pipe: IO[bytes], most: int, *, ends: bool) -> None:
        super().__init__(daemon=True)
        self.content, self.is_over = bytearray(), False
        self._pipe, self._most, self._ends = pipe, most, ends

    def run(self) -> None:
        """Read until the pipe is closed."""
        with suppress(OSError, ValueError):
            while chunk := os.read(self._pipe.fileno(), 65_536):
                self.is_over = self.is_over or len(self.content) + len(chunk) > self._most
                if not self.is_over:
                    self.content += chunk
                elif self._ends:
                    return


def _spoken(process: "subprocess.Popen[bytes]", words: bytes, seconds: float) -> tuple[bytes, bytes]:
    """Return what a process answers to `words` and what it complains of, and end it. Raises AnswerLost."""
    assert process.stdin and process.stdout and process.stderr
    answer = _ProgramOutput(process.stdout, MAX_OUTPUT_BYTES, ends=True)
    complaints = _ProgramOutput(process.stderr, MAX_ERROR_BYTES, ends=False)
    telling = Thread(target=_tell, args=(process.stdin, words), daemon=True)
    try:
        for thread in (answer, complaints, telling):
            thread.start()
        answer.join(seconds)
        if answer.is_alive():
            raise AnswerLost(f"`claude` took longer than {seconds:.0f} s.", _LATER)
        if answer.is_over:
            raise AnswerLost(f"the answer of `claude` is larger than {MAX_OUTPUT_BYTES:,} bytes.", _LATER)
        complaints.join(1.0)
        return bytes(answer.content), bytes(complaints.content)
    finally:
        _end_group(process)


def _tell(pipe: IO[bytes], words: bytes) -> None:
    with suppress(OSError, ValueError), pipe:
        pipe.write(words)


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    """Leave nothing running: the client's own children too."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=5)


def _result(output: bytes, errors: bytes) -> Mapping[str, Any]:
    try:
        result = json.loads(output)
        if isinstance(result, dict) and result.get("type") == "result":
            return result
    except (ValueError, RecursionError):
        pass
    if b"unknown option" in errors:
        raise ModelClosed(
            f"your Claude Code is too old: version {NEEDED} is needed.", f"Run `claude update`. {_OFF}"
        )
    raise AnswerLost("`claude` ended without a result.", _LATER)


def _reply(request_id: str, model: str, result: Mapping[str, Any], now: datetime) -> Reply:
    """Return the client's result as a reply; the tokens are those of all the requests that it made."""
    if limited := _limit(result, now):
        raise limited
    tokens_in, tokens_out = used_tokens(result.get("usage") or {})
    if not tokens_in + tokens_out:
        raise _failure(result)
    answer = result.get("structured_output")
    is_done = answer is not None and not result.get("is_error")
    return Reply(
        request_id=request_id,
        provider="claude",
        model=model,
        text=json.dumps(answer, ensure_ascii=False) if is_done else "",
        stop_reason="end_turn" if is_done else _stop_reason(result),
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        usd=0.0,
        provider_request_id=str(result.get("session_id") or "") or None,
        requests=_requests(result, is_done=is_done),
    )


def _requests(result: Mapping[str, Any], *, is_done: bool) -> int:
    """Return how many requests the client made: its turns, but for the one that takes the answer."""
    turns = result.get("num_turns")
    if type(turns) is not int or not 1 <= turns <= MAX_REQUESTS + 1:
        return MAX_REQUESTS
    return max(1, turns - is_done)


def _limit(result: Mapping[str, Any], now: datetime) -> ModelLimited | None:
    """Return the limit of the plan that a result tells of, if it does: the client says it as an answer."""
    words = str(result.get("result") or "")
    notice = _LIMIT.search(words) if result.get("is_error") else None
    if result.get("structured_output") is not None or not (notice or result.get("api_error_status") == 429):
        return None
    kind = (notice["kind"] or "").strip().lower() if notice else ""
    named = f"{kind} limit" if kind in _KINDS else "limit"
    until = _reset_at(words, now)
    when = f" until {until:%Y-%m-%d %H:%M} UTC" if until else ""
    return ModelLimited(
        f"the {named} of your Claude plan is reached{when}.",
        "Nothing is lost: what waits is asked after it.",
        until,
    )


def _reset_at(words: str, now: datetime) -> datetime | None:
    """
    Return the instant at which a limit is reset, as the client says it.

    >>> _reset_at("resets 5:32am (UTC)", datetime(2026, 11, 24, 6, tzinfo=UTC))
    datetime.datetime(2026, 11, 25, 5, 32, tzinfo=datetime.timezone.utc)
    """
    reset = _RESET.search(words)
    if reset is None:
        return None
    now = now.astimezone(UTC)
    try:
        hour = int(reset["hour"]) % 12 + (12 if reset["half"] == "pm" else 0)
        at = now.replace(hour=hour, minute=int(reset["minute"] or 0), second=0, microsecond=0)
        if reset["month"]:
            at = at.replace(month=_MONTHS.index(reset["month"]) + 1, day=int(reset["day"]))
            at = at if at > now else at.replace(year=now.year + 1)
        elif at <= now:
            at += timedelta(days=1)
    except ValueError:
        return None
    return at


def _stop_reason(result: Mapping[str, Any]) -> str:
    if result.get("stop_reason") == "refusal":
        return "refusal"
    is_cut = "output token maximum" in str(result.get("result"))
    return "max_tokens" if is_cut else str(result.get("terminal_reason") or "no answer by the schema")


def _is_logged_out(result: Mapping[str, Any]) -> bool:
    words = str(result.get("result"))
    is_about_login = "not logged in" in words.lower() or "/login" in words
    return bool(result.get("is_error")) and (result.get("api_error_status") in (401, 403) or is_about_login)


def _failure(result: Mapping[str, Any]) -> ModelBusy | AnswerLost | ModelClosed | ModelRefused:
    """Return the error of a result that no tokens are reported for. Only its kind is told."""
    status, words = result.get("api_error_status"), str(result.get("result"))
    if _is_logged_out(result):
        return ModelClosed("Claude Code is logged out, or its login has ended.", _LOG_IN)
    if status == 402 or "credit balance" in words.lower():
        return ModelClosed("the account of your Claude Code login has no credit left.", _OFF)
    if status == 404:
        return ModelClosed("Claude Code does not know the model.", "See models.writer_model: cortex config")
    cost = result.get("total_cost_usd")
    if isinstance(cost, int | float) and cost > 0.0:
        return AnswerLost("`claude` used up what was reserved without an answer.", _LATER)
    if status in (400, 413, 422):
        return ModelRefused(f"the service did not accept the request (status {status}).", _LATER)
    kind = f"status {status}" if type(status) is int else "no connection"
    return ModelBusy(f"the service behind Claude Code is busy or fails ({kind}).", _LATER, BUSY_S)


PROVIDER = Provider(
    "claude",
    "your own Claude Code login",
    lambda settings: claude_writer(settings.models.claude_token, settings.home, settings.models.base_url),
)
