"""What a person typed: orders, refusals and wishes, in their own words, until they are taken back."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import accumulate, groupby
from math import ceil

from cortex.hooks.prose.memory_types import SETTLING_TYPES
from cortex.hooks.prose.own_prose import SHELL_TOOLS, is_hearsay, without_pasted, without_quoted_speech
from cortex.transforms.extract.language.candidate import (
    PERSON,
    PERSONS_LAYERS,
    TAG_LAYER,
    Candidate,
    Turn,
    line_of,
    text_of,
)
from cortex.transforms.extract.language.lexicon import QUESTION, Lexicon
from cortex.transforms.extract.language.phrases import FILE, Phrasebook, part_of
from cortex.transforms.extract.language.statements import (
    ANY_SCRIPT,
    MAX_CHARS,
    MIN_CHARS,
    Passage,
    in_line,
    passages,
)
from cortex.transforms.policy import Policy
from cortex.transforms.words.prompt_injection import plain_letters
from cortex.transforms.words.sentences import (
    PROSE,
    is_question,
    latin_length,
    long_words,
    sentences,
    shortened,
)

TYPED = frozenset(("prompt", "command", "rejection"))
# A prompt longer than this holds a pasted log, file or document; what the person says stands at its start.
TYPED_CHARS = 1500
# In a prompt of this length a passage that says neither "I" nor "we" and speaks to nobody was written
# elsewhere: a page of documentation, a review, another assistant's answer.
PASTED_FROM_CHARS = 400
PASSAGE_WITHOUT_VOICE_CHARS = 80
PASTED_PASSAGES = 3
MIN_LASTING_CHARS = 14  # "Always use uv."
# A shorter passage ("yes, option 2") says nothing by itself.
TERSE_CHARS = 60
CALL_CHARS = 100
# A refusal follows its call: 40 turns are about 15 tool calls.
TURNS_TO_CALL = 40
_FILES_KEPT = 8
# Of a statement's words this many in a later one of the same person: it is said again, with a change.
REPEATED_SHARE = 0.6
_PASSING_WORDS = frozenset(("also", "back", "again", "just", "please", "instead", "then", "only"))
REPEATED_WORDS_MIN = 2  # a text in a script without these words repeats nothing
MIN_SENTENCE_CHARS = 8

_BLANK_LINE = re.compile(r"\n\s*\n")
# Courtesy before an order says nothing of it.
_OPENING = re.compile(
    r"^(?:(?:ok(?:ay)?|yes|yeah|yep|sure|hey|hi|hello|great|perfect|cool|nice|thanks?|thank you|also|and|so"
    r"|then|now|well|actually|wait|right|please)\b(?:\s*[,.!:;—–-]+\s*|\s+(?=(?:can|could|let'?s|please|use"
    r"|do|don'?t|make|add|remove|change|keep)\b)))+",
    re.IGNORECASE,
)
_ASKED_POLITELY = re.compile(
    r"^(?:can|could|would|will) (?:you|we)(?: please)?(?: also| maybe| just)? (?:please )?(.{8,}?)\s*\??$",
    re.IGNORECASE,
)
_LETS = re.compile(r"^(?:please|pls|let'?s|let us)\s+(?:also |just )?", re.IGNORECASE)
# "Replace them with a link", "do it": the thing itself must stand in the words.
_POINTS_AT = re.compile(
    r"^(?:replace|make|change|move|remove|put|fix|update|revert|undo|bring|merge|rename|delete|add|do|use|try"
    r"|run|apply|keep|continue|commit|push|go)"
    r"(?: (?:it|this|that|them|those|these|on|ahead|with|both|all|again|now|please|so|and)\b)+\W*"
    r"(?:$|with\b|to\b|in\b|into\b)"
    r"|^(?:yes|no|ok(?:ay)?)\W*$"
    # What is spoken of stands before it, or the words are one step of the hour.
    r"|^(?:it|they|this|that|these|those|he|she)\b|^(?:first|then|next)\b",
    re.IGNORECASE,
)

# A second word that stands for nothing said before.
_NAMED = re.compile(r"\S\s+(?!(?:it|this|that|them|these|those|so|to|me|now)\b)\w", re.IGNORECASE)


def typed_candidates(turns: Sequence[Turn], lexicon: Lexicon) -> Iterator[Candidate]:
    """
    Yield what a person typed in one thread, in order: what is said for good first, sentence by sentence.

    Orders and wishes make memories, in the person's words; requests, questions and reports of faults are
    events alone, since the session's record has their result.
    """
    for index, turn in enumerate(turns):
        if turn["kind"] not in TYPED:
            continue
        typed = without_pasted(text_of(turn))
        most = PASTED_PASSAGES if len(typed) > TYPED_CHARS else None
        parts = [
            _persons_own(passage)
            for passage in _passages(typed, lexicon.phrases)[:most]
            if not is_pasted(passage.text, typed, lexicon.phrases)
        ]
        lasting = [sentence for passage in parts for sentence in _lasting(passage, lexicon)]
        for sentence in lasting:
            text = _LETS.sub("", _bare(sentence, lexicon.phrases))
            yield _candidate(turn, (line_of(turn),), text, ("PREFERENCE_NOTED", "pattern"), "wish")
        # Orders in several languages are one fact each: whoever reads one need not read the other.
        runs = [
            (replace(passage, text=text), spoken)
            for passage in _without(set(lasting), parts)
            for text, spoken in lexicon.runs_by_language(passage.text)
        ]
        for number, (passage, spoken) in enumerate(runs):
            refused, lines = _refused(turns, index) if number == 0 else ("", ())
            yield from _order(turn, passage, refused, (line_of(turn), *lines), spoken)


def _order(
    turn: Turn, passage: Passage, refused: str, lines: tuple[int, ...], lexicon: Lexicon
) -> Iterator[Candidate]:
    if latin_length(passage.text) < (1 if refused else MIN_CHARS):
        return
    event_type, memory_type = lexicon.kind_of(passage.text)
    is_refusal = turn["kind"] == "rejection"
    # With the call that they refuse, few words are enough, if they settle something and name it: "use pnpm".
    is_brief_order = bool(refused) and memory_type in SETTLING_TYPES and bool(_NAMED.search(passage.text))
    if is_refusal and event_type == "PLAN_CREATED":
        # Words that stop a call say how it is done here, unless for now.
        event_type, memory_type = "PREFERENCE_NOTED", "pattern"
    text = passage.text if is_refusal else _telling(passage.text, lexicon.phrases)
    is_long = is_brief_order or latin_length(text) >= MIN_LASTING_CHARS
    is_alone = is_long and not _POINTS_AT.match(text) and not is_question(text)
    is_asked = any(_is_bare_request(words, lexicon.phrases) for words in (text, passage.text))
    holds = memory_type in SETTLING_TYPES and is_alone and (is_refusal or not is_asked)
    text = f"{refused}: {text}" if refused else text
    if not holds:
        event_type = event_type if memory_type not in SETTLING_TYPES else QUESTION[0]
        yield _candidate(turn, lines, text or passage.text, (event_type, None), "request")
    else:
        source = "order" if memory_type == "decision" else "preference"
        yield _candidate(turn, lines, text, (event_type, memory_type), source)


def _candidate(
    turn: Turn, lines: tuple[int, ...], text: str, kind: tuple[str, str | None], source: str
) -> Candidate:
    event_type, memory_type = kind
    text = shortened(_capital(text), MAX_CHARS)
    return Candidate(
        turn, lines, text, event_type, memory_type, "layer2:user", source, str(turn["trust"]),
        files=tuple(dict.fromkeys(FILE.findall(text)))[:_FILES_KEPT],
    )  # fmt: skip


def _persons_own(passage: Passage) -> Passage:
    """Return a passage without what somebody else said in it."""
    text = without_quoted_speech(passage.text)
    parts = sentences(text, ANY_SCRIPT)
    own = [part for part in parts if not is_hearsay(part, passage.text)]
    is_whole = text == passage.text and len(own) == len(parts)
    return passage if is_whole else replace(passage, text=" ".join(own))


def _lasting(passage: Passage, lexicon: Lexicon) -> list[str]:
    return [
        part
        for part in lexicon.standing_in(passage.text)
        if latin_length(part) >= MIN_LASTING_CHARS
        and not part.endswith(":")  # a heading
        and not lexicon.phrases.chatter.search(part)
    ]


def _without(removed: set[str], given: list[Passage]) -> list[Passage]:
    """Return passages without the sentences in `removed`; what is then too short says nothing."""
    if not removed:
        return given
    left = [
        " ".join(part for part in sentences(passage.text, PROSE) if part not in removed) for passage in given
    ]
    rest = [replace(passage, text=text) for passage, text in zip(given, left, strict=True)]
    return [passage for passage in rest if latin_length(passage.text) >= MIN_CHARS]


def _telling(text: str, phrases: Phrasebook) -> str:
    """
    Return a person's words without sentences of talk, questions and steps of the hour, if any are left.

    A request that is put as a question stays, without its courtesy.
    """
    parts = [_bare(part, phrases) for part in sentences(text, ANY_SCRIPT)]
    telling = [
        part
        for part in parts
        if latin_length(part.strip(" .!")) >= MIN_SENTENCE_CHARS
        and not (phrases.talk.match(part) or is_question(part) or phrases.errand.match(part))
        and not phrases.chatter.search(part)
    ]
    ended = [part if part[-1:] in ".!?。！？:" else f"{part}." for part in telling[:-1]]
    return in_line(*ended, *telling[-1:])


def _bare(sentence: str, phrases: Phrasebook) -> str:
    bare = _OPENING.sub("", phrases.calls.cut_from(" ".join(sentence.split()))) or sentence
    polite = _ASKED_POLITELY.match(bare)
    return _LETS.sub("", polite[1] if polite else bare)


def _capital(text: str) -> str:
    is_word = text[:1].islower() and text.split(" ", 1)[0].rstrip(",.").isalpha()
    return text[0].upper() + text[1:] if is_word else text  # a word, not a file name or a version


def _is_bare_request(text: str, phrases: Phrasebook) -> bool:
    """Return whether a person asks for a look or a step and says not how: it settles nothing."""
    return bool(phrases.bare_request.search(text)) and not phrases.binding.search(text)


def _passages(typed: str, phrases: Phrasebook) -> list[Passage]:
    """Return the passages of a prompt; what is pasted is never joined with the person's own words."""
    if len(typed) <= PASTED_FROM_CHARS or "```" in typed:
        return passages(typed, phrases, is_typed=True)
    runs = groupby(_BLANK_LINE.split(typed), lambda part: is_pasted(part, typed, phrases))
    return [passage for _, parts in runs for passage in passages("\n\n".join(parts), phrases, is_typed=True)]


