"""Evidence at a prompt: what is kept of the project and bears on the message, dated and quoted, or nothing.

The search index that every run leaves is read, and nothing else of the store: facts and what was said alike,
ranked as `cortex recall` ranks them if it has no model. Silent when nothing answers.
"""

from __future__ import annotations

import json
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING or __package__:
    import sqlite3

    from cortex.hooks import brief, choices, echo, identity, notes, shown, ticket
    from cortex.hooks.evidence.index import (
        SEARCH_VERSION,
        file_state,
        index_parts,
        layout_version,
        open_index,
        ranks_in,
        read_settings,
        rows_of_state,
    )
    from cortex.hooks.evidence.question import SearchQuestion, SearchSettings, asks_for_records, has_topic
    from cortex.hooks.evidence.search import commands, find, is_shown, outcome_records
else:
    import brief
    import choices
    import echo
    import identity
    import notes
    import shown
    import ticket
    from evidence.index import (
        SEARCH_VERSION,
        file_state,
        index_parts,
        layout_version,
        open_index,
        ranks_in,
        read_settings,
        rows_of_state,
    )
    from evidence.question import SearchQuestion, asks_for_records, has_topic
    from evidence.search import commands, find, is_shown, outcome_records

INDEX = os.path.join("tables", "search.sqlite")
GLOBAL_PART = "global"

# Results looked for: what is too long for the budget, or says the same again, leaves room for the next.
MOST_RESULTS = 30
# Commands beside them.
MOST_COMMANDS = 2
# Where the work stands: the last sessions' records and the plan that goes on.
RECORDS, PLANS = 3, 1

# What the client, and other programs, send in a person's place.
NOT_A_PERSONS = (
    *("/", "<task-notification", "<command-", "<local-command", "<bash-", "<teammate-message"),
    *("<system-reminder", "[Request interrupted", "This session is being continued"),
)

# Entries of the journal that wait. With more no run has taken any in for months: its index is old, too.
MAX_WAITING = 1_000

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
    if not choices.HookSettings(home, project_id).is_on("recall.at_prompt", True):
        return None
    staging = os.path.join(home, "staging")
    if _is_full(os.path.join(staging, "journal")):
        return None
    seen = shown.read(staging, session_id)
    seen.prompts += 1
    matches = notes_for(index, project_id, prompt, session_id, seen)
    for note in matches:
        seen.add(note.id, note.shown, note.tokens)
    if matches:
        seen.tokens += notes.FRAME_TOKENS
    if matches or seen.prompts == 1:
        shown.save_record(staging, session_id, seen)
    if not matches:
        return None
    shown_text = "\n".join([notes.FRAME, *(text for note in matches for text in (note.line, *note.shown))])
    _write_entry(staging, project_id, sorted(echo.fingerprints_of(shown_text)), now_ns)
    context = brief.visible_text("\n".join([notes.FRAME, *(note.line for note in matches)]))
    inner = {"hookEventName": "UserPromptSubmit", "additionalContext": context}
    return json.dumps({"hookSpecificOutput": inner}).encode()


def is_typed(prompt: str) -> bool:
    """Return whether a prompt is a person's, and says anything."""
    text = prompt.strip()
    return bool(text) and not text.startswith(NOT_A_PERSONS)


def notes_for(
    path: str, project_id: str, prompt: str, session_id: str, seen: shown.ShownRecord
) -> list[notes.Note]:
    """Return the notes for a prompt out of the index at `path`; none if another layout, or damaged, is."""
    import sqlite3  # only here: most of what is no question ends before

    # Read without locks, a file that a run writes meanwhile may be read in two states: once more, then.
    for _ in range(2):
        before = file_state(path)
        try:
            connection = open_index(path)
            try:
                matches = _notes_in(connection, project_id, prompt, session_id, seen)
            finally:
                connection.close()
        except (sqlite3.Error, ValueError, KeyError, TypeError):
            matches = []
        if file_state(path) == before:
            return matches
    return []


def _notes_in(
    connection: sqlite3.Connection, project_id: str, prompt: str, session_id: str, seen: shown.ShownRecord
) -> list[notes.Note]:
    if layout_version(connection) != SEARCH_VERSION:
        return []
    settings, scopes = read_settings(connection), [project_id, GLOBAL_PART]
    budget = _budget(settings, seen)
    if budget <= 0:
        return []
    select = "select memory_id, mark from marks where scope = ?"
    marks = dict(connection.execute(select, (project_id,)))
    kind = asks_for_records(prompt, settings)
    if kind:
        rows = outcome_records(connection, [project_id], limit=RECORDS, only_open=kind == "open")
        plans = rows_of_state(connection, index_parts(connection, [project_id], "memories"), "progress")
        plans = sorted(filter(is_shown, plans), key=lambda row: (-(row["updated_at"] or 0), row["memory_id"]))
        matches = notes.record_notes([*rows, *plans[:PLANS]], budget, marks=marks, is_known=seen.is_known)
        if matches:
            return matches
    if not has_topic(prompt, settings):
        return []
    question = SearchQuestion(prompt, settings, lambda words: ranks_in(connection, words))
    results = find(connection, scopes, question, limit=MOST_RESULTS, by_stretch=False, by_part=True)
    known = set(seen.ids)
    return notes.note_lines(
        [result for result in results if result.id not in known],
        budget,
        question,
        commands=[
            row
            for row in commands(connection, [project_id], question, limit=MOST_COMMANDS)
            if row["passage_id"] not in known
        ],
        session_id=session_id,
        marks=marks,
        is_known=seen.is_known,
    )


def _budget(settings: SearchSettings, seen: shown.ShownRecord) -> int:
    """Return how many tokens of notes this prompt may bring, less what their frame takes."""
    numbers = settings.numbers
    most = numbers["first_prompt_tokens" if seen.prompts == 1 else "later_prompt_tokens"]
    return int(min(most, numbers["session_prompt_tokens"] - seen.tokens)) - notes.FRAME_TOKENS


def _is_full(journal: str) -> bool:
    try:
        return len(os.listdir(journal)) >= MAX_WAITING
    except FileNotFoundError:
        return False


def _write_entry(staging: str, project_id: str, marks: list[str], now_ns: int) -> None:
    """Note in the journal what was told, as a recall that reinforces nothing: nobody asked for it."""
    seconds, rest_ns = divmod(now_ns, 1_000_000_000)
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest_ns // 1000:06d}+00:00"
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
