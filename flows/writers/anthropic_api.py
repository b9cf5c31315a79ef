"""
The hosted interface: Anthropic's Messages API, or another endpoint that speaks it; single, streamed or in
batches.
"""

import json
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from importlib.util import find_spec
from threading import Timer
from typing import TYPE_CHECKING, Any

from cortex.flows.writers import Provider
from cortex.storage.filesystem.place import install_extra
from cortex.transforms.errors import AnswerLost, ModelBusy, ModelClosed, ModelRefused, ModelUnavailable
from cortex.transforms.writer.request import ModelRequest, Reply, used_tokens

if TYPE_CHECKING:
    from anthropic import Anthropic, APIStatusError


# -- An answer of the Messages API that comes in pieces, as server-sent events, put together to one message.


def message_of_events(lines: Iterable[str], next_step: str) -> Mapping[str, Any]:
    """
    Return the message that a stream's lines make, as the service answers it in one piece.

    Raises AnswerLost if the stream ends early or tells of an error: what was written until then may cost.

    >>> start = '{"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3}}}'
    >>> piece = '{"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Hi"}}'
    >>> end = '{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}'
    >>> message = message_of_events([f"data: {event}" for event in (start, piece, end)], "Ask again.")
    >>> message["content"], message["stop_reason"], message["usage"]
    ([{'type': 'text', 'text': 'Hi'}], 'end_turn', {'input_tokens': 3, 'output_tokens': 1})
    """
    message: dict[str, Any] = {}
    usage: dict[str, Any] = {}
    texts: list[str] = []
    try:
        for line in lines:
            event: dict[str, Any] = json.loads(line[5:]) if line.startswith("data:") else {"type": ""}
            kind = event["type"]
            if kind == "message_start":
                message = dict(event["message"])
                usage = dict(message["usage"])
            elif kind == "content_block_delta" and event["delta"].get("type") == "text_delta":
                texts.append(str(event["delta"]["text"]))
            elif kind == "message_delta":
                message["stop_reason"] = event["delta"].get("stop_reason")
                usage.update(event["usage"])
            elif kind == "error":
                raise AnswerLost(f"the service broke off its answer ({_kind_of(event)}).", next_step)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise AnswerLost("the service's answer is not a message.", next_step) from error
    if not message.get("stop_reason"):
        raise AnswerLost("the service's answer is cut off.", next_step)
    return {**message, "usage": usage, "content": [{"type": "text", "text": "".join(texts)}]}


def _kind_of(event: Mapping[str, Any]) -> str:
    """Return the kind of error alone: a message may quote key or text."""
    error = event.get("error")
    return str(error.get("type"))[:40] if isinstance(error, Mapping) else "unknown"


OWN_URL = "https://api.anthropic.com"
# A service that says nothing for so long has failed: it writes as it goes, the first word within 2 s.
SILENCE_S = 30.0
# Twelve facts are about 3,000 tokens, which a small model writes in 20 to 30 s. An answer that is broken off
# while it is written is paid for in vain.
API_ANSWER_S = 60.0
CONNECT_S = 30.0
COUNT_S = 10.0
# Twelve facts have about 10 KB. More is not an answer to anything that is asked.
MAX_ANSWER_BYTES = 1_000_000
# The service adds instructions of its own for an answer by schema; a few hundred tokens were seen.
API_OVERHEAD_TOKENS = 1_000

_CHECK_KEY = "Check the key: cortex config set models.api_key KEY. See: cortex doctor"
_LATER = "A later run asks again."


