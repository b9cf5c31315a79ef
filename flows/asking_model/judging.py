"""Asks a language model about memories: pairs of them, or all that a project holds; how answers are kept."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.asking_model.asking import ask_all, kept_replies
from cortex.flows.run.model_replies import answer_about, project_replies, still_holding, verdicts_of
from cortex.flows.run.run import Run
from cortex.storage.lake.manifest import Output
from cortex.storage.projects.repository import subjects_since
from cortex.storage.settings.reference import read_prompt
from cortex.transforms.identity import content_id
from cortex.transforms.redaction.redact import redact
from cortex.transforms.schemas import EPOCH, EVENTS, GLOBAL_SCOPE, REPLIES, Row
from cortex.transforms.words.ages import counted
from cortex.transforms.writer.pairs import (
    LINKS_PROMPT,
    MemoryPair,
    PairsRequest,
    pairs_requests,
    pairs_to_ask,
    repeated_row,
    verdicts_row,
)
from cortex.transforms.writer.project import (
    PROJECT_PROMPT,
    Commit,
    ProjectRequest,
    is_project_due,
    project_lines,
    project_request,
    project_row,
)
from cortex.transforms.writer.request import Reply


@dataclass(frozen=True)
class PairsDue:
    """The requests of one run about pairs, and how many pairs of which scopes do not fit into it."""

    requests: Sequence[PairsRequest]
    pairs_left: int
    judged: Sequence[str]  # scopes without a pair that no request asks about


def judge_pairs(run: Run) -> int:
    """
    Ask about the pairs of memories that no answer is known to, the newest first, and keep the verdicts.

    Each verdict counts from the next time that the scope is linked on. Returns how many answers were kept.
    What waits is said in the report.
    """
    with run.report.stage("judge") as row:
        due = pairs_due(run)
        row.rows_in = sum(len(each.pairs) for each in due.requests)
        reply_writer = _ReplyWriter(run, {each.request.request_id: each for each in due.requests})
        reply_writer.repeat_known()
        # The pairs of a request are those known when it is made: they would change while a batch waits.
        asked = [
            each.request for each in due.requests if each.request.request_id not in reply_writer.answered
        ]
        ask_all(run, asked, reply_writer.keep, in_batches=False)
        row.rows_out = reply_writer.pairs_kept
        waiting = due.pairs_left + row.rows_in - reply_writer.pairs_kept
        if waiting:
            row.note = f"{counted(waiting, 'pair')} of memories wait for a later run"
        else:
            for scope in due.judged:
                inputs = run.fingerprints.linked(scope)
                run.store.lake.note(run.store.lake.notes.with_output(Output("judge", scope), inputs))
    return len(reply_writer.answered)


def pairs_due(run: Run) -> PairsDue:
    """Return what there is to ask about the pairs of every scope, by its tables as they are."""
    by_scope: dict[str, list[MemoryPair]] = {}
    for scope in run.readings.scopes():
        if scope in run.outcome.failed or is_judged(run, scope):
            continue
        with run.outcome.isolated(scope, "judge"):
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


def is_judged(run: Run, scope: str) -> bool:
    """Return whether no pair of a scope was left to ask about, and nothing has changed since."""
    return run.store.lake.notes.outputs.get(Output("judge", scope)) == run.fingerprints.linked(scope)


@dataclass
class _ReplyWriter:
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
        asked = self.asked[row["request_id"]]
        _commit_reply(self.run, asked.scope, row)
        self.answered.add(row["request_id"])
        self.pairs_kept += len(asked.pairs)


def _commit_reply(run: Run, scope: str, row: Row, replaced: int = 0) -> None:
    """
    Commit a row of REPLIES with the note that the edges of its scope are to be made again.

    It takes the place of `replaced` facts that were told, which is no loss to ask about.
    """
    with run.store.lake.change() as change:
        change.append(REPLIES, scope, REPLIES.of([row]))
        notes = change.notes
        judged = content_id(notes.judged.get(scope, ""), row["request_id"], row["text"])
        change.notes = notes = replace(notes, judged={**notes.judged, scope: judged})
        if replaced:
            count = notes.replaced_by_model.get(scope, 0) + replaced
            change.notes = replace(notes, replaced_by_model={**notes.replaced_by_model, scope: count})


_COMMITTED = re.compile(r"Committed (?P<name>[0-9a-f]{7,40}) on \S+: (?P<subject>.+)", re.DOTALL)
# Both ends of a commit's short hash may be cut at another length.
SHORT_HASH = 7


def read_projects(run: Run) -> int:
    """
    Ask about each project that holds what no answer about it has seen; return how many answers were kept.

    An answer counts from the next time that the project is linked on. What waits is said in the report.
    """
    with run.report.stage("project") as row:
        requests = projects_due(run)
        asked = {each.request.request_id: each for each in requests}

        def keep(reply: Reply) -> None:
            each = asked[reply.request_id]
            believed = project_row(each, reply, run.now.astimezone(UTC))
            _commit_reply(run, each.scope, believed, replaced=len(each.known))
            row.rows_out += 1

        row.rows_in = len(requests)
        # What a project holds changes while a batch waits.
        ask_all(run, [each.request for each in requests], keep, in_batches=False)
    return row.rows_out


def projects_due(run: Run) -> list[ProjectRequest]:
    """Return the requests about projects that hold something new, the one that was at work last first."""
    prompt, model = read_prompt(PROJECT_PROMPT), run.settings.models.writer_model
    due: list[tuple[datetime, ProjectRequest]] = []
    for scope in run.readings.scopes():
        if scope == GLOBAL_SCOPE or scope in run.outcome.failed:
            continue
        with run.outcome.isolated(scope, "project"):
            # What a session has closed already is no question; what an earlier answer has, its next one says.
            tables = [still_holding(run, each, run.readings.memories(each)) for each in (scope, GLOBAL_SCOPE)]
            lines = project_lines(pa.concat_tables(tables))
            if is_project_due(lines, project_replies(run, scope)):
                commits = _commits(run, scope, lines)
                request = project_request(scope, lines, commits, run.policy, model, prompt)
                due.append((max(line["updated_at"] for line in lines), request))
    return [request for _, request in sorted(due, key=lambda each: (each[0], each[1].scope), reverse=True)]


def _commits(run: Run, scope: str, lines: list[Row]) -> list[Commit]:
    """Return the newest commits that sessions made, and those of the repository since the oldest line."""
    most = int(run.policy.threshold("project_commits_most"))
    known: dict[str, Commit] = {}
    columns = ["text", "git_commit", "said_at", "event_type"]
    for part in run.readings.parts(scope):
        events = run.store.lake.read(EVENTS, part, columns=columns)
        for row in events.filter(pc.is_valid(events["git_commit"])).to_pylist():
            if commit_match := _COMMITTED.match(row["text"]):
                name = commit_match["name"][:SHORT_HASH]
                known[name] = Commit(
                    name, row["said_at"] or EPOCH, commit_match["subject"].partition(". ")[0]
                )
    since = min(line["updated_at"] for line in lines)
    for name, at, subject in subjects_since(run.store.projects.paths_of(scope), since, most):
        known.setdefault(name[:SHORT_HASH], Commit(name[:SHORT_HASH], at, redact(subject)[0]))
    return sorted(known.values(), key=lambda each: (each.committed_at, each.name))[-most:]
