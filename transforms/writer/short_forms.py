"""What a language model names its facts by: subject, summary and tags, as far as the facts bear them out."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cortex.transforms.memory.fold import memory_id
from cortex.transforms.redaction.redact import kinds_of_secret
from cortex.transforms.schemas import MEMORIES
from cortex.transforms.words.scripts import long_words
from cortex.transforms.writer.answer import FACT_KINDS, WrittenFact, parsed_answer
from cortex.transforms.writer.check import SessionTurns
from cortex.transforms.writer.written import LAYER_PREFIX, SESSION_PURPOSE, statement_of

SHORT_FORM_COLUMNS = ["purpose", "text", "asked_at", "request_id"]
SUBJECT_CHARS, SUMMARY_CHARS, TAG_CHARS, TAG_WORDS, TAGS_MOST = 60, 120, 40, 3, 5
# With fewer of its words in the fact a summary says something else.
BORNE_OUT_SHARE = 0.6
_TAG = re.compile(rf"[\w .+#/@-]{{1,{TAG_CHARS}}}")


@dataclass(frozen=True)
class ShortForm:
    """A fact's subject and summary, empty where the fact does not bear them out, and words to search by."""

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
