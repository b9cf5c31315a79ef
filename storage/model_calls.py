"""
What requests to models leave behind: what they cost, and answers that arrived and are not kept yet.

One row an attempt, with the number of requests that were sent for it. What is reserved and never settled
counts as spent, so a killed run cannot pass the cap; SQLite's write lock makes the sum and the new
reservation one step for all processes.

An answer is paid for when it arrives. It is written here before anything else is done with it, so that a run
killed while it makes facts of it leaves it to the next one. Its words are redacted, and sealed where the lake
is.
"""

import json
import os
import platform
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from cortex.storage.filesystem.files import is_process, sync, writing_to
from cortex.storage.lake.lake import Lake
from cortex.transforms.errors import FileDamaged
from cortex.transforms.writer.request import Reply

# -- The spending ledger, `runs/spending.sqlite`: each request to a language model is reserved before it
# leaves.

LEDGER_PATH = "runs/spending.sqlite"
# Answers that were paid for and are not kept yet: see arrivals.
ARRIVALS_PATH = "runs/arrivals"

# An attempt of a process that cannot be asked whether it is alive (another machine, a number given again)
# is over after this long: a request takes at most two minutes.
ATTEMPT_ENDS_AFTER = timedelta(minutes=10)
# What another process settled so lately may have been kept after the caller looked for replies.
JUST_SETTLED = timedelta(hours=1)
# A clock that is set back brings no second budget: what is dated up to a week ahead counts to a day too. What
# is dated later comes of a clock that was wrong by years, and would silence the model until then.
DATED_AHEAD = timedelta(days=7)
# Another process holds the write lock for a few milliseconds.
LOCK_WAIT_S = 60.0

# The states of an attempt. A lost one was sent and nothing is known of it: it counts in full.
OPEN, BATCHED, SETTLED, RELEASED, LOST = "open", "batched", "settled", "released", "lost"

_TABLE = """
create table if not exists attempts (
    attempt_id integer primary key,
    request_id text not null,
    day text not null,
    reserved_at text not null,
    purpose text not null,
    provider text not null,
    model text not null,
    holder text not null,
    state text not null,
    reserved_nano integer not null,
    spent_nano integer not null,
    input_tokens integer not null default 0,
    output_tokens integer not null default 0,
    settled_at text,
    batch text,
    requests integer not null default 1
)
"""
# A ledger of before a client was known to ask again by itself lacks it.
_REQUESTS = "alter table attempts add column requests integer not null default 1"
_INDEXES = (
    "create index if not exists attempts_by_day on attempts (day)",
    "create index if not exists attempts_by_request on attempts (request_id, state)",
)


@dataclass(frozen=True)
class DailyLimits:
    """What may be spent on one UTC day: billionths of a dollar, and requests."""

    daily_nano: int
    daily_requests: int


@dataclass(frozen=True)
class SpendingClaim:
    """
    What a reservation is asked for: the request, who answers it, and the most that it can cost.

    `requests` is the most that may be sent for it: a client asks again by itself.
    """

    request_id: str
    purpose: str
    provider: str
    model: str
    most_nano: int
    requests: int = 1


@dataclass(frozen=True)
class Reserved:
    """
    A reservation: the attempt may be sent, and cost at most `most_nano` billionths of a dollar.

    `lost` earlier attempts at the same request ended with the process that had sent them, in this step: each
    counts in full, and may have been charged.
    """

    attempt_id: int
    most_nano: int
    lost: int = 0


@dataclass(frozen=True)
class Withheld:
    """
    No reservation: `reason` is `dollars`, `requests` or `under way` (another process asks the same, or its
    answer has arrived and waits to be kept).

    `left_nano` is what is left of the day's dollars.
    """

    reason: str
    left_nano: int


@dataclass(frozen=True)
class BatchedAttempt:
    """An attempt that waits in a batch; `is_held` while the process that reserved it may still be sending."""

    attempt_id: int
    request_id: str
    model: str
    reserved_at: datetime
    is_held: bool


@dataclass(frozen=True)
class DayTotal:
    """What a day has cost so far, reservations included: billionths of a dollar, and requests."""

    spent_nano: int = 0
    requests: int = 0


