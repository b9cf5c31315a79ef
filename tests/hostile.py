"""Records that no client writes: one field of a real-shaped record replaced by something hostile."""

import json
import random
from collections.abc import Iterator
from typing import Any

from tests.transcripts import KELP, Record, Talk, decisions, lines

Path = tuple[str | int, ...]


def nested(depth: int, kind: str) -> Any:
    """Return lists, objects or content blocks `depth` levels deep."""
    value: Any = "x"
    for _ in range(depth):
        value = [value] if kind == "list" else {"text" if kind == "block" else "k": [value]}
    return value


# Values of wrong types, sizes and characters, and texts on which a careless expression takes for ever.
HOSTILE: list[Any] = [
    *(None, True, False, 0, -1, 1.5, 1e308, 2**63, 2**64, 10**40, -(10**40), float("nan"), float("inf")),
    *([], {}, [[]], [{}], {"": ""}, [None], [1, 2], {"type": {}}, {"type": "text"}, {"1": 1, "2": [None]}),
    *("", "\0", "\ud800", "a\udfffb", "\ufeff\u202e\u200b\U000e0041", "\r\n" * 2_000, "\u2028" * 99),
    *("9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "2026-13-45", "-9999-01-01", "NaN"),
    *("x" * 70_000, "`" * 9_000, "> " * 9_000, "- " * 9_000, "#" * 9_000, "|" * 9_000, "=" * 9_000),
    *("(" * 9_000, "[" * 9_000 + "]" * 9_000, "{" * 9_000, '"' * 9_000, "\\" * 9_000, "/" * 9_000),
    *("<private>" * 500, "<system-reminder>" * 500, "[MEMORY: decision] " * 500, "[MEMORY: decision]"),
    *("I decided " * 2_000, "because " * 3_000, "a." * 9_000, "```" * 3_001, "~~~\n" * 3_001, "1. " * 4_000),
    *("- [ ] x\n" * 3_000, "- [ ] ``\n" * 30, "  - " * 3_000, "* " * 5_000 + "x", "_" * 9_000),
    *("\x1b[31m" * 99,),
    *("http://" * 3_000, "../" * 3_000, "A" * 40 + "=" * 10, "\U0001f600" * 3_000, "e\u0301" * 5_000),
    {str(number): number for number in range(300)},
    [{"type": "text", "text": "x"}] * 3,
    *(nested(depth, kind) for depth in (70, 253, 254, 255, 300, 400) for kind in ("list", "object")),
    *(nested(depth, "block") for depth in (70, 127, 128, 180)),
]  # fmt: skip

# Lines that are no records, or none that fits.
LINES = [
    b"[" * 200_000 + b"]" * 200_000,
    b'{"type":"user","message":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    b'{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"Bash","input":{"a":'
    + b"[" * 260 + b"]" * 260 + b"}}]}}",
    b'{"type":"user","message":{"role":"user","content":' + b"9" * 5_000 + b"}}",
    b'{"type":"user","message":{"role":"user","content":"\xff\xfe"}}',
    b'{"type":"user","type":"assistant","message":{}}',
    b'{"type":"user","message":{"role":"user","content":"cut',
    b'{"type":"user"' + b" " * 100_000 + b"}",
    b"\0" * 5_000,
    b"NaN",
    b'"user"',
    b"{}" * 3_000,
]  # fmt: skip


def every_kind() -> list[Record]:
    """Return a session that has each shape of record the reader knows."""
    talk = (
        decisions()
        .call("TodoWrite", "ok", todos=[_step("a step", "pending"), _step("another", "completed")])
        .call("Edit", "ok", file_path="/a/b.py", old_string="a", new_string="b")
        .call("MultiEdit", "ok", paths=["/a", "/b"])
        .call("TaskCreate", "Task #1 created", subject="Gauge the berths")
        .call("TaskUpdate", "ok", taskId="1", status="completed")
        .call("AskUserQuestion", "User has answered", questions=[_question()])
        .call("ExitPlanMode", "User has approved your plan", plan="# Plan: Gauges\n- order them")
        .call("Bash", "Exit code 1\nerror: no gauge", command="git commit -m 'Add gauges'")
        .call("WebFetch", "a page", url="https://example.org")
    )
    answered = next(r for r in talk.records if "User has answered" in str(r.get("toolUseResult")))
    answered["toolUseResult"] = {
        "answers": {"Which?": "A"},
        "questions": [],
        "annotations": {"Which?": {"notes": "n"}},
    }
    queued = {"type": "queued_command", "commandMode": "prompt", "prompt": "Please gauge", "origin": None}
    first = talk.records[0]
    talk.records += [
        {**first, "type": "attachment", "attachment": queued},
        {**first, "type": "system", "subtype": "away_summary", "content": "a recap"},
        {**first, "type": "user", "isCompactSummary": True},
    ]
    return talk.records


def mutated(records: list[Record], seed: int) -> Iterator[tuple[int, Record]]:
    """Yield without end (which record, that record with one value replaced), chosen by `seed`."""
    chance = random.Random(seed)
    places = [(at, path) for at, record in enumerate(records) for path in _paths(record)]
    while True:
        at, path = chance.choice(places)
        value = chance.choice(HOSTILE)
        yield at, _replaced(records[at], path, value)


def line_of(record: Any) -> bytes:
    """Return a record as its line; halves of surrogate pairs, NaN and huge numbers as JSON writers do."""
    return json.dumps(record).encode()


def hostile_sessions(good: Talk, seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    """Yield (name, transcript): the good session's records, each session with hostile ones among them."""
    changes = mutated(every_kind(), seed)
    for number in range(count):
        changed = [line_of(next(changes)[1]) for _ in range(12)]
        records = [{**record, "sessionId": f"mutated-{number}"} for record in good.records]
        sound = lines(records[:-1])
        yield f"mutated-{number}", sound + b"\n".join([*changed, LINES[number % len(LINES)], b""])
    for number, cwd in enumerate(CWDS):
        records = [{**record, "cwd": cwd, "sessionId": f"cwd-{number}"} for record in good.records]
        yield f"cwd-{number}", b"\n".join([*map(line_of, records), b""])
    loop = [{**record, "parentUuid": record["uuid"]} for record in good.records]
    yield "own-parents", b"\n".join([*map(line_of, loop), b""])


# What a record may give as its working directory.
CWDS = [
    *(None, 7, [], {}, "", ".", "/", "//", "~", "..", "relative/folder", "C:\\Users\\dev", "\0", "/a\0b"),
    *("\ud800", "/x" * 40_000, "/dev/null", "/proc/self/fd/0", f"{KELP}\n- a line", f"{KELP}'\";--"),
    *(f"{KELP} %2F#?", f"{KELP}/é\u202e\U0001f600", f"{KELP}/../../{'y' * 300}"),
]  # fmt: skip


def _step(content: str, status: str) -> dict[str, str]:
    return {"content": content, "status": status}


def _question() -> dict[str, Any]:
    return {"question": "Which?", "options": [{"label": "A", "description": "the first"}]}


def _paths(value: Any, at: Path = ()) -> Iterator[Path]:
    yield at
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _paths(item, (*at, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _paths(item, (*at, number))


def _replaced(value: Any, path: Path, new: Any) -> Any:
    if not path:
        return new
    changed = value.copy()
    changed[path[0]] = _replaced(value[path[0]], path[1:], new)
    return changed
