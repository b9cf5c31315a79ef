"""All that a project holds in one request: what no longer holds, what says the same, what is told next."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cortex.transforms.identity import content_id
from cortex.transforms.memory.fold import memory_id
from cortex.transforms.memory.link import Pairs
from cortex.transforms.memory.validity import Ending
from cortex.transforms.policy import Policy
from cortex.transforms.redaction.redact import kinds_of_secret, redact
from cortex.transforms.schemas import (
    EPOCH,
    GLOBAL_SCOPE,
    MEMORIES,
    PROJECT_PURPOSE,
    TRUSTS,
    UNSURE_BY_MODEL,
    Row,
)
from cortex.transforms.words.sentences import long_words, shortened
from cortex.transforms.writer.answer import FACT_KINDS, SessionTurns, WrittenFact, parsed_answer, within_frame
from cortex.transforms.writer.pairs import (
    PAIR_COLUMNS,
    closing_edge,
    in_place_of_pairs,
    is_written,
    within_line,
)
from cortex.transforms.writer.rendering import estimated_tokens
from cortex.transforms.writer.request import ModelRequest, Prompt, Reply
from cortex.transforms.writer.written import LAYER_PREFIX, SESSION_PURPOSE, answer_row, statement_of

# -- What a language model names its facts by: subject, summary and tags, as far as the facts bear them out.

SHORT_FORM_COLUMNS = ["purpose", "text", "asked_at", "request_id"]
SUBJECT_CHARS, SUMMARY_CHARS, TAG_CHARS, TAG_WORDS, TAGS_MOST = 60, 120, 40, 3, 5
# With fewer of its words in the fact a summary says something else.
BORNE_OUT_SHARE = 0.6
_TAG = re.compile(rf"[\w .+#/@-]{{1,{TAG_CHARS}}}")


@dataclass(frozen=True)
class ShortForm:
    """A fact's subject and summary, empty if the fact does not bear them out, and words to search by."""

    subject: str
    summary: str
    tags: tuple[str, ...]


def with_short_forms(memories: pa.Table, replies: pa.Table) -> pa.Table:
    """
    Return MEMORIES with subject, summary and tags of the facts that a language model wrote.

    Takes REPLIES of their project. A memory that nobody but such a model worded has those of the last answer
    that states it; an edited or merged one says something else, and has none.
    """
    forms = dict(_forms(memories, replies))
    if not forms:
        return memories
    form_by_row = [forms.get(str(name)) for name in memories["memory_id"].to_pylist()]
    known_tags: list[list[str]] = [list(known or ()) for known in memories["tags"].to_pylist()]
    tags = [
        list(dict.fromkeys([*known, *(form.tags if form else ())]))
        for known, form in zip(known_tags, form_by_row, strict=True)
    ]
    for name, given in (
        ("subject", [form.subject or None if form else None for form in form_by_row]),
        ("summary", [form.summary or None if form else None for form in form_by_row]),
        ("tags", tags),
    ):
        field = MEMORIES.arrow.field(name)
        at = memories.schema.get_field_index(name)
        memories = memories.set_column(at, field, pa.array(given, field.type))
    return memories


def _forms(memories: pa.Table, replies: pa.Table) -> Iterator[tuple[str, ShortForm]]:
    columns = ["memory_id", "project_id", "source_type", "evidence"]
    is_said = pc.field("source_type") == "conversation"
    written = {
        row["memory_id"]: row["project_id"]
        for row in memories.filter(is_said).select(columns).to_pylist()
        if any(place["layer"].startswith(LAYER_PREFIX) for place in row["evidence"])
    }
    rows = replies.filter(pc.field("purpose") == SESSION_PURPOSE).to_pylist() if written else []
    scopes = sorted(set(written.values()))
    for row in sorted(rows, key=lambda row: (row["asked_at"], row["request_id"])):
        answer = parsed_answer(row["text"])
        for fact in answer.facts if answer else ():
            _, memory_type = FACT_KINDS.get(fact.fact_type, FACT_KINDS["context"])
            for scope in scopes:
                name = memory_id(scope, memory_type, statement_of(fact))
                if name in written:
                    yield name, short_form(fact)


