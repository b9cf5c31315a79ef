"""What is worth remembering: what a text lacks to be a fact, to be a lesson, or to be read on its own."""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from cortex.transforms.policy import Policy
from cortex.transforms.redaction.redact import kinds_of_secret
from cortex.transforms.search import unspaced_runs
from cortex.transforms.words.facts import WORD, Fact, Vocabulary, may_be_same, word_similarity
from cortex.transforms.words.sentences import nested
from cortex.transforms.words.slots import SlotParser, are_opposed

SECRET_MARK = re.compile(r"\[REDACTED:[a-z0-9-]+\]")
_LETTER = re.compile(r"[^\W\d_]")
# Two characters of Chinese or Japanese, or syllables of Korean, are a word; four can be a statement.
_MIN_UNSPACED = 4


@dataclass(frozen=True)
class Known:
    """A memory that says what a new text says; `says_more` if the text adds words to it."""

    memory_id: str
    memory_type: str
    text: str
    says_more: bool


def flaw_of(text: str, policy: Policy) -> str:
    """
    Return what keeps a redacted `text` from being a fact, as a clause; empty if nothing does.

    A fact has two words, one of which carries a topic, and is not a question alone. Words are those of any
    language: known are only the few that say nothing (filler_words.csv, query_words.csv, flaws.csv).
    """
    words = [word.rstrip("./:'’-").casefold() for word in WORD.findall(SECRET_MARK.sub(" ", text))]
    words = [word for word in words if word]
    telling = [word for word in words if not _is_filler(word, policy)]
    if SECRET_MARK.search(text) and not telling:
        return "the text is only a secret, which Cortex does not keep"
    if not any(_LETTER.search(word) for word in words):
        return "the text has no word"
    if not telling:
        return "its words say nothing by themselves"
    if _is_question(text, policy):
        return "the text is a question"
    is_long_run = any(len(run) >= _MIN_UNSPACED for run in unspaced_runs(text))
    return "" if len(set(words)) > 1 or is_long_run else "a single word is not a statement"


def known_as(
    text: str, memories: pa.Table, policy: Policy, source_types: Collection[str] = ("explicit",)
) -> Known | None:
    """
    Return the memory among the active ones of MEMORIES that says what `text` says, or None.

    Those of `source_types` are compared, by default what was said on purpose.

    The nearest counts, the first by id among equals. They say the same where one holds the other's words, up
    to `remember_word_likeness` of all words of both, and no number, name, negation or word differs.
    """
    is_compared = pc.field("source_type").isin(pa.array(sorted(source_types), pa.string()))
    rows = memories.filter((pc.field("status") == "active") & is_compared)
    vocabulary, parser = Vocabulary.of(policy), SlotParser.of(policy)
    new, floor = vocabulary.fact(text), policy.threshold("remember_word_likeness")
    matches: list[tuple[float, str, Known]] = []
    for row in rows.select(["memory_id", "memory_type", "text"]).to_pylist():
        old = vocabulary.fact(row["text"])
        is_like = word_similarity(new, old) >= floor and _agree(new, old, vocabulary)
        if is_like and not are_opposed(parser.stems_of(text), parser.stems_of(row["text"])):
            known = Known(row["memory_id"], row["memory_type"], row["text"], _adds(new, old))
            matches.append((-word_similarity(new, old), row["memory_id"], known))
    return min(matches, key=lambda each: each[:2])[2] if matches else None


def _agree(a: Fact, b: Fact, vocabulary: Vocabulary) -> bool:
    return (
        nested(a.word_set, b.word_set)
        and nested(a.numbers, b.numbers)
        and nested(a.names - b.contrasts, b.names - a.contrasts)
        and may_be_same(a, b, vocabulary)
    )


def _adds(new: Fact, old: Fact) -> bool:
    # A name is the same word with backticks and without.
    names = new.names - old.contrasts
    return not (new.word_set <= old.word_set and new.numbers <= old.numbers and names <= old.names)


def _is_filler(word: str, policy: Policy) -> bool:
    fillers = set(policy.tables["filler_words"]["word"].to_pylist())
    dropped = set(policy.tables["query_words"]["word"].to_pylist())
    return word in fillers or word in dropped or any(p.search(word) for p in _patterns("keys", policy))


def _is_question(text: str, policy: Policy) -> bool:
    return any(pattern.search(text.strip()) for pattern in _patterns("question", policy))


def _patterns(flaw: str, policy: Policy) -> list[re.Pattern[str]]:
    rows = policy.tables["flaws"].to_pylist()
    return [re.compile(row["pattern"], re.IGNORECASE) for row in rows if row["flaw"] == flaw]


