"""The stage relink: what was made of the vectors of a model that failed later in the same run."""

from cortex.flows.run.run import Run
from cortex.flows.stages.consolidate import consolidate
from cortex.flows.stages.decay import decay
from cortex.flows.stages.link import link
from cortex.flows.stages.publish import surface
from cortex.flows.stages.render import render
from cortex.flows.stages.stage import stage


@stage(reads="turns events replies journal vectors edges memories", writes="journal vectors edges memories")
def relink(run: Run) -> None:
    """Make edges, memories and briefs of the stand-in's vectors where the hosted model failed behind them."""
    if run.embedding.linked_with in (None, run.embedding.model):
        return
    for again in (link, decay, consolidate, render, surface):
        again(run)
