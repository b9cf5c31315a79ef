"""The slots of a fact: what it chooses, what it turns down, why, and what it is about (spec 5.4)."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cortex.transforms.policy import Policy
from cortex.transforms.words.facts import LEFT_WORDS_MAX, NEUTRAL, Vocabulary, stem
from cortex.transforms.words.sentences import STATEMENT, sentences

# How a choice is worded says nothing of what was chosen: "SQLite holds the levels", "keep levels in SQLite".
_WORDING = """
abandon adopt against agree always build choice choose chose chosen decide decision discard down drop favor
favour final finally go hold i'll i've indent instead keep kept let live make move never now out pick prefer
public put rather reject replace rule run save select settle stay stick store switch take took turn use
we'll we've went will work write written
"""
WORDING = frozenset(stem(word) for word in _WORDING.split())

# Where the thing that was chosen or turned down ends and the sentence goes on.
_END = re.compile(
    r"[,;:()!?→]|\s[–—-]\s|\.(?!\w)|\s(?:because|since|as|so|and|but|while|which|that|who|where|when|until"
    r"|before|after|everywhere|again|from now|now|here|too|altogether|completely|entirely|at all|any ?more"
    r"|weil|da|denn|und|parce|car|et|porque|para|y)(?=\s|$)",
    re.IGNORECASE,
)
# What follows the thing and says what it is for.
_ABOUT = re.compile(
    r"\s(?:for|in|on|at|with|of|to|between|within|inside|across|per|during|by|für|in|im|pour|dans|en)\s",
    re.IGNORECASE,
)
# "(proposed, not run)" limits a statement, and is no way that was turned down.
_ASIDE = re.compile(r"\s*\([^()]{0,400}\)")
_ARTICLE = re.compile(r"^(?:an?|the|our|my|their|its|der|die|das|le|la|el|un[ae]?)\s+", re.IGNORECASE)
# "All", "it", "that" and a bare number name nothing.
_NAMELESS = re.compile(
    r"(?:(?:it|this|that|these|those|them|all|any|each|every|only|just)\b.*|each|both|one|none|there|here|\W*|[\d.,:]+)$",
    re.IGNORECASE,
)
_ONLY = re.compile(r"\s*(?:only|just|nur)\b", re.IGNORECASE)
# A longer word is a sentence, and no name of a thing.
_THING_CHARS = 80
_REASON_CHARS = 300
_REMEMBERED_TEXTS = 20_000
ENDED = "ended"
# Words before and behind a subject that are none of it: "For the cache we", "The tests should".
_TALK = re.compile(
    r"^\W*(?:we(?:'ll|'ve)?|i(?:'ll|'ve|'d)?|and|so|then|now|also|please|today|let'?s|always|agreed|done|ok(?:ay)?|for|in|on|at)\b[,.]?\s*"
    r"|\s+(?:we|i|i'll|we'll|should|must|will|shall|can|now|have|has|had|is|are|was|were|to|always|never)$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Slots:
    """
    What a fact chooses, turns down, why, and about what, in its own words; empty where it does not say.

    `relation` are the words by which its subject has one value: "is written in", "lives on"; ENDED where what
    it turns down was done until then.
    """

    chosen: str = ""
    rejected: str = ""
    reason: str = ""
    subject: str = ""
    relation: str = ""


@dataclass(frozen=True)
class SlotStems:
    """
    The slots of one fact as they are compared: the stems of each.

    `about` are the words that tell what it is about, whatever stands on either side; `values` the kinds of
    the technologies that it settles on, by their name.
    """

    chosen: frozenset[str]
    rejected: frozenset[str]
    about: frozenset[str]
    values: Mapping[str, frozenset[str]]
    relation: str


def are_opposed(a: SlotStems, b: SlotStems) -> bool:
    """Return whether one settles on what the other turns down."""
    return bool(a.chosen & b.rejected or b.chosen & a.rejected)


@dataclass(frozen=True)
class _Wording:
    pattern: re.Pattern[str]
    is_clear: bool  # a choice whatever it names; else only between names that are known


@dataclass(frozen=True)
class SlotParser:
    """The wordings of a choice (choice_words.csv) and a reason (phrases.csv), and names of technologies."""

    wordings: tuple[_Wording, ...]
    reasons: tuple[re.Pattern[str], ...]
    kinds: Mapping[str, frozenset[str]]
    single: frozenset[str]
    vocabulary: Vocabulary
    remembered: dict[str, Slots] = field(default_factory=dict, compare=False)

    @cached_property
    def stems(self) -> frozenset[str]:
        """Return the stems of the names of technologies."""
        return frozenset(map(stem, self.kinds))

    @staticmethod
    def of(policy: Policy) -> "SlotParser":
        """Return the parser of a policy, compiled once."""
        return policy.derived(_parser_of)

    def slots_of(self, text: str) -> Slots:
        """
        Return the slots of a statement: those of its first sentence that words a choice.

        >>> parser.slots_of("Chose Redis over Memcached for the cache because it persists.")
        Slots(chosen='Redis', rejected='Memcached', reason='it persists', subject='the cache', relation='')
        """
        if text not in self.remembered:  # a fact is folded, linked and merged in one run
            if len(self.remembered) >= _REMEMBERED_TEXTS:
                self.remembered.clear()
            self.remembered[text] = self._parsed(text)
        return self.remembered[text]

    def _parsed(self, text: str) -> Slots:
        text = _ASIDE.sub("", text)
        parts = sentences(text, STATEMENT) or [text]
        slots = next((known for part in parts if (known := self._in_sentence(part)) is not None), Slots())
        return replace(slots, reason=slots.reason or self._reason_in(text))

    def stems_of(self, text: str, rejected: str = "", *, is_choice: bool = True) -> SlotStems:
        """
        Return the slots of a statement as they are compared; `rejected`: what it is known to turn down.

        Where it is known to word no choice (`is_choice`), it is not parsed again.
        """
        slots = self.slots_of(text) if is_choice else Slots()
        alternative = "" if rejected and _ONLY.match(rejected) else rejected or slots.rejected
        chosen, lost = self._stems(slots.chosen), self._stems(alternative)
        settled = f"{slots.chosen}" if slots.chosen else text
        names = {word for word in self.names_in(settled) if stem(word) not in lost}
        values = {stem(word): self.kinds[word] for word in names}
        own = next(
            (p.sub(" ", text) for p in self.reasons if p.search(text)),
            text.replace(slots.reason or "\0", " "),
        )
        about = self.vocabulary.fact(own).word_set - chosen - lost - values.keys() - WORDING - NEUTRAL
        lost = lost if len(lost) <= LEFT_WORDS_MAX else frozenset()
        return SlotStems(chosen - lost, lost, about, values, slots.relation.casefold())

    def may_share(self, texts: "pa.ChunkedArray[Any]", beginnings: Collection[str]) -> list[bool]:
        """
        Return whether the slots of statements that word no choice name a technology, or may have a stem.

        `beginnings` are those of the stems (`beginning_of`); false means that none of it is there.
        """
        # Most name none: to look at each of 10,000 word by word took .1 s.
        may_name = pc.match_substring_regex(texts, self._name_pattern, ignore_case=True).to_pylist()
        return [
            (may and bool(self.names_in(text))) or _has_any(text, beginnings)
            for text, may in zip(map(str, texts.to_pylist()), may_name, strict=True)
        ]

    @cached_property
    def _name_pattern(self) -> str:
        """Return a pattern of what `names_in` may find, for a search of many texts."""
        names = "|".join(map(re.escape, sorted(self.kinds)))
        return rf"(?:^|[^\w+#])(?:{names})(?:$|[^\w+#])"

    def names_in(self, text: str) -> frozenset[str]:
        """Return the technologies that a text names."""
        return frozenset(word.strip(".@/-").lower() for word in _NAME.findall(text)) & self.kinds.keys()

    def _stems(self, thing: str) -> frozenset[str]:
        return self.vocabulary.fact(thing).word_set - WORDING

    def _in_sentence(self, sentence: str) -> Slots | None:
        for wording in self.wordings:
            match = wording.pattern.search(sentence)
            if match is None:
                continue
            given = match.groupdict()
            chosen, about = _thing(given.get("chosen") or "")
            rejected, about_rejected = _thing(given.get("rejected") or given.get("ended") or "")
            if (not chosen and not rejected) or (given.get("rejected") and not rejected):
                continue
            if not wording.is_clear:
                chosen = self._last_name_in(given.get("chosen") or "")
                if not (chosen and ("rejected" not in given or self.names_in(rejected))):
                    continue
            subject = (
                about
                or about_rejected
                or _subject(given.get("subject") or (sentence[: match.start()] if chosen else ""))
                or _subject_behind(sentence)
            )
            reason = (given.get("reason") or "").strip(" .")[:_REASON_CHARS]
            relation = ENDED if given.get("ended") else given.get("relation") or ""
            return Slots(chosen, rejected, reason, subject, relation)
        return None

    def _last_name_in(self, words: str) -> str:
        names = [word.strip(".@/-") for word in _NAME.findall(words)]
        return next((name for name in reversed(names) if name.lower() in self.kinds), "")

    def _reason_in(self, text: str) -> str:
        for pattern in self.reasons:
            match = pattern.search(text)
            if match and match.lastindex:
                return str(match[match.lastindex]).strip(" .,;").removeprefix("of ")
        return ""


_NAME = re.compile(r"[\w.@/+#-]+")


def _has_any(text: str, beginnings: Collection[str]) -> bool:
    # Anywhere: what is cut out of a text as its reason may leave a part of a word.
    folded = text.replace("’", "'").casefold() if beginnings else ""
    return any(beginning in folded for beginning in beginnings)


def _parser_of(policy: Policy) -> SlotParser:
    wordings = policy.tables["choice_words"].to_pylist()
    phrases = policy.tables["phrases"].to_pylist()
    technologies = policy.tables["technologies"].to_pylist()
    return SlotParser(
        tuple(_Wording(_compiled(row["pattern"]), bool(row["is_clear"])) for row in wordings),
        tuple(_compiled(row["pattern"]) for row in phrases if row["name"] == "reason"),
        {str(row["term"]): frozenset(str(row["kind"]).split("|")) for row in technologies},
        frozenset(str(row["kind"]) for row in technologies if row["is_single"]),
        Vocabulary.of(policy),
    )


def _compiled(pattern: object) -> re.Pattern[str]:
    return re.compile(str(pattern), re.IGNORECASE)


def _thing(words: str) -> tuple[str, str]:
    """Return the thing that words begin with, and what they say that it is for."""
    whole = _END.split(f"{words} ", maxsplit=1)[0].strip()
    thing, *rest = _ABOUT.split(f"{whole} ", maxsplit=1)
    thing = _ARTICLE.sub("", thing.strip(" \t\"'`“”.*_"))
    if not thing or len(thing) > _THING_CHARS or _NAMELESS.match(thing):
        return "", ""
    return thing, _subject(rest[0]) if rest else ""


# "Use npm, not pnpm, in the web folder"
_BEHIND = re.compile(r",\s*(?:for|in|on|at|with|within|inside|across)\s+([^,;:]{2,80})$", re.IGNORECASE)


def _subject_behind(sentence: str) -> str:
    match = _BEHIND.search(sentence.rstrip(" .!"))
    return _subject(match[1]) if match else ""


def _subject(words: str) -> str:
    """Return what words name, without the talk and the preposition around it; nothing if that is none."""
    subject = words
    while (shorter := _TALK.sub("", subject.strip(" \t\"'`“”.,*_"))) != subject:
        subject = shorter
    subject = _END.split(f"{subject} ", maxsplit=1)[0].strip()
    return "" if len(subject) > _THING_CHARS or _NAMELESS.match(subject) else subject
