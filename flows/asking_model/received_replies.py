"""Answers that the lake holds, and those that had arrived, and were paid for, when a run was killed."""

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta

from cortex.flows.asking_model.request_round import AskingResult, Keep
from cortex.flows.run.run import Run
from cortex.storage.lake.lake import Lake
from cortex.storage.model_calls.received_answers import Arrival, Arrivals
from cortex.storage.model_calls.spending import Spending
from cortex.transforms.schemas import REPLIES, Row, values
from cortex.transforms.writer.request import ModelRequest

# An answer that no run has asked for again: a session that has gone on since asks again, but one that did not
# fit a run's requests asks the same later.
ARRIVAL_KEPT = timedelta(days=7)


def take_arrivals(
    run: Run, pending: dict[str, ModelRequest], keep: Keep, result: AskingResult, now: datetime
) -> None:
    """
    Keep the answers that wait, settle them, and take their requests out of `pending`.

    What is not asked for now is settled, and stays until it is kept or has waited for a week.
    """
    arrivals, spending = Arrivals(run.store.lake), Spending(run.store.home)
    left: list[Arrival] = []
    for arrival in arrivals.read():
        reply = arrival.reply
        is_asked = pending.pop(reply.request_id, None) is not None
        if is_asked:
            keep(reply)
        tokens = (reply.input_tokens, reply.output_tokens)
        spending.settle_open(arrival.attempt_id, arrival.nano, *tokens, now, reply.requests)
        if is_asked:
            arrivals.remove(reply.request_id)
            result.count_answer(reply, arrival.nano)
        else:
            left.append(arrival)
    kept = kept_requests(run.store.lake) if left else set()
    for arrival in left:
        if arrival.reply.request_id in kept or now - arrival.arrived_at > ARRIVAL_KEPT:
            arrivals.remove(arrival.reply.request_id)


def finish_arrivals(run: Run, now: datetime) -> None:
    """Settle and remove what an earlier run had kept when it was killed."""
    take_arrivals(run, {}, lambda reply: None, AskingResult(), now)


def kept_requests(lake: Lake) -> set[str]:
    """Return the ids of all requests that the lake has an answer to."""
    return set(values(lake.read(REPLIES, columns=["request_id"]), "request_id"))


def kept_replies(lake: Lake, wanted: Collection[str], parts: Collection[str] | None = None) -> Iterator[Row]:
    """Yield the first of REPLIES to each request of `wanted` that has one, in `parts` (default: in any)."""
    left = set(wanted)
    for part in lake.manifest.partitions(REPLIES.name) if left else ():
        if parts is not None and part not in parts:
            continue
        ids = lake.read(REPLIES, part, columns=["request_id"])
        for row in (
            lake.read(REPLIES, part).to_pylist() if left.intersection(values(ids, "request_id")) else ()
        ):
            if row["request_id"] in left:
                left.discard(row["request_id"])
                yield row
