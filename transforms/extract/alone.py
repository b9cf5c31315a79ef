"""Whether a text can be read alone a month later: a whole statement with a subject, said to nobody."""

import re

from cortex.transforms.extract.sentences import STATEMENT_CHARS
from cortex.transforms.extract.statements import ANY_SCRIPT, in_line
from cortex.transforms.words.scripts import latin_length
from cortex.transforms.words.sentences import is_question, sentences

SHORTEST_STATEMENT_CHARS = 20
LEAST_LETTERS = 0.45
LEAST_PROSE_CHARS = 14

_CODE = re.compile(r"`[^`]*`|https?://\S+|(?<!\w)[\w.~-]*/[\w./~-]+")
_LETTER = re.compile(r"[^\W\d_]")
# What is spoken of stands in the sentence before, which is not here.
_NO_SUBJECT = re.compile(
    r"^(?:(?:but|and|so|also|then|because|since|now|however)\b[, ]+)*(?:it|it's|they|they're|this|that"
    r"|that's|these|those|he|she"
    r"|both|neither|here|there it is|which|the (?:former|latter|other one|same))(?=[\s,']"
    r"|$)(?!\s+(?:repo\w*|project|package"
    r"|app|codebase|service|library)\b)",
    re.IGNORECASE,
)
_SPEAKER = re.compile(
    r"^(?:(?:but|and|so|also|then|now|first|next|ok(?:ay)?)\b[, ]+)*(?:i|i'm|i'll|i've|i'd|let me|let's"
    r"|my|we'll|we're|want me to"
    r"|would you|do you|should i|shall i|you're|you asked|you said|you wanted|thanks?|sorry|sure|perfect"
    r"|great)\b",
    re.IGNORECASE,
)
_SPOKEN_TO = re.compile(
    r"\b(?:i'll|i'm|i've|i'd|let me|want me to|you (?:asked|said|mentioned|wanted|gave|pasted|told"
    r"|shared)|your (?:question|request"
    r"|call|message|answer|screenshot|feedback|confirmation|review|point)|let me know|if you(?:'d"
    r"| would)? (?:like|want|prefer))\b",
    re.IGNORECASE,
)
# What is so at this minute: it is not so, or not worth a line, at the next.
_MOMENT = re.compile(
    r"^(?:(?:all|the|both) )?(?:\d+ )?(?:unit |existing |new |integration |\w+ )?(?:tests?|checks?"
    r"|lint(?:er|ing)?|builds?|ci|types?|typecheck)"
    r"(?: \w+)? (?:(?:is|are|all|now|still) )*(?:pass(?:es|ed|ing)?|green|clean|succeed(?:s|ed)?|ok"
    r"|fail(?:s|ed|ing)?)\b[^.;:]{0,40}[.!]?$"
    r"|^(?:done|committed|pushed|merged|fixed|ready|complete[d]?|working tree (?:is )?clean"
    r"|everything (?:is|works|passes)|no changes)"
    r"\b[^.;:]{0,40}[.!]?$",
    re.IGNORECASE,
)
# What tests cover is in the tests.
_TESTS = re.compile(
    r"^(?:new |added |updated )?(?:unit |integration |e2e )?tests?(?: coverage| cases| suite)?"
    r"(?: added| updated| \d+)?:"
    r"|(?:[:;] )Tests? (?:that|for|\w+s|\w+ing)\b.*; (?:\w[^:;]{0,40}: )?Tests? "
    r"|^(?:added |wrote )?\d+ (?:new |unit |integration )*tests? (?:cover|check|for|that|in)\b",
    re.IGNORECASE,
)
# What was made is fine: nothing that the next session acts on.
_PRAISE_ALONE = re.compile(
    r"^(?!.*[`\d])(?:the|this|all|everything) [\w' -]{0,50}?"
    r"(?:(?:now )?(?:beautifully|accurately|properly) \w+s|maintains? (?:the|consistency)|follows? the same"
    r"|provides? (?:valuable|comprehensive|a (?:clean|solid))"
    r"|(?:is|are) (?:now )?(?:complete|comprehensive|production[- ]ready|technically ))",
    re.IGNORECASE,
)
_WANTING_END = re.compile(r"(?:[:,(]|\b(?:and|or|the|a|an|of|to|with|for|via|as))$", re.IGNORECASE)
_LONGEST_END_CHARS = 8
_PERSON_POINTS = re.compile(
    r"^(?:(?:do|fix|add|make|use|try|run|change|remove|update|check|implement|commit|push|keep|apply"
    r"|continue|go)"
    r"(?: (?:it|this|that|these|those|them|on|ahead|with|both|all|again|now|please|so|and))*|yes|no"
    r"|ok(?:ay)?)\W*$",
    re.IGNORECASE,
)

