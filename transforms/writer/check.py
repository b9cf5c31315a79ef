"""What of an answer is believed, found out without a model: quotes, turns, names and numbers, repetitions."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cortex.transforms.extract.ground.candidate import Turn, text_of
from cortex.transforms.redaction.redact import kinds_of_secret
from cortex.transforms.schemas import TRUSTS
from cortex.transforms.words.overlap import share_of_fewer
from cortex.transforms.words.scripts import long_words
from cortex.transforms.writer.answer import FACT_KINDS, STATES, WrittenFact
from cortex.transforms.writer.rendering import PERSONS

# The shortest words of a person that settle something: "use pnpm", "npm".
SHORTEST_QUOTE_CHARS = 3
SHORTEST_WRITTEN_CHARS = 12
# Two facts of one answer with this much of the shorter one's words say the same.
REPETITION_WORDS_SHARE = 0.8
# Turns around a cited one in which its numbers may stand: a call and its result, a question and its answer.
NEAR_TURNS = 3
# Of the parts of a command or a path so many may be somebody's placeholder.
LACKING_SHARE = 0.25
# A number of one digit is counted more often than quoted.
FEWEST_DIGITS = 2
# With less of its words in the person's own turns, a statement is the assistant's that the person agreed to.
PERSONS_SHARE = 0.3

_MARKUP = re.compile(r"[\s*_`\"'“”‘’«»]+")
_NUMBER = re.compile(r"(?<![\w.])\d[\d.,:]*\d(?![\w])|(?<![\w.])\d(?![\w.])")
# What looks like code: it has a sign or a change of case inside.
_NAME = re.compile(
    r"`([^`\n]{1,120})`|((?:[\w@~]*[./_\\:-])+\w+(?:\(\))?|[a-z]+[A-Z]\w*|[A-Z]+[a-z]+[A-Z]\w*)"
)
# "half-filled", "double/triple", "1-3": English, and the person's own counting.
_COMPOUND = re.compile(r"(?:[A-Za-z]?[a-z]*|\d)(?:[-/](?:[a-z]+|\d))+")
_PROPER = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{2,}\w*")
_PLACEHOLDER = re.compile(r"<[\w-]{1,40}>")
_PARTS = re.compile(r"[^\w]+")
# Words that English writes with a capital and no session needs to say.
_KNOWN_PROPER = frozenset(
    (
        *("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
        *("january", "february", "march", "april", "june", "july", "august", "september", "october"),
        *("november", "december", "english", "spanish", "japanese", "korean", "chinese", "german", "french"),
        *("portuguese", "russian", "italian", "unicode", "markdown", "boolean", "claude"),
    )
)


@dataclass(frozen=True)
class Checked:
    """One fact after the checks: the turns it rests on, the quoted first, its trust, why it is refused."""

    fact: WrittenFact
    turns: tuple[Turn, ...]
    trust: str
    refused: str = ""


class SessionTurns:
    """The turns that a request numbered, and what they say regardless of white space and marks."""

    def __init__(self, turns: Sequence[Turn | None]) -> None:
        """Take the turns in the order of their numbers; None stands for one that is no more."""
        self.turns = list(turns)
        self._texts = ["" if turn is None else _words_of(turn) for turn in turns]
        self._bare = [_bare(text) for text in self._texts]
        self._answers = ["" if turn is None else _persons_answer(turn) for turn in turns]
        self._whole = " ".join(self._bare)
        self.is_latin = _is_latin(" ".join(text for text in self._texts))

    def cited(self, fact: WrittenFact) -> list[int]:
        """Return the positions of the turns that a fact names and that exist, each once, in its order."""
        numbers = [int(name[1:]) - 1 for name in fact.turns if re.fullmatch(r"t\d{1,6}", name)]
        known = [at for at in numbers if 0 <= at < len(self.turns) and self.turns[at] is not None]
        return list(dict.fromkeys(known))

    def quoted(self, quote: str, cited: Sequence[int]) -> int | None:
        """Return the position of the first cited turn in which a quote stands."""
        bare = _bare(quote)
        if len(bare) < SHORTEST_QUOTE_CHARS:
            # "A", "ok": a person's whole answer settles something however short it is.
            return next((at for at in cited if bare and bare == self._answers[at]), None)
        return next((at for at in cited if bare in self._bare[at]), None)

    def missing(self, text: str, cited: Sequence[int]) -> str:
        """Return a number, name or path of `text` that its turns lack, else an empty text."""
        near = {at + step for at in cited for step in range(-NEAR_TURNS, NEAR_TURNS + 1)}
        around = " ".join(self._texts[at] for at in sorted(near) if 0 <= at < len(self._texts))
        numbers = set(_NUMBER.findall(around))
        for match in _NUMBER.finditer(_NAME.sub(" ", text)):
            number = match[0]
            is_short = sum(sign.isdigit() for sign in number) < FEWEST_DIGITS
            if not is_short and number not in numbers and _digits(number) not in _digits(around):
                return number
        for match in _NAME.finditer(text):
            name = match[1] or match[2]
            if not _COMPOUND.fullmatch(name) and not self._has(name):
                return name
        if self.is_latin:
            for match in _PROPER.finditer(text):
                if match[0].casefold() not in _KNOWN_PROPER and not self._has(match[0]):
                    return match[0]
        return ""

    def _has(self, name: str) -> bool:
        """Return whether a name stands in the session, whole or in its parts; of a command nearly all."""
        if _bare(name) in self._whole:
            return True
        parts = [_bare(part) for part in _PARTS.split(_PLACEHOLDER.sub(" ", name)) if len(part) > 1]
        lacking = sum(part not in self._whole for part in parts)
        return lacking <= len(parts) * LACKING_SHARE


def checked_facts(facts: Sequence[WrittenFact], evidence: SessionTurns, most: int) -> list[Checked]:
    """
    Return each fact with what was found out about it, in the given order; at most `most` are not refused.

    A fact is refused where its quote does not stand in one of its turns, none of its turns exists, it names
    what they lack, would show a secret, or says what another fact of the answer says.
    """
    kept: list[set[str]] = []
    results = []
    for fact in facts:
        cited = evidence.cited(fact)
        at = evidence.quoted(fact.quote, cited)
        order = [at, *(other for other in cited if other != at)] if at is not None else cited
        turns = tuple(turn for place in order if (turn := evidence.turns[place]) is not None)
        words = long_words(fact.statement)
        reason = _fault(fact, evidence, cited, at)
        if not reason and any(share_of_fewer(words, other) >= REPETITION_WORDS_SHARE for other in kept):
            reason = "says what another fact of the session says"
        if not reason and len(kept) >= most:
            reason = f"comes after {most} others"
        if not reason:
            kept.append(words)
        trust = _trust(fact, turns, at is not None)
        results.append(Checked(fact, turns, trust, reason))
    return results


def _fault(fact: WrittenFact, evidence: SessionTurns, cited: Sequence[int], quoted_at: int | None) -> str:
    if len(fact.statement) < SHORTEST_WRITTEN_CHARS:
        return "says nothing"
    if fact.fact_type not in FACT_KINDS or fact.state not in STATES:
        return "of no known type or state"
    if not cited:
        return "names no turn of the session"
    if quoted_at is None:
        return "its quote is not in its turns"
    words = " ".join((fact.statement, fact.caveat, fact.why, fact.instead_of))
    if kinds_of_secret(words):
        return "would show a secret"
    missing = evidence.missing(words, cited)
    return f"its turns do not say {missing}" if missing else ""


def _trust(fact: WrittenFact, turns: Sequence[Turn], is_quoted: bool) -> str:
    """Return who a fact is to be believed as: the quoted turn's speaker, no more than its words bear out."""
    if not is_quoted:
        return TRUSTS[0]
    trust = str(turns[0]["trust"])
    if any(turn["trust"] == TRUSTS[0] for turn in turns):
        return TRUSTS[0]
    if trust != "user":
        return trust
    spoken = " ".join(text_of(turn) for turn in turns if turn["kind"] in PERSONS and turn["trust"] == "user")
    words = long_words(fact.statement)
    is_own = turns[0]["kind"] in ("choice", "plan") or not _is_latin(spoken)
    is_own = is_own or (bool(words) and len(words & long_words(spoken)) >= PERSONS_SHARE * len(words))
    return "user" if is_own else "assistant"


def _words_of(turn: Turn) -> str:
    """Return all that a request shows of a turn: also a call's input, and the day on which it was said."""
    columns = ("text", "tool_name", "tool_input", "git_branch")
    day = f"{turn['said_at']:%Y-%m-%d}" if turn["said_at"] else ""
    return "\n".join([*(str(turn[name]) for name in columns if turn[name]), day])


def _persons_answer(turn: Turn) -> str:
    """Return a person's words, bare; of the answer to a question what stands behind the arrow."""
    if turn.get("kind") not in PERSONS:
        return ""
    text = text_of(turn)
    return _bare(text.rpartition("→")[2] if turn["kind"] == "choice" else text)


def _bare(text: str) -> str:
    return _MARKUP.sub("", text.replace("\\n", "").replace("\\", "")).casefold()


def _digits(text: str) -> str:
    return re.sub(r"[,.]", "", text)


def _is_latin(text: str) -> bool:
    """Return whether a text is written in a script whose words an English statement can repeat."""
    letters = [sign for sign in text[:20_000] if sign.isalpha()]
    return sum(sign < "\u0250" for sign in letters) >= 0.8 * len(letters)
