"""`cortex plan` and `backfill --dry-run`: what a language model would be asked, before anything is."""

import json

from tests.shell import Cortex


def test_an_empty_store_has_nothing_to_plan(cortex: Cortex):
    for stage in json.loads(cortex("plan", "--json").out)["stages"]:
        assert (stage["requests"], stage["usd"], stage["minutes"]) == (0, 0.0, 0)
