"""Layers 1 to 3: what the tool calls, the prose and the assistant's own tags of a session say (spec 5)."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import pyarrow as pa

from cortex.transforms.extract.candidate import Candidate, Turn
from cortex.transforms.extract.choices import choice_candidates
from cortex.transforms.extract.errors import error_candidates
from cortex.transforms.extract.git import git_candidates
from cortex.transforms.extract.languages import languages_of
from cortex.transforms.extract.leaders import is_led_by_person, with_prompts_of_person
from cortex.transforms.extract.lexicon import Lexicon
from cortex.transforms.extract.outcome import outcome_candidates
from cortex.transforms.extract.overturned import with_overturned
from cortex.transforms.extract.plans import plan_candidates
from cortex.transforms.extract.prose import prose_candidates
from cortex.transforms.extract.recaps import recap_candidates
from cortex.transforms.extract.rows import event_row
from cortex.transforms.extract.select import Budget, Taken, confidences, weights_of
from cortex.transforms.extract.settled import (
    FORGOTTEN,
    NOTHING_SETTLED,
    Settled,
    is_shown,
    rival_of,
)
from cortex.transforms.extract.structural import structural_candidates
from cortex.transforms.extract.tags import tag_candidates
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
    twice. Within a session at most `session_memories_max` memories of `session_chars_max` characters have
    a confidence of `shown_min_confidence` or more; others are kept and never shown. Of turns that are
    `settled` the rows stay as they were chosen once, and what is new in their sessions competes with them
    for the budget.
    """
    lexicon, weights, budget = Lexicon.of(policy), weights_of(policy), Budget.of(policy)
    rows: dict[str, dict[str, object]] = {}
    for session in threads_by_session(turns):
        candidates = [
            candidate for candidate in session_candidates(session, lexicon) if candidate.text.strip()
        ]
        taken = Taken()
        if not settled.forgotten.keys().isdisjoint(turn["turn_id"] for thread in session for turn in thread):
            kept = _kept(session, settled)
            rows.update((str(row["event_id"]), row) for row in kept)
            candidates = _new_candidates(candidates, session, settled)
            taken = _taken(kept, session, settled, budget.least_shown)
        for candidate, confidence in zip(
            candidates, confidences(candidates, budget, weights, taken), strict=True
        ):
            row = event_row(candidate, confidence, policy)
            rows.setdefault(str(row["event_id"]), row)
    return EVENTS.of([rows[key] for key in sorted(rows)])


def _kept(session: Sequence[Sequence[Turn]], settled: Settled) -> list[dict[str, object]]:
    """Return the rows of EVENTS that stay as they are, of the turns of one session."""
    return [
        row
        for thread in session
        for turn in thread
        for row in settled.rows_of(turn["turn_id"], turn["session_id"])
    ]


def _new_candidates(
    candidates: Sequence[Candidate], session: Sequence[Sequence[Turn]], settled: Settled
) -> list[Candidate]:
    """Return the candidates that rest on a line said since, and on no words that were forgotten."""
    new_lines = {
        (turn["file"], turn["line"])
        for thread in session
        for turn in thread
        if turn["turn_id"] not in settled.forgotten
    }
    return [
        candidate
        for candidate in candidates
        if FORGOTTEN not in candidate.text
        and any((candidate.turn["file"], line) in new_lines for line in candidate.lines)
    ]


def _taken(
    kept: Sequence[dict[str, object]], session: Sequence[Sequence[Turn]], settled: Settled, least_shown: float
) -> Taken:
    names = {turn["turn_id"] for thread in session for turn in thread}
    gaps = sum(settled.forgotten.get(name, 0) for name in names)
    return Taken(tuple(rival_of(row) for row in kept if is_shown(row, least_shown)), gaps)


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
    seen = [
        *structural_candidates(turns),
        *choice_candidates(turns, lexicon.phrases),
        *tag_candidates(turns),
        *plan_candidates(turns, lexicon),
        *git_candidates(turns, lexicon),
        *error_candidates(turns, lexicon),
        *prose_candidates(turns, lexicon),
        *recap_candidates(thread, lexicon),
    ]
    return [*outcome_candidates(thread, lexicon.phrases), *with_overturned(seen, turns, lexicon)]


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
