"""A store with a hostile text in every field that the explorer shows, planted where the fields are kept."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cortex.flows.context import Context
from cortex.storage.model_calls import (
    DailyLimits,
    Reserved,
    Spending,
    SpendingClaim,
)
from cortex.storage.settings.config_file import ConfigFile
from cortex.storage.settings.setting_keys import KEYS
from cortex.storage.store import Store
from cortex.transforms.schemas import TURNS

# Ends each place that a text may stand in: element, attribute, title, script, style, template, address.
MARK = "planted"
HOSTILE = (
    f"{MARK} </title></textarea></script></style><script>window.hit=1</script>"
    "<img src=x onerror=window.hit=1>"
    f'"\' onmouseover=window.hit=1 autofocus onfocus=window.hit=1 x="<svg onload=window.hit=1>`<b>`'
    f"<iframe srcdoc='<script>parent.hit=1</script>'></iframe><base href=//evil.example/>{{{{7*7}}}}"
    f"<meta http-equiv=refresh content='0;url=//evil.example/'> javascript:window.hit=1 \u202e\x1b[31m\x07"
    f"<form action=//evil.example/><button autofocus>press</button></form>&lt;script&gt; {'W' * 300}"
)

# What the store itself goes by; all other texts of its tables are shown as they are.
_KEYS = frozenset(
    (
        *("memory_id", "project_id", "session_id", "turn_id", "edge_id", "source_id", "target_id"),
        *("memory_type", "status", "trust", "source_type", "category", "content_hash", "kind", "agent_id"),
        *("superseded_by", "merged_into", "message_id", "parent_uuid", "tool_use_id", "event_id"),
    )
)


def plant(context: Context) -> None:
    """Put the hostile text into the tables, reports, briefs, settings and the ledger of a store."""
    home = context.home
    for path in sorted((home / "published").glob("*.parquet")):
        _replant(path, lambda rows: _planted(rows, _KEYS))
    store = Store(home)
    noted = json.loads((home / "runs" / "manifest.json").read_text(encoding="utf-8"))
    for file in store.lake.manifest.live(TURNS.name):
        # The names of files say which turns belong together; `kind` and ids likewise.
        _replant(store.lake.root / file.path, lambda rows: _planted(rows, _KEYS | {"file", "cwd"}))
        noted["digests"].pop(file.path, None)
    (home / "runs" / "manifest.json").write_text(json.dumps(noted), encoding="utf-8")
    catalogue = home / "published" / "catalogue.json"
    document = json.loads(catalogue.read_text(encoding="utf-8"))
    for row in document["projects"]:
        row |= {"name": HOSTILE, "label": HOSTILE, "folders": [HOSTILE]}
    catalogue.write_text(json.dumps(document), encoding="utf-8")
    for path in (home / "published").glob("*/choices.json"):
        choices = json.loads(path.read_text(encoding="utf-8"))
        for choice in (*choices["shown"], *choices["left_out"]):
            choice |= {"text": f"{HOSTILE}\n- {HOSTILE}", "reason": HOSTILE}
        choices["doubts"] = {choice["memory_id"]: HOSTILE for choice in choices["shown"]}
        path.write_text(json.dumps(choices), encoding="utf-8")
        (path.parent / "brief.md").write_text(HOSTILE, encoding="utf-8")
    for path in (home / "runs" / "reports").glob("*.json"):
        report = json.loads(path.read_text(encoding="utf-8"))
        report |= {
            name: [{"file": HOSTILE, HOSTILE: HOSTILE}] for name in ("set_aside", "breaches", "left_out")
        }
        report |= {
            "notes": [HOSTILE],
            "flow": HOSTILE,
            "engine": HOSTILE,
            "rows": {HOSTILE: 3, "memories": 2},
        }
        for stage in report["stages"]:
            stage |= {"stage": HOSTILE, "note": HOSTILE}
        path.write_text(json.dumps(report), encoding="utf-8")
    _spend(context)
    for key in KEYS:
        if key.name in ("capture.excluded_projects", "models.writer_model"):
            value: Any = (HOSTILE,) if isinstance(key.default, tuple) else HOSTILE
            ConfigFile(home).set(key, value, None)


def _spend(context: Context) -> None:
    spending, limits = Spending(context.home), DailyLimits(10**9, 9)
    claim = SpendingClaim("request", HOSTILE, HOSTILE, HOSTILE, 5)
    reserved = spending.reserve(claim, limits, context.now)
    assert isinstance(reserved, Reserved), asdict(reserved)
    spending.settle(reserved.attempt_id, 5, 2, 3, context.now)


def _replant(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(pq.read_table(path, partitioning=None)), path)


def _planted(rows: pa.Table, keys: frozenset[str]) -> pa.Table:
    planted = [_with_text(row, keys) for row in rows.to_pylist()]
    return pa.Table.from_pylist(planted, schema=rows.schema)


def _with_text(value: Any, keys: frozenset[str], name: str = "") -> Any:
    """Return a row with the hostile text in place of every text that is not a key."""
    if isinstance(value, dict):
        return {each: _with_text(part, keys, each) for each, part in value.items()}
    if isinstance(value, list):
        items = [_with_text(part, keys, name) for part in value]
        return items or ([HOSTILE] if name in ("files", "tags") else [])
    if name in keys or not (isinstance(value, str) or (value is None and name in _FILLED)):
        return value
    return HOSTILE


# Empty in most rows, and shown if it is not.
_FILLED = frozenset(("reason", "rejected", "git_branch", "outcome", "still_open", "goal", "first_prompt"))
