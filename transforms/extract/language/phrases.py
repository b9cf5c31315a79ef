"""Turns of phrase by language: what is cut from prose or tells where it stands; and which language it is."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache

import re2

from cortex.hooks.evidence.text import HAN, HANGUL, KANA
from cortex.transforms.extract.language.candidate import Turn, text_of
from cortex.transforms.policy import Policy

# -- Patterns looked for together in one pass: RE2 finds which of them occur, with the results of `re`.

# What both engines read alike: to RE2 a letter beyond ASCII is part of no word, a vertical tab no space.
_READ_OTHERWISE = re.compile(r"[^\t\n\r -~‘’“”–—…→←•×✓✔✅❌]")
_TEXTS_REMEMBERED = 4096
# A set that runs out of memory finds nothing; all word lists of three languages pass with 4 MB.
_MEMORY = 64 << 20


@lru_cache(maxsize=_TEXTS_REMEMBERED)
def reads_alike(text: str) -> bool:
    """Return whether RE2 and `re` find the same in a text; `$` is another place before a last line break."""
    return not text.endswith("\n") and _READ_OTHERWISE.search(text) is None


class PatternSet:
    """Several patterns without regard to case: which of them occur in a text."""

    def __init__(self, patterns: Sequence[re.Pattern[str]]) -> None:
        """Take compiled patterns, all of them IGNORECASE and no other flag."""
        self._patterns = tuple(patterns)
        self._set = re2.Set.SearchSet(_options())
        self._of_set: list[int] = []
        self._others: list[int] = []
        for at, pattern in enumerate(self._patterns):
            (self._of_set if self._is_added(pattern) else self._others).append(at)
        self._set.Compile()

    def _is_added(self, pattern: re.Pattern[str]) -> bool:
        try:
            self._set.Add(pattern.pattern)
        except re2.error:  # looks around, which RE2 does not
            return False
        return True

    def places_in(self, text: str) -> list[int]:
        """Return the places of the patterns that occur in a text, ascending."""
        if not reads_alike(text):
            return [at for at, pattern in enumerate(self._patterns) if pattern.search(text)]
        places = [self._of_set[at] for at in self._set.Match(text) or ()] if self._of_set else []
        return sorted([*places, *(at for at in self._others if self._patterns[at].search(text))])


class Gate:
    """Says without delay that a pattern occurs nowhere in a text; if it may, `re` has the last word."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        """Take a compiled pattern, IGNORECASE and no other flag."""
        try:
            self._fast = re2.compile(pattern.pattern, _options())
        except re2.error:
            self._fast = None

    def is_shut(self, text: str) -> bool:
        """Return whether the pattern cannot occur."""
        return self._fast is not None and reads_alike(text) and self._fast.search(text) is None


def _options() -> re2.Options:
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    options.max_mem = _MEMORY
    return options


# -- Turns of phrase that are cut from prose or tell where it stands, by language; and signs that have none.

ENGLISH = "en"  # the language of code, tools and half of what is said about them in any other


@dataclass(frozen=True)
class Phrase:
    """One name of phrases.csv in the languages of a session, one pattern, compiled at its first use."""

    source: str

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Return the pattern of all languages, which heeds no case."""
        return re.compile(self.source, re.IGNORECASE)

    @cached_property
    def _gate(self) -> Gate:
        return Gate(self.pattern)

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first place where the phrase stands."""
        return None if self._gate.is_shut(text) else self.pattern.search(text)

    def match(self, text: str) -> re.Match[str] | None:
        """Return the phrase where the text begins with it."""
        return self.pattern.match(text)

    def cut_from(self, text: str) -> str:
        """Return `text` without the phrase."""
        return self.pattern.sub("", text)

    def part_in(self, text: str) -> str | None:
        """Return what the phrase's group holds where it stands first, if anywhere."""
        match = self.search(text)
        return part_of(match) if match else None

    def parts_in(self, text: str) -> list[str]:
        """Return what the phrase's group holds in each place where it stands."""
        return [part_of(match) for match in self.pattern.finditer(text)]


