"""Secrets out of text: one linear scan tells which rules may match, only those look closer and set marks."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import re2
from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.plugins.base import RegexBasedDetector
from detect_secrets.plugins.keyword import DENYLIST

from cortex.transforms import secret_rules as shapes
from cortex.transforms.secret_rules import Rule

_MARK = re.compile(rb"\[REDACTED:[a-z0-9-]+\]")
_LOOK_AROUND = re.compile(r"\(\?:\(\?<=\\W\)\|\(\?<=\^\)\)|\(\?<?[=!][^()]*\)")
_EDGES = b" \t\r\n\"'`"
# The first group of some detectors is only a prefix (ghp, glpat), 6 bytes at most; secrets have 16 or more.
_DETECTOR_GROUP_BYTES = 8
# A value turned down is searched again for a secret inside. Longer ones are not: a line of 300 kB such as
# TOKEN=TOKEN=TOKEN=... would take time by the square of its length.
_LOOK_INSIDE_BYTES = 4096
_PLACEHOLDER_PART = re2.compile(shapes.PLACEHOLDER_PART)
_HARMLESS_KEY_END = re2.compile(shapes.HARMLESS_KEY_END)
_PLACEHOLDER_WORDS = frozenset(shapes.PLACEHOLDER_WORDS.split())
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
# Dotted names, dates, numbers and paths with an ending: code, not values.
_CODE = re2.compile(
    r"^[A-Za-z_]\w*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)+[.!?]?$|^\d{4}-\d\d-\d\d|^[-+]?\d*\.\d+$|"
    r"^[\w.@-]+(?:/[\w.@-]+)*/?\.?\w*\.[a-z]{1,5}$|^[A-Za-z_][\w.]*[(\[]"
)
# lower_case, kebab-case or UPPER_CASE words, a short number at most in the end: names of things.
_NAME = re2.compile(r"^(?:[a-z]+|[A-Z]+)(?:[-_. /:]+(?:[a-z]+|[A-Z]+))*[-_. ]?\d{0,2}$")


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
    has_key: bool = False  # group 1 is the name the value was given to, group 2 the value
    least_bytes: int = 1  # a shorter first group is not the secret


class Redactor:
    """Rules compiled once; `redact` and `findings` are pure and may be called from several threads."""

    def __init__(self, *, personal_data: bool = False) -> None:
        """Compile all rules, those for e-mail addresses and phone numbers only with `personal_data`."""
        options = re2.Options()
        # A set that runs out of memory finds nothing. The joined rules pass with 1 MB; 64 leaves room.
        options.max_mem = 64 << 20
        self._gate = re2.Set.SearchSet(options)
        self._rules: list[_Compiled] = []
        rules = shapes.RULES + (shapes.PERSONAL_RULES if personal_data else ())
        for prefilter, rule in [*map(_ours, rules), *_keyword_rules(), *_detector_rules()]:
            self._gate.Add(prefilter)
            self._rules.append(rule)
        self._gate.Compile()

    def redact(self, text: str) -> tuple[str, int]:
        """
        Return `text` with a mark such as [REDACTED:jwt] in place of each secret, and the number of marks.

        A second run changes nothing and counts 0: rounds go on until nothing is found and never touch a mark.
        """
        data = text.encode("utf-8", "surrogatepass")
        count = 0
        while found := self.findings(data):
            data = _marked(data, found)
            count += len(found)
        return (data.decode("utf-8", "surrogatepass"), count) if count else (text, 0)

    def findings(self, data: bytes) -> list[Finding]:
        """Return the secrets in UTF-8 `data`, in order; of those that overlap the first names all."""
        candidates = self._gate.Match(data)
        if not candidates:
            return []
        marks = [match.span() for match in _MARK.finditer(data)]
        found = [
            finding for index in sorted(candidates) for finding in _matches(self._rules[index], data, marks)
        ]
        return _joined(found)


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


def _marked(data: bytes, found: list[Finding]) -> bytes:
    pieces = []
    position = 0
    for finding in found:
        pieces += [data[position : finding.start], b"[REDACTED:%b]" % finding.kind.encode()]
        position = finding.end
    return b"".join([*pieces, data[position:]])


def _joined(found: list[Finding]) -> list[Finding]:
    """Join findings that overlap, so that no part of a secret is left beside a mark."""
    joined: list[Finding] = []
    for finding in sorted(found, key=lambda one: one.start):
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
        key = match.group(1).decode("utf-8", "replace") if rule.has_key else ""
        start, end = _secret_span(rule, match)
        in_mark = _touches(marks, match.start(), match.start()) or _touches(marks, start, end)
        called = rule.has_key and data[end : end + 1] in (b"(", b"[", b"{", b"<")
        value = data[start:end].decode("utf-8", "replace")
        if end > start and not in_mark and not called and rule.accepts(key, value):
            yield Finding(_kind_of_key(key) if rule.has_key else rule.kind, start, end)
            position = max(end, match.end())
        else:
            inside = start if end - start <= _LOOK_INSIDE_BYTES else end
            position = max(inside, match.start() + 1)


def _touches(marks: list[tuple[int, int]], start: int, end: int) -> bool:
    """Whether one of `marks`, in order and apart, begins before `end` and ends after `start`."""
    index = bisect_left(marks, (end, 0))
    return index > 0 and marks[index - 1][1] > start


def _secret_span(rule: _Compiled, match: Any) -> tuple[int, int]:
    """Return where the secret stands, in bytes: the rule's group, else all of the match, quotes trimmed."""
    if rule.has_key:
        return match.start(2), match.end(2)
    start, end = match.span()
    if match.groups() and match.end(1) - match.start(1) >= rule.least_bytes:
        start, end = match.span(1)
    raw = match.group(0)[start - match.start() : end - match.start()]
    return start + len(raw) - len(raw.lstrip(_EDGES)), end - len(raw) + len(raw.rstrip(_EDGES))


