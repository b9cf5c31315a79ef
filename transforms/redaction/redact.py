"""Secrets out of text: one linear scan tells which rules may match, only those look closer and set marks."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import re2

from cortex.spared_imports import sparing
from cortex.transforms.redaction import secret_rules as shapes
from cortex.transforms.redaction.secret_judges import JUDGES, kind_of_key, looks_random, looks_token
from cortex.transforms.redaction.secret_places import PLACE_RULES
from cortex.transforms.redaction.secret_rules import Rule
from cortex.transforms.redaction.secret_tokens import TOKEN_RULES
from cortex.transforms.words.plain_view import READS_OTHERWISE, PlainView, plain_view

_MARK = re.compile(rb"\[REDACTED:[a-z0-9-]+\]")
_LOOK_AROUND = re.compile(r"\(\?:\(\?<=\\W\)\|\(\?<=\^\)\)|\(\?<?[=!][^()]*\)")
_EDGES = b" \t\r\n\"'`"
# The first group of some detectors is only a prefix (ghp, glpat), 6 bytes at most; secrets have 16 or more.
_DETECTOR_GROUP_BYTES = 8
# What detect-secrets asks the service of a token with, whether it is in force; its patterns are all that is
# used here. Importing it takes .1 s of processor time.
_SPARED = ("requests",)
# A value turned down is searched again for a secret inside. Longer ones are not: a line of 300 kB such as
# TOKEN=TOKEN=TOKEN=... would take time by the square of its length.
_LOOK_INSIDE_BYTES = 4096


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
        rules = TOKEN_RULES + shapes.RULES + PLACE_RULES + (shapes.PERSONAL_RULES if personal_data else ())
        for prefilter, rule in [*map(_ours, rules), *_keyword_rules(), *_detector_rules()]:
            self._gate.Add(prefilter)
            self._rules.append(rule)
        # Not a rule: the same scan tells whether a text reads otherwise than it stands.
        self._reads_otherwise = self._gate.Add(READS_OTHERWISE)
        self._gate.Compile()

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
        data = text.encode("utf-8", "surrogatepass")
        candidates = self._gate.Match(data)
        if not candidates:
            return []
        findings = self._findings_in(data, candidates)
        if self._reads_otherwise in candidates and (view := plain_view(data)):
            plain = self._findings_in(view.data, self._gate.Match(view.data) or [])
            findings = _joined([*findings, *(_in_original(finding, view) for finding in plain)])
        return findings

    def _findings_in(self, data: bytes, candidates: list[int]) -> list[Finding]:
        rules = [self._rules[index] for index in sorted(candidates) if index != self._reads_otherwise]
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
        key = match.group(1).decode("utf-8", "replace") if rule.has_key else ""
        start, end = _secret_span(rule, match)
        in_mark = _touches(marks, match.start(), match.start()) or _touches(marks, start, end)
        follows = data[end : end + 2]
        called = rule.has_key and follows[:1] in (b"(", b"[", b"{", b"<") and follows != b"</"
        value = data[start:end].decode("utf-8", "replace")
        if end > start and not in_mark and not called and rule.accepts(key, value):
            yield Finding(kind_of_key(key) if rule.has_key else rule.kind, start, end)
            position = max(end, match.end())
        else:
            inside = start if end - start <= _LOOK_INSIDE_BYTES else end
            position = max(inside, match.start() + 1)


def _touches(marks: list[tuple[int, int]], start: int, end: int) -> bool:
    """Whether one of `marks`, in order and apart, begins before `end` and ends after `start`."""
    index = bisect_left(marks, (end, 0))
    return index > 0 and marks[index - 1][1] > start


def _secret_span(rule: _Compiled, match: Any) -> tuple[int, int]:
    """Return where the secret is, in bytes: the first group that matched, else the match; no quotes."""
    if rule.has_key:
        return match.start(2), match.end(2)
    start, end = match.span()
    group = next((number for number, text in enumerate(match.groups(), start=1) if text is not None), 0)
    if group and match.end(group) - match.start(group) >= rule.least_bytes:
        start, end = match.span(group)
    raw = match.group(0)[start - match.start() : end - match.start()]
    return start + len(raw) - len(raw.lstrip(_EDGES)), end - len(raw) + len(raw.rstrip(_EDGES))


def _ours(rule: Rule) -> tuple[str, _Compiled]:
    return rule.prefilter, _Compiled(rule.kind, re2.compile(rule.pattern), JUDGES[rule.judge])


def _keyword_rules() -> Iterator[tuple[str, _Compiled]]:
    """Yield the rules on names such as password and api_key, by detect-secrets' list of names and ours."""
    with sparing(*_SPARED):
        from detect_secrets.plugins.keyword import DENYLIST

    names = "|".join((*shapes.KEY_NAMES, *DENYLIST))
    for rule in (*shapes.KEYWORD_RULES, *shapes.PAIR_RULES):
        keys = names.upper().replace("?:", "?:") if rule.judge == "env" else names
        pattern = rule.pattern.replace("%s", keys)
        yield (
            rule.prefilter.replace("%s", keys),
            _Compiled(rule.kind, re2.compile(pattern), JUDGES[rule.judge], True),
        )


def _detector_rules() -> Iterator[tuple[str, _Compiled]]:
    """Yield detect-secrets' own patterns; those with look-around stay with `re`, behind an RE2 prefilter."""
    # Imported where the rules are compiled: it takes .1 s, and many commands that look at the store do not.
    with sparing(*_SPARED):
        from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
        from detect_secrets.plugins.base import RegexBasedDetector

        detectors = get_mapping_from_secret_type_to_class().values()  # imports each of them
    regex_based: list[Any] = [
        detector
        for detector in detectors
        if issubclass(detector, RegexBasedDetector) and detector.__name__ not in shapes.REPLACED_DETECTORS
    ]
    for detector in sorted(regex_based, key=lambda detector: str(detector.__name__)):
        kind = re.sub(r"[^a-z0-9]+", "-", detector.secret_type.lower()).strip("-")
        accepts = looks_token if detector.__name__ in shapes.LOOSE_DETECTORS else looks_random
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
