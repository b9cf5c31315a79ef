"""Layer 1: what a person's answer agrees to or chooses: "yes please", "option B", an option of a question."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cortex.hooks.prose.own_prose import own_prose
from cortex.transforms.extract.language.candidate import AGREED, PERSON, Candidate, Turn, line_of, text_of
from cortex.transforms.extract.language.phrases import FILE, Phrasebook
from cortex.transforms.extract.language.statements import (
    ANY_SCRIPT,
    MAX_CHARS,
    STATEMENT_CHARS,
    in_line,
    is_wide,
    passages,
    plain,
)
from cortex.transforms.extract.structural import field_text, input_of, objects_of
from cortex.transforms.schemas import TRUSTS
from cortex.transforms.words.sentences import latin_length, sentences, shortened

# -- What "yes please", "2 and 3" or "option B" agrees to: a proposal in the assistant's last words.

# Longer words say themselves what they want.
ACCEPTING_CHARS = 120
TAIL_CHARS = 900  # a question that is answered by "yes" stands at the end
OPTIONS_MAX = 12
NAME_CHARS = 60
_FILES_KEPT = 8
MIN_PROPOSAL_CHARS = 16

_OPTION_LINE = re.compile(
    r"^\s{0,6}(?:[-*•]\s+)?(?:#{1,6}\s+)?\**(?:(?:option|variant|approach|plan|方案|案|옵션|opción|opção)\s*)?"
    r"(\d{1,2}|[A-H])(?:[.):：]|\*\*|\s+[—–-]|\s*[（(])\**\s*(.+)$",
    re.IGNORECASE,
)
_KEY = r"(?:\d{1,2}|[a-h])"
_AND = r"(?:\s*(?:,|and|&|\+|und|y|et|e|と|、|와|과|和)\s*)"
_PICKED = re.compile(
    rf"^(?:(?:ok(?:ay)?|yes|yeah|sure|ja|sí|oui|sim|let'?s|please"
    rf"|i(?:'d| would)? (?:prefer|like|want|choose|pick|say)|do|go|with|for|use|take|try|implement|just|only"
    r"|both|number|option|options|opción|opção|variant|#)[\s,]+)*#?"
    rf"({_KEY}(?:{_AND}#?{_KEY})*)(?=$|[\s.,;:!)]|で|番|を|에|번)",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"\b(?:options?|variants?|approach|plan|opción|opção|案|옵션)\s*#?([a-h1-9])\b", re.IGNORECASE
)
_ORDINAL = re.compile(
    r"^(?:(?:ok(?:ay)?|yes|let'?s|do|go|with|for|use|take"
    r"|i(?:'d| would)? (?:prefer|like|pick|choose))[\s,]+)*"
    r"(?:the )?(first|second|third|fourth|last|former|latter)(?: (?:one|option|approach|solution|way))?\W*$",
    re.IGNORECASE,
)
_PLACES = {"first": 0, "former": 0, "second": 1, "third": 2, "fourth": 3, "last": -1, "latter": -1}
_OFFER = re.compile(
    r"\b(?:would you like (?:me )?to|(?:do you )?want (?:me )?to|should (?:i|we)|shall (?:i|we)|(?:may|can) i"
    r"|(?:is it )?ok(?:ay)? (?:if i|to)|ready to|happy to)\s+(.+?)\s*\?",
    re.IGNORECASE,
)
_PROPOSAL = re.compile(
    r"^(?:so |then |therefore )?(?:(?:my |the |proposed )?"
    r"(?:recommendation|suggestion|proposal|take|fix|plan)"
    r"(?: (?:is|would be))?:|i(?:'d| would)(?: (?:recommend|suggest|propose))?(?: to)?"
    r"|i (?:recommend|suggest|propose)(?: to)?|(?:we|you) (?:could|should))\s+"
    r"(?!like|be happy|need|just)(.+)$",
    re.IGNORECASE,
)
# "make the change", "implement this", "do it": what is meant stands before the question.
_POINTS = re.compile(
    r"\b(?:it|this|that|these|those|them"
    r"|the (?:changes?|fix(?:es)?|plan|update|edit|suggestions?|improvements?))\b",
    re.IGNORECASE,
)
_OR = re.compile(
    r",?\s+or\s+(?:should|shall|would|do|leave|keep|just|is|are|want|rather|skip|not)\b.*$", re.IGNORECASE
)
_EITHER = re.compile(r"\s+or\s+", re.IGNORECASE)
_ADDED = re.compile(
    r"[\s,;.]+((?:but|with|without|except|only|plus|and (?:also|make|keep|add|use))\b.{6,})$", re.IGNORECASE
)
_ASIDE = re.compile(r"\s+(?:for you|now|next|first|instead)$", re.IGNORECASE)
_POLITE_JA = re.compile(r"(ます|です)か[？?]?$")


@dataclass(frozen=True)
class Accepted:
    """A proposal that a person took as a statement, what they left, and whether it is how to go on."""

    text: str
    rejected: str | None
    is_procedure: bool


def agreed_candidates(turns: Sequence[Turn], phrases: Phrasebook) -> Iterator[Candidate]:
    """
    Yield what the short words of a person in one thread agree to.

    It is in the assistant's words, so trusted no more than those. A step of how to go on is no memory.
    """
    before: Turn | None = None
    for turn in turns:
        taken = None
        if turn["kind"] == "prompt" and before is not None:
            taken = accepted(text_of(turn), text_of(before), phrases)
        if taken is not None and before is not None:
            words = taken.text.removeprefix("Agreed: ")
            is_step = taken.is_procedure or bool(
                (phrases.bare_request.search(words) and not phrases.binding.search(words))
                or phrases.chatter.search(words)
            )
            yield Candidate(
                turn, (line_of(turn), line_of(before)), taken.text,
                "PLAN_CREATED" if is_step else "DECISION_MADE", None if is_step else "decision",
                f"layer2{AGREED}", "procedure" if is_step else "agreed",
                min(str(turn["trust"]), str(before["trust"]), key=TRUSTS.index),
                rejected=taken.rejected, files=tuple(dict.fromkeys(FILE.findall(taken.text)))[:_FILES_KEPT],
            )  # fmt: skip
        if turn["kind"] == "text":
            before = turn
        elif turn["kind"] in PERSON:
            before = None


def accepted(words: str, proposal: str, phrases: Phrasebook) -> Accepted | None:
    """
    Return what a person's words agree to, given the assistant's words before them; None if to nothing.

    Short words alone agree to something; a counter-question does not.
    """
    words = " ".join(words.split())
    if latin_length(words) > ACCEPTING_CHARS or words.endswith(("?", "？")):
        return None
    own = own_prose(proposal)
    options = _options_in(own)
    picked = _picked(words, options)
    if picked:
        return _of_options(picked, options, words, phrases)
    if not phrases.acceptance.match(words):
        return None
    return _of_offer(own, phrases)


def _options_in(text: str) -> dict[str, str]:
    """Return the last list of numbered or lettered options of a text: key → what it proposes."""
    options: dict[str, str] = {}
    for line in text.split("\n"):
        match = _OPTION_LINE.match(line)
        if not match:
            continue
        key = match[1].upper()
        if key in ("1", "A") or (key in options):
            options = {key: plain(match[2])} if key in ("1", "A") else options
            continue
        if _follows(key, options) and len(options) < OPTIONS_MAX:
            options[key] = plain(match[2])
    return options if len(options) > 1 else {}


def _follows(key: str, options: dict[str, str]) -> bool:
    last = next(reversed(options), "")
    if not last or last.isdigit() != key.isdigit():
        return False
    return int(key) == int(last) + 1 if key.isdigit() else ord(key) == ord(last) + 1


def _picked(words: str, options: dict[str, str]) -> list[str]:
    if not options:
        return []
    match = _PICKED.match(words) or _NAMED.search(words)
    if match:
        keys = [key.upper() for key in re.split(_AND, match[1], flags=re.IGNORECASE)]
        is_article = keys == ["A"] and re.match(r"a\s+\w", words, re.IGNORECASE)
        return keys if not is_article and all(key in options for key in keys) else []
    ordinal = _ORDINAL.match(words)
    keys = list(options)
    if ordinal and len(keys) > _PLACES[ordinal[1].lower()]:
        return [keys[_PLACES[ordinal[1].lower()]]]
    return []


def _of_options(
    picked: list[str], options: dict[str, str], words: str, phrases: Phrasebook
) -> Accepted | None:
    taken = [_first(options[key]) for key in picked]
    added = _ADDED.search(words, words.upper().rfind(picked[-1]))
    others = [_name(text) for key, text in options.items() if key not in picked]
    is_choice = len(picked) == 1 and len(options) <= 4
    text = f"Agreed: {'; '.join(part.rstrip('. ') for part in taken)}"
    lost = " or ".join(others) if is_choice and all(others) else None
    if lost and latin_length(f"{text}, not {lost}.") <= STATEMENT_CHARS:
        text = f"{text}, not {lost}"
    if added:
        text = f"{text}, {added[1].strip(' .')}"
    if latin_length(text) >= STATEMENT_CHARS or not all(taken):
        return None
    return Accepted(f"{text}.", lost, any(phrases.procedure_taken.search(part) for part in taken))


def _of_offer(own: str, phrases: Phrasebook) -> Accepted | None:
    """Return the offer that a text ends with, or the proposal that the offer points to."""
    tail = plain(own[-TAIL_CHARS:])
    parts = sentences(tail, ANY_SCRIPT)
    question = next((part for part in reversed(parts[-3:]) if part.endswith(("?", "？"))), "")
    if not question:
        return None
    is_procedure = bool(phrases.procedure.search(question))
    offer = _OFFER.search(question)
    if offer is None:
        polite = _POLITE_JA.sub(r"\1", question)
        if polite == question or latin_length(polite) < MIN_PROPOSAL_CHARS:
            return None
        return Accepted(f"{polite}。", None, is_procedure)
    wanted = _ASIDE.sub("", _OR.sub("", offer[1]))
    if _EITHER.search(wanted):
        return None
    if _POINTS.search(wanted) or is_procedure:
        proposed = _proposed(own, phrases)
        if proposed:
            return Accepted(proposed, None, False)
    if _POINTS.search(wanted) or latin_length(wanted) < MIN_PROPOSAL_CHARS:
        return None
    return Accepted(f"Agreed: {wanted.rstrip('. ')}.", None, is_procedure)


def _proposed(own: str, phrases: Phrasebook) -> str:
    """Return the last statement of a text that recommends something, or nothing."""
    for passage in reversed(passages(own, phrases)):
        for sentence in reversed(sentences(passage.text, ANY_SCRIPT)):
            match = _PROPOSAL.match(sentence)
            if match is None or sentence.endswith("?") or _NAMED.match(match[1]):
                continue
            if MIN_PROPOSAL_CHARS <= latin_length(match[1]) < STATEMENT_CHARS - latin_length("Agreed: ."):
                return f"Agreed: {match[1].rstrip('.: ')}."
    return ""


def _first(text: str) -> str:
    """Return an option up to the end of its first sentence."""
    first = sentences(text, ANY_SCRIPT)[:1]
    is_short = first and latin_length(first[0]) < STATEMENT_CHARS
    return first[0].strip(" :：?？.—-") if is_short else ""


def _name(text: str) -> str:
    """Return what an option is called: what stands before the dash, colon or bracket after its name."""
    name = re.split(r"\s+[—–-]\s+|[:.(（]\s*", text, maxsplit=1)[0].strip()
    return name if 0 < latin_length(name) <= NAME_CHARS and name.count("`") % 2 == 0 else ""


# -- Layer 1: what a person answered to a question with options, as a statement of what holds since.

# As the transcript's reader joins a question and its answer.
_ARROW = " → "
_NOTES_ONLY = "(notes only)"
TOPIC_CHARS = 140
LOST_CHARS = 120
WHY_CHARS = 140
NAME_WORDS = 4  # "Windows build?" is a name; more words are a question

_RECOMMENDED = re.compile(
    r"\s*\((?:recommended|empfohlen|recomendado|recommandé|推奨|추천|推荐)\)", re.IGNORECASE
)
_OPTION = re.compile(r"^(?:option|variant|choice|approach)\s+[A-H1-9]\s*[:–—-]\s*", re.IGNORECASE)
# The assistant speaks in the description of an option: that is about the hour.
_SPEAKS = re.compile(r"\b(?:i|i'll|i'd|me|my|you|your|you'll)\b", re.IGNORECASE)
_END = re.compile(r"[\s?？]+$")
_BRACKETS = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")
_YOUR = re.compile(r"\b(?:your|our)\b(?=\s+(?!own\b)[\w`@])", re.IGNORECASE)
_ASKING = re.compile(r"(?:how|where|when|whether)\b", re.IGNORECASE)
_YES_OR_NO = re.compile(r"^(?:should|shall|do|does|will|would|can|must|is|are|want)\b", re.IGNORECASE)
# A question as what it asks about: "How should x be y?" as "how x should be y".
_TOPICS = (
    (
        re.compile(
            r"^(?:which|what) (.+?) (?:do|would|should|shall) (?:you|we|i)"
            r" (?:want|like|prefer|use|choose|pick|adopt)"
            r"(?: to (?:use|have))?((?: (?:for|in|on|with|at) .+)?)$",
            re.IGNORECASE,
        ),
        r"\1\2",
    ),
    (
        re.compile(
            r"^(how|where|when) (should|must|will) (.+?) (be|work|behave|live|look|run|happen)\b(.*)$",
            re.IGNORECASE,
        ),
        r"\1 \3 \2 \4\5",
    ),
    (re.compile(r"^(?:which|what) (.+?) (should|must|will) (be .+)$", re.IGNORECASE), r"\1 that \2 \3"),
    (
        re.compile(
            r"^(how|where|when) (?:do|does|should|shall|would|can) (?:you|we|i)"
            r" (?:(?:want|like|prefer|need) to )?([a-z].+)$",
            re.IGNORECASE,
        ),
        r"\1 to \2",
    ),
    (
        re.compile(
            r"^(?:(?:do|would) (?:you|we) (?:want|like|prefer|need)(?: me)? to"
            r"|(?:should|shall) (?:we|i)) (.+)$",
            re.IGNORECASE,
        ),
        r"whether to \1",
    ),
    (
        re.compile(
            r"^should (.+?) ((?:also |still |only )?(?:be|have|use|include|support|keep|run|live|stay|show"
            r"|return|go|work|contain|happen)\b.*)$",
            re.IGNORECASE,
        ),
        r"whether \1 should \2",
    ),
    (re.compile(r"^what(?:['’]s| is) (the .+)$", re.IGNORECASE), r"\1"),
    # In Japanese the subject of a question stands before its particle.
    (re.compile(r"^(.{3,60}?)は(?:、?(?:どう|どれ|どちら|どこ|どの|何|いつ|誰).*)?$"), r"\1"),
)


@dataclass(frozen=True)
class Question:
    """A question with its header and its options: label and description."""

    header: str = ""
    options: Mapping[str, str] | None = None


def choice_candidates(turns: Sequence[Turn], phrases: Phrasebook) -> Iterator[Candidate]:
    """Yield a decision for each question of a thread that a person answered, with the options not taken."""
    asked = {turn["tool_use_id"]: turn for turn in turns if turn["kind"] == "tool_call"}
    for turn in turns:
        if turn["kind"] != "choice":
            continue
        call = asked.get(turn["tool_use_id"])
        questions = _questions(call) if call is not None else {}
        lines = (line_of(turn),) if call is None else (line_of(turn), line_of(call))
        for question, answer in answers_in(text_of(turn), questions):
            yield _candidate(turn, lines, question, answer, questions.get(question, Question()), phrases)


def answers_in(text: str, questions: Mapping[str, Question]) -> Iterator[tuple[str, str]]:
    """Yield question and answer of a turn; an answer of several lines goes on until the next question."""
    question, answer = "", ""
    for line in text.split("\n"):
        asked, arrow, reply = line.rpartition(_ARROW)
        is_new = bool(arrow) and (not questions or asked.strip() in questions or not question)
        if is_new:
            if question:
                yield question, answer.strip()
            question, answer = asked.strip(), reply
        else:
            answer = f"{answer} {line.strip()}"
    if question:
        yield question, answer.strip()


def _questions(call: Turn) -> dict[str, Question]:
    return {
        field_text(question, "question").strip(): Question(
            field_text(question, "header").strip(),
            {
                field_text(option, "label"): field_text(option, "description")
                for option in objects_of(question, "options")
            },
        )
        for question in objects_of(input_of(call), "questions")
    }


def _candidate(
    turn: Turn, lines: tuple[int, ...], question: str, answer: str, given: Question, phrases: Phrasebook
) -> Candidate:
    options = given.options or {}
    taken = _taken(answer, options)
    is_procedure = is_about_procedure(question, answer, taken, phrases)
    why = next((reason for label in taken if (reason := _choices_first(options[label], WHY_CHARS))), "")
    lost = _lost([label for label in options if label not in taken]) if taken else ""
    text, is_whole = _worded(question, answer, given, taken, lost, why)
    # What holds for an hour, or cannot be told in a statement, is stored and never shown.
    kind = ("PLAN_CREATED", None) if is_procedure else ("DECISION_MADE", "decision" if is_whole else None)
    return Candidate(
        turn, lines, text, *kind, "layer1:choice", "procedure" if is_procedure else "choice", "user",
        reason=why or None, rejected=lost or None,
    )  # fmt: skip


def _taken(answer: str, options: Mapping[str, str]) -> list[str]:
    """Return the labels in an answer; a label that is part of another one taken is not meant by it."""
    named = [label for label in options if label and label in answer]
    return [label for label in named if not any(label != other and label in other for other in named)]


def is_about_procedure(question: str, answer: str, taken: Sequence[str], phrases: Phrasebook) -> bool:
    """Return whether a choice says how the session goes on, and nothing of the project."""
    own_words = answer.replace(_NOTES_ONLY, "").strip(" ()")
    if phrases.procedure.search(question) or phrases.undecided.search(own_words):
        return True
    if not taken and own_words.endswith(("?", "？")):
        return True
    return any(phrases.procedure_taken.search(label) for label in taken)


def _worded(
    question: str, answer: str, given: Question, taken: Sequence[str], lost: str, why: str
) -> tuple[str, bool]:
    """Return a choice as a statement of at most `STATEMENT_CHARS`, and whether it is one."""
    label, note = _answer(answer, taken)
    topic = _topic(question, given.header)
    head = f"For {topic}: {label}" if topic else label
    forms = [
        (f", not {lost}" if lost else "", f" {_sentence(why)}" if why else ""),
        (f", not {lost}" if lost else "", ""),
        ("", ""),
    ]
    added = f" The person adds: {note}" if note else ""
    for against, because in forms:
        text = _sentence(f"{head}{against}") + because + added
        if latin_length(text) <= STATEMENT_CHARS:
            return text, True
    if note and latin_length(text := _sentence(f"For {topic}: {note}")) <= STATEMENT_CHARS:
        return text, True
    return shortened(text, MAX_CHARS), False


def _answer(answer: str, taken: Sequence[str]) -> tuple[str, str]:
    """Return what was chosen, in the words of the options, and what the person added."""
    if not taken:
        own_words = answer.replace(_NOTES_ONLY, "").strip()
        is_bracketed = own_words.startswith("(") and own_words.endswith(")")
        return plain(own_words[1:-1] if is_bracketed else own_words), ""
    rest = answer
    for label in taken:
        rest = rest.replace(label, "", 1)
    note = plain(rest).strip(" ,;().")
    return " and ".join(_choices_name(label) for label in taken), note


def _choices_name(label: str) -> str:
    """
    Return the label of an option without what only tells it from the others.

    >>> _choices_name("Option B — one file (Recommended)")
    'one file'
    """
    return _OPTION.sub("", plain(_RECOMMENDED.sub("", label))) or plain(label)


def _lost(labels: Sequence[str]) -> str:
    names = [_BRACKETS.sub("", _choices_name(label)) or _choices_name(label) for label in labels if label]
    kept: list[str] = []
    for name in names:
        if latin_length(" or ".join([*kept, name])) <= LOST_CHARS:
            kept.append(name)
    return " or ".join(kept)


def _topic(question: str, header: str) -> str:
    """
    Return what a question is about, as a phrase to follow "For".

    >>> _topic("Which format should be used?", "Format"), _topic("Windows build?", "Windows")
    ('format that should be used', 'Windows build')
    """
    asked = next(
        (part for part in sentences(plain(question), ANY_SCRIPT) if part.endswith(("?", "？"))), question
    )
    bare = _YOUR.sub("the", _END.sub("", plain(asked)))
    short = _BRACKETS.sub("", bare) if latin_length(bare) > TOPIC_CHARS else bare
    if latin_length(short) > TOPIC_CHARS:
        return header or shortened(short, TOPIC_CHARS)
    for pattern, form in _TOPICS:
        match = pattern.match(short)
        if match:
            return _lowered(match.expand(form).strip())
    if len(short.split()) <= NAME_WORDS and not _YES_OR_NO.match(short):
        return short
    return f"{header} ({short}?)" if header else f"“{short}?”"


def _lowered(text: str) -> str:
    """Return a phrase that begins with how, where or when to follow "For"; a name keeps its capital."""
    return text[:1].lower() + text[1:] if _ASKING.match(text) else text


def _choices_first(description: str, chars: int) -> str:
    """Return the first sentences of a description that fit; none that does not."""
    kept = ""
    for sentence in sentences(plain(description), ANY_SCRIPT):
        if latin_length(longer := in_line(kept, sentence)) > chars or _SPEAKS.search(sentence):
            break
        kept = longer
    return kept


def _sentence(text: str) -> str:
    if not text or text.endswith((".", "!", "”", "。", "！", "？")):
        return text
    return f"{text}{'。' if is_wide(text[-1]) else '.'}"
