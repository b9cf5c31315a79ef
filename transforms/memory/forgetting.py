"""What forgetting means for rows: which turns, words, events and journal entries go (spec 8.2, 12)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from cortex.transforms.extract.language.settled import FORGOTTEN
from cortex.transforms.identity import event_id
from cortex.transforms.journal_entries import (
    Archive,
    Dismiss,
    Edit,
    Entry,
    Forget,
    ImportMemory,
    Merge,
    Supersede,
    entries_in,
    from_row,
)
from cortex.transforms.memory.retention import Retention
from cortex.transforms.schemas import EVENTS, GLOBAL_SCOPE, JOURNAL, TURNS, Row, as_polars, values
from cortex.transforms.words.sentences import MEMORY

if TYPE_CHECKING:
    import polars as pl

ERASER = "erase"
CARRIER = "rederive"  # the actor of entries that a re-derivation adds
CARRIED_KINDS = ("edit", "archive", "dismiss")  # those of them that hold or quote words of a memory

# Wherever the words of a forgotten fact stand, they go. Shorter texts ("Run tests.") would take half of a
# log with them; these go only if the fact itself was said.
MIN_PHRASE_LENGTH = 12

# A record of a session shortens what it tells; so much of each statement is always there.
RECORDED_STATEMENT_CHARS = 40
_STATEMENT_END = re.compile(r"[.:;]\s+")

# Kinds of the journal that carry the text of a memory.
TELLING_KINDS = ("remember", "import", "team", "edit", "merge")
# Where it is in them; an import of an own export has all three.
_TEXTS = ("text", "reason", "rejected")


@dataclass(frozen=True)
class Tombstones:
    """
    What is to stay forgotten: single turns, whole sessions, projects up to an instant, what is too old.

    Determined by the journal's forget entries, which hold ids and no text, and by the days of retention.
    """

    turn_ids: frozenset[str] = frozenset()
    session_ids: frozenset[str] = frozenset()
    projects: Mapping[str, datetime] = field(default_factory=dict)
    retention: Retention = field(default_factory=Retention)

    def covers(self, turns: pa.Table) -> pl.Series:
        """Return for each of TURNS whether its session, project or time is forgotten; undated is old."""

        import polars as pl

        rows = as_polars(turns)
        said_at = pl.col("said_at")
        covered = pl.col("session_id").is_in(list(self.session_ids))
        for project_id, until in self.projects.items():
            is_old = said_at.is_null() | (said_at <= until)
            covered |= (pl.col("project_id") == project_id) & is_old
        own = self.retention.by_project
        scopes = [(pl.col("project_id") == name, rule.since) for name, rule in own.items()]
        scopes.append((~pl.col("project_id").is_in(list(own)), self.retention.everywhere.since))
        for is_here, since in scopes:
            if since is not None:
                covered |= is_here & (said_at.is_null() | (said_at < since))
        return rows.select(covered.alias("covered"))["covered"]

    def admitted(self, turns: pa.Table) -> pa.Table:
        """Return those of TURNS that may enter the lake: a transcript read again brings nothing back."""
        stays = ~self.covers(turns) & ~as_polars(turns)["turn_id"].is_in(list(self.turn_ids))
        return turns.filter(pa.array(stays.to_list(), pa.bool_()))


def tombstones_of(journal: pa.Table, retention: Retention = Retention()) -> Tombstones:  # noqa: B008
    """Return what JOURNAL rows say is forgotten, and all that was said before what is kept."""
    turn_ids: set[str] = set()
    session_ids: set[str] = set()
    projects: dict[str, datetime] = {}
    for row, entry in entries_in(journal, Forget):
        turn_ids.update(entry.turn_ids or ())
        session_ids.update(entry.session_ids or ())
        if entry.everything:
            scope = str(row["project_id"])
            projects[scope] = max(row["recorded_at"], projects.get(scope, row["recorded_at"]))
    return Tombstones(frozenset(turn_ids), frozenset(session_ids), projects, retention)


def pending(journal: pa.Table) -> list[Row]:
    """
    Return the forget entries whose text is not erased yet; erasing notes which one it is `of`.

    An older Cortex wrote `pruned` into such an entry for what had only faded: nobody asked to erase that.
    """
    entries = list(entries_in(journal, Forget))
    done = {entry.of for _, entry in entries}
    return [row for row, entry in entries if entry.is_wish and row["entry_id"] not in done]


def requests_in(journal: pa.Table, known: Collection[str]) -> list[Row]:
    """
    Return the requests to forget in JOURNAL rows that another store needs; `known` are entry ids that it has.

    A memory that was forgotten along with the one named (a member, or under its name before projects were
    merged) gets its own request: an older store knows it by that name alone.
    """
    entries = [(row, entry) for row, entry in entries_in(journal, Forget) if entry.pruned is None]
    named = {row["memory_id"] for row, entry in entries if entry.is_wish}
    fresh = [(row, entry) for row, entry in entries if row["entry_id"] not in known]
    requests = [row for row, entry in fresh if entry.is_wish]
    for row, entry in fresh:
        if not entry.is_wish and row["memory_id"] and row["memory_id"] not in named:
            request, at = Forget(turn_ids=entry.turn_ids), row["recorded_at"]
            requests.append(request.to_row(row["project_id"], recorded_at=at, memory_id=row["memory_id"]))
    return requests


def requested_memories(entries: Iterable[Row], journal: pa.Table) -> dict[str, Row]:
    """
    Return the memories that forget entries speak of, with their entry.

    A merged one takes its members, and one that a re-derivation reworded the names that it went by before.
    """
    members = {row["memory_id"]: list(merge.members) for row, merge in entries_in(journal, Merge)}
    for names in _shared_names(journal):
        for name in names:
            members.setdefault(name, []).extend(names)
    requested: dict[str, Row] = {}
    waiting = [(row["memory_id"], row) for row in entries if row["memory_id"]]
    while waiting:
        name, row = waiting.pop()
        if name not in requested:
            requested[name] = row
            waiting += [(member, row) for member in members.get(name, [])]
    return requested


def kept_of_sessions(journal: pa.Table, requests: Iterable[Row]) -> dict[str, Row]:
    """
    Return the memories that a re-derivation kept and that rest on forgotten sessions alone, with the request.

    Their words are in the JOURNAL rows, so they do not go with the events.
    """
    sessions = {
        name: row
        for row, entry in entries_in(JOURNAL.of(list(requests)), Forget)
        for name in entry.session_ids or ()
    }
    kept: dict[str, Row] = {}
    for row, entry in entries_in(journal, ImportMemory):
        places = {place["session_id"] for place in entry.evidence}
        if sessions and row["actor"] == CARRIER and places and places <= sessions.keys():
            kept[row["memory_id"]] = max((sessions[name] for name in places), key=lambda r: r["recorded_at"])
    return kept


def resting_elsewhere(
    journal: pa.Table, before: pa.Table, gone: Collection[str], texts_at: Callable[[set[str]], set[str]]
) -> tuple[pa.Table, set[str]]:
    """
    Return JOURNAL rows without what global memories have of turns that are `gone`, and which memories go.

    A global memory that a person made of wishes of projects goes with the last of its evidence, or once
    nothing left says its words; what it took the place of comes back, if that is still there. `before` are
    the JOURNAL rows before the erasure, `texts_at` gives what the events of turns say.
    """
    members: dict[str, set[str]] = {}
    for row, replaced in entries_in(before, Supersede):
        members.setdefault(replaced.by, set()).add(row["memory_id"])
    wording: dict[str, set[str]] = {}
    for row in journal.filter(pc.is_in(journal["kind"], pa.array(TELLING_KINDS))).to_pylist():
        wording.setdefault(row["memory_id"], set()).add(str(getattr(from_row(row), "text", "")))
    worded_before = set(values(before.filter(pc.is_in(before["kind"], pa.array(TELLING_KINDS))), "memory_id"))
    ends: set[str] = set()
    rows: dict[str, Row] = {}
    for row, entry in entries_in(journal, ImportMemory):
        if row["project_id"] != GLOBAL_SCOPE:
            continue
        own = members.get(row["memory_id"], set())
        left = [place for place in entry.evidence if place["turn_id"] not in gone]
        if len(left) == len(entry.evidence) and not (own & worded_before) - wording.keys():
            continue
        says = texts_at({place["turn_id"] for place in left}).union(*(wording.get(name, ()) for name in own))
        if (own and entry.text not in says) or (not own and not left):
            ends.add(row["memory_id"])
        else:
            rows[row["entry_id"]] = _in_place_of(row, replace(entry, evidence=left))
    kept: list[Row] = []
    for row in journal.to_pylist():
        is_import = row["kind"] == ImportMemory.kind and row["memory_id"] in ends
        is_replaced = row["kind"] == Supersede.kind and getattr(from_row(row), "by", None) in ends
        if not is_import and not is_replaced:
            kept.append(rows.get(row["entry_id"], row))
    return JOURNAL.of(kept), ends


def without_words_left(journal: pa.Table) -> set[str]:
    """Return the memories of which the last of JOURNAL rows says only that something was forgotten."""
    last = {
        row["memory_id"]: getattr(from_row(row), "text", "")
        for row in journal.filter(pc.is_in(journal["kind"], pa.array(TELLING_KINDS))).to_pylist()
    }
    return {name for name, text in last.items() if text and not text.replace(FORGOTTEN, "").strip(" .,;!?")}


def _shared_names(journal: pa.Table) -> list[list[str]]:
    """
    Return the names that one memory went by, as far as entries with words of it were reattached.

    Such entries say the same at one instant. Where several memories got the same words at once, who was who
    is open, and they are left out.
    """
    alike: dict[tuple[datetime, str, str], list[Row]] = {}
    for row in journal.filter(pc.is_in(journal["kind"], pa.array(CARRIED_KINDS))).to_pylist():
        entry = from_row(row)
        if isinstance(entry, Dismiss):
            row = {**row, "memory_id": entry.memory_ids[0]} if len(entry.memory_ids) == 1 else row
        words = entry.text if isinstance(entry, Edit) else getattr(entry, "reason", None)
        if words and row["memory_id"]:
            alike.setdefault((row["recorded_at"], row["kind"], words), []).append(row)
    groups = [rows for rows in alike.values() if len(rows) > 1]
    clear = [rows for rows in groups if sum(row["actor"] != CARRIER for row in rows) <= 1]
    return [[row["memory_id"] for row in rows] for rows in clear]


@dataclass(frozen=True)
class Phrases:
    """
    The texts that an erasure looks for wherever they stand, each with its words as they are compared.

    A night may prune thousands of memories. One expression of all their texts passes the size that the
    engine takes at about 500, so texts are found by their words first, all at once, and each place gets an
    expression of the few that occur there.
    """

    by_words: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, texts: Iterable[str | None]) -> Phrases:
        """Return what to look for; texts that are too short are left out."""
        phrases = sorted({" ".join((text or "").split()).rstrip(".!?") for text in texts})
        long = [text for text in phrases if len(text) >= MIN_PHRASE_LENGTH]
        return cls({words: text for words, text in zip(_compared(long), long, strict=True) if words})

    def patterns_in(self, texts: Sequence[str | None]) -> list[str | None]:
        """Return for each of `texts` one expression of the phrases it holds, None if nothing."""
        if not self.by_words or not texts:
            return [None] * len(texts)
        matches = _compared(texts).str.extract_many(list(self.by_words), overlapping=True)
        return [
            self._pattern_in(text, words) if text and words is not None and len(words) else None
            for text, words in zip(texts, matches.to_list(), strict=True)
        ]

    def is_in(self, text: str) -> bool:
        """Return whether `text` holds any of the phrases."""
        return self.patterns_in([text]) != [None]

    def _pattern_in(self, text: str, words: Iterable[str]) -> str | None:
        pattern = _pattern_of({self.by_words[phrase] for phrase in words})
        return pattern if re.search(pattern, text) else None


def _compared(texts: Sequence[str | None]) -> pl.Series:
    """Return texts in lower case, without marks of emphasis, each white space (also JSON's) one blank."""

    import polars as pl

    return (
        pl.Series(texts, dtype=pl.String)
        .str.to_lowercase()
        .str.replace_all(r"\\[nrt]", " ")
        .str.replace_all(r'\\"', '"')
        .str.replace_all(r"[*_`]", "")
        .str.replace_all(r"[\s\x1c-\x1f]+", " ")
        .str.strip_chars()
    )


def _pattern_of(texts: Iterable[str]) -> str:
    # Case, white space, line breaks inside JSON and marks of emphasis do not matter.
    between = r"[*_`]*(?:\s|\\[nrt])+[*_`]*"
    ordered = sorted(texts, key=lambda text: (-len(text), text))
    spelt = [between.join(re.escape(w).replace('"', r"\\?" + '"') for w in t.split()) for t in ordered]
    return f"(?i)(?:{'|'.join(spelt)})"


def without_sentences(text: str, pattern: str) -> str:
    """
    Return `text` with each sentence that holds a match of `pattern` replaced.

    >>> without_sentences("Fine. We use a red door. Go on.", "red door")
    'Fine. [forgotten] Go on.'
    """
    spans = [(match.start(), match.end()) for match in re.finditer(pattern, text)]
    ends = [match.span() for match in MEMORY.patterns[0].finditer(text)]
    starts = [0, *[stop for _, stop in ends]]
    stops = [*[start for start, _ in ends], len(text)]
    left, at = "", 0
    for start, stop in spans:
        first = max(s for s in starts if s <= start)
        last = min((s for s in stops if s >= stop), default=len(text))
        if last > at:
            left += text[at : max(first, at)] + (FORGOTTEN if first >= at else "")
            at = last
    return left + text[at:]


def texts_of(row: Row) -> set[str]:
    """Return the words of a memory or event; what its text holds is found with it, not wherever else."""
    more = {row[name] for name in ("reason", "rejected") if row[name] and row[name] not in row["text"]}
    return {row["text"], *more} - {""}


def statements_of(memory: Row) -> set[str]:
    """
    Return the statements in a memory, each up to where the record of a session may cut it.

    >>> sorted(statements_of({"text": "Committed 1b2c3d1 on main: Add a gauge queue."}))
    ['Add a gauge queue', 'Committed 1b2c3d1 on main']
    """
    parts = (part.strip(" .")[:RECORDED_STATEMENT_CHARS] for part in _STATEMENT_END.split(memory["text"]))
    return {part for part in parts if len(part) >= MIN_PHRASE_LENGTH}


def erased_turns(
    turns: pa.Table,
    gone: pl.Series,
    named: frozenset[str],
    shared: frozenset[str],
    phrases: Phrases,
    own_phrases: Phrases = Phrases(),
) -> tuple[pa.Table, set[str]]:
    """
    Return TURNS without what is forgotten, and the ids of the turns that were removed or rewritten.

    Rows where `gone` is true are removed. Of the turns `named`, all words go, also of a call's input; but of
    those that other memories rest on (`shared`) only the sentences that hold what is `phrases`, if any do. So
    do the sentences of every other turn that hold it. What is in `own_phrases` counts in turns `named` alone.
    """

    import polars as pl

    rows = as_polars(turns)
    kept = rows.filter(~gone)
    changed = set(rows.filter(gone)["turn_id"].to_list())
    texts, inputs = kept["text"].to_list(), kept["tool_input"].to_list()
    names = kept["turn_id"].to_list()
    both = Phrases({**phrases.by_words, **own_phrases.by_words})

    def patterns_in(column: list[str | None]) -> list[str | None]:
        everywhere, here = phrases.patterns_in(column), both.patterns_in(column)
        return [p if name in named else q for name, p, q in zip(names, here, everywhere, strict=True)]

    patterns = zip(patterns_in(texts), patterns_in(inputs), strict=True)
    for at, (name, pattern) in enumerate(zip(names, patterns, strict=True)):
        if name in named and not (name in shared and any(pattern)):
            text, given = FORGOTTEN, None
        elif any(pattern):
            text = without_sentences(texts[at], pattern[0]) if pattern[0] else texts[at]
            given = re.sub(pattern[1], FORGOTTEN, inputs[at]) if pattern[1] else inputs[at]
        else:
            continue
        if (text, given) != (texts[at], inputs[at]):
            texts[at], inputs[at] = text, given
            changed.add(name)
    erased = kept.with_columns(
        pl.Series("text", texts, dtype=pl.String), pl.Series("tool_input", inputs, dtype=pl.String)
    )
    return erased.to_arrow().cast(TURNS.arrow), changed


def erased_journal(
    journal: pa.Table, requested: Mapping[str, Row], projects: Mapping[str, datetime], phrases: Phrases
) -> pa.Table:
    """
    Return JOURNAL rows without the text of `requested` memories, of reset `projects` and of `phrases`.

    What was told after the request to forget stays. A merge goes with any of its members, whose rest comes
    back.
    """
    until = max((row["recorded_at"] for row in requested.values()), default=None)
    kept = [
        _without_reason(row, requested)
        for row in journal.to_pylist()
        if not _is_erased(row, requested, projects)
    ]
    if not phrases.by_words or until is None:
        return JOURNAL.of(kept)
    may_hold = [row["kind"] in TELLING_KINDS and row["recorded_at"] <= until for row in kept]
    texts = [_words_of(row) if may else None for row, may in zip(kept, may_hold, strict=True)]
    patterns = phrases.patterns_in(texts)
    return JOURNAL.of(
        [
            _without_words(row, pattern) if pattern else row
            for row, pattern in zip(kept, patterns, strict=True)
        ]
    )


def done_entries(
    entries: Iterable[Row], requested: Mapping[str, Row], turn_ids: Mapping[str, set[str]]
) -> list[Row]:
    """
    Return the JOURNAL rows that say what was erased for each request: ids, no text.

    `turn_ids` gives the turns by entry id. A merged memory's members get a tombstone of their own.
    """
    rows: list[Row] = []
    for row in entries:
        scope, at, of = row["project_id"], row["recorded_at"], row["entry_id"]
        done = Forget(of=of, turn_ids=sorted(turn_ids.get(of, ())))
        for name in sorted(name for name, request in requested.items() if request is row) or [
            row["memory_id"]
        ]:
            rows.append(done.to_row(scope, recorded_at=at, memory_id=name, actor=ERASER))
    return rows


def _is_erased(row: Row, requested: Mapping[str, Row], projects: Mapping[str, datetime]) -> bool:
    until = projects.get(row["project_id"])
    if until is not None and row["recorded_at"] <= until:
        return row["kind"] not in ("project", "forget")
    if row["kind"] not in (Dismiss.kind, *TELLING_KINDS):
        return False
    entry, name = from_row(row), row["memory_id"]
    if isinstance(entry, Dismiss):  # its reason may quote the memory
        about = (requested[name]["recorded_at"] for name in entry.memory_ids if name in requested)
        return any(row["recorded_at"] <= forgotten_at for forgotten_at in about)
    if isinstance(entry, Merge):  # no person told it, so its time says nothing
        return any(member in requested for member in [name, *entry.members])
    return name in requested and row["recorded_at"] <= requested[name]["recorded_at"]


def _without_reason(row: Row, requested: Mapping[str, Row]) -> Row:
    """Return an entry that archived a memory to erase without its reason, which may quote the memory."""
    if row["kind"] != "archive" or row["memory_id"] not in requested or row["payload"] == "{}":
        return row
    return _in_place_of(row, Archive())


def _words_of(row: Row) -> str:
    return "\n".join(_texts_of(from_row(row)).values())


def _texts_of(entry: Entry) -> dict[str, str]:
    texts = {name: getattr(entry, name, None) for name in _TEXTS}
    return {name: text for name, text in texts.items() if text}


def _without_words(row: Row, pattern: str) -> Row:
    entry = from_row(row)
    left: dict[str, Any] = {name: without_sentences(text, pattern) for name, text in _texts_of(entry).items()}
    return _in_place_of(row, replace(entry, **left))


def _in_place_of(row: Row, entry: Entry) -> Row:
    """Return the row of `entry` with the time, scope, memory and actor of another."""
    columns = {name: row[name] for name in ("recorded_at", "memory_id", "actor")}
    return entry.to_row(row["project_id"], **columns)


# -- What forgetting means for events: those of forgotten words go, every other row stays as it is (spec
# 12).

# What is left of an event's text once sentences are gone: less says nothing by itself, and extraction takes
# nothing shorter either (extract.sentences.MIN_CHARS).
MIN_LEFT_LENGTH = 24

# Free text of an event; a plan's subject is an id, an error's the command that failed.
EVENT_TEXTS = ("text", "reason", "rejected", "subject")


def erased_events(
    events: pa.Table, left: Collection[str], deleted: Collection[str], phrases: Phrases
) -> pa.Table:
    """
    Return EVENTS without what is forgotten, ordered by event_id; every other row stays as it is.

    Takes the ids of the turns that are `left` and of the events that are `deleted`. If a row holds what is
    `phrases`, that sentence goes, and the row with it if little else is said.
    """
    is_left = pc.is_in(events["turn_id"], pa.array(sorted(left), pa.string()))
    is_doomed = pc.is_in(events["event_id"], pa.array(sorted(deleted), pa.string()))
    kept = events.filter(pc.and_not(is_left, is_doomed)).sort_by("event_id")
    patterns = {name: phrases.patterns_in(kept[name].to_pylist()) for name in EVENT_TEXTS}
    holding = [at for at, matches in enumerate(zip(*patterns.values(), strict=True)) if any(matches)]
    if not holding:
        return kept
    by_id: dict[str, Row] = {}
    for at in holding:
        clean = _without_phrases(kept.slice(at, 1).to_pylist()[0], {n: p[at] for n, p in patterns.items()})
        if clean is not None:
            by_id.setdefault(clean["event_id"], clean)
    rest = kept.take(pa.array(sorted(set(range(kept.num_rows)) - set(holding)), pa.int64()))
    known = pa.array(values(rest, "event_id"), pa.string())
    clean_rows = EVENTS.of(list(by_id.values()))
    clean_rows = clean_rows.filter(pc.invert(pc.is_in(clean_rows["event_id"], known)))
    return pa.concat_tables([rest, clean_rows]).sort_by("event_id").combine_chunks()


def _without_phrases(row: Row, patterns: Mapping[str, str | None]) -> Row | None:
    """Return a row of EVENTS without the sentences that hold a pattern; None if its text says no more."""
    clean = dict(row)
    for name, pattern in patterns.items():
        if pattern:
            text_left = without_sentences(row[name], pattern).replace(FORGOTTEN, " ")
            clean[name] = " ".join(text_left.split()) or None
    if len(clean["text"] or "") < MIN_LEFT_LENGTH:
        return None
    if clean["text"] != row["text"]:
        clean["event_id"] = event_id(row["event_type"], row["layer"], row["turn_id"], clean["text"])
    return clean
