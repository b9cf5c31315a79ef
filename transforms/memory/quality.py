"""What is worth remembering: what a text lacks to be a fact, and which memory said it on purpose before."""

import re
from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from cortex.transforms.policy import Policy
from cortex.transforms.search.index_text import unspaced_runs
from cortex.transforms.words.facts import WORD, Fact, Vocabulary, has_swapped_word, word_similarity
from cortex.transforms.words.overlap import nested

SECRET_MARK = re.compile(r"\[REDACTED:[a-z0-9-]+\]")
_LETTER = re.compile(r"[^\W\d_]")
# Two characters of Chinese or Japanese, or syllables of Korean, are a word; four can be a statement.
_FEWEST_UNSPACED = 4


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
    is_long_run = any(len(run) >= _FEWEST_UNSPACED for run in unspaced_runs(text))
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
    vocabulary = Vocabulary.of(policy)
    new, floor = vocabulary.fact(text), policy.threshold("remember_word_likeness")
    matches: list[tuple[float, str, Known]] = []
    for row in rows.select(["memory_id", "memory_type", "text"]).to_pylist():
        old = vocabulary.fact(row["text"])
        if word_similarity(new, old) >= floor and _agree(new, old, vocabulary):
            known = Known(row["memory_id"], row["memory_type"], row["text"], _adds(new, old))
            matches.append((-word_similarity(new, old), row["memory_id"], known))
    return min(matches, key=lambda each: each[:2])[2] if matches else None


def _agree(a: Fact, b: Fact, vocabulary: Vocabulary) -> bool:
    return (
        nested(a.word_set, b.word_set)
        and nested(a.numbers, b.numbers)
        and nested(a.names - b.contrasts, b.names - a.contrasts)
        and a.negation_count == b.negation_count
        and not vocabulary.has_opposites(a, b)
        and not has_swapped_word(a, b)
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
