"""Sessions that another version of the instruction has read: which, and reading them again when asked to."""

from collections.abc import Mapping

from cortex.flows.asking_model.writing import UnreadSession, quiet_sessions, read_sessions
from cortex.flows.run.run import Run
from cortex.transforms.schemas import REPLIES
from cortex.transforms.writer.written import SESSION_PURPOSE

_COLUMNS = ["session_id", "turn_count", "prompt", "purpose", "provider"]


def read_otherwise(run: Run, prompts: Mapping[str, str]) -> list[UnreadSession]:
    """
    Return the sessions that were read as they are now, but not by the version given for their project.

    `prompts` is by project. The newest come first; what is new or has grown is not among them.
    """
    sessions = []
    for project_id, prompt in sorted(prompts.items()):
        with run.outcome.without_damage(project_id):
            rows = run.store.lake.read(REPLIES, project_id, columns=_COLUMNS).to_pylist()
            read = [row for row in rows if row["purpose"] == SESSION_PURPOSE]
            by_it = {(row["session_id"], row["turn_count"]) for row in read if row["prompt"] == prompt}
            asked = {(row["session_id"], row["turn_count"]) for row in read if row["provider"] != "none"}
            sessions += [
                each
                for each in quiet_sessions(run, project_id)
                if (each.session_id, each.turn_count) in asked - by_it
            ]
    return sorted(sessions, key=lambda each: (each.ended_at, each.project_id, each.session_id), reverse=True)


def read_again(run: Run, prompts: Mapping[str, str]) -> None:
    """
    Ask about the sessions that other versions than `prompts` have read, within the budget; keep the answers.

    Nothing that is shown changes: the answers count once a person promotes what follows from them.
    """
    sessions = read_otherwise(run, prompts)
    if sessions:
        with run.report.stage("write") as row:
            read_sessions(run, sessions, row, prompts)