# What a program printed, and somebody pasted or quoted.
_OUTPUT = re.compile(
    r"^(?:(?:error|warning)(?:\[\w+\])?: |={2,}|-{3,}|\S+:\d+(?::\d+)?[\s:]|\(\w+:\d+\)|\[\d{1,2}m"
    r"|\w+(?:Error|Exception|Warning): "
    r"|Traceback\b"
    r"|\w+ failed for \w+ '|FAIL(?:ED)?\b)|\berror (?:TS|E|CS)\d+:|\w@[\w-]+[ :][\w~/.-]+ ?[%$#](?:\s|$)"
    r"|\bTraceback \(most recent|-{5,}|={4,}",
)
# Said in the middle of the work: a line by its number, an option by its letter, what is waited for.
_IN_HAND = re.compile(
    r"^(?:(?:actually|ok|so|now)\b,? )?(?:lines? \d|looking at|wait\b|almost\b|option [A-H1-9]\b"
    r"|pr #\d+ (?:against|to|from|opened)"
    r"|asked whether|plan (?:read|confirmed)|reviewer\b|based on what|(?:now|take a look|let us)\b)"
    r"|\bwaiting (?:on|for) (?:your|the user)",
    re.IGNORECASE,
)


# "Replace them with a link": of a person's words the thing itself must stand there.
_POINTS_AT = re.compile(
    r"^(?:replace|make|change|move|remove|put|fix|update|revert|undo|bring|merge|rename|delete|add)"
    r" (?:them|those|these)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"|“[^”]*”")
_SPEAKS_INSIDE = re.compile(r"(?<![\w/.-])I(?:['’](?:m|ve|ll|d))?(?![\w/.-])(?= [a-z])")
LEAST_LEFT_CHARS = 40
_PRONOUN = re.compile(
    r"(?<![\w'])(?:i|i'm|i've|i'll|i'd|me|my|mine|we|we're|we've|we'll|our|us|you|your|you're"
    r"|you'll)(?![\w'])",
    re.IGNORECASE,
)
PRONOUNS_MAX = 3


def lacks_subject(text: str) -> bool:
    """Return whether what a text speaks of stands before it: "It does", "This means"."""
    return bool(_NO_SUBJECT.match(text))


def speaks_first(text: str) -> bool:
    """Return whether a text opens with its speaker or the one spoken to."""
    return bool(_SPEAKER.match(text))


def spoken_share(text: str) -> float:
    """Return how much a text is talk between two, 0 to 1: its pronouns of the first and second person."""
    return min(len(_PRONOUN.findall(text)), PRONOUNS_MAX) / PRONOUNS_MAX


def without_talk(text: str) -> str:
    """
    Return an assistant's text without the sentences in which it speaks of itself, if enough is left.

    >>> without_talk("The gauge counts in feet, not metres, as abroad. The tests I wrote say so.")
    'The gauge counts in feet, not metres, as abroad.'
    """
    parts = sentences(text, ANY_SCRIPT)
    kept = in_line(*(part for part in parts if not speaks_inside(part)))
    return kept if latin_length(kept) >= LEAST_LEFT_CHARS else text


def speaks_inside(text: str) -> bool:
    """Return whether an assistant speaks of itself anywhere in a text, what it quotes left aside."""
    return bool(_SPEAKS_INSIDE.search(_QUOTED.sub("", text)))


def trimmed(text: str, is_person: bool = False) -> str:
    """
    Return a text without the sentences at its ends that do not stand alone, as long as one is left.

    >>> trimmed("That's a good point. The gauge counts in feet. Which unit do you want?")
    'The gauge counts in feet.'
    """
    parts = sentences(text, ANY_SCRIPT)
    while len(parts) > 1 and not is_person and _is_aside(parts[0]):
        del parts[0]
    while len(parts) > 1 and (is_question(parts[-1]) or (not is_person and _SPOKEN_TO.search(parts[-1]))):
        del parts[-1]
    return in_line(*parts)


def _is_aside(sentence: str) -> bool:
    return bool(_NO_SUBJECT.match(sentence) or _SPEAKER.match(sentence) or _MOMENT.match(sentence))


def stands_alone(text: str, *, is_person: bool = False) -> bool:
    """
    Return whether a text is a statement that is understood alone: not cut, not asked, with a subject.

    >>> [stands_alone(text) for text in ("Levels are kept in UTC, as abroad.", "It keeps them in UTC.")]
    [True, False]
    """
    if not SHORTEST_STATEMENT_CHARS <= latin_length(text) <= STATEMENT_CHARS or "…" in text:
        return False
    if is_question(text) or _WANTING_END.search(text, max(0, len(text) - _LONGEST_END_CHARS)):
        return False
    prose = _CODE.sub("", text)
    letters = len(_LETTER.findall(text))
    if letters < LEAST_LETTERS * len(text) or latin_length(prose.strip(" ;:,.-")) < LEAST_PROSE_CHARS:
        return False
    if _TESTS.search(text) or _PRAISE_ALONE.match(text):
        return False
    if _NO_SUBJECT.match(text) or _MOMENT.match(text) or _OUTPUT.search(text) or _IN_HAND.search(text):
        return False
    if is_person:
        return not (_PERSON_POINTS.match(text) or _POINTS_AT.match(text))
    return not (_SPEAKER.match(text) or _SPOKEN_TO.search(text) or speaks_inside(text))
