"""How many facts of the rules gave way to an answer of a language model: no loss of a brief to ask about."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from cortex.flows.run.run import Run
from cortex.storage.lake.lake import Change
from cortex.transforms.schemas import GLOBAL_SCOPE


def note_given_way(run: Run, change: Change, project_id: str, before: pa.Table, after: pa.Table) -> None:
    """Note, by scope, how many facts of a session its EVENTS `before` show and those `after` do not."""
    makes_memory = pc.invert(pc.is_null(pc.field("memory_type")))
    is_shown = makes_memory & (pc.field("confidence") >= run.policy.threshold("shown_min_confidence"))
    left = set(after.filter(is_shown)["event_id"].to_pylist())
    scope = run.store.projects.canonical(project_id)
    counts = Counter(change.notes.given_way)
    for row in before.filter(is_shown).select(["event_id", "category"]).to_pylist():
        if row["event_id"] not in left:
            counts[GLOBAL_SCOPE if row["category"] == GLOBAL_SCOPE else scope] += 1
    change.notes = replace(change.notes, given_way=dict(counts))


def lines_given_way(notes: Mapping[str, int], scope: str) -> int:
    """Return how many lines a project's brief may lose by what gave way in it and everywhere."""
    return notes.get(scope, 0) + notes.get(GLOBAL_SCOPE, 0)


def forget_given_way(run: Run, held: Collection[str]) -> None:
    """Forget what gave way in the projects whose briefs are published; those `held` back keep it."""
    notes = run.store.lake.notes
    kept = {*held, *run.outcome.failed, *([GLOBAL_SCOPE] if held else [])}
    left = {scope: count for scope, count in notes.given_way.items() if scope in kept}
    untold = {scope: count for scope, count in notes.untold.items() if scope in kept}
    if left != notes.given_way or untold != notes.untold:
        run.store.lake.note(replace(notes, given_way=left, untold=untold))
