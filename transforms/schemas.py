"""Every table of Cortex, declared once: columns with meaning and unit, key, closed enumerations."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cortex.transforms.vocabulary import BY_A_PERSON as BY_A_PERSON
from cortex.transforms.vocabulary import CATEGORIES as CATEGORIES
from cortex.transforms.vocabulary import EDGE_TYPES as EDGE_TYPES
from cortex.transforms.vocabulary import EPOCH as EPOCH
from cortex.transforms.vocabulary import EVENT_TYPES as EVENT_TYPES
from cortex.transforms.vocabulary import FINDING_KINDS as FINDING_KINDS
from cortex.transforms.vocabulary import GLOBAL_SCOPE as GLOBAL_SCOPE
from cortex.transforms.vocabulary import JOURNAL_KINDS as JOURNAL_KINDS
from cortex.transforms.vocabulary import JUDGED_BY_MODEL as JUDGED_BY_MODEL
from cortex.transforms.vocabulary import LINKS_PURPOSE as LINKS_PURPOSE
from cortex.transforms.vocabulary import MEMORY_TYPES as MEMORY_TYPES
from cortex.transforms.vocabulary import OUTCOME_KINDS as OUTCOME_KINDS
from cortex.transforms.vocabulary import PROJECT_PURPOSE as PROJECT_PURPOSE
from cortex.transforms.vocabulary import PROPOSED_BY_MODEL as PROPOSED_BY_MODEL
from cortex.transforms.vocabulary import SOURCE_TYPES as SOURCE_TYPES
from cortex.transforms.vocabulary import STATUSES as STATUSES
from cortex.transforms.vocabulary import TOOL_STATUSES as TOOL_STATUSES
from cortex.transforms.vocabulary import TRUSTS as TRUSTS
from cortex.transforms.vocabulary import TURN_KINDS as TURN_KINDS
from cortex.transforms.vocabulary import UNSURE_BY_MODEL as UNSURE_BY_MODEL
from cortex.transforms.vocabulary import Row as Row
from cortex.transforms.vocabulary import checked as checked

if TYPE_CHECKING:
    import polars as pl

UTC_US = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class Column:
    """
    One column: its Arrow field with the meaning, and what an audit asks of each value that is not null.

    `one_of` is a closed set, `between` a range with both ends; `is_filled` asks for more than white space.
    `is_text` marks free text, which may hold neither a secret nor a private section.
    """

    field: "pa.Field[Any]"
    one_of: tuple[str, ...] = ()
    between: tuple[float, float] | None = None
    is_filled: bool = False
    is_text: bool = False

    @property
    def name(self) -> str:
        """Return the column's name."""
        return str(self.field.name)


FRACTION = (0.0, 1.0)


def column(
    name: str, kind: pa.DataType, meaning: str, *, unit: str = "", null: bool = False, **rules: Any
) -> Column:
    """Return a column with its meaning and unit; `null`: it may be empty; `rules` are those of Column."""
    metadata = {"meaning": f"{meaning} [{unit}]" if unit else meaning}
    return Column(pa.field(name, kind, nullable=null, metadata=metadata), **rules)


def string_column(name: str, meaning: str, **rules: Any) -> Column:
    """Return a column of strings; `rules` are those of `column`."""
    return column(name, pa.string(), meaning, **rules)


def fraction_column(name: str, meaning: str) -> Column:
    """Return a column of numbers from 0 to 1."""
    return column(name, pa.float64(), meaning, unit="fraction, 0 to 1", between=FRACTION)


def arrow_of(columns: Iterable[Column]) -> pa.Schema:
    """Return the Arrow schema of columns."""
    return pa.schema([column.field for column in columns])


