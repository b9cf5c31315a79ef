"""
The person's own Claude Code login: `claude -p`, one process at a time, in folders that hold nothing else.

The client sees no file of the person's: home, settings, temporary files and working directory are empty
folders that are removed afterwards. It is logged in by the token that `claude setup-token` makes, because its
usual login is one of the files it then does not see.
"""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from cortex.flows.writers import Provider
from cortex.storage.machine.scratch import Scratch, scratch
from cortex.transforms.errors import AnswerLost, ModelBusy, ModelClosed, ModelRefused, StoreBusy
from cortex.transforms.writer.request import ModelRequest, Reply

# The client starts within 4 s on a slow machine and writes twelve facts in 20 to 30 s.
CLIENT_ANSWER_S = 90.0
# What the client adds (its environment, the schema as a tool): 650 tokens, at four characters each.
CLIENT_OVERHEAD_TOKENS = 3_000
# Where the model does not answer by the schema the client asks again until --max-budget-usd is passed, so the
# reservation covers that and the request that passes it.
REQUESTS_RESERVED = 2
# A service that limits the plan does so for longer than a run waits.
BUSY_S = 300.0

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
_LOG_IN = f"Run `claude setup-token`, then: cortex config set models.claude_token TOKEN. {_OFF}"
_LATER = "A later run asks again."


class ClaudeLogin:
    """`claude -p` behind the Writer protocol."""

    name = "claude"
    overhead_tokens = CLIENT_OVERHEAD_TOKENS
    requests_reserved = REQUESTS_RESERVED

    def __init__(self, command: str, token: str, home: Path, base_url: str | None = None) -> None:
        self._command, self._token, self._home, self._base_url = command, token, home, base_url

    def ask(self, request: ModelRequest, most_usd: float) -> Reply:
        """Start the client for one request and end it, at most CLIENT_ANSWER_S. See Writer."""
        try:
            with scratch(self._home) as folders:
                output, errors = self._run(request, most_usd, folders)
        except StoreBusy as error:
            raise ModelBusy(error.problem, error.next_step, BUSY_S) from error
        return _reply(request.request_id, request.model, _result(output, errors))

    def count(self, request: ModelRequest) -> int | None:
        """Return None: the client counts nothing beforehand."""
        return None

    def _run(self, request: ModelRequest, most_usd: float, folders: Scratch) -> tuple[bytes, bytes]:
        try:
            process = subprocess.Popen(
                [self._command, *_arguments(request, most_usd)],
                env=self._environment(request, folders),
                cwd=folders.work,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise ModelClosed(f"`claude` cannot be started ({error.strerror}).", _OFF) from error
        try:
            return process.communicate(_prompt(request).encode("utf-8", "replace"), timeout=CLIENT_ANSWER_S)
        except subprocess.TimeoutExpired as error:
            raise AnswerLost(f"`claude` took longer than {CLIENT_ANSWER_S:.0f} s.", _LATER) from error
        finally:
            _end_group(process)

    def _environment(self, request: ModelRequest, folders: Scratch) -> dict[str, str]:
        kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        own = {
            "HOME": str(folders.home),
            "CLAUDE_CONFIG_DIR": str(folders.config),
            "TMPDIR": str(folders.tmp),
            "CLAUDE_CODE_OAUTH_TOKEN": self._token,
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(request.max_output_tokens),
        }
        if self._base_url:
            own["ANTHROPIC_BASE_URL"] = self._base_url
        return {**kept, **OWN_VARIABLES, **own}


def claude_writer(token: str | None, home: Path, base_url: str | None = None) -> ClaudeLogin:
    """Return the provider; nothing is started before the first `ask`. Raises ModelClosed."""
    command = shutil.which("claude")
    if command is None:
        raise ModelClosed("`models.writer` is claude, but there is no `claude` on the PATH.", _OFF)
    if not token:
        raise ModelClosed("`models.writer` is claude, but Cortex has no login token of yours.", _LOG_IN)
    return ClaudeLogin(command, token, home, base_url)


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


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    """Leave nothing running: the client's own children too."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=5)


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


def _reply(request_id: str, model: str, result: Mapping[str, Any]) -> Reply:
    """Return the client's result as a reply; the tokens are those of all the requests that it made."""
    usage = result.get("usage") or {}
    tokens_in = sum(
        int(usage.get(name) or 0)
        for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    )
    tokens_out = int(usage.get("output_tokens") or 0)
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
    )


def _stop_reason(result: Mapping[str, Any]) -> str:
    if result.get("stop_reason") == "refusal":
        return "refusal"
    is_cut = "output token maximum" in str(result.get("result"))
    return "max_tokens" if is_cut else str(result.get("terminal_reason") or "no answer by the schema")


def _failure(result: Mapping[str, Any]) -> ModelBusy | AnswerLost | ModelClosed | ModelRefused:
    """Return the error of a result that no tokens are reported for. Only its kind is told."""
    status, words = result.get("api_error_status"), str(result.get("result"))
    if status in (401, 403) or "not logged in" in words.lower() or "/login" in words:
        return ModelClosed("Claude Code is logged out, or its token is no longer valid.", _LOG_IN)
    if status == 402 or "credit balance" in words.lower():
        return ModelClosed("the account of your Claude Code login has no credit left.", _OFF)
    if status == 404:
        return ModelClosed("Claude Code does not know the model.", "See models.writer_model: cortex config")
    if float(result.get("total_cost_usd") or 0.0) > 0.0:
        return AnswerLost("`claude` used up what was reserved without an answer.", _LATER)
    if status in (400, 413, 422):
        return ModelRefused(f"the service did not accept the request (status {status}).", _LATER)
    kind = f"status {status}" if status else "no connection"
    return ModelBusy(f"the service behind Claude Code is busy or limits your plan ({kind}).", _LATER, BUSY_S)


PROVIDER = Provider(
    "claude",
    "your Claude Code login",
    "your own Claude Code login",
    lambda settings: claude_writer(settings.models.claude_token, settings.home, settings.models.base_url),
    costs="counted at list price; a subscription is not charged by token",
)
