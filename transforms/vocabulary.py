"""The words that tables use, and names with a meaning; importing them imports no library."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cortex.hooks.prose.memory_types import EVENT_TYPES as EVENT_TYPES
from cortex.hooks.prose.memory_types import MEMORY_TYPES as MEMORY_TYPES
from cortex.transforms.errors import UnknownValue

# Stands for a time nobody noted, so that sorting and ageing stay defined: very old.
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The scope of what holds in every project.
GLOBAL_SCOPE = "global"

# One row of a table as Python values, by column.
Row = dict[str, Any]

# What holds in its project, in every one, or, as a language model has it, in every one once a person says so.
CATEGORIES = ("project", "global", "proposed")
STATUSES = ("active", "superseded", "archived", "pruned")
SOURCE_TYPES = ("conversation", "explicit", "code_index", "import", "consolidation", "team")
# `colleague`: what a team reviewed and merged into its repository.
TRUSTS = ("external", "tool", "assistant", "colleague", "user")  # lowest first: the position is the order
EDGE_TYPES = (
    "relates_to",
    "derived_from",
    "contradicts",
    "exemplifies",
    "refines",
    "supersedes",
    "source_of",
)
# What came of a decision.
OUTCOME_KINDS = ("reverted", "complained", "contradicted", "held")
PROPOSED_BY_MODEL = "proposed_by_model"  # of one by which a model says that its target is no longer true
JUDGED_BY_MODEL = "judged_by_model"  # of one by which a model says that both ends hold
UNSURE_BY_MODEL = "unsure_by_model"  # of one whose ends may be at odds, by a model that cannot tell
BY_A_PERSON = "person"  # the rule of an edge that a person's word made
LINKS_PURPOSE = "links"  # of a reply about pairs of memories
PROJECT_PURPOSE = "project"  # of a reply about all that a project holds
TURN_KINDS = (
    "prompt",  # words a person typed, queued prompts included
    "command",  # arguments of a slash command, typed by a person
    "shell",  # a command that a person ran with !
    "text",  # what the assistant said
    "thinking",  # what the assistant thought
    "tool_call",  # a call that the assistant asked for
    "tool_result",  # what came back, or why the call never ran
    "rejection",  # words a person gave when refusing a tool call
    "choice",  # a person's answer to a question that the assistant asked
    "plan",  # a plan that a person approved or handed over
    "summary",  # the client's summary at a compaction
    "recap",  # the client's recap while the person was away
    "program",  # a prompt written by a program or by another agent, not by a person
)
TOOL_STATUSES = ("ok", "error", "rejected", "cancelled")
JOURNAL_KINDS = (
    "remember",
    "edit",
    "pin",
    "unpin",
    "forget",
    "supersede",
    "merge",
    "archive",
    "restore",  # takes a supersede back
    "recall",
    "import",
    "worked",  # when a project was worked on in the store that an import came from
    "project",
    "checkpoint",  # a name for a moment that a consolidation can be taken back to
    "unmerge",  # takes a merge back
    "confirm",  # a claim that a person says still holds
    "dismiss",  # leaves what a review found as it is, for good
    "fade",  # memories that a run found weak: their days of grace begin
    "recover",  # weak memories that a run found strong again
    "prune",  # the tombstone of a memory that faded too long ago: its words stay in the lake
    "team",  # a memory that the project's repository holds, as a colleague's word
    "withdraw",  # the repository no longer holds it
)
# What the layer of evidence begins with that is a file of a repository, or was one; its author follows.
TEAM_LAYER = "team:"
SHARED_LAYER = "shared:"  # of a file of a team's place, where members put what they share, unreviewed
WITHDRAWN_LAYER = "withdrawn:"
TEAM_SOURCES = ("git", "share")  # where a colleague's word was read: in a repository, or in a team's place
# Those by which a run notes what it found; they make and change no memory by themselves.
FINDING_KINDS = ("fade", "recover")


def checked(what: str, value: str, allowed: tuple[str, ...]) -> str:
    """
    Return `value` if it is one of `allowed`.

    Raises UnknownValue, which names the allowed values (spec 2).

    >>> checked("memory type", "gotcha", MEMORY_TYPES)
    'gotcha'
    """
    if value not in allowed:
        raise UnknownValue(what, value, allowed)
    return value


# -- What somebody may do in a project of a team: read, also write, also take out what others wrote.

READER, WRITER, ADMIN = ROLES = ("reader", "writer", "admin")


@dataclass(frozen=True)
class CallerRole:
    """The role of a caller over HTTP (`*`: of everybody), in the project of a folder or, for "", in all."""

    subject: str
    role: str
    folder: str = ""


def caller_role(text: str) -> CallerRole:
    """
    Return what SUBJECT=ROLE or SUBJECT=ROLE@FOLDER says. Raises ValueError for anything else.

    >>> caller_role("ada=writer@/srv/api")
    CallerRole(subject='ada', role='writer', folder='/srv/api')
    """
    subject, _, rest = text.partition("=")
    role, _, folder = rest.partition("@")
    if not subject or role not in ROLES or not (not folder or folder.startswith(("/", "~"))):
        raise ValueError(text)
    return CallerRole(subject, role, folder)