@dataclass(frozen=True)
class Attempt:
    """One row of the ledger."""

    request_id: str
    reserved_at: datetime
    purpose: str
    provider: str
    model: str
    state: str
    reserved_nano: int
    spent_nano: int
    input_tokens: int
    output_tokens: int
    requests: int

    @property
    def day(self) -> str:
        """The UTC day that it counts to."""
        return self.reserved_at.date().isoformat()


class Spending:
    """The ledger of the store at `home`; its file appears with the first reservation."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.path = home / LEDGER_PATH

    def reserve(
        self, claim: SpendingClaim, limits: DailyLimits, now: datetime, *, batch: str | None = None
    ) -> Reserved | Withheld:
        """
        Reserve what `claim` can cost at most, if the day's limits still hold then; for a batch, where named.

        One step for all processes: of any number at once no two reserve the same dollar, and no two ask the
        same request. Raises StoreNotWritable.
        """
        day = _utc(now).date().isoformat()
        with self._writing() as connection:
            if self._is_being_answered(connection, claim.request_id, now):
                return Withheld("under way", 0)
            lost = _lose_dead(connection, claim.request_id)
            total = _total(connection, day)
            left = limits.daily_nano - total.spent_nano
            if total.requests + claim.requests > limits.daily_requests:
                return Withheld("requests", left)
            if claim.most_nano > left:
                return Withheld("dollars", left)
            row = connection.execute(
                "insert into attempts (request_id, day, reserved_at, purpose, provider, model, holder, state,"
                " reserved_nano, spent_nano, batch, requests) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(claim.request_id, day, _utc(now).isoformat()),
                    *(claim.purpose, claim.provider, claim.model, _holder(), BATCHED if batch else OPEN),
                    *(claim.most_nano, claim.most_nano, batch, claim.requests),
                ),
            )
            assert row.lastrowid is not None
            return Reserved(row.lastrowid, claim.most_nano, lost)

    def reserve_batch(
        self, claims: Sequence[SpendingClaim], name: str, limits: DailyLimits, now: datetime
    ) -> list[str]:
        """
        Reserve as many of `claims` as the day's limits allow, under the name of an intended batch.

        Returns the request ids reserved, in order. They stay under way until `settle`, `release` or `lose`.
        """
        reserved = []
        for claim in claims:
            answer = self.reserve(claim, limits, now, batch=name)
            if isinstance(answer, Reserved):
                reserved.append(claim.request_id)
        return reserved

    def name_batch(self, intended: str, batch_id: str) -> None:
        """Note the id that the service gave to an intended batch."""
        with self._writing() as connection:
            connection.execute("update attempts set batch = ? where batch = ?", (batch_id, intended))

    def open_batches(self, now: datetime) -> dict[str, list[BatchedAttempt]]:
        """Return the attempts that wait in a batch, by the name or id of the batch."""
        with self._reading() as connection:
            if connection is None:
                return {}
            rows = connection.execute(
                "select batch, attempt_id, request_id, model, reserved_at, holder from attempts"
                " where state = ? order by attempt_id",
                (BATCHED,),
            ).fetchall()
        batches: dict[str, list[BatchedAttempt]] = {}
        for batch, attempt_id, request_id, model, reserved_at, holder in rows:
            since = datetime.fromisoformat(reserved_at)
            attempt = BatchedAttempt(attempt_id, request_id, model, since, _is_alive(holder, since, now))
            batches.setdefault(batch, []).append(attempt)
        return batches

    def batch_names(self) -> set[str]:
        """Return the name or id of every batch that there ever was."""
        with self._reading() as connection:
            if connection is None:
                return set()
            rows = connection.execute("select distinct batch from attempts where batch is not null")
            return {row[0] for row in rows}

    def settle(
        self,
        attempt_id: int,
        spent_nano: int,
        input_tokens: int,
        output_tokens: int,
        now: datetime,
        requests: int = 1,
        *,
        if_open: bool = False,
    ) -> None:
        """
        Put what an attempt really cost, and the requests sent for it, in the place of its reservation.

        With `if_open` only where that is still to be done: a killed process may have left it.
        """
        with self._writing() as connection:
            row = connection.execute(
                "select 1 from attempts where attempt_id = ? and state in (?, ?)", (attempt_id, OPEN, LOST)
            ).fetchone()
            if row is not None or not if_open:
                _settle(connection, attempt_id, (spent_nano, input_tokens, output_tokens), now, requests)

    def release(self, attempt_id: int, now: datetime) -> None:
        """Note that an attempt cost nothing; the requests that may have been sent for it count."""
        with self._writing() as connection:
            _settle(connection, attempt_id, (0, 0, 0), now, state=RELEASED)

    def lose(self, attempt_id: int) -> None:
        """Note that an attempt brought no answer and may have been charged: it counts in full."""
        with self._writing() as connection:
            connection.execute("update attempts set state = ? where attempt_id = ?", (LOST, attempt_id))

    def total(self, now: datetime) -> DayTotal:
        """Return what the UTC day of `now` has cost so far; nothing if there is no ledger."""
        with self._reading() as connection:
            return _total(connection, _utc(now).date().isoformat()) if connection else DayTotal()

    def attempts(self) -> list[Attempt]:
        """Return every attempt, the oldest first."""
        with self._reading() as connection:
            if connection is None:
                return []
            rows = connection.execute(
                "select request_id, reserved_at, purpose, provider, model, state, reserved_nano,"
                " spent_nano, input_tokens, output_tokens, requests from attempts order by attempt_id"
            )
            return [Attempt(row[0], datetime.fromisoformat(row[1]), *row[2:]) for row in rows]

    def _is_being_answered(self, connection: sqlite3.Connection, request_id: str, now: datetime) -> bool:
        """Return whether an answer is on its way or has just come, here or in another process."""
        return (
            arrival_path(self._home, request_id).exists()
            or _is_under_way(connection, request_id, now)
            or _is_answered(connection, request_id, now)
        )

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection that holds the write lock; all or nothing of the block is written."""
        with writing_to(self._home):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=LOCK_WAIT_S, isolation_level=None)) as connection:
                connection.execute("pragma synchronous = full")
                connection.execute("begin immediate")
                connection.execute(_TABLE)
                for index in _INDEXES:
                    connection.execute(index)
                if not _has_requests(connection):
                    connection.execute(_REQUESTS)
                yield connection
                connection.execute("commit")

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        if not self.path.is_file():
            yield None
            return
        with closing(sqlite3.connect(self.path, timeout=LOCK_WAIT_S)) as connection:
            has_table = connection.execute("select 1 from sqlite_master where name = 'attempts'").fetchone()
            if has_table and not _has_requests(connection):  # only the copy in memory: this one reads
                with closing(sqlite3.connect(":memory:")) as copy:
                    connection.backup(copy)
                    copy.execute(_REQUESTS)
                    yield copy
                return
            yield connection if has_table else None


