"""decisions-archive.md: the decisions that no brief has room for any more, each in full (spec 8.4)."""

import pyarrow as pa

from cortex.hooks.prose.plain import on_one_line
from cortex.transforms.brief.eligible import NO_SESSIONS, archived_decisions
from cortex.transforms.brief.wording import full_provenance
from cortex.transforms.policy import Policy
from cortex.transforms.redaction.redact import kinds_of_secret, redact
from cortex.transforms.schemas import Row


def render_archive(
    memories: pa.Table, policy: Policy, *, project_name: str, sessions: pa.Table = NO_SESSIONS
) -> str:
    """
    Return the archive as Markdown, newest first; empty if there is nothing in it.

    Takes MEMORIES of one project and the global ones, ranked, in any order, and the sessions that passed
    them by. The same memories give the same bytes.
    """
    rows = archived_decisions(memories, sessions, policy).to_pylist()
    items = [item for item in map(_item, rows) if not kinds_of_secret(item)]
    if not items:
        return ""
    title = f"# Older decisions: {on_one_line(redact(project_name)[0])}"
    about = (
        "Decisions that many sessions went by without touching. They still hold as far as anybody said. In"
        " brackets: who, day, session, how sure (0 to 1). Recalled, one is back in the brief."
    )
    return "\n".join([title, "", about, "", *items, ""])


def _item(row: Row) -> str:
    parts = [on_one_line(row["text"])]
    for label, more in (("Why", row["reason"]), ("Rejected", row["rejected"])):
        line = on_one_line(more or "")
        if line and line.rstrip(".…").casefold() not in parts[0].casefold():
            parts.append(f"{label}: {line}")
    return f"- {' '.join(parts)} {full_provenance(row)}"