def is_pasted(passage: str, prompt: str, phrases: Phrasebook) -> bool:
    """
    Return whether a passage is pasted: of a long prompt, one in which nobody speaks and nobody is spoken to.

    Of any prompt, one that tells the assistant to ignore what it was told before: nothing of it is a rule.

    >>> note = "Medium: the loader exits with 0 although the argument is missing, so scripts do not notice."
    >>> opinion = f"{note} I think we should fail."
    >>> is_pasted(note, note * 5, phrases), is_pasted(opinion, note * 5, phrases)
    (True, False)
    """
    is_long = len(prompt) > PASTED_FROM_CHARS and len(passage) > PASSAGE_WITHOUT_VOICE_CHARS
    is_impersonal = is_long and phrases.personal.search(passage) is None
    return is_impersonal or is_injected(passage, phrases)


def is_injected(passage: str, phrases: Phrasebook) -> bool:
    """Return whether a passage tells the assistant to ignore what it was told before: nobody types that."""
    return any(map(phrases.injected.search, {passage, plain_letters(passage)}))


def _refused(turns: Sequence[Turn], index: int) -> tuple[str, tuple[int, ...]]:
    """Return the call that a person's words refuse, as the condition of what they say, and its line."""
    turn = turns[index]
    if turn["kind"] != "rejection":
        return "", ()
    for earlier in reversed(turns[max(0, index - TURNS_TO_CALL) : index]):
        if earlier["kind"] == "tool_call" and earlier["tool_use_id"] == turn["tool_use_id"]:
            argument = " ".join(text_of(earlier).split())
            if not argument or len(argument) > CALL_CHARS or "`" in argument:
                return "", ()
            verb = "Instead of `{}`" if earlier["tool_name"] in SHELL_TOOLS else "In `{}`"
            return verb.format(argument), (line_of(earlier),)
    return "", ()