def short_form(fact: WrittenFact) -> ShortForm:
    """Return what a fact may be named by: nothing that its own words do not say."""
    tags = tuple(tag for tag in fact.tags[:TAGS_MOST] if _is_tag(tag))
    subject = _borne_out(fact.subject, SUBJECT_CHARS, fact)
    return ShortForm(subject, _borne_out(fact.summary, SUMMARY_CHARS, fact), tags)


def _is_tag(tag: str) -> bool:
    is_short = _TAG.fullmatch(tag) is not None and len(tag.split()) <= TAG_WORDS
    return is_short and not kinds_of_secret(tag)


def _borne_out(words: str, chars: int, fact: WrittenFact) -> str:
    whole = " ".join((statement_of(fact), fact.why, fact.instead_of))
    evidence = SessionTurns([_turn(whole)])
    own = long_words(words)
    is_short = 0 < len(words) <= chars and not kinds_of_secret(words)
    is_ours = len(own & long_words(whole)) >= BORNE_OUT_SHARE * len(own)
    return words if is_short and is_ours and not evidence.missing(words, [0]) else ""


def _turn(text: str) -> Mapping[str, Any]:
    empty = dict.fromkeys(("tool_name", "tool_input", "git_branch", "said_at", "kind"))
    return {"text": text, **empty}


PROJECT_PROMPT = "project@1"
ANSWER_PARTS = ("over", "same", "contradicts", "tell")
HOWS = ("replaced", "done", "mended")
# Code and what describes it follow from their files.
UNREAD_TYPES = ("code", "code_description")
LINE_COLUMNS = [*PAIR_COLUMNS, "status", "is_pinned"]
COMMIT_CHARS = 160
# More ids than any answer can mean: what comes after them is not looked at.
NAMES_READ = 2_000
# Fewer lines of fewer sessions need no order: a brief holds some twenty.
MIN_LINES, MIN_SESSIONS = 15, 2
# An order that tells fewer of what holds is none: today's choice says more.
MIN_ORDERED, MIN_ORDERED_SHARE = 6, 0.5
_WORD = re.compile(r"\w+")
_NAME_OR_NUMBER = re.compile(r"`[^`]+`|\S*[\d_/]\S*|\b[a-z]+[A-Z]\w*")


@dataclass(frozen=True)
class Commit:
    """A commit of a project: its short hash, its day, its subject."""

    name: str
    committed_at: datetime
    subject: str


@dataclass(frozen=True)
class ProjectRequest:
    """A request about a scope: its memories as numbered from m1 on, its commits as from c1 on."""

    scope: str
    request: ModelRequest
    memories: tuple[Row, ...]
    commits: tuple[Commit, ...]

    @property
    def known(self) -> tuple[str, ...]:
        """The ids of the memories named, in their order."""
        return tuple(str(row["memory_id"]) for row in self.memories)


@dataclass(frozen=True)
class Closing:
    """A memory that no longer holds, by a memory's id or by a commit of an instant, and how."""

    memory_id: str
    by: str
    how: str
    committed_at: datetime | None = None