def _kind_of_key(key: str) -> str:
    """Return what a mark calls the value of `key`."""
    for part, kind in (("pass", "password"), ("pwd", "password"), ("token", "token"), ("key", "api-key")):
        if part in key.lower():
            return kind
    return "secret"


def _ours(rule: Rule) -> tuple[str, _Compiled]:
    return rule.prefilter, _Compiled(rule.kind, re2.compile(rule.pattern), _JUDGES[rule.judge])


def _keyword_rules() -> Iterator[tuple[str, _Compiled]]:
    """Yield the rules on names such as password and api_key, by detect-secrets' list of names and ours."""
    names = "|".join((*shapes.KEY_NAMES, *DENYLIST))
    for rule in shapes.KEYWORD_RULES:
        keys = names.upper().replace("\\", "") if rule.judge == "env" else names
        pattern = rule.pattern.replace("%s", keys)
        yield (
            rule.prefilter.replace("%s", keys),
            _Compiled(rule.kind, re2.compile(pattern), _JUDGES[rule.judge], True),
        )


def _detector_rules() -> Iterator[tuple[str, _Compiled]]:
    """Yield detect-secrets' own patterns; those with look-around stay with `re`, behind an RE2 prefilter."""
    regex_based: list[Any] = [
        detector
        for detector in get_mapping_from_secret_type_to_class().values()
        if issubclass(detector, RegexBasedDetector) and detector.__name__ not in shapes.REPLACED_DETECTORS
    ]
    for detector in sorted(regex_based, key=lambda one: str(one.__name__)):
        kind = re.sub(r"[^a-z0-9]+", "-", detector.secret_type.lower()).strip("-")
        accepts = _looks_token if detector.__name__ in shapes.LOOSE_DETECTORS else _looks_random
        for pattern in detector.denylist:
            flags = "(?i)" if pattern.flags & re.IGNORECASE else ""
            plain = flags + _LOOK_AROUND.sub("", pattern.pattern)
            compiled: Any
            if plain == flags + pattern.pattern:
                compiled = re2.compile(plain)
            else:
                compiled = re.compile(pattern.pattern.encode(), pattern.flags & ~re.UNICODE)
            prefilter = shapes.DETECTOR_PREFILTERS.get(detector.__name__, plain)
            yield prefilter, _Compiled(kind, compiled, accepts, least_bytes=_DETECTOR_GROUP_BYTES)


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


def _looks_random(key: str, value: str) -> bool:
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
    return len(value) >= 4 if re.search("PASS|PWD", key) else _looks_token(key, value)


def _looks_bare(key: str, value: str) -> bool:
    """name: value without quotes: code and prose stand there more often than secrets."""
    if _is_harmless(key, value):
        return False
    if _kind_of_key(key) == "password":
        return (
            len(value) >= 6
            and re.search(r"\d", value) is not None
            and not re.fullmatch(r"[\d.:]{1,5}", value)
        )
    return _looks_token(key, value)


def _looks_quoted(key: str, value: str) -> bool:
    """name: "value": labels and types stand there too; a password is one word, or has a digit or a sign."""
    if _is_harmless(key, value) or re.search(r"\s", value):
        return False
    if _kind_of_key(key) != "password":
        return _looks_token(key, value)
    has_sign = re.search(r"[\d!#%^&*?+@~]", value) is not None
    # Names of labels, events and messages speak of what they name; real words seldom do.
    is_word = re.fullmatch(r"[a-z]{6,}", value) is not None and not re.search(
        "pass|secret|token|key|auth|login", value
    )
    return len(value) >= 5 and (has_sign or is_word)


def _looks_token(key: str, value: str) -> bool:
    """A token has digits and letters and is not the name of something."""
    has_both = re.search(r"\d", value) is not None and re.search(r"[A-Za-z]", value) is not None
    return len(value) >= 8 and has_both and not _NAME.search(value.encode("utf-8", "replace"))


def _is_harmless(key: str, value: str) -> bool:
    """Whether `key` names something about a secret, or `value` is a stand-in or code."""
    if _HARMLESS_KEY_END.search(key.encode("utf-8", "replace")):
        return True
    return _is_placeholder(value) or _CODE.search(value.encode("utf-8", "replace")) is not None


_JUDGES: dict[str, Callable[[str, str], bool]] = {
    "shape": _looks_shaped,
    "block": _looks_block,
    "mixed": _looks_random,
    "given": _looks_given,
    "env": _looks_env,
    "bare": _looks_bare,
    "quoted": _looks_quoted,
}
