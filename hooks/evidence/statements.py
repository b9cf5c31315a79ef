"""What of a text bears on a question: the sentences to show above it, and the one that says why."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .question import Asked

from .lazy import lazy
from .text import MEMORY, PROSE, prose, sentences, share_of_fewer, shortened, word_set, words_in

if TYPE_CHECKING or __package__ != "evidence":
    from cortex.hooks.prose.own_prose import SIGN, TAG, own_prose, without_pasted
    from cortex.hooks.prose.plain import without_emphasis
else:
    from prose.own_prose import SIGN, TAG, own_prose, without_pasted
    from prose.plain import without_emphasis

# What a memory says of its own standing: its session went past it, or it was only proposed.
CHANGED_SINCE = " (since changed)"
PROPOSED = "Proposed: "

# What the record of a session says, in this order.
OUTCOME_PARTS = ("Goal", "Outcome", "Open")
OUTCOME_PART = lazy(rf"(?:^|(?<=\. ))({'|'.join(OUTCOME_PARTS)}): ")

# Two or three sentences: what a reader takes in at a glance.
SHOWN_STATEMENT_CHARS = 320
_REASON_CHARS = 240
_SHORT_CODE = lazy(r"^```\w*\n((?:[^\n`]{1,120}\n){1,2})```[^\S\n]*$", re.MULTILINE)
_LIST_SIGN = lazy(r"^\s*(?:[#>*-]+\s+|\d{1,2}[.)]\s+)?")
# A sentence of which so many words were shown is known.
KNOWN_SHARE = 0.7
_HEADING = lazy(r"^#{1,6}\s+")
_QUESTION_MARKS = ("?", "？")
_AFTER_SENTENCE = "*_`) \n"
# Of a text so much puts something forward before it is called a proposal, as in memories.
_PROPOSED_SHARE = 0.5
# What is left of a text beside sentences that are known must be a statement.
_MIN_WORDS = 4


def statement_in(text: str, asked: Asked, limit: int = SHOWN_STATEMENT_CHARS) -> str:
    """
    Return the sentences of `text` that hold most of a question's words, and what follows them, on one line.

    At most `limit` characters; all of a text that is no longer. Of equal sentences the first is taken; code
    in fences only if there is nothing else.

    >>> from cortex.hooks.evidence.question import Asked
    >>> asked = Asked({"tide": 1.0, "utc": 2.0})
    >>> statement_in("Gauges were painted. Tide tables are in UTC. Clocks are not.", asked, 45)
    'Tide tables are in UTC. Clocks are not.'
    """
    text = without_lead_in(_with_short_code(text)) or text
    whole = " ".join(text.split())
    if len(whole) <= limit:
        return whole
    parts = [part for line in (prose(text) or text).split("\n") for part in sentences(line.strip(), MEMORY)]
    shares = [asked.share_in(part) for part in parts]
    start = max(range(len(parts)), key=lambda at: (shares[at], -at))
    return shortened(_from(parts, start, limit), limit)


def _from(parts: Sequence[str], start: int, limit: int) -> str:
    kept = parts[start]
    for part in parts[start + 1 :]:
        if len(kept) + 1 + len(part) > limit:
            break
        kept = f"{kept} {part}"
    # What leads to the sentence, where there is room: a heading, the sentence that names the subject.
    if start and len(parts[start - 1]) + 1 + len(kept) <= limit:
        kept = f"{parts[start - 1]} {kept}"
    return kept


def without_lead_in(text: str) -> str:
    """
    Return a text without its last sentence where that only leads to what follows it: it ends in a colon.

    >>> without_lead_in("The gauge has no battery. Let me order one:")
    'The gauge has no battery.'
    >>> without_lead_in("Now I order the battery:")
    ''
    """
    if not text.rstrip("*_ \n\r\t").endswith((":", "：")):
        return text
    lines = text.rstrip().split("\n")
    if not lines[-1].rstrip("*_ ").endswith((":", "：")):
        return text
    kept = " ".join(sentences(lines[-1].strip(), PROSE)[:-1])
    return "\n".join([*lines[:-1], kept] if kept else lines[:-1]).strip()


def without_announcements(text: str, announces: re.Pattern[str]) -> str:
    """
    Return a text without what says nothing: "Perfect!", and what is done next by how it begins (`announces`).

    A sentence that names something in backticks stays. A heading loses its marks.

    >>> announces = re.compile("now let me", re.IGNORECASE)
    >>> without_announcements("Great! Now let me look.\\n## Cause\\nThe gauge drifts.", announces)
    'Cause\\nThe gauge drifts.'
    """
    lines = (
        " ".join(part for part in sentences(line.strip(), PROSE) if _says_something(part, announces))
        for line in text.split("\n")
    )
    return "\n".join(_HEADING.sub("", line) for line in lines if line)


def _says_something(sentence: str, announces: re.Pattern[str]) -> bool:
    if "`" in sentence or _HEADING.match(sentence):
        return True
    is_call = sentence.endswith("!") and len(words_in(sentence)) < _MIN_WORDS
    return not is_call and not announces.search(sentence)


def is_lead_in(text: str) -> bool:
    """Return whether a text says nothing but what is done next, whatever its language."""
    kept = without_lead_in(text)
    return kept != text and len(words_in(kept)) < _MIN_WORDS


def ends_asking(text: str) -> bool:
    """
    Return whether a text ends with a question, whatever code stands below it.

    >>> ends_asking("Re-tagging is safe. Shall I go on?\\n\\n```\\ngit tag v2\\n```")
    True
    """
    return prose(text).rstrip(_AFTER_SENTENCE).endswith(_QUESTION_MARKS)


def asks_anything(text: str) -> bool:
    """Return whether a sentence of a text is a question."""
    if not any(mark in text for mark in _QUESTION_MARKS):
        return False
    lines = prose(text).split("\n")
    return any(
        part.rstrip(_AFTER_SENTENCE).endswith(_QUESTION_MARKS)
        for line in lines
        for part in sentences(line, PROSE)
    )


def is_proposal(text: str, suggests: re.Pattern[str]) -> bool:
    """
    Return whether most of a text says what could or should be done, and it does not begin by saying so.

    `suggests` is how sentences that put something forward begin.

    >>> is_proposal("We could use UTC. Clocks differ.", re.compile("^we could", re.IGNORECASE))
    True
    """
    text = _LIST_SIGN.sub("", text)
    parts = [] if text.lower().startswith("propos") else sentences(text, PROSE)
    proposed = sum(len(part) for part in parts if suggests.search(_LIST_SIGN.sub("", part)))
    return bool(parts) and proposed >= _PROPOSED_SHARE * sum(map(len, parts))


def _with_short_code(text: str) -> str:
    """Return a text with fenced code of a line or two within its line: mostly the command asked for."""
    if "```" not in text:
        return text
    return _SHORT_CODE.sub(lambda match: "`" + "; ".join(match[1].split("\n")).strip("; ") + "`", text)


def reason_in(
    texts: Iterable[str], shown: str, asked: Asked, gives_reason: re.Pattern[str], limit: int = _REASON_CHARS
) -> str:
    """
    Return the sentence of `texts` that gives a reason for what is `shown`; "" if none does.

    It has words of the question, and the most of these and of what is shown, but says more than that. What
    only leads to a list or says what comes next is no reason. Of equal sentences the first is taken.

    >>> from cortex.hooks.evidence.question import Asked
    >>> asked = Asked({"tide": 1.0, "utc": 2.0})
    >>> reason_in(["UTC it is, because tides know no summer time. Done."], "", asked, re.compile("because"))
    'UTC it is, because tides know no summer time.'
    """
    best, most = "", 0.0
    words_shown = word_set(shown)
    for sentence in _prose_sentences(texts):
        if sentence.endswith((":", "：", "?", "？")) or not gives_reason.search(sentence):
            continue
        share = asked.share_in(sentence)
        fit = share + share_of_fewer(word_set(sentence), words_shown) if share else 0.0
        if fit > most and not is_known(sentence, shown):
            best, most = sentence, fit
    return shortened(best, limit)


def is_known(text: str, shown: str) -> bool:
    """Return whether most words of a text were shown already."""
    words = word_set(text)
    return not words or len(words & word_set(shown)) >= KNOWN_SHARE * len(words)


def news_in(text: str, shown: Sequence[str]) -> str:
    """
    Return a text without the sentences that one of `shown` says already; "" where too little is left.

    >>> news_in("Tides are in UTC. Gauges were painted white.", ["All tides are in UTC."])
    'Gauges were painted white.'
    """
    if any(is_known(text, other) for other in shown):
        return ""
    parts = sentences(text, MEMORY)
    fresh = [part for part in parts if not any(is_known(part, other) for other in shown)]
    if len(fresh) == len(parts):
        return text
    left = " ".join(fresh)
    return left if len(words_in(left)) >= _MIN_WORDS else ""


def outcome_parts(text: str) -> dict[str, str]:
    """
    Return what an outcome record says, by `goal`, `outcome` and `open`; parts that it lacks are absent.

    >>> outcome_parts("Goal: Add tar support. Outcome: Tar files are read; tests pass. Open: Not pushed.")
    {'goal': 'Add tar support', 'outcome': 'Tar files are read; tests pass', 'open': 'Not pushed'}
    """
    _, *cells = OUTCOME_PART.split(text)
    return {name.lower(): words.rstrip(" .") for name, words in zip(cells[::2], cells[1::2])}


def _prose_sentences(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for line in prose(text).split("\n"):
            yield from sentences(_LIST_SIGN.sub("", line), PROSE)


# -- What may be quoted of a passage, statement by statement.

# What was said is quoted whole: of 87 facts that next sessions needed, passages cut to the sentences with
# most of the message's words hold .29 within a budget of 400 tokens, whole ones .36 to .39.
_PART_CHARS = 400
# Shorter ones are headings and labels.
_SHORT_LABEL_CHARS = 35
# What a person says in so many characters is quoted whole.
_REPLY_CHARS = 200
# What is in words is text that somebody showed: no command has five plain ones in a row.
_IN_WORDS = lazy(r"(?:[^\W\d_]+[,;:.]?[^\S\n]+){4}[^\W\d_]+")
# Fenced code of a line or two is mostly the command that was asked for.
_QUOTED_CODE = lazy(r"^```\w*\n((?:[^\n`]{1,160}\n){1,3})```[^\S\n]*$", re.MULTILINE)


def prose_of(text: str, *, is_persons: bool) -> str:
    """Return what may be quoted of a passage: the speaker's own words, without what they show or paste."""
    # Code, block quotes and markup show another's words, whoever pasted them.
    prose = _without_shown_tags(own_prose(text if is_persons else _QUOTED_CODE.sub(_inline, text))).strip()
    return without_pasted(prose) if is_persons else prose


