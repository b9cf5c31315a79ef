"""
Evidence at a prompt: what is kept of the project and bears on the message, dated, quoted, or nothing.

The search index that every run leaves is read, and nothing else of the store: facts and what was said alike,
ranked as `cortex recall` ranks them if it has no model. Silent when nothing answers.
"""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cortex.hooks.evidence.index import Row

if TYPE_CHECKING or __package__:
    import sqlite3

    from cortex.hooks import brief, echo, hook_settings, identity, shown, ticket
    from cortex.hooks.evidence.index import (
        SEARCH_VERSION,
        file_state,
        index_parts,
        labelled_rows,
        layout_version,
        open_index,
        ranks_in,
        read_settings,
    )
    from cortex.hooks.evidence.question import (
        DECIDED,
        SearchQuestion,
        SearchSettings,
        has_topic,
        listing_asked,
    )
    from cortex.hooks.evidence.search import commands, find, find_sequels, is_shown, listed_records
    from cortex.hooks.notes import FRAME, FRAME_TOKENS, Note, note_lines, record_notes
    from cortex.hooks.prose.memory_types import SETTLING_TYPES
else:
    import brief
    import echo
    import hook_settings
    import identity
    import shown
    import ticket
    from evidence.index import (
        SEARCH_VERSION,
        file_state,
        index_parts,
        labelled_rows,
        layout_version,
        open_index,
        ranks_in,
        read_settings,
    )
    from evidence.question import DECIDED, SearchQuestion, has_topic, listing_asked
    from evidence.search import commands, find, find_sequels, is_shown, listed_records
    from notes import FRAME, FRAME_TOKENS, Note, note_lines, record_notes
    from prose.memory_types import SETTLING_TYPES


INDEX = os.path.join("tables", "search.sqlite")
GLOBAL_PART = "global"

# Results looked for: of more, sentences are chosen worse.
MAX_RESULTS = 15
# Commands beside them.
MAX_COMMANDS = 2
# Where the work stands: the last sessions' records and the plan that goes on.
RECORDS, PLANS = 3, 1

# What the client, and other programs, send in a person's place.
NOT_A_PERSONS = (
    *("/", "<task-notification", "<command-", "<local-command", "<bash-", "<teammate-message"),
    *("<system-reminder", "[Request interrupted", "This session is being continued"),
)

# Of the journal's entry about what was shown.
KIND, ACTOR = "recall", "prompt"


def prompt_output(home: str, payload: dict[str, object], folders: list[str], now_ns: int) -> bytes | None:
    """
    Return the JSON that hands over what the session should know at this prompt, or None.

    What is shown is noted first, for the session, so that it is not shown twice, and in the journal, so that
    an echo of it is not learnt.
    """
    prompt, session_id = payload.get("prompt"), payload.get("session_id")
    if not isinstance(prompt, str) or not isinstance(session_id, str) or not is_typed(prompt):
        return None
    project_id = brief.find_project(os.path.join(home, "published"), folders)
    index = os.path.join(home, INDEX)
    if not project_id or not os.path.isfile(index):
        return None
    if not hook_settings.HookSettings(home, project_id).is_on("recall.at_prompt", True):
        return None
    staging = os.path.join(home, "staging")
    if shown.is_full(os.path.join(staging, "journal")):  # the index is as old as what waits
        return None
    seen = shown.read(staging, session_id)
    seen.prompts += 1
    matches = notes_for(index, project_id, prompt, session_id, seen)
    for note in matches:
        seen.add(note.id, note.shown, note.tokens)
    if matches:
        seen.tokens += FRAME_TOKENS
    if matches or seen.prompts == 1:
        shown.save_record(staging, session_id, seen)
    if not matches:
        return None
    shown_text = "\n".join([FRAME, *(text for note in matches for text in (note.line, *note.shown))])
    _write_entry(staging, project_id, sorted(echo.fingerprints_of(shown_text)), now_ns)
    memory_ids = [note.id for note in matches if note.is_memory]
    tokens = FRAME_TOKENS + sum(note.tokens for note in matches)
    shown.log_shown(staging, ticket.USER_PROMPT, project_id, session_id, memory_ids, tokens, now_ns)
    context = brief.harmless("\n".join([FRAME, *(note.line for note in matches)]))
    inner = {"hookEventName": "UserPromptSubmit", "additionalContext": context}
    return json.dumps({"hookSpecificOutput": inner}).encode()


def is_typed(prompt: str) -> bool:
    """Return whether a prompt is a person's, and says anything."""
    text = prompt.strip()
    return bool(text) and not text.startswith(NOT_A_PERSONS)


