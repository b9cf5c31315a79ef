"""Questions that a tool puts to the person at the client, where the client can ask."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cortex.transforms.identity import content_id

ALL = "all"
DECLINED = ""


@dataclass(frozen=True)
class Option:
    """One of the answers that a person may choose."""

    id: str
    label: str

    def as_dict(self) -> dict[str, str]:
        """Return the option as a structured answer lists it."""
        return {"id": self.id, "label": self.label}


@dataclass(frozen=True)
class ChoiceQuestion:
    """A question with the answers it takes; its key is made of both, so that no answer fits another."""

    message: str
    options: Sequence[Option]

    @property
    def key(self) -> str:
        """What the client's answer is named by."""
        return content_id("question", self.message, *(f"{o.id} {o.label}" for o in self.options))

    def schema(self, *, has_titles: bool) -> dict[str, Any]:
        """
        Return the form as the client shows it; before 2025-11-25 the labels of a choice are a separate list.
        """
        choice: dict[str, Any] = {"type": "string", "title": "Your choice"}
        if has_titles:
            choice["oneOf"] = [{"const": each.id, "title": each.label} for each in self.options]
        else:
            choice["enum"] = [each.id for each in self.options]
            choice["enumNames"] = [each.label for each in self.options]
        return {"type": "object", "properties": {"choice": choice}, "required": ["choice"]}

    def chosen(self, answer: "FormAnswer") -> str:
        """Return the id of the option that an answer names; DECLINED for any other answer."""
        choice = (answer.content or {}).get("choice") if answer.action == "accept" else None
        ids = [each.id for each in self.options]
        return str(choice) if choice in ids else DECLINED


@dataclass(frozen=True)
class FormAnswer:
    """What a client says to a question: `accept` with the form's content, or `decline` or `cancel`."""

    action: str
    content: Mapping[str, Any] | None = None


class ChoiceNeeded(Exception):
    """Ends a call that waits for a person's answer; it is made again with the answer."""

    def __init__(self, question: ChoiceQuestion) -> None:
        super().__init__(question.message)
        self.question = question


@dataclass(frozen=True)
class Person:
    """The person at the client: whether they can be asked, and what they have answered, by question's key."""

    can_be_asked: bool = False
    answers: Mapping[str, FormAnswer] = field(default_factory=dict)

    def choose(self, question: ChoiceQuestion) -> str | None:
        """
        Return the id of the option that the person chose, DECLINED where they would not.

        None if nobody can be asked. Raises ChoiceNeeded if the answer is still to come.
        """
        if question.key in self.answers:
            return question.chosen(self.answers[question.key])
        if not self.can_be_asked:
            return None
        raise ChoiceNeeded(question)
