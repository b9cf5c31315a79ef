"""Openings put as statements: no filler, no courtesy, no "I" before what was done or is wanted."""

import re

# Rules look at the opening alone: what a sentence says after it stays word for word. Each is tried in its
# order, and all of them twice, as "ok, so I've added" takes two.
_ROUNDS = 2
_DONE = (
    r"(?:[a-z]{2,}ed|made|set|put|kept|built|wrote|rewrote|chose|took|split|left|cut|ran"
    r"|went with|got rid of)"
)
_ADVERBS = r"(?:(?:also|now|just|successfully|already|deliberately|intentionally|then|only)\s+)*"
_DO = (
    r"(?=(?:use|keep|drop|store|avoid|stay|stick|go with|skip|leave|treat|prefer|run|set|add|pass|call"
    r"|check|make|put|move"
    r"|split|remove|replace|rename|return|read|write|build|install|create|update|change|fix|disable"
    r"|enable|ensure|include"
    r"|exclude|restart|commit|push|do|don't|not|be|have|start|stop|wrap|switch|convert|handle|support"
    r"|show|hide|test"
    r"|implement|improve|reuse|extract|merge|deploy|configure|define|allow|limit|bump|pin|ignore|log"
    r"|print|load|save"
    r"|document|publish|cache|refactor|simplify|delete|only|never|always)\b)"
)


def _rules(*pairs: tuple[str, str]) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern, re.IGNORECASE), form) for pattern, form in pairs)


_ASSISTANT = _rules(
    (r"^(?:(?:minor|major|critical|important|nit)\s+)?\((?:fixed|done|resolved|new)\)\s*:?\s+(?=\S)", ""),
    (
        r"^(?:one|two|three|a few|some|another) (?:[\w-]+ ){0,2}"
        r"(?:details?|things?|notes?|points?|caveats?|observations?|corrections?|clarifications?)"
        r"(?: [^:.!?`]{0,50})?:\s+(?=\S)",
        "",
    ),
    (
        r"^(?:(?:yes|yep|no|correct|exactly|sí|correcto|es correcto|exacto|claro|ja|nein|oui|non|sim"
        r"|はい|いいえ)"
        r"[.,!。、]\s*)+(?=\S)",
        "",
    ),
    (r"^(?:however|but|and|so|also|finally|additionally|similarly|therefore|overall),?\s+(?=[`\w])", ""),
    (r"^\(?\d{1,2}[.)]\s+(?=[^\W\d]|`)", ""),
    (
        r"^(?:(?:so|now|well|anyway|basically|essentially|actually|also|and|but|then|alright|in short"
        r"|to be clear|again"
        r"|importantly|interestingly|unfortunately|fortunately|good news|bottom line|short answer"
        r"|tl;dr)\s*[,:—–-]+\s*)+",
        "",
    ),
    (
        r"^(?:note|(?:please )?note that|keep in mind(?: that)?|remember(?: that)?"
        r"|important)\b[:,]?\s+(?=\S)",
        "",
    ),
    (
        r"^(?:as you can see,?|it turns out(?: that)?,?|turns out(?: that)?,?|(?:the|one) (?:key |main "
        r"|important )?"
        r"(?:insight|point|thing|takeaway)(?: to (?:note|know))?(?: here)? is(?: that)?:?|the (?:truth"
        r"|fact) is(?: that)?"
        r"|what(?:'s| is) happening(?: here)? is(?: that)?:?|(?:this|that|which) means(?: that)?"
        r"|i (?:can )?(?:see|found|find|noticed|think|believe|confirmed|verified|realized|checked) that"
        r"|(?:you're|you are) (?:absolutely )?right[,:—–-]+(?: that)?)\s+",
        "",
    ),
    (rf"^(?:i|we)(?:'ve| have)? {_ADVERBS}(?={_DONE}\b)", ""),
    (
        rf"^(?:let's|let us|i(?:'ll| will)(?: go ahead and)?|i'm going to|we(?:'ll| will)) {_DO}"
        r"(?!(?:not|be|have|only|check|run|read|fix|update|start|add"
        rf"|create|write|make|test)\b)",
        "",
    ),
    # What is only put forward stays a proposal.
    (
        rf"^(?:i(?:'d| would)(?: (?:recommend|suggest|propose))?(?: to)?|we (?:should|could)) {_DO}",
        "Proposed: ",
    ),
    (r"^(?:i(?:'d| would)? )(?:recommend|suggest|propose) (?=\S)", "Proposed: "),
    (rf"^you (?:want to|could|might(?: want to)?) {_DO}", "Proposed: "),
    (rf"^we(?:'ll| will)? (?:need to|have to) {_DO}", "Needed: "),
    (rf"^(?:you|we)(?:'ll| will)? (?:must|need to|have to|can(?: now)?) {_DO}", ""),
    (rf"^you(?:'ll| will)? (?:should|want to) {_DO}", ""),
)
_PERSON = _rules(
    (
        r"^(?:(?:ok(?:ay)?|yes|yeah|yep|sure|no|nope|hey|hi|hello|claude|great|perfect|cool|nice|good"
        r"|thanks?|thank you|also|and"
        r"|so|then|now|hmm+|well|actually|but|wait|sorry|alright|right|please)\b(?:\s*[,.!:;—–-]+\s*"
        r"|\s+(?=(?:can|could|would"
        r"|let'?s|so|claude|please|i|we|use|do|don'?t|make|add|remove|change|keep|now|also)\b)))+",
        "",
    ),
    (
        r"^(?:can|could|would|will) (?:you|we)(?: please)?(?: also| maybe| just)? (?:please )?(.+?)\s*\??$",
        r"\1",
    ),
    (r"^why (?:don't|not|dont) (?:we|you) (.+?)\s*\??$", r"\1"),
    (r"^(?:please|pls|let'?s|let us)\s+(?:also |just )?", ""),
    (r"^(?:don'?t|do not)\s+", "Do not "),
    (r"^i(?:'d| would)? (?:really )?(?:like|want|need) (?:you )?to\s+(?:also )?", ""),
    (
        r"^(?:i think |i guess |i feel like |maybe )+(?:that )?(?:we|you|it) (?:should|could|need to"
        r"|must) (?=[a-z])",
        "",
    ),
    (r"^(?:we|you) (?:should|need to|must|have to) (?=[a-z])", ""),
    (r"^i (?:think|guess|believe|feel)(?: like)?(?: that)?,? (?=\S+ )", ""),
    (r"^i (?:(?:really|always|generally|usually|would|strongly) )*prefer\s+", "Prefers "),
    (r"^i(?:'d| would) prefer\s+", "Prefers "),
    (r"^i (?:really )?(?:don'?t|do not) (?:really )?like\s+", "Does not like "),
    (r"^i (?:really )?(?:like|love)\s+", "Likes "),
    (r"^i (?:really )?(?:hate|dislike)\s+", "Dislikes "),
    (r"^i(?:'d| would)? (?:really )?(?:like|want)\s+(?=\S)", "Wanted: "),
    (r"^i (?:really )?need\s+(?=\S)", "Needed: "),
)
# "1.2 → 1.3" with a sign of its own: the arrow once parted prompt and answer.
_ARROW = re.compile(r"\s*[→➜⟶➔]\s*")
_LOWER_WORD = re.compile(r"^[a-z][a-z']*(?=[\s,:;]|$)")


