"""What the brief decides about one candidate, and sections that are more than the memories of a type."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

# Sections are memory types; order and headings are data (memory_types.csv).
# Where the work stands is put together from outcome records and the living plan.
STATE = "outcome"
REPOSITORY = ""  # what git says of the whole, before the first section
CONFIRM = "confirm"  # the question whether the oldest claims still hold, behind the last section


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

    memory_ids: Sequence[str] = ()
    seen: AbstractSet[str] = field(default_factory=frozenset)


NO_ORDER = TellingOrder()