# What is taken back


def without_taken_back(
    candidates: Sequence[Candidate], turns: Sequence[Turn], lexicon: Lexicon
) -> list[Candidate]:
    """
    Return what a person typed and chose in one thread; what they took back later is an event alone.

    That is: what their next words withdraw, set to another value or rename, what they order to be left or
    removed, and what they say or choose again with a change. Of those the last word counts.
    """
    after = _WordsAfter([turn for turn in turns if turn["kind"] in PERSON - {"plan"}], lexicon)
    in_order = sorted(range(len(candidates)), key=lambda at: (max(candidates[at].lines), at))
    stays: dict[int, Candidate] = {}
    later = _Statements()
    for at in reversed(in_order):
        candidate = candidates[at]
        is_gone = candidate.memory_type is not None and (
            later.say_again(candidate) or after.withdraw(candidate)
        )
        stays[at] = replace(candidate, memory_type=None, source="taken_back") if is_gone else candidate
        if candidate.memory_type is not None:
            later.add(candidate)
    return [stays[at] for at in range(len(candidates))]


class _Statements:
    """Statements found again by their words, so that a long session is not compared pair by pair."""

    def __init__(self) -> None:
        self._words: list[tuple[Turn, AbstractSet[str]]] = []
        self._places: dict[str, list[int]] = {}
        self._answered: dict[str, list[Turn]] = {}

    def add(self, candidate: Candidate) -> None:
        """Take in a statement."""
        words = long_words(candidate.text)
        for word in words:
            self._places.setdefault(word, []).append(len(self._words))
        self._words.append((candidate.turn, words))
        self._answered.setdefault(candidate.text.partition(": ")[0], []).append(candidate.turn)

    def say_again(self, candidate: Candidate) -> bool:
        """Return whether another turn has most of a statement's words, or answers the same question."""
        asked, colon, _ = candidate.text.partition(": ")
        answered = self._answered.get(asked, ()) if colon and asked.startswith("For ") else ()
        if any(turn is not candidate.turn for turn in answered):
            return True
        words = long_words(candidate.text) - _PASSING_WORDS
        least = max(REPEATED_SHARE * len(words), REPEATED_WORDS_MIN)
        # With so many words in common not all of the rarest can be missing.
        rarest = sorted((self._places.get(word, []) for word in words), key=len)
        places = {place for held in rarest[: max(0, len(words) - ceil(least) + 1)] for place in held}
        return any(
            turn is not candidate.turn and len(words & its_words) >= least
            for turn, its_words in map(self._words.__getitem__, places)
        )