class AnthropicApi:
    """The Messages API behind the Writer protocol. What is asked comes from the lake, so it is redacted."""

    name = "api"
    overhead_tokens = API_OVERHEAD_TOKENS
    requests_reserved = 1
    most_requests = 1

    def __init__(self, key: str | None, base_url: str | None) -> None:
        self._key, self._base_url = key, base_url

    @cached_property
    def client(self) -> "Anthropic":
        """The library's client, loaded with the first request: it takes 1 to 2 s of processor time."""
        import anthropic
        import httpx2

        # Each try is reserved, so the library makes none of its own; what is asked goes into no trace, and to
        # no host but the one that is named. A connection is used once, so that its end is one request's.
        return anthropic.Anthropic(
            api_key=self._key or "none",
            base_url=self._base_url or OWN_URL,
            max_retries=0,
            open_telemetry=False,
            http_client=anthropic.DefaultHttpxClient(
                follow_redirects=False,
                limits=httpx2.Limits(max_keepalive_connections=0),
                event_hooks={"request": [_note_connection]},
            ),
        )

    def ready(self) -> None:
        """Do nothing: whether a key is accepted shows with the first request."""

    def ask(self, request: ModelRequest, most_usd: float) -> Reply:
        """Send one request once; at most SILENCE_S without a word and API_ANSWER_S in all. See Writer."""
        ends_at = time.monotonic() + API_ANSWER_S
        with (
            service_failures(API_ANSWER_S),
            self.client.messages.with_streaming_response.create(
                **message_of(request), stream=True, timeout=_timeout(min(SILENCE_S, API_ANSWER_S))
            ) as response,
        ):
            body = _read(response.iter_bytes(), ends_at)
            request_id = response.headers.get("request-id")
            is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        # An endpoint of one's own may answer in one piece all the same.
        return reply_of(request.request_id, _message_in(body, is_stream=is_stream), request_id)

    def count(self, request: ModelRequest) -> int | None:
        """Return how many tokens of input the service counts, free of charge; None if it does not say."""
        message = {name: value for name, value in message_of(request).items() if name != "max_tokens"}
        try:
            with service_failures(COUNT_S):
                count = self.client.messages.count_tokens(**message, timeout=_timeout(COUNT_S))
        except (ModelUnavailable, ModelRefused):
            return None
        return int(count.input_tokens)


def api_writer(key: str | None, base_url: str | None) -> AnthropicApi:
    """
    Return the provider; nothing is sent before the first `ask`.

    An endpoint of one's own may need no key. Raises ModelClosed if the library or the key is missing.
    """
    if not key and not base_url:
        raise ModelClosed(
            "`models.writer` is api, but no key is set.",
            "Set ANTHROPIC_API_KEY, or: cortex config set models.api_key KEY",
        )
    if find_spec("anthropic") is None:
        raise ModelClosed(
            "`models.writer` is api, but the library 'anthropic' is not installed.",
            f"{install_extra('anthropic')}, or: cortex config set models.writer none",
        )
    return AnthropicApi(key, base_url)


def message_of(request: ModelRequest) -> dict[str, Any]:
    """Return what is sent: the constant part first, the answer by schema."""
    return {
        "model": request.model,
        "max_tokens": request.max_output_tokens,
        "system": request.system,
        "messages": [{"role": "user", "content": request.content}],
        "output_config": {"format": {"type": "json_schema", "schema": json.loads(request.schema)}},
    }


def reply_of(request_id: str, message: Mapping[str, Any], provider_request_id: str | None = None) -> Reply:
    """
    Return the service's message as a reply: text blocks joined, tokens as they were counted.

    Raises AnswerLost if it says that it used what cannot be.
    """
    input_tokens, output_tokens = used_tokens(message["usage"])
    texts = [block["text"] for block in message["content"] if block.get("type") == "text"]
    return Reply(
        request_id=request_id,
        provider="api",
        model=str(message.get("model", "")),
        text="".join(texts),
        stop_reason=str(message.get("stop_reason") or ""),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        usd=0.0,
        provider_request_id=provider_request_id or message.get("id"),
    )


def _read(chunks: "Iterator[bytes]", ends_at: float) -> bytes:
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            raise AnswerLost(f"the answer is larger than {MAX_ANSWER_BYTES:,} bytes.", _LATER)
        if time.monotonic() > ends_at:
            raise AnswerLost(f"the answer took longer than {API_ANSWER_S:.0f} s.", _LATER)
    return bytes(body)


