"""
Whose words: the assistant's own prose, its reports by itself, and what a tool brought in.

Markdown is read as CommonMark has it; in doubt a line is not the assistant's own: a fact lost is said again,
a stranger's sentence taken for the assistant's stays. Hooks and engine both use it, so both find the same
`[MEMORY: type]` lines.
"""

from __future__ import annotations

import re
from bisect import bisect_left

TYPE_CHECKING = False
if TYPE_CHECKING or __package__ != "prose":
    from collections.abc import Iterator

    from cortex.hooks.evidence.lazy import lazy
    from cortex.hooks.prose.plain import MAX_LINE_LENGTH
else:
    from evidence.lazy import lazy
    from prose.plain import MAX_LINE_LENGTH


# -- Whose words a tool brings in: a stranger's, or those of this machine's files and commands (spec 2).

EXTERNAL_TOOLS = ("WebFetch", "WebSearch")
EXTERNAL_TOOL_PREFIX = "mcp__"
# Cortex's own answers are recognised as told, not as a stranger's.
OWN_TOOLS = "mcp__cortex"
SHELL_TOOLS = frozenset(("Bash", "PowerShell"))
READ_TOOLS = frozenset(("Read", "NotebookRead"))
EDIT_TOOLS = frozenset(("Edit", "MultiEdit", "Write", "NotebookEdit"))
# What comes back says what was asked for, in the assistant's or the person's words.
ECHOING_TOOLS = EDIT_TOOLS | {"TodoWrite", "TaskCreate", "TaskUpdate", "ExitPlanMode", "AskUserQuestion"}
# Commands that bring in what others wrote.
_FETCHES = re.compile(
    r"(?:^|[\s;&|(`/])(?:curl|wget|https?|xh|lynx|w3m|links|aria2c|scp|rsync|ssh|ftp|nc|gh|glab|hub"
    r"|git (?:clone|fetch|pull|ls-remote)|(?:npm|pnpm|yarn) (?:view|info)|pip (?:show|download)|man)(?=\s|$)"
)
# Folders of what was not written here; a shell reads them as well as a tool.
_FOREIGN_FOLDER = re.compile(
    r"(?:^|[/\s\"'=])(?:node_modules|site-packages|dist-packages|vendor|third_party|bower_components|\.cargo"
    r"|\.venv|venv|Downloads|go/pkg/mod|tmp)/"
)


def trust_of_call(tool: str, argument: str) -> str | None:
    """
    Return `external` or `tool` for what a call brings in, None if the words are nobody else's.

    `argument` is the call's salient one: a command, a path. External are web pages, answers of MCP servers,
    what a command fetched, and files of dependencies, downloads and temporary folders.

    >>> trust_of_call("Bash", "curl -s example.org"), trust_of_call("Read", "README.md")
    ('external', 'tool')
    """
    if tool.startswith(OWN_TOOLS) or tool in ECHOING_TOOLS:
        return None
    if tool in EXTERNAL_TOOLS or tool.startswith(EXTERNAL_TOOL_PREFIX):
        return "external"
    is_fetched = tool in SHELL_TOOLS and _FETCHES.search(argument)
    is_foreign = tool in SHELL_TOOLS | READ_TOOLS and _FOREIGN_FOLDER.search(argument)
    return "external" if is_fetched or is_foreign else "tool"


# -- What a person shows and does not say: prompts of a shell, stamped log lines, stack frames, markup, code,
# differences.