def _has_requests(connection: sqlite3.Connection) -> bool:
    columns = connection.execute("select name from pragma_table_info('attempts')")
    return any(name == "requests" for (name,) in columns)


def _total(connection: sqlite3.Connection, day: str) -> DayTotal:
    last = (date.fromisoformat(day) + DATED_AHEAD).isoformat()
    row = connection.execute(
        "select coalesce(sum(spent_nano), 0), coalesce(sum(requests), 0) from attempts"
        " where day between ? and ?",
        (day, last),
    ).fetchone()
    return DayTotal(int(row[0]), int(row[1]))


def arrival_path(home: Path, request_id: str) -> Path:
    """Return where the answer to a request waits to be kept, once it has arrived."""
    return home / ARRIVALS_PATH / f"{request_id}.json"


def _settle(
    connection: sqlite3.Connection,
    attempt_id: int,
    amounts: tuple[int, int, int],
    now: datetime,
    requests: int | None = None,
    state: str = SETTLED,
) -> None:
    """Note what an attempt came to: price in billionths of a dollar, tokens in and out, requests if known."""
    connection.execute(
        "update attempts set state = ?, spent_nano = ?, input_tokens = ?, output_tokens = ?,"
        " settled_at = ?, requests = coalesce(?, requests) where attempt_id = ?",
        (state, *amounts, _utc(now).isoformat(), requests, attempt_id),
    )