def _message_in(body: bytes, *, is_stream: bool) -> Mapping[str, Any]:
    """Return the service's message. Raises AnswerLost for what is not one: it was sent, so it may cost."""
    try:
        if is_stream:
            lines = body.decode("utf-8", "replace").split("\n")
            message = message_of_events((line.rstrip("\r") for line in lines), _LATER)
        else:
            message = json.loads(body)
        message["usage"]["input_tokens"], message["usage"]["output_tokens"]
        [block.get("text", "")[:0] for block in message["content"] if block.get("type") == "text"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise AnswerLost("the service's answer is cut off or not a message.", _LATER) from error
    return dict(message)


def _timeout(seconds: float) -> Any:
    import httpx2

    return httpx2.Timeout(seconds, connect=CONNECT_S)


class _Deadline:
    """Ends the connections of one call when its time is over: a header or byte now and then is no answer."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.is_over = seconds, False
        self._sockets: list[socket.socket] = []
        self.timer = Timer(seconds, self._end)
        self.timer.daemon = True

    def note(self, event: str, info: Mapping[str, Any]) -> None:
        """Remember the socket of a connection that was just made; called by the library as it goes."""
        stream: Any = info.get("return_value")
        connection = stream.get_extra_info("socket") if hasattr(stream, "get_extra_info") else None
        if isinstance(connection, socket.socket):
            self._sockets.append(connection)

    def _end(self) -> None:
        self.is_over = True
        for connection in self._sockets:
            with suppress(OSError):  # closed by then; TLS is not asked, which another thread is reading
                socket.socket.shutdown(connection, socket.SHUT_RDWR)


_DEADLINE: ContextVar[_Deadline] = ContextVar("_DEADLINE")


def _note_connection(request: Any) -> None:
    if deadline := _DEADLINE.get(None):
        request.extensions = {**request.extensions, "trace": deadline.note}


@contextmanager
def service_failures(seconds: float) -> "Iterator[None]":
    """
    Turn the library's errors into ours, and end what takes longer than `seconds` in all.

    Only their kind is told: a message may quote key or text.
    """
    deadline = _Deadline(seconds)
    before = _DEADLINE.set(deadline)
    deadline.timer.start()
    try:
        with _library_failures():
            yield
    except (ModelUnavailable, ModelRefused):
        if deadline.is_over:
            raise AnswerLost(f"the answer took longer than {seconds:.0f} s.", _LATER) from None
        raise
    finally:
        deadline.timer.cancel()
        _DEADLINE.reset(before)


@contextmanager
def _library_failures() -> "Iterator[None]":
    import anthropic
    import httpx2

    try:
        yield
    except anthropic.APIStatusError as error:
        raise _status_failure(error) from None
    except (anthropic.APIConnectionError, httpx2.TransportError) as error:
        raise _transport_failure(error) from None
    except anthropic.AnthropicError as error:
        raise ModelClosed(
            f"the language model cannot be asked ({type(error).__name__}).", _CHECK_KEY
        ) from None


def _transport_failure(error: Exception) -> ModelBusy | AnswerLost:
    import httpx2

    cause = error if isinstance(error, httpx2.TransportError) else error.__cause__
    kind = type(cause or error).__name__
    # Before a connection stands nothing was sent.
    if isinstance(cause, (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)):
        return ModelBusy(f"the language model cannot be reached ({kind}).", f"Check the network. {_LATER}")
    return AnswerLost(f"the language model's answer did not arrive ({kind}).", _LATER)


def _status_failure(error: "APIStatusError") -> ModelBusy | AnswerLost | ModelClosed | ModelRefused:
    status = error.status_code
    kind = f"status {status}{f', {error.type}' if error.type else ''}"
    if 300 <= status < 400:
        return ModelClosed(
            f"the address of the language model leads elsewhere ({kind}), and nothing is sent there.",
            "Name the address itself: cortex config set models.base_url URL",
        )
    if status in (401, 403):
        return ModelClosed(f"the language model's service does not accept the key ({kind}).", _CHECK_KEY)
    if status == 402 or _is_about_credit(error):
        return ModelClosed(
            f"the account at the language model's service has no credit left ({kind}).",
            "Add credit, or: cortex config set models.writer none",
        )
    if status == 404:
        return ModelClosed(
            f"the service does not know the language model or the address ({kind}).",
            "See models.writer_model and models.base_url: cortex config",
        )
    if status == 504:  # a gateway gave up on a request that had reached the service
        return AnswerLost(f"the language model's answer did not arrive ({kind}).", _LATER)
    if status in (408, 409, 429) or status >= 500:
        return ModelBusy(
            f"the language model's service is busy or failed ({kind}).",
            _LATER,
            _wait_s(error.response.headers),
        )
    return ModelRefused(f"the language model's service did not accept the request ({kind}).", _LATER)


def _is_about_credit(error: "APIStatusError") -> bool:
    # The service answers 400 with the type of any bad request; only its message says what is the matter.
    message = (error.api_message or "").lower()
    return error.type == "billing_error" or "credit balance" in message or "usage limits" in message


def _wait_s(headers: Mapping[str, str]) -> float | None:
    """Return how long the service asks to wait, in seconds: as the library reads its headers."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers.get(name, "")) * unit)
        except ValueError:
            pass
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time())
    except (ValueError, TypeError):
        return None


