"""Secrets out of text as it reads: one linear scan tells which rules may match; judges have the last word."""

import hashlib
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import re2

from cortex.hooks.prose.characters import CONTROLS, ESCAPES, UNSEEN
from cortex.stubbed_imports import stubbing
from cortex.transforms.redaction import secret_rules
from cortex.transforms.redaction.secret_rules import PLACE_RULES, Rule
from cortex.transforms.redaction.secret_tokens import TOKEN_RULES

# -- Text as it reads: without unseen characters, full-width and styled letters as plain ones, places kept.

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


# -- Who has the last word on a match: whether a value is a secret, or a stand-in, a name, a piece of code.

# So long, and thrown as by chance: no call of a function, though it has brackets.
_LONG_BYTES = 40
_MIN_TURNS = 4  # from letters to digits or back; sha256sum has two, utf8mb4 three
_PLACEHOLDER_PART = re2.compile(secret_rules.PLACEHOLDER_PART)
_HARMLESS_KEY_END = re2.compile(secret_rules.HARMLESS_KEY_END)
_SETTING_KEY_END = re2.compile(secret_rules.SETTING_KEY_END)
# Linear on any text; with `re` a value of 48 kB took 15 s.
_SURE_WORD = re2.compile(secret_rules.SURE_WORD)
_PLACEHOLDER_WORDS = frozenset(secret_rules.PLACEHOLDER_WORDS.split())
_CLAUSE_ENDS = frozenset(secret_rules.CLAUSE_ENDS.split())
_TALK_WORDS = frozenset(secret_rules.TALK_WORDS.split()) - _CLAUSE_ENDS
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
# What an ordinary word lacks: a digit, a sign, a capital inside.
_IS_MARKED = re.compile(r"\d|[!#%&*+?@~^$=]|[a-zß-ÿ][A-Z]")
# A passphrase has seldom more words, and a sentence seldom fewer.
_MOST_WORDS = 6
_SHORT_NAME = re.compile(r"(?i)(?:^|[_.-])(?:pass|pwd?)$")
_PLAIN_WORD = re.compile(r"[!#%&*+?@~^$'’-]*[^\W_](?:[^\W_]|[!#%&*+?@~^$'’-])*")
# What adjectives and participles end with: hashed, readable, hinterlegt, codifié.
_TALK_ENDING = re.compile(
    r"[a-z]{3,}(?:ed|ible|[^t]able|ically|ently|ately|ectly)|"
    r"(?:un)?(?:ge|ver|hinter|ent)[a-zäöüß]{3,}t|(?:ver|ent)[a-zäöüß]{3,}e?[lr]n|[a-zäöü]{3,}(?:iert|ieren)|[a-zà-ÿ]{3,}(?:is|ifi)ée?s?"
)
# Dotted names, dates, numbers and paths with an ending: code, not values.
_CODE = re2.compile(
    r"^[A-Za-z_]\w*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)+[.!?]?$|^\d{4}-\d\d-\d\d|^[-+]?\d*\.\d+$|"
    r"^[\w.@-]+(?:/[\w.@-]+)*/?\.?\w*\.[a-z]{1,5}(?:#L[-\dL]+)?$|^[A-Za-z_][\w.]*[(\[]"
)
# Linear on any text: the shape of a run is judged once it is found.
_COOKIE_RUN = re.compile(r"[\w%.+/~-]{12,}")
# lower_case, kebab-case or UPPER_CASE words, a short number at most in the end: names of things.
_NAME = re2.compile(r"^(?:[a-z]+|[A-Z]+)(?:[-_. /:]+(?:[a-z]+|[A-Z]+))*[-_. ]?\d{0,2}$")


def kind_of_key(key: str) -> str:
    """Return what a mark calls the value of `key`."""
    for part, kind in (("pass", "password"), ("pwd", "password"), ("token", "token"), ("key", "api-key")):
        if part in key.lower():
            return kind
    return "secret"


def _is_placeholder(value: str) -> bool:
    """Whether `value` says itself that it stands for something: <your-key>, ${TOKEN}, changeme, xxxx."""
    if _PLACEHOLDER_PART.search(value.encode("utf-8", "replace")):
        return True
    words = [word.lower() for word in _WORDS.findall(value) if not word.isdigit() or len(word) > 3]
    return all(word in _PLACEHOLDER_WORDS for word in words)


def _looks_shaped(key: str, value: str) -> bool:
    """The pattern says it all."""
    return True


