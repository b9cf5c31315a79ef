"""What a stage is: a name, what it reads and writes, and the work."""

from collections.abc import Callable
from dataclasses import dataclass

from cortex.flows.run.run import Run


@dataclass(frozen=True)
class Stage:
    """
    One step of a flow, safe to repeat: run twice it does what it does once.

    `reads` and `writes` name tables of the lake and of the scopes; a test compares them with what the stage
    opens. What is published and what waits in staging is not in them.
    """

    name: str
    reads: frozenset[str]
    writes: frozenset[str]
    work: Callable[[Run], None]

    def __call__(self, run: Run) -> None:
        """Do the work; what it notes of its outputs, scope by scope, is committed at once."""
        with run.store.lake.gathering_notes():
            self.work(run)


def stage(*, reads: str = "", writes: str = "") -> Callable[[Callable[[Run], None]], Stage]:
    """Return a decorator that makes a function a stage of its name; tables are named with spaces between."""
    return lambda work: Stage(work.__name__, frozenset(reads.split()), frozenset(writes.split()), work)
