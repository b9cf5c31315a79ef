"""Message batches of the hosted interface: half the price, answered within a day, most within an hour."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from cortex.flows.writers.anthropic_api import AnthropicApi, message_of, reply_of, service_failures
from cortex.transforms.errors import AnswerLost
from cortex.transforms.writer.request import ModelRequest, Reply

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
