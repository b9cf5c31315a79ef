"""The stage judge: a language model says how pairs of memories stand to each other, where one is chosen."""

from cortex.flows.run.run import Run
from cortex.flows.stages.decay import decay
from cortex.flows.stages.link import link
from cortex.flows.stages.stage import stage


@stage(reads="turns events replies journal vectors memories edges", writes="replies edges memories journal")
def judge(run: Run) -> None:
    """
    Ask about each project that holds something new, then about pairs that no such answer has seen.

    As far as the budget reaches; what is said of a scope it is linked again by.
    """
    if not run.settings.models.is_on or run.settings.models.replays:
        return
    # Imported here: with no language model chosen none of this is loaded.
    from cortex.flows.asking_model.judging import judge_pairs
    from cortex.flows.asking_model.project_reading import read_projects

    answers = read_projects(run)
    if judge_pairs(run) + answers:
        for again in (link, decay):
            again(run)
