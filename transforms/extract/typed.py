"""What a person typed, as statements: each sentence that says something, without talk and without "I"."""

import re
from collections.abc import Callable

from cortex.transforms.extract.phrases import Phrasebook
from cortex.transforms.extract.rewording import reworded
from cortex.transforms.extract.statements import ANY_SCRIPT, in_line
from cortex.transforms.words.scripts import latin_length
from cortex.transforms.words.sentences import is_question, sentences

# A clause before the order is left away up to this length; longer ones say something themselves.
CLAUSE_CHARS = 100
SHORTEST_ORDER_CHARS = 14
SHORTEST_SENTENCE_CHARS = 8

_ORDERS = (
    r"(?:(?:i|we)(?:'d| would) (?:really |also )?like to"
    r"|i (?:think|guess|feel like|would say(?: that)?|say) (?:that )?(?:we|it|you) should"
    r"|(?:so )?(?:we|you) should|let'?s|(?:can|could) (?:you|we))"
    r"(?: also| just| please| ask you to)* (?!be\b|keep in mind|have\b)"
)
# What stands before a order in its sentence: where it holds is kept, how one came to it is not.
_ORDER = re.compile(rf"^(.{{4,{CLAUSE_CHARS}}}?)\b{_ORDERS}(?=[a-z]{{2,}} .{{16,}})", re.IGNORECASE)
_ASKS = re.compile(r"\b(?:where|how|what|why|when|which|whether|if)$", re.IGNORECASE)
_WHERE = re.compile(r"^(?:in|for|on|when|whenever|if|at|with|instead of|after|before|once)\b", re.IGNORECASE)
_ASIDE_OF_SPEAKER = re.compile(
    r"\s*\((?=[^()]*\b(?:i|i'm|i've|i'd|i'll|me|my)\b)[^()`]{2,60}\)", re.IGNORECASE
)
_TAIL = re.compile(
    r"(?:,? (?:and )?(?:otherwise|then) (?:it'?s |we'?re |all )?(?:gtg|good(?: to go)?|lgtm|looks good|fine)"
    r"|,? for (?:that|this)|,? (?:please|pls|thanks|thank you|thoughts|ok(?:ay)?|right))[\s.!?]*$",
    re.IGNORECASE,
)
_NOT_NEEDED = re.compile(
    r"^we (?:don'?t|do not) need (?:(?:this|that|these|the|an?|any) )?([^,.;:]{3,60}?)"
    r"(?: at all| anymore)?(\.?)$",
    re.IGNORECASE,
)
_NO_SUCH = re.compile(r"\bwe (?:don'?t|do not) have (?:an?|any) ", re.IGNORECASE)
_POSSESSIVE = re.compile(r"\b(?:our|your)\b(?= [\w`@])", re.IGNORECASE)
_WIDE_STOP = re.compile("(?<=[。！？])(?![」』）])")
_CODE = re.compile(r"(`[^`]*`|\"[^\"]*\")")

# The first person as the third: who reads it later knows no "I".
_AUXILIARIES = (("'m", "is"), ("'ve", "has"), ("'ll", "will"), ("'d", "would"))
_SAME = frozenset(
    "was had did will would could can might should must may saw went got made put thought found said came"  # noqa: SIM905
    " took ran set let cut meant knew built wrote lost can't couldn't won't wouldn't didn't haven't".split()
)
_ADVERB = (
    r"(?:really|actually|also|just|still|somewhat|do|often|sometimes|always|never|usually|only|mostly|now)"
)
_FIRST_PERSON = re.compile(
    r"\bI(?!\w)((?:'(?:m|ve|ll|d)\b)?)" + rf"((?: {_ADVERB}\b(?!'))*)"
    r"(?: ((?:don'?t|do not)\b|[a-z]+(?:n't)?))?",
)
_MINE = (
    (re.compile(r"(?<![\w.])my\b", re.IGNORECASE), "the user's"),
    (re.compile(r"(?<![\w.])me\b", re.IGNORECASE), "the user"),
)
# "me" is a word of other languages too.
_ENGLISH = re.compile(r"\b(?:the|and|to|is|for|of|it|in|not|with|user)\b", re.IGNORECASE)
FIRST_PERSONS_MAX = 3


