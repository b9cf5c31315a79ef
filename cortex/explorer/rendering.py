"""Pages as HTML: the templates, and how instants, shares and a stranger's text are written in them."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import Any

import jinja2
from markupsafe import Markup, escape

from cortex.hooks.prose.characters import escaped, visible
from cortex.transforms.memory.authors import author_of_layer, speaker_of
from cortex.transforms.words.ages import ago, counted
from cortex.transforms.words.sentences import excerpt

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
        bytes=_size,
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


def _size(size: int) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size = round(size / 1000)
    return f"{size:,} GB"


def coded(text: str) -> Markup:
    """
    Return text escaped, with what stands between backticks as code.

    >>> str(coded("use `a<b>`"))
    'use <code>a&lt;b&gt;</code>'
    """
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(visible(text, keeps_lines=True)))))
