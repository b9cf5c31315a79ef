"""Who has the last word on a match: whether a value is a secret, or a stand-in, a name, a piece of code."""

import re
from collections.abc import Callable

import re2

from cortex.transforms.redaction import secret_rules as shapes

# So long, and thrown as by chance: no call of a function, though it has brackets.
_LONG_BYTES = 40
_LEAST_TURNS = 4  # from letters to digits or back; sha256sum has two, utf8mb4 three
_PLACEHOLDER_PART = re2.compile(shapes.PLACEHOLDER_PART)
_HARMLESS_KEY_END = re2.compile(shapes.HARMLESS_KEY_END)
_PLACEHOLDER_WORDS = frozenset(shapes.PLACEHOLDER_WORDS.split())
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
# Dotted names, dates, numbers and paths with an ending: code, not values.
_CODE = re2.compile(
    r"^[A-Za-z_]\w*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)+[.!?]?$|^\d{4}-\d\d-\d\d|^[-+]?\d*\.\d+$|"
    r"^[\w.@-]+(?:/[\w.@-]+)*/?\.?\w*\.[a-z]{1,5}$|^[A-Za-z_][\w.]*[(\[]"
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
    return re.search(r"(?:\n|\\n)[^\w.]*[A-Za-z0-9+/=]{8}|[A-Za-z0-9+/=]{40}", body) is not None


def looks_random(key: str, value: str) -> bool:
    """A token of known shape: no stand-in such as xxxxx, not lower-case words, not the name of a variable."""
    if re.search(r"(?i)x{5}|\.\.\.|\*\*\*|redacted", value) or re.fullmatch(r"[A-Z_]+_[A-Z_]+", value):
        return False
    return any(letter.isdigit() or letter.isupper() for letter in value[1:])


def _looks_given(key: str, value: str) -> bool:
    """A password in a place made for it (address, connection string): anything but a stand-in."""
    return len(value) >= 3 and not _is_placeholder(value)


def _looks_env(key: str, value: str) -> bool:
    """NAME=value: a password may be any word there; a token or key has to look like one."""
    if _is_harmless(key, value):
        return False
    return len(value) >= 4 if re.search("PASS|PWD", key) else looks_token(key, value)


def _looks_bare(key: str, value: str) -> bool:
    """name: value without quotes: code and prose stand there more often than secrets."""
    if _is_harmless(key, value):
        return False
    if kind_of_key(key) == "password":
        return (
            len(value) >= 6
            and re.search(r"\d", value) is not None
            and not re.fullmatch(r"[\d.:]{1,5}", value)
        )
    return looks_token(key, value)


def _looks_quoted(key: str, value: str) -> bool:
    """name: "value": labels and types stand there too; a password is one word, or has a digit or a sign."""
    if _is_harmless(key, value) or re.search(r"\s", value):
        return False
    if kind_of_key(key) != "password":
        return looks_token(key, value)
    has_sign = re.search(r"[\d!#%^&*?+@~]", value) is not None
    # Names of labels, events and messages speak of what they name; real words seldom do.
    is_word = re.fullmatch(r"[a-z]{6,}", value) is not None and not re.search(
        "pass|secret|token|key|auth|login", value
    )
    return len(value) >= 5 and (has_sign or is_word)


def looks_token(key: str, value: str) -> bool:
    """A token has digits and letters and is not the name of something."""
    return (
        len(value) >= 8
        and _has_letter_and_digit(value)
        and not _NAME.search(value.encode("utf-8", "replace"))
    )


def _looks_unbroken(key: str, value: str) -> bool:
    """Letters and digits as chance throws them: several digits, and no words of one case between them."""
    digits = len(re.findall(r"\d", value))
    turns = len(re.findall(r"[a-z][A-Z0-9]|[A-Z0-9][a-z]|\d[A-Z]|[A-Z]\d", value))
    return digits >= 2 and turns >= len(value) // 8 and not _looks_like_stand_in(value)


def _looks_like_stand_in(value: str) -> bool:
    return re.search(r"(?i)x{5}|\.\.\.|\*\*\*|redacted|example", value) is not None


def _looks_word(key: str, value: str) -> bool:
    """A password behind a word for it and a colon: a digit and a letter, no code, no stand-in."""
    has_both = re.search(r"\d", value) is not None and re.search(r"[^\W\d_]", value) is not None
    return len(value) >= 6 and has_both and not _is_harmless("", value)


def _looks_spoken(key: str, value: str) -> bool:
    """A password in a sentence: a capital or a sign inside, or letters and digits by turns; no method."""
    value = value.rstrip(".!?:*")
    has_inside = re.search(r"[a-z0-9][A-Z]|[!#%&*+?@~^$=]", value) is not None
    turns = len(re.findall(r"[A-Za-z]\d|\d[A-Za-z]", value))
    is_method = re.search(r"(?i)sha\d|md5|crypt|base64|utf|rsa|oauth|v\d", value) is not None
    is_name = re.fullmatch(r"[A-Za-z][a-z]{4,}\d[A-Z][a-z]{2,}", value) is not None  # authentication2Flow
    return (
        (has_inside or turns >= _LEAST_TURNS)
        and not is_method
        and not is_name
        and len(value) >= 8
        and _looks_word(key, value)
    )


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
    return re.search(r"\d", value) is not None and re.search(r"[A-Za-z]", value) is not None


def _is_harmless(key: str, value: str) -> bool:
    """Whether `key` names something about a secret, or `value` is a stand-in or code."""
    if _HARMLESS_KEY_END.search(key.encode("utf-8", "replace")):
        return True
    if _is_placeholder(value):
        return True
    is_code = _CODE.search(value.encode("utf-8", "replace")) is not None
    return is_code and not (len(value) >= _LONG_BYTES and _looks_unbroken(key, value))


JUDGES: dict[str, Callable[[str, str], bool]] = {
    "shape": _looks_shaped,
    "block": _looks_block,
    "mixed": looks_random,
    "given": _looks_given,
    "env": _looks_env,
    "bare": _looks_bare,
    "quoted": _looks_quoted,
    "token": looks_token,
    "random": _looks_unbroken,
    "word": _looks_word,
    "told": _looks_spoken,
    "cookie": _looks_cookie,
}
