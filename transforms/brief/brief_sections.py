"""What the brief decides about one candidate, and the order of its sections (spec 11.2)."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

# Where the work stands is put together from outcome records and the living plan; headings are data
# (memory_types.csv). Progress that is no plan comes last: what was done is in the repository.
STATE = "outcome"
REPOSITORY = ""  # what git says of the whole, before the first section
CONFIRM = "confirm"  # the question whether the oldest claims still hold, behind the last section
SECTIONS = (
    STATE,
    "decision",
    "pattern",
    "gotcha",
    "architecture",
    "context",
    "code_description",
    "progress",
)
# Whose best are seated before rank alone decides: what the next session needs whatever else there is.
GUARANTEED = frozenset(("decision", "pattern", "gotcha", "architecture"))
PLACES = {section: place for place, section in enumerate((REPOSITORY, *SECTIONS, CONFIRM))}


@dataclass(frozen=True)
class Choice:
    """One candidate for the brief: where it would stand, its printed line or lines, shown or not, and why."""

    section: str
    memory_id: str
    text: str
    is_shown: bool
    reason: str
    rank: float = 0.0


@dataclass(frozen=True)
class TellingOrder:
    """
    The order in which a language model that read a whole project tells its memories, by id.

    `seen` are all that it was shown: what is newer has no place in its order yet.
    """

    told: Sequence[str] = ()
    seen: AbstractSet[str] = field(default_factory=frozenset)


NO_ORDER = TellingOrder()
