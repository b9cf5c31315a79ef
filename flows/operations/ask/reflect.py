"""What is open, contradictory or stale in a project; and an answer to a question that cites its memories."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from cortex.flows.context.context import Context
from cortex.flows.engines.runs import looking
from cortex.flows.operations.ask.recall import Recalled, recall
from cortex.flows.operations.lookup.targets import projects_of
from cortex.flows.publishing.repository_doubts import doubts_about
from cortex.flows.run.run import Run
from cortex.storage.store import Store
from cortex.transforms.schemas import GLOBAL_SCOPE
from cortex.transforms.views.reflection import (
    CONTRADICTORY,
    POINT_KINDS,
    STALE,
    Point,
    fading_points,
    open_points,
    points_of_review,
)
from cortex.transforms.views.review import disputes, stale_claims, unsettled

BY_RULES = "rules"
# What is told if no language model was chosen.
_NO_MODEL = "no language model is chosen: these are the recalled statements themselves"


@dataclass(frozen=True)
class CitedStatement:
    """
    A statement with the ids of the recalled memories it rests on, at least one.

    Of one that is a memory itself, `said_at` is when it was first said and `status` its present state.
    """

    text: str
    memory_ids: tuple[str, ...]
    said_at: datetime | None = None
    status: str = "active"


@dataclass(frozen=True)
class CitedAnswer:
    """
    An answer over recalled memories.

    `source` is the language model that wrote it or BY_RULES; `note` why no model answered, "" where one did.
    """

    statements: Sequence[CitedStatement]
    source: str
    note: str = ""

    @property
    def is_written(self) -> bool:
        """Whether a language model wrote it."""
        return self.source != BY_RULES


@dataclass(frozen=True)
class Reflection:
    """
    What is not settled, by kind (open, contradictory, stale), newest first within a kind; with a question its
    answer, and then only the points that the recalled memories have a part in.

    `project_names` are by id; `warning` is that of the recall.
    """

    points: Sequence[Point]
    project_names: Mapping[str, str]
    answer: CitedAnswer | None = None
    warning: str = ""

    def of_kind(self, kind: str) -> list[Point]:
        """Return the points of one kind."""
        return [point for point in self.points if point.kind == kind]


def reflect(
    context: Context,
    question: str = "",
    *,
    project: str | None = None,
    all_projects: bool = False,
    limit: int = 10,
) -> Reflection:
    """
    Return what is open, contradictory and stale in projects called `project`, else the folder's, else all.

    With a question: an answer from at most `limit` recalled memories, each statement with its citations; the
    memories are reinforced as by `recall`. Raises UnknownProject, NotFound for an empty store.
    """
    store = context.open_store()
    run = looking(context, with_model=False)
    if all_projects:
        meant = [each for each in store.projects.all() if context.sees(each.project_id)]
        if project:
            projects_of(context, store, project)
    else:
        meant = projects_of(context, store, project)
    points = [point for each in meant for point in points_about(run, each.project_id)]
    points.sort(key=lambda point: POINT_KINDS.index(point.kind))
    names = {each.project_id: each.name for each in store.projects.all()}
    if not question.strip():
        return Reflection(points, names)
    # One by one: each statement of the answer cites a memory with its own day, status and author.
    recalled = recall(
        context, question, project=project, all_projects=all_projects, limit=limit, by_stretch=False
    )
    ids = {match.id for match in recalled.matches}
    mine = [point for point in points if ids.intersection(point.memory_ids)]
    own = meant[0].project_id if len(meant) == 1 else GLOBAL_SCOPE
    return Reflection(mine, names, _answer(context, store, own, question, recalled), recalled.warning)


def points_about(run: Run, project_id: str) -> list[Point]:
    """Return what is not settled in a project; what a person has let stand is not among it."""
    tables = run.store.tables
    memories, edges = tables.open(project_id, "memories").read(), tables.open(project_id, "edges").read()
    journal = run.readings.merged_journal(project_id)
    at_odds = unsettled(disputes(memories, edges, run.policy), journal)
    doubted = unsettled(stale_claims(memories, doubts_about(run, project_id, memories)), journal)
    stale = points_of_review(doubted, STALE)
    known = {name for point in stale for name in point.memory_ids}
    fading = [p for p in fading_points(memories, run.policy) if known.isdisjoint(p.memory_ids)]
    return [
        *open_points(memories, run.policy),
        *points_of_review(at_odds, CONTRADICTORY),
        *stale,
        *fading,
    ]


def _answer(context: Context, store: Store, scope: str, question: str, recalled: Recalled) -> CitedAnswer:
    if not context.settings.models.uses_replies:
        return answer_by_rules(recalled, _NO_MODEL)
    # Imported here: with no language model chosen none of this is loaded.
    from cortex.flows.operations.ask.answering import answer_over
    from cortex.transforms.writer.cited import REFLECT_PROMPT, GivenMemory

    given = [
        GivenMemory(match.id, match.created_at, match.status, match.trust, match.text)
        for match in recalled.matches
        if match.kind == "memory"
    ]
    written = answer_over(context, store, scope, question, given, REFLECT_PROMPT)
    if written.note:
        return answer_by_rules(recalled, written.note)
    return cited_answer(written.sentences, context.settings.models.writer_model)


def cited_answer(sentences: Sequence[tuple[str, tuple[str, ...]]], model: str) -> CitedAnswer:
    """Return the sentences that a language model wrote, each with the ids it cites."""
    return CitedAnswer([CitedStatement(text, ids) for text, ids in sentences], model)


def answer_by_rules(recalled: Recalled, note: str) -> CitedAnswer:
    """Return the recalled memories as an answer: those that hold first, of these the nearest first."""
    matches = [match for match in recalled.matches if match.kind == "memory"]
    matches.sort(key=lambda match: match.status != "active")
    statements = [
        CitedStatement(match.text, (match.id,), match.created_at, match.status or "active")
        for match in matches
    ]
    return CitedAnswer(statements, BY_RULES, note)
