"""Turns of phrase that are cut from prose or tell where it stands, by language; and signs that have none."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache

from cortex.transforms.policy import Policy
from cortex.transforms.words.pattern_set import Gate

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
    chore: Phrase
    chosen_value: Phrase
    complaint: Phrase
    errand: Phrase
    everywhere: Phrase
    filler: Phrase
    generic_heading: Phrase
    goal_named: Phrase
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

# Prompts of a shell, stamped log lines, stack frames, markup, code: shown by the person, not said.
PASTED_LINE = re.compile(
    r"^\s*(?:[➜❯$%]\s|\w+@[\w.-]+[:~]|\[?\d{1,4}[-:/.]\d{2}[-:/.]\d{2}|at .+:\d+|File \"|Traceback|Loading "
    r"|[{}\[\]<\"'(]\S*.*[,{}\[\]>)]$|[\w.]+(?:Error|Exception): |\d+\s*[|│]|[│└├╭╰┌]|\S+\s{3,}\S+\s{3,}"
    r"|\[[\w:-]+\] |\"[\w-]+\":\s"
    r"|(?:async )?(?:def|class|import|from|const|let|var|func|return|assert|export|public|private)\b"
    r".*[:;({\[)'\"]$"
    r"|@[\w.]+(?:\(.*\))?$)"
    r"|^ {2,}[\w.-]+:(?:\s|$)|^ {4,}(?![-*•\d])"
)

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