def _looks_block(key: str, value: str) -> bool:
    """A key block holds a line of base64; a mention of its two ends does not."""
    body = value.split("-----")[2]
    return re.search(r"(?:\n|\\n)[^\w.\n]*[A-Za-z0-9+/=]{8}|[A-Za-z0-9+/=]{40}", body) is not None


def looks_random(key: str, value: str) -> bool:
    """A token of known shape: no stand-in such as xxxxx, not lower-case words, not the name of a variable."""
    is_name = "_" in value[1:-1] and re.fullmatch(r"[A-Z_]+", value) is not None
    if is_name or re.search(r"(?i)x{5}|\.\.\.|\*\*\*|redacted", value):
        return False
    return any(letter.isdigit() or letter.isupper() for letter in value[1:])


def _looks_given(key: str, value: str) -> bool:
    """A password in a place made for it (address, connection string): anything but a stand-in."""
    return len(value) >= 3 and not _is_placeholder(value)


def _looks_env(key: str, value: str) -> bool:
    """NAME=value: a password may be any word there; a token or key has to look like one."""
    if _is_harmless(key, value):
        return False
    if re.search("PASS|PWD", key):
        return len(value) >= 4
    return _looks_quoted(key, value) if kind_of_key(key) == "password" else looks_token(key, value)


def _looks_unnamed(key: str, value: str) -> bool:
    """NAME=value of which only the value tells: both cases and digits by chance, which no hash has."""
    cases = re.search("[a-z]", value) is not None and re.search("[A-Z]", value) is not None
    return cases and not _is_harmless(key, value) and _looks_unbroken(key, value)


def _looks_in_column(key: str, value: str) -> bool:
    """A cell below a name: a password as behind a colon; a token only as chance throws it."""
    if re.search(r"[\s\"'`()\[\]{}<>]", value):
        return False
    if kind_of_key(key) == "password":
        return _looks_named(key, value)
    return len(value) >= 12 and not _is_harmless(key, value) and _looks_unbroken(key, value)


def _looks_near(key: str, value: str) -> bool:
    """Near a word for a secret: as a password is spoken, or long and thrown in both cases."""
    is_hash = re.fullmatch(r"[\da-f-]+|[\dA-F-]+", value) is not None
    if len(value) < 10 or is_hash or value.startswith("-") or "=" in value.rstrip("="):
        return False
    is_sure = len(re.findall(r"\d", value)) >= 2 or re.search(r"[!#%&*+?@~^$]", value) is not None
    return (is_sure and _looks_spoken(key, value)) or (len(value) >= 20 and _looks_unnamed("", value))


def _looks_printed(key: str, value: str) -> bool:
    """The one line that a command printed: with a digit, no stand-in, no path, no address."""
    return _has_digit(value) and not _is_placeholder(value) and not value.startswith(("/", "http", "sha256:"))


def _looks_seed(key: str, value: str) -> bool:
    """Words of a wallet: among them are none of those that hold every sentence together."""
    return not {"the", "and", "for", "are", "your", "from", "not", "was"} & set(value.lower().split())


def _looks_bare(key: str, value: str) -> bool:
    """name: value without quotes: code and prose stand there more often than secrets."""
    if _is_harmless(key, value):
        return False
    if kind_of_key(key) == "password":
        return (len(value) >= 6 and _has_digit(value)) or _has_thrown_case(value)
    return looks_token(key, value)


def _looks_named(key: str, value: str) -> bool:
    """Bare behind a name that says password and no more: a plain word too."""
    is_sure = key.lower() != "pass" and re.search(secret_rules.SURE_END, key) is not None
    return _looks_bare(key, value) or (is_sure and _looks_plain(key, value))


def _looks_quoted(key: str, value: str) -> bool:
    """name: "value": labels and types stand there too; a password is one word, or has a digit or a sign."""
    if _is_harmless(key, value):
        return False
    is_password = kind_of_key(key) == "password"
    if re.search(r"\s", value):
        return is_password and re.search(secret_rules.SURE_END, key) is not None and _looks_spelt(key, value)
    if not is_password:
        return looks_token(key, value)
    has_sign = re.search(r"[\d!#%^&*?+@~]", value) is not None
    # Names of labels, events and messages speak of what they name; real words seldom do.
    is_word = re.fullmatch(r"[a-z]{6,}", value) is not None and not re.search(
        "pass|secret|token|key|auth|login", value
    )
    return len(value) >= 5 and (has_sign or is_word or _has_thrown_case(value))


def looks_token(key: str, value: str) -> bool:
    """A token has digits and letters and is not the name of something."""
    return (
        len(value) >= 8
        and _has_letter_and_digit(value)
        and not _NAME.search(value.encode("utf-8", "replace"))
    )


