"""Layer 2: every passage of a session that might be worth keeping, as a candidate with its signals."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from cortex.transforms.extract.acceptance import accepted
from cortex.transforms.extract.alone import (
    lacks_subject,
    speaks_first,
    spoken_share,
    stands_alone,
    trimmed,
    without_talk,
)
from cortex.transforms.extract.candidate import Candidate, Turn, line_of, text_of
from cortex.transforms.extract.dialogue import (
    LASTING,
    Statement,
    is_anothers,
    own_passages,
    statements_of,
)
from cortex.transforms.extract.kinds import FACT
from cortex.transforms.extract.lexicon import Lexicon, MarkerReading
from cortex.transforms.extract.phrases import FILE, Phrasebook, part_of
from cortex.transforms.extract.rewording import reworded, without_speaker
from cortex.transforms.extract.sentences import LONGEST_CHARS, SHORTEST_CHARS, STATEMENT_CHARS, Passage
from cortex.transforms.extract.signals import Corpus, signals
from cortex.transforms.extract.statements import HEADING_CHARS, NAMED_ITEM
from cortex.transforms.extract.thread import Place, places
from cortex.transforms.extract.typed import as_typed_statement, is_errand
from cortex.transforms.schemas import TRUSTS
from cortex.transforms.words.scripts import latin_length, long_words
from cortex.transforms.words.sentences import PROSE, is_question, sentences, shortened

# Of a passage's words this many in a later one: it is said again, with a change.
REPEATED_SHARE = 0.6
REPEATED_WORDS_MIN = 2  # a text in a script without these words repeats nothing
PASSAGES_COMPARED = 100  # the next ones said; what comes later is compared when memories are linked
FILES_KEPT = 8
AGREED = "Agreed: "
TYPED = frozenset(("prompt", "command", "rejection"))
# Kinds that a brief shows for a year: neither pasted words nor arguments make one.
SETTLES = frozenset(("decision", "pattern", "architecture"))
# Marks of words said between two calls; "root cause" and the like (markers.csv) outlast the call.
WORK_IN_HAND = frozenset(("before_call", "before_edit"))
CAUSE_STRENGTH = 0.75
IN_PASSING = frozenset(("works_aloud", "narrates", "hedges", "only_reports", "offers"))
PASSING_CHARS = 140  # one sentence; an explanation of how something works takes two
PREFERENCE_CONFIDENCE = 0.9  # in the person's own words; what they meant by it may still be less
BY_PERSON = ":user"  # ends the layer of what a person typed
# An item of this length with a name of its own is understood without the heading of its list.
LEAST_OWN_CHARS = 60
_DENIES = re.compile(
    r"\b(?:not|no|never|avoid|don'?t|without|missing|gaps?|why|rejected|removed|bugs?)\b", re.IGNORECASE
)
_MISSING = r"^what(?:['’]s| is) (?:\w+ )?missing(?: here)?$|^what does(?:n['’]t| not) exist(?: yet)?$"
_TITLES = (
    (re.compile(_MISSING, re.IGNORECASE), "Missing"),
    (re.compile(r"^where the (\w+) (?:\w+ )?(?:is|are)$", re.IGNORECASE), r"\1"),
)
# The first sentence of an approved plan says what was agreed on; steps and files follow.
AIM = re.compile(
    r"(?:add|change|replace|move|use|keep|remove|switch|store|report|treat|support|split|merge|rename)\b[^:]*$",
    re.IGNORECASE,
)


def prose_candidates(turns: Sequence[Turn], lexicon: Lexicon) -> list[Candidate]:
    """
    Return the passages of one thread as candidates, in order.

    `turns` are the turns of one transcript in its order, without rewound ones and without those of subagents.
    """
    phrases = lexicon.phrases
    where = places(turns, phrases)
    corpus = Corpus.of(
        (text_of(turn), place.speaker == "user") for turn, place in zip(turns, where, strict=True) if place
    )
    headed: list[tuple[str, Candidate]] = []
    for index, place in enumerate(where):
        if place is None or turns[index]["kind"] == "choice":
            continue
        for passage, text, lines in _statements(turns, index, place, lexicon):
            reading = lexicon.read(text, place.speaker)
            shown = signals(passage, place, corpus, reading.strengths, lexicon)
            is_typed = turns[index]["kind"] in TYPED
            is_pasted = is_typed and is_anothers(passage.text, text_of(turns[index]), phrases)
            shown["is_wish"] = float(passage.block == LASTING)
            shown["is_overtaken"] = float(_is_withdrawn(text, place.next_words, phrases))
            kind = _kind(turns[index], passage, text, reading, lexicon, place, shown)
            wording = _wording(passage, text, is_typed, phrases)
            is_prompt = turns[index]["kind"] in ("prompt", "command") and passage.block != LASTING
            is_asked = is_prompt and any(is_bare_request(words, phrases) for words in (wording, passage.text))
            if (is_pasted or is_asked or "argued" in place.marks) and kind[1] in SETTLES:
                kind = FACT
            layer = f"layer2:{reading.language}" + BY_PERSON * (is_typed and not is_pasted)
            shown["user_pastes"] = float(is_pasted)
            shown["is_option"] = float(not is_typed and _is_among_options(passage, phrases))
            is_whole = passage.block == LASTING or stands_alone(wording, is_person=is_typed)
            is_whole = is_whole and not (is_typed and is_errand(wording, phrases))
            is_whole = is_whole and phrases.open_point(passage.text) is None  # told in the outcome
            shown["no_statement"] = float(not is_whole)
            shown["speaks"] = spoken_share(wording)
            candidate = _candidate(turns[index], lines, wording, shown, kind, layer, phrases)
            if is_pasted:  # handed over by a person, said by somebody else
                candidate = replace(candidate, trust="assistant")
            headed.append((passage.heading, candidate))
        agreed = _agreement(turns[index], place, corpus, lexicon)
        if agreed:
            headed.append(("", agreed))
    return [_settled(candidate) for candidate in _with_overtaken(headed, phrases)]


def _wording(passage: Passage, text: str, is_typed: bool, phrases: Phrasebook) -> str:
    """Return a passage as a statement; what is said for good stays in the person's words."""
    if not is_typed:
        return as_statement(passage, phrases)
    if passage.block == LASTING:
        return reworded(phrases.calls.cut_from(trimmed(text, True)), is_person=True)
    return as_typed_statement(trimmed(text, True), phrases)


