"""Orders that turn an assistant against its person: one list, asked of whatever comes from somebody else."""

import re
import unicodedata
from typing import Final

from cortex.hooks.prose.characters import visible
from cortex.transforms.policy import Policy

# Who a row of refusals.csv is held against. The person alone may go without asking or checking; what names a
# file's marks is read in files alone; what says something of the person, in outcomes and in reasons.
ANYONE, OTHERS, FILES, OUTCOMES, REASONS = "anyone", "others", "files", "outcomes", "reasons"
FROM_PERSON: Final = (ANYONE,)
FROM_OTHERS: Final = (ANYONE, OTHERS)
FROM_FILES: Final = (ANYONE, OTHERS, FILES)

# "I g n o r e", "i-g-n-o-r-e": four letters and more with one sign between each two.
_SPACED = re.compile(r"(?<![^\W_])(?:[^\W\d_][ ._*|/-]){3,60}[^\W\d_](?![^\W_])")
_SIGN_BETWEEN = re.compile(r"[ ._*|/-]")
_MIXED_WORD = re.compile(r"\b(?=[^\W_]*[a-z]{2})(?=[^\W_]*[013457@$])[a-z013457@$]{4,30}\b", re.IGNORECASE)
_FIGURES = str.maketrans("013457@$", "oieastas")

# Letters of other scripts that look like one of ASCII's, each before the letter that it is taken for.
_LOOK_ALIKES = (
    "аaΑAАAɑaαa"
    "ВBΒBЬbʙb"
    "сcСCϲc"
    "ԁdɗd"
    "еeЕEΕEёeєe"
    "ҒFϝf"
    "ɡgԌG"
    "НHΗHһhհh"
    "іiІIΙIıiιiӀI"
    "јjЈJϳj"
    "КKΚKкkκk"
    "ⅼlӏl"
    "МMΜMмm"
    "ΝNпnոnηn"
    "оoОOΟOοoσoօo"
    "рpРPΡPρp"
    "ԛqգq"
    "гrΓr"
    "ѕsЅS"
    "тtТTΤTτt"
    "υuսu"
    "νvѵv"
    "ԝwѡwωw"
    "хxХXΧXχx"
    "уyУYΥYγyүy"
    "ΖZᴢz"
)
_PLAIN = str.maketrans(dict(zip(_LOOK_ALIKES[::2], _LOOK_ALIKES[1::2], strict=True)))


def plain_letters(text: str) -> str:
    """
    Return `text` with the letters of ASCII that look-alikes, accents and other widths stand for.

    For comparing alone: it changes what is written in Cyrillic and Greek.

    >>> plain_letters("ign\\u043er\\u0435 \\uff41\\u200bll")
    'ignore all'
    """
    text = visible(text, keeps_lines=True)
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text)
    bare = "".join(sign for sign in decomposed if not unicodedata.combining(sign))
    return unicodedata.normalize("NFC", bare).translate(_PLAIN)


def injection_reason(text: str, policy: Policy, held_to: tuple[str, ...] = FROM_OTHERS) -> str:
    """
    Return why a text is refused from somebody, as a clause that begins with "it"; empty if it is not.

    Read is the text as it stands and as it reads: with the letters that look-alikes stand for, spaced letters
    as a word, and figures as the letters that they are written for.
    """
    views = _views(text)
    for pattern, held_against, reason in policy.derived(_compiled):
        if held_against in held_to and any(pattern.search(view) for view in views):
            return reason
    return ""


def _views(text: str) -> tuple[str, ...]:
    plain = plain_letters(text)
    joined = _SPACED.sub(lambda match: _SIGN_BETWEEN.sub("", match[0]), plain)
    spelt = _MIXED_WORD.sub(lambda match: match[0].translate(_FIGURES), joined)
    return tuple(dict.fromkeys((text, plain, joined, spelt)))


def _compiled(policy: Policy) -> tuple[tuple[re.Pattern[str], str, str], ...]:
    rows = policy.tables["refusals"].to_pylist()
    return tuple((_pattern(row["pattern"]), str(row["refused_from"]), str(row["reason"])) for row in rows)


def _pattern(text: object) -> re.Pattern[str]:
    return re.compile(str(text), re.IGNORECASE | re.MULTILINE)


# -- What tells somebody to do something: a line that says who gives it.


def is_order(text: str, policy: Policy) -> bool:
    """Return whether a statement tells its reader to do or to leave something."""
    return any(pattern.search(text) for pattern in policy.derived(_orders))


def _orders(policy: Policy) -> tuple[re.Pattern[str], ...]:
    rows = policy.tables["brief_wording"].to_pylist()
    return tuple(_pattern(row["pattern"]) for row in rows if row["use"] == "order")
