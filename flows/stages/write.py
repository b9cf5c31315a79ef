"""The stage write: a language model reads the sessions that are over, where a person chose one."""

from cortex.flows.run.run import Run
from cortex.flows.stages.stage import stage


@stage(reads="turns events settled replies journal", writes="replies events")
def write(run: Run) -> None:
    """Ask about the sessions without an answer, as far as the budget reaches; without a model, do nothing."""
    if not run.settings.models.is_on or run.settings.models.replays:
        return
    # Imported here: with no language model chosen none of this is loaded.
    from cortex.flows.asking_model.writing import write_sessions

    write_sessions(run)
