"""
Characters that show nothing, or steer what shows others: which they are, and text without them.

The engine imports this file too; hooks may import nothing of the engine. Ranges, not Unicode
categories, so that no version of Python decides.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING or __package__ != "prose":
    from cortex.hooks.evidence.lazy import lazy
else:
    from evidence.lazy import lazy

# Escape sequences of terminals, whole: colours, cursor, titles, links (OSC 8), with ESC or as one C1
# character. What is never closed on its line loses its first character only.
ESCAPES = lazy(
    "(?:\x1b\\[|\x9b)[0-?]*[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x90\x98\x9c-\x9f\n]*(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[!-/]*[0-Z\\\\^-~]"
)

# Nothing to see: fillers, joiners, variation selectors, bidi controls, tags, controls, halves, private use.
_FILLERS = "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\U0001d159"
_FORMAT = "\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff0-\ufffc"
_HIGH_FORMAT = "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
_UNUSED = "\ud800-\udfff\ue000-\uf8ff\ufffe\uffff\U000f0000-\U0010ffff"
UNSEEN = f"{_FILLERS}{_FORMAT}{_HIGH_FORMAT}{_UNUSED}"
CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029"
_ODD = lazy(f"[{UNSEEN}{CONTROLS}]+")
_ODD_IN_LINE = lazy(f"[{UNSEEN}{CONTROLS}\t\n]+")
# A blank stands for a blank: removed, it would join the words around it.
_BLANKS = frozenset("\u2800\u3164\uffa0\U0001d159\u2028\u2029\t\n")

# Scripts whose letters a joiner shapes: Arabic, Syriac, N'Ko, those of India, Tibet, Burma, Khmer, Mongolian.
_JOINING = lazy("[\u0600-\u0dff\u0f00-\u109f\u1780-\u18af\ua840-\ua8ff\uaa60-\uaa7f\U00011000-\U00011aff]")
# What may carry a variation selector or be joined into one emoji: symbols, skin tones, the bases of keycaps.
_EMOJI = lazy("[\u00a9\u00ae\u203c\u2049\u20e3\u2100-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]")
_KEYCAP = lazy("[#*0-9]")
_MONGOLIAN = lazy("[\u1800-\u18af]")
_JOINERS, _EMOJI_SELECTORS, _MONGOLIAN_SELECTORS = "\u200c\u200d", "\ufe0e\ufe0f", "\u180b\u180c\u180d\u180f"
# The three flags that Unicode recommends for interchange are spelt with tags behind a black flag.
_FLAG = lazy("\U0001f3f4(?:\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|"
                   "\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)\U000e007f)")  # fmt: skip


def visible(text: str, *, keeps_lines: bool = False) -> str:
    """
    Return `text` without what cannot be seen; only what shapes the letters and emoji around it stays.

    Controls become spaces, escape sequences go whole. Tabs and line ends stay with `keeps_lines`, and become
    spaces else. Ordinary text of any script comes back as it was; applied twice it changes nothing more.

    >>> visible("\\x1b[31mred\\x1b[0m ig\\u200bnore\\u202e")
    'red ignore'
    """
    odd = _ODD if keeps_lines else _ODD_IN_LINE
    if (text.isascii() and text.isprintable()) or not odd.search(text):
        return text
    text = ESCAPES.sub("", text)
    if keeps_lines:
        text = text.replace("\r\n", "\n")
    kept: list[str] = []
    position = 0
    while True:
        match = odd.search(text, position)
        if match is None:
            return "".join([*kept, text[position:]])
        kept.append(text[position : match.start()])
        before = kept[-1][-1:]
        flag = _FLAG.match(text, match.start() - 1) if before == "\U0001f3f4" else None
        end = flag.end() if flag else match.end()
        kept.append(text[match.start() : end] if flag else _kept(match[0], before, text[end : end + 1]))
        position = end


# Tags by which a client tells its model who speaks: text that is shown to one opens and closes none.
_CLIENTS_TAG = lazy(
    r"<(?=/?\s{0,3}(?:system|assistant|human|user|function_calls?|function_results?|invoke|antml|tool_(?:use|result)"
    r"|command-(?:name|message|args)|local-command-\w+|bash-(?:input|stdout|stderr)|ide_\w+|task-notification"
    r"|teammate-message|persisted-output|session-start-hook)\b)",
    re.IGNORECASE,
)


def displayed(text: str, *, keeps_lines: bool = False) -> str:
    """
    Return text as a person or an assistant is shown it: `visible`, and no tag of a client's own in it.

    >>> displayed("in SQLite </system-reminder> now")
    'in SQLite ‹/system-reminder> now'
    """
    text = visible(text, keeps_lines=keeps_lines)
    return _CLIENTS_TAG.sub("‹", text) if "<" in text else text


def escaped(json_text: str) -> str:
    """
    Return JSON that means the same, with unseen characters and clients' tags in its strings as escapes.

    >>> escaped('"a\\u202eb </system>"')
    '"a\\\\u202eb \\\\u003c/system>"'
    """
    json_text = _CLIENTS_TAG.sub("\\\\u003c", json_text) if "<" in json_text else json_text
    return _ODD.sub(lambda match: "".join(map(_escape, match[0])), json_text)


def _kept(run: str, before: str, after: str) -> str:
    """Return what stays of a run of odd characters between two others."""
    if len(run) <= 2 and _shapes(run, before, after):
        return run
    return " " if any(character in _BLANKS or _is_control(character) for character in run) else ""


def _shapes(run: str, before: str, after: str) -> bool:
    """Whether a run is what its script or emoji needs: a joiner between two, a selector behind one."""
    joiner = run[-1]
    if len(run) == 2:  # a selector, then a joiner, inside one emoji
        return run[0] in _EMOJI_SELECTORS and joiner == "\u200d" and _are(_EMOJI, before, after)
    if joiner in _JOINERS and _are(_JOINING, before, after):
        return True
    if joiner == "\u200d":
        return _are(_EMOJI, before, after)
    if joiner in _MONGOLIAN_SELECTORS:
        return _MONGOLIAN.match(before) is not None
    is_keycap = _KEYCAP.match(before) is not None and after == "\u20e3"
    return joiner in _EMOJI_SELECTORS and (is_keycap or _EMOJI.match(before) is not None)


def _are(kind: re.Pattern[str], before: str, after: str) -> bool:
    return kind.match(before) is not None and kind.match(after) is not None


def _is_control(character: str) -> bool:
    return character < " " or "\x7f" <= character <= "\x9f"


def _escape(character: str) -> str:
    number = ord(character)
    if number < 0x10000:
        return f"\\u{number:04x}"
    number -= 0x10000
    return f"\\u{0xD800 + (number >> 10):04x}\\u{0xDC00 + (number & 0x3FF):04x}"
