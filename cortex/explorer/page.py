"""What a view gives: a page with a template and the values that both its HTML and its JSON are made from."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import urlencode

from cortex.explorer.answer_cache import Kept, KeptAnswers
from cortex.flows.context.context import Context
from cortex.flows.operations.lookup import state as state_operation
from cortex.transforms.errors import UsageError

PAGE_ROWS = 25


@dataclass(frozen=True)
class ViewRequest:
    """
    What a view is asked: the context, the parts of its path, and its query.

    `writes` is false if nothing may be changed, so that no form is shown. `answers` are those that take
    long, of all requests.
    """

    context: Context
    path: str
    parts: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    writes: bool = True
    answers: KeptAnswers = field(default_factory=KeptAnswers)

    def kept(self, question: Hashable, project_id: str, find: Callable[[], Kept]) -> Kept:
        """Return an answer about a project: `find`'s, or what it was as long as nothing has changed since."""
        state = state_operation.state_of_project(self.context, project_id)
        return self.answers.get(question, state, find)

    def word(self, name: str) -> str:
        """Return a value of the query, "" if it is not given."""
        return self.query.get(name, "").strip()

    def number(self, name: str, default: int, *, low: int = 1, high: int = 1_000_000) -> int:
        """Return a whole number of the query. Raises UsageError for another word, or one out of range."""
        text = self.word(name)
        if not text:
            return default
        if not (text.isascii() and text.isdecimal()) or not low <= int(text[:9]) <= high:
            raise UsageError(
                f"'{name}' must be a whole number, not '{text}'.", f"Use one from {low} to {high}."
            )
        return int(text)

    def link(self, **changes: str | int) -> str:
        """Return the address of this view with other values in the query; "" takes one out."""
        query = {**self.query, **{name: str(value) for name, value in changes.items()}}
        words = urlencode({name: value for name, value in query.items() if value})
        return f"{self.path}?{words}" if words else self.path


@dataclass(frozen=True)
class Page:
    """
    A view's answer: `data` is what its JSON twin gives, and what its template is given.

    `extra` is for the template alone: forms and addresses.
    """

    template: str
    title: str
    data: Mapping[str, object]
    extra: Mapping[str, object] = field(default_factory=dict)
    status: int = 200


@dataclass(frozen=True)
class Pager:
    """The rows of a list that a page shows, from 1, and the addresses of its neighbours; "" for none."""

    first: int
    last: int
    total: int
    before: str
    after: str


def pager(request: ViewRequest, total: int, rows: int, size: int = PAGE_ROWS) -> Pager:
    """Return the pager of a page with `rows` rows out of `total`."""
    number = request.number("page", 1)
    first = (number - 1) * size + 1
    last = first + rows - 1
    before = request.link(page=number - 1 if number > 2 else "") if number > 1 else ""
    return Pager(first, last, total, before, request.link(page=number + 1) if last < total else "")


View: TypeAlias = Callable[[ViewRequest], Page]
