"""Layers 1 to 3: what the tool calls, the prose and the assistant's own tags of a session say (spec 5)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa

from cortex.transforms.extract.answers import agreed_candidates, choice_candidates
from cortex.transforms.extract.language.candidate import EXTRACTOR_VERSION, Candidate, Turn, text_of
from cortex.transforms.extract.language.lexicon import Lexicon
from cortex.transforms.extract.language.phrases import languages_of
from cortex.transforms.extract.language.settled import FORGOTTEN, NOTHING_SETTLED, Settled
from cortex.transforms.extract.outcome import outcome_candidates
from cortex.transforms.extract.plans import plan_candidates
from cortex.transforms.extract.prose import prose_candidates, tag_candidates
from cortex.transforms.extract.structural import error_candidates, git_candidates, structural_candidates
from cortex.transforms.extract.user_statements import category_of, typed_candidates, without_taken_back
from cortex.transforms.identity import event_id
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EVENTS, as_polars
from cortex.transforms.words.prompt_injection import injection_reason
from cortex.transforms.words.sentences import share_of_all, words_in

# -- What several lines of a transcript say together: duplicates, rewound branches.


def deduplicated(turns: pa.Table) -> pa.Table:
    """Take TURNS; return TURNS in file order with one row per turn_id, the first by (file, line, block)."""
    order = ["file", "line", "block", "turn_id"]
    # Of the texts there is one copy: a session's may be 100 MB.
    ordered = as_polars(turns.select(order)).with_row_index("place").sort(order)
    return turns.take(ordered.unique("turn_id", keep="first", maintain_order=True)["place"].to_arrow())


def mark_rewound(turns: pa.Table) -> frozenset[str]:
    """
    Take TURNS; return the turn ids that a person went back behind.

    Two prompts of one session and file that follow the same record are a rewind: all from the earlier one
    up to the later one was withdrawn. Prompts that were queued, and words given in answer to a call,
    follow whatever record came before and never begin a branch; nor do slash commands, whose records
    share a parent in early versions. A resumed copy of a prompt is the same prompt.
    """

    import polars as pl

    columns = [
        "file",
        "line",
        "block",
        "turn_id",
        "session_id",
        "kind",
        "tool_use_id",
        "agent_id",
        "parent_uuid",
    ]
    rows = as_polars(turns.select(columns)).sort(columns[:4]).unique(["file", "turn_id"], keep="first")
    is_opening = (
        pl.col("kind").is_in(["prompt", "plan"])
        & pl.col("tool_use_id").is_null()
        & pl.col("agent_id").is_null()
        & pl.col("parent_uuid").is_not_null()
    )
    branches = (
        rows.filter(is_opening)
        .group_by("session_id", "file", "parent_uuid")
        .agg(first_line=pl.col("line").min(), last_line=pl.col("line").max())
        .filter(pl.col("first_line") < pl.col("last_line"))
    )
    withdrawn = rows.join(branches, on=["session_id", "file"]).filter(
        pl.col("line").ge(pl.col("first_line")) & pl.col("line").lt(pl.col("last_line"))
    )
    return frozenset(withdrawn["turn_id"])


# -- Who leads a session: a person, perhaps through a program that drives the client, or a program (spec 5).

# Words that only somebody at the client can give: no program is asked for them.
AT_THE_CLIENT = frozenset(("command", "rejection", "choice", "plan", "shell"))
ASSISTANTS = frozenset(("text", "thinking", "tool_call", "tool_result"))
# A person reads the answer before the next prompt; a program answers within a fraction of a second.
PERSONS_PAUSE = timedelta(seconds=5)
PROGRAMS_PAUSE = timedelta(seconds=2)
# One prompt and its answer are a call; from the second answer to an answer on somebody converses.
MIN_FOLLOW_UPS = 2
# A sent prompt is a person's if it is one paragraph as short as theirs: of 389 typed follow-ups 88 % have so
# many words at most, and 97 % come at a person's pace. What a script asks is mostly a form of its own, or
# carries what somebody else wrote: a pull request, a mail.
MAX_FOLLOW_UP_WORDS = 60
# A program's prompts are one form filled in again and again; "yes" and "go on" are everybody's.
SAME_FORM_SHARE = 0.6
MIN_FORM_WORDS = 4
# What the client or another program reports in a prompt's place.
_REPORT = re.compile(r"<(?:task-notification|teammate-message)")
# Marks, in the turns of a thread, a person's words that a program sent for them.
_SENT = "is_sent"
_OPENING = re.compile(r"<([A-Za-z][\w-]*)>")


def is_led_by_person(thread: Sequence[Turn]) -> bool:
    """
    Return whether a person leads a main thread, given its turns in order.

    A thread without any prompt, such as one whose beginning is cut off, counts as a person's. Prompts marked
    as a program's are a person's where the session goes on with typed ones, or where they converse: each
    follow-up at a reader's pace and in words of its own. Typed ones are a program's where all of several come
    at once.
    """
    if any(turn["kind"] in AT_THE_CLIENT for turn in thread):
        return True
    typed = [turn for turn in thread if turn["kind"] == "prompt"]
    sent = [turn for turn in thread if _is_sent(turn)]
    if typed:
        pauses = _pauses(thread, "prompt")
        return len(pauses) <= MIN_FOLLOW_UPS or max(pauses) >= PROGRAMS_PAUSE
    return not sent or _converses(thread, sent)


def with_prompts_of_person(thread: Sequence[Turn]) -> list[Turn]:
    """Return a person's thread with the words that they sent through a program as prompts of theirs."""
    own = _sent_by_person(thread)
    return [{**as_prompt(turn), _SENT: True} if turn["turn_id"] in own else turn for turn in thread]