def as_typed_statement(text: str, phrases: Phrasebook) -> str:
    """
    Return what a person typed as statements: orders in the imperative, reports in the third person.

    Talk, questions and steps of the hour are left out as long as anything else is said.
    """
    parts = [_statement(part, phrases) for part in _sentences(text)]
    telling = [part for part in parts if not _says_nothing(part, phrases)]
    lasting = [part for part in telling if not phrases.errand.match(part)]
    kept = lasting if latin_length(in_line(*lasting)) >= SHORTEST_ORDER_CHARS else telling
    if latin_length(in_line(*kept)) < SHORTEST_ORDER_CHARS:
        return reworded(text, is_person=True)
    return in_line(*(part if part[-1:] in ".!?。！？:" or part is kept[-1] else f"{part}." for part in kept))


def is_errand(text: str, phrases: Phrasebook) -> bool:
    """Return whether a person's words only send for something: to look, to explain, to commit."""
    parts = sentences(text, ANY_SCRIPT)
    return bool(parts) and all(phrases.errand.match(part) for part in parts)


def _sentences(text: str) -> list[str]:
    """Return the sentences of a text; a full stop of Chinese or Japanese needs no space."""
    return [part for sentence in sentences(text, ANY_SCRIPT) for part in _WIDE_STOP.split(sentence) if part]


def _says_nothing(part: str, phrases: Phrasebook) -> bool:
    is_talk = bool(phrases.talk.match(part)) or is_question(part)
    return is_talk or latin_length(part.strip(" .!")) < SHORTEST_SENTENCE_CHARS


def _statement(sentence: str, phrases: Phrasebook) -> str:
    """Return one sentence of a person as a statement; of a question that asks for something, the request."""
    text = _ASIDE_OF_SPEAKER.sub("", phrases.calls.cut_from(sentence.strip()))
    text = _TAIL.sub(lambda match: "." if match[0].rstrip()[-1:] == "." else "", text)
    text = reworded(text, is_person=True)
    if phrases.everywhere.search(text):
        return text
    text = _order_of(text)
    text = _NOT_NEEDED.sub(r"No \1 is needed\2", text)
    text = _NO_SUCH.sub("there is no ", text)
    text = _outside_code(text, lambda prose: _POSSESSIVE.sub("the", prose))
    return _capital(_in_third_person(text))


def _order_of(text: str) -> str:
    match = _ORDER.match(text)
    if match is None:
        return text
    before, order = match[1].rstrip(), text[match.end() :].lstrip()
    if _ASKS.search(before):
        return text
    if _WHERE.match(before):
        order = f"{before.rstrip(',')}, {order}"
    return f"{order[:-1]}." if order.endswith("?") else order


def _in_third_person(text: str) -> str:
    """
    Return a sentence with "the user" for "I", "me" and "my"; unchanged where too many are meant.

    >>> _in_third_person("I don't want tokens under my account.")
    "The user does not want tokens under the user's account."
    """
    if len(_FIRST_PERSON.findall(text)) > FIRST_PERSONS_MAX:
        return text
    third = _outside_code(text, _third_person)
    return third if third == text else _capital(third)


def _third_person(prose: str) -> str:
    prose = _FIRST_PERSON.sub(_he, prose)
    for pattern, form in _MINE if _ENGLISH.search(prose) else ():
        prose = pattern.sub(form, prose)
    return prose


def _he(match: re.Match[str]) -> str:
    short, adverbs, verb = match[1], match[2] or "", match[3] or ""
    auxiliary = dict(_AUXILIARIES).get(short, "")
    if auxiliary:
        return f"the user {auxiliary}{adverbs}{f' {verb}' if verb else ''}"
    if not verb:
        return f"the user{adverbs}"
    return f"the user{adverbs} {_third_form(verb)}"


def _third_form(verb: str) -> str:
    if verb in ("don't", "dont", "do not"):
        return "does not"
    if verb in ("am", "have"):
        return {"am": "is", "have": "has"}[verb]
    if verb in _SAME or verb.endswith("ed"):
        return verb
    if verb.endswith(("s", "sh", "ch", "x", "o")):
        return f"{verb}es"
    return f"{verb[:-1]}ies" if verb.endswith("y") and verb[-2:-1] not in tuple("aeiou") else f"{verb}s"


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    """Return a text with its prose changed; what stands in quotation marks or backticks stays."""
    return "".join(part if at % 2 else change(part) for at, part in enumerate(_CODE.split(text)))


def _capital(text: str) -> str:
    is_word = text[:1].islower() and text.split(" ", 1)[0].rstrip(",.").isalpha()
    return text[0].upper() + text[1:] if is_word else text
