"""The error family: each with a code, an exit code, whether retrying helps, and a next step.

CortexError                      1
├── UsageError                   2   the command was called wrongly
├── UnknownProject               3
├── UnknownValue                 4   not one of a closed set of names
├── NotFound                     5   no such memory, file or store
├── SchemaMismatch              10
│   └── ManifestDamaged         10
├── StoreNotWritable            11   read-only home, disk full
├── AuditFailed                 12
├── NothingUsable               13   none of the inputs could be read
├── ModelUnavailable            14
│   ├── ModelBusy               14   nothing was charged, the same request may be answered soon
│   ├── AnswerLost              14   no answer came, and it may have been charged
│   └── ModelClosed             14   no request is answered before a person acts
│       └── ModelLimited        14   none before the limit of a plan is reset
├── ClientSettingsUnusable      15
├── KeyUnavailable              16   the store is encrypted and its key is not here
├── FileDamaged                 17   a file of the lake was changed, moved or cut
├── LowQuality                  18   the text to remember is not a fact
│   ├── EmptyQuestion           18   the question has no word to search for
│   └── DecisionContradicted    18   what is to be learned is at odds with an active decision
├── LakeUnclear                 19   manifest and files of the lake do not belong together
├── LossRefused                 20   a run would hide much of what is shown
├── TablesDamaged               21   tables or published files are missing or damaged
├── ModelRefused                22   the same request to a language model would fail again
├── ToolCallInvalid             24   a tool was called with arguments that it cannot use
│   ├── ArgumentMissing         24
│   ├── ArgumentUnknown         24
│   ├── ArgumentOfWrongType     24
│   ├── ArgumentOutOfRange      24
│   ├── CursorInvalid           24
│   └── UnknownTool             24
├── PlanOutdated                25   what a plan would change has changed since
├── QueryTooLong                26
├── RateLimited                 27   too many calls in the last minute
├── InternalError               28   a tool call failed in a way that nobody foresaw
├── ScopeMissing                29   the caller's token does not allow the call
├── RoleMissing                 29   the role in a project does not allow it
├── StoreUnreachable            30   the bucket of the store does not answer
├── RunnerMissing               31   the library of the chosen task runner is not installed
└── StoreBusy                   75   another run holds the lease
    └── LeaseLost               75   another machine took the lease over
"""

from collections.abc import Iterable
from datetime import datetime
from difflib import get_close_matches


class CortexError(Exception):
    """Something went wrong that a person can act on; the message ends with the next step."""

    code = "CORTEX_E"
    exit_code = 1
    retryable = False
    category = "system"

    def __init__(self, problem: str, next_step: str) -> None:
        super().__init__(f"{problem} {next_step}")
        self.problem = problem
        self.next_step = next_step
        self.details = ""

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


class UsageError(CortexError):
    """The command was called with arguments that it cannot use."""

    code, exit_code = "CORTEX_E_USAGE", 2
    category = "tool"


class UnknownProject(CortexError):
    """A project was named that the store has never seen."""

    code, exit_code = "CORTEX_E_UNKNOWN_PROJECT", 3
    category = "memory"

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


class UnknownValue(CortexError, ValueError):
    """A value from disk, a model or a user is not in its closed set of names."""

    code, exit_code = "CORTEX_E_UNKNOWN_VALUE", 4
    category = "tool"

    def __init__(self, what: str, value: str, allowed: Iterable[str]) -> None:
        article = "an" if what[0] in "aeiou" else "a"
        super().__init__(f"Not {article} {what}: '{value}'.", f"Allowed: {', '.join(allowed)}.")


class NotFound(CortexError):
    """A memory, file or store that was named does not exist."""

    code, exit_code = "CORTEX_E_NOT_FOUND", 5
    category = "memory"


class SchemaMismatch(CortexError):
    """The columns of a table on disk differ from those that this version of Cortex writes."""

    code, exit_code = "CORTEX_E_SCHEMA", 10
    category = "memory"


class ManifestDamaged(SchemaMismatch):
    """The manifest is damaged: cut, overwritten, or not written by Cortex."""

    code = "CORTEX_E_MANIFEST"


