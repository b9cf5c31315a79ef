"""Pages: a template with the values of its HTML and JSON, how they are written, and answers that are kept."""

import json
import re
import threading
from collections.abc import Callable, Hashable, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar
from urllib.parse import urlencode

import jinja2
from markupsafe import Markup, escape
from rich.filesize import decimal

from cortex.flows.context import Context
from cortex.flows.operations import lookup
from cortex.hooks.prose.characters import escaped, visible
from cortex.transforms.errors import UsageError
from cortex.transforms.words.ages import ago, author_of_layer, counted, speaker_of
from cortex.transforms.words.sentences import excerpt

# -- Caches slow answers until the store changes.

CachedValue = TypeVar("CachedValue")

# A person looks at a few projects at a time; an answer holds some hundred rows.
ANSWERS_CACHED = 20


@dataclass
class AnswerCache:
    """The last answers by question, each with the state of the store that it holds for."""

    _cached: dict[Hashable, tuple[object, object]] = field(default_factory=dict)
    _changing: threading.Lock = field(default_factory=threading.Lock)

    def get(self, question: Hashable, state: object, find: Callable[[], CachedValue]) -> CachedValue:
        """Return what `find` answered in this state; the answer of a former state is dropped."""
        with self._changing:
            known = self._cached.pop(question, None)
            if known is not None and known[0] == state:
                self._cached[question] = known  # the last one asked for is the last to go
                return known[1]  # type: ignore[return-value]
        answer = find()
        with self._changing:
            self._cached[question] = (state, answer)
            while len(self._cached) > ANSWERS_CACHED:
                del self._cached[next(iter(self._cached))]
        return answer

    def clear(self) -> None:
        """Drop all answers."""
        with self._changing:
            self._cached.clear()


# -- What a view gives: a page with a template and the values that both its HTML and its JSON are made from.

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
    answers: AnswerCache = field(default_factory=AnswerCache)

    def kept(self, question: Hashable, project_id: str, find: Callable[[], CachedValue]) -> CachedValue:
        """Return an answer about a project: `find`'s, or what it was as long as nothing has changed since."""
        state = lookup.state_of_project(self.context, project_id)
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


def pager(request: ViewRequest, total: int, rows: int) -> Pager:
    """Return the pager of a page with `rows` rows out of `total`."""
    number = request.number("page", 1)
    first = (number - 1) * PAGE_ROWS + 1
    last = first + rows - 1
    before = request.link(page=number - 1 if number > 2 else "") if number > 1 else ""
    return Pager(first, last, total, before, request.link(page=number + 1) if last < total else "")


View: TypeAlias = Callable[[ViewRequest], Page]


# -- Pages as HTML: the templates, and how instants, shares and a stranger's text are written in them.

# A name in backticks, as memories write code; bounded, so that a hostile text costs no more than its length.
_CODE = re.compile(r"`([^`\n]{1,160})`")


@lru_cache(maxsize=1)
def templates() -> jinja2.Environment:
    """
    Return the templates. All text is escaped, and nothing that cannot be seen or steers text passes.

    A name that a template uses and is not given is an error.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("cortex.explorer", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        ago=ago,
        counted=lambda count, noun: f"{count:,} {counted(2 if count != 1 else 1, noun).split(' ', 1)[1]}",
        day=lambda at: f"{at:%-d %b %Y}" if at else "no date",
        instant=lambda at: f"{at:%Y-%m-%d %H:%M} UTC" if at else "no date",
        number=lambda value: f"{value:,}",
        share=lambda value: f"{value:.2f}",
        excerpt=lambda text, chars=200: excerpt(visible(text, keeps_lines=True), chars),
        words=lambda text: str(text).replace("_", " "),
        bytes=decimal,
        coded=coded,
        speaker=lambda memory: speaker_of({"evidence": (), **memory}),
        author=author_of_layer,
    )
    return environment


def _shown(value: object) -> object:
    return visible(value, keeps_lines=True) if type(value) is str else "" if value is None else value


def html_of(template: str, values: Mapping[str, Any]) -> str:
    """Return a template with its values as one HTML document."""
    return templates().get_template(template).render(values)


def json_of(data: Mapping[str, object]) -> str:
    """Return a page's values as JSON; what cannot be seen is escaped, so that it means the same."""
    return escaped(json.dumps(data, ensure_ascii=False, default=_plain))


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, set | frozenset):
        return sorted(value)
    return str(value)


def coded(text: str) -> Markup:
    """
    Return text escaped, with what stands between backticks as code.

    >>> str(coded("use `a<b>`"))
    'use <code>a&lt;b&gt;</code>'
    """
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(visible(text, keeps_lines=True)))))
