"""Text as it reads: without unseen characters, full-width and styled letters as plain ones, places kept."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import lru_cache

import re2

from cortex.hooks.prose.characters import CONTROLS, ESCAPES, UNSEEN

# Letters, digits and signs that ASCII has, in another width or style: full-width, mathematical, in circles,
# raised, lowered, small.
_STYLED = (
    "\u00aa\u00b2\u00b3\u00b9\u00ba\u02b0-\u02b8\u2070-\u209c\u2100-\u214f\u2460-\u24ff\ufe50-\ufe6b"
    "\uff01-\uff5e\U0001d400-\U0001d7ff\U0001f100-\U0001f169"
)
# Strokes and accents set over a letter; composed letters have their own code points and stay.
_COMBINING = "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff"
# A carriage return reads as a line end anyway; halves of surrogate pairs are not UTF-8 and are never stored.
_ODD = f"{UNSEEN}{CONTROLS}{_COMBINING}".replace("\x0b-\x1f", "\x0b\x0c\x0e-\x1f").replace(
    "\ud800-\udfff", ""
)
# In RE2's syntax: whether a text reads otherwise than it stands, and where.
READS_OTHERWISE = f"[{_ODD}{_STYLED}]"
_OTHERWISE = re2.compile(f"{ESCAPES.pattern}|[{_ODD}]+|[{_STYLED}]")
_IS_STYLED = re.compile(f"[{_STYLED}]")
_LINE_ENDS = ("\u2028", "\u2029")


@dataclass(frozen=True)
class PlainView:
    """
    The UTF-8 of a text as it reads, and where its pieces stand in the UTF-8 of the original.

    A piece begins at each of `places`, in the plain text, and of `origins`, in the original. Between them
    the two are the same, but for a piece of one character that another one stands for.
    """

    data: bytes
    places: tuple[int, ...]
    origins: tuple[int, ...]

    def start_of(self, place: int) -> int:
        """Return where, in the original, the character at `place` of the plain text begins."""
        piece = bisect_right(self.places, place) - 1
        return self.origins[piece] + place - self.places[piece]

    def end_of(self, place: int) -> int:
        """Return where, in the original, the character that ends before `place` ends."""
        piece = bisect_left(self.places, place)
        if piece < len(self.places) and self.places[piece] == place:
            return self.origins[piece]
        return self.origins[piece - 1] + place - self.places[piece - 1]


def plain_view(data: bytes) -> PlainView | None:
    """
    Return UTF-8 text as it reads, or None if it reads as it stands.

    >>> plain_view("p\\u200bass\\uff57ord".encode()).data
    b'password'
    """
    pieces: list[bytes] = []
    places, origins = [0], [0]
    place = position = 0
    for match in _OTHERWISE.finditer(data):
        start, end = match.span()
        plain = _plain(match.group())
        pieces += [data[position:start], plain]
        place += start - position
        places += [place, place + len(plain)]
        origins += [start, end]
        place, position = place + len(plain), end
    if not pieces:
        return None
    return PlainView(b"".join([*pieces, data[position:]]), tuple(places), tuple(origins))


@lru_cache(maxsize=4_096)
def _plain(otherwise: bytes) -> bytes:
    """Return what is read for a styled letter; for the unseen nothing, for line ends a line end."""
    text = otherwise.decode("utf-8")
    # Of single characters alone: over a long run of combining marks normalising is quadratic.
    plain = unicodedata.normalize("NFKC", text) if len(text) == 1 else ""
    if plain and plain.isascii() and plain.isprintable():
        return plain.encode()
    if any(end in text for end in _LINE_ENDS):
        return b"\n"
    # A styled letter that ASCII lacks stays; anything else here shows nothing.
    return otherwise if _IS_STYLED.match(text) else b""