class StoreNotWritable(CortexError):
    """The store cannot be written: read-only, no permission, or no space left."""

    code, exit_code, retryable = "CORTEX_E_STORE_NOT_WRITABLE", 11, True


class AuditFailed(CortexError):
    """A stage produced rows that break a promise; the last good version stays."""

    code, exit_code = "CORTEX_E_AUDIT", 12
    category = "memory"


class NothingUsable(CortexError):
    """None of the given files could be read as a transcript."""

    code, exit_code = "CORTEX_E_NOTHING_USABLE", 13
    category = "memory"


class ModelUnavailable(CortexError):
    """A model is missing, not the expected one or gives no answer; what needs none works without it."""

    code, exit_code, retryable = "CORTEX_E_MODEL", 14, True
    category = "api"


class ModelBusy(ModelUnavailable):
    """A language model did not answer now (rate limit, overload, no connection); nothing was charged."""

    code = "CORTEX_E_MODEL_BUSY"

    def __init__(self, problem: str, next_step: str, wait_s: float | None = None) -> None:
        """Take the seconds after which the service wants to be asked again, where it says so."""
        super().__init__(problem, next_step)
        self.wait_s = wait_s


class AnswerLost(ModelUnavailable):
    """A language model's answer did not arrive in time or whole; it may have been charged."""

    code = "CORTEX_E_ANSWER_LOST"


class ModelClosed(ModelUnavailable):
    """A language model answers no request before a person acts: key, login, credit, or name of the model."""

    code, retryable = "CORTEX_E_MODEL_CLOSED", False


class ModelLimited(ModelClosed):
    """A plan or account is used up: a language model answers no request before its limit is reset."""

    code, retryable = "CORTEX_E_MODEL_LIMITED", True

    def __init__(self, problem: str, next_step: str, until: datetime | None = None) -> None:
        """Take the instant (UTC) of the reset, where the service says so."""
        super().__init__(problem, next_step)
        self.until = until


class ClientSettingsUnusable(CortexError):
    """The settings file of the assistant's client cannot be edited safely; it was left unchanged."""

    code, exit_code = "CORTEX_E_CLIENT_SETTINGS", 15
    category = "config"


class KeyUnavailable(CortexError):
    """The store is encrypted, and its key is missing, wrong, or in a locked keyring."""

    code, exit_code = "CORTEX_E_KEY", 16
    category = "encryption"


class FileDamaged(CortexError):
    """The contents of a lake file are not what was written there; nothing of it was used."""

    code, exit_code = "CORTEX_E_DAMAGED", 17
    category = "encryption"


class LowQuality(CortexError):
    """The text to remember says nothing, only asks a question, or is only a secret; nothing was kept."""

    code, exit_code = "CORTEX_E400", 18
    category = "quality"


class EmptyQuestion(LowQuality):
    """The question has no word to search for."""

    code = "CORTEX_E401"


class DecisionContradicted(LowQuality):
    """What is to be learned is at odds with an active decision, and nobody said that it holds anyway."""

    code = "CORTEX_E402"


class LakeUnclear(CortexError):
    """The manifest and the files of the lake do not belong together; nothing was read, written or removed."""

    code, exit_code = "CORTEX_E_LAKE", 19
    category = "memory"


class LossRefused(CortexError):
    """A run would hide or remove much of what is shown, and nobody asked for it; nothing was published."""

    code, exit_code = "CORTEX_E_LOSS", 20
    category = "memory"


class TablesDamaged(CortexError):
    """Tables or published files are missing or damaged; the lake, from which they are made, is intact."""

    code, exit_code, retryable = "CORTEX_E_TABLES", 21, True
    category = "memory"

    def __init__(self, problem: str, scope: str | None = None) -> None:
        """Take `scope` if its tables are damaged and must be removed before they are rebuilt."""
        super().__init__(problem, "Make them again from the lake: cortex rebuild")
        self.scope = scope


