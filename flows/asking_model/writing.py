"""What a language model writes about sessions that are over: which are asked about or again, what is kept."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import product

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.asking_model.asking import ask_all, finish_arrivals, kept_replies, kept_requests
from cortex.flows.context import utc_now
from cortex.flows.extract_transcripts import events_of, note_grown
from cortex.flows.reading.transcript_reader import PLACE, in_first_place
from cortex.flows.run.model_replies import (
    answer_about,
    note_replaced_by_model,
    prompt_to_ask,
    shipped_prompts,
    still_holding,
)
from cortex.flows.run.run import Run
from cortex.flows.run_report import StageReport
from cortex.storage.model_calls import Arrivals, Spending
from cortex.storage.settings.reference import read_prompt
from cortex.transforms.audit import events_violations
from cortex.transforms.schemas import EPOCH, EVENTS, PROJECT_PURPOSE, REPLIES, SETTLED, TURNS, values
from cortex.transforms.words.ages import counted
from cortex.transforms.writer.request import ModelRequest, Prompt, Reply
from cortex.transforms.writer.session import PIECE_PURPOSE, SessionRequest, session_requests
from cortex.transforms.writer.written import (
    SESSION_PURPOSE,
    hash_of_turns,
    known_memories,
    moments,
    reply_row,
    unasked_row,
)

# By so many of its newest sessions a project's next one is told where it stands; the others can wait.
NEWEST_FIRST = 3
# Projects read side by side: a process of the client takes 200 MB, a connection nothing.
PROJECTS_AT_ONCE = {"api": 4}
# A request that waits in a batch is looked for in what was known at so many moments before.
MOMENTS_TRIED = 20
_REPLY_COLUMNS = ["request_id", "session_id", "turns_hash", "turn_count", "prompt", "purpose"]


@dataclass(frozen=True)
class UnreadSession:
    """A session to be read as it is now: its project, its end, how many turns it has."""

    project_id: str
    session_id: str
    ended_at: datetime
    turn_count: int


def write_sessions(run: Run) -> None:
    """
    Ask about the sessions that are over and have no answer, in the order of reading, and keep each answer.

    An answer is committed together with the events of its session, so that a run killed in between has both
    or neither; only then its price is settled. What waits is said in the report.
    """
    sessions = _first_of(run, unread_sessions(run))
    if not sessions:
        finish_arrivals(run, utc_now())
        return
    with run.report.stage("write") as row:
        read_sessions(run, sessions, row)


def _first_of(run: Run, sessions: list[UnreadSession]) -> list[UnreadSession]:
    """Return those of the project that is read first, in their order; all where it has none, or none is."""
    project_id = run.store.projects.known(run.first_folder) if run.first_folder else None
    if project_id is None:
        return sessions
    canonical = run.store.projects.canonical
    return [each for each in sessions if canonical(each.project_id) == project_id] or sessions


def read_sessions(
    run: Run,
    sessions: Sequence[UnreadSession],
    row: StageReport,
    again: Mapping[str, str] | None = None,
) -> None:
    """
    Ask about sessions in the order of reading, keep each answer, and say in `row` what waits.

    With `again`, the version to read with by project, they are read although another version has read them;
    the answers are kept beside the others and what is shown stays as it is.
    """
    reply_writer = _ReplyWriter(run, [], _turn_counts(sessions), is_shown=again is None)
    reading = _Reading(run, reply_writer, reading_order(run, sessions, again), again)
    ask_all(
        run,
        reading.next_requests(),
        reply_writer.keep,
        sends_batch=reading.is_one_wave,
        then=reading.next_requests,
    )
    row.rows_in, row.rows_out = len(reading.asked), reply_writer.kept
    waiting = len({*reading.waiting(), *(reading.asked - reading.answered())})
    if waiting:
        row.note = f"{counted(waiting, 'session')} wait for a later run"


def reading_order(
    run: Run, sessions: Sequence[UnreadSession], again: Mapping[str, str] | None = None
) -> list[list[UnreadSession]]:
    """
    Return queues of sessions, each of one project and read from its beginning, one request at a time.

    First of each project, the one at work last before the others, the newest three that nothing newer was
    read before, in time order: by them its next session is told where it stands. Then its older ones in time
    order: each names only what is older than itself.
    """
    by_project: dict[str, list[UnreadSession]] = defaultdict(list)
    for each in sorted(sessions, key=_when):
        by_project[run.store.projects.canonical(each.project_id)].append(each)
    first, older = [], []
    for project_id, of_project in sorted(
        by_project.items(), key=lambda item: _when(item[1][-1]), reverse=True
    ):
        last_read = EPOCH if again else _last_read(run, project_id)
        newest: list[UnreadSession] = []
        for each in reversed(of_project):
            if len(newest) == NEWEST_FIRST or each.ended_at < last_read:
                break
            if requests_about(run, [each], again):
                newest.insert(0, each)
        first.append(newest)
        older.append([each for each in of_project if each not in newest])
    return [queue for queue in (*first, *older) if queue]


def _when(session: UnreadSession) -> tuple[datetime, str, str]:
    return session.ended_at, session.project_id, session.session_id


def _last_read(run: Run, project_id: str) -> datetime:
    """Return when the newest session of a project ended that a language model has read."""
    ended = {row["session_id"]: row["ended_at"] for row in run.readings.sessions().to_pylist()}
    read: set[str] = set()
    for part in {*run.store.projects.parts_of(project_id)} & {
        *run.store.lake.manifest.partitions(REPLIES.name)
    }:
        rows = run.store.lake.read(REPLIES, part, columns=["session_id", "provider"])
        read |= set(values(rows.filter(pc.field("provider") != "none"), "session_id"))
    return max((ended[name] for name in read if name in ended), default=EPOCH)


class _Reading:
    """
    The queues of sessions and where each is read: of a project one session at a time.

    `asked` and `answered` are the sessions that had a request, by project and id.
    """

    def __init__(
        self,
        run: Run,
        reply_writer: "_ReplyWriter",
        queues: Sequence[list[UnreadSession]],
        again: Mapping[str, str] | None,
    ) -> None:
        self.run, self.reply_writer, self.again = run, reply_writer, again
        self.queues = [list(queue) for queue in queues]
        # What comes next is asked once this is answered: in a batch that would take a night a session.
        self.is_one_wave = all(len(queue) == 1 for queue in queues)
        writer = run.settings.models.writer
        self._at_once = len(self.queues) if self.is_one_wave else PROJECTS_AT_ONCE.get(writer, 1)
        self.asked: set[tuple[str, str]] = set()
        self._sent: set[str] = set()  # requests that were made in this run, answered or not
        # A run's cap is known before: what is beyond it needs no request made.
        self._most = run.settings.budget.run_requests

    def next_requests(self) -> list[ModelRequest]:
        """Return what is to be asked next of the projects that are read side by side; nothing at the end."""
        while self.queues and len(self._sent) < self._most:
            fronts = self._fronts()
            new_requests = requests_about(self.run, fronts, self.again)
            new_requests = [each for each in new_requests if each.request.request_id not in self._sent]
            self._drop_read(fronts, new_requests)
            self.asked |= {(each.project_id, each.session_id) for each in new_requests}
            self._sent |= {each.request.request_id for each in new_requests}
            self.reply_writer.asked = [*self.reply_writer.asked, *new_requests]
            self.reply_writer.repeat_known()
            if unanswered := self.reply_writer.unanswered(new_requests):
                return unanswered
        return []

    def waiting(self) -> list[tuple[str, str]]:
        """Return the sessions that no request has been made about."""
        return [name for queue in self.queues for each in queue if (name := _name(each)) not in self.asked]

    def answered(self) -> set[tuple[str, str]]:
        """Return the sessions whose last request has its answer."""
        return {
            (each.project_id, each.session_id)
            for each in self.reply_writer.asked
            if not each.is_piece and each.request.request_id in self.reply_writer.answered
        }

    def _fronts(self) -> list[UnreadSession]:
        """Return the first session of the first queues, of different projects."""
        fronts: dict[str, UnreadSession] = {}
        for queue in self.queues:
            fronts.setdefault(self.run.store.projects.canonical(queue[0].project_id), queue[0])
        return list(fronts.values())[: self._at_once]

    def _drop_read(self, fronts: Sequence[UnreadSession], new_requests: Sequence[SessionRequest]) -> None:
        """Take out those of `fronts` that there is nothing more to ask about; note those never asked of."""
        names = {(each.project_id, each.session_id) for each in new_requests}
        done = [each for each in fronts if _name(each) not in names]
        _note_unasked(self.run, [each for each in done if _name(each) not in self.asked], self.again)
        left = ([each for each in queue if each not in done] for queue in self.queues)
        self.queues = [queue for queue in left if queue]


def _name(session: UnreadSession) -> tuple[str, str]:
    return session.project_id, session.session_id


def unread_sessions(run: Run) -> list[UnreadSession]:
    """
    Return the sessions to be read by a language model, the newest first.

    They have said nothing for a while, have no answer for the turns that they have, be it to an older version
    of the instruction, and lost no words.
    """
    unread = []
    for project_id in run.store.lake.manifest.partitions(TURNS.name):
        if run.store.projects.canonical(project_id) in run.outcome.failed:
            continue
        with run.outcome.without_damage(project_id):
            rows = run.store.lake.read(REPLIES, project_id, columns=_REPLY_COLUMNS).to_pylist()
            read = {(r["session_id"], r["turn_count"]) for r in rows if r["purpose"] != PIECE_PURPOSE}
            sessions = quiet_sessions(run, project_id)
            unread += [each for each in sessions if (each.session_id, each.turn_count) not in read]
    return sorted(unread, key=lambda each: (each.ended_at, each.project_id, each.session_id), reverse=True)


def _note_unasked(run: Run, sessions: Sequence[UnreadSession], again: Mapping[str, str] | None) -> None:
    """Keep a row without an answer for each session that is not asked about."""
    if not sessions:
        return
    with run.store.lake.change() as change:
        for each in sessions:
            prompt = again[each.project_id] if again else prompt_to_ask(run, each.project_id)
            row = unasked_row(each.project_id, each.session_id, each.turn_count, prompt, run.now)
            change.append(REPLIES, each.project_id, REPLIES.of([row]))


def _turn_counts(sessions: Sequence[UnreadSession]) -> dict[tuple[str, str], int]:
    return {(each.project_id, each.session_id): each.turn_count for each in sessions}


def requests_about(
    run: Run, sessions: Sequence[UnreadSession], again: Mapping[str, str] | None = None
) -> list[SessionRequest]:
    """
    Return the requests about sessions, in their order; those that no person led have none.

    A session too long for one reading has several, each about a piece; when they are answered, one more.
    `again` is the version to read with, by project, where what other versions have read is asked about too.
    """
    by_project: dict[str, list[UnreadSession]] = defaultdict(list)
    for each in sessions:
        by_project[each.project_id].append(each)
    requests: dict[tuple[str, str], list[SessionRequest]] = defaultdict(list)
    for project_id, of_project in by_project.items():
        for request in _requests_of(run, project_id, of_project, again[project_id] if again else None):
            requests[project_id, request.session_id].append(request)
    return [request for each in sessions for request in requests.get((each.project_id, each.session_id), ())]


def requests_sent(run: Run) -> set[str]:
    """Return the ids of the requests whose answers wait in a batch, or arrived before a run was killed."""
    batches = Spending(run.store.home).open_batches(utc_now())
    arrived = {arrival.reply.request_id for arrival in Arrivals(run.store.lake).read()}
    return arrived | {attempt.request_id for attempts in batches.values() for attempt in attempts}


def answered_requests(run: Run, requests: Sequence[SessionRequest]) -> set[str]:
    """Return the ids of those of `requests` that the lake has an answer to, be it for another session."""
    wanted = {each.request.request_id for each in requests}
    return wanted & kept_requests(run.store.lake) if wanted else set()


@dataclass
class _ReplyWriter:
    """
    Commits answers; `turn_counts` is by project and session. Their facts are taken over if `is_shown`.

    Copies of a session ask the same: one answer is all of theirs.
    """

    run: Run
    asked: list[SessionRequest]
    turn_counts: dict[tuple[str, str], int]
    is_shown: bool = True
    kept: int = 0
    answered: set[str] = field(default_factory=set)

    def repeat_known(self) -> None:
        """Keep the answer that the lake has for another session to the same request."""
        wanted = {each.request.request_id for each in self.asked} - self.answered
        for row in kept_replies(self.run.store.lake, wanted):
            reply = (row["request_id"], row["provider"], row["model"], row["text"], row["stop_reason"])
            self.keep(Reply(*reply, 0, 0, 0.0))

    def unanswered(self, asked: Sequence[SessionRequest]) -> list[ModelRequest]:
        """Return those of requests that have no answer."""
        return [each.request for each in asked if each.request.request_id not in self.answered]

    def keep(self, reply: Reply) -> None:
        """Commit an answer with the events that its sessions have by it."""
        self.answered.add(reply.request_id)
        for asked in self.asked:
            if asked.request.request_id == reply.request_id:
                self._keep_of(asked, reply)
                reply = replace(reply, input_tokens=0, output_tokens=0, usd=0.0)  # paid for once

    def _keep_of(self, asked: SessionRequest, reply: Reply) -> None:
        run = self.run
        row = reply_row(
            asked,
            reply,
            run.now.astimezone(UTC),
            # A session is read once its last reading is.
            0 if asked.is_piece else self.turn_counts[asked.project_id, asked.session_id],
        )
        replies = REPLIES.of([row])
        if asked.is_piece or not self.is_shown:
            with run.store.lake.change() as change:
                change.append(REPLIES, asked.project_id, replies)
            self.kept += not asked.is_piece
            return
        turns = _turns_of(run, asked.project_id, {asked.session_id})
        before = run.store.lake.read(EVENTS, asked.project_id, sessions={asked.session_id})
        events = events_of(run, asked.project_id, turns, replies)
        violations = events_violations(events, turns)
        with run.store.lake.change() as change:
            # The answer replaces the facts that the rules took from this session: the guard need not ask
            # about them.
            note_grown(change, asked.project_id, [asked.session_id])
            note_replaced_by_model(run, change, asked.project_id, before, events)
            change.append(REPLIES, asked.project_id, replies)
            if not violations:
                change.append(EVENTS, asked.project_id, events, (asked.session_id,))
        if violations:  # its facts are not taken over; those of the rules stay
            run.report.note(
                f"an answer about session {asked.session_id} is not shown: {violations[0].reason}"
            )
        self.kept += not violations


def quiet_sessions(run: Run, project_id: str) -> list[UnreadSession]:
    """Return the sessions of a project that have said nothing for a while and lost no words."""
    quiet_since = run.now - timedelta(minutes=run.policy.threshold("writer_quiet_minutes"))
    lake = run.store.lake
    columns = ["turn_id", "session_id", "said_at", *PLACE]
    turns = lake.read(TURNS, project_id, columns=columns)
    settled = set(values(lake.read(SETTLED, project_id, columns=["turn_id"]), "turn_id"))
    names: dict[str, set[str]] = defaultdict(set)
    ended: dict[str, datetime] = {}
    for turn in turns.select(["turn_id", "session_id", "said_at"]).to_pylist():
        session_id = turn["session_id"]
        names[session_id].add(turn["turn_id"])
        ended[session_id] = max(ended.get(session_id, EPOCH), turn["said_at"] or EPOCH)
    return [
        UnreadSession(project_id, session_id, ended[session_id], len(turn_ids))
        for session_id, turn_ids in names.items()
        if ended[session_id] <= quiet_since and settled.isdisjoint(turn_ids)
    ]


def _requests_of(
    run: Run, project_id: str, sessions: Sequence[UnreadSession], again: str | None
) -> list[SessionRequest]:
    """Return the requests about sessions of a project that the lake holds no answer to."""
    columns = [*_REPLY_COLUMNS, "asked_at", "text"]
    replies = run.store.lake.read(REPLIES, project_id, columns=columns).to_pylist()
    pieces = {row["request_id"]: row["text"] for row in replies if row["purpose"] == PIECE_PURPOSE}
    answered = {row["request_id"] for row in replies}
    counting = [row for row in replies if again in (None, row["prompt"])]
    read = {(row["session_id"], row["turns_hash"]) for row in counting}
    read_at: dict[str, datetime] = {}
    for row in replies:
        read_at[row["session_id"]] = min(row["asked_at"], read_at.get(row["session_id"], row["asked_at"]))
    answered_at = {row["asked_at"] for row in replies if row["purpose"] == PROJECT_PURPOSE}
    # One that waits in a batch may be of another version than the one that reads new sessions now.
    prompts = [again] if again else [prompt_to_ask(run, project_id), *shipped_prompts()]
    shipped = [read_prompt(name) for name in dict.fromkeys(prompts)]
    asking = _Naming(run, run.store.projects.canonical(project_id), read_at, answered_at, pieces, shipped)
    turns = _turns_of(run, project_id, {each.session_id for each in sessions})
    return [
        request
        for each in sessions
        for request in asking.requests(turns.filter(pc.field("session_id") == each.session_id), each)
        if request.request.request_id not in answered
        and (request.session_id, hash_of_turns(request.turn_ids)) not in read
    ]


class _Naming:
    """
    Makes requests that name what is known of a project.

    What is known grows, and a request that waits in a batch was made with less: it is made as it was sent, so
    that its answer is found and not paid for again.
    """

    def __init__(
        self,
        run: Run,
        scope: str,
        read_at: Mapping[str, datetime],
        answered_at: Collection[datetime],
        pieces: Mapping[str, str],
        prompts: Sequence[Prompt],
    ) -> None:
        self._run, self._scope, self._pieces = run, scope, pieces
        self._policy, self._model = run.policy, run.settings.models.writer_model
        self._prompts = prompts
        self._memories, self._read_at = run.readings.memories(scope), read_at
        self._sent = requests_sent(run)
        steps = moments(self._memories, read_at, answered_at) if self._sent else []
        self._moments = [*steps[:MOMENTS_TRIED], EPOCH] if self._sent else []

    def requests(self, turns: pa.Table, session: UnreadSession) -> list[SessionRequest]:
        """Return the request about the turns of one session, or none."""
        now = self._requests(turns, session, None, self._prompts[0])
        if not now or not self._sent:
            return now
        for prompt, as_of in product(self._prompts, (None, *self._moments)):
            then = self._requests(turns, session, as_of, prompt)
            if then[0].request.request_id in self._sent:
                return then
        return now

    def _requests(
        self, turns: pa.Table, session: UnreadSession, as_of: datetime | None, prompt: Prompt
    ) -> list[SessionRequest]:
        until = as_of and as_of - timedelta.resolution
        answer = answer_about(self._run, self._scope, until)
        holding = still_holding(self._run, self._scope, self._memories, answer, until)
        known = known_memories(holding, session.session_id, session.ended_at, self._read_at, as_of)
        return session_requests(turns, known, self._policy, self._model, prompt, self._pieces)


def _turns_of(run: Run, project_id: str, sessions: set[str]) -> pa.Table:
    """Return the TURNS of whole sessions, each where it stands first."""
    lake = run.store.lake
    known = lake.read(TURNS, project_id, columns=["turn_id", "session_id", *PLACE])
    return in_first_place(lake.read(TURNS, project_id, sessions=sessions), known)


# -- Sessions that another version of the instruction has read: which, and reading them again when asked to.

_COLUMNS = ["session_id", "turn_count", "prompt", "purpose", "provider"]


def read_otherwise(run: Run, prompts: Mapping[str, str]) -> list[UnreadSession]:
    """
    Return the sessions that were read as they are now, but not by the version given for their project.

    `prompts` is by project. The newest come first; what is new or has grown is not among them.
    """
    sessions = []
    for project_id, prompt in sorted(prompts.items()):
        with run.outcome.without_damage(project_id):
            rows = run.store.lake.read(REPLIES, project_id, columns=_COLUMNS).to_pylist()
            read = [row for row in rows if row["purpose"] == SESSION_PURPOSE]
            by_it = {(row["session_id"], row["turn_count"]) for row in read if row["prompt"] == prompt}
            asked = {(row["session_id"], row["turn_count"]) for row in read if row["provider"] != "none"}
            sessions += [
                each
                for each in quiet_sessions(run, project_id)
                if (each.session_id, each.turn_count) in asked - by_it
            ]
    return sorted(sessions, key=lambda each: (each.ended_at, each.project_id, each.session_id), reverse=True)


def read_again(run: Run, prompts: Mapping[str, str]) -> None:
    """
    Ask about the sessions that other versions than `prompts` have read, within the budget; keep the answers.

    Nothing that is shown changes: the answers count once a person promotes what follows from them.
    """
    sessions = read_otherwise(run, prompts)
    if sessions:
        with run.report.stage("write") as row:
            read_sessions(run, sessions, row, prompts)