def _agreement(turn: Turn, place: Place, corpus: Corpus, lexicon: Lexicon) -> Candidate | None:
    """Return what a person's short words agree to: in the assistant's words, so no surer than those."""
    if turn["kind"] != "prompt" or place.answers is None:
        return None
    agreed = accepted(text_of(turn), text_of(place.answers), lexicon.phrases)
    if agreed is None:
        return None
    agreed = replace(agreed, text=reworded(agreed.text, is_person=False))
    if is_bare_request(agreed.text.removeprefix(AGREED), lexicon.phrases):
        agreed = replace(agreed, is_procedure=True)  # "run the tests": done since, and settles nothing
    reading = lexicon.read(agreed.text, "assistant")
    shown = signals(Passage(agreed.text, "", "agreed", 0), place, corpus, reading.strengths, lexicon)
    shown |= {"is_agreed": 1.0, "is_procedure": float(agreed.is_procedure)}
    shown["no_statement"] = float(agreed.is_procedure or not stands_alone(agreed.text))
    kind = ("PLAN_CREATED", "progress") if agreed.is_procedure else ("DECISION_MADE", "decision")
    return Candidate(
        turn, (line_of(turn), line_of(place.answers)), agreed.text, *kind,
        f"layer2:{reading.language}:agreed",
        shown, min(str(turn["trust"]), str(place.answers["trust"]), key=TRUSTS.index),
        rejected=agreed.rejected, files=tuple(dict.fromkeys(FILE.findall(agreed.text)))[:FILES_KEPT],
    )  # fmt: skip


def _settled(candidate: Candidate) -> Candidate:
    """Return a person's wish as sure of itself, unless it was taken back or said again later."""
    signals = candidate.signals
    is_valid = not (signals.get("is_overtaken") or signals.get("is_said_again"))
    is_sure = signals.get("is_wish") and is_valid
    return replace(candidate, confidence=PREFERENCE_CONFIDENCE) if is_sure else candidate


