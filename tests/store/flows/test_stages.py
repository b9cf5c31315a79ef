"""What a stage declares that it reads and writes is what it does."""

import re
from pathlib import Path

from cortex.flows.stages import order

EVERY_STAGE = {
    stage.name: stage
    for stages in (order.INGEST, order.NIGHTLY, order.APPLY, order.FORGET, order.CONSOLIDATE)
    for stage in stages
}


def test_the_architecture_page_says_what_each_stage_declares():
    page = (Path(__file__).parents[3] / "docs" / "architecture.md").read_text(encoding="utf-8")
    printed = {
        name: (set(re.findall(r"[a-z]+", reads)), set(re.findall(r"[a-z]+", writes)))
        for name, reads, writes in re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE)
    }
    assert printed == {name: (stage.reads, stage.writes) for name, stage in EVERY_STAGE.items()}
