"""How one memory reads in a brief: the fact in a sentence or two, then its source and how sure it is."""

import re
from datetime import datetime
from functools import cache

import pyarrow as pa

from cortex.hooks.echo import PROVENANCE
from cortex.hooks.evidence.statements import outcome_parts
from cortex.hooks.prose.plain import MONTHS, closed, on_one_line
from cortex.transforms.extract.language.candidate import PERSONS_LAYERS
from cortex.transforms.memory.quality import brief_wording
from cortex.transforms.policy import Policy
from cortex.transforms.schemas import Row
from cortex.transforms.words.ages import COLLEAGUE, authors_of, counted, endorsement_of
from cortex.transforms.words.prompt_injection import is_order
from cortex.transforms.words.sentences import LINE, first_sentences, sentences, share_of_fewer, words_in

# "Yes." and "Use uv." say too little without the answer they got.
MIN_FACT_CHARS = 12
# "Files changed: a; b; c" is a list; a longer lead or a single semicolon is prose.
MAX_HEADING_CHARS = 60
MIN_ITEMS = 2
# A reason of which this share of words stands in the text is told with it.
REASON_IN_TEXT_SHARE = 0.7
# Items of a list are told as long as they fit; what is left out is counted.
MAX_LIST_CHARS = 300
# Four hexadecimal digits tell the sessions of a project apart; a whole name costs a line's worth of tokens.
SESSION_DIGITS = 4
# What a person's words were said to, as extraction adds it, is a hint and not the fact.
OCCASION_CHARS = 60
MAX_TERSE_CHARS = 40
FAULT_CHARS = 110  # of a fault that a person reports; the rest of its line is for what it was
_OCCASION = re.compile(r" \((said when refusing \w+|asked): (.*?)\)(?= → |$)")
_QUESTION = re.compile(
    r"(?:Would|Should|Shall|Do|Does|Did|Can|Could|Will|Is|Are|Which|What|How|Why|Where|When|Who|Want|Or)\b[^?]*\?$"
)
_CLAUSE_END = re.compile(r",? (?:or|and|but|so|with)\b|[,;:(]| [-–—] ")
_CHOICE = re.compile(r"^(.*\?) User chose: (.*?)(?:; not: (.*))?$")
_BRACKETS = re.compile(r"\s*\((?:[^()]|\([^()]*\))*(?:\)|…?$)")
_LEANS = re.compile(r"(?:this|that|it|they|these|those|then|so|which|hence)\b", re.IGNORECASE)
# "in this situation", "bring that part back": says nothing without the sentence before it.
_POINTS_BACK = re.compile(
    r"\b(?:this|that|these|those) (?:situation|case|part|ones?|way|problem|issue|approach)\b"
    r"|\bsupport (?:that|those|these)\b"
)
_WIDE_STOP = re.compile(r"[。！？]+[」』）]*")
_CLAUSE_STOP = re.compile(r"; | [–—] |, (?:because|since|so that|which|but|while)\b|[。；]")
_LETTERS = re.compile(r"[^\W\d_]{2}")
_PLAN_PART = re.compile(r"(?:^|\s)(Plan|Aim|Done|Now|Next):\s+")
_EARLIER = re.compile(r"(\d+) earlier")  # as a plan's text sums up the steps done before the last few
LIVING_PLAN = r"(?s)^Plan:\s.*\s(Now|Next):\s"  # understood by re and by Arrow's RE2 alike


