"""
Batches of requests, over several runs: intent, create, id; a later run takes the answers in.

The intent is the reservation of each request, in the ledger before anything is sent. A run that is killed
before it has noted the id of its batch leaves an intent without one: a later run looks for the batch among
those of the account, by the ids of its requests, so that nothing is paid for twice.
"""

import uuid
from collections.abc import Sequence
from datetime import timedelta

from cortex.flows.asking_model.received_replies import kept_requests
from cortex.flows.asking_model.request_round import AskingRound, most_tokens, with_margin
from cortex.flows.writers.anthropic_api import AnthropicApi
from cortex.flows.writers.anthropic_batches import (
    BatchGone,
    batch_results,
    batch_state,
    recent_batches,
    submit,
)
from cortex.storage.model_calls.spending import BatchedAttempt
from cortex.transforms.errors import AnswerLost, CortexError, ModelClosed, ModelRefused, ModelUnavailable
from cortex.transforms.writer.request import ModelRequest, Reply

INTENT = "intent-"
# The clocks of two machines differ, and a request takes a while to arrive.
CLOCKS_DIFFER = timedelta(minutes=10)
# An answer that no run has asked for again waits in its batch, where the service keeps it for 29 days: a
# session that has grown since makes a new request; one beyond a run's cap makes the same request later.
KEPT_IN_BATCH = timedelta(days=7)
# The service keeps the requests of a batch to this number.
MOST_IN_BATCH = 1_000


def take_batches(asking: AskingRound, pending: dict[str, ModelRequest]) -> None:
    """
    Take in the answers of the batches that have ended; take out of `pending` what waits in one.

    A batch that cannot be asked for now is left for a later run.
    """
    api = asking.writer
    waiting = asking.spending.open_batches(asking.clock())
    if not waiting or not isinstance(api, AnthropicApi):
        return
    try:
        _adopt(asking, api, waiting)
        for name, attempts in asking.spending.open_batches(asking.clock()).items():
            if not name.startswith(INTENT):
                _take_batch(asking, api, name, attempts, pending)
    except ModelUnavailable as error:
        asking.result.reasons[error.problem] += 1
        if isinstance(error, ModelClosed):
            asking.result.stopped = str(error)
    for attempts in asking.spending.open_batches(asking.clock()).values():
        for attempt in attempts:
            if pending.pop(attempt.request_id, None):
                asking.result.in_batch += 1


def send_batch(asking: AskingRound, pending: dict[str, ModelRequest]) -> None:
    """
    Send what the budget allows of `pending` as one batch and take it out; the rest waits.

    Where the endpoint takes no batches everything stays in `pending`, to be asked directly.
    """
    api = asking.writer
    if not isinstance(api, AnthropicApi) or asking.result.stopped:
        return
    name = f"{INTENT}{uuid.uuid4().hex}"
    chosen = list(pending.values())[: min(asking.requests_left, MOST_IN_BATCH)]
    claims = [
        asking.claim(request, with_margin(api.count(request) or most_tokens(request, api)), in_batch=True)
        for request in chosen
    ]
    reserved = set(asking.spending.reserve_batch(claims, name, asking.limits, asking.clock()))
    sent = [request for request in chosen if request.request_id in reserved]
    if not sent or not _create(asking, api, name, sent):
        return
    asking.run.model_requests += len(sent)
    asking.result.in_batch += len(sent)
    for request in sent:
        del pending[request.request_id]
    for request in list(pending.values()):
        del pending[request.request_id]
        asking.wait("did not fit the batch and the day's budget")


def _create(asking: AskingRound, api: AnthropicApi, name: str, sent: Sequence[ModelRequest]) -> bool:
    """Create an intended batch; return whether its requests are, or may be, on their way."""
    try:
        asking.spending.name_batch(name, submit(api, sent))
    except AnswerLost:
        return True  # it may exist: a later run looks for it
    except (ModelUnavailable, ModelRefused) as error:
        for attempt in asking.spending.open_batches(asking.clock()).get(name, []):
            asking.spending.release(attempt.attempt_id, asking.clock())
        _explain(asking, error)
        return False
    return True


def _explain(asking: AskingRound, error: CortexError) -> None:
    # An endpoint of one's own may take no batches: what it says then is no reason to stop.
    asking.result.reasons[f"no batch was created: {error.problem}"] += 1


def _adopt(asking: AskingRound, api: AnthropicApi, waiting: dict[str, list[BatchedAttempt]]) -> None:
    """Find the batches of intents that a killed run left without an id; release those that have none."""
    left = {
        name: attempts
        for name, attempts in waiting.items()
        if name.startswith(INTENT) and not any(attempt.is_held for attempt in attempts)
    }
    if not left:
        return
    since = min(attempt.reserved_at for attempts in left.values() for attempt in attempts) - CLOCKS_DIFFER
    known = asking.spending.batch_names()
    unknown = [state for state in recent_batches(api, since) if state.batch_id not in known]
    for state in unknown:
        if state.is_ended:
            ids = {request_id for request_id, _ in batch_results(api, state.batch_id)}
            for name, attempts in list(left.items()):
                if ids >= {attempt.request_id for attempt in attempts}:
                    asking.spending.name_batch(name, state.batch_id)
                    del left[name]
    if all(state.is_ended for state in unknown):  # else one that goes on may be it
        for attempts in left.values():
            for attempt in attempts:
                asking.spending.release(attempt.attempt_id, asking.clock())


def _take_batch(
    asking: AskingRound,
    api: AnthropicApi,
    name: str,
    attempts: Sequence[BatchedAttempt],
    pending: dict[str, ModelRequest],
) -> None:
    """Take in the answers of one batch that has ended, each kept before it is settled."""
    try:
        if not batch_state(api, name).is_ended:
            return
    except BatchGone:
        for attempt in attempts:
            asking.spending.lose(attempt.attempt_id)
        return
    by_request = {attempt.request_id: attempt for attempt in attempts}
    unasked: list[tuple[BatchedAttempt, Reply]] = []
    for request_id, reply in batch_results(api, name):
        if request_id not in by_request:
            continue
        attempt = by_request.pop(request_id)
        if reply is None:
            asking.spending.release(attempt.attempt_id, asking.clock())
        elif isinstance(reply, AnswerLost):
            asking.spending.lose(attempt.attempt_id)
            asking.result.reasons[reply.problem] += 1
        elif request_id in pending:
            asking.take(reply, attempt.attempt_id, pending.pop(request_id), in_batch=True)
        else:
            unasked.append((attempt, reply))
    kept = kept_requests(asking.run.store.lake) if unasked else set()
    for attempt, reply in unasked:  # kept by a run that was killed then, or nobody asks it any more
        if attempt.request_id in kept or asking.clock() - attempt.reserved_at > KEPT_IN_BATCH:
            _settle(asking, attempt, reply.input_tokens, reply.output_tokens)


def _settle(asking: AskingRound, attempt: BatchedAttempt, input_tokens: int, output_tokens: int) -> None:
    nano = asking.price(attempt.model).nano_usd(input_tokens, output_tokens, in_batch=True)
    asking.spending.settle(attempt.attempt_id, nano, input_tokens, output_tokens, asking.clock())