def _looks_thrown(key: str, value: str) -> bool:
    """A token behind a beginning of its own: one in 200 has no digit."""
    return looks_token(key, value) or _has_thrown_case(value)


def _has_thrown_case(value: str) -> bool:
    """Capitals where no name has them: names are made of words."""
    in_words = sum(map(len, re.findall(r"[A-Z]?[a-z]{3,}|[A-Z]{4,}", value)))
    return len(value) >= 12 and value.lower() != value and in_words < len(value) * 0.6


def _looks_codes(key: str, value: str) -> bool:
    """Codes of a list: nearly all have a digit, as words below a heading do not."""
    codes = [code for code in re.findall(r"[A-Za-z0-9]{4,}(?:[- ]+[A-Za-z0-9]{4,})*", value) if code]
    return sum(map(_has_digit, codes)) >= len(codes) * 0.8


def _has_digit(value: str) -> bool:
    return re.search(r"\d", value) is not None


def _looks_unbroken(key: str, value: str) -> bool:
    """Letters and digits as chance throws them: several digits, and no words of one case between them."""
    digits = len(re.findall(r"\d", value))
    is_thrown = digits >= 2 or _has_thrown_case(value)
    turns = len(re.findall(r"[a-z][A-Z0-9]|[A-Z0-9][a-z]|\d[A-Z]|[A-Z]\d", value))
    return is_thrown and turns >= len(value) // 8 and not _looks_like_stand_in(value)


def _looks_like_stand_in(value: str) -> bool:
    return re.search(r"(?i)x{5}|\.\.\.|\*\*\*|redacted|example", value) is not None


def _looks_word(key: str, value: str) -> bool:
    """A password behind a word for it and a colon: a digit and a letter, no code, no stand-in."""
    has_both = re.search(r"\d", value) is not None and re.search(r"[^\W\d_]", value) is not None
    return len(value) >= 6 and has_both and not _is_harmless("", value)


# What stands behind "the password is" and tells of it: how it is kept, how long it is, where.
_IS_ABOUT = re.compile(
    r"(?i)(?:^|[^a-z0-9])(?:sha-?\d|md5|[bsy]crypt|base\d|utf|rsa|aes|oauth|argon|pbkdf|v\d|e2e|[2m]fa|k8s|s3)"
    r"|^\d+(?:[-.:]|st|nd|rd|th)?[a-z]*(?:-[a-z]+)*$"
)


def _looks_stated(key: str, value: str) -> bool:
    """What is said to be the password: letters and digits, no method, no measure, no stand-in."""
    value = value.rstrip(".!?:*")
    is_latin = re.search(r"[A-Za-zÀ-ɏЀ-ӿ]", value) is not None
    return len(value) >= 6 and is_latin and not _IS_ABOUT.search(value) and _looks_word(key, value)


def _looks_in_passing(key: str, value: str) -> bool:
    """The same where it may be an ordinary word: both cases, or a sign, beside the digit."""
    is_mixed = re.search("[a-z]", value) is not None and re.search("[A-Z]", value) is not None
    has_sign = re.search(r"[!#%&*+?@~^$=]", value.rstrip("?:*")) is not None
    return len(value) >= 8 and (is_mixed or has_sign) and _looks_stated(key, value)


def _looks_spoken(key: str, value: str) -> bool:
    """A password in a sentence: a capital or a sign inside, or letters and digits by turns; no method."""
    value = value.rstrip(".!?:*")
    has_inside = re.search(r"[a-z0-9][A-Z]|[!#%&*+?@~^$=]", value) is not None
    turns = len(re.findall(r"[A-Za-z]\d|\d[A-Za-z]", value))
    is_name = re.fullmatch(r"[A-Za-z][a-z]{4,}\d[A-Z][a-z]{2,}", value) is not None  # authentication2Flow
    is_thrown = has_inside or turns >= _MIN_TURNS
    return is_thrown and not is_name and len(value) >= 8 and _looks_stated(key, value)


def _looks_cookie(key: str, value: str) -> bool:
    """Cookies of which one holds a token: twelve letters and digits or more."""
    tokens = (part.partition("=")[2] for part in value.split(";"))
    return any(
        _has_letter_and_digit(run)
        for token in tokens
        if not _is_placeholder(token)
        for run in _COOKIE_RUN.findall(token)
    )


def _has_letter_and_digit(value: str) -> bool:
    return _has_digit(value) and re.search(r"[A-Za-z]", value) is not None


