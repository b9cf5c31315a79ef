"""The lists of stages, in the order in which they run; those that ask a language model load it only then."""

from cortex.flows.extract_transcripts import extract
from cortex.flows.run.run import Run, stage
from cortex.flows.stages.embed import embed, embed_memories
from cortex.flows.stages.erase import compact, erase
from cortex.flows.stages.guard import guard, wipe
from cortex.flows.stages.memories import consolidate, consolidate_all, decay, link, retire
from cortex.flows.stages.publish import (
    database,
    drop_moved,
    first_database,
    map_projects,
    render,
    surface,
    sweep_lake,
)
from cortex.flows.stages.team_facts import team

# -- The stage write: a language model reads the sessions that are over, where a person chose one.


@stage(reads="turns events settled replies journal", writes="replies events")
def write(run: Run) -> None:
    """Ask about the sessions without an answer, as far as the budget reaches; without a model, do nothing."""
    if not run.settings.models.is_on or run.settings.models.replays:
        return
    # Imported here: with no language model chosen none of this is loaded.
    from cortex.flows.asking_model.writing import write_sessions

    write_sessions(run)


# -- The stage judge: a language model says how pairs of memories stand to each other, where one is chosen.


@stage(reads="turns events replies journal vectors memories edges", writes="replies edges memories journal")
def judge(run: Run) -> None:
    """
    Ask about each project that holds something new, then about pairs that no such answer has seen.

    As far as the budget reaches; what is said of a scope it is linked again by.
    """
    if not run.settings.models.is_on or run.settings.models.replays:
        return
    # Imported here: with no language model chosen none of this is loaded.
    from cortex.flows.asking_model.judging import judge_pairs, read_projects

    answers = read_projects(run)
    if judge_pairs(run) + answers:
        for again in (link, decay):
            again(run)


TABLES = (embed, link, decay)
BRIEFS = (render, map_projects, surface, drop_moved)
# Of the whole store. What is published names the lake's files: they are compacted before it.
STORE = (database, sweep_lake)
PUBLISH = (compact, *BRIEFS, *STORE)
# What makes tables and published files from the lake.
PROJECTION = (*TABLES, *PUBLISH)

# Briefs first: they need the vectors of memories alone. Those of passages, by far the most, fill up behind.
KNOWN = (embed_memories, link, decay)
FILLED_IN = (first_database, embed, compact, *STORE, wipe)

INGEST = (erase, extract, write, team, compact, guard, *KNOWN, judge, consolidate, *BRIEFS, *FILLED_IN)
NIGHTLY = (
    *(retire, erase, extract, write, team, compact, guard),
    *(*KNOWN, judge, consolidate_all, *BRIEFS, *FILLED_IN),
)
# After an entry of a person in the journal: what waits in staging stays there.
APPLY = (erase, guard, *PROJECTION, wipe)
# After a person wanted something forgotten: kept transcripts that wait hold it too, until they are read.
FORGET = (erase, extract, compact, guard, *PROJECTION, wipe)
CONSOLIDATE = (erase, guard, *TABLES, consolidate_all, embed, *PUBLISH, wipe)