def as_prompt(turn: Turn) -> dict[str, Any]:
    """Return what a person sent through a program as the prompt that it is."""
    return {**turn, "kind": "prompt", "trust": "user", "text": without_wrapping(text_of(turn))}


def sent_prompts(turns: pa.Table) -> dict[str, bool]:
    """Return the ids of the prompts that a program sent, and whether each counts as a person's."""
    import pyarrow.compute as pc

    main = turns.filter(pc.is_null(turns["agent_id"]))
    files = main.filter(pc.is_in(main["kind"], pa.array(["program"])))["file"].unique()
    if not len(files):
        return {}
    columns = ["session_id", "file", "line", "block", "turn_id", "agent_id", "kind", "said_at", "text"]
    rows = main.filter(pc.is_in(main["file"], files)).select(columns)
    rows = rows.sort_by([(name, "ascending") for name in columns[:5]])
    sent: dict[str, bool] = {}
    for _, group in groupby(rows.to_pylist(), key=itemgetter("session_id", "file")):
        thread = list(group)
        own = _sent_by_person(thread) if is_led_by_person(thread) else frozenset()
        sent.update((turn["turn_id"], turn["turn_id"] in own) for turn in thread if _is_sent(turn))
    return sent


def is_sent_by_program(turn: Turn) -> bool:
    """Return whether a prompt of `with_prompts_of_person` came through a program."""
    return bool(turn.get(_SENT))


def without_wrapping(text: str) -> str:
    """
    Return a prompt without the blocks in tags that a program put before the person's words.

    >>> without_wrapping("<system_instruction>Work here.</system_instruction> Add tar support.")
    'Add tar support.'
    """
    while opening := _OPENING.match(text):
        _, closing, rest = text.partition(f"</{opening[1]}>")
        if not closing:
            break
        text = rest.lstrip()
    return text


def _is_sent(turn: Turn) -> bool:
    return turn["kind"] == "program" and turn["agent_id"] is None and not _REPORT.match(text_of(turn))


def _sent_by_person(thread: Sequence[Turn]) -> frozenset[str]:
    """
    Return the ids of the prompts in a person's thread that are their words, though a program sent them.

    A long one, or one of several paragraphs, may carry a stranger's; it is the person's where they went on at
    the client themselves and began in a few words of their own.
    """
    sent = [turn for turn in thread if _is_sent(turn)]
    is_at_client = any(turn["kind"] == "prompt" or turn["kind"] in AT_THE_CLIENT for turn in thread)
    is_own = is_at_client and bool(sent) and _is_short(sent[0])
    return frozenset(turn["turn_id"] for turn in sent if is_own or _is_short(turn))


def _is_short(turn: Turn) -> bool:
    """Return whether a sent prompt is one paragraph of few words."""
    text = without_wrapping(text_of(turn)).strip()
    is_paragraph = all(line.strip() for line in text.splitlines())
    return is_paragraph and len(words_in(text)) <= MAX_FOLLOW_UP_WORDS


def _converses(thread: Sequence[Turn], sent: Sequence[Turn]) -> bool:
    pauses = _pauses(thread, "program")
    if not pauses or sorted(pauses)[len(pauses) // 2] < PERSONS_PAUSE:
        return False
    if len(pauses) < MIN_FOLLOW_UPS and not _is_short(sent[-1]):
        return False
    words = [set(words_in(without_wrapping(text_of(turn)))) for turn in sent]
    again = sum(
        any(share_of_all(own, earlier) >= SAME_FORM_SHARE for earlier in words[:at])
        for at, own in enumerate(words)
        if at and len(own) >= MIN_FORM_WORDS
    )
    return again <= (len(words) - 1) / 2


def _pauses(thread: Sequence[Turn], kind: str) -> list[timedelta]:
    """Return the time between the assistant's last sign of life and each later prompt; copies have none."""
    pauses: list[timedelta] = []
    last = None
    for turn in thread:
        if turn["kind"] in ASSISTANTS:
            last = turn["said_at"]
        elif turn["kind"] == kind and last is not None and turn["said_at"] is not None:
            if turn["said_at"] > last:
                pauses.append(turn["said_at"] - last)
            last = None
    return pauses


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
    for turn in deduplicated(turns.select(READ_COLUMNS)).to_pylist():
        if turn["turn_id"] not in withdrawn and turn["kind"] != "thinking":
            threads = sessions[turn["project_id"], turn["session_id"]]
            threads[turn["agent_id"] or "", turn["file"]].append(turn)
    for _, threads in sorted(sessions.items()):
        yield [thread for _, thread in sorted(threads.items())]


def _event_row(candidate: Candidate, policy: Policy) -> dict[str, object]:
    turn = candidate.turn
    refusal = _refusal(candidate, policy)
    sure = policy.confidence("refused") if refusal else candidate.confidence
    return {
        "event_id": event_id(candidate.event_type, candidate.layer, str(turn["turn_id"]), candidate.text),
        "project_id": turn["project_id"],
        "session_id": turn["session_id"],
        "event_type": candidate.event_type,
        "memory_type": candidate.memory_type,
        "category": category_of(candidate, policy),
        "text": candidate.text,
        "reason": f"refused: {refusal}" if refusal else candidate.reason,
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


def _refusal(candidate: Candidate, policy: Policy) -> str:
    """Return why a memory in somebody else's words than the person's is not shown; empty if it may be."""
    if candidate.memory_type is None or candidate.trust == "user":
        return ""
    words = "\n".join((candidate.text, candidate.reason or "", candidate.rejected or ""))
    return injection_reason(words, policy)


def _spoken_at(candidate: Candidate) -> datetime | None:
    """Return when a candidate was said; of things said in one breath each a microsecond after the last."""
    said_at: datetime | None = candidate.turn["said_at"]
    return said_at and said_at + timedelta(microseconds=candidate.position)
