"""Layers 1 to 3: what the tool calls, the prose and the assistant's own tags of a session say (spec 5)."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

import pyarrow as pa

from cortex.transforms.extract.acceptance import agreed_candidates
from cortex.transforms.extract.choices import choice_candidates
from cortex.transforms.extract.failed_calls import error_candidates
from cortex.transforms.extract.git import git_candidates
from cortex.transforms.extract.ground.candidate import Candidate, Turn
from cortex.transforms.extract.ground.extractor import EXTRACTOR_VERSION
from cortex.transforms.extract.ground.languages import languages_of
from cortex.transforms.extract.ground.lexicon import Lexicon
from cortex.transforms.extract.ground.settled import FORGOTTEN, NOTHING_SETTLED, Settled
from cortex.transforms.extract.leaders import is_led_by_person, with_prompts_of_person
from cortex.transforms.extract.outcome import outcome_candidates
from cortex.transforms.extract.plans import plan_candidates
from cortex.transforms.extract.prose import prose_candidates
from cortex.transforms.extract.structural import structural_candidates
from cortex.transforms.extract.tags import tag_candidates
from cortex.transforms.extract.typed import category_of, typed_candidates, without_taken_back
from cortex.transforms.identity import event_id
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EVENTS
from cortex.transforms.transcripts.threads import deduplicated, mark_rewound

__all__ = ["extract_events", "session_candidates", "threads_by_session"]

# Columns the layers read; the others need not be turned into Python values.
READ_COLUMNS = [
    "turn_id", "project_id", "session_id", "agent_id", "file", "line", "block", "kind", "said_at", "text",
    "tool_name", "tool_use_id", "tool_input", "tool_status", "trust", "git_branch",
]  # fmt: skip


def extract_events(turns: pa.Table, policy: Policy, settled: Settled = NOTHING_SETTLED) -> pa.Table:
    """
    Return the EVENTS that layers 1 to 3 see in whole sessions, ordered by event_id.

    Takes TURNS, all rows of each session, in any order. Rewound turns give nothing, repeated ones nothing
    twice. Of turns that are `settled` the rows stay as they were.
    """
    lexicon = Lexicon.of(policy)
    rows: dict[str, dict[str, object]] = {}
    for session in threads_by_session(turns):
        candidates = [each for each in session_candidates(session, lexicon) if each.text.strip()]
        if not settled.turns.isdisjoint(turn["turn_id"] for thread in session for turn in thread):
            kept = [
                row
                for thread in session
                for turn in thread
                for row in settled.rows_of(turn["turn_id"], turn["session_id"])
            ]
            rows.update((str(row["event_id"]), row) for row in kept)
            candidates = _new_candidates(candidates, session, settled)
        for candidate in candidates:
            row = _event_row(candidate, policy)
            rows.setdefault(str(row["event_id"]), row)
    return EVENTS.of([rows[key] for key in sorted(rows)])


def _new_candidates(
    candidates: Sequence[Candidate], session: Sequence[Sequence[Turn]], settled: Settled
) -> list[Candidate]:
    """Return the candidates that rest on a line said since, and on no words that were forgotten."""
    new_lines = {
        (turn["file"], turn["line"])
        for thread in session
        for turn in thread
        if turn["turn_id"] not in settled.turns
    }
    return [
        candidate
        for candidate in candidates
        if FORGOTTEN not in candidate.text
        and any((candidate.turn["file"], line) in new_lines for line in candidate.lines)
    ]


def session_candidates(threads: Sequence[Sequence[Turn]], lexicon: Lexicon) -> list[Candidate]:
    """
    Return what all layers see in one session, given the turns of each of its threads in order.

    A session that no person leads leaves a trace of what was done, and memories only of what it tagged.
    """
    lexicon = lexicon.speaking(languages_of(threads, lexicon.small_words))
    main = [thread for thread in threads if thread[0]["agent_id"] is None]
    if main and not any(is_led_by_person(thread) for thread in main):
        traces = [trace for thread in threads for trace in structural_candidates(_conversation(thread))]
        tagged = [tag for thread in threads for tag in tag_candidates(_conversation(thread))]
        return [trace for trace in traces if trace.memory_type is None] + tagged
    return [
        candidate
        for thread in threads
        for candidate in (
            _of_main_thread(with_prompts_of_person(thread), lexicon)
            if thread[0]["agent_id"] is None
            else _of_subagent(thread, lexicon)
        )
    ]


def _of_main_thread(thread: Sequence[Turn], lexicon: Lexicon) -> list[Candidate]:
    turns = _conversation(thread)
    agreed = list(agreed_candidates(turns, lexicon.phrases))
    # "2, but off by default" says by itself nothing that the proposal does not say.
    answers = {id(candidate.turn) for candidate in agreed}
    typed = typed_candidates([turn for turn in turns if id(turn) not in answers], lexicon)
    persons = [*choice_candidates(turns, lexicon.phrases), *agreed, *typed]
    return [
        *outcome_candidates(thread, lexicon.phrases),
        *structural_candidates(turns),
        *tag_candidates(turns),
        *plan_candidates(turns, lexicon.phrases),
        *git_candidates(turns),
        *error_candidates(turns),
        *without_taken_back(persons, turns, lexicon),
        *prose_candidates(turns, lexicon),
    ]


def _of_subagent(thread: Sequence[Turn], lexicon: Lexicon) -> list[Candidate]:
    """Return what a subagent's calls and tags say; it reports to the main thread, which says what matters."""
    turns = _conversation(thread)
    return [
        *structural_candidates(turns),
        *choice_candidates(turns, lexicon.phrases),
        *tag_candidates(turns),
    ]