PASTED_LINE = lazy(
    r"^\s*(?:[➜❯$%]\s|\w+@[\w.-]+[:~]|\[?\d{1,4}[-:/.]\d{2}[-:/.]\d{2}|at .+:\d+|File \"|Traceback|Loading "
    r"|[{}\[\]<\"'(].*[,{}\[\]>)]$|[\w.]+(?:Error|Exception): |\d+\s*[|│]|[│└├╭╰┌]|\S+\s{3,}\S+\s{3,}"
    r"|\[[\w:-]+\] |\"[\w-]+\":\s|(?:\\ )*diff --git |index [0-9a-f]{7,40}\.\.|@@ -\d|(?:---|\+\+\+) \S*/"
    r"|(?:async )?(?:def|class|import|from|const|let|var|func|return|assert|export|public|private)\b"
    r".*[:;({\[)'\"]$"
    r"|@[\w.]+(?:\(.*\))?$)"
    r"|^ {2,}[\w.-]+:(?:\s|$)|^ {4,}(?![-*•\d])"
)

# Whole blocks that a person pastes: a mail by its head or by who wrote it when, a project's page by its
# badges or by the sections that such pages have, a licence. Their words are somebody else's up to the end.
_MAIL_FIELD = lazy(
    r"^[ \t*]*(?:(from|von|de|da|van|från|от)|to|cc|(subject|betreff|objet|asunto|assunto|oggetto"
    r"|onderwerp|тема)|date|sent|reply-to|an|datum|gesendet|à|para|fecha|enviado|envoyé|кому|дата)"
    r"[ \t*]*[:：]\**\s*\S",
    re.IGNORECASE,
)
_WROTE = lazy(
    r"^[ \t]*(?:(?:on|am|le|el|em|op|il)\b.{6,160}\b(?:wrote|schrieb|a écrit|escribió|escreveu|schreef"
    r"|ha scritto)\b.{0,80}:|-{2,}[ \t]*(?:original message|forwarded message|ursprüngliche nachricht"
    r"|message transféré)\b.*)\s*$",
    re.IGNORECASE,
)
_BADGE_OR_LICENCE = lazy(
    r"\[!\[|!\[[^\]]*\]\([^)]*(?:badge|shields\.io)|permission is hereby granted, free of charge"
    r"|licensed under the apache license|redistribution and use in source and binary"
    r"|gnu (?:affero |lesser )?general public license",
    re.IGNORECASE,
)
_HEADING = lazy(r"^#{1,6}[ \t]+\S")
_PAGE_SECTION = lazy(
    r"^#{1,6}[ \t]+\W*(?:(license|licence|contributing|acknowledge?ments|code of conduct|installation|install"
    r"|getting started|quick ?start|table of contents)|usage|features|prerequisites|documentation|support"
    r"|authors|roadmap|faq|community|security)\W*$",
    re.IGNORECASE,
)
# An issue as its page shows it: who opened it or commented when, alone in a line.
_ISSUE = lazy(
    r"^[ \t]*(?:@?[\w-]+ )?(?:opened (?:this (?:issue|pull request)|by @?\w)[^.:!?]{0,60}"
    r"|commented (?:on \w{3,9} \d|yesterday|last |(?:\d+|an?) \w+ ago)[^.:!?]{0,60})$",
    re.IGNORECASE,
)
_NUMBERED = lazy(r"#\d+\b")
_MIN_MAIL_FIELDS = 2
_MIN_SECTIONS = 3
# An element that holds a document; other elements may hold the person's own words.
_DOCUMENT = lazy(
    r"^[ \t]*<((?:[a-z]+[-_])?(?:file|document|attachment|pasted?|quote|e?mail|page|article|excerpt|snippet"
    r"|transcript|issue)s?(?:[-_][a-z]+)?)(?:\s[^<>]*>|>[ \t]*$|>[^<]*</\1>)",
    re.IGNORECASE,
)
# A line of Cortex's own brief or notes, by who is named at its end, and when.
_NOTE = lazy(
    r"\((?:user|assistant|tool|external|model|colleague [^(),]{1,40}), \d{1,2} [A-Z][a-z]{2} \d{2}\b"
    r"[^()]*\)\s*$"
)
_MAX_NOTE_END = 160
# What stands behind it is a text to work on.
_TEXT_FOLLOWS = lazy(
    r"^[ \t]*(?:please |bitte )?(?:translate|proofread|paraphrase|rephrase|summari[sz]e|übersetze?|traduis"
    r"|traduisez|traduce|traduza|fasse)\b[^:\n]{0,80}:(?=\s|$)",
    re.IGNORECASE,
)
# The person's own line before the block, that makes it theirs.
_ORDERED = lazy(
    r"(?:\b(?:follow|obey|apply|adopt|respect|implement|abide by|stick to|keep to)\b"
    r"|\bdo (?:exactly )?(?:what|as|the following|this|these)\b|\buse (?:this|these|the following)\b"
    r"|\b(?:our|my) (?:rules?|conventions?|guidelines)\b"
    r"|\b(?:befolge|halte dich|setze)\b).*:\s*$",
    re.IGNORECASE,
)


