"""Which statements at the end of a transcript only repeat what a tool had brought in before."""

from __future__ import annotations

import json
import time
from bisect import bisect_right

TYPE_CHECKING = False
if TYPE_CHECKING or __package__:
    from collections.abc import Iterator, Sequence

    from cortex.hooks.prose import plain, repeats, sources
else:
    from prose import plain, repeats, sources

# A longer line is neither a list (fifty steps have about 10 kB) nor an answer. A longer result is not read
# word by word (half a megabyte takes 30 ms): it repeats a statement where its bytes hold enough of the words.
MAX_LINE_BYTES = 256 * 1024
_RESULT = b'tool_result"'
_TAG = b"[memory:"


class _TooLateError(Exception):
    """The time to look through the results is over."""


class Results:
    """The results of tools in the end of a transcript, looked through for what some statements say."""

    def __init__(self, tail: bytes, give_up_at: float) -> None:
        self._tail, self._lowered, self._give_up_at = tail, tail.lower(), give_up_at
        self._held: dict[bytes, list[tuple[int, int]]] = {}

    def repeated(self, texts: Sequence[tuple[str, int]], trusts: Sequence[str]) -> set[int]:
        """
        Return the positions of those of `texts`, each with the place its line ends at, that repeat a result.

        Counted are results before that place whose words have one of `trusts`. What is not looked through by
        `give_up_at` (of time.monotonic()) counts as repeated: in doubt nothing is shown.
        """
        try:
            return self._repeated(texts, trusts)
        except _TooLateError:
            return set(range(len(texts)))

    def _repeated(self, texts: Sequence[tuple[str, int]], trusts: Sequence[str]) -> set[int]:
        wanted, near = [], []
        places = self._places()
        for text, _ in texts:
            self._check_time()
            # No brief shows a longer one.
            wanted.append(repeats.statements(text[: plain.LONGEST_LINE]))
            near.append({place for words in wanted[-1] for place in self._near(words, places)})
        heard = repeats.Heard(words for statements in wanted for words in statements)
        holding: set[tuple[int, int]] = set()  # long results, whose words are not read
        for place in sorted({place for held in near for place in held}):
            self._check_time()
            for text in self._texts(self._tail[slice(*place)], trusts):
                if place[1] - place[0] > MAX_LINE_BYTES:
                    holding.add(place)
                else:
                    heard.hear(text, place[1])
        repeated = set()
        for at, (_, said_at) in enumerate(texts):
            self._check_time()
            marks = [end for _, end in holding & near[at]]
            marks += [mark for words in wanted[at] for mark in heard.marks_of(words)]
            if any(mark < said_at for mark in marks):
                repeated.add(at)
        return repeated

    def _check_time(self) -> None:
        if time.monotonic() > self._give_up_at:
            raise _TooLateError

    def _places(self) -> list[tuple[int, int]]:
        """Return (start, end) of each line that holds the result of a tool, in order."""
        places: list[tuple[int, int]] = []
        at = self._tail.find(_RESULT)
        while at >= 0:
            start, end = self._tail.rfind(b"\n", 0, at) + 1, self._tail.find(b"\n", at)
            end = end if end >= 0 else len(self._tail)
            places.append((start, end))
            at = self._tail.find(_RESULT, end)
        return places

    def _near(self, words: Sequence[str], places: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """
        Yield the places that hold a tag or enough of `words` to say nearly the same; no JSON is read for it.

        At most so many of the words may be missing, so of one more than these one must be there. Those looked
        for are the longest, which are rare.
        """
        distinct = set(words)
        may_miss = len(distinct) - repeats.least_words(len(distinct))
        ascii_words = sorted((word.encode() for word in distinct if word.isascii()), key=len, reverse=True)
        must = [_TAG]
        if len(distinct) >= repeats.FEWEST_WORDS:
            must += ascii_words[: may_miss + 1] if len(ascii_words) == len(distinct) else [b""]
        for place in {place for word in must for place in self._holding(word, places)}:
            self._check_time()
            missing = sum(self._lowered.find(word, *place) < 0 for word in ascii_words)
            if missing <= may_miss or self._lowered.find(_TAG, *place) >= 0:
                yield place

    def _holding(self, word: bytes, places: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the places that hold a word, an empty one all; half a megabyte takes 0.2 ms."""
        if word in self._held:
            return self._held[word]
        holding: list[tuple[int, int]] = []
        at = self._lowered.find(word)
        while at >= 0:
            number = bisect_right(places, (at, len(self._tail))) - 1
            is_in = number >= 0 and at < places[number][1]
            if is_in:
                holding.append(places[number])
            if number + 1 >= len(places):
                break
            at = self._lowered.find(word, places[number + 1][0])
        self._held[word] = holding
        return holding

    def _texts(self, line: bytes, trusts: Sequence[str]) -> Iterator[str]:
        for block in _blocks(line):
            if not str(block.get("type")).endswith("tool_result"):
                continue
            if self._trust_of(block, line) in trusts:
                yield "\n".join(_strings(block.get("content")))

    def _trust_of(self, block: dict[str, object], line: bytes) -> str | None:
        """Return the trust of a result's words: by the call that it answers, which stands before it."""
        if str(block.get("type")).startswith("web_"):
            return "external"
        needle = json.dumps(str(block.get("tool_use_id"))).encode()
        at = self._tail.find(needle)
        start, end = self._tail.rfind(b"\n", 0, max(at, 0)) + 1, self._tail.find(b"\n", max(at, 0))
        for call in _blocks(self._tail[start:end]) if at >= 0 else ():
            given = call.get("input")
            if call.get("id") == block.get("tool_use_id") and isinstance(given, dict):
                argument = " ".join(str(given.get(name) or "") for name in ("command", "file_path"))
                return sources.trust_of_call(str(call.get("name")), argument)
        return "tool"


def _blocks(line: bytes) -> list[dict[str, object]]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return []
    message = record.get("message") if isinstance(record, dict) else None
    content = message.get("content") if isinstance(message, dict) else None
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _strings(content: object) -> list[str]:
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else [content]
    return [str(block.get("text") or "") for block in blocks if isinstance(block, dict)]