PROVIDER = Provider(
    "api",
    "a key, or another endpoint",
    lambda settings: api_writer(settings.models.api_key, settings.models.base_url),
)


# -- Message batches of the hosted interface: half the price, answered within a day, most within an hour.

LIST_PAGE = 100
BATCH_CALL_S = 30.0
# A thousand answers of 10 KB each.
RESULTS_S = 300.0


@dataclass(frozen=True)
class BatchState:
    """One batch of the account, which may be somebody else's: when it was created, whether it has ended."""

    batch_id: str
    created_at: datetime
    is_ended: bool


class BatchGone(Exception):
    """The service does not know the batch, or no longer keeps its results."""


def submit(api: AnthropicApi, requests: Sequence[ModelRequest]) -> str:
    """
    Send requests as one batch, each under its request id, and return the id of the batch.

    Raises what Writer.ask raises; after AnswerLost the batch may exist.
    """
    items = [{"custom_id": request.request_id, "params": message_of(request)} for request in requests]
    with service_failures(BATCH_CALL_S):
        batch = api.client.messages.batches.create(requests=items, timeout=BATCH_CALL_S)  # type: ignore[arg-type]
    return batch.id


def batch_state(api: AnthropicApi, batch_id: str) -> BatchState:
    """Return where a batch stands. Raises BatchGone, and what Writer.ask raises."""
    import anthropic

    with service_failures(BATCH_CALL_S):
        try:
            batch = api.client.messages.batches.retrieve(batch_id, timeout=BATCH_CALL_S)
        except anthropic.NotFoundError:
            raise BatchGone from None
    return BatchState(batch.id, batch.created_at, batch.processing_status == "ended")


def batch_results(api: AnthropicApi, batch_id: str) -> Iterator[tuple[str, Reply | AnswerLost | None]]:
    """
    Yield request id and reply of each request of a batch that has ended; None for one that was not answered.

    What is not answered (errored, expired, cancelled) is not charged; AnswerLost stands for an answer that
    says it used what cannot be. Raises what Writer.ask raises.
    """
    with service_failures(RESULTS_S):  # read whole: between two answers the caller takes its time
        items = list(api.client.messages.batches.results(batch_id, timeout=BATCH_CALL_S))
    for item in items:
        reply: Reply | AnswerLost | None = None
        if item.result.type == "succeeded":
            try:
                reply = reply_of(item.custom_id, item.result.message.model_dump(warnings=False))
            except AnswerLost as error:
                reply = error
        yield item.custom_id, reply


def recent_batches(api: AnthropicApi, since: datetime) -> list[BatchState]:
    """Return the account's batches created since an instant. Raises what Writer.ask raises."""
    states = []
    with service_failures(BATCH_CALL_S):
        for batch in api.client.messages.batches.list(limit=LIST_PAGE, timeout=BATCH_CALL_S):
            if batch.created_at < since:
                break
            states.append(BatchState(batch.id, batch.created_at, batch.processing_status == "ended"))
    return states