def without_pasted(text: str) -> str:
    """
    Return what a person typed, without lines of a shell, a log or a quotation, and without a pasted document.

    What their own line before it orders ("Follow these rules:") stays theirs.

    >>> without_pasted("it fails:\\n$ make test\\n12:01:33 Error")
    'it fails:'
    >>> without_pasted("Answer him.\\n\\nFrom: Bo\\nSubject: Rules\\n\\nNever test.").rstrip()
    'Answer him.'
    """
    lines = text.split("\n")
    end = _start_of_document(lines)
    own: list[str] = []
    is_ordered, is_given, ends_with = False, False, ""
    for line in lines[:end]:
        if ends_with:  # within an element; what its last line has behind it is the person's again
            _, closing, line = line.partition(ends_with)
            if not closing:
                continue
            ends_with = ""
        elif not is_ordered and (opening := _DOCUMENT.match(line[:MAX_LINE_LENGTH])):
            ends_with = f"</{opening[1]}>"
            _, closing, line = line.partition(ends_with)
            if not closing:
                continue
            ends_with = ""
        if is_given:  # a text to work on, up to the end of its paragraph
            is_given = bool(line.strip())
            continue
        if given := _TEXT_FOLLOWS.match(line[:MAX_LINE_LENGTH]):
            own.append(given[0])
            is_given = True
            if line[given.end() :].strip():
                continue
            break
        is_quoted = line.lstrip().startswith(">") or bool(_NOTE.search(line[-_MAX_NOTE_END:]))
        if not (is_quoted and not is_ordered) and not PASTED_LINE.match(line):
            own.append(line)
        if line.strip() and not is_quoted:
            is_ordered = bool(_ORDERED.search(line[:MAX_LINE_LENGTH]))
    rest = lines[end:] if is_ordered else []
    return "\n".join([*own, *(line for line in rest if not PASTED_LINE.match(line))])


# Words of somebody who is not "I" or "we", told or quoted, and words that a test or a page is to hold.
_SPEECH = (
    r"(?:wrote|writes|says|said|claims|claimed|insists|insisted|suggests|suggested|thinks|schreibt|schrieb"
    r"|sagt|sagte|meint|meinte|behauptet|dit|écrit|dice|dijo|escribió)"
)
# Bounded, so that quotation marks that nothing closes cost no square of the length.
_QUOTED = (
    r"(?:\"[^\"]{0,600}\"|“[^”]{0,600}”|„[^“”]{0,600}[“”]|«[^»]{0,600}»"
    r"|'(?:[^']|'(?=\w)){0,600}'(?!\w)|‘[^’]{0,600}’|`[^`]{0,600}`)"
)
_RELAYED_QUOTE = lazy(
    rf"(?<!\bI )(?<!\bwe )(?<!\bich )\b{_SPEECH}\b[^\"“„«'‘`.!?\n]{{0,40}}{_QUOTED}", re.IGNORECASE
)
_SHOWN_QUOTE = lazy(
    r"(?:^|(?<=[.!?] ))(?:please )?(?:write|add|check|test|verify|assert|fix|parse|print|show|why|does|what"
    r"|how)\b[^\"“„«'‘`.!?\n]{0,120}\b(?:text|string|sentence|phrase|message|word|title|line|comment|input"
    rf"|prompt)s? {_QUOTED}",
    re.IGNORECASE,
)
_REPORTED = lazy(
    r"^(?!(?:i|we|you|ich|wir|if|when|whenever|what|whatever|as|like|once|until|do|use|always|never|because"
    r"|since|wenn|falls|was|wie|from)\b)(?:(?:my|our|the|his|her|their|an?|some|mein|meine|unser|unsere|der|die"
    rf"|das|mon|mi|el|la|le) (?:\S+ ){{1,4}}|\w+ (?:\w+ )?){_SPEECH},?(?: (?:that|dass|que))?"
    r" (?:from|we|you|i|all|every\w*|nobody|always|never|the|it|wir|ihr|man|ab|immer|nie|nous|il|toujours"
    r"|siempre|nunca|debemos)\b",
    re.IGNORECASE,
)
_TAKEN_UP = lazy(
    r"\bso,? (?:from|we|i|please|let|always|never|use|do)\b|\b(?:therefore|hence|deshalb|daher)\b"
    r"|\b(?:i|we) (?:(?:fully|totally|completely|both|all) )?agreed?\b"
    r"|\b(?:he|she|they)(?:'s|'re| is| are) right\b(?!\?)",
    re.IGNORECASE,
)