class ModelRefused(CortexError):
    """A language model did not accept a request; the same one would fail again, and nothing was charged."""

    code, exit_code = "CORTEX_E_REFUSED", 22
    category = "api"


class ScheduleUnavailable(CortexError):
    """Nothing on this machine could be told to start the nightly run."""

    code, exit_code = "CORTEX_E_SCHEDULE", 23
    category = "config"


class StoreBusy(CortexError):
    """Another run holds the lease; two runs never write at once."""

    code, exit_code, retryable = "CORTEX_E_BUSY", 75, True


class LeaseLost(StoreBusy):
    """Another machine took over a store elsewhere; what was not committed waits and is read again."""

    code = "CORTEX_E_LEASE_LOST"


class StoreUnreachable(CortexError):
    """The bucket that holds the store does not answer, or refuses; what waits on this machine is kept."""

    code, exit_code, retryable = "CORTEX_E_STORE_UNREACHABLE", 30, True


class RunnerMissing(CortexError):
    """The task runner that was chosen needs a library that is not installed."""

    code, exit_code = "CORTEX_E_RUNNER_MISSING", 31


class ToolCallInvalid(CortexError):
    """A tool was called with arguments that it cannot use."""

    code, exit_code = "CORTEX_E200", 24
    category = "tool"

    def __init__(self, problem: str, next_step: str, argument: str = "") -> None:
        """Take the name of the argument that is at fault, where it is one."""
        super().__init__(problem, next_step)
        self.details = argument


class ArgumentMissing(ToolCallInvalid):
    """A tool was called without an argument that it needs."""

    code = "CORTEX_E201"


class ArgumentUnknown(ToolCallInvalid):
    """A tool was called with an argument that it does not have."""

    code = "CORTEX_E202"


class ArgumentOfWrongType(ToolCallInvalid):
    """A tool was called with an argument of another type than it takes."""

    code = "CORTEX_E203"


class ArgumentOutOfRange(ToolCallInvalid):
    """A tool was called with an argument that is too long, too large, or not one of those allowed."""

    code = "CORTEX_E204"


class CursorInvalid(ToolCallInvalid):
    """A cursor is not one that this server gave for the same question."""

    code = "CORTEX_E205"


class UnknownTool(ToolCallInvalid):
    """There is no tool, prompt or resource of that name."""

    code = "CORTEX_E206"


class PlanOutdated(CortexError):
    """What a plan would change has changed since it was made; nothing was done."""

    code, exit_code = "CORTEX_E207", 25
    category = "tool"


class QueryTooLong(CortexError):
    """A query took longer than it may."""

    code, exit_code = "CORTEX_E208", 26
    category = "tool"


class RateLimited(CortexError):
    """More calls came within a minute than the settings allow; this one was not carried out."""

    code, exit_code, retryable = "CORTEX_E310", 27, True
    category = "rate_limit"


class ScopeMissing(CortexError):
    """The token of a caller over HTTP does not allow what was asked for; nothing was done."""

    code, exit_code = "CORTEX_E320", 29
    category = "permission"

    def __init__(self, scope: str) -> None:
        """Take the scope that the token lacks."""
        super().__init__(f"This needs the scope {scope}.", "Ask for a token that has it.")
        self.details = self.scope = scope


class RoleMissing(CortexError):
    """The role of a team's member or of a caller over HTTP is too little in a project; nothing was done."""

    code, exit_code = "CORTEX_E321", 29
    category = "permission"

    def __init__(self, project: str, role: str, needed: str) -> None:
        """Take the project, the role there ("" for none), and the one that is needed."""
        held = f"you are {role} of {project}" if role else f"you have no role in {project}"
        super().__init__(f"{held}, and this needs a {needed}.", "Ask an admin of the team for that role.")
        self.details = needed


class InternalError(CortexError):
    """Something failed that Cortex did not foresee; its words are in the server's own log."""

    code, exit_code = "CORTEX_E900", 28


def install_extra(extra: str) -> str:
    """Return the next step where an extra is missing: a line that works without uv and pipx."""
    return f"In your clone of Cortex: make install EXTRAS={extra} (by uv or pipx: docs/install.md)"
