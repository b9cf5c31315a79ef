"""Recall at a prompt: the notes of the project that bear on it, out of the published index, or nothing.

Silent when unsure. A note is shown when it holds enough of the prompt's telling words: of these the rare ones
of the language weigh most, and names that are no words of it. The gate's numbers stand in the index itself.
"""

from __future__ import annotations

import json
import math
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any

    # Of the index: memory_id, line, tokens, marks, brief_mark, score.
    Row = tuple[Any, ...]

if TYPE_CHECKING or __package__:
    from cortex.hooks import brief, choices, shown, terms, ticket
else:
    import brief
    import choices
    import shown
    import terms
    import ticket

INDEX = "hook-index.sqlite"

# Layout of the index; one of another is not read.
INDEX_VERSION = 1

# The index is given up after this. The client waits for the hook, and a person for the client.
PROMPT_SECONDS = 0.15

# "yes", "go on": nothing to look up. Gates of words would say so too, later.
SHORTEST_PROMPT = 8

# Of a longer prompt both ends are looked at: what is asked stands before or after what was pasted.
MAX_PROMPT_CHARS = 4_000
MAX_WORDS = 64

# Rows of the index read for one prompt: about 40 ms.
MAX_ROWS = 60_000

# Notes whose length is looked up; of those that hold the most weight the right one is among the first ten.
MAX_CANDIDATES = 64

# SQLite instructions between two looks at the clock: about 0.1 ms.
STEPS_BETWEEN_LOOKS = 1_000

# What the client, and other programs, send in a person's place.
NOT_A_PERSONS = (
    *("/", "<task-notification", "<command-", "<local-command", "<bash-", "<teammate-message"),
    *("<system-reminder", "[Request interrupted", "This session is being continued"),
)

# Entries of the journal that wait. With more no run has taken any in for months: its notes are old, too.
MAX_WAITING = 1_000

# Of the journal's entry about what was shown.
KIND, ACTOR = "recall", "prompt"

# Places in a row of the index.
MEMORY, LINE, TOKENS, MARKS, BRIEF_MARK, SCORE = range(6)


def prompt_output(home: str, payload: dict[str, object], folders: list[str], now_ns: int) -> bytes | None:
    """
    Return the JSON that hands over what the session should know at this prompt, or None.

    What is shown is noted first, for the session, so that it is not shown twice, and in the journal, so that
    an echo of it is not learnt.
    """
    prompt, session_id = payload.get("prompt"), payload.get("session_id")
    if not isinstance(prompt, str) or not isinstance(session_id, str) or not is_asked(prompt):
        return None
    project_id = brief.find_project(os.path.join(home, "published"), folders)
    index = os.path.join(home, "published", project_id, INDEX) if project_id else ""
    if not os.path.isfile(index) or not choices.HookSettings(home, project_id).is_on(
        "recall.at_prompt", True
    ):
        return None
    staging = os.path.join(home, "staging")
    settings, matches = search(index, prompt)
    brief_marks, known = shown.seen(staging, session_id)
    new = [row for row in matches if row[MEMORY] not in known and row[BRIEF_MARK] not in brief_marks]
    rows = rows_within_budget(new, settings)
    if not rows or _is_full(os.path.join(staging, "journal")):
        return None
    shown.add(staging, session_id, [row[MEMORY] for row in rows])
    marks = (settings["frame_marks"], *(row[MARKS] for row in rows))
    line_marks = [mark for text in marks for mark in text.split()]
    _write_entry(staging, str(project_id), line_marks, now_ns)
    context = brief.visible_text("\n".join([settings["frame"], *(row[LINE] for row in rows)]))
    inner = {"hookEventName": "UserPromptSubmit", "additionalContext": context}
    return json.dumps({"hookSpecificOutput": inner}).encode()


def is_asked(prompt: str) -> bool:
    """Return whether a prompt is a person's and long enough to look something up for."""
    text = prompt.strip()
    return len(text.encode("utf-8", "replace")) >= SHORTEST_PROMPT and not text.startswith(NOT_A_PERSONS)


def search(path: str, prompt: str) -> tuple[dict[str, Any], list[Row]]:
    """Return the settings of the index at `path`, and its rows that pass the gate, best first."""
    import sqlite3  # only here: without an index nobody need wait 2 ms for it

    give_up_at = time.monotonic() + PROMPT_SECONDS
    address = "file:" + path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    index = sqlite3.connect(address + "?mode=ro&immutable=1", uri=True)
    try:
        index.set_progress_handler(lambda: time.monotonic() > give_up_at, STEPS_BETWEEN_LOOKS)
        settings = dict(index.execute("select name, value from settings"))
        if settings.get("version") != INDEX_VERSION:
            return settings, []
        return settings, _Gate(index, settings).passing(prompt)
    except sqlite3.OperationalError:
        if time.monotonic() > give_up_at:
            return {}, []
        raise
    finally:
        index.close()


