"""Cuts text into the words that the hook index holds and a prompt is looked up by: one cut for both sides."""

from __future__ import annotations

import re

_NAME = re.compile(r"[^\W_]+(?:[_.-]+[^\W_]+)*")
_SIGNS = re.compile(r"[_.-]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Scripts written without spaces, or (Hangul) with endings glued on: Han, kana, Hangul syllables.
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7a3]+")


def index_terms(text: str) -> list[str]:
    """
    Return the words of `text` in lower case, each once, in the order of their first appearance.

    A name with signs or humps in it gives its parts and, joined, itself; scripts without spaces give pairs
    of characters. Single letters and numbers of one or two digits do not count: they are in everything.

    >>> words_of("call loadConfig in app_state.py")
    ['call', 'loadconfig', 'load', 'config', 'in', 'appstatepy', 'app', 'state', 'py']
    """
    words: dict[str, None] = {}
    for name in _NAME.findall(_UNSPACED.sub(r" \g<0> ", text)):
        if _UNSPACED.match(name):
            pairs = [name[at : at + 2] for at in range(len(name) - 1)] or [name]
            words.update(dict.fromkeys(pairs))
            continue
        parts = [part for piece in _SIGNS.split(name) for part in _CAMEL.split(piece)]
        words["".join(parts).lower()] = None
        if len(parts) > 1:
            words.update(dict.fromkeys(part.lower() for part in parts))
    return [word for word in words if not _is_bare(word)]


def _is_bare(word: str) -> bool:
    return len(word) <= 2 and (word.isdigit() or (len(word) == 1 and word.isascii()))
