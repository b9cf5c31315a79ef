"""What a language model says of a scope's memories, of pairs and of all, as the lake's replies hold it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from cortex.flows.run.run import Run
from cortex.transforms.memory.consolidate import NO_SAME_STATEMENTS, SameStatements
from cortex.transforms.schemas import GLOBAL_SCOPE, REPLIES

# What is about replies is imported where it is used: where no language model has answered none is loaded.
if TYPE_CHECKING:
    from cortex.transforms.writer.project import ProjectAnswer

PROJECT_COLUMNS = ["request_id", "purpose", "known", "text", "asked_at"]


def verdicts_of(run: Run, scope: str) -> Mapping[str, str]:
    """Return the verdict on each pair of a scope that was asked about, by name."""
    lake, parts = run.store.lake, _parts(run, scope)
    if not parts:
        return {}
    from cortex.transforms.writer.verdicts import VERDICT_COLUMNS, kept_verdicts

    return kept_verdicts(
        pa.concat_tables(lake.read(REPLIES, part, columns=VERDICT_COLUMNS) for part in parts)
    )


def project_replies(run: Run, scope: str) -> pa.Table:
    """Return the REPLIES of a scope: PROJECT_COLUMNS of them."""
    empty = REPLIES.empty().select(PROJECT_COLUMNS)
    read = (run.store.lake.read(REPLIES, part, columns=PROJECT_COLUMNS) for part in _parts(run, scope))
    return pa.concat_tables([empty, *read])


def answer_about(run: Run, scope: str) -> ProjectAnswer | None:
    """Return the answer about all that a project holds which counts; None where there is none."""
    if scope == GLOBAL_SCOPE or not run.settings.models.uses_replies or not _parts(run, scope):
        return None
    from cortex.transforms.writer.project import project_answer

    return project_answer(project_replies(run, scope), run.now if run.readings.is_past else None)


def with_short_forms_of(run: Run, scope: str, memories: pa.Table) -> pa.Table:
    """Return MEMORIES of a scope with subject, summary and tags that a language model named them by."""
    parts = _parts(run, scope) if scope != GLOBAL_SCOPE else run.store.lake.manifest.partitions(REPLIES.name)
    if not parts or not run.settings.models.uses_replies:
        return memories
    from cortex.transforms.writer.short_forms import SHORT_FORM_COLUMNS, with_short_forms

    read = [run.store.lake.read(REPLIES, part, columns=SHORT_FORM_COLUMNS) for part in sorted(parts)]
    return with_short_forms(memories, pa.concat_tables(read))


def same_statements_in(run: Run, scope: str, memories: pa.Table) -> SameStatements:
    """Return what of a scope says the same, by a language model; takes its MEMORIES."""
    verdicts, answer = verdicts_of(run, scope), answer_about(run, scope)
    if not verdicts and answer is None:
        return NO_SAME_STATEMENTS
    from cortex.transforms.writer.verdicts import same_pairs

    same = same_pairs(memories, run.store.tables.open(scope, "edges").read(), verdicts) if verdicts else {}
    pairs, texts = answer.same_statements() if answer else ({}, {})
    return SameStatements(same | pairs, texts)


def _parts(run: Run, scope: str) -> list[str]:
    parts = {GLOBAL_SCOPE} if scope == GLOBAL_SCOPE else set(run.readings.parts(scope))
    return sorted(parts & set(run.store.lake.manifest.partitions(REPLIES.name)))