def notes_for(
    path: str, project_id: str, prompt: str, session_id: str, seen: shown.ShownRecord
) -> list[Note]:
    """Return the notes for a prompt out of the index at `path`; none if another layout, or damaged, is."""
    import sqlite3  # only here: most of what is no question ends before

    # Read without locks, a file that a run writes meanwhile may be read in two states: once more, then.
    for _ in range(2):
        before = file_state(path)
        try:
            connection = open_index(path)
            # SQLite hears no signal: called back now and then, Python ends what a damaged file makes endless.
            connection.set_progress_handler(lambda: None, 10_000)
            try:
                matches = notes_in(connection, project_id, prompt, session_id, seen)
            finally:
                connection.close()
        except (sqlite3.Error, ValueError, KeyError, TypeError):
            matches = []
        if file_state(path) == before:
            return matches
    return []


def notes_in(
    connection: sqlite3.Connection, project_id: str, prompt: str, session_id: str, seen: shown.ShownRecord
) -> list[Note]:
    """Return the notes for a prompt out of an open index; none if it has another layout."""
    if layout_version(connection) != SEARCH_VERSION:
        return []
    settings, scopes = read_settings(connection), [project_id, GLOBAL_PART]
    budget = _budget(settings, seen)
    if budget <= 0:
        return []
    select = "select memory_id, mark from marks where scope = ?"
    marks = dict(connection.execute(select, (project_id,)))
    kind = listing_asked(prompt, settings)
    if kind:
        rows = _listed(connection, project_id, kind)
        matches = record_notes(rows, budget, marks=marks, is_known=seen.is_known)
        if matches:
            return matches
    if not has_topic(prompt, settings):
        return []
    question = SearchQuestion(prompt, settings, lambda words: ranks_in(connection, words))
    # "looks good" shares its words with a hundred turns: it is answered by commands at most.
    results, numbers = [], settings.numbers
    if question.asked.total >= numbers.get("message_weight", 0):
        results = find(
            connection,
            scopes,
            question,
            limit=MAX_RESULTS,
            with_nearby=False,
            by_part=True,
            least_certainty=numbers.get("unsure_certainty", 1.0),
        )
    first = results[: int(numbers["followed_results"])]
    # What may be beside the point costs little.
    unsure = int(numbers.get("unsure_prompt_tokens", 0)) - FRAME_TOKENS
    return note_lines(
        results,
        budget,
        question,
        quoted_tokens=budget if question.certainty >= 1 else min(budget, unsure),
        sequels=find_sequels(connection, [project_id], first, question),
        commands=commands(connection, [project_id], question, limit=MAX_COMMANDS),
        known_ids=frozenset(seen.ids),
        session_id=session_id,
        marks=marks,
        is_known=seen.is_known,
    )


def _listed(connection: sqlite3.Connection, project_id: str, kind: str) -> list[Row]:
    """Return what a message that names no subject asks to be told, the newest first."""
    if kind == DECIDED:
        return listed_records(connection, [project_id], kind, SETTLING_TYPES, limit=MAX_RESULTS)
    rows = listed_records(connection, [project_id], kind, limit=RECORDS)
    plans = labelled_rows(connection, index_parts(connection, [project_id], "memories"), "progress")
    plans = sorted(filter(is_shown, plans), key=lambda row: (-(row["updated_at"] or 0), row["memory_id"]))
    return [*rows, *plans[:PLANS]]


def _budget(settings: SearchSettings, seen: shown.ShownRecord) -> int:
    """Return how many tokens of notes this prompt may bring, less what their frame takes."""
    numbers = settings.numbers
    most = numbers["first_prompt_tokens" if seen.prompts == 1 else "later_prompt_tokens"]
    return int(min(most, numbers["session_prompt_tokens"] - seen.tokens)) - FRAME_TOKENS


def _write_entry(staging: str, project_id: str, marks: list[str], now_ns: int) -> None:
    """Note in the journal what was told, as a recall that reinforces nothing: nobody asked for it."""
    at = shown.instant(now_ns)
    payload = json.dumps({"memory_ids": [], "told": marks}, sort_keys=True)
    entry = {
        "entry_id": identity.content_id(at, KIND, project_id, "", ACTOR, payload),
        "recorded_at": at,
        "kind": KIND,
        "project_id": project_id,
        "memory_id": None,
        "actor": ACTOR,
        "payload": payload,
    }
    path = os.path.join(staging, "journal", f"{entry['entry_id']}.json")
    ticket.write_whole(staging, path, json.dumps(entry).encode(), durable=False)