def is_bare_request(text: str, phrases: Phrasebook) -> bool:
    """Return whether a person asks for a look or a step and says not how: it settles nothing."""
    return bool(phrases.bare_request.search(text)) and not phrases.binding.search(text)


def _is_withdrawn(text: str, next_words: str, phrases: Phrasebook) -> bool:
    """Return whether a person's next words take a passage back, or order another value than it chose."""
    if phrases.withdrawn.search(next_words):
        return True
    ordered, chosen = phrases.ordered_value.match(next_words.strip()), phrases.chosen_value.part_in(text)
    return ordered is not None and chosen is not None and part_of(ordered) != chosen


def _with_overtaken(headed: list[tuple[str, Candidate]], phrases: Phrasebook) -> list[Candidate]:
    """Mark what is said again later: a wish by a later one, a name by a new one, a draft by the next."""
    old_names: list[str] = []
    later: dict[str, list[set[str]]] = {}
    marked: list[Candidate] = []
    for heading, candidate in reversed(headed):
        is_person = "is_user" in candidate.signals
        words = long_words(candidate.text)
        seen = later.setdefault("a person" if is_person else heading, [])
        is_repeated = (is_person or heading) and any(
            len(words & other) >= max(REPEATED_SHARE * len(words), REPEATED_WORDS_MIN)
            for other in seen[-PASSAGES_COMPARED:]
        )
        if any(_uses_name(candidate.text, name, phrases) for name in old_names):
            candidate = replace(candidate, signals={**candidate.signals, "is_overtaken": 1.0})
        elif is_repeated:
            candidate = replace(candidate, signals={**candidate.signals, "is_said_again": 1.0})
        seen.append(words)
        if is_person:
            old_names.extend(phrases.renamed.parts_in(candidate.text))
        marked.append(candidate)
    return marked[::-1]


def _uses_name(text: str, old_name: str, phrases: Phrasebook) -> bool:
    """Return whether a text gives the name that a later renaming took away, whole or as one to take on."""
    last_part = old_name.rstrip("/.").rsplit("/", 1)[-1]
    return old_name in text or phrases.to_name.part_in(text) == last_part


def _candidate(
    turn: Turn,
    lines: tuple[int, ...],
    text: str,
    shown: dict[str, float],
    kind: tuple[str, str],
    layer: str,
    phrases: Phrasebook,
) -> Candidate:
    event_type, memory_type = kind
    reason, rejected = phrases.reason.part_in(text), phrases.rejected.part_in(text)
    return Candidate(
        turn, lines, text, event_type, memory_type, layer, shown,
        str(turn["trust"]),
        reason=reason.strip() if reason else None,
        rejected=rejected.strip() if rejected else None,
        files=tuple(dict.fromkeys(FILE.findall(text)))[:FILES_KEPT],
    )  # fmt: skip


def _kind(
    turn: Turn,
    passage: Passage,
    text: str,
    reading: MarkerReading,
    lexicon: Lexicon,
    place: Place,
    shown: Mapping[str, float],
) -> tuple[str, str]:
    """
    Return the event and memory type of a passage; an approved plan is in the assistant's words.

    What is said in passing between two calls is work in hand: what lasts of it is said again at the end.
    """
    if turn["kind"] in ("text", "plan"):
        heading = _heading(passage, lexicon.phrases)
        headed_text = f"{heading}: {text}" if heading and heading not in text else text
        if turn["kind"] == "text":
            kind = lexicon.kind_of(headed_text, reading)
            is_caused = reading.strengths.get("ERROR_RESOLVED", 0.0) >= CAUSE_STRENGTH
            is_passing = shown.keys() & IN_PASSING or latin_length(text) < PASSING_CHARS
            in_hand = place.marks & WORK_IN_HAND and is_passing and kind[1] != "decision" and not is_caused
            return ("KNOWLEDGE_ACQUIRED", "progress") if in_hand else kind
        is_aim = passage.position == 0 and AIM.match(text)
        kind = ("DECISION_MADE", "decision") if is_aim else lexicon.kind_of(headed_text)
        return kind if kind[1] == "decision" else ("PLAN_CREATED", "progress")
    event_type, memory_type = lexicon.kinds.of_person(passage.text)
    if turn["kind"] == "rejection" and event_type == "PLAN_CREATED":
        return "PREFERENCE_NOTED", "pattern"  # words that stop a call say how it is done here, unless for now
    return event_type, memory_type