@dataclass(frozen=True)
class ProjectAnswer:
    """
    What is believed of an answer about a project, by the ids of memories.

    `order` is that in which the next session is told, empty if the answer gave none; `seen` are the
    memories that the request named: what came later is not among them.
    """

    over: tuple[Closing, ...] = ()
    same: tuple[tuple[tuple[str, ...], str], ...] = ()
    contradicts: tuple[tuple[str, str], ...] = ()
    order: tuple[str, ...] = ()
    seen: frozenset[str] = field(default_factory=frozenset)

    def endings(self) -> dict[str, Ending]:
        """Return, by memory id, what ends by a commit."""
        return {
            each.memory_id: Ending(each.committed_at, f"commit {each.by}")
            for each in self.over
            if each.committed_at is not None
        }

    def same_statements(self) -> tuple[Pairs, dict[frozenset[str], str]]:
        """Return the pairs that say the same, by id, and the one text of each group that has one."""
        pairs: Pairs = {}
        for members, _ in self.same:
            ordered = sorted(members)
            pairs |= {(a, b): 1.0 for at, a in enumerate(ordered) for b in ordered[at + 1 :]}
        return pairs, {frozenset(members): text for members, text in self.same if text}


def project_lines(memories: pa.Table) -> list[Row]:
    """
    Return which of a project's MEMORIES and the global ones a request about it names, the oldest first.

    Those that are active, no stranger's, and written by a person or a language model: the rules' words change
    with each release, and the request with them.
    """
    is_told = pc.field("status") == "active"
    is_told &= ~pc.field("memory_type").isin(pa.array(UNREAD_TYPES, pa.string()))
    is_told &= pc.field("trust") != TRUSTS[0]
    rows = memories.filter(is_told).select(LINE_COLUMNS).to_pylist()
    written = (row for row in rows if is_written(row) or row["source_type"] == "consolidation")
    return sorted(written, key=_order)


def is_project_due(lines: Sequence[Row], replies: pa.Table) -> bool:
    """
    Return whether a project holds what no answer about it has seen; takes its REPLIES.

    What a consolidation made of known facts is nothing new. One session was read whole: while few lines come
    from it alone, nothing of it overtakes another and a brief has room for all.
    """
    if len(lines) <= MIN_LINES and len(_numbers(lines)) < MIN_SESSIONS:
        return False
    last = _last_reply(replies, is_believed=False)  # a refusal is an answer too: it is not asked for again
    seen = set(last["known"]) if last else set()
    return any(
        row["memory_id"] not in seen
        for row in lines
        if row["source_type"] != "consolidation" and row["project_id"] != GLOBAL_SCOPE
    )


def project_request(
    scope: str,
    lines: Sequence[Row],
    commits: Sequence[Commit],
    policy: Policy,
    model: str,
    prompt: Prompt,
) -> ProjectRequest:
    """
    Return the request about all that a project holds, and its commits.

    What does not fit into the price tier is left out, the oldest first: what a person wants told stays.
    """
    room = int(policy.threshold("writer_session_tokens_max")) - estimated_tokens(
        prompt.system + prompt.schema
    )
    some, newest = list(lines), sorted(commits, key=lambda each: (each.committed_at, each.name))
    sessions = _numbers(lines)
    shown = {row["memory_id"]: _memory_words(row, sessions) for row in some}
    words = {each.name: _commit_words(each) for each in newest}
    used = sum(estimated_tokens(text) + 4 for text in [*shown.values(), *words.values()])
    for oldest in [row for row in lines if row["source_type"] != "explicit" and not row["is_pinned"]]:
        if used <= room:
            break
        used -= estimated_tokens(shown[oldest["memory_id"]]) + 4
        some.remove(oldest)
    memories, kept = tuple(some), tuple(newest)
    numbered = [
        *((_order(row)[0], f"[m{at}] {shown[row['memory_id']]}") for at, row in enumerate(memories, start=1)),
        *((each.committed_at, f"[c{at}] {words[each.name]}") for at, each in enumerate(kept, start=1)),
    ]
    body = "\n".join(line for _, line in sorted(numbered, key=lambda item: item[0]))
    # What was redacted memory by memory may make a secret side by side.
    content = redact(f"<project>\n{body}\n</project>\n\nNow write the JSON object for this project.")[0]
    tokens = int(policy.threshold("project_output_tokens_max"))
    request = ModelRequest(prompt.purpose, model, prompt.name, prompt.system, content, prompt.schema, tokens)
    return ProjectRequest(scope, request, memories, kept)


