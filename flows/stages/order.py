"""The lists of stages, in the order in which they run."""

from cortex.flows.stages.compact import compact
from cortex.flows.stages.consolidate import consolidate, consolidate_all
from cortex.flows.stages.decay import decay
from cortex.flows.stages.embed import embed, embed_memories
from cortex.flows.stages.erase import erase
from cortex.flows.stages.extract import extract
from cortex.flows.stages.guard import guard
from cortex.flows.stages.judge import judge
from cortex.flows.stages.link import link
from cortex.flows.stages.publish import database, drop_moved, map_projects, surface, sweep_lake
from cortex.flows.stages.render import render
from cortex.flows.stages.retire import retire
from cortex.flows.stages.team_facts import team
from cortex.flows.stages.wipe import wipe
from cortex.flows.stages.write import write

TABLES = (embed, link, decay)
BRIEFS = (render, map_projects, surface, drop_moved)
# Of the whole store. What is published names the lake's files: they are compacted before it.
STORE = (database, sweep_lake)
PUBLISH = (compact, *BRIEFS, *STORE)
# What makes tables and published files from the lake.
PROJECTION = (*TABLES, *PUBLISH)

# Briefs first: they need the vectors of memories alone. Those of passages, by far the most, fill up behind.
KNOWN = (embed_memories, link, decay)
FILLED_IN = (embed, compact, *STORE, wipe)

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
