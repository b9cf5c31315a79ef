"""What one record, session or project may raise without stopping the others."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from traceback import extract_tb

from cortex.transforms.errors import CortexError

# No input causes these: the disk, a person's next step, or a mistake in our own code that must show.
NEVER_CONTAINED: tuple[type[Exception], ...] = (
    OSError,
    CortexError,
    AssertionError,
    ImportError,
    NameError,
)


@contextmanager
def contained(note: Callable[[str], None]) -> Iterator[None]:
    """
    Run the block; where its input makes it fail, call `note` with the reason and go on behind it.

    The last safety net, for shapes that nobody foresaw: whatever is known to occur is handled where it is
    read. The reason names the error and the line of code, and never quotes the input.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, NEVER_CONTAINED):
            raise
        note(_reason(error))


def _reason(error: Exception) -> str:
    last = extract_tb(error.__traceback__)[-1]
    file = last.filename.rpartition("/")[2]
    return f"internal error ({type(error).__name__} at {file}:{last.lineno})"
