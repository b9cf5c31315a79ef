"""Asks a language model about all that a project holds, and how its answer is kept and found again."""

import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.asking_model.asking import ask_all
from cortex.flows.run.run import Run
from cortex.flows.run.verdicts import project_replies
from cortex.storage.projects.repository import subjects_since
from cortex.storage.settings.reference import read_prompt
from cortex.transforms.identity import content_id
from cortex.transforms.redaction.redact import redact
from cortex.transforms.schemas import EPOCH, EVENTS, GLOBAL_SCOPE, REPLIES, Row
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
        keeper = _Keeper(run, {each.request.request_id: each for each in requests})
        # What a project holds changes while a batch waits.
        ask_all(run, [each.request for each in requests], keeper.keep, in_batches=False)
        row.rows_in, row.rows_out = len(requests), len(keeper.kept)
    return len(keeper.kept)


def projects_due(run: Run) -> list[ProjectRequest]:
    """Return the requests about projects that hold something new, the one that was at work last first."""
    prompt, model = read_prompt(PROJECT_PROMPT), run.settings.models.writer_model
    due: list[tuple[datetime, ProjectRequest]] = []
    for scope in run.readings.scopes():
        if scope == GLOBAL_SCOPE or scope in run.outcome.failed:
            continue
        with run.outcome.apart(scope, "project"):
            tables = [run.readings.memories(each) for each in (scope, GLOBAL_SCOPE)]
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


@dataclass
class _Keeper:
    """Commits answers; `asked` is by request id."""

    run: Run
    asked: dict[str, ProjectRequest]
    kept: list[str] = field(default_factory=list)

    def keep(self, reply: Reply) -> None:
        """Commit what is believed of an answer, with the note that its scope is to be commit_match again."""
        asked = self.asked[reply.request_id]
        row = project_row(asked, reply, self.run.now.astimezone(UTC))
        with self.run.store.lake.change() as change:
            change.append(REPLIES, asked.scope, REPLIES.of([row]))
            notes = change.notes
            judged = content_id(notes.judged.get(asked.scope, ""), row["request_id"], row["text"])
            # Its order takes the place of what was told: that is no loss to ask about.
            given_way = {
                **notes.given_way,
                asked.scope: notes.given_way.get(asked.scope, 0) + len(asked.known),
            }
            change.notes = replace(notes, judged={**notes.judged, asked.scope: judged}, given_way=given_way)
        self.kept.append(asked.scope)