def _statements(turns: Sequence[Turn], index: int, place: Place, lexicon: Lexicon) -> Iterator[Statement]:
    turn = turns[index]
    if turn["kind"] in TYPED:
        yield from statements_of(turns, index, place, lexicon)
        return
    for passage in own_passages(turn, lexicon.phrases):
        text = cleaned(passage, lexicon.phrases)
        if latin_length(text) >= SHORTEST_CHARS:
            yield passage, text, (line_of(turn),)


def as_statement(passage: Passage, phrases: Phrasebook) -> str:
    """Return what the assistant says in a passage as a statement, its heading as subject."""
    text = reworded(trimmed(phrases.without_filler(passage.text)), is_person=False)
    heading = sentences(phrases.filler.cut_from(passage.heading) or " ", PROSE)[-1:]
    is_named = bool(heading) and is_subject(heading[0], phrases)
    title = as_title(reworded(heading[0], is_person=False)) if is_named else ""
    named = f"{title}: {text}" if title else text
    is_listed = passage.block != "paragraph" and not _names_itself(text, title, phrases)
    if lacks_subject(text) or (is_listed and latin_length(named) <= STATEMENT_CHARS):
        text = named
    return shortened(_capital(without_talk(without_speaker(text))), LONGEST_CHARS)


def _is_among_options(passage: Passage, phrases: Phrasebook) -> bool:
    """Return whether a passage stands under a heading that puts several ways forward."""
    heading = sentences(passage.heading, PROSE)[-1:]
    return bool(heading) and passage.block != "paragraph" and bool(phrases.suggests.search(heading[0]))


def is_subject(heading: str, phrases: Phrasebook) -> bool:
    """Return whether a heading says what is spoken of under it: short, no question, said to nobody."""
    is_generic = phrases.generic_heading.match(heading) or is_question(heading)
    is_talk = speaks_first(heading) or spoken_share(heading)
    return bool(heading.strip()) and len(heading) <= HEADING_CHARS and not is_generic and not is_talk


def as_title(heading: str) -> str:
    """
    Return a heading that is half a sentence as what it speaks of.

    >>> as_title("What's actually missing"), as_title("Where the gaps actually are")
    ('Missing', 'Gaps')
    """
    for pattern, form in _TITLES:
        heading = pattern.sub(form, heading)
    return _capital(heading)


def _names_itself(item: str, heading: str, phrases: Phrasebook) -> bool:
    """Return whether a list item has a name of its own, so that the list's heading adds nothing to it."""
    label = NAMED_ITEM.match(item)
    is_one = label is not None and " " in label[1] and "; " not in item
    is_long = latin_length(item) >= LEAST_OWN_CHARS
    return is_one and is_long and not phrases.open_heading.search(heading) and not _DENIES.search(heading)


def _capital(text: str) -> str:
    is_word = text[:1].islower() and text.split(" ", 1)[0].rstrip(",.").isalpha()
    return text[0].upper() + text[1:] if is_word else text  # a word, not a file name or a version


def cleaned(passage: Passage, phrases: Phrasebook) -> str:
    """Return a passage without leading filler, under its heading where that says something."""
    text = phrases.without_filler(passage.text)
    text = _capital(text)
    heading = _heading(passage, phrases)
    if heading and len(heading) <= HEADING_CHARS and not phrases.generic_heading.match(heading):
        text = f"{heading}: {text}"
    return shortened(text, LONGEST_CHARS)


def _heading(passage: Passage, phrases: Phrasebook) -> str:
    """Return what a list or table stands under, without the filler before it; of a paragraph nothing."""
    heading = sentences(phrases.filler.cut_from(passage.heading) or " ", PROSE)[-1:]
    return heading[0] if heading and passage.block != "paragraph" else ""
