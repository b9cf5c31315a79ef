"""Asks a language model about pairs of memories: which pairs, and how its verdicts are kept."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC

from cortex.flows.asking_model.asking import ask_all
from cortex.flows.asking_model.received_replies import kept_replies
from cortex.flows.run.run import Run
from cortex.flows.run.verdicts import answer_about, verdicts_of
from cortex.storage.lake.notes import Output
from cortex.storage.settings.reference import read_prompt
from cortex.transforms.identity import content_id
from cortex.transforms.schemas import REPLIES, Row
from cortex.transforms.words.ages import counted
from cortex.transforms.writer.pairs import (
    LINKS_PROMPT,
    MemoryPair,
    PairsRequest,
    pairs_requests,
    pairs_to_ask,
)
from cortex.transforms.writer.request import Reply
from cortex.transforms.writer.verdicts import repeated_row, verdicts_row


@dataclass(frozen=True)
class PairsDue:
    """The requests of one run about pairs, and how many pairs of which scopes do not fit into it."""

    requests: Sequence[PairsRequest]
    pairs_left: int
    settled: Sequence[str]  # scopes without a pair that no request asks about


def judge_pairs(run: Run) -> int:
    """
    Ask about the pairs of memories that no answer is known to, the newest first, and keep the verdicts.

    Each verdict counts from the next time that the scope is linked on. Returns how many answers were kept.
    What waits is said in the report.
    """
    with run.report.stage("judge") as row:
        due = pairs_due(run)
        row.rows_in = sum(len(each.pairs) for each in due.requests)
        keeper = _Keeper(run, {each.request.request_id: each for each in due.requests})
        keeper.repeat_known()
        # The pairs of a request are those known when it is made: they would change while a batch waits.
        asked = [each.request for each in due.requests if each.request.request_id not in keeper.answered]
        ask_all(run, asked, keeper.keep, in_batches=False)
        row.rows_out = keeper.pairs_kept
        waiting = due.pairs_left + row.rows_in - keeper.pairs_kept
        if waiting:
            row.note = f"{counted(waiting, 'pair')} of memories wait for a later run"
        else:
            for scope in due.settled:
                inputs = run.fingerprints.linked(scope)
                run.store.lake.note(run.store.lake.notes.with_output(Output("judge", scope), inputs))
    return len(keeper.answered)


def pairs_due(run: Run) -> PairsDue:
    """Return what there is to ask about the pairs of every scope, by its tables as they are."""
    by_scope: dict[str, list[MemoryPair]] = {}
    for scope in run.readings.scopes():
        if scope in run.outcome.failed or is_settled(run, scope):
            continue
        with run.outcome.apart(scope, "judge"):
            tables = run.store.tables
            memories, edges = tables.open(scope, "memories").read(), tables.open(scope, "edges").read()
            asked = verdicts_of(run, scope) if edges.num_rows else {}
            pairs = pairs_to_ask(memories, edges, asked, run.policy)
            # What was seen together in the whole of a project has had its answer.
            answer = answer_about(run, scope) if pairs else None
            by_scope[scope] = [pair for pair in pairs if not answer or not answer.seen.issuperset(pair.ids)]
    prompt, model = read_prompt(LINKS_PROMPT), run.settings.models.writer_model
    requests = [
        request
        for scope, pairs in by_scope.items()
        for request in pairs_requests(scope, pairs, run.policy, model, prompt)
    ]
    requests.sort(key=lambda each: each.pairs[0].newer.order, reverse=True)
    most = int(run.policy.threshold("links_requests_per_run"))
    left = sum(len(each.pairs) for each in requests[most:])
    return PairsDue(requests[:most], left, list(by_scope))


def is_settled(run: Run, scope: str) -> bool:
    """Return whether no pair of a scope was left to ask about, and nothing has changed since."""
    return run.store.lake.notes.outputs.get(Output("judge", scope)) == run.fingerprints.linked(scope)


@dataclass
class _Keeper:
    """Commits answers; `asked` is by request id."""

    run: Run
    asked: dict[str, PairsRequest]
    answered: set[str] = field(default_factory=set)
    pairs_kept: int = 0

    def repeat_known(self) -> None:
        """Keep the answer that the lake has for another scope to the same request."""
        for row in kept_replies(self.run.store.lake, self.asked.keys()):
            self._commit(repeated_row(row, self.asked[row["request_id"]]))

    def keep(self, reply: Reply) -> None:
        """Commit what is believed of an answer."""
        self._commit(verdicts_row(self.asked[reply.request_id], reply, self.run.now.astimezone(UTC)))

    def _commit(self, row: Row) -> None:
        """Commit a row with the note that the edges of its scope are to be made again."""
        asked = self.asked[row["request_id"]]
        with self.run.store.lake.change() as change:
            change.append(REPLIES, asked.scope, REPLIES.of([row]))
            notes = change.notes
            judged = content_id(notes.judged.get(asked.scope, ""), row["request_id"], row["text"])
            change.notes = replace(notes, judged={**notes.judged, asked.scope: judged})
        self.answered.add(row["request_id"])
        self.pairs_kept += len(asked.pairs)
