"""A process of its own that asks a language model, for tests of many at once; it keeps replies as files."""

import json
import os
from dataclasses import asdict
from pathlib import Path

from cortex.flows.asking import ask_all
from cortex.flows.context import utc_now
from cortex.flows.report import RunReport
from cortex.flows.run import Run
from cortex.storage.reference import read_policy
from cortex.storage.settings import ModelBudget, ModelSettings, Settings
from cortex.storage.store import Store
from cortex.transforms.writer.request import ModelRequest, Reply

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
