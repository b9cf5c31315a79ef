"""The stage judge: a language model says how pairs of memories stand to each other, where one is chosen."""

from cortex.flows.run.run import Run
from cortex.flows.stages.decay import decay
from cortex.flows.stages.link import link
from cortex.flows.stages.stage import stage


@stage(reads="turns events replies journal vectors memories edges", writes="replies edges memories journal")
def judge(run: Run) -> None:
    """Ask about the pairs without an answer, as far as the budget reaches, and link again by what it says."""
    if not run.settings.models.is_on or run.settings.models.replays:
        return
    # Imported here: with no language model chosen none of this is loaded.
    from cortex.flows.asking_model.judging import judge_pairs

    if judge_pairs(run):
        for again in (link, decay):
            again(run)