class _WordsAfter:
    """What a person's turns take back, read once: the last line that does, by the thing it names."""

    def __init__(self, spoken: Sequence[Turn], lexicon: Lexicon) -> None:
        self._spoken, self._lexicon = spoken, lexicon
        self._last_lines = list(accumulate(map(line_of, spoken), max))
        self._renamed: dict[str, int] = {}
        self._left: dict[str, dict[frozenset[str], int]] = {}  # by one of the thing's stems
        phrases = lexicon.phrases
        for turn in spoken:
            words, line = text_of(turn), line_of(turn)
            if len(words) > PASTED_FROM_CHARS:
                continue
            for old in phrases.renamed.parts_in(words):
                self._renamed[old] = max(line, self._renamed.get(old, line))
            removed = phrases.removed.pattern
            for thing, _ in lexicon.reversals.things_left_in(words, lexicon.vocabulary, removed):
                if len(thing.word_set) > 1 or thing.names:
                    held = self._left.setdefault(min(thing.word_set), {})
                    held[thing.word_set] = max(line, held.get(thing.word_set, line))

    def withdraw(self, candidate: Candidate) -> bool:
        """Return whether what a person said behind a statement takes it back."""
        line, phrases = max(candidate.lines), self._lexicon.phrases
        following = bisect_right(self._last_lines, line)
        if following == len(self._spoken):
            return False
        answer = text_of(self._spoken[following])
        if phrases.withdrawn.search(answer):
            return True
        ordered = phrases.ordered_value.match(answer.strip())
        chosen = phrases.chosen_value.part_in(candidate.text)
        if ordered is not None and chosen is not None and part_of(ordered) != chosen:
            return True
        if any(last > line and old in candidate.text for old, last in self._renamed.items()):
            return True
        words = self._lexicon.vocabulary.fact(candidate.text).word_set
        things = (thing for word in words & self._left.keys() for thing in self._left[word].items())
        left = [thing for thing, last in things if last > line and thing <= words]
        own = _left_by(candidate, self._lexicon) if left else frozenset[str]()
        return any(thing.isdisjoint(own) for thing in left)


def _left_by(candidate: Candidate, lexicon: Lexicon) -> frozenset[str]:
    """Return the stems of what a statement says itself was removed, replaced or left."""
    removed = lexicon.phrases.removed.pattern
    things = lexicon.reversals.things_left_in(candidate.text, lexicon.vocabulary, removed)
    return frozenset[str]().union(*(thing.word_set for thing, _ in things))


# Where it holds


def category_of(candidate: Candidate, policy: Policy) -> str:
    """
    Return `global` only for a wish of a person, or a tag, that names every project by its own words.

    A wrong `global` follows the person into every project, a wrong `project` is only missed there: "always"
    and "never" are said of the work at hand. Of 32 briefs 27 had such a line of another project; none held.
    """
    is_tag = candidate.layer == TAG_LAYER
    is_persons = candidate.layer.endswith(PERSONS_LAYERS) and candidate.turn["kind"] in TYPED
    if candidate.event_type != "PREFERENCE_NOTED" or not (is_persons or is_tag):
        return "project"
    return "global" if Phrasebook.of(policy).everywhere.search(candidate.text) else "project"