def part_of(match: re.Match[str]) -> str:
    """Return what the group of a phrase holds: each language has one of its own."""
    return str(match[match.lastindex or 0])


@dataclass(frozen=True)
class Phrasebook:
    """The rows of phrases.csv that extraction reads, one field a name; `why` says what each is for."""

    acceptance: Phrase
    addressed: Phrase
    announces: Phrase
    bare_request: Phrase
    binding: Phrase
    calls: Phrase
    chatter: Phrase
    chore: Phrase
    chosen_value: Phrase
    complaint: Phrase
    errand: Phrase
    everywhere: Phrase
    filler: Phrase
    generic_heading: Phrase
    goal_named: Phrase
    injected: Phrase
    lead: Phrase
    narrates: Phrase
    next_named: Phrase
    no_next: Phrase
    offer: Phrase
    ordered_value: Phrase
    own_deed: Phrase
    passing: Phrase
    personal: Phrase
    procedure: Phrase
    procedure_taken: Phrase
    reason: Phrase
    rejected: Phrase
    removed: Phrase
    renamed: Phrase
    talk: Phrase
    undecided: Phrase
    withdrawn: Phrase

    @classmethod
    def of(cls, policy: Policy) -> "Phrasebook":
        """Return the phrases of a policy in all languages; each is compiled once, when it is used."""
        return cls.of_rows(policy.tables["phrases"].to_pylist())

    @classmethod
    def of_rows(cls, rows: Iterable[Mapping[str, object]]) -> "Phrasebook":
        """Return the phrases of rows of phrases.csv."""
        return _phrasebook(tuple((str(row["name"]), str(row["pattern"])) for row in rows))

    def without_filler(self, text: str) -> str:
        """Return an assistant's text from its first word that says something."""
        return self.lead.cut_from(self.filler.cut_from(text))


@lru_cache(maxsize=64)
def _phrasebook(rows: tuple[tuple[str, str], ...]) -> Phrasebook:
    patterns: dict[str, list[str]] = {}
    for name, pattern in rows:
        patterns.setdefault(name, []).append(pattern)
    return Phrasebook(**{name: Phrase("|".join(patterns[name])) for name in _NAMES})


_NAMES = tuple(field.name for field in fields(Phrasebook))

# Commands that check or build a project: how they are called here is worth knowing.
CHECK_COMMANDS = re.compile(
    r"\b(?:pytest|vitest|jest|tox|nox|ruff|mypy|pyright|eslint|tsc|golangci-lint|rspec|phpunit|ctest|act|vite"
    r"|playwright|go (?:test|build|vet|run)|cargo (?:test|build|clippy|check)"
    r"|(?:npm|pnpm|yarn|bun|mise|just|make|task|rake|gradle|mvn|dotnet|uv|poetry)(?: run)?"
    r" (?:test|lint|build|check|dev|typecheck|format|fmt|ci|install)[\w:-]*)\b"
)
FILE = re.compile(
    r"(?<![\w/])[\w./@~+-]*[\w-]\.(?:py|tsx?|jsx?|go|rs|json|ya?ml|toml|md|sh|html|css|rb|sql|java|kt|swift"
    r"|cfg|ini|lock)\b"
)


# -- Which languages a session is held in: by its scripts, and by the small words that every sentence needs.

# Of all small words that a person or the assistant says; a name ("Los Angeles") or a quotation stays below.
MIN_SHARE = 0.15
# Close languages share words: of Spanish and Portuguese only what is spoken runs.
MIN_OF_BEST = 0.6
# The start of a turn tells; logs and lists are pasted below.
READ_CHARS = 400
READ_TURNS = 200
MIN_SMALL_WORDS = 2  # "no" alone is said in four languages
MIN_SIGNS = 4
SIGNS_OF_A_SMALL_WORD = 4  # of as many signs of Chinese or Japanese there is a small word in English
# Chinese quoted in Japanese has no kana; Japanese has one kana in three signs.
MIN_KANA_SHARE = 0.1
_PERSONS = frozenset(("prompt", "command", "rejection", "choice"))

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_SIGNS = re.compile(f"[{HAN}{KANA}{HANGUL}]")
_KANA = re.compile(f"[{KANA}]")
_HAN = re.compile(f"[{HAN}]")
_HANGUL = re.compile(f"[{HANGUL}]")


