"""What a session did later about a fault or proposal that it stated: marks that make history of it."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from cortex.hooks.evidence.statements import CHANGED_SINCE, PROPOSED
from cortex.transforms.extract.candidate import PERSONS_LAYERS, Candidate
from cortex.transforms.extract.changes import Changes, names_in
from cortex.transforms.extract.lexicon import Lexicon
from cortex.transforms.extract.phrases import FILE
from cortex.transforms.words.sentences import PROSE, sentences

# Of a text so much states the fault or proposal; the rest of an explanation outlasts it.
FAULT_SHARE = 0.35
PROPOSAL_SHARE = 0.5
# Capitals alone ("JSONL", "HTTP") and words with a hyphen name no place in the code.
_PLACE = re.compile(r"[a-z][A-Z]|_|\w\.\w|[A-Z][a-z]+[A-Z]")
_MARKED = re.compile(r"(?:Agreed|Needed): |Instead of ")


def with_history(candidate: Candidate, changes: Changes, lexicon: Lexicon) -> Candidate:
    """
    Return a claim of the assistant with what became of it in its words, or the candidate as it is.

    A present fault of code that was edited afterwards says so; what was only proposed is called a proposal,
    and is no decision.
    """
    if not _is_claim(candidate):
        return candidate
    parts = _statements(candidate.text)
    if _is_changed_since(candidate, parts, changes, lexicon):
        signals = {**candidate.signals, "is_changed_since": 1.0}
        return replace(candidate, text=candidate.text.rstrip() + CHANGED_SINCE, signals=signals)
    is_option = candidate.text.startswith(PROPOSED) or bool(candidate.signals.get("is_option"))
    is_proposal = is_option or _is_proposal(parts, lexicon)
    return _as_proposal(candidate) if is_proposal and candidate.turn["kind"] == "text" else candidate


def _as_proposal(candidate: Candidate) -> Candidate:
    signals = {**candidate.signals, "is_proposal": 1.0}
    candidate = replace(candidate, text=PROPOSED + candidate.text.removeprefix(PROPOSED), signals=signals)
    if candidate.memory_type == "decision":
        return replace(candidate, event_type="KNOWLEDGE_ACQUIRED", memory_type="context")
    return candidate


def _is_claim(candidate: Candidate) -> bool:
    is_prose = candidate.layer.startswith("layer2") and not candidate.layer.endswith(
        (*PERSONS_LAYERS, ":agreed")
    )
    is_said = candidate.turn["kind"] in ("text", "plan", "prompt") and bool(candidate.lines)
    return is_prose and is_said and candidate.memory_type is not None and not _MARKED.match(candidate.text)


def _statements(text: str) -> list[str]:
    return [part for sentence in sentences(text, PROSE) for part in sentence.split("; ")]


def _is_changed_since(candidate: Candidate, parts: Sequence[str], changes: Changes, lexicon: Lexicon) -> bool:
    """Return whether a text is mostly about present faults, and an edit after it touched what they name."""
    line = max(candidate.lines)
    if not changes.edits or changes.edits[-1].line <= line:
        return False
    phrases = lexicon.phrases
    faults = [
        part for part in parts if phrases.states_fault.search(part) and not phrases.past_fault.search(part)
    ]
    if sum(map(len, faults)) < FAULT_SHARE * sum(map(len, parts)):
        return False
    places = frozenset(chain.from_iterable(_places(part) for part in faults))
    if any(changes.touched.get(place, 0) > line for place in places):
        return True
    names_cause = any(phrases.names_cause.search(part) for part in faults)
    return names_cause and changes.is_edited_before_prompt(line)


def _places(text: str) -> frozenset[str]:
    """Return the files and the names of functions and variables in a text, in small letters."""
    names = {name for name in names_in(text) if _PLACE.search(name)}
    return frozenset(
        name.lower() for name in names | {path.rsplit("/", 1)[-1] for path in FILE.findall(text)}
    )


def _is_proposal(parts: Sequence[str], lexicon: Lexicon) -> bool:
    """Return whether a text mostly says what could be done, or is a list under a heading that says so."""
    if ": " in parts[0] and len(parts) > 1 and lexicon.phrases.suggests.search(parts[0]):
        return True
    proposals = [part for part in parts if lexicon.phrases.suggests.search(part)]
    return sum(map(len, proposals)) >= PROPOSAL_SHARE * sum(map(len, parts))
