"""
Staging: tickets and kept transcripts that wait for a run, claimed by rename, dropped once committed.

    new/          tickets that wait; hooks only ever add here
    claimed/      tickets of the present run, or of one that was killed
    transcripts/  hard links (or copies) of the transcripts that tickets name, by key
    set_aside/    tickets that could not be used, each with its reason next to it
    tmp/          tickets and all other files of the store that are being written
    private/      names of sessions that are left alone
    seen/         up to when each folder of transcripts was swept
    shown/        ids of what each session was shown, for the last 256 of them

Only one run at a time claims (it holds the lease); any number of hooks add meanwhile.
"""

import json
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePath

from cortex.hooks import private, ticket
from cortex.storage.filesystem.files import writing_to
from cortex.storage.lake.manifest import Cursor
from cortex.transforms.errors import StoreNotWritable

# Where entries of the journal wait.
JOURNAL_FOLDER = "journal"

# opencode's sessions are rows of one of these; each is a transcript at DATABASE/SESSION.json, without a file.
SESSION_DATABASE = re.compile(r"opencode(?:-[\w.-]+)?\.db")

# The event of a ticket that a run writes for a kept transcript without one.
RECOVERED = "found"


def is_in_database(path: PurePath) -> bool:
    """Return whether a transcript's path names a session of a database."""
    return bool(SESSION_DATABASE.fullmatch(path.parent.name)) and Path(path.parent).is_file()


@dataclass(frozen=True)
class Claim:
    """One transcript that waits, with all its tickets; `transcript` is its absolute path as staged."""

    tickets: tuple[Path, ...]
    transcript: Path
    staged: Path | None  # the kept link or copy
    session_id: str | None
    agent_id: str | None
    cwd: str | None

    def unread_bytes(self, cursor: Cursor | None) -> int:
        """Return how many bytes of it are behind `cursor`; 0 if it is gone."""
        path = self.readable()
        try:
            size = path.stat().st_size if path else 0
        except OSError:
            size = 0
        return max(0, size - (cursor.read_bytes if cursor else 0))

    def readable(self) -> Path | None:
        """Return the file to read: the original if it is still there, else the kept one, else None."""
        if self.transcript.is_file() or is_in_database(self.transcript):
            return self.transcript
        return self.staged if self.staged is not None and self.staged.is_file() else None


@dataclass(frozen=True)
class _Ticket:
    path: Path
    fields: dict[str, object]

    def text(self, name: str) -> str | None:
        value = self.fields.get(name)
        return value if isinstance(value, str) and value else None


