"""
Replays a history session by session: what the brief and the prompt hook, made of the sessions before, held of
what each session then had to be told again.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.context import Context
from cortex.flows.engines.runs import read_only_run
from cortex.flows.operations.lookup import projects_of
from cortex.flows.past.as_of import known_before
from cortex.flows.publishing.briefs import draft_of
from cortex.flows.run.run import Progress, Run, no_progress
from cortex.flows.stages.publish import ranks_for
from cortex.hooks import shown
from cortex.hooks.prompt import is_typed, notes_in
from cortex.scores.brief_scores import SAME_WORDS, facts_of
from cortex.scores.retrieval_scores import Share
from cortex.storage.lake.lake import each_key_once
from cortex.transforms.extract.language.phrases import Phrasebook
from cortex.transforms.memory.lifecycle import sessions_of
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EVENTS, GLOBAL_SCOPE, TURNS, UTC_US, Row, values
from cortex.transforms.search import settings_document
from cortex.transforms.views.metrics import SHOWINGS, memory_names, repeats_of, session_uses
from cortex.transforms.words.facts import Vocabulary
from cortex.transforms.words.sentences import share_of_fewer

# With fewer chances the interval is wider than any difference between two versions.
MIN_CHANCES = 50
# Fewer words of a topic ("no, wrong") name nothing that a memory could have held; a complaint says what is
# wrong at its beginning.
MIN_WORDS = 3
COMPLAINT_CHARS = 300
KINDS = ("correction", "question", "decision", "re-proposal")


@dataclass(frozen=True)
class Chance:
    """
    What a session had to be told again: words, when, which kind; and what had them before.

    `is_said_before` tells that an earlier session did, `in_brief` and `at_prompt` that it was handed over in
    time.
    """

    session_id: str
    kind: str
    at: datetime
    text: str
    is_said_before: bool = False
    in_brief: bool = False
    at_prompt: bool = False

    @property
    def is_held(self) -> bool:
        """Whether the brief or the hook held it."""
        return self.in_brief or self.at_prompt


@dataclass(frozen=True)
class ShownMemory:
    """
    A memory that a replayed session was shown, and whether the session then worked by it.

    `shown` and `used` count the sessions before in which that was so; `rank` is from 0 to 1.
    """

    session_id: str
    memory_id: str
    rank: float
    is_used: bool
    shown: int
    used: int


@dataclass(frozen=True)
class Replayed:
    """One project: its chances in their order, and what its sessions were shown."""

    project_id: str
    sessions: int
    chances: Sequence[Chance]
    shown: Sequence[ShownMemory]


@dataclass(frozen=True)
class Backtest:
    """The projects of a history, replayed."""

    projects: Sequence[Replayed] = field(default_factory=tuple)

    @property
    def chances(self) -> list[Chance]:
        """All chances."""
        return [chance for project in self.projects for chance in project.chances]

    @property
    def decides(self) -> bool:
        """Whether there are enough chances for the share to decide anything."""
        return len(self.chances) >= MIN_CHANCES

    def shares(self) -> dict[str, Share]:
        """Return the shares of the chances that something held, by what held them."""
        chances = self.chances
        columns = {
            "held": [chance.is_held for chance in chances],
            "in_brief": [chance.in_brief for chance in chances],
            "at_prompt": [chance.at_prompt for chance in chances],
            "said_before": [chance.is_said_before for chance in chances],
            "held_of_said": [chance.is_held for chance in chances if chance.is_said_before],
        }
        return {name: Share.of(list(map(float, column))) for name, column in columns.items()}

    def order_by_use(self) -> dict[str, float]:
        """
        Return how well rank, and use in earlier sessions, tell what a session used of what it was shown.

        Of the pairs of a used and an unused memory of one session, the share that each puts in that order; a
        tie is half. `with_history`, `five_times`, `twenty_times`: what had been shown before, and how often.
        """
        shown_rows = [row for project in self.projects for row in project.shown]
        by_session: dict[str, list[ShownMemory]] = {}
        for row in shown_rows:
            by_session.setdefault(row.session_id, []).append(row)
        right = Counter[str]()
        for rows in by_session.values():
            for used in (row for row in rows if row.is_used):
                for unused in (row for row in rows if not row.is_used):
                    right["pairs"] += 1
                    right["rank"] += _is_before(used.rank, unused.rank)
                    right["use"] += _is_before(_rate(used), _rate(unused))
        pairs = right["pairs"]
        return {
            "shown": len(shown_rows),
            "used": sum(row.is_used for row in shown_rows),
            "with_history": sum(row.shown > 0 for row in shown_rows),
            "five_times": sum(row.shown >= 5 for row in shown_rows),
            "twenty_times": sum(row.shown >= 20 for row in shown_rows),
            "pairs": pairs,
            "by_rank": right["rank"] / 2 / pairs if pairs else 0.0,
            "by_use": right["use"] / 2 / pairs if pairs else 0.0,
        }

    def as_dict(self) -> dict[str, object]:
        """Return the figures as JSON has them."""
        kinds = Counter(chance.kind for chance in self.chances)
        return {
            "projects": len(self.projects),
            "sessions": sum(project.sessions for project in self.projects),
            "chances": len(self.chances),
            "decides": self.decides,
            "kinds": {kind: kinds[kind] for kind in KINDS},
            "shares": {name: share.as_dict() for name, share in self.shares().items()},
            "order": {name: round(value, 4) for name, value in self.order_by_use().items()},
        }


def _is_before(left: float, right: float) -> int:
    """Return 2 for the right order, 1 for a tie, 0 for the wrong one."""
    return 2 if left > right else int(left == right)


def _rate(row: ShownMemory) -> float:
    return (row.used + 1) / (row.shown + 2)  # nothing known: one half


def backtest(
    context: Context,
    project: str | None = None,
    *,
    all_projects: bool = False,
    progress: Progress = no_progress,
) -> Backtest:
    """
    Replay the sessions of the named projects, else of the folder's; nothing is written, no model is asked.

    Raises UnknownProject.
    """
    run = read_only_run(context, with_model=False)
    if all_projects:
        ids = [scope for scope in run.readings.scopes() if scope != GLOBAL_SCOPE]
    else:
        ids = [each.project_id for each in projects_of(context, context.open_store(), project)]
    replayed = []
    for done, project_id in enumerate(ids):
        progress("backtest", done, len(ids))
        replayed.append(replay(run, project_id))
    progress("backtest", len(ids), len(ids))
    return Backtest(replayed)


def replay(run: Run, project_id: str) -> Replayed:
    """Return what the sessions of a project, each known by those before it alone, held of its chances."""
    turns, vocabulary = run.readings.turns(project_id), Vocabulary.of(run.policy)
    events = [run.store.lake.read(EVENTS, part) for part in run.readings.parts(project_id)]
    chances = list(chances_in(turns, pa.concat_tables([EVENTS.empty(), *events]), run.policy, vocabulary))
    sessions = sessions_of(turns, {}).sort_by([("started_at", "ascending"), ("session_id", "ascending")])
    held: list[Chance] = []
    shown_rows: list[ShownMemory] = []
    history: dict[str, list[int]] = {}
    for row in sessions.to_pylist()[1:]:
        mine = [chance for chance in chances if chance.session_id == row["session_id"]]
        handed = hand_over(run, project_id, row["session_id"], row["started_at"], turns)
        known = _texts_before(turns, row["started_at"])
        held += [_held(chance, handed, known, vocabulary) for chance in mine]
        shown_rows += _used(handed, row, project_id, turns, run.policy, vocabulary, history)
    return Replayed(project_id, sessions.num_rows, held, shown_rows)


# -- What a session would have been handed: its brief, and the notes at each of its messages.


@dataclass(frozen=True)
class Handed:
    """What a session would have been handed: lines of the brief, notes with their instants, memories."""

    brief: Sequence[str]
    notes: Sequence[tuple[datetime, str]]
    memories: Sequence[Row]


def hand_over(run: Run, project_id: str, session_id: str, started_at: datetime, turns: pa.Table) -> Handed:
    """Return what a session would have been handed by what had been said before it began."""
    past = known_before(run, started_at, [project_id], searchable=True)
    past.store.tables.settle_search(settings_document(run.policy), ranks_for(run.policy))
    draft = draft_of(past, project_id)
    record, notes, ids = shown.record_of_brief(draft.brief), [], []
    with past.store.tables.reading_index([project_id]) as connection:
        for prompt in _prompts_of(turns, session_id):
            assert connection is not None
            record.prompts += 1
            for note in notes_in(connection, project_id, prompt["text"], session_id, record):
                record.add(note.id, note.shown, note.tokens)
                notes.append((prompt["said_at"], note.line))
                ids.append(note.id)
    ids += [choice.memory_id for choice in draft.choices if choice.is_shown and choice.memory_id]
    wanted = pc.is_in(draft.inputs.memories["memory_id"], pa.array(sorted(set(ids)), pa.string()))
    columns = ["memory_id", "text", "files", "rank"]
    memories = draft.inputs.memories.filter(wanted).select(columns).to_pylist()
    return Handed(facts_of(draft.brief), notes, memories)


def _prompts_of(turns: pa.Table, session_id: str) -> list[Row]:
    """Return what a person typed in a session, dated, in its order."""
    is_typed_here = (pc.field("session_id") == session_id) & (pc.field("kind") == "prompt")
    rows = turns.filter(is_typed_here & pc.field("agent_id").is_null() & pc.field("said_at").is_valid())
    ordered = rows.sort_by([("said_at", "ascending"), ("line", "ascending")]).to_pylist()
    return [row for row in ordered if is_typed(row["text"])]


# -- What a session had to be told again.


def chances_in(turns: pa.Table, events: pa.Table, policy: Policy, vocabulary: Vocabulary) -> Iterator[Chance]:
    """
    Yield the chances of the sessions of a project, those of its first one too.

    Corrections are refused calls with words and complaints; a question was asked again if most of its words
    were in one of an earlier session; a decision if an earlier session had made it, or turned it down.
    """
    least, complaint = policy.threshold("metrics_same_words"), Phrasebook.of(policy).complaint.pattern
    asked: list[tuple[str, frozenset[str]]] = []
    corrected: set[tuple[str, str]] = set()  # one refusal of several calls is one correction
    is_dated = pc.is_valid(turns["said_at"])
    for row in turns.filter(is_dated).sort_by([("said_at", "ascending"), ("line", "ascending")]).to_pylist():
        if row["agent_id"] is not None or row["kind"] not in ("prompt", "rejection"):
            continue
        head = row["text"][:COMPLAINT_CHARS]
        words = vocabulary.fact(head).word_set
        if len(words) < MIN_WORDS:
            continue
        if row["kind"] == "rejection" or complaint.search(head):
            if (row["session_id"], head) in corrected:
                continue
            corrected.add((row["session_id"], head))
            yield Chance(row["session_id"], "correction", row["said_at"], head)
        elif "?" in head:
            if any(name != row["session_id"] and share_of_fewer(words, w) >= least for name, w in asked):
                yield Chance(row["session_id"], "question", row["said_at"], head)
            asked.append((row["session_id"], words))
    kinds = {row["event_id"]: row["is_re_proposal"] for row in repeats_of(events, policy).to_pylist()}
    again = events.filter(pc.is_in(events["event_id"], pa.array(sorted(kinds), pa.string())))
    for row in again.sort_by([("said_at", "ascending"), ("event_id", "ascending")]).to_pylist():
        if len(vocabulary.fact(row["text"]).word_set) >= MIN_WORDS:
            kind = "re-proposal" if kinds[row["event_id"]] else "decision"
            yield Chance(row["session_id"], kind, row["said_at"], row["text"])


def _texts_before(turns: pa.Table, until: datetime) -> list[str]:
    is_prose = pc.field("kind").isin(["prompt", "text", "rejection", "choice", "plan"])
    rows = turns.filter(is_prose & (pc.field("said_at") < pa.scalar(until, UTC_US)))
    return values(rows, "text")


def _held(chance: Chance, handed: Handed, known: Sequence[str], vocabulary: Vocabulary) -> Chance:
    """Return the chance with what had its words in time: a note for a question comes with the question."""
    words = vocabulary.fact(chance.text).word_set

    def is_in(line: str) -> bool:
        return len(words & vocabulary.fact(line).word_set) >= SAME_WORDS * len(words)

    notes = [
        line for at, line in handed.notes if at < chance.at or (chance.kind == "question" and at == chance.at)
    ]
    return Chance(
        chance.session_id,
        chance.kind,
        chance.at,
        chance.text,
        any(map(is_in, known)),
        any(map(is_in, handed.brief)),
        any(map(is_in, notes)),
    )


# -- What a session did with what it would have been shown.


def _used(
    handed: Handed,
    session: Row,
    project_id: str,
    turns: pa.Table,
    policy: Policy,
    vocabulary: Vocabulary,
    history: dict[str, list[int]],
) -> list[ShownMemory]:
    """Return the memories handed over with what came of them; `history` has (shown, used) and is added to."""
    name, started_at = session["session_id"], session["started_at"]
    empty = {"briefs": 1, "prompts": 0, "recalls": 0}
    rows = [
        {**empty, "session_id": name, "memory_id": row["memory_id"], "shown_at": started_at}
        for row in handed.memories
    ]
    own = each_key_once(TURNS, turns.filter(pc.field("session_id") == name))
    showings = pa.Table.from_pylist(rows, schema=SHOWINGS)
    names, inputs = memory_names(handed.memories, vocabulary), {name: ""}
    uses = session_uses(showings, names, own, policy, project_id, inputs)
    used = {row["memory_id"] for row in uses.to_pylist() if row["used_at"] or row["is_cited"]}
    result = []
    for row in handed.memories:
        counts = history.setdefault(row["memory_id"], [0, 0])
        is_used = row["memory_id"] in used
        result.append(ShownMemory(name, row["memory_id"], row["rank"], is_used, counts[0], counts[1]))
        counts[0] += 1
        counts[1] += is_used
    return result
