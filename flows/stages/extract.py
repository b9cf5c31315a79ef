"""The stage extract: waiting transcripts and journal entries come into the lake."""

from cortex.flows.extracting import extract_transcripts as transcripts
from cortex.flows.run.run import Run
from cortex.flows.stages.stage import stage


@stage(reads="turns events settled replies journal", writes="turns events journal")
def extract(run: Run) -> None:
    """Take in every waiting transcript; events of sessions that do not grow stay as they are."""
    transcripts.extract_staged(run)