def fact_forms(row: Row, policy: Policy, *, fact_chars: int | None = None) -> tuple[str, ...]:
    """
    Return the fact as a list item, from full to short.

    Full: the most telling sentence and at most one more, within `fact_chars` (as a rule
    `brief_fact_chars`), then the reason and what was rejected where the memory's text does not say them.
    Short: the most telling sentence, then the summary that a language model gave. A decision is one sentence
    unless two are short or the second says what lost; a person's choice is the question, the answer and what
    lost.
    """
    chars = fact_chars or int(policy.threshold("brief_fact_chars"))
    text, tail = _OCCASION.sub(_brief_occasion, on_one_line(row["text"])), provenance(row, policy)
    chosen = choice(text, chars)
    if chosen:
        return (f"- {chosen} {tail}",)
    file = _described_file(row, text)
    fact, short = _fact(row, text.removeprefix(file), policy.tables["telling_words"], chars)
    is_long = row["memory_type"] == "decision" and len(fact) > policy.threshold("brief_decision_chars")
    if is_long and not _names_what_lost(fact.replace(short, ""), policy.tables["telling_words"]):
        fact = short
    for label, words in (("Why", row["reason"]), ("Rejected", row["rejected"])):
        line = first_sentences(on_one_line(words or ""), count=1, chars=chars // 2)
        if words and share_of_fewer(set(words_in(line)), set(words_in(text))) < REASON_IN_TEXT_SHARE:
            fact = f"{fact.rstrip('.')}. {label}: {line}"
    fact, short = brief_wording(fact, policy), brief_wording(short, policy)
    summary = on_one_line(row.get("summary") or "")
    forms = [fact]
    for shorter in (short, summary):
        forms += [shorter] if 0 < len(shorter) < len(forms[-1]) else []
    return tuple(f"- {file}{form} {tail}" for form in forms)


def explicit_forms(row: Row, policy: Policy) -> tuple[str, ...]:
    """
    Return words said on purpose as a list item, from all of them to the first statement alone.

    Cut between statements, to `brief_explicit_chars` at most; a longer first statement is told whole where
    it fits, and cut between words only if nothing else does.
    """
    text, tail = on_one_line(row["text"]), provenance(row, policy)
    chars = int(policy.threshold("brief_explicit_chars"))
    ends = _statement_ends(text)
    short = [end for end in ends if end <= chars] or ends[:1]
    forms = [text[:end].rstrip() for end in reversed(short)]
    forms.append(first_sentences(text, count=1, chars=int(policy.threshold("brief_fact_chars"))))
    return tuple(f"- {form} {tail}" for form in dict.fromkeys(forms))


def _statement_ends(text: str) -> list[int]:
    """Return where each statement of a line ends; a full stop of Chinese or Japanese needs no space."""
    ends, at = [], 0
    for sentence in sentences(text, LINE):
        at = text.index(sentence, at)
        ends += [at + stop.end() for stop in _WIDE_STOP.finditer(sentence)]
        at += len(sentence)
        ends.append(at)
    return sorted(set(ends))


def _fact(row: Row, text: str, telling_words: pa.Table, chars: int) -> tuple[str, str]:
    """Return a fact in full and in short: of an answered person their words, of a fault they report both."""
    # After an arrow stands what was answered to the words before it, which are the fact and its source.
    own_words, _, answer = text.partition(" → ") if is_persons(row) else (text, "", "")
    if not answer or len(own_words) < MIN_FACT_CHARS:
        return gist(text, telling_words, chars)
    if row["memory_type"] != "gotcha":
        return gist(own_words, telling_words, chars)
    _, fault = gist(own_words, telling_words, FAULT_CHARS)
    _, cause = gist(answer, telling_words, chars - len(fault))
    return f"{fault} → {cause}", f"{fault} → {cause}"


def _described_file(row: Row, text: str) -> str:
    """Return the file that a description is about, as its text begins with it; of others nothing."""
    is_description = row["memory_type"] == "code_description" and row["files"]
    named = f"{on_one_line(row['files'][0])}: " if is_description else ""
    return named if text.startswith(named) else ""


def _names_what_lost(sentence: str, telling_words: pa.Table) -> bool:
    rows = telling_words.select(["pattern", "note"]).to_pylist()
    return any(row["note"] == "names what lost" and re.search(row["pattern"], sentence, re.I) for row in rows)


def _brief_occasion(match: re.Match[str]) -> str:
    """Return what words were said to, if they are too short to do without."""
    occasion, words = match.groups()
    if match.start() > MAX_TERSE_CHARS:
        return ""
    if occasion == "asked":
        question = _QUESTION.search(words)
        words = question[0] if question else words
        return f" (asked: {words})" if len(words) <= OCCASION_CHARS else ""
    return f" (not `{words}`)" if len(words) < OCCASION_CHARS // 2 and "`" not in words else ""


def choice(line: str, chars: int) -> str:
    """
    Return an answered question in short, or nothing if `line` is none.

    >>> choice("Which store? User chose: SQLite (Recommended) (one file); not: files, a server", 80)
    'Which store? User chose SQLite, not files or a server.'
    """
    answered = _CHOICE.match(line)
    if answered is None:
        return ""
    question, answer, lost = answered.groups()
    taken = _BRACKETS.sub("", answer).strip(" .;")
    line = f"User chose {taken or answer}"
    for number, option in enumerate(_BRACKETS.sub("", lost or "").strip(" .…").split(", ")):
        longer = f"{line}{' or' if number else ', not'} {option}"
        if not option or len(longer) > chars // 2:
            break
        line = longer
    line = f"{line}." if len(line) <= chars // 2 else first_sentences(line, count=1, chars=chars // 2)
    return f"{_asked(question, chars // 2)} {line}"


def _asked(question: str, chars: int) -> str:
    """Return a question within `chars`: without brackets, else without its last clauses."""
    bare = _BRACKETS.sub("", question)
    ends = [match.start() for match in _CLAUSE_END.finditer(bare) if match.start() < chars]
    if len(question) <= chars or len(bare) <= chars:
        return question if len(question) <= chars else bare
    return f"{bare[: ends[-1]]}?" if ends else first_sentences(bare, count=1, chars=chars)


def gist(text: str, telling_words: pa.Table, chars: int) -> tuple[str, str]:
    """
    Return the most telling sentence of `text` with one more that fits into `chars`; and that one alone.

    Takes TELLING_WORDS, the (pattern, weight) of what makes a sentence telling. The items of a list are its
    sentences. What goes along is the one before, if this leans on it ("This is why ..."), else the one
    after, unless it tells of the hour only.
    """
    statements = _statements(text)
    if not statements:
        return "", ""
    patterns = _patterns(
        tuple(telling_words["pattern"].to_pylist()), tuple(telling_words["weight"].to_pylist())
    )
    scores = [sum(weight for pattern, weight in patterns if pattern.search(each)) for each in statements]
    best = max(range(len(statements)), key=lambda place: (scores[place], -place))
    alone = whole(statements[best], chars)
    before = f"{statements[best - 1]} {statements[best]}"
    if best > 0 and _POINTS_BACK.search(statements[best]) and len(before) <= chars:
        return before, before
    leans = best > 0 and (_LEANS.match(statements[best]) or statements[best - 1].endswith("?"))
    follows = best + 1 < len(statements) and scores[best + 1] >= 0
    pair = statements[best - 1 : best + 1] if leans else statements[best : best + 2] if follows else []
    together = " ".join(pair)
    return (together if together and len(together) <= chars else alone), alone


def whole(statement: str, chars: int) -> str:
    """
    Return a statement whole up to half as much again as `chars`, else to the end of its last whole clause.

    What has no such end within `chars` is cut between words and ends in an ellipsis.

    >>> whole("Keep the raw payloads; the vendor resends them", 30)
    'Keep the raw payloads.'
    """
    if 2 * len(statement) <= 3 * chars:
        return statement
    ends = [match.start() for match in _CLAUSE_STOP.finditer(statement[:chars])]
    bare = statement[: ends[-1]].rstrip(" ,") if ends else ""
    if 3 * len(bare) < chars or closed(bare) != bare:
        return first_sentences(statement, count=1, chars=chars)
    return f"{bare}."


def _statements(text: str) -> list[str]:
    """Return the sentences of a text; a list stays with the heading that opens it."""
    heading, colon, listed = text.partition(": ")
    items = [item.strip() for item in listed.split("; ") if item.strip()]
    if not colon or heading == "Plan" or len(heading) > MAX_HEADING_CHARS or len(items) < MIN_ITEMS:
        return sentences(text, LINE)
    # "27-30" and "Timestamp access:" are what is left of an item whose words went elsewhere.
    items = [item for item in items if _LETTERS.search(item) and not item.endswith(":")] or items
    line = f"{heading}: {items[0]}"
    for number, item in enumerate(items[1:], start=1):
        if len(f"{line}; {item}") > MAX_LIST_CHARS:
            line = f"{line}; and {len(items) - number} more"
            break
        line = f"{line}; {item}"
    return [line if line.endswith((".", "?", "!", "…")) else f"{line}."]


@cache
def _patterns(
    texts: tuple[str, ...], weights: tuple[float, ...]
) -> tuple[tuple[re.Pattern[str], float], ...]:
    return tuple(
        (re.compile(text, re.IGNORECASE), weight) for text, weight in zip(texts, weights, strict=True)
    )


def plan_forms(row: Row, policy: Policy) -> tuple[str, ...]:
    """
    Return a living plan as a list item, from full to short.

    Full: the title, then a line each for the last step done, the step at hand and the next two.
    Short: the title and the step at hand; shortest: how many steps are left of it.
    """
    fact_chars = int(policy.threshold("brief_fact_chars"))
    parts = dict(_plan_parts(on_one_line(row["text"])))
    title = first_sentences(parts.get("Plan", "").rstrip(". "), count=1, chars=fact_chars)
    head = f"- {title} {provenance(row, policy)}"
    lines = [
        _steps(label, parts[label], fact_chars // 2)
        for label in ("Done", "Now", "Next")
        if parts.get(label, "").rstrip(". ") not in ("", title.rstrip(". "))
    ]
    at_hand = [line for line in lines if line.startswith("  - now:")] or lines[-1:]
    steps = [part.split(";") for label, part in parts.items() if label in ("Now", "Next")]
    left = counted(sum(map(len, steps)), "step")
    shortest = [f"- Unfinished: {title}; {left} left {provenance(row, policy)}"] if steps else []
    return ("\n".join([head, *lines]), "\n".join([head, *at_hand]), *shortest)


def provenance(row: Row, policy: Policy) -> str:
    """
    Return who said a memory and when: `(user, 14 Sep 26)`; the rest is in `cortex brief --explain`.

    "user" if the user said it; "reviewed" of what the team's repository holds and "shared" of what colleagues
    pushed, behind the author if that is not the user; "assistant" of an order that nobody else gave; "all
    projects" if it holds everywhere; the day it was last said.
    """
    return f"({', '.join(_who_and_when(row, policy))})"


def full_provenance(row: Row, policy: Policy) -> str:
    """
    Return where a memory comes from: `(user, 14 Sep 26, 3f2a +2, .92)`.

    As `provenance`, then the first digits of the session that said it last, how many more said it, and the
    confidence now.
    """
    _, session_id = _last_seen(row)
    more = f" +{row['session_count'] - 1}" if row["session_count"] > 1 else ""
    session = [on_one_line(session_id)[:SESSION_DIGITS] + more] if session_id else []
    return f"({', '.join([*_who_and_when(row, policy), *session, fraction(row['confidence'])])})"


def without_provenance(form: str) -> str:
    """
    Return what a list item says, without its mark and without who said it when.

    >>> without_provenance("- Keep UTC. (user, 14 Sep 26)")
    'Keep UTC.'
    """
    return PROVENANCE.sub("", form.partition("\n")[0]).removeprefix("- ")


def _who_and_when(row: Row, policy: Policy) -> list[str]:
    who = ["user"] if is_persons(row) else []
    if endorsement := endorsement_of(row):
        who += [endorsement] if who else [_colleagues(authors_of(row)), endorsement]
    elif not who and _gives_orders(row, policy):
        who = [row["trust"]]
    who += ["all projects"] if row["category"] == "global" else []
    # A person may have edited or confirmed it since a session said it last.
    return [*who, day(max(_last_seen(row)[0], row["updated_at"]))]


def _gives_orders(row: Row, policy: Policy) -> bool:
    text = on_one_line(row["text"])
    parts = outcome_parts(text) if row["memory_type"] == "outcome" else {"statement": text}
    steps = (step for name, part in parts.items() if name != "goal" for step in part.split("; "))
    return any(is_order(step, policy) for step in steps)


def _colleagues(authors: list[str]) -> str:
    more = f" +{len(authors) - 1}" if len(authors) > 1 else ""
    return f"{COLLEAGUE} {authors[0]}{more}".strip()


def _last_seen(row: Row) -> tuple[datetime, str]:
    seen = [
        (place["said_at"], place["session_id"]) for place in row["evidence"] if place["said_at"] is not None
    ]
    return max(seen, default=(row["updated_at"], ""))


def is_persons(row: Row) -> bool:
    """Return whether the fact is in a person's words, whatever was answered to them."""
    layers = {place["layer"] for place in row["evidence"]}
    return row["trust"] == "user" or any(layer.endswith(PERSONS_LAYERS) for layer in layers)


def tells_of_the_hour(text: str, telling_words: pa.Table) -> bool:
    """Return whether no sentence of `text` outlasts the hour it was said in: "All tests pass."."""
    rows = zip(telling_words["pattern"].to_pylist(), telling_words["weight"].to_pylist(), strict=True)
    patterns = _patterns(*zip(*rows, strict=True))
    return all(
        sum(weight for pattern, weight in patterns if pattern.search(sentence)) < 0
        for sentence in _statements(text)
    )


def day(when: datetime) -> str:
    """
    Return the day of an instant, in UTC as it is stored, in half the tokens of `2026-09-14`.

    >>> day(datetime(2026, 9, 14))
    '14 Sep 26'
    """
    return f"{when.day} {MONTHS[when.month - 1]} {when:%y}"


def fraction(value: float) -> str:
    """
    Return a fraction of 0 to 1 in two digits.

    >>> fraction(0.918), fraction(1.0)
    ('.92', '1')
    """
    return f"{value:.2f}".removeprefix("0") if value < 0.995 else "1"


def _plan_parts(text: str) -> list[tuple[str, str]]:
    parts = _PLAN_PART.split(text)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def _steps(label: str, text: str, chars: int) -> str:
    """Return one line for the steps of a plan that are done (the last), at hand, or next (two at most)."""
    steps = [step.strip(" .") for step in text.split(";") if step.strip(" .")]
    earlier = _EARLIER.fullmatch(steps[0]) if steps else None
    count = len(steps) + (int(earlier[1]) - 1 if earlier else 0)
    shown = steps[-1:] if label == "Done" else steps[:2]
    line = "; ".join(first_sentences(step, count=1, chars=chars) for step in shown)
    if label == "Done" and count > 1:
        return f"  - done: {count} steps, last: {line}"
    more = f"; then {len(steps) - 2} more" if len(steps) > 2 else ""
    return f"  - {label.lower()}: {line}{more}"