_SPEAKER = r"(?:I|I'm|I've|I'd|I'll|my|me|your)"
# What the one who speaks says of themselves beside the fact: "(as I showed above)", "- I noted it there."
_ASIDE = re.compile(
    rf"\s*\((?=[^()]*(?<!\w){_SPEAKER}(?!\w))[^()`]*\)"
    r"|\s+[—–-]\s+(?:as |like |which |and )?I\b(?:`[^`]*`|[^`—–.]){0,80}(?=\.(?:\s|$)|$)"
)
_YOUR = re.compile(r"\b(?:your|our)\b(?=\s+(?!own\b)[\w`@])", re.IGNORECASE)
_CODE = re.compile(r"(`[^`]*`|\"[^\"]*\")")


def without_speaker(text: str) -> str:
    """
    Return an assistant's statement without asides on itself, and with "the" where it says "your".

    >>> without_speaker("Set it in your profile (as I did above).")
    'Set it in the profile.'
    """
    text = _ASIDE.sub("", text)
    parts = _CODE.split(text)
    return "".join(part if at % 2 else _YOUR.sub(_the, part) for at, part in enumerate(parts))


def _the(word: re.Match[str]) -> str:
    return "The" if word[0][0].isupper() else "the"


def with_plain_arrows(text: str) -> str:
    """Return `text` with the sign `->` for every arrow."""
    return _ARROW.sub(" -> ", text).strip()


def reworded(text: str, *, is_person: bool) -> str:
    """
    Return what was said as a statement: the opening is put into the form of one, nothing else is changed.

    >>> reworded("I've also added a queue because imports overlap.", is_person=False)
    'Added a queue because imports overlap.'
    >>> reworded("ok, can you please keep the levels in UTC?", is_person=True)
    'Keep the levels in UTC.'
    """
    statement = with_plain_arrows(text)
    asked = statement.endswith("?")
    for _ in range(_ROUNDS):
        before = statement
        for pattern, form in _PERSON if is_person else _ASSISTANT:
            shorter = pattern.sub(form, statement, count=1)
            if shorter.strip():
                statement = shorter
        if statement == before:
            break
    if statement == text:
        return text
    statement = statement.strip()
    word = _LOWER_WORD.match(statement)
    if word:
        statement = statement[0].upper() + statement[1:]
    return f"{statement}." if asked and statement[-1:].isalnum() else statement