def without_quoted_speech(text: str) -> str:
    """
    Return a passage of a person without what they quote of somebody, or as words to test or to show.

    >>> without_quoted_speech('Bo wrote: "Never test." Is he right?').strip()
    'Bo   Is he right?'
    """
    return _SHOWN_QUOTE.sub(" ", _RELAYED_QUOTE.sub(" ", text))


def is_hearsay(sentence: str, passage: str) -> bool:
    """
    Return whether a sentence only tells what somebody else says, and its passage does not take it up.

    >>> [is_hearsay(words, words) for words in ("Bo says we never test.", "I said we never test.")]
    [True, False]
    """
    return bool(_REPORTED.match(sentence)) and not _TAKEN_UP.search(passage)


def _start_of_document(lines: list[str]) -> int:
    """Return the number of the first line of a pasted mail, page or licence, or their count."""
    headings = [line for line in lines if line.startswith("#")]
    sections = [match for line in headings if (match := _PAGE_SECTION.match(line))]
    if len(sections) >= _MIN_SECTIONS and any(match[1] for match in sections):
        return next(number for number, line in enumerate(lines) if _HEADING.match(line))
    fields, has_sender, has_subject = 0, False, False
    for number, line in enumerate(lines):
        line = line[:MAX_LINE_LENGTH]
        if field := _MAIL_FIELD.match(line):
            fields += 1
            has_sender, has_subject = has_sender or bool(field[1]), has_subject or bool(field[2])
        elif line.strip():
            fields, has_sender, has_subject = 0, False, False
        if fields >= _MIN_MAIL_FIELDS and has_sender and has_subject:
            return number + 1 - fields
        if _WROTE.match(line):
            return number
        if _ISSUE.match(line):
            return number - bool(number and _NUMBERED.search(lines[number - 1][:MAX_LINE_LENGTH]))
        if _BADGE_OR_LICENCE.search(line):
            return next((n for n, above in enumerate(lines[:number]) if _HEADING.match(above)), number)
    return len(lines)


# -- What of an answer is the assistant's own prose, not code, a quotation or markup that shows another's
# words.

