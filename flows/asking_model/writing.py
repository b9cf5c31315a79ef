"""What a language model writes about sessions that are over: which are asked about, how answers are kept."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import product

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.asking_model.asking import ask_all
from cortex.flows.asking_model.received_replies import finish_arrivals
from cortex.flows.context.context import utc_now
from cortex.flows.context.run_report import StageReport
from cortex.flows.extracting.extract_transcripts import events_of, note_grown
from cortex.flows.reading.duplicate_turns import PLACE, in_first_place
from cortex.flows.run.given_way import note_given_way
from cortex.flows.run.run import Run
from cortex.flows.run.session_prompts import prompt_to_ask, shipped_prompts
from cortex.storage.model_calls.received_answers import Arrivals
from cortex.storage.model_calls.spending import Spending
from cortex.storage.settings.reference import read_prompt
from cortex.transforms.audit import events_violations
from cortex.transforms.schemas import EPOCH, EVENTS, REPLIES, SETTLED, TURNS, values
from cortex.transforms.words.ages import counted
from cortex.transforms.writer.known import known_memories, moments
from cortex.transforms.writer.pieces import PIECE_PURPOSE
from cortex.transforms.writer.prompt import Prompt
from cortex.transforms.writer.request import Reply
from cortex.transforms.writer.session import SessionRequest, session_requests
from cortex.transforms.writer.written import hash_of_turns, reply_row, unasked_row

# Turns of so many sessions are held at once: a session has about 200 of them.
SESSIONS_AT_ONCE = 50
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
    Ask about the sessions that are over and have no answer, the newest first, and keep each answer.

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
    Ask about sessions, in their order, keep each answer, and say in `row` what waits.

    With `again`, the version to read with by project, they are read although another version has read them;
    the answers are kept beside the others and what is shown stays as it is.
    """
    asked, left = _first_requests(run, sessions, again)
    keeper = _Keeper(run, asked, _turn_counts(sessions), is_shown=again is None)
    waiting = left + _ask(run, keeper)
    keeper.asked = _last_readings(run, keeper, sessions, again)
    waiting += _ask(run, keeper) if keeper.asked else 0
    row.rows_in, row.rows_out = len(asked) + len(keeper.asked), keeper.kept
    if waiting:
        row.note = f"{counted(waiting, 'session')} wait for a later run"


def _ask(run: Run, keeper: "_Keeper") -> int:
    """Ask what the keeper holds and the lake does not know; return how many requests wait."""
    keeper.repeat_known()
    result = ask_all(run, [each.request for each in keeper.unanswered()], keeper.keep)
    return result.waiting + result.failed


def _last_readings(
    run: Run, keeper: "_Keeper", sessions: Sequence[UnreadSession], again: Mapping[str, str] | None
) -> list[SessionRequest]:
    """Return the requests about the sessions all of whose pieces have just been answered."""
    in_pieces = {(each.project_id, each.session_id) for each in keeper.asked if each.is_piece}
    some = [each for each in sessions if (each.project_id, each.session_id) in in_pieces]
    return [each for each in requests_about(run, some, again) if not each.is_piece] if some else []


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


def _first_requests(
    run: Run, sessions: Sequence[UnreadSession], again: Mapping[str, str] | None
) -> tuple[list[SessionRequest], int]:
    """
    Return the requests of this run about the first of `sessions`, and how many sessions are left.

    Sessions about which there is nothing to ask are noted as they are now, so that no later run looks again.
    """
    requests: list[SessionRequest] = []
    most, begin = run.settings.budget.run_requests, 0
    while begin < len(sessions) and len(requests) < most:
        some = sessions[begin : begin + min(SESSIONS_AT_ONCE, most - len(requests))]
        begin += len(some)
        asked = requests_about(run, some, again)
        names = {(each.project_id, each.session_id) for each in asked}
        _note_unasked(run, [each for each in some if (each.project_id, each.session_id) not in names], again)
        requests += asked
    return requests, len(sessions) - begin


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
    known: set[str] = set()
    for project_id in run.store.lake.manifest.partitions(REPLIES.name) if wanted else ():
        known |= set(values(run.store.lake.read(REPLIES, project_id, columns=["request_id"]), "request_id"))
    return wanted & known


@dataclass
class _Keeper:
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
        wanted = {each.request.request_id for each in self.asked}
        for project_id in self.run.store.lake.manifest.partitions(REPLIES.name):
            ids = self.run.store.lake.read(REPLIES, project_id, columns=["request_id"])
            if wanted.isdisjoint(values(ids, "request_id")):
                continue
            for row in self.run.store.lake.read(REPLIES, project_id).to_pylist():
                if row["request_id"] in wanted:
                    wanted.discard(row["request_id"])
                    reply = (
                        row["request_id"],
                        row["provider"],
                        row["model"],
                        row["text"],
                        row["stop_reason"],
                    )
                    self.keep(Reply(*reply, 0, 0, 0.0))

    def unanswered(self) -> list[SessionRequest]:
        """Return the requests without an answer."""
        return [each for each in self.asked if each.request.request_id not in self.answered]

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
            text=reply.text,
            provider=reply.provider,
            stop_reason=reply.stop_reason,
            asked_at=run.now.astimezone(UTC),
            # A session is read once its last reading is.
            turn_count=0 if asked.is_piece else self.turn_counts[asked.project_id, asked.session_id],
            input_tokens=reply.input_tokens,
            output_tokens=reply.output_tokens,
            usd=reply.usd,
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
            # The rules' facts of this session give way to its answer: that is no loss to ask about.
            note_grown(change, asked.project_id, [asked.session_id])
            note_given_way(run, change, asked.project_id, before, events)
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
    memories = run.readings.memories(run.store.projects.canonical(project_id))
    # One that waits in a batch may be of another version than the one that reads new sessions now.
    prompts = [again] if again else [prompt_to_ask(run, project_id), *shipped_prompts()]
    asking = _Naming(run, memories, read_at, pieces, [read_prompt(name) for name in dict.fromkeys(prompts)])
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
        memories: pa.Table,
        read_at: Mapping[str, datetime],
        pieces: Mapping[str, str],
        prompts: Sequence[Prompt],
    ) -> None:
        self._pieces = pieces
        self._policy, self._model = run.policy, run.settings.models.writer_model
        self._prompts = prompts
        self._memories, self._read_at = memories, read_at
        self._sent = requests_sent(run)
        self._moments = [*moments(memories, read_at)[:MOMENTS_TRIED], EPOCH] if self._sent else []

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
        known = known_memories(self._memories, session.session_id, session.ended_at, self._read_at, as_of)
        return session_requests(turns, known, self._policy, self._model, prompt, self._pieces)


def _turns_of(run: Run, project_id: str, sessions: set[str]) -> pa.Table:
    """Return the TURNS of whole sessions, each where it stands first."""
    lake = run.store.lake
    known = lake.read(TURNS, project_id, columns=["turn_id", "session_id", *PLACE])
    return in_first_place(lake.read(TURNS, project_id, sessions=sessions), known)