def _is_under_way(connection: sqlite3.Connection, request_id: str, now: datetime) -> bool:
    """Return whether somebody asks this request."""
    rows = connection.execute(
        "select holder, reserved_at, state from attempts where request_id = ? and state in (?, ?)",
        (request_id, OPEN, BATCHED),
    ).fetchall()
    return any(
        state == BATCHED or _is_alive(holder, datetime.fromisoformat(reserved_at), now)
        for holder, reserved_at, state in rows
    )


def _lose_dead(connection: sqlite3.Connection, request_id: str) -> int:
    """Note as lost what processes that are gone had sent of a request; return how many attempts."""
    changed = connection.execute(
        "update attempts set state = ? where request_id = ? and state = ?", (LOST, request_id, OPEN)
    )
    return changed.rowcount


def _is_answered(connection: sqlite3.Connection, request_id: str, now: datetime) -> bool:
    """Return whether another process has just settled this request: its reply is kept by now."""
    since, until = (_utc(now) + step for step in (-JUST_SETTLED, JUST_SETTLED))  # its clock may be ahead
    row = connection.execute(
        "select 1 from attempts where request_id = ? and state = ? and holder != ?"
        " and settled_at between ? and ?",
        (request_id, SETTLED, _holder(), since.isoformat(), until.isoformat()),
    ).fetchone()
    return row is not None


def _holder() -> str:
    return f"{os.getpid()}@{platform.node()}"


def _is_alive(holder: str, since: datetime, now: datetime) -> bool:
    if _utc(now) - since > ATTEMPT_ENDS_AFTER:
        return False
    number, _, machine = holder.partition("@")
    if machine != platform.node():
        return True
    return is_process(int(number))


def _utc(instant: datetime) -> datetime:
    return instant.astimezone(UTC)


# -- Answers of a language model that have arrived and are not kept yet: one file each, in `runs/arrivals/`.


@dataclass(frozen=True)
class Arrival:
    """An answer that was paid for: its reservation, its price in billionths of a dollar, when it came."""

    attempt_id: int
    nano: int
    arrived_at: datetime
    reply: Reply


class Arrivals:
    """The answers that wait to be kept in `lake`, by request id. Written and removed under the lease."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._folder = lake.home / ARRIVALS_PATH

    def write(self, arrival: Arrival) -> None:
        """Write an answer down, durable. Raises StoreNotWritable and KeyUnavailable."""
        fields = {**asdict(arrival), "arrived_at": arrival.arrived_at.isoformat()}
        content = json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace")
        with writing_to(self._lake.home):
            self._folder.mkdir(parents=True, exist_ok=True)
            sync(self._folder.parent)
            self._lake.write_waiting(arrival_path(self._lake.home, arrival.reply.request_id), content)

    def read(self) -> list[Arrival]:
        """
        Return the answers that wait, by request id; one that cannot be read is removed.

        Raises KeyUnavailable for sealed ones.
        """
        return list(self._read())

    def remove(self, request_id: str) -> None:
        """Remove an answer that is kept by now, or that nobody asks for any more."""
        with writing_to(self._lake.home):
            arrival_path(self._lake.home, request_id).unlink(missing_ok=True)

    def _read(self) -> Iterator[Arrival]:
        for path in sorted(self._folder.glob("*.json")):
            try:
                fields = json.loads(self._lake.read_waiting(path))
                arrived_at = datetime.fromisoformat(fields.pop("arrived_at"))
                reply = Reply(**fields.pop("reply"))
                if path.stem != reply.request_id:
                    raise ValueError("named as another request")
                yield Arrival(**fields, arrived_at=arrived_at, reply=reply)
            except (FileDamaged, ValueError, TypeError, KeyError, AttributeError):
                path.unlink(missing_ok=True)


def drop_arrivals(home: Path) -> None:
    """Remove every answer that waits: any of them may say what is to be forgotten."""
    with suppress(FileNotFoundError), writing_to(home):
        for path in (home / ARRIVALS_PATH).iterdir():
            path.unlink(missing_ok=True)