def _conversation(thread: Sequence[Turn]) -> list[Turn]:
    """Return the turns of person and assistant: what the client sums up and programs ask are left out."""
    return [turn for turn in thread if turn["kind"] not in ("summary", "recap", "program")]


def threads_by_session(turns: pa.Table) -> Iterator[list[list[Turn]]]:
    """Yield each session as its threads: the turns of one file and agent, in the file's order."""
    withdrawn = mark_rewound(turns)
    sessions: dict[tuple[str, str], dict[tuple[str, str], list[Turn]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for turn in deduplicated(turns).select(READ_COLUMNS).to_pylist():
        if turn["turn_id"] not in withdrawn and turn["kind"] != "thinking":
            threads = sessions[turn["project_id"], turn["session_id"]]
            threads[turn["agent_id"] or "", turn["file"]].append(turn)
    for _, threads in sorted(sessions.items()):
        yield [thread for _, thread in sorted(threads.items())]


def _event_row(candidate: Candidate, policy: Policy) -> dict[str, object]:
    turn = candidate.turn
    sure = candidate.confidence
    return {
        "event_id": event_id(candidate.event_type, candidate.layer, str(turn["turn_id"]), candidate.text),
        "project_id": turn["project_id"],
        "session_id": turn["session_id"],
        "event_type": candidate.event_type,
        "memory_type": candidate.memory_type,
        "category": category_of(candidate, policy),
        "text": candidate.text,
        "reason": candidate.reason,
        "rejected": candidate.rejected,
        "subject": candidate.subject,
        "step_status": candidate.step_status,
        "files": list(candidate.files),
        "confidence": policy.confidence(candidate.source) if sure is None else sure,
        "salience": policy.salience(candidate.event_type),
        "trust": candidate.trust,
        "layer": candidate.layer,
        "turn_id": turn["turn_id"],
        "file": turn["file"],
        "lines": list(dict.fromkeys(candidate.lines)),
        "said_at": _spoken_at(candidate),
        "git_branch": turn["git_branch"],
        "git_commit": candidate.git_commit,
        "extractor_version": EXTRACTOR_VERSION,
    }


def _spoken_at(candidate: Candidate) -> datetime | None:
    """Return when a candidate was said; of things said in one breath each a microsecond after the last."""
    said_at: datetime | None = candidate.turn["said_at"]
    return said_at and said_at + timedelta(microseconds=candidate.position)
