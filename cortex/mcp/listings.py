"""What a client lists besides the tools: resources, templates, prompts, and how long a list stays valid."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cortex.transforms.errors import ArgumentMissing, ArgumentOutOfRange, ArgumentUnknown, UnknownTool

MARKDOWN, JSON = "text/markdown", "application/json"

# Milliseconds that a client may keep what it was given. The lists change with the version of Cortex alone;
# what is in the memory changes with the next run.
MAX_ARGUMENT_LENGTH = 400
LISTS_HOLD_MS, CONTENTS_HOLD_MS = 3_600_000, 30_000


def _listed(address: str, name: str, title: str, description: str, kind: str = MARKDOWN) -> dict[str, Any]:
    key = "uriTemplate" if "{" in address else "uri"
    return {key: address, "name": name, "title": title, "description": description, "mimeType": kind}


RESOURCES = (
    _listed(
        "cortex://brief",
        "brief",
        "Brief of this project",
        "The brief that a session of this project starts with.",
    ),
    _listed(
        "cortex://decisions",
        "decisions",
        "Decision log",
        "The decisions that hold in this project, newest first.",
    ),
    _listed(
        "cortex://project", "project", "This project", "Folders, sessions and how much is remembered.", JSON
    ),
    _listed(
        "cortex://report/last",
        "report",
        "Report of the last month",
        "Decisions, corrections and open points.",
    ),
)

TEMPLATES = (
    _listed(
        "cortex://memory/{id}", "memory", "One memory", "A memory or turn by its id, with its evidence.", JSON
    ),
    _listed(
        "cortex://session/{session}",
        "session",
        "One session",
        "Its time, its result and what it left open.",
        JSON,
    ),
    _listed(
        "cortex://brief/{project}",
        "brief of a project",
        "Brief of a project",
        "The brief that a session of that project starts with.",
    ),
    _listed(
        "cortex://decisions/{project}",
        "decisions of a project",
        "Decision log of a project",
        "The decisions that hold in that project, newest first.",
    ),
    _listed(
        "cortex://project/{project}",
        "a project",
        "A project",
        "Folders, sessions and how much is remembered of that project.",
        JSON,
    ),
    _listed(
        "cortex://report/{month}",
        "report of a month",
        "Report of a month (YYYY-MM)",
        "Decisions, corrections and open points of one month of this project.",
    ),
)


@dataclass(frozen=True)
class PromptForm:
    """A prompt that a person picks: `text` has its arguments in braces; an optional one may be missing."""

    name: str
    title: str
    purpose: str
    text: str
    argument: str = ""
    meaning: str = ""
    is_required: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the prompt as the protocol lists it."""
        described = {"name": self.argument, "description": self.meaning, "required": self.is_required}
        arguments = [described] if self.argument else []
        return {"name": self.name, "title": self.title, "description": self.purpose, "arguments": arguments}

    def filled(self, value: str) -> str:
        """Return the prompt's text with its argument, which stands in quotation marks."""
        return self.text.replace("{about}", f'about "{value}"' if value else "of this project")


PROMPTS = (
    PromptForm(
        "handover",
        "Hand over",
        "What the next session or colleague must know.",
        "Write a handover {about}: call reflect for what is open and recall for the last decisions and what "
        "was proved. Give goal, state, open steps in order, traps, files to begin with; cite memory ids.",
        "subject",
        "what to hand over; default: the project",
    ),
    PromptForm(
        "why",
        "Why is it so",
        "The decisions behind a file or subject.",
        "Explain why things are as they are {about}: call infer for the chain of decisions, then read the "
        "code and say where it no longer agrees. Cite memory ids.",
        "target",
        "a path, subject or memory id",
        True,
    ),
    PromptForm(
        "review-stale",
        "Review what is stale",
        "Points that may no longer hold, to resolve with the user.",
        "Call reflect and go through what is stale or contradictory {about}: check each point against the "
        "code, then ask me for each whether it holds. What I confirm or correct, store with learn.",
        "subject",
        "only what bears on it",
    ),
    PromptForm(
        "next-step",
        "Plan the next step",
        "The next step, from the open points.",
        "Plan the next step {about}: call reflect for what is open and recall for decisions and rejected "
        "options that bear on it. Propose one step, why it comes first, and how we know that it is done.",
        "subject",
        "the work in question",
    ),
    PromptForm(
        "lessons",
        "What did we learn",
        "Lessons from the session that are worth keeping.",
        "Look back at this session {about}: name at most three lessons that a later session needs and recall "
        "does not know yet. Show them to me, then store those I agree to with learn, with type and evidence.",
        "subject",
        "only lessons about it",
    ),
)
_PROMPT_BY_NAME = {prompt.name: prompt for prompt in PROMPTS}


def prompt_filled(name: str, arguments: Mapping[str, str]) -> tuple[PromptForm, str]:
    """Return the prompt of that name and its text. Raises UnknownTool and the errors of bad arguments."""
    prompt = _PROMPT_BY_NAME.get(name)
    if prompt is None:
        listed = ", ".join(each.name for each in PROMPTS)
        raise UnknownTool(f"There is no prompt '{name[:40]}'.", f"The prompts: {listed}.", "name")
    for other in arguments.keys() - {prompt.argument}:
        raise ArgumentUnknown(
            f"{name} has no argument '{other[:40]}'.", f"It takes {prompt.argument}.", other
        )
    value = " ".join(arguments.get(prompt.argument, "").split())
    if prompt.is_required and not value:
        raise ArgumentMissing(
            f"{name} needs '{prompt.argument}'.", f"Give {prompt.meaning}.", prompt.argument
        )
    if len(value) > MAX_ARGUMENT_LENGTH:
        raise ArgumentOutOfRange(f"'{prompt.argument}' is long.", f"Give {MAX_ARGUMENT_LENGTH} characters.")
    return prompt, prompt.filled(value.replace('"', "'"))