def asks(statement: str) -> bool:
    """Return whether a statement is a question."""
    return statement.rstrip(_AFTER_SENTENCE).endswith(_QUESTION_MARKS)


def quotable_statements(prose: str, *, is_persons: bool) -> list[str]:
    """Return the statements of such prose; a person's few words are one."""
    parts = [shortened(part, _PART_CHARS) for part in _parts(without_emphasis(prose))]
    # "No. Too slow." is one statement.
    is_one = is_persons and 0 < sum(map(len, parts)) <= _REPLY_CHARS
    return [" ".join(parts)] if is_one else parts


def _parts(prose: str) -> list[str]:
    """Return the sentences and items of a text; one as short as a heading goes with what follows it."""
    parts: list[str] = []
    for line in prose.split("\n"):
        for part in sentences(_table_row(line.strip()), PROSE):
            if parts and len(parts[-1]) < _SHORT_LABEL_CHARS:
                parts[-1] = f"{parts[-1]} {part}"
            else:
                parts.append(part)
    return parts


def _table_row(line: str) -> str:
    """Return the cells of a table's row with commas between; a line of rules says nothing."""
    if line[:1] == line[-1:] == "|":
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        line = ", ".join(cell for cell in cells if cell.strip(":-"))
    return line if line.strip("-=_* ") else ""


def _inline(code: re.Match[str]) -> str:
    is_text = _IN_WORDS.search(code[1]) or SIGN in code[1].lower()
    return code[0] if is_text else f"`{'; '.join(code[1].strip().split(chr(10)))}`"


def _without_shown_tags(prose: str) -> str:
    """Leave out lines with a memory tag that does not open them: there it is shown, and says nothing."""
    if SIGN not in prose.lower():
        return prose
    lines = prose.split("\n")
    return "\n".join(line for line in lines if SIGN not in line.lower() or TAG.match(line))
