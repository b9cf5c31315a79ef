"""A process of its own that asks a language model, for tests of many at once; it keeps replies as files."""

import json
import os
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from cortex.flows.asking_model.asking import ask_all
from cortex.flows.context import utc_now
from cortex.flows.engines.runs import opened
from cortex.flows.run.run import Run
from cortex.flows.run_report import RunReport
from cortex.flows.stages.order import write
from cortex.storage.settings.reference import read_policy
from cortex.storage.settings.settings import ModelBudget, ModelSettings, Settings
from cortex.storage.store import Store
from cortex.transforms.writer.request import ModelRequest, Reply

if TYPE_CHECKING:
    from tests.whole.flows.test_writing import WritingBench

COUNTED = ("os.rename", "os.remove", "os.link", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
SCHEMA = '{"additionalProperties":false,"properties":{},"type":"object"}'


def crowd_requests(count: int) -> list[ModelRequest]:
    """Return `count` requests, the same in every process."""
    return [
        ModelRequest("session", "claude-haiku-5-5", "session@1", "You read.", f"Session {n}.", SCHEMA, 1_000)
        for n in range(count)
    ]


def ask_once(home: Path, url: str, count: int, budget: ModelBudget, replies: Path) -> None:
    """Ask what `replies` has no file for, as a run would."""
    models = ModelSettings("api", api_key="none", base_url=url)
    settings = Settings(home, models=models, budget=budget)
    run = Run(Store(home), settings, read_policy(None), utc_now(), RunReport("ingest", "plain", utc_now()))

    def keep(reply: Reply) -> None:
        part = replies / f"{reply.request_id}.{os.getpid()}.part"
        part.write_text(json.dumps(asdict(reply)))
        part.rename(replies / f"{reply.request_id}.json")

    for request in crowd_requests(count):  # the lake is looked at before each, as many runs at once would
        if not (replies / f"{request.request_id}.json").exists():
            ask_all(run, [request], keep)


def write_up_to(home: Path, projects: Path, url: str, operation: int, log: Path) -> None:
    """
    Read the sessions of a store as a run does, killed before its file operation `operation`, from 0.

    Each operation is noted in `log` before it is done.
    """
    from tests.bench import words_for_a_model
    from tests.whole.flows.test_writing import WritingBench

    bench = WritingBench(home, projects, words_for_a_model, url=url)
    seen = 0

    def kill(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal seen
        name = operation_of(event, arguments, home)
        if name is None:
            return
        descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, f"{name}\n".encode())
        os.close(descriptor)
        if seen == operation:
            os.kill(os.getpid(), signal.SIGKILL)
        seen += 1

    sys.addaudithook(kill)
    read_sessions(bench)


def read_sessions(bench: "WritingBench") -> None:
    """Do what the stage `write` of a run does."""
    with opened("ingest", bench.context) as run:
        write(run)


def operation_of(event: str, arguments: tuple[object, ...], home: Path) -> str | None:
    """Return what an audited event does to which file of the store; None if it changes none."""
    if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & WRITING):
        return None
    place = str(arguments[0]) if arguments else ""
    if event not in ("open", "sqlite3.connect", *COUNTED) or not place.startswith(f"{home}/"):
        return None
    return f"{event} {Path(place).relative_to(home)}"
