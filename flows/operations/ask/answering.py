"""Asks a language model about memories: a kept answer is taken, a new one is paid for once and kept."""

from collections.abc import Sequence
from dataclasses import dataclass

from cortex.flows.asking_model.asking import ask_all, is_usable, kept_replies
from cortex.flows.context import Context
from cortex.flows.engines.runs import opened
from cortex.storage.settings.reference import read_prompt
from cortex.storage.store import Store
from cortex.transforms.errors import CortexError, StoreBusy
from cortex.transforms.schemas import REPLIES
from cortex.transforms.writer.answer import GivenMemory, cited_request, cited_sentences
from cortex.transforms.writer.request import ModelRequest, Reply
from cortex.transforms.writer.written import answer_row

OUTPUT_TOKENS_MAX = "answer_output_tokens_max"


@dataclass(frozen=True)
class WrittenAnswer:
    """The believed sentences of an answer with the memories they cite; `note` says why there is none."""

    sentences: Sequence[tuple[str, tuple[str, ...]]]
    note: str = ""


def answer_over(
    context: Context, store: Store, scope: str, question: str, memories: Sequence[GivenMemory], prompt: str
) -> WrittenAnswer:
    """
    Return what the chosen language model answers to a question over memories, by a prompt's name.

    The same question over the same memories takes the answer that the lake holds. A new one is asked for
    under the budget and the lease, kept among the replies of `scope` and then settled. If it cannot be
    asked or kept, or its answer cannot be used, the note says why; nothing is raised.
    """
    if not memories:
        return WrittenAnswer((), "there is no memory to ask about")
    models, tokens = context.settings.models, int(context.policy.threshold(OUTPUT_TOKENS_MAX))
    request = cited_request(question, memories, models.writer_model, read_prompt(prompt), tokens)
    text, note = _kept_reply(store, scope, request), ""
    if text is None and models.replays:
        note = "only kept answers are used, and there is none to this"
    elif text is None:
        text, note = _ask(context, scope, request, [memory.memory_id for memory in memories])
    if text is None:
        return WrittenAnswer((), note)
    sentences = cited_sentences(text, memories, question)
    if not sentences:
        return WrittenAnswer((), "no sentence of the language model's answer cites what it was given")
    return WrittenAnswer(sentences)


def _kept_reply(store: Store, scope: str, request: ModelRequest) -> str | None:
    """Return the text of the answer that the lake holds."""
    rows = kept_replies(store.lake, [request.request_id], [scope])
    return next((str(row["text"]) for row in rows), None)


def _ask(context: Context, scope: str, request: ModelRequest, known: Sequence[str]) -> tuple[str | None, str]:
    """Ask, keep and settle; return the answer, or why there is none."""
    texts: list[str] = []
    try:
        with opened("answer", context) as run:

            def keep(reply: Reply) -> None:
                row = answer_row(scope, request, reply, known, run.now)
                with run.store.lake.change() as change:
                    change.append(REPLIES, scope, REPLIES.of([row]))
                context.note_cost(float(row["usd"]))
                if is_usable(reply):
                    texts.append(str(row["text"]))

            kept = _kept_reply(run.store, scope, request)  # another process may have asked just now
            if kept is not None:
                return kept, ""
            result = ask_all(run, [request], keep)
    except StoreBusy:
        return None, "another run is writing, and an answer could not be kept"
    except CortexError as error:
        return (texts[0], "") if texts else (None, error.problem)
    if texts:
        return texts[0], ""
    reasons = [result.stopped, *result.reasons]
    return None, next((reason for reason in reasons if reason), "the language model gave no answer")
