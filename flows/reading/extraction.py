"""What is extracted from whole sessions of a project: the same in the run's own process and in others."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from cortex.transforms.extract.echoes import ShownLines, without_echoes
from cortex.transforms.extract.events import extract_events
from cortex.transforms.extract.ground.settled import Settled
from cortex.transforms.extract.quotes import with_quotes_lowered
from cortex.transforms.faults import contained
from cortex.transforms.masking import masked
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import EVENTS, values

# Puts the facts of a language model in the place of the rules', in EVENTS of TURNS.
Writing = Callable[[pa.Table, pa.Table], pa.Table]


@dataclass(frozen=True)
class Extraction:
    """Whole sessions of one project to extract from: TURNS, what Cortex showed it, what lost words."""

    turns: pa.Table
    shown_lines: ShownLines
    settled: Settled


@dataclass(frozen=True)
class Extracted:
    """The EVENTS of an extraction; without any the reason why it failed."""

    events: pa.Table | None
    fault: str = ""


def rules_alone(events: pa.Table, turns: pa.Table) -> pa.Table:
    """Return the events as the rules made them."""
    return events


def extract_from(task: Extraction, policy: Policy, written: Writing = rules_alone) -> pa.Table:
    """Return the EVENTS of whole sessions; what Cortex itself wrote is not evidence."""
    turns = task.turns
    events = written(extract_events(without_echoes(turns, task.shown_lines), policy, task.settled), turns)
    return masked(with_quotes_lowered(events, turns), EVENTS)


def by_session(whole: Extraction) -> list[Extraction]:
    """Return an extraction session by session, each on its own: they give what the whole gives."""
    turns = whole.turns
    return [
        replace(whole, turns=turns.filter(pc.equal(turns["session_id"], pa.scalar(name))))
        for name in sorted(set(values(turns, "session_id")))
    ]


def extract_or_fault(task: Extraction, policy: Policy, written: Writing = rules_alone) -> Extracted:
    """Return the events of an extraction, or why there are none; input that nobody foresaw stops nothing."""
    faults: list[str] = []
    with contained(faults.append):
        return Extracted(extract_from(task, policy, written))
    return Extracted(None, faults[0])
