"""What a sentence settles on and what it turns down, by name: "FastAPI over Flask" (spec 11.3)."""

import re
from dataclasses import dataclass

from cortex.transforms.policy import Policy

# Where the thing that was turned down ends and the sentence goes on.
_END = re.compile(
    r"[,;:()!?]|\s(?:because|since|as|so|and|but|while|which|that|for|in|on|when|where"
    r"|weil|da|denn|und|für|parce|car|pour|et|porque|para|y)\s",
    re.IGNORECASE,
)
_WORD = re.compile(r"[\w.@/+-]+")


@dataclass(frozen=True)
class Sides:
    """Names of technologies, lower case: those that a sentence settles on, and those that it turns down."""

    chosen: frozenset[str] = frozenset()
    rejected: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Choices:
    """
    The wordings of a choice (choice_words.csv) and the names it may be about.

    Those are the technologies, and what is declared as a dependency (declared_names.csv): by its name the
    name in a manifest and the kind, of which a project takes one in the place of another.
    """

    patterns: tuple[re.Pattern[str], ...]
    technologies: frozenset[str]
    declared: dict[str, str]
    kinds: dict[str, str]

    @staticmethod
    def of(policy: Policy) -> "Choices":
        """Return the tables of the policy."""
        wordings = policy.tables["choice_words"]["pattern"].to_pylist()
        rows = policy.tables["declared_names"].to_pylist()
        return Choices(
            tuple(re.compile(str(wording), re.IGNORECASE) for wording in wordings),
            frozenset(str(term) for term in policy.tables["technologies"]["term"].to_pylist()),
            {str(row["term"]): str(row["declared_as"]) for row in rows},
            {str(row["term"]): str(row["kind"]) for row in rows},
        )

    def technologies_in(self, text: str) -> frozenset[str]:
        """Return the technologies that a text names."""
        return words_of(text) & self.technologies

    def names_in(self, text: str) -> frozenset[str]:
        """Return the technologies that a text names, and the dependencies that have rivals."""
        return words_of(text) & (self.technologies | self.declared.keys())

    def as_declared(self, name: str) -> str:
        """Return how a manifest names it."""
        return self.declared.get(name, name)

    def sides_of(self, sentence: str, rejected: str = "") -> Sides:
        """
        Return both sides of the choice in a sentence, each as far as it has names.

        `rejected` is what its memory is known to turn down, wherever that was said.
        """
        turned_down = self.names_in(rejected)
        chosen = self.names_in(sentence) if turned_down else frozenset[str]()
        for pattern in self.patterns:
            for match in pattern.finditer(sentence):
                against = self.names_in(_END.split(f"{match['rejected']} ", maxsplit=1)[0])
                turned_down |= against
                chosen |= self.names_in(match["chosen"]) if against else frozenset()
        return Sides(chosen - turned_down, turned_down)

    def are_rivals(self, chosen: str, rejected: str) -> bool:
        """Return whether one would be declared in the place of the other: two frameworks, two linters."""
        return chosen in self.kinds and self.kinds[chosen] == self.kinds.get(rejected)


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text as a manifest may have them, lower case."""
    return frozenset(word.strip(".@/-").lower() for word in _WORD.findall(text))