def project_row(asked: ProjectRequest, reply: Reply, asked_at: datetime) -> Row:
    """Return the row of REPLIES for the answer about a project; its text holds what was believed of it."""
    row = answer_row(asked.scope, asked.request, reply, asked.known, asked_at)
    return {**row, "text": believed_project(reply.text, asked)}


def believed_project(answer: str, asked: ProjectRequest) -> str:
    """
    Return what is believed of an answer as JSON text by the memories' ids, piece by piece; "" for none.

    Refused are ids that were not given, a line that would close an older one from before it, a closed line
    that closes, groups of several kinds, one text with a word that none of its members has or without a name
    or number of theirs, and an order that tells hardly anything of what holds.
    """
    given = _object(answer)
    if given is None or not all(isinstance(given.get(name), list) for name in ANSWER_PARTS):
        return ""
    named = {f"m{at}": row for at, row in enumerate(asked.memories, start=1)}
    # What holds everywhere is not this project's to close.
    memories = {name: row for name, row in named.items() if row["project_id"] != GLOBAL_SCOPE}
    commits = {f"c{at}": each for at, each in enumerate(asked.commits, start=1)}
    over = _believed_over(_items(given, "over"), memories, commits)
    gone = {each["line"] for each in over if _type_of(memories, each["line"]) != "outcome"}
    same = _believed_same(_items(given, "same"), memories, gone)
    order = _believed_order(_items(given, "tell"), named, gone, [group["lines"] for group in same])
    contradicts = _believed_pairs(_items(given, "contradicts"), memories, gone)
    believed = {"over": over, "same": same, "contradicts": contradicts, "tell": order}
    return _as_text(believed)


def _type_of(memories: Mapping[str, Row], memory_id: str) -> str:
    return next(str(row["memory_type"]) for row in memories.values() if row["memory_id"] == memory_id)


def project_answer(replies: pa.Table, until: datetime | None = None) -> ProjectAnswer | None:
    """Return the last answer about a project in its REPLIES, of those until an instant; None for none."""
    row = _last_reply(replies, until)
    given = _object(row["text"]) if row else None
    if row is None or given is None:
        return None
    return ProjectAnswer(
        over=tuple(
            Closing(each["line"], each["by"], each["how"], _instant(each.get("at")))
            for each in _items(given, "over")
        ),
        same=tuple((tuple(each["lines"]), str(each["text"])) for each in _items(given, "same")),
        contradicts=tuple((each[0], each[1]) for each in _items(given, "contradicts")),
        order=tuple(_items(given, "tell")),
        seen=frozenset(row["known"]),
    )


def without_memories(row: Row, gone: Collection[str]) -> Row:
    """Return a row of a project's answer without what names one of the memories `gone`."""
    given, lost = _object(row["text"]), set(gone)
    kept = {**row, "known": [name for name in row["known"] if name not in lost]}
    if given is None:
        return kept
    left = {
        "over": [each for each in given["over"] if lost.isdisjoint((each["line"], each["by"]))],
        "same": [each for each in given["same"] if lost.isdisjoint(each["lines"])],
        "contradicts": [pair for pair in given["contradicts"] if lost.isdisjoint(pair)],
        "tell": [name for name in given["tell"] if name not in lost],
    }
    return {**kept, "text": _as_text(left)}


def _as_text(believed: Mapping[str, Any]) -> str:
    return json.dumps(believed, separators=(",", ":"), ensure_ascii=False)


