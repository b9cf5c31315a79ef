"""What a session leaves open: requests not seen done, offers and questions nobody answered."""

from collections.abc import Sequence

from cortex.transforms.extract.candidate import text_of
from cortex.transforms.extract.dialogue import TERSE_CHARS, without_pasted_lines
from cortex.transforms.extract.phrases import Phrasebook, part_of
from cortex.transforms.extract.plans import request
from cortex.transforms.extract.recaps import prose_sentences
from cortex.transforms.extract.sentences import prose_blocks
from cortex.transforms.extract.stretches import Stretch
from cortex.transforms.extract.tags import without_tags

_FILES_NAMED = 3
_SHORTEST_OFFER_CHARS = 12
# "ship it", "do 0.54.0": an order in a few words says what was under way.
_LONGEST_ORDER_CHARS = 40
_FEWEST_QUESTION_WORDS = 4
_SHORTEST_QUESTION_CHARS = 15
_LONGEST_QUESTION_CHARS = 120


def unfinished_request(parts: Sequence[Stretch], phrases: Phrasebook) -> str:
    """Return what a person asked for last where no answer followed: their request, or the offer they took."""
    last = parts[-1] if parts else None
    if last is None or last.asked is None or last.is_answered:
        return ""
    asked = request(without_pasted_lines(last.words))
    if asked or last.asked["kind"] not in ("prompt", "command"):
        return asked
    words = last.words.strip()
    if len(words) <= TERSE_CHARS and phrases.acceptance.search(words):
        return _offer(parts[-2], phrases) if len(parts) > 1 else ""
    is_order = len(words) <= _LONGEST_ORDER_CHARS and "\n" not in words and not words.endswith(("?", "？"))
    return f'"{words}"' if is_order else ""


def unreported_edits(parts: Sequence[Stretch]) -> str:
    """Return what was changed after a person's last words where no answer followed."""
    last = parts[-1] if parts else None
    if last is None or last.asked is None or last.is_answered or not last.edited:
        return ""
    names = ", ".join(path.replace("\\", "/").rsplit("/", 1)[-1] for path in last.edited[:_FILES_NAMED])
    return f"edits of {names} came last, without a report"


def unanswered(parts: Sequence[Stretch], phrases: Phrasebook) -> tuple[str, str]:
    """Return what the assistant offered and what it asked in the last words of a thread."""
    last = parts[-1] if parts else None
    if last is None or last.answer is None:
        return "", ""
    offered = _offer(last, phrases)
    return offered, "" if offered else _question(last)


def _offer(part: Stretch, phrases: Phrasebook) -> str:
    for sentence in reversed(_last_sentences(part)):
        offered = phrases.offer.match(sentence)
        if offered:
            words = part_of(offered)
            return "" if len(words) < _SHORTEST_OFFER_CHARS and words.isascii() else words
    return ""


def _question(part: Stretch) -> str:
    asked = [sentence for sentence in _last_sentences(part)[-1:] if sentence.endswith(("?", "？"))]
    is_whole = asked and (not asked[0].isascii() or len(asked[0].split()) >= _FEWEST_QUESTION_WORDS)
    fits = is_whole and _SHORTEST_QUESTION_CHARS <= len(asked[0]) <= _LONGEST_QUESTION_CHARS
    return asked[0] if fits else ""


def _last_sentences(part: Stretch) -> list[str]:
    blocks = prose_blocks(without_tags(text_of(part.answer))) if part.answer is not None else []
    return prose_sentences(blocks[-1].text) if blocks else []