def _is_harmless(key: str, value: str) -> bool:
    """Whether `key` names something about a secret, or `value` is a stand-in or code."""
    if _HARMLESS_KEY_END.search(key.encode("utf-8", "replace")):
        return True
    if _SETTING_KEY_END.search(key.encode("utf-8", "replace")) and not _looks_set(key, value):
        return True
    if _is_placeholder(value):
        return True
    is_code = _CODE.search(value.encode("utf-8", "replace")) is not None
    return is_code and not (len(value) >= _LONG_BYTES and _looks_unbroken(key, value))


def _looks_set(key: str, value: str) -> bool:
    """Behind a name that may be of a setting: a password with a digit or a sign, a token thrown by chance."""
    if re.search(r"[!#%&*+?@~^$=]", value) or (_has_letter_and_digit(value) and _looks_unbroken("", value)):
        return True
    is_measure = re.fullmatch(r"(?i)(?:pt?)?\d+[a-z]*", value) is not None
    return kind_of_key(key) == "password" and not is_measure and _looks_word("", value)


def _is_talk(word: str) -> bool:
    """Whether `word`, behind one for a password, speaks of it: required, hashed, your, at."""
    parts = [word.lower(), *re.split("['’-]", word.lower())]
    return any(part in _TALK_WORDS or _TALK_ENDING.fullmatch(part) for part in parts)


def _looks_plain(key: str, value: str) -> bool:
    """One word, as people choose them: no name of a variable, no type, no talk."""
    if _is_harmless(key, value) or len(value) < 4:
        return False
    return bool(re.search(r"[^\W\d_]", value)) and _looks_spelt(key, value)


def _looks_spelt(key: str, value: str) -> bool:
    """Words that a secret may be made of: letters, digits and signs, nothing that is said of one."""
    words = value.split()
    if not words or len(words) > _MOST_WORDS or len(value) < 4 or _is_placeholder(value):
        return False
    if _SURE_WORD.search(value.encode("utf-8", "replace")):
        return False
    is_name = len(words) == 1 and re.search(r"[a-z][A-Z]|^[A-Z][A-Z_]+$", value) and not _has_digit(value)
    return not is_name and all(map(_PLAIN_WORD.fullmatch, words)) and not any(map(_is_talk, words))


def _looks_argument(key: str, value: str) -> bool:
    """The password at a flag made for it: a word, or anything with a digit and a letter."""
    return _looks_word(key, value) or _looks_plain(key, value)


def _looks_assigned(key: str, value: str) -> bool:
    """name=word: a renderer has passes too, and pw may be anything."""
    is_sure = not _SHORT_NAME.search(key) or re.search(secret_rules.OWNED_PASS, key, re.I) is not None
    return _looks_plain(key, value) and (is_sure or _IS_MARKED.search(value) is not None)


def _given(rest: str, until: str) -> str:
    """
    Return what the rest of a line gives as a secret, "" where it only speaks of it.

    Quoted is all up to the quote. Else the words up to the end of their clause, which has to be the end of
    the line `until` a line: behind a colon stands program code too, whose lines go on with a comma. Until a
    marked clause or line, the first word is no ordinary one: "reset the password to continue".
    """
    to_the_end = until.endswith("line")
    if re.match(r"![A-Za-z]|[&*]", rest):  # a tag of YAML, an anchor
        return ""
    quote = re.match(r"""\\*(["'`“„«「])(.+?)\\*["'`”“»」]""", rest)
    if quote:
        inside = quote[2].strip()
        return inside if _looks_spelt("", inside) else ""
    words: list[str] = []
    end = 0
    for match in re.finditer(r"\S+", rest):
        word = match[0].rstrip(".,;:!?)\"'*|")
        if (word.lower() in _CLAUSE_ENDS and not (to_the_end and words)) or match[0][0] in "(#[<{":
            break
        words.append(word)
        end = match.start() + len(word)
        if word != match[0].rstrip("!?*") or len(words) > _MOST_WORDS:
            break
    tail = rest[end:].strip()
    if to_the_end and tail.strip(".!") and not tail.startswith(("#", "//", "(")):
        return ""
    if until.startswith("marked") and not (words and _IS_MARKED.search(words[0])):
        return ""
    is_number = re.fullmatch(r"[\d .-]*", rest[:end]) is not None
    return rest[:end] if not is_number and _looks_spelt("", " ".join(words)) else ""


def _looks_prompted(key: str, value: str) -> bool:
    """What was typed at a prompt: one word of any kind, or words."""
    return _looks_spelt(key, value) if " " in value else _looks_given(key, value)


def _looks_row(key: str, value: str) -> bool:
    """A row of SQL: one of its texts may be a password."""
    texts = re.findall(r"'([^'\n]*)'", value)
    return _looks_word(key, value) or any(_looks_spelt(key, text) for text in texts)


