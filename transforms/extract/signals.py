"""What a passage shows about itself and its place in the session: the numbers that the score adds up."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from cortex.transforms.extract.sentences import Passage
from cortex.transforms.extract.thread import Place

IDENTIFIER = re.compile(
    r"`[^`]{2,80}`|\b\w+\.(?:py|ts|tsx|js|go|rs|json|ya?ml|toml|md|sh|html|css|rb|sql|java|kt|c|h|cpp)\b"
    r"|\b[a-z]+[A-Z]\w+\b|\b[A-Z][a-z]+[A-Z]\w*\b|\b\w+_\w+\b|--[a-z][\w-]+|\b[A-Z]{2,}_[A-Z_]+\b|\bv\d+\.\d+[\d.]*\b"
)
HASH = re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b")
NUMBER = re.compile(r"\b\d+(?:\.\d+)?\s?(?:%|ms|s|MB|kB|KB|GB|x|tests?|files?|errors?|lines?)\b")
WORD = re.compile(r"[A-Za-z가-힣][\w가-힣-]{3,}")

PATTERNS = {
    "narrates": r"^(?:(?:ok(?:ay)?|good|great|perfect|now|so|hmm|alright|first|next|excellent)[,.!]?\s+)*(?:let me|let's|i'll|i will|i need to|i'm going to|i should|i want to|now (?:i|let|the|we|update|add|fix|check|run|rewrite)|i can see|looking at|i see|checking|going to|running|writing|(?:quick|one|before i)\b|[a-z]+ing (?:the|a|it|this|now|for|that|both|all)\b)",
    "praises": r"^(?:perfect|excellent|great|good|awesome|nice|wonderful|done|all (?:good|done|green))\b[!.,]?",
    "agrees": r"^(?:you'?re (?:absolutely )?right|good (?:point|catch|question|call|idea|instinct)|exactly|yes\b|right\b|ah\b|agreed|makes sense|fair)",
    "asks": r"\?\s*$",
    "offers": r"\b(?:would you like|want me to|should i|shall i|do you want|let me know|happy to|i can (?:also )?|which (?:one|approach|option)|your call|if you(?:'d| would) (?:like|prefer))\b",
    "hedges": r"\b(?:might|maybe|perhaps|probably|possibly|likely|seems?|appears?|i think|i suspect|not sure|could be|may be|for now|suspect|culprits?|hypothesis|theory|try(?:ing)?)\b",
    "gives_reason": r"\b(?:because|since|so that|due to|the reason|which means|that way|to avoid|in order to|so (?:the|it|we|you|that|a|no)|otherwise|ensures?|this (?:means|way|avoids|keeps|ensures))\b|때문|위해",
    "contrasts": r"\b(?:instead|rather than|not|no longer|but|only|however|without|unless)\b",
    "speaks_of_done": r"^(?:[A-Z]\w+ )?(?:added|removed|fixed|created|updated|changed|replaced|moved|renamed|extracted|simplified|implemented|switched|made|refactored|set|dropped|restored|i'?ve|i (?:have|also)|we(?:'ve| have| now)|it now|now)\b",
    "counts_tests": r"\b\d+ (?:\w+ )?tests?\b|\btests? (?:all )?pass|\ball tests\b|\blint(?:ing)?\b.{0,20}\b(?:clean|pass)",
    "is_transient": r"\b(?:let me|i'll|i will|i need to)\b.{0,60}$|:$|^(?:wait|hmm|expected|still|almost)\b|\b(?:haven't|have not)\b[^.]* yet\b|\bis (?:now )?showing\b|\bwaiting for\b|\bdiagnostics?\b",
    "compares": r"\b(?:option|approach|alternative)s? ?[A-E1-5]?\b",
}
HEADINGS = {
    "under_outcome": r"\b(?:summary|changes?|changed|what|fix(?:es|ed)?|done|implemented|result|solution|conclusion|decision|final|recap|key|details?|updated?|modified|benefits?)\b|요약|변경|결과|완료",
    "under_cause": r"\b(?:root cause|cause|why|problem|issue|bug|finding|skip|reason|correct|caveat|note|limitation|gotcha|important)\b|원인|문제",
    "under_options": r"\b(?:options?|alternatives?|approach(?:es)?|workarounds?|could|would you|possib\w+|ideas?|suggest\w*|recommend\w*|choices?|paths?|pros|cons|culprits?|questions?)\b|옵션|대안",
    "under_plan": r"\b(?:plan|next|steps?|phase|todo|remaining|follow|open)\b|단계|계획|다음",
    "under_tests": r"\b(?:tests?|testing|verification|verified|files?|usage|example|how to)\b|테스트|검증",
}
# A list under "Likely culprits" is a guess although no item says so.
WITH_HEADING = frozenset(("hedges", "compares"))
# "Perfect, all tests pass" before "still broken": the claim fell, what was learned on the way did not.
CLAIMS = frozenset(("praises", "speaks_of_done", "counts_tests", "under_outcome"))
COMPILED = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in PATTERNS.items()}
HEADING_PATTERNS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in HEADINGS.items()}

USER_PATTERNS = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in {
        "user_directs": r"\b(?:please|can (?:you|we)|could (?:you|we)|let'?s|we (?:should|need|can|could|want|must)|i(?:'d| would)? (?:want|like|prefer|rather)|you (?:should|can|need)|make|use|add|remove|change|keep|rename|move|fix|drop|replace|switch|go with|should)\b|해줘|주세요|하자|합시다",
        "user_corrects": r"^(?:no\b|nope|wait|hmm|but\b|actually|oh\b|not\b|i (?:mean|wonder|don'?t)|isn'?t|wouldn'?t|why)|\b(?:instead|don'?t|doesn'?t|not working|wrong|still|rather|shouldn'?t|without|again|lost|missing)\b",
        "user_wishes": r"\b(?:i (?:want|like|love|prefer|expect|care|don'?t|didn'?t|would|wonder|think|guess)|i'd|prefer|always|never|as \w+ as possible|only|must|should)\b",
        "user_reasons": r"\b(?:because|since|so that|otherwise|as (?:we|i|it|this|that|there)|given|the (?:idea|point|goal|problem|issue) is)\b",
        "user_asks": r"\?\s*$|^(?:is|are|do|does|did|what|how|why|where|when|which|who|can i|would)\b",
        "user_looks": r"\b(?:take a look|look at|check|review|examine|explain|show me|have a look|investigate|see if|tell me|what (?:is|are|does))\b",
        "user_orders_git": r"^(?:\S+ ){0,6}(?:commit|push|merge|pr|pull request)\b",
        "user_thanks": r"^(?:thanks?|thank you|great|perfect|excellent|nice|cool|awesome|good (?:job|work))\b",
    }.items()
}


@dataclass(frozen=True)
class Corpus:
    """Word counts of one session, to tell what the session is about and what was said before."""

    turns_with: Counter[str]
    said_by_user: frozenset[str]
    turn_count: int

    @classmethod
    def of(cls, texts: Iterable[tuple[str, bool]]) -> "Corpus":
        """Return the counts over (text, whether a person said it), one pair a turn."""
        counts: Counter[str] = Counter()
        by_user: set[str] = set()
        total = 0
        for text, is_user in texts:
            words = content_words(text)
            counts.update(words)
            total += 1
            if is_user:
                by_user |= words
        return cls(counts, frozenset(by_user), total)

    def topicality(self, words: set[str]) -> float:
        """Return the mean of how often the passage's words recur in other turns, 0 to 1."""
        return sum(min(self.turns_with[word] - 1, 4) / 4 for word in words) / len(words) if words else 0.0

    def echo(self, words: set[str]) -> float:
        """Return the share of the passage's words that a person used too, 0 to 1."""
        return sum(word in self.said_by_user for word in words) / len(words) if words else 0.0


