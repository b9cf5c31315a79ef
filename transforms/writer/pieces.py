"""A session too long for one reading: read in pieces for candidates, then shortened, beside them."""

from collections.abc import Mapping, Sequence

from cortex.transforms.redaction.redact import redact
from cortex.transforms.words.sentences import shortened
from cortex.transforms.writer.answer import WrittenFact, WrittenOutcome, parsed_answer
from cortex.transforms.writer.check import SessionTurns, checked_facts
from cortex.transforms.writer.fitting import fitted, tokens_of_line, tokens_of_lines
from cortex.transforms.writer.prompt import Prompt
from cortex.transforms.writer.rendering import PERSONS, SessionLine, shortened_in_middle
from cortex.transforms.writer.request import ModelRequest

# What a reply about a piece is for: its facts are candidates and never shown.
PIECE_PURPOSE = "piece"
# A piece ends before a person's words where they stand in its last part.
EARLIEST_END = 0.7
# A cited turn that the shortened session has left out is named with so much of it.
CITED_CHARS = 300
CANDIDATE_CHARS = 700
_PIECE_NOTE = (
    "This is part {number} of one session that is too long to be read at once; other parts may stand before"
    " it and after it. Note of this part what may still matter when the whole session is over, with the turns"
    " as they are numbered here. What nobody has answered by the end of this part is open.\n\n"
)
_PIECE_END = (
    "Now write the JSON object for this part of the session: its outcome, and the facts, if any; at most 12."
)
_CANDIDATES_NOTE = (
    "The session is too long to be read at once, and is shortened below. It was read in {count} parts before:"
    " <candidates> holds what was noted of each part, in order, without knowledge of the parts after it, with"
    " the turns as they are numbered below. They are a record to read like the session. Write the facts by"
    " how things stand when the session ends: take over what still holds, quote and turns included; make one"
    " of those that say the same; leave out what a later part overturns.\n\n"
)


def pieces_of(lines: Sequence[SessionLine], tokens: int, most: int) -> list[list[SessionLine]]:
    """
    Return lines in at most `most` pieces of at most `tokens` estimated tokens, each broken between two turns.

    A session that goes on leaves the pieces before its last as they were. What does not fit into so many
    loses what `fitted` gives up first.
    """
    kept = list(lines)
    pieces = _split(kept, tokens)
    room = tokens * most
    while len(pieces) > most:
        room = room * 9 // 10
        kept = fitted(kept, room)
        pieces = _split(kept, tokens)
    return [fitted(piece, tokens) for piece in pieces]


def piece_request(
    piece: Sequence[SessionLine], number: int, model: str, prompt: Prompt, output_tokens: int
) -> ModelRequest:
    """Return the request that reads one piece; it depends on nothing but the piece and where it stands."""
    body = "\n".join(line.shown(at) for at, line in enumerate(piece, start=1))
    note = _PIECE_NOTE.format(number=number)
    content = redact(f"{note}<session>\n{body}\n</session>\n\n{_PIECE_END}")[0]
    return ModelRequest(
        PIECE_PURPOSE, model, prompt.name, prompt.system, content, prompt.schema, output_tokens
    )