def _looks_code(key: str, value: str) -> bool:
    """A code of a second factor: digits, or letters and digits; no date, no norm, no error, no words."""
    if _DATE_OR_NORM.fullmatch(value):
        return False
    return sum(map(str.isdigit, value)) >= 4 and len(value.replace(" ", "")) >= 4


_DATE_OR_NORM = re.compile(
    r"(?i)(?:19|20)\d\d(?:q[1-4]|[- ]?(?:0\d|1[0-2])[- ]?[0-3]\d)?|(?:rfc|iso|din|cve|err|e)[- ]?\d+"
)
_ROLE = re.compile(
    r"(?i:admin|root|sudo|users?|editors?|viewers?|guests?|owners?|members?|roles?|operators?|staff|"
    r"moderators?|readers?|writers?|mysql|mariadb|sqlite|redis|authors?|managers?|developers?|staging|production|integration|"
    r"[\w.-]+@.*|\d+)|[A-Z]+\d*"
)


def _looks_pair(key: str, value: str) -> bool:
    """What stands behind a user's name: no second user, no role."""
    return _looks_word(key, value) or (_looks_spelt(key, value) and not _ROLE.fullmatch(value))


JUDGES: dict[str, Callable[[str, str], bool]] = {
    "shape": _looks_shaped,
    "block": _looks_block,
    "mixed": looks_random,
    "given": _looks_given,
    "env": _looks_env,
    "bare": _looks_bare,
    "quoted": _looks_quoted,
    "token": looks_token,
    "thrown": _looks_thrown,
    "codes": _looks_codes,
    "random": _looks_unbroken,
    "word": _looks_word,
    "stated": _looks_stated,
    "passing": _looks_in_passing,
    "told": _looks_spoken,
    "cookie": _looks_cookie,
    "unnamed": _looks_unnamed,
    "column": _looks_in_column,
    "near": _looks_near,
    "printed": _looks_printed,
    "seed": _looks_seed,
    "assigned": _looks_assigned,
    "argument": _looks_argument,
    "spelt": _looks_spelt,
    "named": _looks_named,
    "prompt": _looks_prompted,
    "row": _looks_row,
    "code": _looks_code,
    "pair": _looks_pair,
    "clause": _looks_shaped,  # _given has judged it
    "line": _looks_shaped,
    "marked clause": _looks_shaped,
    "marked line": _looks_shaped,
}


# -- Secrets out of text: one linear scan tells which rules may match, only those look closer and set marks.

_MARK = re.compile(rb"\[REDACTED:[a-z0-9-]+\]")
_LOOK_AROUND = re.compile(r"\(\?:\(\?<=\\W\)\|\(\?<=\^\)\)|\(\?<?[=!][^()]*\)")
# What code joins the pieces of a text with.
_JOINT = re.compile(rb"[\"'`]\s*[+.]\s*[\"'`]")
_GAP = re.compile(rb"(?<=\S) {2,}(?=\S)")
_CELL_EDGES = b" \t\r\"'`*"
# The head of a table: names of a word or two, and what stands between them.
_TABLE_HEAD = re2.compile(r"(?:[\w.-]+(?: [\w.-]+)?|[ \t\r\"'`*]+|[,|;\t])+")
_EDGES = b" \t\r\n\"'`"
# The first group of some detectors is only a prefix (ghp, glpat), 6 bytes at most; secrets have 16 or more.
_DETECTOR_GROUP_BYTES = 8
# What detect-secrets asks the service of a token with, whether it is in force; its patterns are all that is
# used here. Importing it takes .1 s of processor time.
_SPARED = ("requests",)
# A value turned down is searched again for a secret inside. Longer ones are not: a line of 300 kB such as
# TOKEN=TOKEN=TOKEN=... would take time by the square of its length.
_LOOK_INSIDE_BYTES = 4096
# A UUID, an id of a call, a message or a request, an instant: 40,000 of the 71,000 different strings of our
# sessions.
_IS_ID = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:toolu|msg|req)_01[0-9A-Za-z]{22}|"
    r"\d{4}-\d\d-\d\dT[\d:.]+Z"
)
# So many digests of texts without a secret are kept, about 4 MB: those of the turns of 100 MB of transcripts.
_CLEAN_MAX = 32_768


