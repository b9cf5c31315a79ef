"""Puts memories together: what is open or contradictory, why something is so, answers that cite them."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.context import Context
from cortex.flows.engines.runs import read_only_run
from cortex.flows.operations.ask.recall import Recalled, recall
from cortex.flows.operations.lookup import is_memory_id, memory_by_id, projects_of, scopes_of
from cortex.flows.publishing.briefs import doubts_about
from cortex.flows.recalling.recall_search import search_store
from cortex.flows.run.run import Run
from cortex.hooks.evidence.statements import outcome_parts
from cortex.storage.published.catalogue import Catalogue
from cortex.storage.store import Store
from cortex.transforms.brief.candidates import is_plan
from cortex.transforms.errors import EmptyQuestion, NotFound
from cortex.transforms.memory.reality import paths_in
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EDGES, GLOBAL_SCOPE, MEMORIES, Row
from cortex.transforms.search import query_terms
from cortex.transforms.views.review import Item, disputes, stale_claims, unresolved
from cortex.transforms.words.facts import Vocabulary
from cortex.transforms.words.sentences import excerpt

# -- Why something is so: the decisions about a path or a subject by time, and what they replaced.

# Which edges a chain follows, and how they read from either end.
EDGE_WORDS = {
    "supersedes": ("replaces", "replaced by"),
    "contradicts": ("at odds with", "at odds with"),
    "refines": ("refines", "refined by"),
    "derived_from": ("derived from", "led to"),
}
_COLUMNS = [
    *("memory_id", "project_id", "memory_type", "text", "reason", "rejected", "files", "tags", "status"),
    *("trust", "created_at", "superseded_by", "merged_into", "source_type", "evidence"),
]
# One name of several words: camelCase, snake_case, kebab-case.
_JOINED_NAME = re.compile(r"-{0,2}(?:[A-Za-z0-9]+[_-])+[A-Za-z0-9]+|[A-Za-z0-9]*[a-z][A-Z][A-Za-z0-9]*")
_JOINTS = re.compile(r"[\s_-]+")
# A memory of these was taken away or stands in another one.
_HIDDEN = ("pruned",)


@dataclass(frozen=True)
class Relation:
    """How a step of a chain stands to another memory: `word` reads from the step to the other."""

    word: str
    memory_id: str


@dataclass(frozen=True)
class Step:
    """
    One decision of a chain.

    `reason` is why and `rejected` what was turned down, "" where not known; `at` when it was first said;
    `outcomes` are its rows of OUTCOMES, the newest first.
    """

    memory_id: str
    project_id: str
    memory_type: str
    text: str
    reason: str
    rejected: str
    status: str
    trust: str
    at: datetime
    relations: tuple[Relation, ...]
    outcomes: tuple[Row, ...] = ()


def looks_like_path(target: str) -> bool:
    """
    Return whether a target names a file or folder rather than a subject.

    >>> looks_like_path("src/poll.py"), looks_like_path("auth"), looks_like_path("why do we poll?")
    (True, False, False)
    """
    word = target.strip().strip("`")
    return bool(word) and " " not in word and ("/" in word or paths_in(word) == [word])


def memories_about(target: str, memories: pa.Table, policy: Policy) -> list[str]:
    """
    Return the ids of those MEMORIES that name a path, or all words of a subject, whatever became of them.

    A path is named by a file or a text that ends in it, or lies below it. A name of code is the same in
    whatever way its words are joined: `maxPackBytes`, `--max-pack-bytes`.
    """
    rows = chain_rows(memories)
    if looks_like_path(target):
        return [row["memory_id"] for row in rows if any(_is_of(path, target) for path in _paths_of(row))]
    vocabulary = Vocabulary.of(policy)
    wanted = vocabulary.fact(_unhyphenated(target))
    words = wanted.word_set | wanted.numbers
    if not words:
        return []
    joined = _joined(target) if _JOINED_NAME.fullmatch(target.strip()) else ""
    named = []
    for row in rows:
        text = " ".join((row["text"], *row["files"], *row["tags"]))
        fact = vocabulary.fact(f"{text} {_unhyphenated(text)}")
        if (joined and joined in _joined(text)) or (not joined and words <= fact.word_set | fact.numbers):
            named.append(row["memory_id"])
    return named


def _unhyphenated(text: str) -> str:
    """Return a text with the words apart that a hyphen joins: "env-var binding" is about an env var."""
    return text.replace("-", " ")


def _joined(text: str) -> str:
    """Return a text as one word, however its words are joined."""
    return _JOINTS.sub("", text).casefold()


def chain_of(
    memories: pa.Table, edges: pa.Table, seeds: Collection[str], policy: Policy, *, limit: int
) -> list[Step]:
    """
    Return the decisions among `seeds` and what they replaced, refined or are at odds with, oldest first.

    Takes MEMORIES and EDGES of some scopes. What holds (types with `is_in_force`) makes a chain; if no
    seed does, all seeds do. Of more than `limit` the newest stay.
    """
    rows = {row["memory_id"]: row for row in chain_rows(memories)}
    kinds = policy.types_with("is_in_force")
    relations = _relations(edges.to_pylist(), rows)
    deciding = {name for name in seeds if name in rows and rows[name]["memory_type"] in kinds}
    chosen = deciding or {name for name in seeds if name in rows}
    waiting = set(chosen)
    while waiting:  # what was replaced may have replaced something itself
        name = waiting.pop()
        near = {r.memory_id for r in relations[name] if rows[r.memory_id]["memory_type"] in kinds}
        waiting |= near - chosen
        chosen |= near
    ordered = sorted((rows[name] for name in chosen), key=lambda row: (row["created_at"], row["memory_id"]))
    return [_step(row, relations[row["memory_id"]]) for row in ordered[-limit:]]


def chain_rows(memories: pa.Table) -> list[Row]:
    """Return the rows of MEMORIES that may be told: also what was replaced, nothing that was merged away."""
    return [
        row
        for row in memories.select(_COLUMNS).to_pylist()
        if row["status"] not in _HIDDEN
        and row["merged_into"] is None
        and row["memory_type"] != "code"
        and (row["trust"] != "external" or bool(row["evidence"]) or row["source_type"] == "import")
    ]


def _relations(edges: Iterable[Row], rows: dict[str, Row]) -> dict[str, list[Relation]]:
    relations: dict[str, list[Relation]] = defaultdict(list)
    for edge in sorted(edges, key=lambda edge: str(edge["edge_id"])):
        words = EDGE_WORDS.get(edge["edge_type"])
        source, target = edge["source_id"], edge["target_id"]
        if words and source in rows and target in rows:
            relations[source].append(Relation(words[0], target))
            relations[target].append(Relation(words[1], source))
    return relations


def _step(row: Row, relations: Iterable[Relation]) -> Step:
    return Step(
        row["memory_id"],
        row["project_id"],
        row["memory_type"],
        row["text"],
        row["reason"] or "",
        row["rejected"] or "",
        row["status"],
        row["trust"],
        row["created_at"],
        tuple(dict.fromkeys(relations)),
    )


def _paths_of(row: Row) -> list[str]:
    return [*row["files"], *paths_in(row["text"])]


def _is_of(path: str, target: str) -> bool:
    wanted = target.strip().strip("`").removeprefix("./").strip("/").casefold()
    named = path.strip("/").casefold()
    return f"/{named}/".find(f"/{wanted}/") >= 0 or f"/{wanted}".endswith(f"/{named}")


# -- Unresolved points: what sessions left open, contradictions, and what may no longer hold.

OPEN, CONTRADICTORY, STALE_POINT = "open", "contradictory", "stale"
POINT_KINDS = (OPEN, CONTRADICTORY, STALE_POINT)
# Enough of a session's goal to know it again.
SESSION_CHARS = 100

_REFLECTION_COLUMNS = [
    *("memory_id", "project_id", "memory_type", "text", "status", "confidence", "is_pinned"),
    *("updated_at",),
]


@dataclass(frozen=True)
class Point:
    """
    One unresolved point.

    `kind` is one of POINT_KINDS; `memory_ids` are the memories it rests on (of a contradiction the older
    first), `texts` what they say of it, `reason` why it is a point; `since` when it was last said.
    """

    kind: str
    project_id: str
    memory_ids: tuple[str, ...]
    texts: tuple[str, ...]
    reason: str
    since: datetime | None = None


def open_points(memories: pa.Table, policy: Policy) -> list[Point]:
    """
    Return what the outcome records and plans of MEMORIES left open, newest first.

    A record that has faded says nothing: of an old session the repository knows better what is open.
    """
    is_sure = pc.field("confidence") >= policy.threshold("archive_below_confidence")
    active = memories.filter((pc.field("status") == "active") & is_sure)
    points = []
    for row in active.filter(pc.field("memory_type") == "outcome").select(_REFLECTION_COLUMNS).to_pylist():
        record = outcome_parts(row["text"])
        parts = tuple(part.strip() for part in record.get("open", "").split("; ") if part.strip(" ."))
        if parts:
            points.append(
                _point(OPEN, row, parts, _left_open(record.get("goal") or record.get("outcome", "")))
            )
    for row in active.filter(is_plan()).select(_REFLECTION_COLUMNS).to_pylist():
        points.append(_point(OPEN, row, (row["text"],), "a plan with steps to do"))
    return sorted(points, key=_newest_first)


def fading_points(memories: pa.Table, policy: Policy) -> list[Point]:
    """Return the active claims of MEMORIES that no brief shows any more because of their age."""
    limit = policy.threshold("archive_below_confidence")
    is_claim = pc.field("memory_type").isin(pa.array(sorted(policy.types_with("is_claim")), pa.string()))
    is_fading = (pc.field("status") == "active") & (pc.field("confidence") < limit)
    rows = (
        memories.filter(is_claim & is_fading & ~pc.field("is_pinned")).select(_REFLECTION_COLUMNS).to_pylist()
    )
    points = [
        _point(
            STALE_POINT, row, (row["text"],), f"fading: its confidence has sunk to {row['confidence']:.2f}"
        )
        for row in rows
    ]
    return sorted(points, key=_newest_first)


def points_of_review(items: Iterable[Item], kind: str) -> list[Point]:
    """Return what a review lists as points of a kind."""
    return [Point(kind, item.project_id, item.memory_ids, item.texts, item.detail) for item in items]


def _left_open(session: str) -> str:
    """Return why a point is open; "not pushed" alone does not say what was not."""
    about = excerpt(session.rstrip(" ."), SESSION_CHARS)
    return f"left open by the session “{about}”" if about else "left open by a session"


def _point(kind: str, row: dict[str, object], texts: tuple[str, ...], reason: str) -> Point:
    since = row["updated_at"]
    assert isinstance(since, datetime)
    return Point(kind, str(row["project_id"]), (str(row["memory_id"]),), texts, reason, since)


def _newest_first(point: Point) -> tuple[float, tuple[str, ...]]:
    return (-point.since.timestamp() if point.since else 0.0, point.memory_ids)


# -- What is open, contradictory or stale in a project; and an answer to a question that cites its memories.

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
    The unresolved points, by kind (open, contradictory, stale), newest first within a kind; with a question
    its answer, and then only the points that the recalled memories have a part in.

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
    run = read_only_run(context, with_model=False)
    if all_projects:
        meant = [each for each in store.projects.all() if context.sees(each.project_id)]
        if project:
            projects_of(context, store, project)
    else:
        meant = projects_of(context, store, project)
    points = [point for each in meant for point in points_about(run, each.project_id)]
    points.sort(key=lambda point: POINT_KINDS.index(point.kind))
    names = store.projects.labels()
    if not question.strip():
        return Reflection(points, names)
    # One by one: each statement of the answer cites a memory with its own day, status and author.
    recalled = recall(
        context, question, project=project, all_projects=all_projects, limit=limit, with_nearby=False
    )
    ids = {match.id for match in recalled.matches}
    mine = [point for point in points if ids.intersection(point.memory_ids)]
    own = meant[0].project_id if len(meant) == 1 else GLOBAL_SCOPE
    return Reflection(mine, names, _answer(context, store, own, question, recalled), recalled.warning)


def points_about(run: Run, project_id: str) -> list[Point]:
    """Return the unresolved points of a project; what a person has let stand is not among it."""
    tables = run.store.tables
    memories, edges = tables.open(project_id, "memories").read(), tables.open(project_id, "edges").read()
    journal = run.readings.merged_journal(project_id)
    at_odds = unresolved(disputes(memories, edges, run.policy), journal)
    doubted = unresolved(stale_claims(memories, doubts_about(run, project_id, memories)), journal)
    stale = points_of_review(doubted, STALE_POINT)
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
    from cortex.transforms.writer.answer import REFLECT_PROMPT, GivenMemory

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


# -- Why something is so: the chain of decisions about a path or a subject, and what they rejected.

_NOT_ASKED = "no language model was asked: this is the chain as it is stored"
_INFER_NO_MODEL = "no language model is chosen: this is the chain as it is stored"


@dataclass(frozen=True)
class Inference:
    """
    The chain of decisions about a target, oldest first, and what it says in statements that cite it.

    `project_names` are by id. An empty chain: nothing that was kept is about the target.
    """

    target: str
    chain: Sequence[Step]
    narrative: CitedAnswer
    project_names: Mapping[str, str]


def infer(
    context: Context,
    target: str,
    *,
    project: str | None = None,
    all_projects: bool = False,
    limit: int = 20,
    narrated: bool = True,
) -> Inference:
    """
    Return why a path, a subject or a memory (by its id) is so, by at most `limit` decisions, the newest.

    A path is found by the files that memories name; a subject by its words, else by its meaning. What the
    decisions replaced and what replaced them belongs to the chain. Nothing is reinforced. Unless `narrated`
    no language model is asked. Raises EmptyQuestion, UnknownProject, NotFound for an empty store.
    """
    store, policy = context.open_store(), context.policy
    if not looks_like_path(target) and not query_terms(target, policy):
        raise EmptyQuestion(
            "the subject has no word to search for.", "Name a path or a subject: cortex infer auth"
        )
    if store.is_empty and not store.journal.waiting():
        raise NotFound(f"the store at {context.home} is empty.", "Fill it: cortex backfill")
    named = memory_by_id(context, store, target) if is_memory_id(target) else None
    scopes = scopes_of(context, store, project, all_projects=all_projects)
    if named is not None and named["project_id"] not in scopes:
        scopes = [*scopes, named["project_id"]]
    tables = [store.tables.open(scope, "memories").read() for scope in scopes]
    memories = pa.concat_tables([MEMORIES.empty().select(_read_columns(tables)), *tables])
    edges = pa.concat_tables([EDGES.empty(), *(store.tables.open(s, "edges").read() for s in scopes)])
    seeds = [named["memory_id"]] if named else memories_about(target, memories, policy)
    if not seeds and not looks_like_path(target):  # what is near a path in meaning is not about it
        seeds = _near_in_meaning(context, store, target, scopes)
    chain = chain_of(memories, edges, seeds, policy, limit=limit)
    outcomes = Catalogue(context.home).outcomes_of([step.memory_id for step in chain])
    chain = [
        replace(step, outcomes=tuple(row for row in outcomes if row["memory_id"] == step.memory_id))
        for step in chain
    ]
    names = store.projects.labels()
    if not narrated:
        return Inference(target, chain, CitedAnswer(_statements(chain), BY_RULES, _NOT_ASKED), names)
    return Inference(target, chain, _narrative(context, store, scopes[0], target, chain), names)


def _read_columns(tables: Sequence[pa.Table]) -> list[str]:
    return tables[0].schema.names if tables else MEMORIES.arrow.names


def _near_in_meaning(context: Context, store: Store, target: str, scopes: Sequence[str]) -> list[str]:
    matches = search_store(
        store.tables,
        target,
        scopes=scopes,
        policy=context.policy,
        embedder=context.embedder(),
        limit=5,
        with_nearby=False,  # what stands near a decision in its session is not about the target
    )
    return [match.id for match in matches if match.kind == "memory"]


def _narrative(context: Context, store: Store, scope: str, target: str, chain: Sequence[Step]) -> CitedAnswer:
    if not chain or not context.settings.models.uses_replies:
        return CitedAnswer(_statements(chain), BY_RULES, _INFER_NO_MODEL)
    # Imported here: with no language model chosen none of this is loaded.
    from cortex.flows.operations.ask.answering import answer_over
    from cortex.transforms.writer.answer import INFER_PROMPT, GivenMemory

    given = [
        GivenMemory(
            step.memory_id,
            step.at,
            step.status,
            step.trust,
            step.text,
            step.reason,
            step.rejected,
            [(each.word, each.memory_id) for each in step.relations],
        )
        for step in chain
    ]
    written = answer_over(context, store, scope, target, given, INFER_PROMPT)
    if written.note:
        return CitedAnswer(_statements(chain), BY_RULES, written.note)
    return cited_answer(written.sentences, context.settings.models.writer_model)


def _statements(chain: Sequence[Step]) -> list[CitedStatement]:
    return [CitedStatement(_sentence(step), (step.memory_id,)) for step in chain]


def _sentence(step: Step) -> str:
    parts = [step.text]
    if step.reason and step.reason not in step.text:
        parts.append(f"Why: {step.reason}")
    if step.rejected and step.rejected not in step.text:
        parts.append(f"Rejected: {step.rejected}")
    return " ".join(part if part.endswith((".", "!", "?", "。")) else f"{part}." for part in parts)
