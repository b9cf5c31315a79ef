"""Secrets out of text: one linear scan tells which rules may match, only those look closer, marks take the place."""

import re
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
_EDGES = b" \t\r\n\"'`=:"
_PLACEHOLDER_PART = re2.compile(shapes.PLACEHOLDER_PART)
_HARMLESS_KEY_END = re2.compile(shapes.HARMLESS_KEY_END)
_PLACEHOLDER_WORDS = frozenset(shapes.PLACEHOLDER_WORDS.split())
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
# Dotted or called names, paths, dates and types: code, not values.
_CODE = re2.compile(
    r"^[A-Za-z_]\w*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)+[.!?]?$|[(\[{][^)\]}]*$|^[\w.]*[(\[]|^\d{4}-\d\d-\d\d|^[-+]?\d*\.\d+$|"
    r"^[\w.@-]+(?:/[\w.@-]+)*/?\.?\w*\.[a-z]{1,5}$"
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
    has_key: bool = False


class Redactor:
    """Rules compiled once; `redact` and `findings` are pure and may be called from several threads."""

    def __init__(self, *, personal_data: bool = False) -> None:
        """Compile all rules, those for e-mail addresses and phone numbers only with `personal_data`."""
        options = re2.Options()
        options.max_mem = 64 << 20  # the joined automaton needs 3 MB; RE2's 8 MB default is shared with the matching
        self._gate = re2.Set.SearchSet(options)
        self._rules: list[_Compiled] = []
        rules = shapes.RULES + (shapes.PERSONAL_RULES if personal_data else ())
        for prefilter, rule in [*map(_ours, rules), *_keyword_rules(), *_detector_rules()]:
            self._gate.Add(prefilter)
            self._rules.append(rule)
        self._gate.Compile()

    def redact(self, text: str) -> tuple[str, int]:
        """
        Return `text` with a mark such as [REDACTED:aws-key] in the place of each secret, and the number of marks set.

        A second run changes nothing and counts 0: rounds go on until nothing is found, and marks are never touched.
        """
        data = text.encode("utf-8", "surrogatepass")
        count = 0
        while found := self.findings(data):
            data = _marked(data, found)
            count += len(found)
        return (data.decode("utf-8", "surrogatepass"), count) if count else (text, 0)

    def findings(self, data: bytes) -> list[Finding]:
        """Return the secrets in UTF-8 `data`, ordered, apart from each other; the first rule names the kind."""
        candidates = self._gate.Match(data)
        if not candidates:
            return []
        marks = [match.span() for match in _MARK.finditer(data)]
        found = [
            Finding(self._rules[index].kind, start, end)
            for index in sorted(candidates)
            for start, end in _matches(self._rules[index], data, marks)
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


def _matches(rule: _Compiled, data: bytes, marks: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the spans of secrets that `rule` finds; after a match turned down, look again from its value on."""
    position = 0
    while match := rule.pattern.search(data, position):
        start, end = _secret_span(rule, match)
        key = match.group(1).decode("utf-8", "replace") if rule.has_key else ""
        begins_in_mark = any(mark[0] < match.start() < mark[1] for mark in marks)
        touches_mark = any(start < mark[1] and mark[0] < end for mark in marks)
        value = data[start:end].decode("utf-8", "replace")
        if end > start and not begins_in_mark and not touches_mark and rule.accepts(key, value):
            yield start, end
            position = max(end, match.end())
        else:
            position = max(start, match.start() + 1)


def _secret_span(rule: _Compiled, match: Any) -> tuple[int, int]:
    """Return where the secret stands: the named value, else the longest group if long enough to be one, else all."""
    if rule.has_key:
        return match.span(2)  # type: ignore[no-any-return]
    spans = [match.span(group) for group in range(1, len(match.groups()) + 1)]
    longest = max(spans, key=lambda span: span[1] - span[0], default=(-1, -1))
    # Groups shorter than this only hold alternatives of a prefix (ghp, glpat), not the secret.
    if longest[1] - longest[0] >= 8 or (len(spans) == 1 and rule.accepts in (_looks_given, _always)):
        start, end = longest
    else:
        start, end = match.span()
    raw = match.group(0)[start - match.start() : end - match.start()]
    return start + len(raw) - len(raw.lstrip(_EDGES)), end - len(raw) + len(raw.rstrip(_EDGES.replace(b"=", b"")))


def _ours(rule: Rule) -> tuple[str, _Compiled]:
    return rule.prefilter, _Compiled(rule.kind, re2.compile(rule.pattern), _JUDGES[rule.judge])


def _keyword_rules() -> Iterator[tuple[str, _Compiled]]:
    """Yield the rules on names such as password and api_key, by detect-secrets' list of names and ours."""
    names = "|".join((*shapes.KEY_NAMES, *DENYLIST))
    for rule in shapes.KEYWORD_RULES:
        keys = names.upper().replace("\\", "") if rule.judge == "env" else names
        pattern = rule.pattern.replace("%s", keys)
        yield rule.prefilter.replace("%s", keys), _Compiled("password", re2.compile(pattern), _JUDGES[rule.judge], True)


def _detector_rules() -> Iterator[tuple[str, _Compiled]]:
    """Yield detect-secrets' own patterns, those with look-around as `re` behind an RE2 expression without it."""
    detectors = sorted(get_mapping_from_secret_type_to_class().values(), key=lambda one: str(one.__name__))
    for detector in detectors:
        if not issubclass(detector, RegexBasedDetector) or detector.__name__ in shapes.REPLACED_DETECTORS:
            continue
        kind = re.sub(r"[^a-z0-9]+", "-", detector.secret_type.lower()).strip("-")
        for pattern in detector.denylist:
            flags = "(?i)" if pattern.flags & re.IGNORECASE else ""
            plain = flags + _LOOK_AROUND.sub("", pattern.pattern)
            compiled: Any
            if plain == flags + pattern.pattern:
                compiled = re2.compile(plain)
            else:
                compiled = re.compile(pattern.pattern.encode(), pattern.flags & ~re.UNICODE)
            prefilter = shapes.DETECTOR_PREFILTERS.get(detector.__name__, plain)
            yield prefilter, _Compiled(kind, compiled, _looks_random)


def _is_placeholder(value: str) -> bool:
    """Whether `value` says itself that it stands for something: <your-key>, ${TOKEN}, changeme, xxxx."""
    if _PLACEHOLDER_PART.search(value.encode("utf-8", "replace")):
        return True
    words = [word.lower() for word in _WORDS.findall(value) if not word.isdigit() or len(word) > 3]
    return all(word in _PLACEHOLDER_WORDS for word in words)


def _always(key: str, value: str) -> bool:
    return True


def _looks_block(key: str, value: str) -> bool:
    """A key block holds at least one run of base64; a mention of its two ends does not."""
    body = value.split("-----")[2]
    return re.search(r"[A-Za-z0-9+/=]{12}", body) is not None


def _looks_random(key: str, value: str) -> bool:
    """A token of known shape: not made of one letter, not lower-case words, not the name of a variable."""
    if len(set(value)) < 6 or re.search(r"(?i)x{5}|\.\.\.|\*\*\*|redacted", value):
        return False
    if re.fullmatch(r"[A-Z_]+_[A-Z_]+", value):
        return False
    return any(letter.isdigit() or letter.isupper() for letter in value[1:])


def _looks_given(key: str, value: str) -> bool:
    """A password in its own place (address, connection string): anything but a stand-in or code."""
    return len(value) >= 3 and not _is_placeholder(value) and not _CODE.search(value.encode("utf-8", "replace"))


def _looks_env(key: str, value: str) -> bool:
    """NAME=value: a password may be any word there; a token or key has to look like one."""
    if _HARMLESS_KEY_END.search(key.encode()) or not _looks_given(key, value):
        return False
    if re.search("PASS|PWD", key):
        return len(value) >= 4
    return _looks_like_token(value)


def _looks_assigned(key: str, value: str) -> bool:
    """name: value in code or configuration, where most values are code, labels or types."""
    if _HARMLESS_KEY_END.search(key.encode("utf-8", "replace")) or not _looks_given(key, value):
        return False
    if re.search(r"\s", value.strip()):
        return False
    if re.search("(?i)pass|pwd|contrase", key):
        raw = value.encode("utf-8", "replace")
        return len(value) >= 5 and re.search(r"[\d!#%^&*?+@~]", value) is not None and not re.search(rb"^[\d.]{1,5}$", raw)
    return _looks_like_token(value)


def _looks_like_token(value: str) -> bool:
    has_both = re.search(r"\d", value) is not None and re.search(r"[A-Za-z]", value) is not None
    return len(value) >= 8 and has_both and not _NAME.search(value.encode("utf-8", "replace"))


_JUDGES: dict[str, Callable[[str, str], bool]] = {
    "shape": _always,
    "block": _looks_block,
    "mixed": _looks_random,
    "url": _looks_given,
    "env": _looks_env,
    "word": _looks_assigned,
}