def with_project_answer(edges: pa.Table, memories: pa.Table, answer: ProjectAnswer) -> pa.Table:
    """
    Return EDGES of a scope as the answer about it says; takes its MEMORIES.

    What another memory closes is a `contradicts` from that one, proposed to a person; two at odds of which
    none is shown to hold are a person's to settle. Both ends are active, and the closed one has not been said
    again since. What a person settled, and what says more than that they are near, stays.
    """
    rows = {row["memory_id"]: row for row in memories.select(_END_COLUMNS).to_pylist()}
    active = {name: row for name, row in rows.items() if row["status"] == "active"}
    new_edges = []
    for closing in answer.over:
        newer, older = active.get(closing.by), active.get(closing.memory_id)
        if newer and older and _recency(older) <= _recency(newer):
            new_edges.append(closing_edge(newer, older))
    for a, b in answer.contradicts:
        if a in active and b in active:
            new_edges.append(_unsure_edge(active[a], active[b]))
    return in_place_of_pairs(edges, new_edges)


def words_are_of(text: str, members: Iterable[str]) -> bool:
    """
    Return whether a text has no word that none of its members has, and each name and number of theirs.

    >>> words_are_of("Use SQLite in WAL mode.", ["Use SQLite.", "SQLite in WAL mode"])
    True
    >>> words_are_of("Use SQLite, then run curl.", ["Use SQLite."])
    False
    """
    sources = list(members)
    known = {word for member in sources for word in _words(member)}
    named = {name.strip(".,;:()") for member in sources for name in _NAME_OR_NUMBER.findall(member)}
    return bool(text) and set(_words(text)) <= known and all(name in text for name in named)


# Parts of a request


def _order(row: Row) -> tuple[datetime, datetime, str]:
    return _recency(row), row["created_at"] or EPOCH, row["memory_id"]


def _session_of(row: Row) -> str:
    return str(row["evidence"][0]["session_id"]) if row["evidence"] else ""


def _numbers(lines: Sequence[Row]) -> dict[str, int]:
    """Return the sessions that lines come from, numbered from 1 in the order of their first line."""
    named = dict.fromkeys(session for row in lines if (session := _session_of(row)))
    return {session: number for number, session in enumerate(named, start=1)}


def _memory_words(row: Row, sessions: Mapping[str, int]) -> str:
    news = (words if words and words not in row["text"] else "" for words in (row["reason"], row["rejected"]))
    session = _session_of(row)
    notes = [f"{row['updated_at']:%Y-%m-%d}" if row["updated_at"] else "day unknown"]
    notes += ["all projects"] if row["project_id"] == GLOBAL_SCOPE else []
    notes += [f"session {sessions[session]}"] * bool(session)
    speaker = "person, on purpose" if row["source_type"] == "explicit" else row["trust"]
    return f"{', '.join(notes)}, {row['memory_type']}, said by {speaker}: {within_line(row['text'], *news)}"


def _commit_words(commit: Commit) -> str:
    words = shortened(within_frame(commit.subject), COMMIT_CHARS)
    return f"{commit.committed_at:%Y-%m-%d}, commit {commit.name}: {words}"


# What is believed


def _object(text: str) -> dict[str, Any] | None:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


def _items(given: Mapping[str, Any], name: str) -> list[Any]:
    items = given.get(name)
    return items[:NAMES_READ] if isinstance(items, list) else []


def _name(value: object) -> str:
    return value.strip(" []") if isinstance(value, str) else ""


def _believed_over(
    items: Iterable[Any], memories: Mapping[str, Row], commits: Mapping[str, Commit]
) -> list[dict[str, Any]]:
    over: dict[str, dict[str, Any]] = {}
    for item in items:
        if not isinstance(item, dict) or item.get("how") not in HOWS:
            continue
        line, by = _name(item.get("line")), _name(item.get("by"))
        older, newer, commit = memories.get(line), memories.get(by), commits.get(by)
        if older is None or line == by or line in over:
            continue
        if newer is not None and _recency(older) <= _recency(newer):
            ends = {"line": older["memory_id"], "by": newer["memory_id"], "how": item["how"]}
        elif commit is not None and _recency(older) <= commit.committed_at:
            # Its subject is nobody's memory, and what is to be forgotten is not looked for here.
            at = commit.committed_at.isoformat()
            ends = {"line": older["memory_id"], "by": commit.name, "how": item["how"], "at": at}
        else:
            continue
        over[line] = ends
    # Of two that close each other, said at one moment, neither does.
    pairs = {(ends["line"], ends["by"]) for ends in over.values()}
    return [ends for ends in over.values() if (ends["by"], ends["line"]) not in pairs]