@dataclass(frozen=True)
class Finding:
    """One secret in UTF-8 text: its kind and where it stands, in bytes, half open."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True)
class _Compiled:
    """A rule ready to run; `pattern` is of re2, or of re where RE2 lacks look-around."""

    kind: str
    pattern: Any
    accepts: Callable[[str, str], bool]
    key: int = 0  # which of the two groups is the name that the other, the value, was given to
    least_bytes: int = 1  # a shorter first group is not the secret
    # A judge of clauses or lines: the first group is the rest of a line, and the secret a part of it.
    until: str = ""


class Redactor:
    """Rules compiled once; `redact` and `findings` are pure and may be called from several threads."""

    def __init__(self, *, personal_data: bool = False) -> None:
        """Compile all rules, those for e-mail addresses and phone numbers only with `personal_data`."""
        personal = secret_rules.PERSONAL_RULES if personal_data else ()
        everywhere = (
            [*map(_ours, TOKEN_RULES)],
            [*map(_ours, (*secret_rules.RULES, *personal))],
            *([*map(_ours, rules)] for rules in PLACE_RULES),
            [*_keyword_rules(secret_rules.UNNAMED_RULES), *_detector_rules()],
        )
        by_name = (
            [*map(_ours, secret_rules.CLAUSES)],
            [*_keyword_rules(secret_rules.KEYWORD_RULES)],
            [*_keyword_rules(secret_rules.PAIR_RULES)],
            [*map(_ours, secret_rules.NEARBY)],  # last: what a rule knows by name is marked as that
        )
        parts = (*everywhere, *by_name)
        self._rules = [rule for part in parts for _, rule in part]
        # Not a rule: the same scan tells whether a text reads otherwise than it stands.
        self._reads_otherwise = len(self._rules)
        self._gates = [_gate([prefilter for prefilter, _ in part]) for part in parts]
        # Nine of ten texts have no word for a secret; they pass the four gates behind this one unread.
        self._name_cue = re2.compile(f"{secret_rules.NAME_CUE}|(?i:{_key_names()})")
        self._first_by_name = len(everywhere)
        self._otherwise = re2.compile(READS_OTHERWISE)
        self._clean: set[bytes] = set()

    def redact(self, text: str) -> tuple[str, int]:
        """
        Return `text` with a mark such as [REDACTED:jwt] in place of each secret, and the number of marks.

        A second run changes nothing and counts 0: rounds go on until nothing is found and never touch a mark.
        """
        count = 0
        while findings := self.findings(text):
            text = _marked(text.encode("utf-8", "surrogatepass"), findings).decode("utf-8", "surrogatepass")
            count += len(findings)
        return text, count

    def findings(self, text: str) -> list[Finding]:
        """
        Return the secrets in `text`, in order, by their places in its UTF-8; overlapping ones count as one.

        Searched is the text as it stands and, where this differs, as it reads: a secret is found whatever
        invisible characters or full-width letters it is written with.
        """
        if _IS_ID.fullmatch(text):
            return []
        data = text.encode("utf-8", "surrogatepass")
        # A turn is searched when it is read, when its rows are put together, and when they are audited.
        digest = hashlib.blake2b(data, digest_size=16).digest()
        if digest in self._clean:
            return []
        findings = self._searched(data)
        if not findings:
            if len(self._clean) >= _CLEAN_MAX:
                self._clean.clear()
            self._clean.add(digest)
        return findings

    def _searched(self, data: bytes) -> list[Finding]:
        candidates = self._candidates(data)
        findings = self._findings_in(data, candidates)
        if self._reads_otherwise in candidates and (view := plain_view(data)):
            plain = self._findings_in(view.data, self._candidates(view.data))
            findings = _joined([*findings, *(_in_original(finding, view) for finding in plain)])
        return findings

    def _candidates(self, data: bytes) -> list[int]:
        """Return which rules may match, in order, and whether the text reads otherwise than it stands."""
        candidates, first = [], 0
        for number, (gate, size) in enumerate(self._gates):
            if number == self._first_by_name and not self._name_cue.search(data):
                break
            if matching := gate.Match(data):
                candidates += [first + index for index in sorted(matching)]
            first += size
        return [*candidates, self._reads_otherwise] if self._otherwise.search(data) else candidates

    def _findings_in(self, data: bytes, candidates: list[int]) -> list[Finding]:
        rules = [self._rules[index] for index in candidates if index != self._reads_otherwise]
        if not rules:
            return []
        marks = [match.span() for match in _MARK.finditer(data)]
        return _joined([finding for rule in rules for finding in _matches(rule, data, marks)])


@cache
def default_redactor(*, personal_data: bool = False) -> Redactor:
    """Return the redactor of this process; compiling it takes about 0.2 s, so it is made once."""
    return Redactor(personal_data=personal_data)


def redact(text: str, *, personal_data: bool = False) -> tuple[str, int]:
    """
    Return `text` without its secrets, and how many were replaced; `personal_data` adds e-mail and phone.

    >>> redact("export DB_PASSWORD=hunter2-and-more")
    ('export DB_PASSWORD=[REDACTED:password]', 1)
    """
    return default_redactor(personal_data=personal_data).redact(text)


def kinds_of_secret(text: str) -> list[str]:
    """Return the kinds of the secrets in `text`, sorted, each once."""
    return sorted({finding.kind for finding in default_redactor().findings(text)})


def _marked(data: bytes, findings: list[Finding]) -> bytes:
    pieces = []
    position = 0
    for finding in findings:
        pieces += [data[position : finding.start], b"[REDACTED:%b]" % finding.kind.encode()]
        position = finding.end
    return b"".join([*pieces, data[position:]])


def _in_original(finding: Finding, view: PlainView) -> Finding:
    return Finding(finding.kind, view.start_of(finding.start), view.end_of(finding.end))


def _joined(findings: list[Finding]) -> list[Finding]:
    """Join findings that overlap, so that no part of a secret is left next to a mark."""
    joined: list[Finding] = []
    for finding in sorted(findings, key=lambda finding: finding.start):
        if joined and finding.start < joined[-1].end:
            last = joined[-1]
            joined[-1] = Finding(last.kind, last.start, max(last.end, finding.end))
        else:
            joined.append(finding)
    return joined


def _matches(rule: _Compiled, data: bytes, marks: list[tuple[int, int]]) -> Iterator[Finding]:
    """Yield the secrets that `rule` finds; after a value turned down, look again inside it."""
    position = 0
    while match := rule.pattern.search(data, position):
        if rule.kind == "column":
            findings, position = _in_columns(rule, match, data)
            yield from findings
            continue
        key = match.group(rule.key).decode("utf-8", "replace") if rule.key else ""
        start, end = _secret_span(rule, match)
        if rule.until:
            start, line_end = next(span for span in map(match.span, range(1, 3)) if span[0] >= 0)
            rest = data[start:line_end].decode("utf-8", "surrogateescape")
            given = _given(rest, rule.until)
            start += len(rest[: rest.index(given)].encode("utf-8", "surrogateescape"))
            end = start + len(given.encode("utf-8", "surrogateescape"))
        in_mark = _touches(marks, match.start(), match.start()) or _touches(marks, start, end)
        follows = data[end : end + 2]
        called = rule.key and follows[:1] in (b"(", b"[", b"{", b"<") and follows != b"</"
        value = _JOINT.sub(b"", data[start:end]).decode("utf-8", "replace")
        if end > start and not in_mark and not called and rule.accepts(key, value):
            yield Finding(kind_of_key(key) if rule.key else rule.kind, start, end)
            position = max(end, match.end())
        else:
            inside = start if end - start <= _LOOK_INSIDE_BYTES else end
            position = max(inside, match.start() + 1)


def _in_columns(rule: _Compiled, match: Any, data: bytes) -> tuple[list[Finding], int]:
    """Return the secrets in the table below a head, and where the last row with as many cells ends."""
    head, end = match.group(1), match.end()
    separator = next((sign for sign in (b"|", b",", b";", b"\t") if sign in head), b"")
    is_aligned = not separator and _GAP.search(head.strip()) is not None
    if is_aligned:
        head, separator = _tabbed(head), b"\t"
    # A line of code ends with a comma, or has its number and a tab before it.
    is_code = head.rstrip().endswith((b",", b";")) or (separator == b"\t" and head.lstrip()[:1].isdigit())
    if is_code or not separator or not _TABLE_HEAD.fullmatch(head):
        return [], end
    names = [cell if rule.pattern.search(cell + b"\n") else b"" for cell in head.split(separator)]
    findings = []
    while any(names) and end < len(data):
        line_end = data.find(b"\n", end) % (len(data) + 1)
        line = data[end:line_end]
        cells = (_tabbed(line) if is_aligned else line).split(separator)
        if len(cells) != len(names):
            break
        for name, cell in zip(names, cells, strict=True):
            key, value = (_edged(text).decode("utf-8", "replace") for text in (name, cell))
            if name and not _MARK.search(cell) and rule.accepts(key, value):
                start = end + len(cell) - len(cell.lstrip(_CELL_EDGES))
                findings.append(Finding(kind_of_key(key), start, start + len(_edged(cell))))
            end += len(cell) + 1
    return findings, min(end, len(data))


def _tabbed(line: bytes) -> bytes:
    """Return a line of columns that are set apart by blanks with a tab at each, as long as before."""
    return _GAP.sub(lambda gap: b"\t" + b" " * (len(gap[0]) - 1), line.rstrip())


def _edged(cell: bytes) -> bytes:
    return cell.strip(_CELL_EDGES)


def _touches(marks: list[tuple[int, int]], start: int, end: int) -> bool:
    """Whether one of `marks`, in order and apart, begins before `end` and ends after `start`."""
    index = bisect_left(marks, (end, 0))
    return index > 0 and marks[index - 1][1] > start


def _secret_span(rule: _Compiled, match: Any) -> tuple[int, int]:
    """Return where the secret is, in bytes: the first group that matched, else the match; no quotes."""
    if rule.key:
        return match.start(3 - rule.key), match.end(3 - rule.key)
    start, end = match.span()
    group = next((number for number, text in enumerate(match.groups(), start=1) if text is not None), 0)
    if group and match.end(group) - match.start(group) >= rule.least_bytes:
        start, end = match.span(group)
    raw = match.group(0)[start - match.start() : end - match.start()]
    return start + len(raw) - len(raw.lstrip(_EDGES)), end - len(raw) + len(raw.rstrip(_EDGES))


def _gate(prefilters: list[str]) -> tuple[Any, int]:
    """
    Return a set that tells in one scan which of `prefilters` match, and how many they are.

    There are several sets: RE2 makes a state for each combination of prefilters that were begun and met. In
    one set of all, 5 MB of real text took 1.1 s of making states, in these .3; each scans 5 MB in .03 s.
    """
    options = re2.Options()
    # A set that runs out of memory finds nothing. The joined rules pass with 1 MB; 64 leaves room.
    options.max_mem = 64 << 20
    gate = re2.Set.SearchSet(options)
    for prefilter in prefilters:
        gate.Add(prefilter)
    gate.Compile()
    return gate, len(prefilters)


def _ours(rule: Rule) -> tuple[str, _Compiled]:
    until = rule.judge if rule.judge.endswith(("clause", "line")) else ""
    return rule.prefilter, _Compiled(rule.kind, re2.compile(rule.pattern), JUDGES[rule.judge], until=until)


@cache
def _key_names() -> str:
    with stubbing(*_SPARED):
        from detect_secrets.plugins.keyword import DENYLIST

    return "|".join((*secret_rules.KEY_NAMES, *DENYLIST))


def _keyword_rules(rules: Iterable[Rule]) -> Iterator[tuple[str, _Compiled]]:
    """Yield rules on names such as password and api_key, by detect-secrets' list of names and ours."""
    names = _key_names()
    for rule in rules:
        keys = names.upper().replace("?:", "?:") if rule.judge == "env" else names
        compiled = re2.compile(rule.pattern.replace("%s", keys))
        yield (
            rule.prefilter.replace("%s", keys),
            _Compiled(rule.kind, compiled, JUDGES[rule.judge], compiled.groupindex.get("key", 1)),
        )


