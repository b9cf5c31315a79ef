"""The error family: each with a code, an exit code, whether retrying helps, and a next step."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from difflib import get_close_matches


class CortexError(Exception):
    """Something went wrong that a person can act on; the message ends with the next step."""

    code = "CORTEX_E"
    exit_code = 1
    retryable = False
    category = "system"

    def __init_subclass__(
        cls, code: str, exit_code: int | None = None, retryable: bool | None = None, category: str = ""
    ) -> None:
        """Take what programs are told of the error; what is left out is that of the class above it."""
        super().__init_subclass__()
        cls.code = code
        cls.exit_code = cls.exit_code if exit_code is None else exit_code
        cls.retryable = cls.retryable if retryable is None else retryable
        cls.category = category or cls.category

    def __init__(self, problem: str, next_step: str) -> None:
        # Below a list the next step is a line of its own.
        super().__init__(f"{problem}{chr(10) if chr(10) in problem else ' '}{next_step}")
        self.problem = problem
        self.next_step = next_step
        self.details = ""

    def __reduce__(self) -> tuple[object, ...]:
        """Return what another process raises it from, whatever its class is made with."""
        return _restored, (type(self), self.args, self.__dict__)

    def as_dict(self) -> dict[str, object]:
        """Return the error as the JSON object that `--json` prints."""
        return {
            "error": {
                "code": self.code,
                "problem": self.problem,
                "next_step": self.next_step,
                "retryable": self.retryable,
            }
        }

    def as_report(self, at: datetime) -> dict[str, object]:
        """Return the error as a program that called a tool or page is given it; `at` is when it happened."""
        return {
            "error": True,
            "code": self.code,
            "category": self.category,
            "message": self.problem,
            "suggestion": self.next_step,
            "details": self.details,
            "retryable": self.retryable,
            "timestamp": at.isoformat(timespec="seconds"),
        }


def _restored(kind: type[CortexError], args: tuple[object, ...], state: Mapping[str, object]) -> CortexError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class UsageError(CortexError, code="CORTEX_E_USAGE", exit_code=2, category="tool"):
    """The command was called with arguments that it cannot use."""


class UnknownProject(CortexError, code="CORTEX_E_UNKNOWN_PROJECT", exit_code=3, category="memory"):
    """A project was named that the store has never seen."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = get_close_matches(name, names, n=2)
        listed = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
        super().__init__(
            f"no project is called '{name}'." + (f" Did you mean {' or '.join(near)}?" if near else ""),
            f"Known projects: {listed}. Or search them all with --all-projects."
            if names
            else "The store is empty: run `cortex backfill` first.",
        )


class UnknownValue(CortexError, ValueError, code="CORTEX_E_UNKNOWN_VALUE", exit_code=4, category="tool"):
    """A value from disk, a model or a user is not in its closed set of names."""

    def __init__(self, what: str, value: str, allowed: Iterable[str]) -> None:
        article = "an" if what[0] in "aeiou" else "a"
        super().__init__(f"Not {article} {what}: '{value}'.", f"Allowed: {', '.join(allowed)}.")


class NotFound(CortexError, code="CORTEX_E_NOT_FOUND", exit_code=5, category="memory"):
    """A memory, file or store that was named does not exist."""


class SchemaMismatch(CortexError, code="CORTEX_E_SCHEMA", exit_code=10, category="memory"):
    """The columns of a table on disk differ from those that this version of Cortex writes."""


class ManifestDamaged(SchemaMismatch, code="CORTEX_E_MANIFEST"):
    """The manifest is damaged: cut, overwritten, or not written by Cortex."""


class StoreNotWritable(CortexError, code="CORTEX_E_STORE_NOT_WRITABLE", exit_code=11, retryable=True):
    """The store cannot be written: read-only, no permission, or no space left."""


class AuditFailed(CortexError, code="CORTEX_E_AUDIT", exit_code=12, category="memory"):
    """A stage produced rows that break a promise; the last good version stays."""


class NothingUsable(CortexError, code="CORTEX_E_NOTHING_USABLE", exit_code=13, category="memory"):
    """None of the given files could be read as a transcript."""


class ModelUnavailable(CortexError, code="CORTEX_E_MODEL", exit_code=14, retryable=True, category="api"):
    """A model is missing, not the expected one or gives no answer; what needs none works without it."""


class ModelBusy(ModelUnavailable, code="CORTEX_E_MODEL_BUSY"):
    """A language model did not answer now (rate limit, overload, no connection); nothing was charged."""

    def __init__(self, problem: str, next_step: str, wait_s: float | None = None) -> None:
        """Take the seconds after which the service wants to be asked again, where it says so."""
        super().__init__(problem, next_step)
        self.wait_s = wait_s


class AnswerLost(ModelUnavailable, code="CORTEX_E_ANSWER_LOST"):
    """A language model's answer did not arrive in time or whole; it may have been charged."""


class ModelClosed(ModelUnavailable, code="CORTEX_E_MODEL_CLOSED", retryable=False):
    """A language model answers no request before a person acts: key, login, credit, or name of the model."""


class ModelLimited(ModelClosed, code="CORTEX_E_MODEL_LIMITED", retryable=True):
    """A plan or account is used up: a language model answers no request before its limit is reset."""

    def __init__(self, problem: str, next_step: str, until: datetime | None = None) -> None:
        """Take the instant (UTC) of the reset, where the service says so."""
        super().__init__(problem, next_step)
        self.until = until


class ClientSettingsUnusable(CortexError, code="CORTEX_E_CLIENT_SETTINGS", exit_code=15, category="config"):
    """The settings file of the assistant's client cannot be edited safely; it was left unchanged."""


