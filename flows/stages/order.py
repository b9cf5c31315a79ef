"""The lists of stages, in the order in which they run."""

from cortex.flows.stages.compact import compact
from cortex.flows.stages.consolidate import consolidate, consolidate_all
from cortex.flows.stages.decay import decay
from cortex.flows.stages.embed import embed, embed_spare
from cortex.flows.stages.erase import erase, wipe
from cortex.flows.stages.extract import extract
from cortex.flows.stages.guard import guard
from cortex.flows.stages.link import link
from cortex.flows.stages.publish import database, drop_moved, map_projects, surface, sweep_lake
from cortex.flows.stages.render import render
from cortex.flows.stages.retire import retire

TABLES = (embed, link, decay)
PUBLISH = (compact, render, map_projects, surface, drop_moved, database, sweep_lake)
# What makes tables and published files from the lake.
PROJECTION = (*TABLES, *PUBLISH)

INGEST = (erase, extract, compact, guard, *TABLES, consolidate, *PUBLISH, wipe, embed_spare)
NIGHTLY = (retire, erase, extract, compact, guard, *TABLES, consolidate_all, *PUBLISH, wipe, embed_spare)
# After an entry of a person in the journal: what waits in staging stays there.
APPLY = (erase, guard, *PROJECTION, wipe)
# After a person wanted something forgotten: kept transcripts that wait hold it too, until they are read.
FORGET = (erase, extract, compact, guard, *PROJECTION, wipe)
CONSOLIDATE = (erase, guard, *TABLES, consolidate_all, *PUBLISH, wipe)
