"""Serves the flows: `python -m cortex.flows.served HOME CRON`, a process that `cortex serve` starts."""

import sys

from prefect import serve

from cortex.flows.engines.prefect_stages import TAGS
from cortex.flows.prefect_flows import PREFECT_FLOWS


def serve_flows(home: str, cron: str) -> None:
    """
    Let the server start the flows over the store at `home`, `nightly` by itself whenever `cron` says.

    One at a time; the others wait. Runs until it is ended.
    """
    deployments = [
        each.to_deployment(
            name="served",
            parameters={"home": home},
            tags=TAGS,
            cron=cron if name == "nightly" else None,
            concurrency_limit=1,
        )
        for name, each in PREFECT_FLOWS.items()
    ]
    serve(*deployments, limit=1, print_starting_message=False)


if __name__ == "__main__":
    serve_flows(*sys.argv[1:])