def _believed_same(
    items: Iterable[Any], memories: Mapping[str, Row], gone: Collection[str]
) -> list[dict[str, Any]]:
    taken: set[str] = set(gone)
    groups = []
    for item in items:
        names = item.get("lines") if isinstance(item, dict) else None
        rows = [memories.get(_name(name)) for name in names] if isinstance(names, list) else []
        members = {row["memory_id"]: row for row in rows if row is not None}
        is_one_kind = len({row["memory_type"] for row in members.values()}) == 1
        if len(members) < 2 or None in rows or not is_one_kind or not taken.isdisjoint(members):
            continue
        text = " ".join(item["text"].split()) if isinstance(item.get("text"), str) else ""
        is_ours = words_are_of(text, [row["text"] for row in members.values()]) and not kinds_of_secret(text)
        taken |= members.keys()
        groups.append({"lines": sorted(members), "text": text if is_ours else ""})
    return groups


def _believed_pairs(
    items: Iterable[Any], memories: Mapping[str, Row], gone: Collection[str]
) -> list[list[str]]:
    pairs: dict[tuple[str, ...], list[str]] = {}
    for item in items:
        names = item.get("lines") if isinstance(item, dict) else None
        rows = [memories.get(_name(name)) for name in names] if isinstance(names, list) else []
        ids = sorted({row["memory_id"] for row in rows if row is not None} - set(gone))
        if len(ids) == 2 and len(rows) == 2:
            pairs[tuple(ids)] = ids
    return list(pairs.values())


def _believed_order(
    items: Iterable[Any],
    memories: Mapping[str, Row],
    gone: Collection[str],
    groups: Iterable[Sequence[str]],
) -> list[str]:
    group_of = {name: at for at, members in enumerate(groups) for name in members}
    ordered: list[str] = []
    groups_named: set[int] = set()
    for item in items:
        row = memories.get(_name(item))
        if row is None or row["memory_id"] in gone or row["memory_id"] in ordered:
            continue
        if row["memory_type"] == "outcome":
            continue  # a brief shows the last ones by themselves
        group = group_of.get(row["memory_id"])
        if group is None or group not in groups_named:
            ordered.append(str(row["memory_id"]))
            groups_named |= {group} if group is not None else set()
    facts = [row["memory_id"] for row in memories.values() if row["memory_type"] != "outcome"]
    holding = sum(name not in gone for name in facts)
    return ordered if len(ordered) >= min(MIN_ORDERED, holding * MIN_ORDERED_SHARE) else []


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


# What is kept

_END_COLUMNS = ["memory_id", "project_id", "memory_type", "status", "created_at", "updated_at"]


def _last_reply(replies: pa.Table, until: datetime | None = None, *, is_believed: bool = True) -> Row | None:
    rows = replies.filter(pc.field("purpose") == PROJECT_PURPOSE).to_pylist()
    given = [row for row in rows if until is None or row["asked_at"] <= until]
    given = [row for row in given if row["text"] or not is_believed]
    return max(given, key=lambda row: (row["asked_at"], row["request_id"]), default=None)


def _instant(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _recency(row: Row) -> datetime:
    at: datetime = row["updated_at"] or EPOCH
    return at


def _unsure_edge(a: Row, b: Row) -> Row:
    ends = sorted((a["memory_id"], b["memory_id"]))
    return {
        "edge_id": content_id(*ends, "relates_to"),
        "project_id": a["project_id"],
        "source_id": ends[0],
        "target_id": ends[1],
        "edge_type": "relates_to",
        "strength": 1.0,
        "rule": UNSURE_BY_MODEL,
    }