_MARKER = r"(?:(?:[-*+•]|\d{1,9}[.)])[ \t]+)"
_FENCE = lazy(r"^([ \t]*)" + _MARKER + r"*(`{3,}(?=[^`]*$)|~{3,})")
_FENCE_END = lazy(r"^([ \t]*)(`{3,}|~{3,})[ \t]*$")
# A line of nothing but quotation marks opens a quotation that the same line ends.
_QUOTE_FENCE = lazy(r"^[ \t]*(\"{1,3}|'{3}|“|«)[ \t]*$")
_QUOTE_FENCE_END = {"“": "”", "«": "»"}
_BLOCKQUOTE = lazy(r"^[ \t]*" + _MARKER + r"*>")
_ITEM = lazy(r"^([ \t]*)((?:[-*+•]|\d{1,9}[.)])[ \t]+)\S")
_OPENING = lazy(r"<([A-Za-z][\w-]*)(?=[\s>]|$)[^<>]*?(/?)(?:>|$)")
_CODE_SPAN = lazy(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_COMMENT = lazy(r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>")
_COMMENT_START = lazy(r"<!--|<!\[CDATA\[|<\?(?=\w)")
_COMMENT_ENDS = {"<!--": "-->", "<![": "]]>", "<?": "?>"}
_SHOWN_INLINE = lazy(r"<(pre|blockquote|q|cite|script|style|textarea|xmp)\b[^>]*>.*?</\1\s*>", re.IGNORECASE)
# Elements that show something wherever they open; any other one only at the start of a line.
_SHOWING = frozenset(
    (
        *("pre", "code", "samp", "kbd", "blockquote", "q", "cite", "details", "table", "script", "style"),
        *("textarea", "xmp", "plaintext", "listing", "template", "iframe", "noscript", "svg"),
    )
)
# What is never closed among them reaches to the end; of other elements, to the next empty line.
_TO_THE_END = frozenset(("pre", "script", "style", "textarea", "xmp", "plaintext", "listing"))
# Elements that begin a block whatever follows on their line; another one does only where it stands alone: the
# type in "<T> is generic" begins none.
_BLOCK_NAMES = """
address article aside body caption center dd dialog dir div dl dt fieldset figcaption figure footer
form frameset h1 h2 h3 h4 h5 h6 head header html legend li main menu nav noframes ol optgroup option
p search section summary tbody td tfoot th thead title tr ul
"""
_BLOCKS = _SHOWING.union(_BLOCK_NAMES.split())
_VOID = frozenset(("br", "hr", "img", "input", "meta", "link", "wbr", "area", "base", "col", "embed"))
_QUOTE_PAIRS = (("“", "”"), ("„", "“"), ("«", "»"), ("「", "」"))
_CODE_INDENT = 4


def own_prose(text: str) -> str:
    """
    Return `text` with every line emptied that shows somebody else's words; the number of lines stays.

    Emptied are fenced and indented code, block quotes with the lines that lazily go on with them, HTML blocks
    and comments, and what stands inside code or quotation marks that reach over several lines.

    >>> own_prose("Mine.\\n> Theirs,\\nand theirs.\\n\\nMine again.").split("\\n")
    ['Mine.', '', '', '', 'Mine again.']
    """
    shown = "\n".join(_Lines(text).own())
    inside = _starts_inside(shown)
    if not inside:
        return shown
    return "\n".join("" if number in inside else line for number, line in enumerate(shown.split("\n")))


class _Lines:
    """Reads Markdown line by line; each state says what the open block is and how it ends."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._rest = text.lower() if "<" in text else ""
        self._fence: tuple[str, int, int] | None = None  # character, length, indentation
        self._ends_with = ""  # of a comment, or the line that ends a quotation
        self._element: tuple[str, int] | None = None  # name and depth; "" ends at an empty line
        self._is_lazy = self._is_code = False
        self._is_after_blank = True
        self._item_indent = -1

    def own(self) -> Iterator[str]:
        """Yield each line, empty if it is not the assistant's own."""
        for line in self._lines:
            yield self._own(line)

    def _own(self, line: str) -> str:
        if self._goes_on(line):
            return ""
        bare = line.strip()
        if not bare:
            self._is_lazy, self._is_after_blank = False, True
            return ""
        if self._is_lazy or self._opens(line):
            self._is_after_blank = False
            return ""
        if "<" in line and len(line) > MAX_LINE_LENGTH:
            self._pass_over(line)
            return ""
        kept = self._without_markup(line) if "<" in line else line
        self._note_list(kept)
        return kept

    def _goes_on(self, line: str) -> bool:
        """Return whether an open block covers the line; close it where the line ends it."""
        if self._fence:
            end, (character, length, indent) = _FENCE_END.match(line), self._fence
            if end and end[2][0] == character and len(end[2]) >= length and _width(end[1]) <= indent + 3:
                self._fence = None
            return True
        if self._ends_with:
            if self._ends_with in line:
                self._ends_with = ""
            return True
        if self._element:
            self._follow(*self._element, line)
            return True
        return False

    def _follow(self, name: str, depth: int, line: str) -> None:
        if not name:
            self._element = ("", 0) if line.strip() else None
            return
        depth += _opened(name, line)
        self._element = (name, depth) if depth > 0 else None

    def _opens(self, line: str) -> bool:
        """Return whether the line begins a block that shows another's words."""
        fence = _FENCE.match(line)
        if fence:
            self._fence = (fence[2][0], len(fence[2]), _width(fence[1]))
            return True
        quotation = _QUOTE_FENCE.match(line)
        if quotation:
            self._ends_with = _QUOTE_FENCE_END.get(quotation[1], quotation[1])
            return True
        if _BLOCKQUOTE.match(line):
            self._is_lazy = True
            return True
        self._is_code = self._is_indented_code(line)
        return self._is_code

    def _is_indented_code(self, line: str) -> bool:
        indent = _width(line[: len(line) - len(line.lstrip(" \t"))])
        least = _CODE_INDENT if self._item_indent < 0 else self._item_indent + _CODE_INDENT
        return indent >= least and (self._is_after_blank or self._is_code)

    def _note_list(self, line: str) -> None:
        item = _ITEM.match(line)
        if item:
            self._item_indent = _width(item[1]) + len(item[2])
        elif line[:1] not in " \t" and line:
            self._item_indent = -1
        self._is_after_blank = False

    def _pass_over(self, line: str) -> None:
        """Note what a line leaves open that is too long to be read for its markup: in doubt a block."""
        for start, end in _COMMENT_ENDS.items():
            if line.rfind(start) > line.rfind(end):
                self._ends_with = end
                return
        depths = ((name, _opened(name, line)) for name in sorted(_SHOWING))
        self._element = next(((name, n) for name, n in depths if n > 0 and self._is_closed(name)), ("", 0))

    def _is_closed(self, name: str) -> bool:
        return f"</{name}" in self._rest or name in _TO_THE_END

    def _without_markup(self, line: str) -> str:
        """Return the line up to where markup opens that shows something, and without what it closes again."""
        kept = _SHOWN_INLINE.sub(" ", _COMMENT.sub(" ", line))
        bare = _CODE_SPAN.sub(lambda span: "`" * len(span[0]), kept)
        comment = _COMMENT_START.search(bare)
        if comment:
            self._ends_with = next(
                end for start, end in _COMMENT_ENDS.items() if comment[0].startswith(start)
            )
            return kept[: comment.start()]
        for opening in _OPENING.finditer(bare):
            name, is_first = opening[1].lower(), not bare[: opening.start()].strip(" \t-*+•0123456789.)")
            if (name not in _SHOWING and not is_first) or name in _VOID or opening[2]:
                continue
            depth = _opened(name, bare[opening.start() :])
            if depth <= 0:
                continue
            if self._is_closed(name):
                self._element = (name, depth)
            elif is_first and (name in _BLOCKS or not bare[opening.end() :].strip()):
                self._element = ("", 0)
            else:
                continue
            return kept[: opening.start()]
        return kept


def _opened(name: str, line: str) -> int:
    """Return how many elements of this name a line leaves open; negative where it closes more."""
    lowered = line.lower()
    opened = len(re.findall(rf"<{name}(?=[\s>]|$)", lowered))
    return opened - lowered.count(f"</{name}")


def _width(space: str) -> int:
    return len(space.expandtabs(4))


def _starts_inside(text: str) -> frozenset[int]:
    """Return the numbers of the lines, from 0, that begin inside code or quotation marks."""
    numbers: set[int] = set()
    breaks = [match.start() for match in re.finditer("\n", text)]
    for start, end in (*_code_spans(text), *_straight_quotes(text), *_paired_quotes(text)):
        numbers.update(range(bisect_left(breaks, start) + 1, bisect_left(breaks, end) + 1))
    return frozenset(numbers)


def _code_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of code in backticks that goes over a line's end, within one paragraph."""
    opened: tuple[int, int] | None = None
    for run in re.finditer(r"`+|\n[ \t]*\n", text) if "`" in text else ():
        if run[0][0] == "\n":
            opened = None
        elif opened is None:
            opened = (run.start(), len(run[0]))
        elif opened[1] == len(run[0]):
            if text.find("\n", opened[0], run.start()) >= 0:
                yield opened[0], run.start()
            opened = None


def _straight_quotes(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of what stands between "…" over several lines; 5" of an inch opens nothing."""
    opened = -1
    at = text.find('"')
    while at >= 0:
        before, after = text[at - 1 : at], text[at + 1 : at + 2]
        if opened >= 0 and before.strip():
            if text.find("\n", opened, at) >= 0:
                yield opened, at
            opened = -1
        elif (not before.strip() or before in "([:—–-*_") and after.strip():
            opened = at
        at = text.find('"', at + 1)


def _paired_quotes(text: str) -> Iterator[tuple[int, int]]:
    for opening, closing in _QUOTE_PAIRS:
        at = text.find(opening)
        while at >= 0:
            end = text.find(closing, at + 1)
            if end < 0:
                break
            if text.find("\n", at, end) >= 0:
                yield at, end
            at = text.find(opening, end + 1)


# -- How the assistant reports by itself: lines `[MEMORY: type] text` and lists of steps.

SIGN = "[memory:"

# A list that the assistant keeps in its prose, or with the client's tools; a single step is not a plan.
CHECKBOX = lazy(r"^[^\S\n]*[-*]\s+\[([ xX])\]\s+(\S.*)$", re.MULTILINE)
TASK_NUMBER = lazy(r"#(\d+)")
STEP_STATUSES = ("pending", "in_progress", "completed")
MIN_STEPS = 2

# A tag opens its line; in a sentence or in backticks it is being talked about, further in it is code.
TAG = lazy(r"^ {0,3}(?:[-*•] +)?(?:\*\*)?\[MEMORY:\s*([^\]\n]{0,40})\](?:\*\*)?\s*(.*)$", re.IGNORECASE)
_PLACEHOLDER = lazy(
    r"^(?:\.{2,}|…|<[^>]*>|\{[^}]*\}|\[[^\]]*\]|text|your text|description|what .*\?)?[.…]*$", re.IGNORECASE
)
_TABLE_RULE = lazy(
    r"^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)+\|?[ \t]*$|^[ \t]*\|[ \t:-]+\|[ \t]*$"
)


def tags_in(text: str) -> Iterator[tuple[str, str]]:
    """
    Yield (type, text) of each tag line in the assistant's own prose; placeholders and tables are left out.

    >>> list(tags_in("[MEMORY: decision] Use SQLite.\\n```\\n[MEMORY: plan] no\\n```\\n[MEMORY: type] ..."))
    [('decision', 'Use SQLite.')]
    """
    if SIGN not in text.lower():
        return
    lines = own_prose(text).split("\n")
    is_table = False
    for line, following in zip(lines, [*lines[1:], ""]):
        is_table = bool(line.strip()) and (is_table or bool(_TABLE_RULE.match(following)))
        tag = None if is_table or len(line) > MAX_LINE_LENGTH else TAG.match(line)
        if tag and not _PLACEHOLDER.match(tag[2].strip()):
            yield tag[1].strip().lower(), tag[2]