class Staging:
    """The staging folder of one store, `<home>/staging`; always a local folder."""

    def __init__(self, home: Path) -> None:
        self.root = home / "staging"

    def stage(
        self,
        transcript: Path,
        *,
        session_id: str | None = None,
        cwd: str | None = None,
        event: str = "backfill",
    ) -> bool:
        """
        Write a ticket for `transcript` and keep it; return False if the file is gone or is not to be read.

        Staging the same file again is harmless: a claim gathers all its tickets. Raises StoreNotWritable.
        """
        path = os.path.normpath(transcript.absolute())
        if is_in_database(transcript):  # nothing to keep: no clean-up removes the assistant's own database
            with self._writing():
                self._write_ticket(event, path, transcript.parent.stat(), cwd=cwd)
            return True
        if not transcript.is_file() or not os.access(path, os.R_OK):
            return False
        with self._writing(), suppress(ticket.NotATranscript):
            # Not waiting for the disk: after a power cut the same command stages it again.
            ticket.drop(
                str(self.root),
                event,
                path,
                session_id=session_id,
                cwd=cwd,
                durable=False,
                copy_limit_bytes=None,
            )
            return True
        return False

    def is_private(self, transcript: Path) -> bool:
        """Return whether the session of a transcript is to be left alone."""
        return private.is_private(str(self.root), os.path.normpath(transcript.absolute()))

    def make_private(self, transcript: Path) -> None:
        """Leave the session of a transcript alone from now on. Raises StoreNotWritable."""
        with self._writing():
            private.make_private(str(self.root), os.path.normpath(transcript.absolute()))

    def claim(self) -> list[Claim]:
        """
        Take every waiting ticket, and those that a killed run had taken; return one claim a transcript.

        Claims are in the order in which their transcripts were first reported. Tickets that
        cannot be read are set aside with the reason. Raises StoreNotWritable.
        """
        claimed = self.root / ticket.CLAIMED
        with self._writing():
            claimed.mkdir(parents=True, exist_ok=True, mode=0o700)
            for path in self._listed(ticket.NEW):
                with suppress(FileNotFoundError):  # a hook removes tickets that a later one makes needless
                    path.rename(claimed / path.name)
            readable, malformed = _read_tickets(self._listed(ticket.CLAIMED))
            for path, reason in malformed:
                self._quarantine([path], file=str(path), reason=f"malformed ticket: {reason}")
        return self._gathered(readable)

    def list_waiting(self) -> list[Claim]:
        """Return what the next claim would return, and touch nothing."""
        readable, _ = _read_tickets([*self._listed(ticket.NEW), *self._listed(ticket.CLAIMED)])
        return self._gathered(readable)

    def count_quarantined(self) -> int:
        """Return how many tickets could not be used."""
        return len(self._listed(ticket.QUARANTINED))

    def list_quarantined(self) -> list[tuple[str, str]]:
        """Return (file, reason) of each transcript that could not be used, the one set aside last first."""
        notes = []
        for path in self._listed(ticket.QUARANTINED, ending=".reason"):
            with suppress(OSError, ValueError, KeyError, TypeError):
                note = json.loads(path.read_bytes())
                notes.append((str(note["at"]), str(note["file"]), str(note["reason"])))
        return [(file, reason) for _, file, reason in sorted(notes, reverse=True)]

    def release(self, claims: Iterable[Claim]) -> None:
        """
        Drop the tickets of `claims`, whose result is committed, and the kept transcripts nobody waits for.

        Also drops what was set aside for the same transcripts before. Tickets go first: killed
        in between, a link is left, which the next sweep removes. Raises StoreNotWritable.
        """
        tickets = [path for claim in claims for path in claim.tickets]
        keys = {ticket.key_in_name(path.name) for path in tickets}
        with self._writing():
            for path in tickets:
                path.unlink(missing_ok=True)
            self._forget_quarantined(keys)
            gone = keys - self._keys(ticket.NEW, ticket.CLAIMED)
            for key in gone:
                self._link(key).unlink(missing_ok=True)
            self._keep_again(gone)

    def quarantine(self, claim: Claim, reason: str, *, is_kept: bool = True) -> None:
        """
        Move the tickets of `claim` to `set_aside/`, with the file and the reason next to the last of them.

        The kept transcript stays, so that nothing is lost, unless `is_kept` says that it is none. What was
        set aside before for the same transcript is replaced. `reason` must quote no text of the transcript.
        """
        with self._writing():
            self._quarantine(claim.tickets, file=str(claim.transcript), reason=reason)
            if not is_kept:
                keys = {ticket.key_in_name(path.name) for path in claim.tickets}
                for key in keys - self._keys(ticket.NEW, ticket.CLAIMED):
                    self._link(key).unlink(missing_ok=True)

    def leftovers(self) -> list[Path]:
        """
        Return the kept transcripts that no ticket names.

        Tickets come before their links. A link alone is what a run left that was killed while it dropped
        both, or a hook that made it when a run had already read and dropped its ticket; or the tickets are
        lost or cannot be read, and it may be all that is left of a session.
        """
        links = self._listed(ticket.TRANSCRIPTS, ending=".jsonl")  # before the tickets: those come first
        readable, _ = _read_tickets(self._listed(ticket.QUARANTINED))
        named = self._keys(ticket.NEW, ticket.CLAIMED)
        named |= {ticket.key_in_name(each.path.name) for each in readable}
        return [path for path in links if path.stem not in named]

    def sweep_links(self, cursors: Mapping[str, Cursor]) -> int:
        """
        Remove the leftovers and return how many; a kept transcript that was not read gets a ticket again.

        `cursors` tells how far each transcript was read.
        """
        leftovers = self.leftovers()
        by_hash = {f"{ticket.path_hash(name):016x}": name for name in cursors}
        removed = []
        with self._writing():
            for path in leftovers:
                name = by_hash.get(path.stem.partition("_")[0])
                if name and path.stat().st_size <= cursors[name].read_bytes:
                    path.unlink(missing_ok=True)
                    removed.append(path)
                else:
                    self._report_again(path, name or str(path))
            self._keep_again({path.stem for path in removed})
        return len(removed)

    def _report_again(self, kept: Path, transcript: str) -> None:
        """Write a ticket for a kept transcript that none names; `transcript` is its path as far as known."""
        self._write_ticket(RECOVERED, transcript, kept.stat(), kept.stem)

    def _write_ticket(
        self, event: str, transcript: str, status: os.stat_result, key: str = "", cwd: str | None = None
    ) -> None:
        at, key = ticket.stamp(time.time_ns()), key or ticket.key_for(transcript, status.st_ino)
        fields = {
            "version": ticket.TICKET_VERSION,
            "event": event,
            "session_id": None,
            "agent_id": None,
            "transcript_path": transcript,
            "cwd": cwd,
            "at": at,
            "size": status.st_size,
        }
        target = self.root / ticket.NEW / f"{at}-{event}-_-{key}.json"
        ticket.write_whole(
            str(self.root), str(target), json.dumps(fields).encode(), durable=event == RECOVERED
        )

    def _quarantine(self, tickets: Iterable[Path], *, file: str, reason: str) -> None:
        folder = self.root / ticket.QUARANTINED
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        paths = sorted(tickets, key=lambda path: path.name)
        keys = {ticket.key_in_name(path.name) for path in paths}
        self._forget_quarantined(keys)
        if paths:
            fields = {"file": file, "reason": reason, "at": ticket.stamp(time.time_ns())}
            content = json.dumps(fields, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace")
            target = _reason_path(folder / paths[-1].name)
            ticket.write_whole(str(self.root), str(target), content, durable=True)
        for path in paths:
            with suppress(FileNotFoundError):
                path.rename(folder / path.name)

    def _forget_quarantined(self, keys: set[str]) -> None:
        for path in self._listed(ticket.QUARANTINED):
            if ticket.key_in_name(path.name) in keys:
                _reason_path(path).unlink(missing_ok=True)
                path.unlink(missing_ok=True)

    def _gathered(self, tickets: Iterable[_Ticket]) -> list[Claim]:
        by_transcript: dict[str, list[_Ticket]] = {}
        for each in sorted(tickets, key=lambda each: each.path.name):
            by_transcript.setdefault(str(each.fields["transcript_path"]), []).append(each)
        return [self._claim_of(transcript, group) for transcript, group in by_transcript.items()]

    def _claim_of(self, transcript: str, tickets: list[_Ticket]) -> Claim:
        def last(name: str) -> str | None:
            return next((text for each in reversed(tickets) if (text := each.text(name))), None)

        links = [self._link(ticket.key_in_name(each.path.name)) for each in reversed(tickets)]
        return Claim(
            tickets=tuple(each.path for each in tickets),
            transcript=Path(transcript),
            staged=next((link for link in links if link.is_file()), None),
            session_id=last("session_id"),
            agent_id=last("agent_id"),
            cwd=last("cwd"),
        )

    def _keep_again(self, keys: set[str]) -> None:
        # A hook may have written a ticket and found the old link still there, just before it was removed.
        late = [path for path in self._listed(ticket.NEW) if ticket.key_in_name(path.name) in keys]
        for each in _read_tickets(late)[0]:
            key = ticket.key_in_name(each.path.name)
            with suppress(FileNotFoundError, NotADirectoryError, ticket.NotATranscript):
                ticket.keep(str(self.root), str(each.fields["transcript_path"]), key, copy_limit_bytes=None)

    def _keys(self, *folders: str) -> set[str]:
        return {ticket.key_in_name(path.name) for folder in folders for path in self._listed(folder)}

    def _link(self, key: str) -> Path:
        return Path(ticket.link_path(str(self.root), key))

    def _listed(self, folder: str, *, ending: str = ".json") -> list[Path]:
        try:
            return sorted(path for path in (self.root / folder).iterdir() if path.name.endswith(ending))
        except FileNotFoundError:
            return []
        except OSError as problem:
            raise StoreNotWritable(
                f"staging folder {self.root / folder} cannot be read: {problem.strerror}.",
                "Make it readable, or set CORTEX_HOME to another folder.",
            ) from problem

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            raise StoreNotWritable(
                f"staging folder {self.root} cannot be written: {problem.strerror or problem}.",
                "Free some space or make it writable, then run the same command again; nothing is lost.",
            ) from problem


def _read_tickets(paths: Iterable[Path]) -> tuple[list[_Ticket], list[tuple[Path, str]]]:
    readable: list[_Ticket] = []
    malformed: list[tuple[Path, str]] = []
    for path in paths:
        try:
            with path.open("rb") as file:
                fields = ticket.parse(file.read(ticket.MAX_TICKET_BYTES + 1))
        except FileNotFoundError:
            continue  # claimed or removed since it was listed
        except OSError as problem:
            malformed.append((path, problem.strerror or "unreadable"))
        except ValueError as problem:
            malformed.append((path, str(problem)))
        else:
            readable.append(_Ticket(path, fields))
    return readable, malformed


def _reason_path(path: Path) -> Path:
    # Another ending than a ticket's, so that no listing of tickets takes it for one.
    return path.with_suffix(".reason")


# -- What erasing removes outside the lake and the tables: kept transcripts of what could not be read.


def drop_quarantined(
    staging: Path,
    session_ids: Collection[str],
    holds: Callable[[str], bool],
    is_forgotten: Callable[[str], bool],
) -> int:
    """
    Remove set-aside tickets of the given sessions, of a folder that `is_forgotten`, or whose kept transcript
    `holds` what is forgotten.

    The kept transcript and the reason go with them. Transcripts that still wait are left: the run that
    reads them lets no forgotten turn in, and then drops them. Returns how many tickets went.
    """
    removed = 0
    with writing_to(staging.parent):
        for path in sorted((staging / ticket.QUARANTINED).glob("*.json")):
            kept = Path(ticket.link_path(str(staging), ticket.key_in_name(path.name)))
            session_id, cwd = _origin_of(path)
            is_meant = session_id in session_ids or (isinstance(cwd, str) and is_forgotten(cwd))
            if is_meant or (kept.is_file() and holds(_text_of(kept))):
                kept.unlink(missing_ok=True)
                path.with_suffix(".reason").unlink(missing_ok=True)
                path.unlink(missing_ok=True)
                removed += 1
    return removed


def _origin_of(path: Path) -> tuple[object, object]:
    """Return the session and the working directory that a ticket tells."""
    try:
        fields = ticket.parse(path.read_bytes())
    except (OSError, ValueError):
        return None, None
    return fields.get("session_id"), fields.get("cwd")


def _text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")