class _Gate:
    """The gate of one index: what a prompt's words weigh, and which notes hold enough of them."""

    def __init__(self, index: sqlite3.Connection, settings: dict[str, Any]) -> None:
        self._index = index
        self._settings = settings
        self._rows_left = MAX_ROWS

    def passing(self, prompt: str) -> list[Row]:
        """Return the rows that pass, best first, none that says the same as one before it."""
        settings = self._settings
        held, counts, total = self._weigh(prompt)
        least_weight = settings["least_share"] * total
        likely = [
            note
            for note, weight in held.items()
            if weight >= least_weight and counts[note] >= settings["least_words"]
        ]
        likely.sort(key=lambda note: (-held[note], note))
        rows = self._scored(likely[:MAX_CANDIDATES], held, total)
        floor = max(settings["least_score"], settings["beside_best"] * rows[0][SCORE]) if rows else 0
        return _without_repeats([row for row in rows if row[SCORE] >= floor], settings["same_words"])

    def _weigh(self, prompt: str) -> tuple[dict[int, float], dict[int, int], float]:
        """Return by note the weight and the number of the prompt's words it holds, and the weight of all."""
        held: dict[int, float] = {}
        counts: dict[int, int] = {}
        total = 0.0
        stems = set()
        for weight, word in self._telling_words(prompt):
            notes = self._notes_with(word)
            stem = (word[:3], weight, *notes)
            # A word that notes all over the project hold tells none apart; "test" and "tests" are one.
            if len(notes) > self._settings["most_rows"] or stem in stems:
                continue
            stems.add(stem)
            weight *= self._rarity(len(notes))
            total += weight
            for note in notes:
                held[note] = held.get(note, 0.0) + weight
                counts[note] = counts.get(note, 0) + 1
        return held, counts, total

    def _telling_words(self, prompt: str) -> list[tuple[float, str]]:
        """Return the weightiest words of a prompt, with what they weigh in the language."""
        if len(prompt) > MAX_PROMPT_CHARS:
            prompt = prompt[: MAX_PROMPT_CHARS // 2] + "\n" + prompt[-MAX_PROMPT_CHARS // 2 :]
        stop_words = {word for (word,) in self._index.execute("select word from stop_words")}
        words = [word for word in terms.index_terms(prompt) if word not in stop_words]
        return sorted(((self._weight(word), word) for word in words), reverse=True)[:MAX_WORDS]

    def _weight(self, word: str) -> float:
        """Return what a word weighs by its rank among the words of the language."""
        ranks = self._matching("common_words", word, 1)
        rank: float = ranks[0] if ranks else self._settings["rarest_rank"]
        return math.log(rank / self._settings["common_rank"] + 1)

    def _rarity(self, count: int) -> float:
        """Return 1 for a word that one note holds, and less the more hold it."""
        notes = max(2, self._settings["notes"])
        of_all = math.log(notes / max(1, count)) / math.log(notes)
        rarity: float = 1 - self._settings["rarity_weight"] * (1 - of_all)
        return rarity

    def _notes_with(self, word: str) -> list[int]:
        """Return the notes that hold a word, one more than count where there are too many."""
        if self._rows_left <= 0:
            return []
        notes = self._matching("note_words", word, int(self._settings["most_rows"]) + 1)
        self._rows_left -= len(notes)
        return notes

    def _matching(self, table: str, word: str, limit: int) -> list[int]:
        asked = f"select rowid from {table} where {table} match ? limit ?"
        return [row for (row,) in self._index.execute(asked, (f'"{word}"', limit))]

    def _scored(self, notes: list[int], held: dict[int, float], total: float) -> list[Row]:
        """Return the rows of notes with their scores: weight held, its share of all, by the note's length."""
        columns = "id, length, memory_id, line, tokens, marks, brief_mark"
        asked = f"select {columns} from notes where id in ({','.join('?' * len(notes))})"
        by_length = self._settings["length_weight"]
        rows = [
            (*row, held[note] * math.sqrt(held[note] / total) / (1 - by_length + by_length * length))
            for note, length, *row in self._index.execute(asked, notes)
        ]
        return sorted(rows, key=lambda row: (-row[SCORE], row[MEMORY]))


def _without_repeats(rows: list[Row], same_words: float) -> list[Row]:
    kept: list[tuple[frozenset[str], Row]] = []
    for row in rows:
        words = frozenset(terms.index_terms(row[LINE]))
        if not any(len(words & other) >= same_words * len(words | other) for other, _ in kept):
            kept.append((words, row))
    return [row for _, row in kept]


def rows_within_budget(rows: list[Row], settings: dict[str, Any]) -> list[Row]:
    """Return as many of the rows, in their order, as may be shown at one prompt."""
    if not rows:
        return []
    tokens, chars = settings["frame_tokens"], len(settings["frame"])
    kept: list[Row] = []
    for row in rows:
        tokens, chars = tokens + row[TOKENS], chars + len(row[LINE]) + 1
        too_much = tokens > settings["max_tokens"] or chars > settings["max_chars"]
        if too_much or len(kept) >= settings["max_notes"]:
            break
        kept.append(row)
    return kept


def _is_full(journal: str) -> bool:
    try:
        return len(os.listdir(journal)) >= MAX_WAITING
    except FileNotFoundError:
        return False


def _write_entry(staging: str, project_id: str, marks: list[str], now_ns: int) -> None:
    """Note in the journal what was told, as a recall that reinforces nothing: nobody asked for it."""
    import hashlib  # only here: most prompts show nothing

    seconds, rest_ns = divmod(now_ns, 1_000_000_000)
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest_ns // 1000:06d}+00:00"
    payload = json.dumps({"memory_ids": [], "told": sorted(set(marks))}, sort_keys=True)
    digest = hashlib.sha256()
    for part in (at, KIND, project_id, "", ACTOR, payload):
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(raw))
        digest.update(raw)
    entry = {
        "entry_id": digest.hexdigest()[:32],
        "recorded_at": at,
        "kind": KIND,
        "project_id": project_id,
        "memory_id": None,
        "actor": ACTOR,
        "payload": payload,
    }
    path = os.path.join(staging, "journal", f"{entry['entry_id']}.json")
    ticket.write_whole(staging, path, json.dumps(entry).encode(), durable=False)
