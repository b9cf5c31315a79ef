"""Layer 1: what a person answered to a question with options, as a statement of what holds since."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cortex.transforms.extract.ground.candidate import (
    Candidate,
    Turn,
    line_of,
    text_of,
)
from cortex.transforms.extract.ground.phrases import Phrasebook
from cortex.transforms.extract.ground.statements import (
    ANY_SCRIPT,
    LONGEST_CHARS,
    STATEMENT_CHARS,
    in_line,
    is_wide,
    plain,
)
from cortex.transforms.extract.structural import field_text, input_of, objects_of
from cortex.transforms.words.scripts import latin_length
from cortex.transforms.words.sentences import sentences, shortened

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
    why = next((reason for label in taken if (reason := _first(options[label], WHY_CHARS))), "")
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
    return shortened(text, LONGEST_CHARS), False


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
    return " and ".join(_name(label) for label in taken), note


def _name(label: str) -> str:
    """
    Return the label of an option without what only tells it from the others.

    >>> _name("Option B — one file (Recommended)")
    'one file'
    """
    return _OPTION.sub("", plain(_RECOMMENDED.sub("", label))) or plain(label)


def _lost(labels: Sequence[str]) -> str:
    names = [_BRACKETS.sub("", _name(label)) or _name(label) for label in labels if label]
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


def _first(description: str, chars: int) -> str:
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