@dataclass(frozen=True)
class Table:
    """One table: its name, version, key columns and columns."""

    name: str
    version: int
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    @cached_property
    def arrow(self) -> pa.Schema:
        """Return the Arrow schema, the meaning in each field's metadata."""
        return arrow_of(self.columns)

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the columns that hold free text."""
        return tuple(column.name for column in self.columns if column.is_text)

    def empty(self) -> pa.Table:
        """Return the table with its columns and no rows."""
        return self.arrow.empty_table()

    def of(self, rows: list[dict[str, object]]) -> pa.Table:
        """Return `rows` as an Arrow table of this schema; a missing key becomes null."""
        return pa.Table.from_pylist(rows, schema=self.arrow)

    def meaning(self, column_name: str) -> str:
        """Return what a column means, with its unit."""
        metadata = self.arrow.field(column_name).metadata or {}
        return str(metadata.get(b"meaning", b"").decode())


def values(rows: pa.Table, name: str) -> list[Any]:
    """Return a column as Python values."""
    return rows[name].to_pylist()


def as_polars(rows: pa.Table) -> "pl.DataFrame":
    """Return rows as a frame of Polars."""
    import polars as pl  # everywhere where it is used: .1 s, which a run in which nothing is new can spare

    frame = pl.from_arrow(rows)
    assert isinstance(frame, pl.DataFrame)
    return frame


LINES = pa.list_(pa.field("item", pa.int32(), nullable=False))
STRINGS = pa.list_(pa.field("item", pa.string(), nullable=False))

TURNS = Table(
    name="turns",
    version=1,
    key=("turn_id",),
    columns=(
        string_column("turn_id", "sha256 of project, kind and the client's own identity of the block"),
        string_column("project_id", "project the session began in"),
        string_column("session_id", "session; a subagent's turns carry their parent's session"),
        string_column("agent_id", "subagent that spoke, if any", null=True),
        string_column("file", "path of the transcript as it was staged"),
        column("line", pa.int32(), "first line of the turn in that file, from 1"),
        column("block", pa.int16(), "position of the turn within its line, from 0"),
        string_column("kind", "one of TURN_KINDS", one_of=TURN_KINDS),
        column("said_at", UTC_US, "when it was said", null=True),
        string_column("text", "what was said, redacted; for a tool call its salient argument", is_text=True),
        string_column("message_id", "the API's id of the answer this block belongs to", null=True),
        string_column(
            "parent_uuid", "record this one follows; prompts with one parent are a rewind", null=True
        ),
        string_column("tool_name", "tool of a call or result", null=True),
        string_column("tool_use_id", "pairs a call with its result", null=True),
        string_column(
            "tool_input", "input of a call as JSON, redacted, long values cut", null=True, is_text=True
        ),
        string_column("tool_status", "one of TOOL_STATUSES; results only", null=True, one_of=TOOL_STATUSES),
        string_column("trust", "one of TRUSTS: who said it", one_of=TRUSTS),
        string_column("cwd", "working directory", null=True),
        string_column("git_branch", "branch at that moment", null=True),
        string_column("client_version", "version of the assistant's client", null=True),
        column("redactions", pa.int32(), "secrets replaced in text and tool_input", unit="count"),
        column("reader_version", pa.int16(), "version of the reader that made the row"),
    ),
)

EVENTS = Table(
    name="events",
    version=1,
    key=("event_id",),
    columns=(
        string_column("event_id", "sha256 of event type, layer, turn and text"),
        string_column("project_id", "project of the session"),
        string_column("session_id", "session it was seen in"),
        string_column("event_type", "one of EVENT_TYPES", one_of=EVENT_TYPES),
        string_column(
            "memory_type", "memory type it folds into; null: into none", null=True, one_of=MEMORY_TYPES
        ),
        string_column("category", "one of CATEGORIES", one_of=CATEGORIES),
        string_column("text", "the fact, standing by itself", is_filled=True, is_text=True),
        string_column("reason", "why, where the session says so", null=True, is_text=True),
        string_column("rejected", "the alternative that was turned down", null=True, is_text=True),
        string_column("subject", "groups events of one thing: a plan, an error, a file", null=True),
        string_column("step_status", "pending, in_progress or completed; plan steps only", null=True),
        column("files", STRINGS, "files named, as the session named them"),
        fraction_column("confidence", "how sure the layer is"),
        fraction_column("salience", "how much it matters when new"),
        string_column("trust", "one of TRUSTS: lowest of its sources", one_of=TRUSTS),
        string_column("layer", "what saw it: layer1:Edit, layer2:en, layer3:tag, llm:<model>@<prompt>"),
        string_column("turn_id", "turn it rests on"),
        string_column("file", "path of that turn's transcript as it was staged"),
        column("lines", LINES, "transcript lines it rests on, from 1, best first"),
        column("said_at", UTC_US, "when it was said", null=True),
        string_column("git_branch", "branch at that moment", null=True),
        string_column("git_commit", "commit named by the session", null=True),
        column("extractor_version", pa.int16(), "version of the extractor that made the row"),
    ),
)

SETTLED = Table(
    name="settled",
    version=1,
    key=("turn_id",),
    columns=(
        string_column("turn_id", "turn of a session that lost words; its events stay as they are"),
        string_column("project_id", "project of the session"),
        column("forgotten_events", pa.int32(), "shown events of the turn that were erased", unit="count"),
    ),
)

REPLIES = Table(
    name="replies",
    version=1,
    key=("project_id", "session_id", "request_id"),
    columns=(
        string_column("request_id", "hash of all that was asked, which is never paid for twice"),
        string_column("project_id", "project of what was asked about"),
        string_column(
            "session_id", "session that was read; empty for a question over memories, for links and a project"
        ),
        string_column("turns_hash", "hash of `turn_ids`: whether the session has gone on since"),
        column("turn_ids", STRINGS, "turns that were read, as the request numbers them from t1 on"),
        column("turn_count", pa.int32(), "turns that the session had, shown or not", unit="count"),
        column(
            "known",
            STRINGS,
            "memories that the request named, in its order; of links, the older and the newer of each pair",
        ),
        string_column("purpose", "what was asked for: session, links, project, reflect or infer"),
        string_column("model", "language model that answered"),
        string_column("provider", "api, claude, recorded, or none where there was nothing to ask"),
        string_column("prompt", "prompt and its version, such as session@1"),
        string_column(
            "text",
            "the answer as JSON text, redacted; of links and a project, what was believed of it",
            is_text=True,
        ),
        string_column("stop_reason", "why the answer ended, as the provider says"),
        column("input_tokens", pa.int64(), "tokens read, as the provider counted", unit="count"),
        column("output_tokens", pa.int64(), "tokens written, as the provider counted", unit="count"),
        column("usd", pa.float64(), "price", unit="US dollars"),
        column("asked_at", UTC_US, "when it was answered"),
    ),
)

JOURNAL = Table(
    name="journal",
    version=1,
    key=("entry_id",),
    columns=(
        string_column("entry_id", "sha256 of all other columns"),
        column("recorded_at", UTC_US, "when Cortex was told"),
        string_column("kind", "one of JOURNAL_KINDS", one_of=JOURNAL_KINDS),
        string_column("project_id", "scope it speaks of: a project id or 'global'"),
        string_column("memory_id", "memory it speaks of", null=True),
        string_column("actor", "user, or the stage that wrote it"),
        string_column("payload", "the rest, as JSON with sorted keys"),
    ),
)

CALLS = Table(
    name="calls",
    version=1,
    key=("call_id",),
    columns=(
        string_column("call_id", "hash of the process that served it and the call's number there"),
        column("called_at", UTC_US, "when it came"),
        string_column("project_id", "project of the caller's folder, or 'global'"),
        string_column("caller", "client and version as it says itself, or the subject of its token"),
        string_column("transport", "stdio or http; shown: what hooks or recall handed a session"),
        string_column(
            "tool",
            "tool that was called, read_resource, or where it was shown: the event of a hook, or recall",
        ),
        string_column(
            "arguments", "arguments as JSON; of a text its length; of what was shown the memories and tokens"
        ),
        string_column("outcome", "ok, asked (a person had to answer first), or the code of an error"),
        column("seconds", pa.float64(), "from the call to its answer", unit="seconds"),
        column("usd", pa.float64(), "what a language model cost meanwhile", unit="US dollars"),
    ),
)

VECTORS = Table(
    name="vectors",
    version=1,
    key=("model", "content_hash"),
    columns=(
        string_column("model", "embedding model"),
        string_column("content_hash", "sha256 of the embedded text, first 32 hex digits"),
        column("vector", pa.list_(pa.float32()), "unit-length embedding"),
    ),
)

EVIDENCE = pa.struct(
    [
        pa.field("turn_id", pa.string(), nullable=False),
        pa.field("session_id", pa.string(), nullable=False),
        pa.field("file", pa.string(), nullable=False),
        pa.field("lines", LINES, nullable=False),
        pa.field("layer", pa.string(), nullable=False),
        pa.field("said_at", UTC_US),
        pa.field("git_branch", pa.string()),
    ]
)

MEMORIES = Table(
    name="memories",
    version=1,
    key=("memory_id",),
    columns=(
        string_column("memory_id", "sha256 of scope, memory type and the normalised fact"),
        string_column("project_id", "scope: a project id or 'global'"),
        string_column("category", "one of CATEGORIES", one_of=CATEGORIES),
        string_column("memory_type", "one of MEMORY_TYPES", one_of=MEMORY_TYPES),
        string_column("text", "the fact by itself: who, what, why, what was rejected", is_text=True),
        string_column("reason", "why, where known", null=True, is_text=True),
        string_column("chosen", "what it settles on, where its words say so", null=True, is_text=True),
        string_column("rejected", "what was turned down, where known", null=True, is_text=True),
        string_column("subject", "what it is about, as a language model names it", null=True, is_text=True),
        string_column("summary", "the fact in short, by a language model", null=True, is_text=True),
        column("files", STRINGS, "files named"),
        column("tags", STRINGS, "technologies and topics named"),
        string_column("status", "one of STATUSES", one_of=STATUSES),
        string_column("source_type", "one of SOURCE_TYPES", one_of=SOURCE_TYPES),
        string_column(
            "trust", "one of TRUSTS: best of independent sources, lowest of a merge", one_of=TRUSTS
        ),
        column("is_pinned", pa.bool_(), "kept from decay and merging by a person"),
        column("priority", pa.int16(), "weight in ranking", unit="1 to 10"),
        fraction_column("initial_confidence", "confidence when last reinforced"),
        fraction_column("confidence", "confidence now, after decay"),
        fraction_column("salience", "highest salience of its events"),
        column("access_count", pa.int32(), "times recalled", unit="count"),
        column("last_accessed_at", UTC_US, "last recall", null=True),
        column("created_at", UTC_US, "first said; the start of its valid time"),
        column("updated_at", UTC_US, "last said or edited"),
        column("recorded_at", UTC_US, "last change known to Cortex", null=True),
        column("archived_at", UTC_US, "when it left the active ones", null=True),
        string_column("superseded_by", "memory that replaced it, said by a person", null=True),
        string_column("merged_into", "memory that took it up in a consolidation", null=True),
        column(
            "valid_until",
            UTC_US,
            "end of its valid time, where a later word or a language model ended it",
            null=True,
        ),
        string_column("closed_by", "memory or commit that ended it", null=True),
        fraction_column("centrality", "in-degree by the largest in-degree of the scope"),
        fraction_column("rank", "weight for the brief, spec 10.1"),
        column("session_count", pa.int32(), "sessions that said it", unit="count"),
        string_column("git_branch", "branch on which it was said or told last", null=True),
        string_column("git_commit", "commit checked out when it was told on purpose", null=True),
        string_column("folder", "folder in which it was told on purpose", null=True),
        string_column("session_id", "session in which it was told on purpose", null=True),
        column(
            "evidence",
            pa.list_(pa.field("item", EVIDENCE, nullable=False)),
            "where it was said, newest first",
        ),
        string_column("content_hash", "hash of the embedded text; finds its vector"),
    ),
)

# Found outside the fold, from a language model's answer; tags are too, but added to those of the fold.
MODEL_COLUMNS = ("subject", "summary", "valid_until", "closed_by")

EDGES = Table(
    name="edges",
    version=1,
    key=("edge_id",),
    columns=(
        string_column("edge_id", "sha256 of source, target and type"),
        string_column("project_id", "scope of both ends"),
        string_column("source_id", "memory the edge starts at"),
        string_column("target_id", "memory the edge ends at"),
        string_column("edge_type", "one of EDGE_TYPES", one_of=EDGE_TYPES),
        fraction_column("strength", "calibrated similarity"),
        string_column("rule", "what made it: similarity, a named rule, a language model or a person"),
    ),
)

PASSAGES = Table(
    name="passages",
    version=1,
    key=("passage_id",),
    columns=(
        string_column("passage_id", "sha256 of turn and part"),
        string_column("project_id", "project of the session"),
        string_column("session_id", "session it was said in"),
        string_column("turn_id", "turn it is a part of"),
        column("seq", pa.int32(), "position among the passages of its transcript, from 0"),
        string_column("kind", "kind of the turn", one_of=TURN_KINDS),
        string_column("text", "part of a turn's prose, at most about 900 characters", is_text=True),
        column("said_at", UTC_US, "when it was said", null=True),
        string_column("file", "path of the transcript as it was staged"),
        column("line", pa.int32(), "line of the turn, from 1"),
        string_column("trust", "one of TRUSTS", one_of=TRUSTS),
        string_column("content_hash", "hash of the embedded text; finds its vector"),
    ),
)

METRICS = Table(
    name="metrics",
    version=2,
    key=("project_id", "session_id"),
    columns=(
        string_column("project_id", "project of the session"),
        string_column("session_id", "session"),
        column("began_at", UTC_US, "when it began", null=True),
        column("prompts", pa.int64(), "prompts that a person typed", unit="count"),
        column("edits", pa.int64(), "calls that changed a file", unit="count"),
        column(
            "minutes_to_first_edit",
            pa.float64(),
            "from the first turn of the session to the first change of a file",
            unit="minutes",
            null=True,
        ),
        column("re_read_files", pa.int64(), "reads of a file that was read before", unit="count"),
        column("corrections", pa.int64(), "refused calls with words, and complaints", unit="count"),
        column("decisions", pa.int64(), "decisions noted, .5 or surer", unit="count"),
        column("duplicate_decisions", pa.int64(), "… that an earlier session had made", unit="count"),
        column("re_proposals", pa.int64(), "… for what an earlier session rejected", unit="count"),
        column("plan_gaps", pa.int64(), "open steps of the plan it carried on, left out", unit="count"),
        column("plan_repeats", pa.int64(), "… done before, and done again", unit="count"),
    ),
)

USES = Table(
    name="uses",
    version=1,
    key=("project_id", "session_id", "memory_id"),
    columns=(
        string_column("project_id", "project of the session"),
        string_column("session_id", "session that was shown the memory"),
        string_column("memory_id", "memory that it was shown; of the project, or a global one"),
        column("shown_at", UTC_US, "when it was first shown there"),
        column("briefs", pa.int64(), "times that a brief told it, again after a compaction", unit="count"),
        column("prompts", pa.int64(), "messages that it was quoted beside", unit="count"),
        column("recalls", pa.int64(), "answers of recall that it was in", unit="count"),
        column(
            "used_at",
            UTC_US,
            "first call of a tool after that with a name of the memory that the person had not said by then",
            null=True,
        ),
        string_column("used_name", "that name: of code, a file or a command", null=True, is_text=True),
        column("is_cited", pa.bool_(), "whether the assistant named the memory's id afterwards"),
        column(
            "is_corrected",
            pa.bool_(),
            "whether the person then refused a call or complained with a name of the memory",
        ),
        string_column("inputs", "hash of all that the rows of this session were counted from"),
    ),
)

OUTCOMES = Table(
    name="outcomes",
    version=1,
    key=("project_id", "memory_id", "what"),
    columns=(
        string_column("project_id", "project of the decision"),
        string_column("memory_id", "decision, a memory"),
        string_column("kind", "one of OUTCOME_KINDS", one_of=OUTCOME_KINDS),
        column(
            "happened_at", UTC_US, "when; of what held: the last change of its files, else the last commit"
        ),
        string_column("what", "commit, event or memory by which it shows"),
        string_column("session_id", "session that it shows in; null: git or a memory says so", null=True),
        column("days", pa.int64(), "from when the decision was last said before", unit="days"),
        string_column("text", "what was said or committed, at most 160 characters", is_text=True),
        column(
            "is_settled",
            pa.bool_(),
            "whether it counts no more: decided again, brought back, or worked on after a complaint",
        ),
    ),
)

PROJECTS = Table(
    name="projects",
    version=2,
    key=("project_id",),
    columns=(
        string_column("project_id", "project"),
        string_column("name", "its name; several may share one"),
        string_column("label", "the name, with more of the path where projects share it"),
        string_column("identity", "what identifies it: git:remote, root:commit or path:folder"),
        column("folders", STRINGS, "folders seen"),
        column("sessions", pa.int64(), "sessions read", unit="count"),
        column("last_worked_at", UTC_US, "end of its last session", null=True),
        column("active", pa.int64(), "memories that count", unit="count"),
        column("faded", pa.int64(), "memories archived by age, merging or a person", unit="count"),
        column("edges", pa.int64(), "relations between its memories", unit="count"),
        column("passages", pa.int64(), "passages of conversation that can be searched", unit="count"),
        column("is_read_by_model", pa.bool_(), "answers of a language model about its sessions count"),
    ),
)

SESSIONS = Table(
    name="sessions",
    version=2,
    key=("project_id", "session_id"),
    columns=(
        string_column("project_id", "project of the session"),
        string_column("session_id", "session"),
        column("number", pa.int64(), "its place among the project's sessions by when they began, from 1"),
        column("began_at", UTC_US, "when it began", null=True),
        column("ended_at", UTC_US, "its last turn", null=True),
        string_column("git_branch", "branch at its end", null=True),
        column("prompts", pa.int64(), "prompts that a person typed", unit="count"),
        string_column("goal", "what was asked for, by its outcome record", null=True),
        string_column("outcome", "what was done and proved", null=True),
        string_column("still_open", "what was left open", null=True),
        string_column("first_prompt", "how it began, at most 120 characters", null=True),
    ),
)

TELLING_ORDER = Table(
    name="telling_order",
    version=1,
    key=("project_id", "memory_id"),
    columns=(
        string_column("project_id", "project whose brief it is about"),
        string_column("memory_id", "memory of the project, or of scope 'global'"),
        column(
            "place",
            pa.int64(),
            "place in the order in which a language model would tell it, from 0; newer: -1 and below",
        ),
    ),
)

# Columns of the policy tables of the same names, as far as a ranking reads them.
THRESHOLDS = Table(
    name="thresholds",
    version=1,
    key=("name",),
    columns=(
        string_column("name", "threshold"),
        column("value", pa.float64(), "its value"),
        string_column("unit", "unit of the value"),
        string_column("why", "where the value comes from"),
    ),
)

MEMORY_TYPE_RULES = Table(
    name="memory_types",
    version=1,
    key=("memory_type",),
    columns=(
        string_column("memory_type", "type of memory"),
        column("half_life_days", pa.float64(), "time for confidence to halve", unit="days", null=True),
        column("brief_lines", pa.float64(), "lines of a brief that it may take", unit="count", null=True),
        string_column("brief_section", "heading of its section in a brief", null=True),
        column("brief_place", pa.float64(), "place of that section; null: none", null=True),
        column("is_binding", pa.bool_(), "a person's choice of it is raised in the brief"),
        column("is_passed_by", pa.bool_(), "loses its room in the brief as sessions go by without it"),
    ),
)

EVENT_TYPE_RULES = Table(
    name="event_types",
    version=1,
    key=("event_type",),
    columns=(
        string_column("event_type", "type of event"),
        string_column("memory_type", "type of the memory that comes of it", null=True),
        fraction_column("salience", "how much it matters when new"),
        column("is_immortal", pa.bool_(), "what comes of it does not age"),
    ),
)
# What a brief is chosen by, in SQL: the policy's numbers are joined from these.
POLICY_TABLES = (THRESHOLDS, MEMORY_TYPE_RULES, EVENT_TYPE_RULES)

ALL_TABLES = (
    *(TURNS, EVENTS, SETTLED, REPLIES, JOURNAL, CALLS, VECTORS),
    *(MEMORIES, EDGES, PASSAGES, METRICS, USES, OUTCOMES, PROJECTS, SESSIONS, TELLING_ORDER, *POLICY_TABLES),
)