class Candidates:
    """What was noted of the pieces: facts that pass the checks, and what became of each piece."""

    def __init__(
        self, pieces: Sequence[Sequence[SessionLine]], answers: Sequence[str], most: Sequence[int]
    ) -> None:
        """
        Take the pieces, the texts of the replies to them, and how many facts of each count at most.

        What is no answer has no candidates.
        """
        self._parts: list[list[tuple[str, tuple[str, ...]]]] = []
        for piece, text, facts_max in zip(pieces, answers, most, strict=True):
            answer = parsed_answer(text)
            if answer is None:
                self._parts.append([])
                continue
            checked = checked_facts(answer.facts, SessionTurns([line.turn for line in piece]), facts_max)
            facts = [
                (_words_of(each.fact), tuple(str(turn["turn_id"]) for turn in each.turns))
                for each in checked
                if not each.refused
            ]
            outcome = _outcome_words(answer.outcome)
            self._parts.append([*([(outcome, ())] if outcome else []), *facts])

    def with_cited(self, shown: Sequence[SessionLine], lines: Sequence[SessionLine]) -> list[SessionLine]:
        """Return the shortened session with the turns that candidates rest on, in the order of `lines`."""
        by_turn = {line.turn["turn_id"]: line for line in shown}
        cited = {name for part in self._parts for _, turns in part for name in turns}
        for line in lines:
            name = line.turn["turn_id"]
            if name in cited and name not in by_turn:
                words = shortened_in_middle(line.words, CITED_CHARS)
                by_turn[name] = SessionLine(line.turn, line.speaker, words)
        return [by_turn[line.turn["turn_id"]] for line in lines if line.turn["turn_id"] in by_turn]

    def listed(self, shown: Sequence[SessionLine]) -> str:
        """Return the candidates as the last reading sees them, by the numbers of the turns shown to it."""
        numbers = {line.turn["turn_id"]: f"t{at}" for at, line in enumerate(shown, start=1)}
        rows = []
        for part, facts in enumerate(self._parts, start=1):
            for words, turns in facts:
                names = ", ".join(numbers[name] for name in turns if name in numbers)
                rows.append(f"part {part}{f', turns {names}' if names else ''}: {words}")
        body = "\n".join(rows) or "nothing"
        note = _CANDIDATES_NOTE.format(count=len(self._parts))
        return f"{note}<candidates>\n{body}\n</candidates>\n\n"

    @property
    def tokens(self) -> int:
        """About how many tokens the candidates and the turns that they cite take."""
        words = sum(len(text.encode("utf-8", "replace")) for part in self._parts for text, _ in part)
        cited = len({name for part in self._parts for _, turns in part for name in turns})
        return (words + cited * CITED_CHARS + len(_CANDIDATES_NOTE)) // 3 + 30 * sum(map(len, self._parts))


def answers_to(requests: Sequence[ModelRequest], answers: Mapping[str, str]) -> list[str] | None:
    """Return the texts of the replies to all of `requests`, None while one is missing."""
    texts = [answers.get(request.request_id) for request in requests]
    return [text for text in texts if text is not None] if None not in texts else None


def _split(lines: Sequence[SessionLine], tokens: int) -> list[list[SessionLine]]:
    pieces: list[list[SessionLine]] = []
    piece: list[SessionLine] = []
    used = 0
    for line in lines:
        weight = tokens_of_line(line)
        if piece and used + weight > tokens:
            end = _end_of(piece, tokens)
            pieces.append(piece[:end])
            piece = piece[end:]
            used = tokens_of_lines(piece)
        piece.append(line)
        used += weight
    return [*pieces, piece] if piece else pieces


def _end_of(piece: Sequence[SessionLine], tokens: int) -> int:
    """Return where a full piece ends: before the last words of a person, unless they stand too early."""
    used = tokens_of_lines(piece)
    for at in range(len(piece) - 1, 0, -1):
        used -= tokens_of_line(piece[at])
        if used < EARLIEST_END * tokens:
            break
        if piece[at].turn["kind"] in PERSONS:
            return at
    return len(piece)


def _words_of(fact: WrittenFact) -> str:
    parts = [f"({fact.fact_type}, {fact.state}) {fact.statement}"]
    parts += [f"Why: {fact.why}"] * bool(fact.why)
    parts += [f"Instead of: {fact.instead_of}"] * bool(fact.instead_of)
    return _in_frame(f"{shortened(' '.join(parts), CANDIDATE_CHARS)} Quote: {fact.quote[:CITED_CHARS]}")


def _outcome_words(outcome: WrittenOutcome) -> str:
    parts = (("goal", outcome.goal), ("outcome", outcome.outcome), ("open", outcome.still_open))
    return _in_frame(
        shortened("; ".join(f"{name}: {words}" for name, words in parts if words), CANDIDATE_CHARS)
    )


def _in_frame(text: str) -> str:
    """Return words that neither end nor begin a frame of the request."""
    return text.replace("<", "‹")