class KeyUnavailable(CortexError, code="CORTEX_E_KEY", exit_code=16, category="encryption"):
    """The store is encrypted, and its key is missing, wrong, or in a locked keyring."""


class FileDamaged(CortexError, code="CORTEX_E_DAMAGED", exit_code=17, category="encryption"):
    """The contents of a lake file are not what was written there; nothing of it was used."""


class LowQuality(CortexError, code="CORTEX_E400", exit_code=18, category="quality"):
    """The text to remember says nothing, only asks a question, or is only a secret; nothing was kept."""


class EmptyQuestion(LowQuality, code="CORTEX_E401"):
    """The question has no word to search for."""


class DecisionContradicted(LowQuality, code="CORTEX_E402"):
    """What is to be learned is at odds with an active decision, and nobody said that it holds anyway."""


class LakeUnclear(CortexError, code="CORTEX_E_LAKE", exit_code=19, category="memory"):
    """The manifest and the files of the lake do not belong together; nothing was read, written or removed."""


class LossRefused(CortexError, code="CORTEX_E_LOSS", exit_code=20, category="memory"):
    """A run would hide or remove much of what is shown, and nobody asked for it; nothing was published."""


class TablesDamaged(CortexError, code="CORTEX_E_TABLES", exit_code=21, retryable=True, category="memory"):
    """Tables or published files are missing or damaged; the lake, from which they are made, is intact."""

    def __init__(self, problem: str, scope: str | None = None) -> None:
        """Take `scope` if its tables are damaged and must be removed before they are rebuilt."""
        super().__init__(problem, "Make them again from the lake: cortex rebuild")
        self.scope = scope


class NotReady(NotFound, code="CORTEX_E_NOT_READY", retryable=True):
    """The first run has not published this yet; nothing is missing or damaged."""


class ModelRefused(CortexError, code="CORTEX_E_REFUSED", exit_code=22, category="api"):
    """A language model did not accept a request; the same one would fail again, and nothing was charged."""


class ScheduleUnavailable(CortexError, code="CORTEX_E_SCHEDULE", exit_code=23, category="config"):
    """Nothing on this machine could be told to start the nightly run."""


class StoreBusy(CortexError, code="CORTEX_E_BUSY", exit_code=75, retryable=True):
    """Another run holds the lease; two runs never write at once."""


class LeaseLost(StoreBusy, code="CORTEX_E_LEASE_LOST"):
    """Another machine took over a store elsewhere; what was not committed waits and is read again."""


class StoreUnreachable(CortexError, code="CORTEX_E_STORE_UNREACHABLE", exit_code=30, retryable=True):
    """The bucket that holds the store does not answer, or refuses; what waits on this machine is kept."""


class RunnerMissing(CortexError, code="CORTEX_E_RUNNER_MISSING", exit_code=31):
    """The task runner that was chosen needs a library that is not installed."""


class ToolCallInvalid(CortexError, code="CORTEX_E200", exit_code=24, category="tool"):
    """A tool was called with arguments that it cannot use."""

    def __init__(self, problem: str, next_step: str, argument: str = "") -> None:
        """Take the name of the argument that is at fault, where it is one."""
        super().__init__(problem, next_step)
        self.details = argument


class ArgumentMissing(ToolCallInvalid, code="CORTEX_E201"):
    """A tool was called without an argument that it needs."""


class ArgumentUnknown(ToolCallInvalid, code="CORTEX_E202"):
    """A tool was called with an argument that it does not have."""


class ArgumentOfWrongType(ToolCallInvalid, code="CORTEX_E203"):
    """A tool was called with an argument of another type than it takes."""


class ArgumentOutOfRange(ToolCallInvalid, code="CORTEX_E204"):
    """A tool was called with an argument that is too long, too large, or not one of those allowed."""


class CursorInvalid(ToolCallInvalid, code="CORTEX_E205"):
    """A cursor is not one that this server gave for the same question."""


class UnknownTool(ToolCallInvalid, code="CORTEX_E206"):
    """There is no tool, prompt or resource of that name."""


class PlanOutdated(CortexError, code="CORTEX_E207", exit_code=25, category="tool"):
    """What a plan would change has changed since it was made; nothing was done."""


class QueryTooLong(CortexError, code="CORTEX_E208", exit_code=26, category="tool"):
    """A query took longer than it may."""


class RateLimited(CortexError, code="CORTEX_E310", exit_code=27, retryable=True, category="rate_limit"):
    """More calls came within a minute than the settings allow; this one was not carried out."""


class ScopeMissing(CortexError, code="CORTEX_E320", exit_code=29, category="permission"):
    """The token of a caller over HTTP does not allow what was asked for; nothing was done."""

    def __init__(self, scope: str) -> None:
        """Take the scope that the token lacks."""
        super().__init__(f"This needs the scope {scope}.", "Ask for a token that has it.")
        self.details = self.scope = scope


class RoleMissing(CortexError, code="CORTEX_E321", exit_code=29, category="permission"):
    """The role of a team's member or of a caller over HTTP is too little in a project; nothing was done."""

    def __init__(self, project: str, role: str, needed: str) -> None:
        """Take the project, the role there ("" for none), and the one that is needed."""
        held = f"you are {role} of {project}" if role else f"you have no role in {project}"
        super().__init__(f"{held}, and this needs a {needed}.", "Ask an admin of the team for that role.")
        self.details = needed


class InternalError(CortexError, code="CORTEX_E900", exit_code=28):
    """Something failed that Cortex did not foresee; its words are in the server's own log."""


# -- What one record, session or project may raise without stopping the others.

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
    from traceback import extract_tb  # here: a run without a fault needs none of it

    last = extract_tb(error.__traceback__)[-1]
    file = last.filename.rpartition("/")[2]
    return f"internal error ({type(error).__name__} at {file}:{last.lineno})"