# -- Whether a line can be read without its session, and the rewording that lets it (spec 11.2).

_MARK_ALONE = re.compile(r"\([^()]*\)\.?$")  # "(since changed)", parted from what was changed
_QUESTION = re.compile(r"[?？][\"'”’)]*$")
_MARK = re.compile(r"[`*\"'“”‘’(\s]+")
# The answer to a question that was put with options; question and choice are read together.
_ANSWERED = re.compile(r"[?？].* User chose\b|^For [^:]{3,120}: ")
# Joins what one said to what the other answered; between names of code it is an arrow.
_GLUE = re.compile(r"[.!?…)] → ")


def brief_wording(text: str, policy: Policy) -> str:
    """Return a statement without words that tie it to the talk it was part of; at least half of it stays."""
    for pattern, replacement in _self_contained_patterns(policy, "reword"):
        shorter = pattern.sub(replacement, text, count=1)
        if shorter != text and 2 * len(shorter) >= len(text):
            text = shorter[:1].upper() + shorter[1:] if shorter[:1].isascii() else shorter
    return text


def reason_not_alone(text: str, policy: Policy, *, is_persons: bool = False) -> str:
    """
    Return why a statement says nothing to one who was not there, or nothing if it stands alone.

    What an assistant was about to do is over; a person (`is_persons`) who says "I prefer" states a wish.
    """
    bare = _MARK.sub(" ", text, count=1).strip() if _MARK.match(text) else text
    if not bare or bare.endswith(":") or _MARK_ALONE.match(text):
        return "a heading without what it heads"
    if text.endswith(("…", "...")):
        return "cut off in the middle of a statement"
    if _QUESTION.search(bare):
        return "a question without its answer"
    if _ANSWERED.search(bare):
        return ""
    if _GLUE.search(bare):
        return "two speakers' words glued together"
    if any(pattern.match(bare) for pattern, _ in _self_contained_patterns(policy, "leans")):
        return f"leans on what was said before it: opens with “{_opening(bare)}”"
    if not is_persons and any(
        pattern.match(bare) for pattern, _ in _self_contained_patterns(policy, "speaks")
    ):
        return f"talk of the session: opens with “{_opening(bare)}”"
    if not is_persons and any(
        pattern.search(bare) for pattern, _ in _self_contained_patterns(policy, "talks")
    ):
        return "tells what the assistant was about to do"
    return ""


def _opening(text: str) -> str:
    return " ".join(text.split()[:2])[:24]


def _self_contained_patterns(policy: Policy, use: str) -> list[tuple[re.Pattern[str], str]]:
    return policy.derived(_patterns_by_use)[use]


def _patterns_by_use(policy: Policy) -> dict[str, list[tuple[re.Pattern[str], str]]]:
    patterns: dict[str, list[tuple[re.Pattern[str], str]]] = defaultdict(list)
    for row in policy.rows["brief_wording"].values():
        pattern = re.compile(str(row["pattern"]), re.IGNORECASE)
        patterns[str(row["use"])].append((pattern, str(row["replacement"] or "")))
    return patterns


# -- What may be learned without a person who looks at it: the quality gate of `learn`.


def flaw_of_lesson(text: str, policy: Policy, word_ranks: Mapping[str, int]) -> str:
    """
    Return what keeps a text from being learned, as a clause; empty if nothing does.

    Stricter than `flaw_of`: a lesson is written by a program, and nobody looks again. It holds no secret at
    all, has `learn_words_min` words and can be read alone. It names something: a name, a number, or a word
    that is not among the `learn_common_words` most frequent of English (`word_ranks`: places from 1).
    """
    if kinds := kinds_of_secret(text):
        return f"the text holds a secret ({', '.join(sorted(set(kinds)))})"
    if SECRET_MARK.search(text):
        return "the text holds a secret"
    if flaw := flaw_of(text, policy):
        return flaw
    words = [word.rstrip("./:'’-").casefold() for word in WORD.findall(text)]
    if not unspaced_runs(text):
        if len(words) < policy.threshold("learn_words_min"):
            return "the text is too short to be a statement"
        if not _names_something(words, policy, word_ranks):
            return "the text names nothing that it is about"
    return reason_not_alone(text, policy, is_persons=True)


def _names_something(words: Collection[str], policy: Policy, word_ranks: Mapping[str, int]) -> bool:
    common = policy.threshold("learn_common_words")
    dropped = set(policy.tables["query_words"]["word"].to_pylist())
    topics = (word for word in words if word and word not in dropped)
    return any(word_ranks.get(word, common + 1) > common for word in topics)