def content_words(text: str) -> set[str]:
    """Return the lower-case words of four letters and more."""
    return {word.lower() for word in WORD.findall(text)}


def signals(passage: Passage, place: Place, corpus: Corpus, strengths: dict[str, float]) -> dict[str, float]:
    """Return the signals of one passage by name, each 0 to 1; absent means 0."""
    text = passage.text
    words = content_words(text)
    found = {f"marker_{name.lower()}": strength for name, strength in strengths.items()}
    found["marker_best"] = max(strengths.values(), default=0.0)
    found |= _shape(text, words, passage)
    found["topicality"] = corpus.topicality(words)
    if place.speaker == "user":
        found |= {name: 1.0 for name, pattern in USER_PATTERNS.items() if pattern.search(text)}
        found["is_user"] = 1.0
    else:
        told = f"{passage.heading}: {text}"
        found |= {
            name: 1.0
            for name, pattern in COMPILED.items()
            if pattern.search(told if name in WITH_HEADING else text)
        }
        if "refuted" in place.marks and found.keys() & CLAIMS:
            found["claims_refuted"] = 1.0
        found |= {name: 1.0 for name, pattern in HEADING_PATTERNS.items() if pattern.search(passage.heading)}
        found["echo"] = corpus.echo(words)
    found |= {f"at_{name}": 1.0 for name in place.marks}
    return found


def _shape(text: str, words: set[str], passage: Passage) -> dict[str, float]:
    names = len(set(IDENTIFIER.findall(text)))
    return {
        "names_code": min(names, 4) / 4,
        "has_hash": float(bool(HASH.search(text))),
        "has_number": float(bool(NUMBER.search(text))),
        "is_short": float(len(text) < 60),
        "is_long": float(len(text) > 180),
        "is_item": float(passage.block == "item"),
        "is_table": float(passage.block == "table"),
        "is_first": float(passage.position == 0),
        "is_late": min(passage.position, 12) / 12,
    }