def _detector_rules() -> Iterator[tuple[str, _Compiled]]:
    """Yield detect-secrets' own patterns; those with look-around stay with `re`, behind an RE2 prefilter."""
    # Imported where the rules are compiled: it takes .1 s, and many commands that look at the store do not.
    with stubbing(*_SPARED):
        from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
        from detect_secrets.plugins.base import RegexBasedDetector

        detectors = get_mapping_from_secret_type_to_class().values()  # imports each of them
    regex_based: list[Any] = [
        detector
        for detector in detectors
        if issubclass(detector, RegexBasedDetector)
        and detector.__name__ not in secret_rules.REPLACED_DETECTORS
    ]
    for detector in sorted(regex_based, key=lambda detector: str(detector.__name__)):
        kind = re.sub(r"[^a-z0-9]+", "-", detector.secret_type.lower()).strip("-")
        accepts = looks_token if detector.__name__ in secret_rules.LOOSE_DETECTORS else looks_random
        for pattern in detector.denylist:
            flags = "(?i)" if pattern.flags & re.IGNORECASE else ""
            plain = flags + _LOOK_AROUND.sub("", pattern.pattern)
            compiled: Any
            if plain == flags + pattern.pattern:
                compiled = re2.compile(plain)
            else:
                compiled = re.compile(pattern.pattern.encode(), pattern.flags & ~re.UNICODE)
            prefilter = secret_rules.DETECTOR_PREFILTERS.get(detector.__name__, plain)
            yield prefilter, _Compiled(kind, compiled, accepts, least_bytes=_DETECTOR_GROUP_BYTES)