def small_words(rows: Iterable[Mapping[str, object]]) -> dict[str, tuple[str, ...]]:
    """Return the languages of each small word and letter in rows of language_words.csv."""
    languages: dict[str, tuple[str, ...]] = {}
    for row in rows:
        for token in (*str(row["words"]).split(), *str(row["letters"] or "")):
            languages[token] = (*languages.get(token, ()), str(row["language"]))
    return languages


def languages_of(threads: Iterable[Sequence[Turn]], words: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """Return the languages that a person or the assistant speaks in a session."""
    persons: list[str] = []
    assistants: list[str] = []
    for thread in threads:
        for turn in thread:
            if turn["kind"] in _PERSONS:
                persons.append(text_of(turn)[:READ_CHARS])
            elif turn["kind"] == "text" and len(assistants) < READ_TURNS:
                assistants.append(text_of(turn)[:READ_CHARS])
    return spoken_in(persons[:READ_TURNS], words) | spoken_in(assistants, words)


def spoken_in(texts: Collection[str], words: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """
    Return the languages of some texts by one speaker.

    >>> sorted(spoken_in(["Bitte nicht so", "好的，改用缓存"], {"bitte": ("de",), "nicht": ("de",)}))
    ['de', 'zh']
    """
    text = "\n".join(texts)
    tokens = _WORD.findall(text.lower())
    if not text.isascii():
        tokens += (sign for sign in text if not sign.isascii())
    counts = Counter(language for token in tokens for language in words.get(token, ()))
    distinct = Counter(language for token in set(tokens) for language in words.get(token, ()))
    signs = 0 if text.isascii() else len(_SIGNS.findall(text))
    total = sum(counts.values()) + signs / SIGNS_OF_A_SMALL_WORD
    best = max((count for language, count in counts.items() if language != ENGLISH), default=0)
    least = max(MIN_SHARE * total, MIN_OF_BEST * best)
    frequent = (
        language
        for language, count in counts.items()
        if language != ENGLISH and count >= least and distinct[language] >= MIN_SMALL_WORDS
    )
    return frozenset(frequent) | (_by_script(text) if signs else frozenset())


def language_in(sentence: str, words: Mapping[str, tuple[str, ...]]) -> str | None:
    """
    Return the one language of a sentence by its script, else by its different small words; None if unsure.

    >>> words = {"wir": ("de",), "für": ("de",), "we": ("en",), "use": ("en", "pt"), "for": ("en",)}
    >>> language_in("Wir nehmen uv für alles", words), language_in("We use uv for all", words)
    ('de', 'en')
    >>> language_in("uv statt pip", words)
    """
    if scripts := _by_script(sentence):
        return min(scripts)
    tokens = {*_WORD.findall(sentence.lower()), *(sign for sign in sentence if not sign.isascii())}
    counts = Counter(language for token in tokens for language in words.get(token, ())).most_common(2)
    is_sure = bool(counts) and counts[0][1] >= MIN_SMALL_WORDS
    return counts[0][0] if is_sure and (len(counts) < 2 or counts[0][1] > counts[1][1]) else None


def _by_script(text: str) -> frozenset[str]:
    kana, han, hangul = (len(signs.findall(text)) for signs in (_KANA, _HAN, _HANGUL))
    is_japanese = kana >= MIN_SIGNS and kana >= MIN_KANA_SHARE * han
    spoken = {"ja": is_japanese, "zh": han >= MIN_SIGNS and not is_japanese, "ko": hangul >= MIN_SIGNS}
    return frozenset(language for language, is_spoken in spoken.items() if is_spoken)
